"""How what is in doubt hangs together: of leaves, and of the mean of a day."""
