"""The ledger that is written in bulk is one that the library might have written."""

from optstream.ledger import ReleaseState, open_ledger
from studies.benchmarks.inputs.ledger_history import LEASE, START, STEPS, History, plan_of
from studies.benchmarks.ledger_growth import measure


def test_a_history_written_in_bulk_is_whole_and_full(tmp_path):
    history = History(streams=2, days=3, revisions=2)
    ledger = history.write(tmp_path / "bulk.sqlite")
    assert ledger.verify() == []
    for stream in range(2):
        records = ledger.releases(f"stream {stream}")
        assert [record.state for record in records] == [ReleaseState.PUBLISHED] * 6
        assert ledger.worst(f"population {stream}").epsilon == 2
    seconds = measure(history, ledger)
    assert len(seconds["publish"]) == 6
    assert ledger.verify() == []


def test_it_is_row_by_row_what_the_library_writes(tmp_path):
    """But for names, hashes and times, which the library's caller chooses."""
    bulk = History(streams=1, days=1, revisions=1).write(tmp_path / "bulk.sqlite")
    (written,) = bulk.releases("stream 0")
    ledger = open_ledger(f"sqlite:///{tmp_path}/by-hand.sqlite")
    ledger.enrol(History(1, 1, 1).terms(0), START)
    key = ("stream 0", written.period, 0)
    held = ledger.reserve(*key, plan_of(0), written.owner, START, LEASE)
    ledger.begin_draw(held, START)
    ledger.record_drawn(held, written.measurements_hash, plan_of(0), START)
    ledger.record_staged(*key, written.staged_hash, written.published_name, START, held)
    ledger.record_published(*key, START, held)
    assert ledger.releases("stream 0") == (written,)
    assert (written.first_step, written.n_steps) == (0, STEPS)
    assert ledger.head("stream 0") == bulk.head("stream 0")
