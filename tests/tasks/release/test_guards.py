"""The looks before a draw: ledgers and folders from backups, witnesses, and steps by other time zone data."""

import fcntl
import shutil
import struct
import zoneinfo
from contextlib import contextmanager
from datetime import date, timedelta
from itertools import combinations, count
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from optstream.errors import LedgerError
from optstream.ledger import Key
from optstream.ledger.schema import metadata
from optstream.storage import folders as lock
from optstream.storage.store import KINDS
from optstream.stream import calendar
from tasks.ledger.verify import verify
from tasks.operate.declare import declare
from tasks.operate.doctor import examine
from tasks.release.run import Status
from tests.by_night import few
from tests.failing import NoiseMeanwhile
from tests.memory_store import Literal
from tests.tasks.two_regions import STEPS, Installation, assert_ended

FIRST, SECOND, THIRD, FOURTH = (date(2016, 6, day) for day in (1, 2, 3, 4))
TELLING = ("witness", "measurements", "staging", "lineage")
NUMBERS = count()


def back_up(installation, *stores):
    """Copy these stores; what is returned brings them back, in any order and as often as it is called."""
    copied = [
        back_up_ledger(installation) if one == "ledger" else back_up_folder(installation, one)
        for one in stores
    ]
    return lambda: [restore() for restore in copied]


def back_up_folder(installation, name):
    source, kept = installation.folder / name, installation.folder / f"moments/{next(NUMBERS)}/{name}"
    if source.exists():
        shutil.copytree(source, kept, ignore=shutil.ignore_patterns("ledger.sqlite*"))

    def restore():
        shutil.rmtree(source, ignore_errors=True)
        if kept.exists():
            shutil.copytree(kept, source)

    return restore


def back_up_ledger(installation):
    url = installation.settings.ledger_url
    if url.get_backend_name() == "sqlite":
        if not (installation.folder / "trusted/ledger.sqlite").exists():
            return lambda: [path.unlink() for path in installation.folder.glob("trusted/ledger.sqlite*")]
        copy = installation.copy_ledger()
        copy = copy.rename(copy.with_name(f"older-{len([*copy.parent.glob('older-*.sqlite')])}.sqlite"))
        return lambda: installation.bring_back(Path(shutil.copy(copy, copy.with_suffix(".again"))))
    installation.run().ledger.close()
    with connected(url) as connection:
        tables = metadata.sorted_tables
        rows = {one: [dict(row) for row in connection.execute(one.select()).mappings()] for one in tables}

    def restore():
        with connected(url) as connection:
            # as a restored dump is: no trigger and no foreign key is looked at
            connection.execute(text("SET session_replication_role = replica"))
            for table, known in rows.items():
                connection.execute(table.delete())
                if known:
                    connection.execute(table.insert(), known)

    return restore


@contextmanager
def connected(url):
    engine = create_engine(url.set(drivername="postgresql+psycopg"), poolclass=NullPool)
    with engine.begin() as connection:
        yield connection


def refused(installation, day=SECOND):
    """What a run says that must draw nothing."""
    noise = NoiseMeanwhile()
    outcome = installation.ends(day, Status.FAILED, noise=noise)
    assert noise.calls <= 1
    return outcome.message


def doctor_finds_an_older_copy(installation):
    return any("older copy" in one.rule for one in examine(installation.settings, {}, installation.now))


def with_second_witness(installation, place="second"):
    trusted = '[trusted]\nfolder = "trusted"'
    installation.configure(trusted, f'{trusted}\nwitness = "{place}"')


# Ledger and folders from backups: what others saw is never drawn a second time.


@pytest.mark.parametrize("telling", TELLING)
def test_ledger_and_published_folder_restored_together(either, telling):
    """Any one of what the trusted folder keeps is enough to notice it."""
    either.released(FIRST)
    restore = back_up(either, "ledger", "published")
    either.release(SECOND)
    restore()
    for other in set(TELLING) - {telling}:
        for path in (either.folder / "trusted" / other).rglob(f"*{SECOND}*"):
            shutil.rmtree(path, ignore_errors=True)
        if other in ("witness", "lineage"):
            shutil.rmtree(either.folder / "trusted" / other, ignore_errors=True)
    kept = either.files("trusted/measurements", "published")
    assert f"trusted/{telling}" in refused(either)
    assert either.files("trusted/measurements", "published") == kept
    assert either.record(SECOND) is None
    assert doctor_finds_an_older_copy(either)


