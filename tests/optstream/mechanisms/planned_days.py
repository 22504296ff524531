"""The spends that a mechanism plans for days in a row, for tests of what windows over them cost."""


def plans(mechanism, lengths, first_step=0):
    """Days in a row, each planned by itself, as if nothing else were spent; a negative length is a gap."""
    found, at = [], first_step
    for length in lengths:
        if length > 0:
            found += mechanism.plan(length, at)
        at += abs(length)
    return found
