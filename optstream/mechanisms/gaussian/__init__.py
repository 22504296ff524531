"""Mechanisms of Gaussian noise, priced in rho of zero-concentrated privacy."""