def test_the_second_place_that_cannot_be_reached_stops_the_day_before_it_is_reserved(either):
    with_second_witness(either)
    (either.folder / "second").write_text("in the way")
    assert "the ledger head cannot be written to" in refused(either, FIRST)
    assert either.record(FIRST) is None


def test_a_ledger_restored_while_a_run_draws(either):
    either.released(FIRST)
    bring_older = back_up_ledger(either)

    def meanwhile():
        bring_newest = back_up_ledger(either)
        bring_older()
        return bring_newest

    noise, before = NoiseMeanwhile(meanwhile), either.files("published/data")
    assert either.status(SECOND, noise=noise) is Status.FAILED
    assert noise.calls > 1
    assert either.files("published/data") == before
    left = either.files("trusted/measurements/two-regions/2016-06-02-r0")
    assert {path.name: data for path, data in left.items()} == {"1.intact": b""}
    assert "older copy" in refused(either)
    noise.came()
    either.later(hours=1)
    assert either.status(SECOND) is Status.PUBLISHED
    assert either.record(SECOND).redraws == 1
    assert either.problems() == []


@pytest.mark.parametrize("declared", ["withdrawn", "compromised", "amended"])
def test_what_a_person_declared_is_not_forgotten(either, declared):
    """The copy lacks nothing but that: readers would have the day again, or its windows be drawn in."""
    either.released(FIRST)
    restore = back_up(either, "ledger", "published")
    if declared == "withdrawn":
        assert either.withdraw(FIRST).status is Status.WITHDRAWN
    elif declared == "amended":
        either.configure('alpha = "1"', 'alpha = "10"')
        declare(either.settings, either.ledger, "larger customers", either.now)
        either.configure('alpha = "10"', 'alpha = "1"')
    else:
        assert either.compromise(FIRST) == [FIRST]
    restore()
    head = either.ledger.head("two-regions")
    assert doctor_finds_an_older_copy(either)
    for day in (FIRST, SECOND):
        assert "older copy" in refused(either, day)
    assert_ended(*either.publish_again(FIRST), Status.FAILED, "older copy")
    for declare_again in (either.withdraw, either.compromise):
        with pytest.raises(LedgerError, match="older copy"):
            declare_again(FIRST)
    either.configure('alpha = "1"', 'alpha = "10"')
    with pytest.raises(LedgerError, match="older copy"):
        declare(either.settings, either.ledger, "larger customers", either.now)
    assert either.ledger.head("two-regions") == head


STORES = ("trusted", "ledger", "published")  # the ledger is in the trusted folder


class Moments:
    """Copies of ledger, trusted and published folder at each moment of one history, to be restored apart."""

    def __init__(self, installation):
        self.installation, self.copies = installation, []
        installation.configure('restatement_share = "0"', 'restatement_share = "1/4"')
        self.copy()
        installation.release(FIRST)
        self.copy()
        steps = (*STEPS[:6], self.between, STEPS[6], self.between, STEPS[7])
        published = {"steps": steps, "noise": NoiseMeanwhile(self.copy)}
        assert installation.status(SECOND, **published) is Status.PUBLISHED
        self.copy()
        installation.withdraw(FIRST)
        self.copy()
        installation.later(hours=1)
        restated = {"restate": True, "noise": NoiseMeanwhile(self.copy)}
        assert installation.status(SECOND, **restated) is Status.PUBLISHED
        self.copy()
        self.last = len(self.copies) - 1
        installation.later(hours=1)

    def between(self, _run, works):
        self.copy()
        return works

    def copy(self):
        self.copies.append({store: back_up(self.installation, store) for store in STORES})

    def names(self, part):
        """The files of measurements or of data that there were at any moment."""
        copies = self.installation.folder.glob(f"moments/*/{part}/**/*-*")
        return {path.name for path in copies if path.is_file()}

    def lay(self, stores, number):
        """Bring these stores back as they were then, and the others as they are at the end."""
        folder = self.installation.folder
        self.installation.ledger.close()
        shutil.rmtree(folder / "elsewhere", ignore_errors=True)
        for store in STORES:
            self.copies[number if store in stores else self.last][store]()
            (folder / "trusted").mkdir(mode=0o700, exist_ok=True)

    def run(self):
        """Whether anything was sampled, and whether the run or the check says that something is wrong."""
        noise = NoiseMeanwhile()
        try:
            statuses = self.installation.statuses(FIRST, SECOND, noise=noise)
        except LedgerError:
            return noise.calls > 2, True
        wrong = not statuses <= {Status.PUBLISHED, Status.UNCHANGED, Status.WITHDRAWN}
        return noise.calls > 2, wrong or self.installation.problems() != []

    def judge(self, stores, numbers):
        """No day that readers saw is drawn again or has other values, and a forgetful ledger is reported."""
        measurements, data = self.names("trusted/measurements"), self.names("published/data")
        for number in numbers:
            self.lay(stores, number)
            sampled, alerted = self.run()
            assert not sampled, (stores, number)
            assert alerted or "ledger" not in stores, (stores, number)
            left = self.installation.files("trusted/measurements")
            assert {path.name for path in left if "-" in path.name} <= measurements, (stores, number)
            shown = self.installation.files("published/data", "elsewhere/data")
            assert {path.name for path in shown} <= data, (stores, number)


