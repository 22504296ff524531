"""Customers: what rows of one who moves lose by what was charged, and how many are behind each node."""

import shutil
from datetime import date, timedelta
from fractions import Fraction
from itertools import product
from math import exp, log, sqrt
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from optstream.ledger import Key
from optstream.measurement.sums import customers_spend, open_private_period, scale_of
from optstream.mechanisms.fourier import Fourier
from optstream.privacy import StepSpend, worst_window
from optstream.privacy.spends import CUSTOMERS
from optstream.stream.private_period import open_customers
from tasks.config import load_settings
from tasks.ingest import discover, ingest
from tasks.ingest import sums as module
from tasks.release.mechanism import mechanism_for, plan_of
from tasks.release.run import Status
from tests.by_night import few
from tests.optstream.mechanisms.silent_noise import SilentNoise
from tests.tasks.conftest import DAY

DAYS = [date(2016, 6, 1), date(2016, 6, 2)]
REGIONS = 8


def movers(installation, mechanism, window):
    """Make it eight metered leaves, with a keeper each, and rows of one customer."""
    installation.change_mechanism(mechanism)
    path = installation.folder / "optstream.toml"
    text = path.read_text().replace("30min", "3h").replace("Europe/Paris", "UTC")
    text = text.replace('["1/2", "1/2"]', '["0", "1"]')
    text = text.replace("window = 48", f"window = {window}").replace('"20000"]', '"1"]')
    text = text.replace('schema = "aggregated"\nvalue = "load_mw"', 'schema = "metered"\nvalue = "kwh"')
    leaves = "".join(f'R{number} = "FR"\n' for number in range(REGIONS))
    path.write_text(text.replace('84 = "FR"\n11 = "FR"\n', leaves))


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
def test_one_absent_row_or_window_changes_its_own_steps_alone(installation, window):
    movers(installation, "Laplace", window)
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


def test_fourier_is_priced_for_who_is_in_another_leaf_at_each_step(installation):
    """Its charge grows as the root of the steps only for one who stays in a leaf, which no row need do."""
    movers(installation, "Fourier", 8)
    rows = [(step, step % REGIONS) for step in range(8)]
    write(installation, rows)
    epsilon = charged(installation)
    present, absent = periods(installation, rows), periods(installation, [])
    loss = lost(installation, present, absent)
    assert loss <= epsilon <= 1
    staying = Fourier(installation.settings.model, shortest_period=8)
    assert loss * mechanism_for(installation.settings, DAYS[0]).levels[0][1].scale / staying.scale > 1
    assert installation.settings.describe_mechanism(date.min)["leaves_per_period"] == REGIONS


LEAVES = ("L0", "L1", "L2", "L3")
REPORTS = ('[published]\nfolder = "published"', '[published]\nreporting = true\nfolder = "published"')


def reporting(stream):
    text = stream.settings.file.read_text().replace(*REPORTS)
    leaves = "\n".join(f'{leaf} = "FR"' for leaf in LEAVES)
    stream.settings.file.write_text(text.replace('84 = "FR"\n11 = "FR"', leaves))
    stream.settings = load_settings(stream.settings.file)
    return stream


def counts(stream, rows, days):
    """The counts of some days by the real ingestion. rows: (customer, day, step, leaf)."""
    for day, leaf in product(days, LEAVES):
        stamps = stream.rows(0.0, day)["timestamp"]
        own = [(stamps[step], 1.0, name) for name, on, step, at in rows if (on, at) == (day, leaf)]
        columns = {"timestamp": stamps.dtype, "load": pl.Float64, "customer_id": pl.String}
        stream.write(leaf, pl.DataFrame(own, schema=columns, orient="row"), day)
    return [open_customers(one.period).tolist() for one in stream.ingest(*days)]


def in_each_leaf(files, n_leaves):
    """The fault: a customer counts in every leaf in which they have a row."""
    rows = (
        module.rows_in(one).select(key=module.customer_of(one), leaf=module.leaf_of(one)) for one in files
    )
    found = pl.concat(rows).unique().collect()
    return np.bincount(found["leaf"].to_numpy(), minlength=n_leaves).astype(np.int64)


def test_one_customer_moves_the_counts_of_a_day_by_two_at_most(small, monkeypatch):
    stream, days = reporting(small(schema="metered")), [DAY, DAY + timedelta(days=1)]
    rng = np.random.default_rng(3)

    def rows_of(name, n):
        places = zip(rng.integers(2, size=n), rng.integers(48, size=n), rng.integers(4, size=n), strict=True)
        return [(name, days[day], int(step), LEAVES[leaf]) for day, step, leaf in places]

    def moves():
        for _ in range(2):
            others = [row for number in range(5) for row in rows_of(f"c{number}", 6)]
            worlds = [counts(stream, [*others, *rows_of("mover", n)], days) for n in (0, 1, 2, 12)]
            yield max(np.abs(np.subtract(*pair)).sum(axis=1).max() for pair in product(worlds, repeat=2))

    assert max(moves()) == 2
    mover = [("mover", days[0], 3, "L1"), ("mover", days[0], 4, "L3"), ("mover", days[1], 4, "L3")]
    assert counts(stream, mover, days) == [[0, 1, 0, 0], [0, 0, 0, 1]]
    # who has no name, or no step of the day, stands behind nothing; a reading decides nothing
    monkeypatch.setattr("tasks.ingest.sums.customers_of_leaves", in_each_leaf)
    assert any(move > 2 for move in moves())


