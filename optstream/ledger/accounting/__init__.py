"""What the releases of a grant are charged, and what each privacy guarantee has left."""
