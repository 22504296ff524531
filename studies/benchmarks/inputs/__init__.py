"""Streams, dumps, series and ledgers that benchmarks measure on."""
