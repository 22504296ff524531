"""Which dumps have arrived, and how their files are reached."""
