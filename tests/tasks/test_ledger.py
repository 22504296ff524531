"""The ledger as operators meet it: shown by windows and days, exported whole, verified with all files."""

import json
import shutil
from datetime import date, datetime, timedelta
from fractions import Fraction
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from optstream.errors import LedgerError
from optstream.ledger import Key, Ledger, ReleaseState, StreamTerms
from optstream.mechanisms import blocks
from optstream.mechanisms.blocks import choose_tree_blocks
from optstream.privacy import PrivacyModel, StepSpend, worst_window
from optstream.privacy.spends import spend_from_document
from tasks.ledger.export import COLUMNS, export
from tasks.ledger.show import read_book, refused_changes
from tasks.ledger.verify import verify
from tasks.release.mechanism import mechanism_for, plan_of, planner_for, recall
from tasks.release.run import terms_of
from tests.failing import raising
from tests.faults.judge import forge
from tests.tasks.two_regions import two_products

PARIS = ZoneInfo("Europe/Paris")
DAYS = DAY, NEXT = [date(2016, 6, 1), date(2016, 6, 2)]
LATER = timedelta(minutes=10)


@pytest.fixture
def charged(installation):
    """Two days, charged half an epsilon a step in their last two hours."""
    run = installation.run()
    for day in DAYS:
        first = installation.settings.calendar.first_step(day)
        weights = (0,) * 44 + (Fraction(1, 8),) * 4
        plan = (StepSpend(0, "samples", first, weights, Fraction(1000), 1000),)
        held = run.ledger.reserve(Key(run.stream, day.isoformat()), plan, "owner", installation.now, LATER)
        run.ledger.begin_draw(held, installation.now)
        run.ledger.record_drawn(held, "0" * 64, plan, installation.now)
    return installation


def at(day, hour, minute=0):
    return datetime(2016, 6, day, hour, minute, tzinfo=PARIS)


@pytest.mark.parametrize("keys", ["scale = 100.0", "scale = 100.0\nn_blocks = 3", ""])
def test_whether_a_day_is_refused_is_judged_by_the_plan_of_its_run(installation, keys, monkeypatch):
    """Blocks are chosen once for a configuration, and the same whether they are read or chosen."""
    installation.change_mechanism("HistoryInformed", keys)
    settings, ledger, day = installation.settings, installation.ledger, DAY

    def plan(mechanism):
        return plan_of(settings, mechanism, day, state=recall(settings, ledger, mechanism, day, 0).state)

    wanted = plan(mechanism_for(settings, day))
    assert plan(planner_for(settings, day)) == wanted
    monkeypatch.setattr(blocks, "expected_error_of", pytest.fail)
    choose_tree_blocks.cache_clear()
    assert plan(planner_for(settings, day)) == wanted
    monkeypatch.undo()
    for damage in (b"", b"[]", b"\xff"):
        settings.blocks_file.write_bytes(damage)
        assert plan(planner_for(settings, day)) == wanted
    installation.configure('epsilon = "1"', 'epsilon = "1/1000"')
    settings = installation.settings
    assert plan(planner_for(settings, day)) == plan(mechanism_for(settings, day))


def test_windows_and_days_tell_what_they_have_left_and_whether_they_may_be_released(charged):
    (page,) = read_book(charged.settings, charged.ledger)
    listed = [(one.begin_first, one.begin_last, one.left) for one in page.windows]
    quarters = [Fraction(n, 8) for n in range(9)]
    # every window that ends on the last day sees the charged hours of one of the days
    assert listed[0] == (at(1, 0), at(2, 22), quarters[4])
    assert listed[1:] == [
        (at(2, 22, 30), at(2, 22, 30), quarters[5]),
        (at(2, 23), at(2, 23), quarters[6]),
        (at(2, 23, 30), at(2, 23, 30), quarters[7]),
    ]
    assert page.free_from_time == at(3, 0)
    ends = (range(page.free_from + step, page.free_from + step + 1) for step in (46, 47))
    last, free = (charged.ledger.window_spent("people", window).epsilon for window in ends)
    assert (last > 0, free) == (True, 0)
    days = {one.day: one for one in page.days}
    assert min(days) == DAY  # a fortnight, if there is so much of it
    assert max(days) == date(2016, 6, 4)  # the first that no charged window meets
    assert days[date(2016, 6, 3)].left == Fraction(1, 2)
    assert days[date(2016, 6, 4)].left == 1
    # the plan of a day costs up to 1 in any window, its own samples included
    assert [days[one].may for one in sorted(days)] == [None, None, False, True]
    assert "some window would lose" in days[date(2016, 6, 3)].because
    (stream,) = page.streams
    assert [(one.period, one.state, one.epsilon) for one in stream.releases] == [
        (day.isoformat(), ReleaseState.DRAWN, Fraction(1, 2)) for day in DAYS
    ]
    assert stream.counts == {ReleaseState.DRAWN: 2}


