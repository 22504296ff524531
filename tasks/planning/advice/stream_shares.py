"""Shares of one population's epsilon over its streams, with the least expected error; public facts alone."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import permutations

from optstream.errors import ConfigurationError
from optstream.mechanisms.history_informed.tree_choice import BETTER, LEAST, MOVES, WORTH_IT
from tasks.config import Settings

ErrorOf = Callable[[Fraction], float]
"""A stream's expected error, relative to its size, with so much of epsilon; up to a factor."""
AGREED = ("population", "epsilon", "delta", "window")


def choose_stream_shares(errors: Sequence[ErrorOf], total: Fraction) -> tuple[Fraction, ...]:
    """Return one share of epsilon for each stream, which add up to `total`, none less than `LEAST` of it; a
    function of public facts, hence free.

    The measure is the geometric mean over streams of their errors, as that of levels is: a factor in one
    stream's error, such as its unit, changes no share. Equal shares are kept where others gain less than a
    prior can tell.
    """
    known = [lru_cache(maxsize=None)(one) for one in errors]

    def error(shares: tuple[Fraction, ...]) -> float:
        return math.exp(
            sum(math.log(one(share)) for one, share in zip(known, shares, strict=True)) / len(known)
        )

    equal = (total / len(errors),) * len(errors)
    best, least = equal, error(equal)
    for move in MOVES:
        while True:
            found = min(
                ((error(one), one) for one in _moved(best, move * total, LEAST * total)),
                default=(least, best),
            )
            if not found[0] < least * (1.0 - BETTER):
                break
            least, best = found
    return best if least < error(equal) * (1.0 - WORTH_IT) else equal


def total_of(streams: Sequence[Settings]) -> Fraction:
    """Return what streams of one population have of its epsilon together: what they plan with, at most all.
    Raises ConfigurationError as `check_population`.
    """
    check_population(streams)
    return min(sum((one.stream_share for one in streams), Fraction(0)), Fraction(1))


def check_population(streams: Sequence[Settings]) -> None:
    """Raise ConfigurationError where streams are not of one population, or one of them is there twice."""
    first, *others = streams
    for other in others:
        differing = [key for key in AGREED if getattr(other.privacy, key) != getattr(first.privacy, key)]
        if differing:
            raise ConfigurationError(
                f"{other.file} and {first.file} must have the same {', '.join(differing)}: "
                "only streams of one population share an epsilon; advise on others one by one"
            )
    names = [one.stream.name for one in streams]
    if len(set(names)) < len(names):
        raise ConfigurationError(f"the configurations must be of different streams; got {', '.join(names)}")


def _moved(shares: tuple[Fraction, ...], move: Fraction, least: Fraction) -> list[tuple[Fraction, ...]]:
    found = []
    for giver, taker in permutations(range(len(shares)), 2):
        if shares[giver] - move >= least:
            moved = list(shares)
            moved[giver] -= move
            moved[taker] += move
            found.append(tuple(moved))
    return found
