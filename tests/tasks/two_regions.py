"""Small streams of two regions with simulated dumps, and the steps of the flow without an orchestrator."""

import json
import os
import re
import shutil
import sqlite3
import tempfile
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path

import polars as pl

from optstream.catalogue import read_catalogue, read_published
from optstream.errors import PublicationError
from optstream.ledger import Key, open_ledger
from optstream.mechanisms import mechanism_named
from optstream.noise import secure_noise
from optstream.stream import Measured
from tasks.config import Settings, load_settings
from tasks.ledger import find_ledger
from tasks.ledger.verify import verify
from tasks.monitor.view import watch
from tasks.operate.declare import compromise
from tasks.operate.simulate import simulate
from tasks.operate.withdraw import withdraw
from tasks.pages.public import write_pages
from tasks.release import pipeline as chunk
from tasks.release.lineage import EVENTS
from tasks.release.publish import publish_again
from tasks.release.revise import due
from tasks.release.run import Requested, Run, Status, each, enrol
from tasks.trusted.files import read_verified
from tasks.trusted.verdicts import RAW, newest_results
from tests.failing import no_noise

CONFIGURATION = """
[stream]
name = "two-regions"
step = "30min"
time_zone = "Europe/Paris"
[mechanism]
name = "OptStream"
[privacy]
epsilon = "1"
window = 48
population = "people"
alpha = "1"
bounds = ["0", "20000"]
[hierarchy.parents]
FR = ""
84 = "FR"
11 = "FR"
[budget]
levels = ["1/2", "1/2"]
restatement_share = "0"
[sampling]
method = "equally_spaced"
n_samples = 10
[input]
folder = "dumps"
schema = "aggregated"
value = "load_mw"
[published]
folder = "published"
value = "load_mw"
[trusted]
folder = "trusted"
[ledger]
url = "sqlite:///trusted/ledger.sqlite"
"""

WATCH = """
[watch]
first_day = 2016-06-01
late_after = "06:00"
max_runtime = "1h"
"""

FEW_BLOCKS = "scale = 100.0"
"""Keys of HistoryInformed: what an estimate costs grows with the number of blocks."""


def estimate_and_stage(run, days):
    return chunk.stage_releases(run, chunk.estimate_releases(run, days))


READING = (chunk.look_up_days, chunk.discover_dumps, chunk.ingest_dumps, chunk.validate_days)
RELEASING = (chunk.reserve_budget, chunk.draw_measurements, estimate_and_stage, chunk.publish_releases)
STEPS = READING + RELEASING  # the steps of a first release, in order
RESERVED, DRAWN, STAGED = STEPS[:5], STEPS[:6], STEPS[:7]  # the steps up to a state of the ledger

KEPT: dict[tuple, tempfile.TemporaryDirectory] = {}
"""What `Installation.once` made in this process, by what there was before."""

SETTINGS: dict[tuple, Settings] = {}
"""What was loaded of a configuration that names no other file and leaves nothing to the model."""

DUMPS: dict[tuple, dict[Path, bytes]] = {}
"""Files of the first dumps of a folder, by its configuration and the days."""


