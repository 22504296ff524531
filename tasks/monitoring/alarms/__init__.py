"""Alarms: what they are, when they are raised, how they are grouped, and who was told of them."""
