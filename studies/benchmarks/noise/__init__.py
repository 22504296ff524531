"""Benchmarks of noise alone, on whatever series."""
