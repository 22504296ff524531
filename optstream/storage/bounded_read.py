"""What is read of the published folder, which anyone may have written, is of bounded size."""

LARGEST_RELEASE = 2**32
"""Bytes of one release's Parquet file."""
