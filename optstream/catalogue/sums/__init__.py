"""How sure sums of published values are: a file of errors beside each release, and sums read with it."""
