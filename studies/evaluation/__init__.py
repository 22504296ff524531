"""Mechanisms compared on public series, with simulated noise, for docs/research/evaluation.md."""
