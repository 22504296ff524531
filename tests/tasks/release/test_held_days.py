"""Days that wait for their hour are held, and nothing that readers see shows a moment of a run."""

from datetime import UTC, date, datetime, timedelta

import pytest

from optstream.ledger import ReleaseState
from tasks.release.run import Status, let_go
from tests.tasks.two_regions import STEPS

DAY = date(2016, 6, 1)
HOUR = datetime(2016, 6, 2, 4, tzinfo=UTC)  # 06:00 in Paris


@pytest.fixture
def held(installation):
    installation.configure('folder = "published"\n', 'folder = "published"\nnot_before = "06:00"\n')
    installation.now = HOUR - timedelta(minutes=10)
    return installation


def run(installation, *days, **changes):
    """As the flow does: the steps, then the leases."""
    works = installation.release(*days, **changes)
    let_go(installation.run(), works.values())
    return works


def test_a_run_before_the_hour_draws_and_holds_and_the_next_one_publishes_those_bytes(held):
    outcome = run(held, DAY)[DAY]
    assert (outcome.status, outcome.status.is_good) == (Status.HELD, True)
    assert "held until 2016-06-02 06:00 (Europe/Paris)" in outcome.message
    assert not (held.folder / "published").exists()
    assert held.record(DAY).state is ReleaseState.DRAWN
    staged = (held.settings.staging_of(DAY, 0) / held.record(DAY).staged_hash[:32]).read_bytes()
    held.now = HOUR - timedelta(microseconds=1)
    assert run(held, DAY)[DAY].status is Status.HELD
    # the lease of a held day is over: the run at the hour need not wait for it
    held.now = HOUR
    works = run(held, DAY, noise=None)
    assert works[DAY].status is Status.PUBLISHED
    assert (held.folder / "published" / works[DAY].file).read_bytes() == staged


def test_a_run_that_holds_its_day_changes_no_inode_that_readers_see(held):
    """The time of such a change would show when the draw was over."""
    published = held.folder / "published"

    def night(day):
        run(held, day)
        assert held.write_pages() == ()
        return {
            path.relative_to(published): (path.stat().st_ino, path.stat().st_ctime_ns)
            for path in [published, *published.rglob("*")]
        }

    held.simulate(DAY - timedelta(days=1))
    before = night(DAY - timedelta(days=1))
    assert night(DAY) == before
    held.now = HOUR
    assert night(DAY).keys() > before.keys()


def test_no_published_byte_names_a_moment_of_the_run(installation):
    installation.now = datetime(2031, 8, 9, 10, 11, 12, 131415, tzinfo=UTC)
    installation.release(DAY, steps=STEPS)
    for path, data in installation.files("published").items():
        for moment in (b"2031-08-09", b"10:11:12", f"{installation.now.timestamp():.0f}".encode()):
            assert moment not in data, path
            assert moment not in str(path).encode()
