"""Files of the trusted folder, and what is said of failures."""
