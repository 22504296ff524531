"""Published rows, and the files next to them: replicates, and measurements that redo a release."""

import json
import re
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from optstream import read_figure, read_measurements, read_published, read_sum
from optstream.catalogue import check_files, read_catalogue
from optstream.catalogue.backends import open_storage
from optstream.catalogue.publication import clear_superseded
from optstream.catalogue.standard_errors import Replicates, encode_replicates, read_day
from optstream.errors import ParameterError, PublicationError
from optstream.estimation.estimate import UNKNOWN
from optstream.noise import simulated_noise
from tasks.pages.published import NO_SUMMARIES, public_facts
from tasks.release.mechanism import mechanism_for
from tasks.release.run import Status
from tasks.release.statement import known_errors, published_rows, statement_of
from tests.by_night import few
from tests.failing import raising
from tests.tasks.test_schemas import validator
from tests.tasks.two_regions import CONFIGURATION, DAYS, Installation, night

FIRST, SECOND, THIRD = DAYS[:3]
DAY = date(2025, 1, 15)
N_LEAVES = 30
LEAVES = "".join(f'{1000 + leaf} = "FR"\n' for leaf in range(N_LEAVES))
SMALL = CONFIGURATION.replace('84 = "FR"\n11 = "FR"\n', LEAVES)
SMALL = SMALL.replace('"20000"]', '"20000"]\nresolution = "1"\nlower_bound = "0"')
"""Thirty leaves of small values, in whole numbers."""
ROUNDED = SMALL.replace('epsilon = "1"', 'epsilon = "5"')
PLAIN = re.sub(r"\[sampling\]\n(?:[a-z].*\n)+", "", SMALL)
PLAIN = PLAIN.replace('name = "OptStream"', 'name = "HistoryInformed"\nscale = 0.5')
COUNTS = PLAIN.replace('resolution = "1"', 'resolution = "1"\ncounts = true')


def drawn(settings):
    values = np.random.default_rng(1).poisson(0.3, (N_LEAVES, 48)).astype(float)
    first = settings.calendar.first_step(DAY)
    return mechanism_for(settings, DAY).release(values, noise=simulated_noise(1), first_step=first)


def units_of(settings, release, day=DAY):
    rows, tree = published_rows(settings, day, release, 0, 0), settings.tree_of(day)
    assert rows.equals(rows.sort("step", "node"))
    by_name = rows["load_mw"].to_numpy().reshape(-1, len(tree.nodes)).T / float(settings.privacy.resolution)
    values = by_name[np.argsort(np.argsort(np.array(tree.nodes)))]
    assert np.abs(values - np.rint(values)).max() < 1e-6
    return np.rint(values).astype(int)


@pytest.mark.parametrize("rule", ["nearest", "unbiased"])
@pytest.mark.parametrize("resolution", ["1", "0.5"])
def test_every_node_is_within_a_unit_of_its_estimate_and_adds_up(load_text, rule, resolution):
    """The control: leaves to the nearest unit, as it was, take the nation along by more."""
    unit = 'resolution = "1"', f'resolution = "{resolution}"'
    settings = load_text(ROUNDED, unit, ("[trusted]", f'rounding = "{rule}"\n[trusted]'))
    release, tree = drawn(settings), settings.tree_of(date.min)
    units, exact = units_of(settings, release), release.values / float(resolution)
    assert release.optimality is not None
    assert np.abs(units - exact).max() < 1
    assert np.array_equal(units, tree.add_up(units[tree.leaf_indices]))
    assert units.min() >= 0
    assert np.abs(tree.add_up(np.rint(exact[tree.leaf_indices])) - exact)[0].max() > 1


def test_an_estimate_below_the_bound_is_raised_to_it(load_text):
    """Of an estimate that knows no bound, such as that of points without post-processing."""
    settings = load_text(ROUNDED)
    release, tree = drawn(settings), settings.tree_of(date.min)
    low = replace(release, values=release.values - tree.add_up(np.ones((N_LEAVES, 48))))
    assert low.values[tree.leaf_indices].min() == -1
    assert units_of(settings, low)[tree.leaf_indices].min() == 0


