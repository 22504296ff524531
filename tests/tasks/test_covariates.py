"""Public covariates: files in any layout, and published products; unusable or private ones are left out."""

import hashlib
import os
import shutil
from datetime import UTC, date, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from optstream import read_published
from optstream.ledger import ReleaseState
from optstream.stream.calendar import ORIGIN
from tasks.release import draw
from tasks.release.run import Status
from tasks.trusted import covariates as reading
from tasks.trusted.covariates import read_covariates, read_here
from tests.failing import raising
from tests.tasks.two_regions import FEW_BLOCKS, Installation, released_by, two_products

FIRST = date(2016, 2, 1)
DAYS = [FIRST + timedelta(days=number) for number in range(4)]
INFORMED = released_by("HistoryInformed", keys=FEW_BLOCKS)
UNKNOWN = "0" * 64
CSV, PARQUET = "warmth.csv", "warmth.parquet"
ENTRY = f"""[[covariates]]
name = "warmth"
path = "warmth.csv"
sha256 = "{UNKNOWN}"
source = "the weather service"
"""


def hashed(folder, text=ENTRY):
    """The text with the hash of the file that it names, and with its ending."""
    for name in (CSV, PARQUET):
        if (file := folder / name).is_file():
            text = text.replace("warmth.csv", name)
            text = text.replace(UNKNOWN, hashlib.sha256(file.open("rb").read(2**20)).hexdigest())
    return text


@pytest.fixture
def configured(load_text, tmp_path, read_in_this_process):
    return lambda text=ENTRY, before=INFORMED: load_text(before + hashed(tmp_path, text))


@pytest.fixture
def read_in_this_process(monkeypatch):
    monkeypatch.setattr(reading, "_read_apart", read_here)


def one(settings, until=DAYS[-1]):
    found = read_covariates(settings, until)
    assert found.unread == {}
    (covariate,) = found.read
    return covariate


def gone_without(settings):
    """Why the only covariate is gone without."""
    found = read_covariates(settings, DAYS[-1])
    assert found.read == ()
    (why,) = found.unread.values()
    assert why.startswith("covariate warmth: ")
    return why


def by_node(nodes=("84", "11"), **columns):
    rows = [(day, node, 10.0 * at + n) for at, node in enumerate(nodes) for n, day in enumerate(DAYS)]
    return pl.DataFrame(rows, schema=["date", "node", "value"], orient="row").with_columns(**columns)


def csv(*nodes, **columns):
    return lambda folder: by_node(*nodes, **columns).write_csv(folder / CSV)


def parquet(**columns):
    return lambda folder: by_node(**columns).write_parquet(folder / PARQUET)


@pytest.mark.parametrize("write", [parquet(), csv()], ids=[PARQUET, CSV])
def test_a_row_for_each_node_the_nodes_above_as_their_mean(configured, tmp_path, write):
    write(tmp_path)
    found = one(configured())
    assert (found.name, found.first_day, found.lag_days) == ("warmth", (FIRST - ORIGIN).days, 1)
    assert np.array_equal(found.values, [[5, 6, 7, 8], [0, 1, 2, 3], [10, 11, 12, 13]])


def test_one_row_serves_all_and_gaps_are_missing(configured, tmp_path):
    by_node(("84",)).drop("node")[[0, 1, 3]].write_parquet(tmp_path / PARQUET)
    assert np.array_equal(one(configured()).values, [[0, 1, np.nan, 3]], equal_nan=True)
    assert one(configured(), DAYS[1]).values.tolist() == [[0, 1]], "nothing of later days"


def test_instants_are_averaged_over_local_days(configured, tmp_path):
    """23:30 UTC is the next day in Paris."""
    times = [datetime(2016, 2, 1, 12, tzinfo=UTC), datetime(2016, 2, 1, 23, 30, tzinfo=UTC)]
    later = [datetime(2016, 2, 2, 12, tzinfo=UTC)]
    pl.DataFrame({"timestamp": times + later, "degrees": [1, 2, 4]}).write_parquet(tmp_path / PARQUET)
    assert one(configured(ENTRY + 'value = "degrees"\n')).values.tolist() == [[1, 3]]


