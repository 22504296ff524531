"""What benchmarks share beside their inputs: clocks, tables, a Prefect server."""
