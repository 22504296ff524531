"""Raw state: shown to nobody, written by nobody but the trusted store, put back where it was."""

import copy
import json
import pickle
from fractions import Fraction

import pytest

from optstream.errors import ParameterError
from optstream.measurement.grouping import open_raw_state
from optstream.stream import PrivatePeriod, RawState
from optstream.stream.state import public_part, raw_bytes, with_raw

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


def test_public_and_raw_parts_are_told_apart_and_put_together_again():
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
