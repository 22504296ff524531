"""What the audit attacks: mechanisms, plans and histories on either side of neighbouring streams."""