def test_streams_of_one_grant_share_a_page_and_others_have_their_own(charged):
    ledger, terms = charged.ledger, terms_of(charged.settings)
    ledger.enrol(StreamTerms(**{**terms.__dict__, "stream": "second"}), charged.now)
    model = PrivacyModel(epsilon="2", window_length=4, alpha="1")
    ledger.enrol(StreamTerms("third", "others", model, "tree", "words of another"), charged.now)
    plan = (StepSpend(0, "samples", 8, (1,) * 6, Fraction(4), 1),)
    ledger.reserve(Key("third", "one"), plan, "owner", charged.now, LATER)
    pages = {page.name: page for page in read_book(charged.settings, ledger)}
    assert [one.terms.stream for one in pages["people"].streams] == ["second", "two-regions"]
    other = pages["others"]
    assert other.calendar is None
    assert other.days == ()
    left = [(one.first_step, one.left) for one in other.windows]
    assert left == [(5, 7 / 4), (6, 3 / 2), (7, 5 / 4), (8, 1), (11, 5 / 4), (12, 3 / 2), (13, 7 / 4)]
    assert {one.begin_first for one in other.windows} == {None}
    assert other.free_from == 14


def test_a_stream_without_releases_that_shares_its_budget_is_refused_for_what_others_rely_on(installation):
    installation.run()
    installation.configure('name = "two-regions"', 'name = "others"')
    installation.configure('epsilon = "1"', 'epsilon = "2"')
    assert refused_changes(installation.settings, installation.ledger) == ["epsilon"]
    with pytest.raises(LedgerError):
        installation.run()
    installation.configure('epsilon = "2"', 'epsilon = "1"')
    installation.run()
    change = '[[hierarchy.changes]]\nvalid_from = 2016-06-02\nrenamed = { 84 = "85" }\n[budget]'
    installation.configure("[budget]", change)
    known = installation.ledger.terms(installation.settings.stream.name)
    assert known.differing(terms_of(installation.settings)) == ["hierarchy_hash"]
    assert refused_changes(installation.settings, installation.ledger) == []
    installation.run()


@pytest.mark.slow
def test_the_streams_parts_add_up_to_what_the_window_lost(tmp_path):
    both = two_products(tmp_path)
    for name, days in (("electricity", DAYS), ("gas", DAYS[:1])):
        both[name].simulate(*days)
        both[name].release(*days)
    (page,) = read_book(both["gas"].settings, both["gas"].ledger)
    shared = page.shared
    assert [one.stream for one in shared.streams] == ["electricity", "gas"]
    total = both["gas"].ledger.worst("people").epsilon
    assert sum(one.charged for one in shared.streams) == shared.charged == total
    assert all(Fraction(49, 100) < one.charged <= Fraction(1, 2) for one in shared.streams)
    assert page.shared_words.startswith("electricity 0.5, gas 0.")
    assert "together epsilon 0.99" in page.shared_words or "together epsilon 1 of 1" in page.shared_words


# Exported: every row, exact, private and never over anything.


def test_every_table_has_its_columns_and_rows_priced_exactly_for_the_owner_alone(released):
    done = export(released.settings, released.ledger, released.folder / "deep" / "out")
    found = {name: pl.read_parquet(done.folder / f"{name}.parquet") for name in COLUMNS}
    assert [frame.columns for frame in found.values()] == [list(columns) for columns in COLUMNS.values()]
    assert {name: frame.height for name, frame in found.items()} == done.n_rows
    assert found["releases"]["state"].to_list() == ["PUBLISHED"] * 2
    assert found["events"]["hash"][-1] == found["streams"]["head"][0] == released.ledger.head("two-regions")
    rows = found["spends"].filter(pl.col("in_force")).to_dicts()
    for day in DAYS:
        own = [row for row in rows if row["period"] == day.isoformat()]
        spends = released.record(day).spends
        assert [spend_from_document(json.loads(row["document"])) for row in own] == list(spends)
        for row, spend in zip(own, spends, strict=True):
            epsilon = worst_window([spend], 48).epsilon
            assert Fraction(row["epsilon"]) == epsilon
            assert row["epsilon_float"] == float(epsilon)
            assert (row["level"], row["stage"]) == (spend.level, spend.stage)
    assert done.folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in done.folder.iterdir()} == {0o600}
    assert "sqlite" not in " ".join(str(frame.to_dicts()) for frame in found.values())