@pytest.mark.parametrize(
    ("write", "why"),
    [
        (lambda folder: None, "or absolute; found nothing: correct the path"),
        (lambda folder: (folder / CSV).write_text("x,y\n1,2\n"), "a column date or timestamp"),
        (lambda folder: (folder / CSV).write_text("date,t\n"), "it has 'date', 't': name its columns by"),
        (lambda folder: (folder / CSV).write_text("71.25,2016-02-01\n80,2016-02-02\n"), "no line of names"),
        (lambda folder: (folder / CSV).write_bytes(b"\xff\x00,\n,,,"), "warmth"),
        (lambda folder: (folder / PARQUET).write_bytes(b"PAR1"), "must be a Parquet file of at most"),
        (csv(("xx",)), "such as '84', in column 'node'; it names none: "),
        (parquet(value=pl.lit(np.nan)), "have a number"),
        (parquet(value=pl.lit(-np.inf)), "have a number"),
        (parquet(value=pl.lit(1e300)), "have a number"),
        (csv(date=pl.date(2999, 1, 1)), "up to 2016-02-04"),
        (parquet(value=pl.lit("a")), "must be of numbers"),
        (csv(date=pl.lit("x")), "of dates or instants"),
        (lambda folder: os.mkfifo(folder / CSV), "must be a regular file"),
        (lambda folder: (folder / CSV).mkdir(), "cannot be read (Is a directory)"),
        (lambda folder: (folder / CSV).symlink_to(CSV), "found nothing"),
        (lambda folder: os.truncate((folder / CSV).open("w").name, 2**40), "at most 64 MiB: leave out"),
        (lambda folder: by_node(**{"x" * 999: 1}).drop("value").write_csv(folder / CSV), "'xxx"),
    ],
)
def test_what_cannot_be_used_is_gone_without_and_said(configured, tmp_path, write, why):
    write(tmp_path)
    said = gone_without(configured())
    assert why in said
    assert len(said) < 500
    assert "71.25" not in said, "a reading"


def test_no_other_file_is_read_than_the_one_whose_hash_is_named(configured, tmp_path):
    by_node().write_csv(tmp_path / CSV)
    settings = configured()
    assert one(settings).values.shape == (3, 4)
    with (tmp_path / CSV).open("a") as file:
        file.write("2016-02-04,84,1\n")
    assert "warmth.csv is not the file whose sha256 the configuration names" in gone_without(settings)


def test_values_beyond_all_measure_and_days_of_other_centuries_cost_themselves_alone(configured, tmp_path):
    table = by_node(("84",)).drop("node")
    wrong = pl.DataFrame({"date": [date(1, 1, 1), date(9999, 12, 31), DAYS[1]], "value": [1.0, 2.0, 1e300]})
    pl.concat([table, table, wrong]).write_csv(tmp_path / CSV)
    found = one(configured())
    assert found.first_day == (FIRST - ORIGIN).days
    assert found.values.tolist() == [[0, 1, 2, 3]]


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"[",
        b"[" * 10**6,
        b"1",
        b'{"first_day": 1e999, "values": [[1]]}',
        b'{"first_day": 5875, "values": [[1], [2]]}',
        b'{"first_day": 5875, "values": [[1], [2, 3], [4]]}',
        b'{"first_day": 5879, "values": [[1]]}',
        b'{"first_day": 5000, "values": [[1]]}',
        b'{"first_day": 5875, "values": []}',
        b'{"first_day": 5875.0, "values": [[1]]}',
        b'{"first_day": 5875, "values": [[%d]]}' % 10**400,
    ],
)
def test_nothing_that_a_process_says_is_taken_for_granted(configured, monkeypatch, said):
    monkeypatch.undo()
    monkeypatch.setattr(reading, "_answer_of_process", lambda asked: said)
    assert "the process that reads it ended over it" in gone_without(configured())


# What another stream of the same people published, as a public covariate: read, and released after it.

DAY, NEXT, LAST = (date(2016, 6, day) for day in (1, 2, 3))
COVARIATE = """[[covariates]]
name = "gas"
path = "../gas/published"
value = "load_mw"
source = "our own release of gas"
"""


@pytest.fixture
def siblings(tmp_path, read_in_this_process):
    """Electricity goes by what gas has published, so gas comes first."""
    both = two_products(tmp_path)
    electricity = both["electricity"]
    electricity.change_mechanism("HistoryInformed", FEW_BLOCKS)
    electricity.configure("[input]", f"{COVARIATE}[input]")
    for one in both.values():
        one.simulate(DAY, NEXT)
    return both


def test_the_published_means_of_each_node_are_the_covariate(siblings):
    electricity, gas = siblings["electricity"], siblings["gas"]
    assert gas.statuses(DAY, NEXT) == {Status.PUBLISHED}
    (found,) = read_covariates(electricity.settings, NEXT).read
    assert found.first_day == (DAY - ORIGIN).days
    rows = read_published(gas.folder / "published")
    tree = electricity.settings.tree_of(DAY)
    means = rows.group_by("node", "date").agg(pl.col("load_mw").mean()).sort("date")
    expected = [means.filter(pl.col("node") == node)["load_mw"].to_list() for node in tree.nodes]
    assert np.allclose(found.values, expected)
    # what is asked about a day knows no later one
    (early,) = read_covariates(electricity.settings, DAY).read
    assert early.values.shape == (3, 1)


def test_a_night_goes_by_what_was_published_before_it(siblings):
    electricity, gas = siblings["electricity"], siblings["gas"]
    gas.release(DAY)
    before = electricity.ledger.worst("people").epsilon
    assert electricity.statuses(DAY) == {Status.PUBLISHED}
    (used,) = electricity.statement(DAY)["mechanism"]["covariates"]
    assert used["name"] == "gas"
    assert len(used["values_sha256"]) == 64
    # it costs nothing: the plan is that of a stream without it
    own = electricity.ledger.worst("people").epsilon - before
    assert own <= electricity.settings.model_of(0).epsilon
    # a day that gas has not published goes without it, and is released
    assert electricity.statuses(NEXT) == {Status.PUBLISHED}
    assert electricity.statement(NEXT)["mechanism"]["covariates"][0]["values_sha256"] == "none"


