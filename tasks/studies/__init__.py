"""Studies that release nothing: audit, leakage, evaluation, priors of public series."""
