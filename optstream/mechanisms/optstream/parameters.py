"""Checking what a mechanism is made with: every refusal names the parameter, its range and what it got."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from optstream.errors import ParameterError
from optstream.measurement import EquallySpaced, L1Sampling
from optstream.measurement.sampling import check_n_samples
from optstream.mechanisms.shares import checked_level_shares, checked_shares
from optstream.privacy.exact import whole
from optstream.stream import AggregationTree, Feature, Lattice

MOST_TOGETHER = 3000
"""Beside a margin, with features: its nodes and those above the regions, times steps. The estimate solves a
dense system of so many."""


def settled(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return OptStream's parameters, checked and in their final types. Raises ParameterError."""
    calibration, weights, features = given["calibration"], given["weights"], given["features"]
    if calibration not in ("strict", "paper"):
        raise ParameterError(f'calibration of OptStream must be "strict" or "paper"; got {calibration!r}')
    if weights not in ("variance", "paper"):
        raise ParameterError(f'weights of OptStream must be "variance" or "paper"; got {weights!r}')
    _check_features(features)
    _check_margin(given["tree"], features)
    sampling, window = given["sampling"], given["model"].window_length
    if not isinstance(sampling, (EquallySpaced, L1Sampling)):
        raise ParameterError(f"sampling of OptStream must be EquallySpaced or L1Sampling; got {sampling!r}")
    check_n_samples(sampling.n_samples, window, type(sampling).__name__)
    return {
        **given,
        "level_shares": checked_level_shares(given["level_shares"], given["tree"]),
        "stage_shares": _stage_shares(given["stage_shares"], sampling, features),
        "shortest_period": _shortest_period(given["shortest_period"], features, window),
    }


def _check_features(features: Sequence[Feature]) -> None:
    if len({feature.name for feature in features}) != len(features):
        raise ParameterError("features of OptStream must have different names")
    if len({feature.n_steps for feature in features}) > 1:
        raise ParameterError("features of OptStream must partition periods of one length")


def _check_margin(tree: AggregationTree, features: Sequence[Feature]) -> None:
    if not isinstance(tree, Lattice) or not features:
        return
    n_nodes = len(tree.nodes) - len(tree.leaves) - len(tree.tree.levels[-2])
    if n_nodes * features[0].n_steps > MOST_TOGETHER:
        raise ParameterError(
            f"features of OptStream beside margin {tree.margin!r:.80} are for at most {MOST_TOGETHER:,} of "
            "steps times nodes of the margin and above the regions, for they hang all steps together; got "
            f"{features[0].n_steps} times {n_nodes}: leave the features out, or let the larger of both "
            "dimensions be the regions"
        )


def stage_names(sampling: EquallySpaced | L1Sampling, features: Sequence[Feature]) -> tuple[str, ...]:
    """Return the stages that share a level's epsilon, in order."""
    first = ("sampling",) if isinstance(sampling, L1Sampling) else ()
    return (*first, "samples", *(("features",) if features else ()))


def _stage_shares(
    given: Sequence[Any] | None, sampling: EquallySpaced | L1Sampling, features: Sequence[Feature]
) -> tuple[Fraction, ...]:
    names = stage_names(sampling, features)
    shares = given if given is not None else [Fraction(1, len(names))] * len(names)
    checked = checked_shares(shares, len(names), f"stage_shares ({', '.join(names)})")
    if 0 in checked:
        raise ParameterError("stage_shares must be above 0 for each stage; leave features out instead")
    return checked


def _shortest_period(given: Any, features: Sequence[Feature], window: int) -> int:
    length = features[0].n_steps if features else window
    if given is None:
        return length
    if not features and isinstance(given, int) and given > window:
        return window  # a period counts as no longer than a window
    return whole(given, "shortest_period of OptStream", 1, length)
