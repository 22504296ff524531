"""Every registered mechanism, made small, for the conformance suite."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from optstream import mechanisms
from optstream.measurement import EquallySpaced, L1Sampling
from optstream.mechanisms import MECHANISMS, Hierarchical, OptStream
from optstream.mechanisms.base import SeriesMechanism
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree

TREE = AggregationTree.from_parents({"all": None, "A": "all", "B": "all"})
N_SERIES = 2

Make = Callable[[PrivacyModel, int], Any]
"""model, shortest period: a mechanism over two series."""


def _opt(sampling: Any, **more: Any) -> Make:
    def make(model, shortest):
        return OptStream(model, TREE, sampling=sampling, features=[], level_shares=["1/3", "2/3"], **more)

    return make


def _optstream_l1(model, shortest):
    sampling = L1Sampling(min(3, model.window_length), "1")
    shortest = min(shortest, model.window_length)
    return _opt(sampling, shortest_period=shortest)(model, shortest)


def _optstream_joint(model, shortest):
    """Where there are two points in each window at least."""
    can = model.unit == "customer" and model.window_length >= 2
    lengths = tuple(range(min(shortest, 50), 51))
    terms = {"noise": "joint", "declared_leaves": 1} if can else {}
    return _opt(EquallySpaced(2), period_lengths=lengths, **terms)(model, shortest)


def _plain(name: str, **parameters: Any) -> Make:
    return lambda model, shortest: getattr(mechanisms, name)(model, **parameters)


def _fourier(model, shortest):
    return mechanisms.Fourier(model, n_coefficients=2, shortest_period=min(shortest, model.window_length))


def _fast(**parameters: Any) -> Make:
    def make(model, shortest):
        return mechanisms.Fast(model, n_samples=min(3, model.window_length), integration_time=1, **parameters)

    return make


def _joint(model, shortest):
    """Where joint noise of two measurements can be had, else what is left out: Laplace noise."""
    can = model.unit == "customer" and model.window_length > 1
    lengths = tuple(range(min(shortest, 50), 51))
    return mechanisms.Laplace(model, "joint" if can else None, lengths, N_SERIES, 1)


def _gaussian(model, shortest):
    """Under the same guarantee but for a delta, without which there is no Gaussian noise."""
    # a delta allows some noise by itself, so a tiny epsilon shows only with a tiny delta
    delta = max(min(model.epsilon, Fraction(1, 10**6)), Fraction(1, 10**15))
    return mechanisms.Gaussian(PrivacyModel(**{**model.to_document(), "delta": delta}))


def _history_informed(model, shortest):
    """Few blocks in short windows, so that plans, borders and learning meet within a few periods."""
    n_blocks = min(2, model.window_length)
    length = min(2, model.window_length // n_blocks)
    return mechanisms.HistoryInformed(model, n_blocks=n_blocks, block_length=length, relearn_days=1)


def _history_informed_tree(model, shortest):
    return mechanisms.HistoryInformedTree(_history_informed(model, shortest), TREE, ["1/3", "2/3"])


PLAIN: Mapping[str, Make] = {
    **{name: _plain(name) for name in MECHANISMS if issubclass(getattr(mechanisms, name), SeriesMechanism)},
    "Laplace joint": _joint,
    "Gaussian": _gaussian,
    "Fourier": _fourier,
    "PeGaSus average": _plain("PeGaSus", smoother="average"),
    "PeGaSus James-Stein": _plain("PeGaSus", smoother="james_stein"),
    "Fast": _fast(),
    "Fast fixed linear": _fast(sampling="fixed", predictor="linear"),
    "HistoryInformed": _history_informed,
}


def _on_tree(make: Make) -> Make:
    return lambda model, shortest: Hierarchical(make(model, shortest), TREE, ["1/3", "2/3"])


ALL: Mapping[str, Make] = {
    **PLAIN,
    **{f"{name} on a tree": _on_tree(make) for name, make in PLAIN.items()},
    "HistoryInformedTree": _history_informed_tree,
    "OptStream": _opt(EquallySpaced(2)),
    "OptStream joint": _optstream_joint,
    "OptStream L1": _optstream_l1,
}
MODEL = PrivacyModel("1", 6, 1)
MADE = {name: make(MODEL, 6) for name, make in ALL.items()}
ONLINE = [name for name in PLAIN if not MADE[name].revises and name not in ("Fourier", "Laplace joint")]
"""That run by single steps: no later step changes an estimate, nor the random numbers of another step."""
ADAPTIVE = [name for name, made in MADE.items() if made.adaptive]
DAILY_ON_TREES = ("Laplace", "Laplace joint", "Fourier", "PeGaSus", "BudgetDistribution")
"""On a tree: without memory, over a period, with raw state, with memory of outputs; others by night."""


def _marks(name: str) -> list[Any]:
    plain, _, on_tree = name.partition(" on a ")
    return [pytest.mark.nightly] if on_tree and plain not in DAILY_ON_TREES else []


@pytest.fixture(params=[pytest.param(name, marks=_marks(name)) for name in ALL], ids=str)
def make(request) -> Make:
    return ALL[request.param]


@pytest.fixture
def wavy():
    """wavy(n): two series that rise and fall, (2, n)."""
    return lambda n: np.round(300 + 200 * np.sin(np.arange(2 * n).reshape(2, n) / 5), 3)
