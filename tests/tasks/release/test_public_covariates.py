"""A night that knows a public covariate says so, and its bytes are those of the values that it knew."""

from datetime import UTC, date, datetime, timedelta

import pytest

from optstream.ledger import ReleaseState
from tasks.release import draw
from tasks.release.run import Status
from tests.failing import raising
from tests.tasks.monitor.conftest import Watched
from tests.tasks.trusted.test_public_series import INFORMED, hashed

pytestmark = pytest.mark.slow

DAY, NEXT, LAST = (date(2016, 6, day) for day in (1, 2, 3))
FILE = "warmth.csv"


def deliver_a_link(installation):
    """To a dump, in the place of the covariate's file."""
    (dump, *_) = (installation.folder / "dumps").rglob("*.parquet")
    (installation.folder / FILE).unlink()
    (installation.folder / FILE).symlink_to(dump)


def two_nights(installation, first, second):
    installation.release(first)
    deliver_a_link(installation)
    installation.release(second)


@pytest.fixture
def nights(tmp_path):
    """Two nights, the second with a covariate that it must not read."""
    days = [DAY - timedelta(days=ago) for ago in range(30, -1, -1)]
    rows = "".join(f"{day},{10 + day.day % 7}\n" for day in days)
    (tmp_path / FILE).write_text(f"date,value\n{rows}")
    (tmp_path / "optstream.toml").write_text(INFORMED + hashed(tmp_path))
    installation = Watched(tmp_path, datetime(2016, 7, 1, tzinfo=UTC))
    installation.simulate(DAY, NEXT)
    installation.once(two_nights, DAY, NEXT)
    deliver_a_link(installation)  # which was not copied as one
    return installation


def test_a_night_says_what_it_used_and_the_watch_what_it_lacked(nights):
    (known,), (lacking,) = (nights.statement(day)["mechanism"]["covariates"] for day in (DAY, NEXT))
    assert (known["name"], known["source"]) == ("warmth", "the weather service")
    assert len(known["values_sha256"]) == 64
    assert lacking["values_sha256"] == "none"
    (missing,) = nights.of_kind("covariate-missing")
    assert missing.day == NEXT
    assert "covariate warmth: warmth.csv leads into input.folder, which is private" in missing.words


def test_a_night_that_ends_over_a_covariate_has_drawn_nothing(nights, monkeypatch):
    """And the next try draws once, and is charged once."""
    nights.simulate(LAST)
    with monkeypatch.context() as patched:
        patched.setattr(draw, "read_covariates", raising(MemoryError))
        ended = nights.outcome(LAST)
    record = nights.record(LAST)
    assert ended.status is not Status.PUBLISHED
    assert (record.state, record.drawing, record.redraws) == (ReleaseState.RESERVED, False, 0)
    nights.later(days=1)
    assert nights.status(LAST) is Status.PUBLISHED
    again = nights.record(LAST)
    assert (again.redraws, again.spends) == (0, record.spends)


def test_a_lost_file_comes_back_from_the_values_that_its_night_knew(nights, monkeypatch):
    monkeypatch.setattr(draw, "read_covariates", None)
    assert nights.comes_back(DAY)
