"""A stream with a delta, from its configuration to what readers and operators are told."""

import json
from datetime import UTC, datetime
from fractions import Fraction

import pytest

from optstream.catalogue import ReleaseStatement
from optstream.errors import LedgerError
from optstream.privacy.zero_concentrated import largest_rho
from tasks.config import load_settings
from tasks.operate.amend import declare, rehearse
from tests.tasks.release.streams.conftest import DAYS
from tests.tasks.schemas.test_schemas import validator

DELTA = Fraction(1, 10**6)
RHO = largest_rho(Fraction(1), DELTA)


@pytest.fixture
def released(with_mechanism):
    """Three days by Gaussian noise."""
    installation = with_mechanism("Gaussian")
    installation.released(*DAYS[:3])
    return installation


def test_readers_are_told_epsilon_at_delta_and_rho(released):
    manifests = [json.loads(data) for _, data in sorted(released.files("published/manifests").items())]
    assert len(manifests) == 3
    for manifest in manifests:
        assert list(validator("optstream.manifest/1").iter_errors(manifest)) == []
        statement = manifest.get("statement", manifest)
        assert statement["privacy_model"]["delta"] == str(DELTA)
        assert Fraction(statement["privacy_model"]["rho"]) == RHO
        assert Fraction(99, 100) < Fraction(statement["epsilon_plan"]) <= 1
        assert Fraction(1, 2) < Fraction(statement["epsilon_own"]) <= 1
        words = statement["privacy_in_words"]
        assert "by at most delta = 1e-06 added to any probability" in words
        assert "rho of zero-concentrated privacy: any window has at most 0.024356 of it" in words
        assert "costs at most c^2 times rho" in words
        assert {one["law"] for one in statement["noise"]} == {"discrete Gaussian"}
        assert {span["composed"] for span in statement["long_spans"]} == {"rho"}
        reread = ReleaseStatement.from_document(statement)
        assert reread.to_document() == statement


def test_a_stream_does_not_change_its_currency(released):
    released.configure('delta = "1e-6"\n', "")
    released.configure('name = "Gaussian"', 'name = "Laplace"')
    with pytest.raises(LedgerError, match="has releases, made under another delta, rho: "):
        released.release(DAYS[3])
    settings = load_settings(released.folder / "optstream.toml")
    for ask in (
        rehearse,
        lambda *given: declare(*given, "another currency", datetime(2016, 7, 1, tzinfo=UTC)),
    ):
        with pytest.raises(LedgerError, match=r"currency .* cannot be amended.* a whole window or more"):
            ask(settings, released.ledger)
