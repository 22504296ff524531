"""Streams, dumps and series that benchmarks measure on."""
