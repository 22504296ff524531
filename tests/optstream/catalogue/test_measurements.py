"""Measurements: their file, which is refused where it is something else, and the release made of it again."""

import json
import shutil
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from hashlib import sha256

import numpy as np
import pytest

from optstream import AggregationTree, PrivacyModel, read_measurements, read_sum, simulated_noise
from optstream.catalogue import StatedErrors, StatedMeasurements, check_files, measurements, publish, stage
from optstream.catalogue.measurements import LARGEST_NUMBER, MOST_ENTRIES, completed, decode_measurements
from optstream.catalogue.standard_errors import Replicates, encode_replicates
from optstream.errors import PublicationError
from optstream.mechanisms import Fourier, Hierarchical, HistoryInformed, HistoryInformedTree, Laplace
from optstream.storage.parquet import decode_table, encode_table
from optstream.stream import PublicDays
from tests.optstream.catalogue.conftest import make_statement, tree_frame

N_STEPS, N_REPLICATES = 24, 400
DAYS = [date(2016, 2, 1) + timedelta(days=number) for number in range(3)]
MODEL = PrivacyModel(epsilon=1, window_length=24, alpha=1)
TREE = AggregationTree.from_parents({"all": None, "a": "all", "b": "all"})
PATTERN = HistoryInformed(MODEL, n_blocks=4, block_length=1, scale=50.0, days=PublicDays(24))
MECHANISM = HistoryInformedTree(PATTERN, TREE, (Fraction(1, 4), Fraction(3, 4)))
LAPLACE = Hierarchical(Laplace(MODEL), TREE, MECHANISM.level_shares)


def measured_days(mechanism):
    noise, state, spends, found = simulated_noise(4), None, [], []
    for number, day in enumerate(DAYS):
        values = np.full((2, N_STEPS), 50.0 + number)
        state = mechanism.recall(spends, state)
        measured = mechanism.measure(values, noise=noise, first_step=N_STEPS * number, state=state)
        state, spends = measured.state, [*spends, *measured.spends]
        found.append((day, measured))
    return found


def file_of(mechanism, day, measured):
    facts = {"period": day, "revision": 0, "rounding": "nearest", "least_units": 0}
    return measurements.encode_measurements(measured, mechanism, **facts)


@pytest.fixture(scope="module")
def files():
    return [(measured, file_of(MECHANISM, day, measured)) for day, measured in measured_days(MECHANISM)]


def with_footer(file, change):
    rows, metadata = decode_table(file, measurements.LIMITS, "a file of measurements")
    footer = json.loads(metadata[measurements.KEY])
    change(footer)
    return encode_table(rows, {measurements.KEY: json.dumps(footer).encode()})


def test_the_whole_comes_back_from_the_files_of_the_days_that_it_remembers(files):
    known, blocks = {}, {}
    for measured, file in files:
        last = decode_measurements(file)
        assert completed(last, known).to_bytes() == measured.to_bytes()
        blocks, known = known, known | measurements.blocks_of(last.measured, last.levels)
    with pytest.raises(PublicationError, match="rests on measurements of earlier days"):
        completed(last, {})
    (block, sums), *_ = blocks.items()
    with pytest.raises(PublicationError, match="rests on other measurements"):
        completed(last, blocks | {block: tuple(value + 1 for value in sums)})


def of_part(**changed):
    return lambda footer: footer["measured"]["parts"][0].update(changed)


