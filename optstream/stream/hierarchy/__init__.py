"""Hierarchies that change on known days: the list of changes, the tree of a day, what became of units."""
