"""Benchmarks: each prints our figure and a peer's from the same run; none asserts a time."""
