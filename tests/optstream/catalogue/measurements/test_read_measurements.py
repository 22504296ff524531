"""Measurements read from a published folder: the release again, sums over days, and what is not as it was."""

import shutil
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256

import numpy as np
import polars as pl
import pytest

from optstream import Hierarchical, Laplace, read_measurements, read_sum, simulated_noise
from optstream.catalogue import publish, stage
from optstream.catalogue.measurements import encode_measurements
from optstream.catalogue.replicates import Replicates, encode_replicates
from optstream.catalogue.statement import StatedErrors, StatedMeasurements
from optstream.catalogue.verify import check_files
from optstream.errors import PublicationError
from tests.optstream.catalogue.conftest import make_statement
from tests.optstream.catalogue.folders import take_back
from tests.optstream.catalogue.measurements.test_measurements_file import (
    MECHANISM,
    MODEL,
    TREE,
    with_footer,
)

N_STEPS, N_REPLICATES = 24, 400
DAYS = [date(2016, 2, 1) + timedelta(days=number) for number in range(3)]
LAPLACE = Hierarchical(Laplace(MODEL), TREE, MECHANISM.level_shares)


def rows_of(day, release, vintage):
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    parents = [None if parent < 0 else TREE.nodes[parent] for parent in TREE.parents]
    whole = [
        {
            **{"date": day, "step": step, "timestamp": midnight + timedelta(hours=step)},
            **{"node": node, "parent": parents[place], "level": int(TREE.depths[place])},
            **{"load_mw": float(release.values[place, step]), "load_mw_noise_se": None, "load_mw_se": None},
            **{"revision": 0, "vintage": vintage},
        }
        for place, node in enumerate(TREE.nodes)
        for step in range(N_STEPS)
    ]
    kinds = {name: pl.Float64() for name in ("load_mw_noise_se", "load_mw_se")}
    return pl.DataFrame(whole, schema_overrides={"timestamp": pl.Datetime("us", "UTC"), **kinds})


def put(folder, mechanism, day, measured, *, later=(), stated=True, change=None):
    """Publish a day's release with the files beside it, or a new estimate of it, `later`."""
    release = mechanism.revise(measured, [one for _, one in later])
    facts = {"period": day, "revision": 0, "rounding": "nearest", "least_units": 0}
    file = encode_measurements(measured, mechanism, **facts)
    file = file if change is None else with_footer(file, change)
    of, drawn = release.replicates(N_REPLICATES)
    errors = encode_replicates(Replicates.labelled(day, of, TREE.nodes, release.unbounded, drawn))
    beside = {sha256(data).hexdigest(): data for data in (file, errors)}
    of_measured, of_errors = beside
    vintage = int(bool(later))
    about = {
        "measurements": StatedMeasurements(file_hash=of_measured, later=tuple(one for one, _ in later)),
        "errors": StatedErrors(file_hash=of_errors, of=of, replicates=N_REPLICATES),
    }
    statement = make_statement(day, 0, vintage, model=MODEL, **(about if stated else {}))
    staged = replace(stage(rows_of(day, release, vintage), statement), beside=beside if stated else {})
    publish(folder, [(staged, statement)], lambda _: "h1")


def measured_days(mechanism):
    noise, state, spends, found = simulated_noise(4), None, [], []
    for number, day in enumerate(DAYS):
        values = np.full((2, N_STEPS), 50.0 + number)
        state = mechanism.recall(spends, state)
        measured = mechanism.measure(values, noise=noise, first_step=N_STEPS * number, state=state)
        state, spends = measured.state, [*spends, *measured.spends]
        found.append((day, measured))
    return found


@pytest.fixture(scope="module", params=[MECHANISM, LAPLACE], ids=["HistoryInformed", "Laplace"])
def mechanism(request):
    return request.param


@pytest.fixture(scope="module")
def days(mechanism):
    return measured_days(mechanism)


@pytest.fixture(scope="module")
def made_once(tmp_path_factory, mechanism, days):
    folder = tmp_path_factory.mktemp("published")
    for day, measured in days:
        put(folder, mechanism, day, measured)
    return folder


@pytest.fixture
def folder(tmp_path, made_once):
    return shutil.copytree(made_once, tmp_path / "published")


