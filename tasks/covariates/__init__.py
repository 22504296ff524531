"""Public covariates, from their files to what a night knows of them."""
