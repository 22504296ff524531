"""Rows of one customer that come, go or change leaf inside one window: what it loses, by what was charged."""

import re
import shutil
from datetime import date
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from optstream.measurement.sums import open_private_period
from optstream.mechanisms.fourier import Fourier
from optstream.privacy import StepSpend, worst_window
from tasks.ingest import discover, ingest
from tasks.release.mechanism import mechanism_for
from tasks.release.run import Status
from tests.optstream.mechanisms.silent_noise import SilentNoise

DAYS = [date(2016, 6, 1), date(2016, 6, 2)]
REGIONS = 8


@pytest.fixture
def movers(installation):
    """movers("Laplace", window=1): eight metered leaves with a keeper each, and rows of one customer."""

    def make(mechanism, window, step="3h"):
        path = installation.folder / "optstream.toml"
        text = (
            path.read_text()
            .replace('name = "OptStream"', mechanism)
            .replace("30min", step)
            .replace("Europe/Paris", "UTC")
            .replace('["1/2", "1/2"]', '["0", "1"]')
        )
        text = re.sub(r"\[sampling\]\n(?:[a-z].*\n)+", "", text)
        text = text.replace("window = 48", f"window = {window}").replace('"20000"]', '"1"]')
        text = text.replace('schema = "aggregated"\nvalue = "load_mw"', 'schema = "metered"\nvalue = "kwh"')
        leaves = "".join(f'R{number} = "FR"\n' for number in range(REGIONS))
        path.write_text(text.replace('84 = "FR"\n11 = "FR"\n', leaves))
        return installation

    return make


def write(installation, rows):
    """Dumps of both days. rows: of the customer, (running step, leaf), each with the reading alpha."""
    shutil.rmtree(installation.folder / "dumps", ignore_errors=True)
    running = 0
    for day in DAYS:
        stamps = list(installation.settings.calendar.utc_times(day))
        for leaf in range(REGIONS):
            steps = [step - running for step, at in rows if at == leaf]
            own = [stamps[step] for step in steps if 0 <= step < len(stamps)]
            names = [f"keeper {leaf}"] * len(stamps) + ["mover"] * len(own)
            values = [0.25] * len(stamps) + [1.0] * len(own)
            folder = installation.folder / f"dumps/region=R{leaf}/date={day}"
            folder.mkdir(parents=True)
            frame = {"customer_id": names, "timestamp": stamps + own, "kwh": values}
            pl.DataFrame(frame).write_parquet(folder / "part-0.parquet")
            (folder / "_SUCCESS").touch()
        running += len(stamps)


def periods(installation, rows):
    write(installation, rows)
    dumps = list(discover(installation.settings, DAYS).values())
    return [day.period for day in ingest(installation.settings, dumps)]


def charged(installation):
    """Both days through the flow: what the ledger says that any window loses."""
    assert installation.statuses(*DAYS) == {Status.PUBLISHED}
    settings, spends = installation.settings, []
    for day in DAYS:
        steps = len(settings.calendar.utc_times(day)), settings.calendar.first_step(day)
        own = installation.record(day).spends
        assert own == mechanism_for(settings, day).plan(*steps), "priced as it is drawn"
        spends += own
    return worst_window(spends, settings.privacy.window).epsilon


def lost(installation, one, other):
    """The exact loss between two histories, by the scales of the plans that the ledger charged."""
    total = 0
    for day, mine, theirs in zip(DAYS, one, other, strict=True):
        whole = mechanism_for(installation.settings, day)
        sides = [whole.measure(side, noise=SilentNoise()).parts for side in (mine, theirs)]
        for (_, mechanism), *answers in zip(whole.levels, *sides, strict=True):
            plan = mechanism.plan(mine.n_steps, mine.first_step)[0]
            scale = plan.scale if isinstance(plan, StepSpend) else mechanism.scale
            points, sums = [part.points for part in answers], [part.answers.values for part in answers]
            total += Fraction(int(np.abs(points[0] - points[1]).sum())) / scale
            total += sum(Fraction(int(np.abs(a - b).sum())) / scale for a, b in zip(*sums, strict=True))
    return total


@pytest.mark.parametrize("window", [1, 8])
def test_one_absent_row_or_window_changes_its_own_steps_alone(movers, window):
    """The customer is in the last leaf all along, and in the first at the window around midnight."""
    installation = movers('name = "Laplace"', window)
    length = len(installation.settings.calendar.utc_times(DAYS[0]))
    steps = range(length - window // 2 - window % 2, length + window // 2)
    always = [(step, REGIONS - 1) for step in range(2 * length)]
    visits = [(step, 0) for step in steps]
    stayed = [row for row in always if row[0] not in steps]
    write(installation, always + visits)
    epsilon = charged(installation)
    histories = [periods(installation, rows) for rows in (always + visits, always, stayed, stayed + visits)]
    for one in histories:
        for other in histories:
            pairs = zip(map(open_private_period, one), map(open_private_period, other), strict=True)
            gaps = np.concatenate([np.abs(a - b).sum(axis=0) for a, b in pairs])
            assert set(np.flatnonzero(gaps)) <= set(steps)
    # rows that come or go: at most epsilon, and it is met
    both, always_only, absent, moved = histories
    for pair in ((both, always_only), (both, moved), (always_only, absent), (absent, moved)):
        assert lost(installation, *pair) <= epsilon <= 1
    assert lost(installation, always_only, absent) > 0.99 * epsilon
    # rows that change leaf: one that goes and one that comes
    assert epsilon < lost(installation, always_only, moved) <= 2 * epsilon


def test_fourier_is_priced_for_who_is_in_another_leaf_at_each_step(movers):
    """Its charge grows as the root of the steps only for one who stays in a leaf, which no row need do."""
    installation = movers('name = "Fourier"', 8)
    rows = [(step, step % REGIONS) for step in range(8)]
    write(installation, rows)
    epsilon = charged(installation)
    present, absent = periods(installation, rows), periods(installation, [])
    loss = lost(installation, present, absent)
    assert loss <= epsilon <= 1
    staying = Fourier(installation.settings.model, shortest_period=8)
    assert loss * mechanism_for(installation.settings, DAYS[0]).levels[0][1].scale / staying.scale > 1
    assert installation.settings.describe_mechanism(date.min)["leaves_per_period"] == REGIONS
