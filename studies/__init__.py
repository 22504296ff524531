"""Studies outside the product: they import it, it never imports them, and they release nothing.

audit       attacks on the mechanisms, and whether a broken one is caught
leakage     what who knows a customer's habits learns more
evaluation  the papers' experiments, and the findings of docs/research/evaluation.md checked in their results
benchmarks  print our figure and a peer's in the same run
"""
