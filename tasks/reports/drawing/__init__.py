"""Curves and calendars as SVG and as frozen values that the pages' templates show."""
