"""Estimates from the noisy history of a stream, by a Gaussian process over time and tree."""
