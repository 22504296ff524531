"""JSON Schemas (2020-12) of what other monitoring tools read; a file for each format and version."""
