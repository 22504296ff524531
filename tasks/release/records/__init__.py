"""What is said of a release: its rows, statement, lineage and outcome."""