def test_a_link_into_the_trusted_zone_and_a_changed_file_are_not_read(siblings):
    gas, electricity = siblings["gas"], siblings["electricity"]
    gas.release(DAY)
    hidden = electricity.folder / "trusted/copy"
    shutil.copytree(gas.folder / "published", hidden)
    (file,) = (gas.folder / "published/data").rglob("*.parquet")
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[:-1] + b"0")
    (why,) = read_covariates(electricity.settings, DAY).unread.values()
    assert "gas/published" in why
    (electricity.folder / "elsewhere").symlink_to(hidden)
    electricity.configure("../gas/published", "elsewhere")
    (why,) = read_covariates(electricity.settings, DAY).unread.values()
    assert "leads into trusted.folder, which is private" in why


@pytest.mark.parametrize("named", ["by the population file", "by a folder above"])
@pytest.mark.parametrize("place", ["dumps/copy.csv", "trusted/copy.csv"])
def test_what_is_private_to_another_stream_is_refused(siblings, tmp_path, named, place):
    """Its readings would leak by the estimates of this one, and no ledger would see it."""
    gas, electricity = siblings["gas"], siblings["electricity"]
    gas.release(DAY)
    rows = pl.DataFrame({"date": [DAY], "load_mw": [1.0]})
    rows.write_csv(gas.folder / place)
    known = hashlib.sha256((gas.folder / place).read_bytes()).hexdigest()
    electricity.configure('name = "gas"', f'name = "gas"\nsha256 = "{known}"')
    if named == "by the population file":
        for zone in ("dumps", "trusted"):
            (gas.folder / zone).rename(tmp_path / zone)
            gas.configure(f'folder = "{zone}"', f'folder = "{tmp_path / zone}"')
        electricity.configure("../gas/published", str(tmp_path / place))
    else:
        (tmp_path / "gas").rename(tmp_path / "water")
        electricity.configure("../gas/published", f"../water/{place}")
    (why,) = read_covariates(electricity.settings, DAY).unread.values()
    assert ".folder, which is private" in why
    rows.write_csv(tmp_path / "public.csv")
    electricity.configure(str(electricity.settings.covariates[0].path), "../public.csv")
    assert read_covariates(electricity.settings, DAY).read


# A night that knows a public covariate says so, and its bytes are those of the values that it knew.


def link_to_a_dump(installation):
    (dump, *_) = (installation.folder / "dumps").rglob("*.parquet")
    (installation.folder / CSV).unlink()
    (installation.folder / CSV).symlink_to(dump)


def two_nights(installation, first, second):
    installation.release(first)
    link_to_a_dump(installation)
    installation.release(second)


@pytest.fixture
def informed_nights(tmp_path):
    """Two nights, the second with a covariate that it must not read."""
    days = [DAY - timedelta(days=ago) for ago in range(30, -1, -1)]
    rows = "".join(f"{day},{10 + day.day % 7}\n" for day in days)
    (tmp_path / CSV).write_text(f"date,value\n{rows}")
    (tmp_path / "optstream.toml").write_text(INFORMED + hashed(tmp_path))
    installation = Installation(tmp_path)
    installation.simulate(DAY, NEXT)
    installation.once(two_nights, DAY, NEXT)
    link_to_a_dump(installation)  # which was not copied as one
    return installation


def test_a_night_says_what_it_used_and_the_watch_what_it_lacked(informed_nights):
    (known,), (lacking,) = (informed_nights.statement(day)["mechanism"]["covariates"] for day in (DAY, NEXT))
    assert (known["name"], known["source"]) == ("warmth", "the weather service")
    assert len(known["values_sha256"]) == 64
    assert lacking["values_sha256"] == "none"
    (missing,) = informed_nights.of_kind("covariate-missing")
    assert missing.day == NEXT
    assert "covariate warmth: warmth.csv leads into input.folder, which is private" in missing.words


def test_a_night_that_ends_over_a_covariate_has_drawn_nothing(informed_nights, monkeypatch):
    informed_nights.simulate(LAST)
    with monkeypatch.context() as patched:
        patched.setattr(draw, "read_covariates", raising(MemoryError))
        ended = informed_nights.outcome(LAST)
    record = informed_nights.record(LAST)
    assert ended.status is not Status.PUBLISHED
    assert (record.state, record.drawing, record.redraws) == (ReleaseState.RESERVED, False, 0)
    informed_nights.later(days=1)
    assert informed_nights.status(LAST) is Status.PUBLISHED
    again = informed_nights.record(LAST)
    assert (again.redraws, again.spends) == (0, record.spends)


def test_a_lost_file_comes_back_from_the_values_that_its_night_knew(informed_nights, monkeypatch):
    monkeypatch.setattr(draw, "read_covariates", None)
    assert informed_nights.comes_back(DAY)
