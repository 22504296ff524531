"""Mechanisms compared on public series, with simulated noise, for docs/evaluation.md."""
