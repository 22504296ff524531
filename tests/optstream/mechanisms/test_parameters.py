"""Parameters that do not fit are refused when a mechanism is made, by name and rule."""

import math

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.measurement import EquallySpaced, L1Sampling
from optstream.measurement.blocks import DriftingBlocks
from optstream.mechanisms import (
    BudgetAbsorption,
    BudgetDistribution,
    Fast,
    Fourier,
    Hierarchical,
    HistoryInformed,
    HistoryInformedTree,
    Laplace,
    OptStream,
    PeGaSus,
)
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree, Feature
from optstream.stream.public_days import PublicDays
from tests.optstream.estimation.programs import product
from tests.optstream.mechanisms.silent_noise import Undrawn

MODEL = PrivacyModel("1", 48, 1)
TREE = AggregationTree.from_parents({"FR": None, "84": "FR", "11": "FR"})
TEN, SEGMENTS = EquallySpaced(10), {"sampling": L1Sampling(10, "50"), "features": []}
PARTS = [Feature((range(0, 14), range(14, 48)), "parts"), Feature((range(48),), "day")]
HALVES = ["1/2", "1/2"]
POINTS = {"model": MODEL, "tree": TREE, "sampling": TEN, "features": PARTS, "level_shares": HALVES}
BLOCKS = {"model": MODEL, "n_blocks": 6, "block_length": 2, "days": PublicDays(48)}
JOINT = {"model": MODEL, "noise": "joint", "period_lengths": (46, 48, 50)}
JOINT_BLOCKS = BLOCKS | JOINT | {"n_blocks": 16, "block_length": 1, "n_nodes": 1}
MARGIN = {"mechanism": Laplace(MODEL), "tree": product(2, 3)}


def planned(kind, **given):
    return kind(**given).plan(48)


def residues(n_samples):
    return EquallySpaced(n_samples).residues(48)


