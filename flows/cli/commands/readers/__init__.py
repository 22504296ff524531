"""Commands for who reads a published folder and has no configuration."""