@pytest.mark.parametrize(("rule", "same"), [("unbiased", False), ("nearest", True)])
def test_unbiased_rounding_goes_on_where_the_day_before_ended(load_text, rule, same):
    settings = load_text(ROUNDED, ("[trusted]", f'rounding = "{rule}"\n[trusted]'))
    release = drawn(settings)
    days = [units_of(settings, release, DAY + timedelta(days=number)) for number in range(2)]
    assert np.array_equal(*days) is same


def test_what_cannot_be_a_standard_error_is_not_known(load_text):
    settings = load_text(CONFIGURATION)
    nothing = np.sqrt(UNKNOWN) * float(settings.privacy.resolution)
    given = np.array([[2.5, 0.0, np.nan], [np.inf, nothing, 2 * nothing]])
    assert np.array_equal(np.isfinite(known_errors(settings, given)), [[True, False, False], [False] * 3])
    assert np.isnan(known_errors(settings, None)).all()


def in_bands(rows):
    """The rows whose bands are known, once these hold the values."""
    known = rows.drop_nulls(["load_mw_low", "load_mw_high"])
    assert (known["load_mw_low"] <= known["load_mw_high"]).all()
    assert known["load_mw"].is_between(known["load_mw_low"], known["load_mw_high"]).all()
    return known


@pytest.mark.slow
def test_bands_are_published_whole_next_to_the_values_of_counts(load_text):
    plain = load_text(PLAIN)
    release = drawn(plain)
    assert release.bands is None
    assert "load_mw_low" not in published_rows(plain, DAY, release, 0, 0).columns
    assert statement_of(plain, DAY, release, 0, 0).bands is None
    settings = load_text(COUNTS)
    release = drawn(settings)
    rows = published_rows(settings, DAY, release, 0, 0)
    known = in_bands(rows)
    assert known.height
    assert (known["load_mw_low"] >= 0).all()
    assert known["load_mw_high"].to_list() == [round(high) for high in known["load_mw_high"].to_list()]
    assert statement_of(settings, DAY, release, 0, 0).bands.known in ("all", "some")
    expected = release.estimate[np.argsort(settings.tree_of(DAY).nodes)].T.ravel().tolist()
    assert rows["load_mw_estimate"].to_list() == pytest.approx(expected, rel=1e-5)
    zeros = 0.0 * release.values
    narrow = published_rows(settings, DAY, replace(release, values=zeros + 2.0, bands=(zeros, zeros)), 0, 0)
    assert (narrow["load_mw_high"] == narrow["load_mw"]).all(), "a band holds the published value"
    nodes = settings.tree_of(DAY).nodes
    for width, named in ((9.0, (nodes[2],)), (0.0, ())):
        edges = zeros, np.where(np.arange(len(nodes))[:, None] == 2, width, zeros)
        stated = statement_of(settings, DAY, replace(release, bands=edges), 0, 0)
        assert stated.bands.wide == named, "nodes whose band is wider than their value"
    nothing = replace(release, bands=None)
    assert published_rows(settings, DAY, nothing, 0, 0)["load_mw_low"].null_count() == rows.height
    assert statement_of(settings, DAY, nothing, 0, 0).bands.known == "none"


def test_days_without_their_leaves_are_published_sound(installation):
    days = [FIRST + timedelta(days=number) for number in range(2)]
    installation.configure("[published]\n", "[published]\nlevels = [0]\n")
    installation.simulate(*days)
    assert installation.statuses(*days) == {Status.PUBLISHED}
    assert set(installation.rows()["level"]) == {0}
    assert read_sum(installation.folder / "published", ["FR"], *days).noise_standard_error > 0
    installation.write_pages()
    assert installation.problems() == []


def test_days_are_published_with_bands_and_cost_no_more_than_the_grant(installation):
    days = [FIRST + timedelta(days=number) for number in range(3)]
    installation.change_mechanism("HistoryInformed", "scale = 5.0")
    installation.configure("alpha =", 'resolution = "1"\ncounts = true\nalpha =')
    installation.simulate(*days)
    assert mechanism_for(installation.settings, FIRST).small_level == 1
    assert installation.statuses(*days) == {Status.PUBLISHED}
    assert 0 < installation.spent <= 1
    rows = installation.rows()
    assert rows.height == 3 * 3 * 48
    assert in_bands(rows).height > rows.height / 2
    place = open_storage(installation.folder / "published")
    summaries = public_facts(place, read_catalogue(place), NO_SUMMARIES)[1]
    means = rows.group_by("date", "node").agg(pl.col("load_mw_estimate").mean())["load_mw_estimate"]
    assert sorted(summaries["mean"]) == pytest.approx(sorted(means)), "daily means are unbiased"
    for data in installation.files("published/manifests").values():
        assert not list(validator("optstream.manifest/1").iter_errors(json.loads(data)))
        text = json.dumps(json.loads(data))
        assert '"counts": true' in text
        assert "load_mw_low and load_mw_high" in text


