"""Commands that say how to release, and release nothing."""
