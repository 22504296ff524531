"""Measurements and states: parts that fit together, kinds and raw values that pass for nothing else."""

import copy
import json
import pickle
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.estimation.estimate import invert_coordinates
from optstream.estimation.problem import reconstruct, targets_of
from optstream.history.blocks import BlockHistory
from optstream.measurement.grouping import open_raw_state
from optstream.stream import Measured, PrivatePeriod, RawState
from optstream.stream.measured import FORMAT
from optstream.stream.private_period import public_part, raw_bytes, with_raw

STORED = {
    kind: text.encode()
    for kind, text in json.loads(Path(__file__).with_name("stored_answers.json").read_text("utf-8")).items()
}
"""As the code before these types wrote them: the ledger has the hashes of such bytes."""
READERS = {
    "FeatureSums": (reconstruct, targets_of),
    "BlockSums": (BlockHistory.of,),
    "FourierCoordinates": (invert_coordinates,),
}


@pytest.mark.parametrize("kind", STORED)
def test_stored_answers_are_read_as_what_was_asked_and_written_as_they_were(kind):
    measured = Measured.from_bytes(STORED[kind])
    assert type(measured.answers).__name__ == kind
    assert measured.to_bytes() == STORED[kind]


@pytest.mark.parametrize("kind", STORED)
@pytest.mark.parametrize("other", READERS)
def test_no_kind_of_answers_passes_for_another(kind, other):
    """Sums and coordinates are arrays of one shape: read as each other they would be published."""
    measured = Measured.from_bytes(STORED[kind])
    for read in READERS[other]:
        if kind == other:
            read(measured)
        else:
            with pytest.raises(ParameterError, match="these measurements"):
                read(measured)


def test_public_measurements_must_fit_together():
    with pytest.raises(ParameterError, match=r"feature_sums\[0\]"):
        Measured.from_public(np.zeros((3, 4)), [np.zeros((2, 1))])
    with pytest.raises(ParameterError, match="positions"):
        Measured.from_public(np.zeros((3, 4)), [], positions=[2, 1])
    with pytest.raises(ParameterError, match="one entry for the steps"):
        Measured.from_public(np.zeros((3, 4)), [np.zeros((3, 1))], variances=[1.0])
    with pytest.raises(ParameterError, match=r"variances\[0\] must be greater than 0"):
        Measured.from_public(np.zeros((3, 4)), [], variances=[0.0])
    with pytest.raises(ParameterError, match=r"variances\[1\] must be .* or \(3, 1\)"):
        Measured.from_public(np.zeros((3, 4)), [np.zeros((3, 1))], variances=[1.0, np.ones((3, 4))])


def test_bytes_that_are_no_measurements_are_refused():
    other = STORED["FeatureSums"].replace(json.dumps(FORMAT).encode(), b'"other"')
    for data in (b"", b"[]", b"{}", other, b"\xff"):
        with pytest.raises(ParameterError):
            Measured.from_bytes(data)


SECRET = {"limit": 71234, "exact": [81234]}
STATE = {"levels": {"0": {"mechanism": "A", "held": [1], "raw": RawState(SECRET)}, "1": {"mechanism": "B"}}}


def test_nothing_shows_what_is_inside():
    raw = RawState(SECRET)
    assert "1234" not in repr(raw) + str(raw) + repr(STATE)
    with pytest.raises(AttributeError, match="cannot be changed"):
        raw.content = 1
    with pytest.raises(TypeError):
        json.dumps({"raw": raw})
    assert open_raw_state(raw) == SECRET


@pytest.mark.parametrize(
    "private",
    [RawState(SECRET), PrivatePeriod.from_values([[71234.5]], resolution=Fraction(1), first_step=0)],
)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_private_values_are_not_pickled(private, protocol):
    """A persisted result of the orchestrator would be a pickle, in clear."""
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps({"inside": [private]}, protocol)
    with pytest.raises(TypeError, match="not pickled"):
        copy.deepcopy(private)


def test_public_and_raw_parts_are_distinguished_and_put_together_again():
    public, raw = public_part(STATE), raw_bytes(STATE)
    assert public == {"levels": {"0": {"mechanism": "A", "held": [1]}, "1": {"mechanism": "B"}}}
    assert b"71234" in raw
    assert b"held" not in raw
    whole = with_raw(public, raw)
    assert public_part(whole) == public
    assert open_raw_state(whole["levels"]["0"]["raw"]) == SECRET


def test_a_state_without_raw_entries_has_no_raw_bytes():
    assert raw_bytes({"mechanism": "A", "levels": {"0": {"held": [1]}}}) is None
    assert raw_bytes(None) is None
    assert public_part(None) is None


@pytest.mark.parametrize("data", [b"", b"[]", b"not json", b'{"levels": 1}'])
def test_bytes_that_are_no_raw_state_are_refused_without_showing_them(data):
    with pytest.raises(ParameterError, match="no raw state"):
        with_raw({}, data)
