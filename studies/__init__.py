"""Studies beside the product, which they import and which never imports them: nothing is released.

audit       attacks on the mechanisms, and whether a broken one is caught
leakage     what who knows a customer's habits learns more
evaluation  the papers' experiments; `papers` runs them and checks the findings of docs/evaluation.md
benchmarks  scripts that print our figure and a peer's in the same run
"""