def files(installation, folder="errors"):
    found = {}
    for path in sorted((installation.folder / "published" / folder).rglob("*vintage*.parquet")):
        matched = re.match(r"revision-(\d+)-vintage-(\d+)-", path.name)
        day = path.parent.name.removeprefix("date=")
        found.setdefault(day, []).append((int(matched[1]), int(matched[2])))
    return found


def fits_its_schema(installation, day):
    folder = installation.folder / "published"
    manifest = json.loads((folder / installation.entry(day).manifest).read_text())
    return not list(validator("optstream.manifest/1").iter_errors(manifest))


def come_back(installation, path):
    """Whether a file that is lost, or damaged, is made again from the stored measurements as it was."""
    whole, folder = path.read_bytes(), installation.folder / "published"
    for damage in (path.unlink, lambda: path.write_bytes(b"damaged")):
        path.chmod(0o644)
        damage()
        assert "`optstream publish" in str(check_files(folder))
        for kept in installation.settings.staging_of(FIRST, 0).iterdir():
            kept.unlink()
        assert installation.publish_again(FIRST)[0].status is Status.PUBLISHED
        assert path.read_bytes() == whole
        assert check_files(folder) == []
    return True


@pytest.fixture
def nights(learning):
    """Two nights: the first day has a new estimate after the second."""
    learning.once(night, FIRST, SECOND)
    return learning


def test_each_listed_release_has_one_and_a_withdrawn_day_takes_all_along(nights):
    assert files(nights) == {str(FIRST): [(0, 1)], str(SECOND): [(0, 0)]}
    assert files(nights, "superseded_errors") == {str(FIRST): [(0, 0)]}
    assert nights.problems() == []
    assert nights.statement(FIRST)["errors"]["of"] == "whole"
    assert fits_its_schema(nights, FIRST)
    nights.withdraw(FIRST)
    assert (files(nights), files(nights, "superseded_errors")) == ({str(SECOND): [(0, 0)]}, {})
    with pytest.raises(ParameterError, match="must be published; 1 of them are"):
        read_sum(nights.settings.published_folder, ["11"], FIRST, SECOND)


def test_lost_and_damaged_replicates_come_back(nights):
    (path,) = (nights.folder / f"published/errors/date={FIRST}").iterdir()
    whole = path.read_bytes()
    path.unlink()
    with pytest.raises(PublicationError, match="optstream publish 2016-06-01"):
        read_sum(nights.settings.published_folder, ["11"], FIRST, FIRST)
    path.write_bytes(whole)
    assert come_back(nights, path)


def left_by_a_crash(installation, day, rank, digest=None):
    """A publisher wrote a file of errors, and died before anything listed it."""
    path = next((installation.folder / f"published/errors/date={day}").iterdir())
    named = re.sub(r"revision-\d+-vintage-\d+", "revision-{}-vintage-{}".format(*rank), path.name)
    named = named if digest is None else re.sub("[0-9a-f]{64}", digest, named)
    path.with_name(named).write_bytes(path.read_bytes())
    return path.with_name(named)


def test_what_a_crash_left_is_named_and_leaves_with_the_next_release_or_its_day(nights):
    left_by_a_crash(nights, FIRST, (0, 1), "0" * 64)
    assert nights.publish_again(FIRST)[0].status is Status.PUBLISHED
    assert nights.problems() == []
    for day, rank, digest in (
        (SECOND, (0, 7), None),
        (FIRST, (1, 0), None),
        (SECOND, (0, 1), "0" * 64),  # an estimate that was made again, in other digits
    ):
        stray = left_by_a_crash(nights, day, rank, digest)
        problems = check_files(nights.folder / "published")
        assert any(f"{stray.name}' is of no listed release" in problem for problem in problems)
    night(nights, THIRD)
    assert files(nights)[str(SECOND)] == [(0, 1)]
    nights.withdraw(FIRST)
    assert str(FIRST) not in files(nights)
    assert nights.problems() == []


