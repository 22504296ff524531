"""Dumps to try the product on: simulated ones, and the public files of RTE."""
