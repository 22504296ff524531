"""Estimates of hierarchies with a margin: least squares, bound and rounding, each exact."""
