"""Dumps are read in a process of their own."""
