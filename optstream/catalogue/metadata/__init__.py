"""Descriptions of the published folder in the formats of other tools: pure functions of what is published."""
