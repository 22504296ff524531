"""Which plans have the least expected error: mechanism, noise, shares of levels and of streams."""
