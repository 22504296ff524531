"""The share of epsilon that a stream has with `stream_share = "model"`: a function of public facts alone."""

import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from optstream.errors import ConfigurationError
from tasks.config import Settings, load_settings
from tasks.config.paths import absolute
from tasks.planning.advice.candidates import ordinary_day, with_number_levels, with_stream_share
from tasks.planning.advice.stream_shares import ErrorOf, check_population, choose_stream_shares
from tasks.planning.dry_run import expected_levels


def other_streams(settings: Settings) -> tuple[Settings, ...]:
    """Return the population's other streams, from the files that `budget.shared_with` lists.

    Raises ConfigurationError for a file that cannot be used; a stream of another population; one that is
    there twice; or one that lists other streams, so that shares would not add up.
    """
    others = tuple(load_settings(path) for path in _listed(settings))
    check_population((settings, *others))
    for one in others:
        chosen = one.budget.stream_share == "model"
        if chosen and {one.file.resolve(), *_listed(one)} != {settings.file.resolve(), *_listed(settings)}:
            raise ConfigurationError(
                f"{settings.file} and {one.file} must list each other and the same other streams in "
                "budget.shared_with: shares are chosen for all of them together"
            )
    return others


def model_stream_share(settings: Settings, others: Sequence[Settings]) -> Fraction:
    """Return the share of a stream: with those of the others that are chosen too, the least expected errors.

    Reads configurations alone, so that it costs no privacy, and is the same from whichever of them it is
    asked. What streams with a number of their own have is taken off first. Raises ConfigurationError where
    the others leave nothing, or of some stream no error is expected.
    """
    taken = sum((one.stream_share for one in others if one.budget.stream_share != "model"), Fraction(0))
    if taken >= 1:
        raise ConfigurationError(
            f"{settings.file}: budget.stream_share of the streams in budget.shared_with must leave "
            f"something; they add up to {taken}"
        )
    chosen = [settings, *(one for one in others if one.budget.stream_share == "model")]
    chosen.sort(key=lambda one: one.stream.name)
    shares = choose_stream_shares([_error_of(one, (1 - taken) / len(chosen)) for one in chosen], 1 - taken)
    return shares[chosen.index(settings)]


def _error_of(settings: Settings, first: Fraction) -> ErrorOf:
    """Return the geometric mean over levels of what the dry run expects; first: the share of level shares."""
    day = ordinary_day(settings)
    told = with_number_levels(with_stream_share(settings, first))

    def error(share: Fraction) -> float:
        found = [one.error for one in expected_levels(with_stream_share(told, share), day) if one]
        if len(found) < len(told.level_shares):
            raise ConfigurationError(
                f'{settings.file}: budget.stream_share "model" goes by expected errors, and none are known '
                "without the public size of a typical leaf: give [mechanism] scale"
            )
        return math.exp(sum(math.log(one) for one in found) / len(found))

    return error


def _listed(settings: Settings) -> tuple[Path, ...]:
    return tuple(absolute(path, settings.folder).resolve() for path in settings.budget.shared_with)
