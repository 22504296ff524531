"""What the releases of a privacy budget are charged, and what each privacy guarantee has left."""
