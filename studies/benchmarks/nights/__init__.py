"""Whole nights, from dumps to published files, and where their time goes."""
