"""JSON Schemas (2020-12) of what other monitoring tools read, from the types of each document.

`python -m tasks.schemas` lists them, `python -m tasks.schemas optstream.status/3` prints one.
"""
