"""Files of the trusted zone: private files, covariates, verdicts of suites."""