@dataclass
class Installation:
    """A configured folder, its clock, and the steps of the flow."""

    folder: Path
    now: datetime = datetime(2016, 7, 1, tzinfo=UTC)

    @property
    def settings(self):
        file = self.folder / "optstream.toml"
        key = (file, text := file.read_text(), os.environ.get("OPTSTREAM_LEDGER_URL"))
        if "file" in text or '"model"' in text:
            return load_settings(file)
        if key not in SETTINGS:
            SETTINGS[key] = load_settings(file)
        return SETTINGS[key]

    @property
    def ledger(self):
        return open_ledger(self.settings.ledger_url)

    @property
    def spent(self):
        """What the worst window of the privacy budget was charged."""
        return self.ledger.worst("people").epsilon

    def simulate(self, *days):
        """Lay out dumps of made-up load; the first of a folder are those of others of its configuration."""
        settings, first = self.settings, not (self.folder / "dumps").exists()
        key = ((self.folder / "optstream.toml").read_text(), days)
        if first and key in DUMPS:
            for path, data in DUMPS[key].items():
                (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
                (self.folder / path).write_bytes(data)
            return
        # the same readings, whatever a configuration takes them for
        load = settings.privacy.model_copy(update={"counts": False})
        simulate(settings.model_copy(update={"privacy": load}), sorted(days), seed=1)
        if first and "file" not in key[0] and settings.input_folder == self.folder / "dumps":
            DUMPS[key] = self.files("dumps")

    def run(self, **changes):
        run = Run(self.settings, self.ledger, secure_noise(), f"owner {self.now}", lambda: self.now)
        enrol(run)
        return replace(run, **changes)

    def release(self, *days, steps=STEPS, **changes):
        run, works = self.run(**changes), [Requested(day) for day in days]
        done = chunk.groups(run, works)
        for number in range(len(done)):
            for step in steps:
                done[number] = step(run, done[number])
        return {work.day: work for group in done for work in group}

    def outcome(self, day, **changes):
        return self.release(day, **changes)[day]

    def ends(self, day, status, *words, **changes):
        return assert_ended(self.outcome(day, **changes), status, *words)

    def status(self, day, **changes):
        return self.outcome(day, **changes).status

    def statuses(self, *days, **changes):
        return {work.status for work in self.release(*days, **changes).values()}

    def cut_short(self, *days, steps=DRAWN, **changes):
        """A run dies after these steps, and its lease ends."""
        self.release(*days, steps=steps, **changes)
        self.later(hours=1)

    def through(self, steps, *days, **changes):
        """One run that takes all of these days through these steps: the run, and what became of the days."""
        run, works = self.run(**changes), [Requested(day) for day in days]
        for step in steps:
            works = step(run, works)
        return run, works

    def withdraw(self, day):
        return withdraw(self.run(), Requested(day), "a wrong meter", days=[day])

    def take_back(self, *days):
        """Withdraw these days as the command does, which no refused day stops: their outcomes."""
        step = partial(withdraw, self.run(), reason="a wrong meter", days=days)
        return list(each(map(Requested, days), Requested, step))

    def publish_again(self, *days, **changes):
        step = partial(publish_again, self.run(**changes), days=days)
        return list(each(map(Requested, days), Requested, step))

    def comes_back(self, day):
        """Whether a day's lost file is made again from its measurements, byte for byte."""
        file = self.folder / "published" / self.entry(day).file
        before = file.read_bytes()
        for path in (file, *(self.folder / "trusted/staging").rglob("*")):
            if path.is_file():
                path.unlink()
        return self.publish_again(day)[0].status is Status.PUBLISHED and file.read_bytes() == before

    def compromise(self, day, reason="a stolen disk"):
        return compromise(self.settings, self.ledger, day, reason, self.now)

    def once(self, build, *days):
        """Leave the folder as `build(self, *days)` does; equal folders get copies of one result."""
        if self.settings.ledger_url.get_backend_name() != "sqlite" or (self.folder / "trusted").exists():
            return build(self, *days)
        paths = sorted(self.folder.rglob("*"))
        modes = [(path.relative_to(self.folder), path.stat().st_mode) for path in paths]
        before = sha256(repr([sorted(self.files(".").items()), modes]).encode()).hexdigest()
        key = (build, days, self.now, before)
        if key not in KEPT:
            place = tempfile.TemporaryDirectory(prefix="optstream-kept-")
            made = replace(self, folder=Path(place.name))
            shutil.copytree(self.folder, made.folder, dirs_exist_ok=True)
            build(made, *days)
            copy = made.copy_ledger()  # whole: what its log holds is in it
            shutil.copymode(made.folder / "trusted/ledger.sqlite", copy)
            made.bring_back(copy)
            KEPT[key] = place
        # the ledger knows the published folder that it was made with, which therefore nobody may change
        shutil.copytree(KEPT[key].name, self.folder, dirs_exist_ok=True)
        self.run()  # and notes where it lies now

    def released(self, *days):
        """Have these days published, as `release` does it; see `once`."""
        self.once(Installation.release, *days)

    def write_pages(self):
        """What a night does at its end, the ledger closed again: the days that are lost, or why not."""
        with closing(self.ledger) as ledger:
            try:
                facts = write_pages(self.settings, ledger, self.now)
            except PublicationError as error:
                return str(error)
        return () if facts is None else tuple(facts.lost)

    def later(self, **time):
        self.now += timedelta(**time)

    def configure(self, before, after):
        path = self.folder / "optstream.toml"
        text = path.read_text()
        assert before in text
        path.write_text(text.replace(before, after))

    def change_mechanism(self, mechanism, keys=""):
        """Go on with this mechanism; see `released_by`."""
        if mechanism == "OptStream":  # which every installation has at first
            return
        path = self.folder / "optstream.toml"
        path.write_text(released_by(mechanism, path.read_text(), keys))

    def by(self, mechanism):
        """This stream with dumps of all days, to be released by another mechanism."""
        self.change_mechanism(mechanism)
        self.simulate(*DAYS)
        return self

    def copy_ledger(self):
        copy, ledger = self.folder / "older.sqlite", self.folder / "trusted/ledger.sqlite"
        with closing(sqlite3.connect(ledger)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        return copy

    def bring_back(self, copy):
        """Put another ledger into the place of the ledger and its log."""
        for suffix in ("-wal", "-shm"):
            (self.folder / f"trusted/ledger.sqlite{suffix}").unlink(missing_ok=True)
        copy.rename(self.folder / "trusted/ledger.sqlite")

    def verdict(self, day):
        """The alarms of a day's newest results of the raw suite, and the whole document."""
        (document,) = (one for _, suite, one in newest_results(self.settings, {day}) if suite == RAW)
        return {"alarms": document["meta"]["alarms"].get(str(day), []), "document": document}

    def record(self, day, revision=0):
        return self.ledger.find(Key("two-regions", day.isoformat(), revision))

    def measured(self, day, revision=0):
        folder = self.settings.measurements_of(day, revision)
        return Measured.from_bytes(read_verified(folder, self.record(day, revision).measurements_hash))

    def lineage(self):
        return [json.loads(line) for line in (self.settings.lineage_folder / EVENTS).read_text().splitlines()]

    def rows(self):
        return read_published(self.settings.published_folder, verify=True)

    def entry(self, day):
        return read_catalogue(self.settings.published_folder).entry(day)

    def statement(self, day):
        return json.loads((self.folder / "published" / self.entry(day).manifest).read_text())["statement"]

    def raw_files(self):
        return sorted(path for path in self.files("trusted") if path.suffix == ".raw")

    def problems(self):
        """What `optstream ledger verify` finds: in the ledger, in published files, and of both."""
        return list(verify(self.settings, self.ledger).problems)

    def watch(self, *, live=True):
        """What the watch says at this time, the ledger closed again."""
        ledger = find_ledger(self.settings)
        with closing(ledger) if ledger else nullcontext():
            return watch(self.settings, ledger, self.now, live=live)

    def of_kind(self, kind):
        return [alarm for alarm in self.watch(live=False).alarms if alarm.kind == kind]

    def at(self, text):
        self.now = datetime.fromisoformat(text).replace(tzinfo=UTC)
        return self

    def states(self):
        return {day.day.day: day.state.value for day in self.watch().days}

    def assert_shows(self, states, alarms):
        """Of each day of the month its state, and what is alarmed."""
        assert self.states() == states
        assert self.alarms() == alarms

    def alarms(self):
        return [(alarm.kind.value, alarm.day and alarm.day.day, alarm.node) for alarm in self.watch().alarms]

    def files(self, *places):
        paths = [path for place in places for path in (self.folder / place).rglob("*") if path.is_file()]
        return {path.relative_to(self.folder): path.read_bytes() for path in paths}


def assert_ended(outcome, status, *words):
    """Assert how a day ended, and what is said of it; return its outcome."""
    assert (outcome.status, [one for one in words if one not in outcome.message]) == (status, []), outcome
    return outcome


# Nights by HistoryInformed, whose last days get new estimates.

DAYS = [date(2016, 6, 1) + timedelta(days=number) for number in range(6)]


def night(installation, *days, **changes):
    """Release these days, then give earlier ones the estimates that are due; the latter by date."""
    for work in installation.release(*days, **changes).values():
        assert work.status is Status.PUBLISHED, work
    return revised(installation)


def revised(installation):
    run = installation.run(noise=no_noise())
    return {day.day: day for day in chunk.publish_revisions(run, chunk.revise_estimates(run, due(run)))}


def listed(installation):
    entries = read_catalogue(installation.folder / "published").entries
    return {entry.period: entry.vintage for entry in entries}


def in_another_unit(installation, region, day, factor):
    for path in (installation.folder / f"dumps/region={region}/date={day}").glob("*.parquet"):
        pl.read_parquet(path).with_columns(pl.col("load_mw") * factor).write_parquet(path)


def released_by(mechanism, text=CONFIGURATION, keys=""):
    text = re.sub(r"\[sampling\]\n(?:[a-z].*\n)+", "", text)
    text = text.replace('name = "OptStream"', f'name = "{mechanism}"\n{keys}')
    kind = mechanism_named(mechanism)
    is_in_rho = kind is not None and kind.currency != "epsilon"
    return text.replace('epsilon = "1"', 'epsilon = "1"\ndelta = "1e-6"') if is_in_rho else text


# Electricity and gas of the same people: two streams whose files name the file of their population.

POPULATION = """
streams = ["electricity/optstream.toml", "gas/optstream.toml"]
[privacy]
population = "people"
epsilon = "1"
window = 48
budget_alpha = "1"
[stream]
step = "30min"
time_zone = "Europe/Paris"
[ledger]
url = "sqlite:///ledger/ledger.sqlite"
"""
SAID_THERE = (
    'epsilon = "1"\nwindow = 48\npopulation = "people"\n',
    'step = "30min"\ntime_zone = "Europe/Paris"\n',
    '[ledger]\nurl = "sqlite:///trusted/ledger.sqlite"\n',
)
NAMED = '[privacy]\npopulation_file = "../population.toml"'


def own_text(name: str, share: str = "1/2") -> str:
    """The configuration of a stream, without what its population file says."""
    text = CONFIGURATION.replace("two-regions", name)
    for said in SAID_THERE:
        assert said in text
        text = text.replace(said, "")
    text = text.replace("[privacy]", NAMED).replace("[budget]", f'[budget]\nstream_share = "{share}"')
    return text.replace('alpha = "1"', 'alpha = "3"\nresolution = "1"') if name == "gas" else text


def two_products(folder: Path, share: str = "1/2") -> dict[str, Installation]:
    (folder / "ledger").mkdir(mode=0o700)
    (folder / "population.toml").write_text(POPULATION)
    for name in ("electricity", "gas"):
        (folder / name).mkdir()
        (folder / name / "optstream.toml").write_text(own_text(name, share))
    return {name: Installation(folder / name) for name in ("electricity", "gas")}