def test_it_never_overwrites_and_never_goes_public(released):
    taken = released.folder / "taken"
    taken.mkdir()
    (released.folder / "link").symlink_to(released.folder / "published")
    for target, rule in (
        (taken, "exists already"),
        (released.folder / "optstream.toml", "exists already"),
        (released.folder / "published" / "out", "public zone"),
        (released.folder / "published" / "a" / ".." / "out", "public zone"),
        (released.folder / "link" / "out", "public zone"),
        (released.folder / "published", "public zone"),
    ):
        with pytest.raises(LedgerError, match=rule):
            export(released.settings, released.ledger, target)
    assert list(taken.iterdir()) == []
    assert not list((released.folder / "published").rglob("*out*"))


# Verified: a line for each difference, none where all is whole.


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
        (lambda p, d: p.pop("2016-06-01"), "01 revision 0 is PUBLISHED, and the published folder lists no"),
        (lambda p, d: p["2016-06-01"].update(revision=1), "01 revision 1 is listed in catalogue.json and"),
        (exchange, "2016-06-01 revision 0 was recorded as release-"),
        (lambda p, d: d.update(ledger_head="f" * 64), "its ledger head ffffffffffff is not in the ledger"),
        (lambda p, d: p["2016-06-02"].update(ledger_head="e" * 64), "ledger head eeeeeeeeeeee is not in"),
        (lambda p, d: d.update(stream="another"), "belongs to stream 'another'; give each"),
        (lambda p, d: d.update(format="other"), "has a wrong 'format'"),
    ],
)
def test_a_catalogue_that_differs_is_found(released, change, rule):
    file = released.folder / "published/catalogue.json"
    document = json.loads(file.read_text())
    change(document["periods"], document)
    file.write_text(json.dumps(document))
    found = released.problems()
    assert sum(rule in line for line in found) == 1, found
    assert all("\n" not in line for line in found)
    assert all(";" in line or ":" in line for line in found)


def test_lost_altered_and_doubled_measurements_are_found(released):
    folder = released.settings.measurements_of(DAY, 0)
    (path,) = folder.iterdir()
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    (line,) = released.problems()
    assert "2016-06-01 revision 0: " in line
    assert "differs from its hash in the ledger; restore the measurements" in line
    path.unlink()
    assert "is gone; restore the measurements" in released.problems()[0]
    path.write_bytes(data)
    (folder / f"2-{'a' * 32}").write_bytes(b"a second draw")
    (line,) = released.problems()
    assert "which has others; destroy it" in line
    (folder / f"2-{'a' * 32}").unlink()
    (folder / "1-abc.raw").touch()
    (folder / "2.intact").touch()
    (folder / "2.drawing").write_bytes(bytes(100))  # space held for what never began
    assert released.problems() == []
    (folder / "2.drawing").write_bytes(b"a second draw" + bytes(100))
    assert "which has others; destroy it" in released.problems()[0]
    (folder / "2.drawing").unlink()
    folder.rename(folder.with_name("2016-06-09-r0"))
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
    (note,) = found.notes
    assert (found.problems, "has no event: it was not compared" in note) == ((), True)
    # the newest is what counts: the oldest are purged first
    file.write_text(lines[1])
    assert released.problems() == []


def test_a_trusted_folder_that_is_an_older_copy_is_found_by_its_witness(either):
    """Also where nothing else tells: here only the witness is the older one."""
    file = either.folder / "trusted/witness/ledger-heads.json"
    either.released(DAY)
    older = file.read_bytes()
    either.released(NEXT)
    assert either.problems() == []
    newest = file.read_bytes()
    file.write_bytes(older)
    (line,) = either.problems()
    assert f"{file.parent} knows" in line
    assert "it is an older copy" in line
    file.write_bytes(newest)
    either.withdraw(DAY)  # what has no readers need not be known
    file.write_bytes(newest)
    assert either.problems() == []


def test_a_day_between_catalogue_and_ledger_is_reported_how_to_end(installation, monkeypatch):
    """Death after the catalogue was replaced, before PUBLISHED was recorded."""
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "record_published", raising(LedgerError("away")))
        installation.release(DAY)
    (line,) = installation.problems()
    assert "is listed in catalogue.json, and DRAWN in the ledger; `optstream run --date 2016-06-01`" in line
    installation.later(hours=1)
    installation.release(DAY)
    assert installation.problems() == []


def test_without_a_ledger_published_days_are_a_problem_and_none_is_made(released):
    file = released.folder / "trusted" / "ledger.sqlite"
    for path in file.parent.glob("ledger.sqlite*"):
        path.unlink()
    (line,) = verify(released.settings, None).problems
    assert "has 2 days: what they cost is not known" in line
    shutil.rmtree(released.folder / "published")
    found = verify(released.settings, None)
    assert (found.problems, len(found.notes)) == ((), 2)
    assert not file.exists()