TWO = [*combinations(STORES, 2)]
PARTS = [*combinations(STORES, 1), *TWO]


def test_no_restored_part_of_any_earlier_moment_has_a_day_that_readers_saw_drawn_again(either):
    """Then the configuration names a new place, and the ledger's own terms the old one, once it has any."""
    moments = Moments(either)
    assert moments.last == 8
    for stores in PARTS:
        moments.judge(stores, range(moments.last))
    # control: of a copy of all parts in the middle of a draw nothing is left that could tell
    moments.lay(STORES, 2)
    assert moments.run()[0]
    either.configure('folder = "published"\n', 'folder = "elsewhere"\n')
    for stores in TWO:  # which leave less that tells than one of them
        moments.judge(stores, range(1, moments.last))


@pytest.mark.parametrize("place", few(["memory://witness/of-{name}", "second"], 1))
def test_all_parts_of_any_earlier_moment_are_noticed_by_a_second_place_outside_of_the_backup(either, place):
    with_second_witness(either, place.format(name=either.folder.name))
    moments = Moments(either)
    moments.judge(STORES, range(moments.last))
    assert doctor_finds_an_older_copy(either)


def test_a_second_place_in_a_store_that_takes_tags_without_quotes(installation, monkeypatch):
    monkeypatch.setitem(KINDS, "memory", Literal)
    with_second_witness(installation, f"memory://witness/bare-{installation.folder.name}")
    installation.released(FIRST)
    assert installation.status(SECOND) is Status.PUBLISHED


def test_a_copied_trusted_folder_run_elsewhere_is_noticed_by_the_second_place(installation, tmp_path_factory):
    with_second_witness(installation, installation.folder / "second")
    installation.released(FIRST)
    installation.ledger.close()
    elsewhere = Installation(tmp_path_factory.mktemp("elsewhere") / "copy", installation.now)
    shutil.copytree(installation.folder, elsewhere.folder)
    assert installation.status(SECOND) is Status.PUBLISHED
    assert "bring" in refused(elsewhere).lower()
    assert elsewhere.record(SECOND) is None


def test_a_witness_that_is_behind_follows_and_one_that_is_broken_is_reported(either):
    either.released(FIRST)
    file = either.folder / "trusted/witness/ledger-heads.json"
    older = file.read_bytes()
    either.release(SECOND)
    newer = file.read_bytes()
    assert newer != older
    file.write_bytes(older)
    either.simulate(THIRD, FOURTH)
    assert either.status(THIRD) is Status.PUBLISHED
    assert file.read_bytes() not in (older, newer)
    file.write_bytes(b"{}")
    assert "not what OptStream wrote" in refused(either, FOURTH)


def other_stream(installation, folder, **names):
    """An installation of another stream: of its own population and ledger, or of this one's."""
    other = Installation(folder, installation.now)
    configuration = (installation.folder / "optstream.toml").read_text()
    for before, after in {"two-regions": "other", **names}.items():
        configuration = configuration.replace(before, after)
    (other.folder / "optstream.toml").write_text(configuration)
    return other


def test_two_populations_with_a_ledger_each_share_a_trusted_folder(installation, tmp_path_factory):
    other = other_stream(installation, tmp_path_factory.mktemp("other"), people="other-people")
    other.simulate(FIRST)
    other.configure('folder = "trusted"', f'folder = "{installation.folder / "trusted"}"')
    other.configure("trusted/ledger.sqlite", "ledger.sqlite")
    for one, day in ((installation, FIRST), (other, FIRST), (installation, SECOND)):
        assert one.status(day) is Status.PUBLISHED


# Days that have other steps by the present time zone data.

