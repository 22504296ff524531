"""Ledger, catalogue and files against each other: a line for each difference, none where all is whole."""

import json
import shutil
from datetime import date

import pytest

from optstream.errors import LedgerError
from optstream.ledger import Ledger
from tasks.ledger import find_ledger, need_ledger
from tasks.ledger.verify import verify
from tests.failing import raising
from tests.faults.judge import forge

DAYS = [date(2016, 6, 1), date(2016, 6, 2)]


def catalogue(installation):
    return installation.folder / "published" / "catalogue.json"


def measurements(installation, day=DAYS[0]):
    return installation.settings.measurements_of(day, 0)


def test_a_whole_installation_has_no_problem_and_an_edit_of_the_ledger_is_found(released):
    found = verify(released.settings, released.ledger)
    assert (found.problems, found.notes, found.n_releases, found.n_listed) == ((), (), 2, 2)
    forge(released, "UPDATE events SET body = '{}' WHERE number = 2")
    edited = "was changed after it was written"
    assert any(line.startswith("ledger: ") and edited in line for line in released.problems())


def exchange(periods, document):
    one, other = periods["2016-06-01"], periods["2016-06-02"]
    for name in ("file_hash", "rows_hash"):
        one[name] = other[name]
    one["file"] = f"data/date=2016-06-01/release-{one['file_hash']}.parquet"
    one["manifest"] = other["manifest"]


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (
            lambda p, d: p.pop("2016-06-01"),
            "2016-06-01 revision 0 is PUBLISHED, and the published folder lists no",
        ),
        (
            lambda p, d: p["2016-06-01"].update(revision=1),
            "2016-06-01 revision 1 is listed in catalogue.json and",
        ),
        (exchange, "2016-06-01 revision 0 was recorded as release-"),
        (lambda p, d: d.update(ledger_head="f" * 64), "its ledger head ffffffffffff is not in the ledger"),
        (lambda p, d: p["2016-06-02"].update(ledger_head="e" * 64), "ledger head eeeeeeeeeeee is not in"),
        (lambda p, d: d.update(stream="another"), "belongs to stream 'another'; give each"),
        (lambda p, d: d.update(format="other"), "has a wrong 'format'"),
    ],
)
def test_a_catalogue_that_differs_is_found(released, change, rule):
    document = json.loads(catalogue(released).read_text())
    change(document["periods"], document)
    catalogue(released).write_text(json.dumps(document))
    found = released.problems()
    assert sum(rule in line for line in found) == 1, found
    assert all("\n" not in line for line in found)
    assert all(";" in line or ":" in line for line in found)


def test_lost_altered_and_doubled_measurements_are_found(released):
    (path,) = measurements(released).iterdir()
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    (line,) = released.problems()
    assert "2016-06-01 revision 0: " in line
    assert "differs from its hash in the ledger; restore the measurements" in line
    path.unlink()
    assert "is gone; restore the measurements" in released.problems()[0]
    path.write_bytes(data)
    (measurements(released) / f"2-{'a' * 32}").write_bytes(b"a second draw")
    (line,) = released.problems()
    assert "which has others; destroy it" in line
    (measurements(released) / f"2-{'a' * 32}").unlink()
    (measurements(released) / "1-abc.raw").touch()
    (measurements(released) / "2.intact").touch()
    (measurements(released) / "2.drawing").write_bytes(bytes(100))  # space held for what never began
    assert released.problems() == []
    (measurements(released) / "2.drawing").write_bytes(b"a second draw" + bytes(100))
    assert "which has others; destroy it" in released.problems()[0]
    (measurements(released) / "2.drawing").unlink()
    measurements(released).rename(measurements(released).with_name("2016-06-09-r0"))
    gone, stray = released.problems()
    assert "is gone" in gone
    assert "belongs to no release of the ledger" in stray


def test_an_older_copy_of_the_lineage_is_found(released):
    file = released.settings.lineage_folder / "events.jsonl"
    first, *_ = lines = file.read_text().splitlines(keepends=True)
    assert len(lines) == 2
    file.write_text(first + lines[1][:100])  # a full disk tore the second
    (line,) = released.problems()
    assert "does not know that 2016-06-02 revision 0 was published" in line
    file.write_text("")
    found = verify(released.settings, released.ledger)
    assert (found.problems, [note.partition(" ")[2] for note in found.notes]) == (
        (),
        ["has no event: it was not compared with what was published"],
    )
    # the newest is what counts: the oldest are purged first
    file.write_text(lines[1])
    assert released.problems() == []


def test_a_trusted_folder_that_is_an_older_copy_is_found_by_its_witness(either):
    """Also where nothing else tells: here only the witness is the older one."""
    file = either.folder / "trusted/witness/ledger-heads.json"
    either.released(DAYS[0])
    older = file.read_bytes()
    either.released(DAYS[1])
    assert either.problems() == []
    newest = file.read_bytes()
    file.write_bytes(older)
    (line,) = either.problems()
    assert f"{file.parent} knows" in line
    assert "it is an older copy" in line
    file.write_bytes(newest)
    either.withdraw(DAYS[0])  # what has no readers need not be known
    file.write_bytes(newest)
    assert either.problems() == []


def test_a_day_between_catalogue_and_ledger_is_reported_how_to_end(installation, monkeypatch):
    """Death after the catalogue was replaced, before PUBLISHED was recorded."""
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "record_published", raising(LedgerError("away")))
        installation.release(DAYS[0])
    (line,) = installation.problems()
    assert "is listed in catalogue.json, and DRAWN in the ledger; `optstream run --date 2016-06-01`" in line
    installation.later(hours=1)
    installation.release(DAYS[0])
    assert installation.problems() == []


def test_without_a_ledger_published_days_are_a_problem_and_none_is_made(released):
    file = released.folder / "trusted" / "ledger.sqlite"
    for path in file.parent.glob("ledger.sqlite*"):
        path.unlink()
    assert find_ledger(released.settings) is None
    with pytest.raises(LedgerError, match="there is no ledger where"):
        need_ledger(released.settings)
    (line,) = verify(released.settings, None).problems
    assert "has 2 days: what they cost is not known" in line
    shutil.rmtree(released.folder / "published")
    found = verify(released.settings, None)
    assert (found.problems, len(found.notes)) == ((), 2)
    assert not file.exists()
