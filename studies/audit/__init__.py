"""Attacks that measure epsilon from below, with broken mechanisms as controls.

An audit runs a mechanism many times on each of two neighbours, looks on some of the runs for an output that
is likelier on one side, and counts it on the others: whatever it finds, the true epsilon is at least the
bound, with a stated confidence. It can show a guarantee to be false, never to be true: that takes a proof.
A bound lies above the true epsilon with probability at most 1e-9 an audit, and a run has fewer than 500.
"""
