"""Consistent estimates of a tree of nodes: the weighted problem, its closed form, its programs."""
