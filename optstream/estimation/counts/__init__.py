"""Estimates of small counts: sizes, leaves as shares of their parents, bands of whole numbers."""
