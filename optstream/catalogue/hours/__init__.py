"""Streams by the hour: the hours of a day that is over, in one file."""
