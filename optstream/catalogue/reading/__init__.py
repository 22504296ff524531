"""Read the published folder back, and compare it with its catalogue: nothing that is read is trusted."""