WRONG = [
    (Fourier, {"model": MODEL}, [
        ({"n_coefficients": 0}, "n_coefficients of Fourier must be an integer of at least 1; got 0"),
        ({"shortest_period": "48"}, "shortest_period of Fourier must be an integer of at least 1; got '48'"),
    ]),
    (Fast, {"model": PrivacyModel("1", 48, 2, "0.5"), "n_samples": 10}, [
        ({"n_samples": 49}, r"n_samples of Fast must be an integer in \[1, 48\]; got 49"),
        ({"integration_time": 11}, r"integration_time of Fast must be an integer in \[1, 10\]; got 11"),
        ({"min_interval": 1.5}, r"min_interval of Fast must be an integer in \[1, 48\]; got 1.5"),
        ({"proportional": 0.8}, "must add up to 1"),
        ({"proportional": 1.2, "integral": -0.2}, r"proportional of Fast must be a number in \[0, 1\]"),
        ({"sampling": "often"}, '"adaptive" or "fixed"; got \'often\''),
        ({"interval_step": 0}, "interval_step of Fast must be a finite number greater than 0; got 0"),
        ({"process_deviation": math.inf}, "process_deviation of Fast must be a finite number"),
    ]),
    (PeGaSus, {"model": PrivacyModel("1", 4, 1, "1")}, [
        ({"perturber_share": "1"}, "perturber_share of PeGaSus must lie between 0 and 1; got 1"),
        ({"perturber_share": 0.8}, "perturber_share of PeGaSus must be exact"),
        ({"threshold": -1}, "threshold of PeGaSus must be at least 0; got -1"),
        ({"smoother": "mean"}, 'smoother of PeGaSus must be "average" or "median" or "james_stein"; got'),
    ]),
    (OptStream, POINTS, [
        ({"level_shares": ["1/2", "2/3"]}, "at most 1; got 1/2, 2/3 = 7/6"),
        ({"level_shares": ["1"]}, "must have 2 shares"),
        ({"level_shares": ["1", "0"]}, "level 1 holds the leaf '84'"),
        ({"level_shares": ["-1/2", "1"]}, "must not be negative"),
        ({"stage_shares": ["1", "0"]}, "above 0 for each stage"),
        ({"sampling": EquallySpaced(1)}, r"in \[2, 48\]; got 1"),
        ({"weights": "equal"}, '"variance" or "paper"'),
        ({"features": [*PARTS, *PARTS]}, "different names"),
        ({"features": [*PARTS, Feature((range(46),), "x")]}, "one length"),
        (
            {"sampling": L1Sampling(10, "50"), "shortest_period": 49},
            r"shortest_period of OptStream must be an integer in \[1, 48\]",
        ),
    ]),
    (HistoryInformed, BLOCKS, [
        ({"n_blocks": 0}, r"n_blocks of HistoryInformed must be an integer in \[1, 48\]; got 0"),
        ({"n_blocks": 0, "block_length": None}, "n_blocks of HistoryInformed must be an integer"),
        ({"block_length": 9}, r"block_length of HistoryInformed must be an integer in \[1, 8\]; got 9"),
        ({"history_days": 0}, "history_days of HistoryInformed must be an integer of at least 1; got 0"),
        ({"relearn_days": -1}, "relearn_days of HistoryInformed must be an integer of at least 0; got -1"),
        ({"days": 24}, r"days of HistoryInformed must be optstream.PublicDays, such as .*; got 24"),
        ({"scale": 0.0}, "scale of HistoryInformed must be a finite number greater than 0; got 0.0"),
        ({"variation": -1.0}, "variation of HistoryInformed"),
    ]),
    (Hierarchical, MARGIN, [
        ({"level_shares": ["1/8"] * 3}, "must have 4 shares"),
        ({"level_shares": ["1/2"] * 4}, "at most 1"),
        ({"level_shares": ["1", "0", "0", "0"]}, "holds the leaf"),
    ]),
    (HistoryInformedTree, MARGIN | {"mechanism": HistoryInformed(**BLOCKS)}, [
        ({"level_shares": "model"}, "without a scale"),
        ({"level_shares": "best"}, "got 'best'"),
    ]),
    (Laplace, JOINT | {"n_nodes": 1}, [
        ({"noise": "gaussian"}, 'noise must be "joint" or "laplace", or be left out'),
        ({"n_nodes": 2}, r"on a level of 2 nodes is for customers whose .* one leaf: say so"),
        ({"model": PrivacyModel("1", 1, 1)}, "needs two measurements or more in a window"),
        ({"period_lengths": ()}, "period_lengths must have at least one length"),
        ({"period_lengths": (48, 0)}, "each of period_lengths must be an integer of at least 1"),
        ({"declared_leaves": 0}, "declared_leaves must be an integer of at least 1"),
    ]),
    (planned, {}, [
        (JOINT | {"kind": Laplace}, "n_nodes of Laplace must be given"),
        (JOINT_BLOCKS | {"kind": HistoryInformed, "n_nodes": None}, "n_nodes of HistoryInformed must"),
    ]),
    (OptStream, POINTS | JOINT | {"declared_leaves": 1}, [
        ({"declared_leaves": None}, "on a level of 2 nodes is for customers whose"),
        ({"sampling": L1Sampling(10, "1"), "features": []}, "is for equally spaced points"),
    ]),
    (HistoryInformed, JOINT_BLOCKS, [
        ({"n_nodes": 2}, r"on a level of 2 nodes is for customers whose .* one leaf: say so"),
        ({"n_blocks": 1, "block_length": 4}, "needs two measurements or more in a window"),
    ]),
    *(
        (kind, {"model": PrivacyModel("1", 6, 1, "1")}, [
            ({"distance_share": "1"}, f"distance_share of {kind.__name__} must lie between 0 and 1"),
            ({"distance_share": 0.5}, "must be exact"),
        ])
        for kind in (BudgetDistribution, BudgetAbsorption)
    ),
    (L1Sampling, {}, [
        ({"n_samples": 10, "threshold": "-1"}, "at least 0"),
        ({"n_samples": 10, "threshold": "5", "allocation": "best"}, '"even" or "optimal"'),
    ]),
    (DriftingBlocks, {"window_length": 6}, [
        ({"n_blocks": 0, "length": 1}, r"n_blocks of DriftingBlocks must be an integer in \[1, 6\]; got 0"),
        ({"n_blocks": 2, "length": 4}, r"length of DriftingBlocks must be an integer in \[1, 3\]; got 4"),
        ({"n_blocks": 2, "length": 1, "drift": 7}, r"drift of DriftingBlocks must be an integer in \[0, 6\]"),
    ]),
    (residues, {}, [
        ({"n_samples": count}, r"n_samples of EquallySpaced must be an integer in \[2, 48\]; got")
        for count in (1, 0, -3, 49, 10.0, "10", True)
    ]),
]  # fmt: skip
CASES = [(kind, given | wrong, message) for kind, given, cases in WRONG for wrong, message in cases]


@pytest.mark.parametrize(("kind", "given", "message"), CASES)
def test_bad_parameters_are_named(kind, given, message):
    with pytest.raises(ParameterError, match=message):
        kind(**given)


@pytest.mark.parametrize("made", [Fourier(MODEL), OptStream(**POINTS | SEGMENTS)], ids=repr)
def test_a_period_shorter_than_declared_is_refused_before_anything_is_drawn(made):
    expected = f"shortest_period of {type(made).__name__} is 48, and this period has 46"
    with pytest.raises(ParameterError, match=expected):
        made.release(np.zeros((2, 46)), noise=Undrawn())
    with pytest.raises(ParameterError, match=expected):
        made.plan(46)


def test_features_next_to_a_large_margin_are_refused_and_points_alone_are_not():
    large = POINTS | {"tree": product(2, 70), "level_shares": ["1/8", "1/8", "1/4", "1/2"]}
    assert OptStream(**large | {"features": []}).epsilon <= 1
    with pytest.raises(ParameterError, match=r"at most 3,000 of steps times nodes .* got 48 times 71: leave"):
        OptStream(**large | {"features": PARTS[1:]})
