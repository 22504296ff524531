"""Questions to what was published, answered beside it: sliding sums, low signal, jumps and drops."""
