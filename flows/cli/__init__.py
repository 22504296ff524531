"""The command line: commands, and what the terminal shows."""