def test_the_release_is_estimated_again_to_the_last_bit(folder, mechanism, days):
    assert check_files(folder) == []
    for day, measured in days:
        found = read_measurements(folder, day)
        assert found.mechanism == mechanism
        assert found.measured.to_bytes() == measured.to_bytes()
        release = mechanism.estimate(measured)
        assert np.array_equal(found.release().values, release.values)
        units = found.values() * MODEL.resolution.denominator
        assert np.allclose(units, np.round(units), rtol=0, atol=1e-6)  # floats of exact thousandths
        assert np.abs(found.values() - np.maximum(release.values, 0)).max() < 4 * MODEL.resolution


def test_of_a_new_estimate_the_later_days_are_read_too(folder, mechanism, days):
    (first, own), *later = days
    put(folder, mechanism, first, own, later=later)
    found = read_measurements(folder, first)
    assert [one.to_bytes() for one in found.later] == [one.to_bytes() for _, one in later]
    again = mechanism.revise(own, [one for _, one in later])
    assert np.array_equal(found.release().values, again.values)
    assert np.array_equal(again.values, mechanism.estimate(own).values) == (not mechanism.revises)


def test_a_sum_has_the_errors_of_its_days_together(folder, mechanism, days):
    alone = [read_sum(folder, ["a"], day, day) for day in DAYS]
    whole = read_sum(folder, ["a"], DAYS[0], DAYS[-1])
    assert whole.value == pytest.approx(sum(one.value for one in alone))
    # each step of Laplace is measured: the noise is the whole error, and independent from day to day
    apart = np.linalg.norm([one.standard_error for one in alone])
    own = mechanism.estimate(days[0][1]).sum(["a"]).standard_error
    # standard errors of 400 and 50 replicates: beyond 5 of their own deviations with less than 1e-6
    assert alone[0].standard_error == pytest.approx(own, rel=0.55)
    if mechanism.days_independent:
        assert whole.standard_error == pytest.approx(apart, rel=0.2)
    else:
        assert 1.2 * apart < whole.standard_error < sum(one.standard_error for one in alone)
        assert whole.noise_standard_error is None


def test_what_is_not_there_or_not_what_it_was_is_refused(folder, mechanism, days):
    with pytest.raises(PublicationError, match="2016-02-09 is not published"):
        read_measurements(folder, date(2016, 2, 9))
    (file,) = (folder / f"measurements/date={DAYS[0]}").iterdir()
    data = file.read_bytes()
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(PublicationError, match="differs from its hash"):
        read_measurements(folder, DAYS[0])
    assert any("is not what its name says" in line for line in check_files(folder))
    file.rename(folder / "away")
    with pytest.raises(PublicationError, match="is missing"):
        read_measurements(folder, DAYS[0])
    if mechanism.adaptive:  # what a later day remembers of it cannot be told
        with pytest.raises(PublicationError, match="rests on measurements of earlier days"):
            read_measurements(folder, DAYS[-1])
    (folder / "away").rename(file)
    file.write_bytes(data)
    stray = file.with_name("stray")
    stray.touch()
    assert any("is of no listed day" in line for line in check_files(folder))
    stray.unlink()
    take_back(folder, DAYS[1])
    with pytest.raises(PublicationError, match="was withdrawn"):
        read_measurements(folder, DAYS[1])


def of_tree(**changed):
    return lambda footer: footer["mechanism"]["tree"].update(changed)


@pytest.mark.parametrize(
    "change",
    [
        lambda footer: footer.update(levels=[0, 1, 2]),
        lambda footer: footer["measured"].update(state={"levels": {"x": {"history": {}}}}),
        lambda footer: footer["measured"]["parts"][1].update(spends=[]),
        lambda footer: footer["measured"]["parts"].pop(),
        lambda footer: footer["mechanism"].update(level_shares=[]),
        lambda footer: footer["mechanism"].update(lower_bound={"kind": "range", "first": 0, "stop": 10**12}),
        of_tree(nodes=["all", "a"], parents=[-1, 0]),
        of_tree(parents=[-1, 10**9, 0]),
        lambda footer: footer.update(rounding=["nearest"]),
        lambda footer: footer.update(least_units=10**40),
    ],
)
def test_what_another_wrote_is_refused_in_words_and_never_half_read(tmp_path, mechanism, days, change):
    put(tmp_path, mechanism, *days[0], change=change)
    with pytest.raises(PublicationError):
        read_measurements(tmp_path, DAYS[0]).values()
