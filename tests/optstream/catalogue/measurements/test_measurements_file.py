"""The bytes of a file of measurements: read back as they were, and refused where they are something else."""

import json
from datetime import date
from fractions import Fraction

import numpy as np
import pytest

from optstream import (
    AggregationTree,
    Fourier,
    Hierarchical,
    HistoryInformed,
    HistoryInformedTree,
    Laplace,
    PrivacyModel,
    simulated_noise,
)
from optstream.catalogue.measurements import (
    KEY,
    LARGEST_NUMBER,
    LIMITS,
    MOST_ENTRIES,
    blocks_of,
    completed,
    decode_measurements,
    describe,
    encode_measurements,
    mechanism_from,
)
from optstream.errors import PublicationError
from optstream.storage.parquet import decode_table, encode_table
from optstream.stream import PublicDays

MODEL = PrivacyModel(epsilon=1, window_length=24, alpha=1)
TREE = AggregationTree.from_parents({"all": None, "a": "all", "b": "all"})
PATTERN = HistoryInformed(MODEL, n_blocks=4, block_length=1, scale=50.0, days=PublicDays(24))
MECHANISM = HistoryInformedTree(PATTERN, TREE, (Fraction(1, 4), Fraction(3, 4)))


@pytest.fixture(scope="module")
def days():
    """Three days' measurements and their files."""
    noise, state, found = simulated_noise(1), None, []
    for number in range(3):
        values = np.full((2, 24), 50.0 + number)
        spends = [spend for measured, _ in found for spend in measured.spends]
        before = MECHANISM.recall(spends, state)
        measured = MECHANISM.measure(values, noise=noise, first_step=24 * number, state=before)
        state = measured.state
        facts = {"period": date(2016, 2, 1 + number), "revision": 0}
        file = encode_measurements(measured, MECHANISM, **facts, rounding="nearest", least_units=0)
        found.append((measured, file))
    return found


def test_the_whole_comes_back_from_the_files_of_the_days_that_it_remembers(days):
    found = [decode_measurements(file) for _, file in days]
    known = {}
    for one, (measured, _) in zip(found, days, strict=True):
        assert completed(one, known).to_bytes() == measured.to_bytes()
        known |= blocks_of(one.measured, one.levels)


def test_a_day_alone_or_beside_another_measurement_of_a_day_is_refused(days):
    last = decode_measurements(days[-1][1])
    with pytest.raises(PublicationError, match="rests on measurements of earlier days"):
        completed(last, {})
    known = {}
    for _, file in days[:-1]:
        one = decode_measurements(file)
        known |= blocks_of(one.measured, one.levels)
    (block, sums), *_ = known.items()
    with pytest.raises(PublicationError, match="rests on other measurements"):
        completed(last, known | {block: tuple(value + 1 for value in sums)})


def with_footer(file, change):
    """The file with a footer that says something else of the same rows."""
    rows, metadata = decode_table(file, LIMITS, "a file of measurements")
    footer = json.loads(metadata[KEY])
    change(footer)
    return encode_table(rows, {KEY: json.dumps(footer).encode()})


def of_part(**changed):
    return lambda footer: footer["measured"]["parts"][0].update(changed)


HOSTILE = {
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


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_a_footer_that_claims_too_much_is_refused_before_anything_is_held(days, change):
    """Nine kilobytes took five gigabytes, and more for a larger number."""
    with pytest.raises(PublicationError, match="no file of measurements"):
        decode_measurements(with_footer(days[0][1], change))


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
def test_a_document_of_another_form_is_refused_in_words(days, change):
    with pytest.raises(PublicationError, match="no file of measurements"):
        completed(decode_measurements(with_footer(days[0][1], change)), {})


def test_a_mechanism_with_numbers_of_no_stream_is_not_made():
    plain = Hierarchical(Laplace(MODEL), TREE, (Fraction(1, 4), Fraction(3, 4)))
    document = json.loads(json.dumps(describe(plain)))
    assert mechanism_from(document) == plain
    nodes, parents = document["tree"]["nodes"], document["tree"]["parents"]
    for tree in (
        {"nodes": [], "parents": []},
        {"nodes": nodes, "parents": []},
        {"nodes": nodes, "parents": [-1, 10**9, 0]},
        {"nodes": nodes, "parents": [-1, 2, 0]},
        {"nodes": nodes, "parents": [-1, 0.0, 0]},
        {"nodes": nodes, "parents": {"kind": "range", "first": 0, "stop": 10**12}},
        {"nodes": [1, 2, 3], "parents": parents},
        {"nodes": "all", "parents": parents},
    ):
        with pytest.raises(PublicationError, match="no mechanism"):
            mechanism_from({**document, "tree": {**document["tree"], **tree}})
    document["mechanism"]["model"]["window_length"] = 10**12
    with pytest.raises(PublicationError, match="no mechanism"):
        mechanism_from(document)


def test_a_mechanism_comes_back_equal_and_nothing_else_is_ever_made():
    document = json.loads(json.dumps(describe(MECHANISM)))
    assert mechanism_from(document) == MECHANISM
    for other in ({**document, "kind": "system"}, {"kind": "Feature", "parts": [], "name": "?"}, {}):
        with pytest.raises(PublicationError, match="no mechanism"):
            mechanism_from(other)


def test_a_window_whose_noise_would_take_long_to_find_is_refused():
    document = json.loads(json.dumps(describe(Fourier(MODEL))))
    assert mechanism_from(document) == Fourier(MODEL)
    document["model"]["window_length"] = LARGEST_NUMBER
    with pytest.raises(PublicationError, match="no mechanism"):
        mechanism_from(document)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"{}" * 100])
def test_other_bytes_are_refused(data):
    with pytest.raises(PublicationError, match="file of measurements"):
        decode_measurements(data)