def test_without_its_manifest_nothing_of_a_release_leaves(nights):
    folder = nights.folder / "published"
    (listed,) = (folder / f"errors/date={FIRST}").iterdir()
    left_by_a_crash(nights, FIRST, (0, 1), "0" * 64)
    entry = nights.entry(FIRST)
    (folder / entry.manifest).unlink()
    open_storage(folder).change(lambda transaction: clear_superseded(transaction, entry))
    assert listed.exists()


def test_a_file_that_was_replaced_while_days_were_read_is_read_where_it_lies(nights):
    storage = open_storage(nights.settings.published_folder)
    known = read_catalogue(storage)
    before = read_day(storage, known, known.entry(SECOND), verify=True)
    night(nights, THIRD)
    assert nights.entry(SECOND).vintage == 1
    assert read_day(storage, known, known.entry(SECOND), verify=True).rows.equals(before.rows)


@pytest.mark.parametrize(("nodes", "n_steps"), [("FR 11", 48), ("FR 11 84", 47), ("FR 11 12", 48)])
def test_a_file_of_other_nodes_or_steps_is_refused(nights, monkeypatch, nodes, n_steps):
    """Left out of the sum, the missing ones would make it look surer than it is."""
    nodes = tuple(nodes.split())
    drawn = np.ones((2, len(nodes), n_steps))
    data = encode_replicates(Replicates.labelled(SECOND, "whole", nodes, drawn[0], drawn))
    monkeypatch.setattr("optstream.catalogue.standard_errors.read_attachment", lambda *_: data)
    with pytest.raises(PublicationError, match=r"other nodes or steps than .*parquet; restore it"):
        read_sum(nights.settings.published_folder, ["11", "84"], SECOND, SECOND)


def test_a_day_does_not_wait_for_errors_that_cannot_be_drawn(installation, monkeypatch):
    fails = raising(np.linalg.LinAlgError("no covariance"))
    monkeypatch.setattr("optstream.mechanisms.base.Mechanism.noise_replicates", fails)
    assert installation.status(FIRST) is Status.PUBLISHED
    assert files(installation) == {}
    assert check_files(installation.folder / "published") == []


def wanted(installation, name="OptStream"):
    installation.configure("[published]\n", "[published]\nmeasurements = true\n")
    installation.change_mechanism(name)
    installation.simulate(*DAYS[:3])
    return installation


def redone(installation, day):
    """Whether the values that follow from the file are those of the rows, to the last digit."""
    folder = installation.settings.published_folder
    rows = read_published(folder).filter(date=day)
    read = read_measurements(folder, day)
    values, nodes = read.values(), read.mechanism.tree.nodes
    known = {(node, step): value for node, step, value in rows.select("node", "step", "load_mw").iter_rows()}
    again = {(node, step): values[row, step] for row, node in enumerate(nodes) for step in range(48)}
    (path,) = installation.settings.measurements_of(day, rows["revision"][0]).glob("*[0-9a-f]")
    return again == known and read.measured.to_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", few(["OptStream", "Fourier", "PeGaSus", "HistoryInformed", "Gaussian"], 2))
def test_a_reader_redoes_a_mechanisms_days_to_the_last_digit(installation, name):
    installation = wanted(installation, name)
    assert installation.statuses(FIRST, SECOND) == {Status.PUBLISHED}
    assert all(redone(installation, day) for day in (FIRST, SECOND))
    assert check_files(installation.folder / "published") == []
    (file,) = (installation.folder / f"published/measurements/date={SECOND}").iterdir()
    rows, drawn = pl.read_parquet(file), installation.measured(SECOND)
    parts = drawn.parts or (drawn,)
    assert 0 < rows.height <= sum(one.points.size + sum(map(np.size, one.answers.values)) for one in parts)
    assert rows.schema["value"] == pl.Int64
    assert rows["noise_variance"].is_finite().all()
    assert rows["node"].is_in(["FR", "84", "11"]).all()
    assert (rows["first_step"] + rows["n_steps"]).max() <= 48


