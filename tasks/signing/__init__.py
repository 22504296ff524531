"""The signatures of what is published, and their key."""
