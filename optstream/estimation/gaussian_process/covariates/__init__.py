"""What public covariates did to a series, learned from noisy measurements."""
