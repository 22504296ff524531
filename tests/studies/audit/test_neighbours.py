"""Pairs of neighbours are as far apart as the model protects, and no farther."""

import numpy as np
import pytest

from optstream.privacy import PrivacyModel
from studies.audit.cases import RAGGED
from studies.audit.neighbours import worst_cases

MODEL = PrivacyModel("1", 6, 2)


@pytest.mark.parametrize("lengths", [[6], [5, 6, 4], [2, 2, 2, 2]])
def test_worst_cases_are_neighbours_and_cross_every_border(lengths):
    pairs = worst_cases(MODEL, RAGGED, lengths, first_step=3)
    names = [pair.name for pair in pairs]
    assert len(set(names)) == len(names)
    for pair in pairs:
        pair.check(MODEL)
    borders = np.cumsum(lengths)[:-1] + 3
    for border in borders:
        crossing = [pair for pair in pairs if pair.changed[0] < border <= pair.changed[-1]]
        assert any(pair.span == MODEL.window_length for pair in crossing)
    assert min(len(pair.changed) for pair in pairs) == 1
    assert {len(pair.changed) for pair in pairs} >= {1, 2, min(6, sum(lengths))}


def test_roaming_changes_several_leaves_at_once():
    model = PrivacyModel("1", 6, 2, unit="roaming", leaves_per_step=2)
    gap = [
        np.concatenate(pair.other, 1) - np.concatenate(pair.one, 1)
        for pair in worst_cases(model, RAGGED, [6])
    ]
    assert all(np.count_nonzero(entry, axis=0).max() == 2 for entry in gap)
