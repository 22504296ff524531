"""The bytes of a file of measurements: read back as they were, and refused where they are something else."""

import json
from datetime import date
from fractions import Fraction

import numpy as np
import pytest

from optstream import AggregationTree, HistoryInformed, HistoryInformedTree, PrivacyModel, simulated_noise
from optstream.catalogue.measurements.measurements_file import (
    completed,
    decode_measurements,
    encode_measurements,
)
from optstream.catalogue.measurements.mechanism_document import describe, mechanism_from
from optstream.catalogue.measurements.shared_history import blocks_of
from optstream.errors import PublicationError
from optstream.estimation.gaussian_process.prior import COMPONENTS
from optstream.stream import PublicDays

MODEL = PrivacyModel(epsilon=1, window_length=24, alpha=1)
TREE = AggregationTree.from_parents({"all": None, "a": "all", "b": "all"})
PATTERN = HistoryInformed(MODEL, n_blocks=4, block_length=1, scale=50.0, days=PublicDays(24))
MECHANISM = HistoryInformedTree(PATTERN, TREE, (Fraction(1, 4), Fraction(3, 4)))


@pytest.fixture(scope="module")
def days():
    """Three days' measurements and their files."""
    noise, state, found = simulated_noise(1), None, []
    for number in range(3):
        values = np.full((2, 24), 50.0 + number)
        spends = [spend for measured, _ in found for spend in measured.spends]
        before = MECHANISM.recall(spends, state)
        measured = MECHANISM.measure(values, noise=noise, first_step=24 * number, state=before)
        state = measured.state
        facts = {"period": date(2016, 2, 1 + number), "revision": 0}
        file = encode_measurements(measured, MECHANISM, **facts, rounding="nearest", least_units=0)
        found.append((measured, file))
    return found


def test_the_whole_comes_back_from_the_files_of_the_days_that_it_remembers(days):
    found = [decode_measurements(file) for _, file in days]
    known = {}
    for one, (measured, _) in zip(found, days, strict=True):
        assert completed(one, known).to_bytes() == measured.to_bytes()
        known |= blocks_of(one.measured, one.levels)


def test_a_day_alone_or_beside_another_measurement_of_a_day_is_refused(days):
    last = decode_measurements(days[-1][1])
    with pytest.raises(PublicationError, match="rests on measurements of earlier days"):
        completed(last, {})
    known = {}
    for _, file in days[:-1]:
        one = decode_measurements(file)
        known |= blocks_of(one.measured, one.levels)
    (block, sums), *_ = known.items()
    with pytest.raises(PublicationError, match="rests on other measurements"):
        completed(last, known | {block: tuple(value + 1 for value in sums)})


@pytest.mark.parametrize("data", [b"", b"PAR1", b"{}" * 100])
def test_other_bytes_are_refused(data):
    with pytest.raises(PublicationError, match="file of measurements"):
        decode_measurements(data)


def test_a_mechanism_comes_back_equal_and_nothing_else_is_ever_made():
    document = json.loads(json.dumps(describe(MECHANISM)))
    assert mechanism_from(document) == MECHANISM
    for other in ({**document, "kind": "system"}, {"kind": "Feature", "parts": [], "name": "?"}, {}):
        with pytest.raises(PublicationError, match="no mechanism"):
            mechanism_from(other)


def test_a_kernel_of_ones_own_has_no_document():
    own = HistoryInformed(MODEL, n_blocks=4, block_length=1, days=PublicDays(24), components=COMPONENTS[:1])
    assert describe(own) is None