@pytest.mark.parametrize(("window", "hourly"), [(48, False), (50, False), (5, False), (1, False), (48, True)])
def test_no_window_is_charged_more_than_the_share(small, window, hourly):
    settings = reporting(small(schema="metered")).settings
    privacy = settings.privacy.model_copy(update={"window": window})
    stream = settings.stream.model_copy(update={"period": "hour" if hourly else "day"})
    settings = settings.model_copy(update={"privacy": privacy, "stream": stream})
    settings.__dict__.pop("calendar", None), settings.__dict__.pop("model", None)
    calendar, epsilon = settings.calendar, settings.reporting_epsilon(0)
    assert [settings.model_of(0).budget, epsilon] == [settings.model.budget * n / 20 for n in (19, 1)]
    tree_alone = SimpleNamespace(plan=lambda *_: (), tree=settings.tree_of(DAY))
    for around in (date(2025, 3, 30), date(2025, 10, 26)):
        days = calendar.periods(around - timedelta(days=2), around + timedelta(days=2))
        spends = [spend for day in days for spend in plan_of(settings, tree_alone, day)]
        starts = range(spends[0].first_step, spends[-1].first_step)
        lasting = [(one.first_step, one.first_step + one.n_steps, one.whole_charge) for one in spends]
        charged = [sum(cost for a, b, cost in lasting if a < at + window and b > at) for at in starts]
        assert worst_window(spends, window).epsilon == max(charged) <= epsilon
        assert max(charged) > epsilon * (1 - Fraction(1, 10**12))
        n_met = round(epsilon / spends[0].whole_charge)
        assert n_met == {48: 25 if hourly else 2, 50: 3, 5: 2, 1: 1}[window]


def test_what_a_customer_moves_loses_the_charge():
    spend = customers_spend(1, 0, 48, Fraction(1, 20), 2)
    scale = float(scale_of(spend))
    moves = [(a, b) for a, b in product(range(-2, 3), repeat=2) if abs(a) + abs(b) <= 2]
    losses = [
        log(exp(-(abs(k) + abs(n)) / scale) / exp(-(abs(k - a) + abs(n - b)) / scale))
        for a, b in moves
        for k, n in product(range(-3, 4), repeat=2)
    ]
    assert max(losses) == pytest.approx(float(spend.whole_charge))
    assert spend.whole_charge <= Fraction(1, 40)


@pytest.mark.parametrize("mechanism", few(["OptStream", "PeGaSus", "Laplace", "BudgetAbsorption"], 1))
def test_readers_have_the_customers_of_each_node_with_their_error(installation, mechanism):
    installation.configure('schema = "aggregated"\nvalue = "load_mw"', 'schema = "metered"\nvalue = "kwh"')
    installation.configure('alpha = "1"', 'alpha = "5"')
    installation.configure('["0", "20000"]', '["0", "5"]')
    installation.configure(*REPORTS)
    installation.configure('restatement_share = "0"', 'restatement_share = "1/2"\nrevisions = 1')
    shutil.rmtree(installation.folder / "dumps")
    installation.simulate(*DAYS)
    installation.change_mechanism(mechanism)
    assert installation.statuses(*DAYS) == {Status.PUBLISHED}
    settings, measured = installation.settings, installation.measured(DAYS[0])
    (spend,) = (one for one in measured.spends if one.stage == CUSTOMERS)
    scale = float(scale_of(spend))
    assert spend in plan_of(settings, mechanism_for(settings, DAYS[0]), DAYS[0])
    rows = installation.rows().filter(pl.col("date") == DAYS[0])["node", "customers", "customers_se"].unique()
    found = {node: (count, error) for node, count, error in rows.iter_rows()}
    leaves = settings.tree_of(DAYS[0]).leaves
    assert rows.height == 3
    assert [found[leaf][0] for leaf in leaves] == list(measured.customers)
    assert found["FR"][0] == sum(measured.customers)
    assert found["FR"][1] == pytest.approx(sqrt(2) * found[leaves[0]][1], rel=1e-5)
    assert found[leaves[0]][1] == pytest.approx(sqrt(2) * scale, rel=1e-5)
    assert installation.statement(DAYS[0])["customers_scale"] == str(Fraction(scale))
    assert CUSTOMERS not in {one["stage"] for one in installation.statement(DAYS[0])["noise"]}
    # plans that look at what was spent, as those of joint noise do, do not see this share
    steps = settings.calendar.steps_over(DAYS[1], DAYS[1])
    near = installation.ledger.charged_near(Key("two-regions", str(DAYS[1])), steps)
    assert near
    assert CUSTOMERS not in {one.stage for one in near}
    # a restatement counts again, from its own share; all windows keep theirs
    assert installation.status(DAYS[0]) is Status.UNCHANGED
    for region in sorted(installation.folder.glob("dumps/region=*")):
        shutil.copytree(region, installation.folder / "dumps/revision=1" / region.name)
    assert installation.status(DAYS[0]) is Status.PUBLISHED
    assert installation.measured(DAYS[0], 1).customers is not None
    assert Fraction(1, 2) < installation.spent <= 1
    assert installation.problems() == []
