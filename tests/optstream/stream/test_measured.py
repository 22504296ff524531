"""Measurements and states: parts that fit together, kinds and raw values that pass for nothing else."""

import copy
import json
import pickle
from fractions import Fraction

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.estimation.estimate import invert_coordinates
from optstream.estimation.problem import reconstruct, targets_of
from optstream.history.blocks import BlockHistory
from optstream.measurement.grouping import open_raw_state
from optstream.stream import BlockSums, FeatureSums, FourierCoordinates, Measured, PrivatePeriod, RawState
from optstream.stream.state import public_part, raw_bytes, with_raw

STORED = {
    FeatureSums: (
        b'{"before":null,"choices":null,"first_step":6,"format":"optstream.measured/2","interpolation":null,'
        b'"n_steps":6,"parts":[],"point_variances":[[null,null],[72000000.0,72000000.0]],'
        b'"points":[[0,0],[97939,139088]],"positions":[0,3],"resolution":"1/1000","simulated":true,'
        b'"spends":[{"alpha_units":1000,"first_step":6,"kind":"step","leaves_changed":1,"level":1,'
        b'"scale":"6000","stage":"samples","weights":[1,0,0,1,0,0]},{"alpha_units":1000,"first_step":6,'
        b'"kind":"step","leaves_changed":1,"level":1,"scale":"12000","stage":"feature halves",'
        b'"weights":[1,1,1,1,1,1]}],"state":null,"sum_variances":[[[null],[288000000.0]]],'
        b'"sums":[[[0,0],[344220,543607]]]}'
    ),
    BlockSums: (
        b'{"before":null,"choices":{"blocks":[[1,3],[4,6]]},"first_step":6,"format":"optstream.measured/2",'
        b'"interpolation":null,"n_steps":6,"parts":[],"point_variances":[[],[]],"points":[[],[]],'
        b'"positions":[],"resolution":"1/1000","simulated":true,"spends":[{"alpha_units":1000,"first_step":6,'
        b'"kind":"step","leaves_changed":1,"level":0,"scale":"4000","stage":"blocks","weights":[0,1,1,0,1,1]}'
        b'],"state":null,"sum_variances":[[[32000000.0],[32000000.0]]],'
        b'"sums":[[[1004831,944823],[234161,382484]]]}'
    ),
    FourierCoordinates: (
        b'{"before":null,"choices":null,"first_step":6,"format":"optstream.measured/2","interpolation":null,'
        b'"n_steps":6,"parts":[],"point_variances":[[],[]],"points":[[],[]],"positions":[],'
        b'"resolution":"1/1000","simulated":true,"spends":[{"charges":[0,"409/2002","1226/3003","1/2",'
        b'"3467/6006","3875/6006","1415/2002"],"first_step":6,"kind":"period","level":0,'
        b'"stage":"coordinates"}],"state":null,"sum_variances":[[[72144072.0],[72144072.0]]],'
        b'"sums":[[[1200871,-7650,-19255],[347677,-26896,70256]]]}'
    ),
}
"""As the code before these types wrote them: the ledger has the hashes of such bytes."""
READERS = {
    FeatureSums: (reconstruct, targets_of),
    BlockSums: (BlockHistory.of,),
    FourierCoordinates: (invert_coordinates,),
}


@pytest.mark.parametrize("kind", STORED)
def test_stored_answers_are_read_as_what_was_asked_and_written_as_they_were(kind):
    measured = Measured.from_bytes(STORED[kind])
    assert type(measured.answers) is kind
    assert measured.to_bytes() == STORED[kind]


@pytest.mark.parametrize("kind", STORED)
@pytest.mark.parametrize("other", READERS)
def test_no_kind_of_answers_passes_for_another(kind, other):
    """Sums and coordinates are arrays of one shape: read as each other they would be published."""
    measured = Measured.from_bytes(STORED[kind])
    for read in READERS[other]:
        if kind is other:
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
    for data in (b"", b"[]", b"{}", b'{"format":"other"}', b"\xff"):
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