def test_without_the_option_nothing_is_there_and_hashes_of_configurations_are_the_same(installation):
    before = installation.settings.configuration_hash
    installation.release(FIRST)
    assert not (installation.folder / "published/measurements").exists()
    with pytest.raises(PublicationError, match="without measurements"):
        read_measurements(installation.folder / "published", FIRST)
    assert wanted(installation).settings.configuration_hash == before


def test_a_day_that_remembers_others_shows_their_sums_in_their_own_files_alone(learning):
    installation, days = wanted(learning), DAYS[:3]
    night(installation, *days)
    folder = installation.folder / "published"
    assert installation.entry(FIRST).vintage == 1
    assert all(redone(installation, day) for day in days)
    assert len(read_measurements(folder, FIRST).later) == 2
    (file,) = (folder / f"measurements/date={THIRD}").iterdir()
    footer = json.loads(pq.read_metadata(file).metadata[b"optstream.measurements"])
    inner = footer["measured"]["state"]["levels"]["0"]["history"]
    assert len(inner["starts"]) > 0
    assert "sums" not in inner
    installation.withdraw(SECOND)
    left = {path.parent.name for path in (folder / "measurements").rglob("*.parquet")}
    assert left == {f"date={FIRST}", f"date={THIRD}"}
    for day, words in ((THIRD, "rests on measurements of earlier days"), (SECOND, "withdrawn")):
        with pytest.raises(PublicationError, match=words):
            read_measurements(folder, day)
    assert check_files(folder) == []


def test_lost_and_damaged_measurements_come_back_whatever_is_configured_by_then(installation):
    wanted(installation).release(FIRST)
    (file,) = (installation.folder / f"published/measurements/date={FIRST}").iterdir()
    installation.configure("measurements = true\n", "")
    assert come_back(installation, file)
    assert installation.statement(FIRST)["measurements"]["file"].endswith(file.name)
    assert fits_its_schema(installation, FIRST)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sums")
    (folder / "optstream.toml").write_text(CONFIGURATION)
    installation = wanted(Installation(folder))
    installation.release(*DAYS[:3])
    return installation.settings.published_folder


@pytest.mark.slow
def test_a_figure_has_the_spread_of_its_replicates(published):
    found = read_figure(published, lambda value: value.max(), FIRST, THIRD, by=["node", "date"])
    rows = read_published(published).group_by("node", "date").agg(pl.max("load_mw")).sort("node", "date")
    assert found["value"].equals(rows["load_mw"], check_names=False)
    assert found["noise_standard_error"].min() > 0
    (file,) = (published / f"errors/date={THIRD}").iterdir()
    replicates = pl.read_parquet(file, hive_partitioning=False).filter(node="84")
    peaks = replicates.select(pl.selectors.starts_with("replicate").cast(pl.Float64)).max().row(0)
    own = found.filter(node="84", date=THIRD).row(0, named=True)
    assert own["noise_standard_error"] == pytest.approx(np.std(peaks, ddof=1), rel=1e-4)


NO_SUMS = [
    (["11"], THIRD + timedelta(days=1), None, "to 2016-06-04 must be published; 3 of them are"),
    (["12"], THIRD, None, "has no node '12'"),
    ("11", THIRD, None, r"several names, such as \['11'\]; got the text '11'"),
    (["11"], "2016-06-03", None, r"last day must be one such as date\(2016, 2, 1\); got '2016-06-03'"),
    (["11"], FIRST - timedelta(days=1), None, "2016-05-31, is before the first, 2016-06-01"),
    (["FR", "11"], THIRD, None, "none may lie in another"),
    (["11"], THIRD, [48], "steps of a sum|of this period"),
    (["11"], THIRD, [], "steps of a sum"),
    (["11"], THIRD, [1.5], "steps of a sum must be integers, counted from 0; got 1.5"),
    ({"11": np.nan}, THIRD, None, "the weight of '11' in a sum must be a finite number"),
    ({"11": "x"}, THIRD, None, "the weight of '11' in a sum must be a finite number"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("nodes", "last", "steps", "words"), NO_SUMS)
def test_what_cannot_be_summed_is_named(published, nodes, last, steps, words):
    with pytest.raises((ParameterError, PublicationError), match=words):
        read_sum(published, nodes, FIRST, last, steps)
