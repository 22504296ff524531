"""Mechanisms compared on public series, by simulated noise: what docs/evaluation.md tells."""