TOO_MUCH = {
    "2 million entries of which none was drawn": of_part(
        points={"shape": [1, 2 * MOST_ENTRIES]}, point_variances=None
    ),
    "many small arrays": of_part(sums=[{"shape": [1, MOST_ENTRIES // 4]}] * 8, sum_variances=[None] * 8),
    "entries that no index counts": of_part(points={"shape": [10**30]}),
    "a negative shape": of_part(points={"shape": [-1, -1]}),
    "a day of a million steps": lambda footer: footer["measured"].update(n_steps=10**6),
    "a part of other steps": of_part(n_steps=10**6),
    "steps that no index counts": lambda footer: footer["measured"].update(first_step=10**30),
    "no document": lambda footer: footer.update(measured=[]),
}


@pytest.mark.parametrize("change", TOO_MUCH.values(), ids=TOO_MUCH)
def test_a_footer_that_claims_too_much_is_refused_before_anything_is_held(files, change):
    """Nine kilobytes took five gigabytes, and more for a larger number."""
    with pytest.raises(PublicationError, match="no file of measurements"):
        decode_measurements(with_footer(files[0][1], change))


@pytest.mark.parametrize(
    "change",
    [
        lambda footer: footer.update(levels=[0, 1, 2]),
        lambda footer: footer.update(levels=[{}, {}]),
        lambda footer: footer["measured"]["state"]["levels"]["0"].update(history={}),
        lambda footer: footer["measured"]["state"]["levels"]["0"].update(history={"starts": 1}),
        of_part(choices={"blocks": [[0]]}),
        of_part(answers=None, spends=[{}]),
    ],
)
def test_a_document_of_another_form_is_refused_in_words(files, change):
    with pytest.raises(PublicationError, match="no file of measurements"):
        completed(decode_measurements(with_footer(files[0][1], change)), {})


def in_tree(**changed):
    return lambda document: document["tree"].update(changed)


@pytest.mark.parametrize(
    ("mechanism", "change"),
    [
        (LAPLACE, in_tree(nodes=[], parents=[])),
        (LAPLACE, in_tree(parents=[])),
        (LAPLACE, in_tree(parents=[-1, 10**9, 0])),
        (LAPLACE, in_tree(parents=[-1, 2, 0])),
        (LAPLACE, in_tree(parents=[-1, 0.0, 0])),
        (LAPLACE, in_tree(parents={"kind": "range", "first": 0, "stop": 10**12})),
        (LAPLACE, in_tree(nodes=[1, 2, 3])),
        (LAPLACE, in_tree(nodes="all")),
        (LAPLACE, lambda document: document["mechanism"]["model"].update(window_length=10**12)),
        # a window whose noise would take long to find
        (Fourier(MODEL), lambda document: document["model"].update(window_length=LARGEST_NUMBER)),
        (MECHANISM, lambda document: document.update(kind="system")),
        (MECHANISM, lambda document: (document.clear(), document.update(kind="Feature", parts=[], name="?"))),
        (MECHANISM, lambda document: document.clear()),
    ],
)
def test_a_mechanism_comes_back_equal_and_nothing_else_is_ever_made(mechanism, change):
    document = json.loads(json.dumps(measurements.describe(mechanism)))
    assert measurements.mechanism_from(document) == mechanism
    change(document)
    with pytest.raises(PublicationError, match="no mechanism"):
        measurements.mechanism_from(document)


def put(folder, mechanism, day, measured, change=None):
    """Publish a day's release with the files that belong to it."""
    release, file = mechanism.estimate(measured), file_of(mechanism, day, measured)
    file = file if change is None else with_footer(file, change)
    of, drawn = release.replicates(N_REPLICATES)
    errors = encode_replicates(Replicates.labelled(day, of, TREE.nodes, release.estimate, drawn))
    attachments = {sha256(data).hexdigest(): data for data in (file, errors)}
    of_measured, of_errors = attachments
    stated = {
        "measurements": StatedMeasurements(file_hash=of_measured),
        "errors": StatedErrors(file_hash=of_errors, of=of, replicates=N_REPLICATES),
    }
    rows = tree_frame(day, TREE, release.values.tolist())
    staged = stage(rows, make_statement(day, 0, 0, model=MODEL, **stated))
    publish(folder, [replace(staged, attachments=attachments)], lambda _: "h1")


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


def test_values_of_a_file_are_rounded_and_no_less_than_0(folder, mechanism, days):
    assert check_files(folder) == []
    for day, measured in days:
        values = read_measurements(folder, day).values()
        units = values * MODEL.resolution.denominator
        assert np.allclose(units, np.round(units), rtol=0, atol=1e-6)  # floats of exact thousandths
        assert (
            np.abs(values - np.maximum(mechanism.estimate(measured).values, 0)).max() < 4 * MODEL.resolution
        )


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


def test_what_is_not_there_or_not_what_it_was_is_refused(folder):
    def refused(day, words):
        with pytest.raises(PublicationError, match=words):
            read_measurements(folder, day)

    refused(date(2016, 2, 9), "2016-02-09 is not published")
    (file,) = (folder / f"measurements/date={DAYS[0]}").iterdir()
    data = file.read_bytes()
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    refused(DAYS[0], "differs from its hash")
    assert any("differs from the hash in its name" in line for line in check_files(folder))
    file.rename(folder / "away")
    refused(DAYS[0], "is missing")
    (folder / "away").rename(file)
    file.write_bytes(data)
    file.with_name("stray").touch()
    assert any("is of no listed day" in line for line in check_files(folder))


@pytest.mark.parametrize(
    "change",
    [
        lambda footer: footer["measured"].update(state={"levels": {"x": {"history": {}}}}),
        lambda footer: footer["measured"]["parts"][1].update(spends=[]),
        lambda footer: footer["measured"]["parts"].pop(),
        lambda footer: footer["mechanism"].update(level_shares=[]),
        lambda footer: footer["mechanism"].update(lower_bound={"kind": "range", "first": 0, "stop": 10**12}),
        lambda footer: footer["mechanism"]["tree"].update(nodes=["all", "a"], parents=[-1, 0]),
        lambda footer: footer.update(rounding=["nearest"]),
        lambda footer: footer.update(least_units=10**40),
    ],
)
def test_what_another_wrote_is_refused_in_words_and_never_half_read(tmp_path, mechanism, days, change):
    put(tmp_path, mechanism, *days[0], change=change)
    with pytest.raises(PublicationError):
        read_measurements(tmp_path, DAYS[0]).values()