SUMMER_TIME, NONE = "CET-1CEST,M3.5.0,M10.5.0/3", "CET-1"
CHANGED = date(2016, 3, 28)  # the day after the clock changes by the older data; by the newer it does not
BEFORE, AFTER, LATER = (CHANGED + timedelta(days=number) for number in (-2, 1, 5))


@pytest.fixture
def zone(tmp_path_factory, installation):
    """Put the stream into a new zone, and replace that zone's rule: zone(rule)."""
    folder = tmp_path_factory.mktemp("zones")
    name = f"Test/{folder.name}"
    (folder / "Test").mkdir()
    installation.configure("Europe/Paris", name)

    def forget():
        zoneinfo.ZoneInfo.clear_cache()
        calendar._midnight.cache_clear()
        calendar._hours.cache_clear()

    def change(rule):
        one = struct.pack(">4sc15x6l", b"TZif", b"2", 0, 0, 0, 0, 1, 4) + struct.pack(">lbb", 3600, 0, 0)
        (folder / name).write_bytes(2 * (one + b"CET\0") + f"\n{rule}\n".encode())
        zoneinfo.reset_tzpath([str(folder)])
        forget()

    yield change
    zoneinfo.reset_tzpath()
    forget()


def all_published(installation, *days):
    installation.simulate(*days)
    return installation.statuses(*days) == {Status.PUBLISHED}


def test_a_day_is_refused_if_its_neighbour_has_other_steps_now(installation, zone):
    zone(SUMMER_TIME)
    assert all_published(installation, CHANGED)
    zone(NONE)
    installation.simulate(AFTER)
    before = installation.files("published", "trusted/measurements")
    message = refused(installation, AFTER)
    assert f"has {CHANGED} of stream 'two-regions' at steps" in message
    assert "time zone data of Test/" in message
    assert installation.ledger.find(Key("two-regions", AFTER.isoformat())) is None
    assert installation.files("published", "trusted/measurements") == before
    assert all_published(installation, LATER, LATER + timedelta(days=1))
    assert installation.problems() == []


def test_values_are_not_moved_to_other_times_by_newer_time_zone_data(installation, zone):
    zone(SUMMER_TIME)
    installation.cut_short(FIRST)
    zone(NONE)
    words = '["2016-05-31 22:00:00+00:00", "2016-06-01 21:30:00+00:00"], which'
    assert words in installation.outcome(FIRST).message
    zone(SUMMER_TIME)
    assert installation.status(FIRST) is Status.PUBLISHED


def test_verify_names_days_of_two_streams_that_share_a_window(installation, zone, tmp_path_factory):
    zone(SUMMER_TIME)
    ledger = {"sqlite:///trusted/ledger.sqlite": str(installation.settings.ledger_url)}
    other = other_stream(installation, tmp_path_factory.mktemp("other"), **ledger)
    assert all_published(installation, BEFORE)
    assert all_published(other, CHANGED)
    zone(NONE)
    for one in (installation, other):
        (alerted,) = verify(one.settings, one.ledger).problems
        assert f"and {CHANGED} of stream 'other' at" in alerted


def test_an_older_ledger_is_refused_where_another_stream_of_the_population_has_published_since(installation):
    """It holds the newest head of this stream's folder, and not what the other has spent."""
    text = (installation.folder / "optstream.toml").read_text()
    own, other = text, text.replace('"two-regions"', '"twins"').replace('"published"', '"elsewhere"')

    def release_as(configuration, day):
        (installation.folder / "optstream.toml").write_text(configuration)
        return installation.outcome(day)

    assert release_as(own, FIRST).status is Status.PUBLISHED
    (installation.folder / "optstream.toml").write_text(other)
    installation.run()
    copy = installation.copy_ledger()
    installation.simulate(FIRST, FOURTH)
    assert release_as(other, FOURTH).status is Status.PUBLISHED
    assert release_as(own, FOURTH).status is Status.REFUSED  # the population's window is full
    installation.bring_back(copy)
    assert_ended(release_as(own, FOURTH), Status.FAILED, "restored from an older copy")


def test_a_lock_that_another_holds_is_waited_for_and_named(installation, monkeypatch):
    assert installation.status(FIRST) is Status.PUBLISHED
    monkeypatch.setattr(lock, "LONGEST_WAIT", 0.2)
    file = installation.folder / "trusted/witness/.lock"
    with file.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        said = refused(installation)
    assert str(file) in said
    assert "held" in said
    assert installation.record(SECOND) is None
    assert installation.status(SECOND) is Status.PUBLISHED
