"""A staged release: the same bytes of the same rows, and a statement that claims no more than it may."""

import hashlib
import itertools
import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from optstream.catalogue import CountBands, band_columns, publish, read_published, read_staged, stage
from optstream.catalogue.rows import hash_rows, holds_each_once, ordered_rows, schema
from optstream.catalogue.standard_errors import read_sum
from optstream.catalogue.statement import Consistency, Constraints, Footer, LongSpan, ReleaseStatement, encode
from optstream.errors import ParameterError, PublicationError
from optstream.estimation.constraints import NO_ANSWER, Kept
from optstream.estimation.estimate import Optimality
from optstream.privacy import PrivacyModel
from tests.optstream.catalogue.conftest import make_rows, make_statement
from tests.optstream.catalogue.folders import DAY, NEXT

STATED = "load_mw", {"date": DAY, "revision": 1, "vintage": 1}, True


def test_same_rows_and_statement_give_the_same_bytes():
    first = stage(make_rows(DAY), make_statement(DAY))
    shuffled = make_rows(DAY).sample(fraction=1.0, shuffle=True, seed=3)
    chunked = pl.concat([shuffled[:5], shuffled[5:]], rechunk=False).select(reversed(shuffled.columns))
    assert stage(chunked, make_statement(DAY)) == first
    assert first.file_hash == hashlib.sha256(first.data).hexdigest()
    assert first.name == f"release-{first.file_hash}.parquet"


def test_rows_hash_sees_every_cell():
    """Change each column at one row: a hash that skipped a column or a null would not move."""
    ordered = ordered_rows(make_rows(DAY), *STATED)
    changes = {
        "date": date(2016, 2, 2),
        "step": 3,
        "timestamp": datetime(2016, 2, 1, 13, tzinfo=UTC),
        "node": "FQ",
        "parent": "84",
        "level": 7,
        "load_mw": 0.125,
        "load_mw_noise_se": 0.125,
        "load_mw_se": 0.125,
        "revision": 2,
        "vintage": 2,
    }
    hashes = {hash_rows(ordered)}
    for name, value in changes.items():
        cell = pl.lit(value, dtype=schema("load_mw")[name])
        changed = ordered.with_row_index("i").with_columns(
            pl.when(pl.col("i") == 4).then(cell).otherwise(pl.col(name)).alias(name)
        )
        hashes.add(hash_rows(changed.drop("i")))
    assert len(hashes) == 1 + len(changes)
    # and tells null from empty, and moved letters
    names = (("", "a"), (None, "a"), ("a", ""), ("ab", "c"), ("a", "bc"))
    columns = [pl.DataFrame({"node": pl.Series(two, dtype=pl.String)}) for two in names]
    assert len(set(map(hash_rows, columns))) == len(names)


@pytest.mark.parametrize(
    ("spoil", "rule"),
    [
        (lambda rows: rows.drop("parent"), "columns"),
        (lambda rows: rows.with_columns(extra=1), "columns"),
        (lambda rows: rows.with_columns(pl.col("load_mw").cast(pl.String)), "column load_mw"),
        (lambda rows: rows.with_columns(pl.col("timestamp").dt.replace_time_zone(None)), "column timestamp"),
        (lambda rows: rows.with_columns(step=pl.lit(1234567890123)), "32 bits"),
        (lambda rows: rows.with_columns(node=pl.lit(None, dtype=pl.String)), "column node .* null"),
        (lambda rows: rows.with_columns(load_mw=pl.lit(None, dtype=pl.Float64)), "column load_mw .* null"),
        (lambda rows: rows.with_columns(pl.col("date") + timedelta(days=1)), "column date"),
        (lambda rows: rows.with_columns(revision=2), "column revision"),
        (lambda rows: rows.with_columns(vintage=2), "column vintage"),
        (lambda rows: rows[:-1], "exactly once"),
        (lambda rows: pl.concat([rows[:-1], rows[:1]]), "exactly once"),
        (lambda rows: rows[:0], "exactly once"),
    ],
)
def test_what_is_not_a_whole_period_is_refused(spoil, rule):
    with pytest.raises(PublicationError, match=rule) as caught:
        stage(spoil(make_rows(DAY)), make_statement(DAY))
    assert "1234567890123" not in str(caught.value), "no value is shown"


def test_each_node_once_at_each_step_is_found_as_by_counting():
    """All frames of up to four rows over two steps and two nodes, in any order."""
    cells = list(itertools.product((0, 1), ("a", "b")))
    n_whole = 0
    for size in range(5):
        for chosen in itertools.product(cells, repeat=size):
            rows = pl.DataFrame(list(chosen), schema={"step": pl.Int32, "node": pl.String}, orient="row")
            steps, nodes = {step for step, _ in chosen}, {node for _, node in chosen}
            is_whole = size > 0 and sorted(chosen) == sorted(itertools.product(steps, nodes))
            assert holds_each_once(rows) == is_whole, chosen
            n_whole += is_whole
    assert n_whole == 4 + 4 * 2 + 24


def test_a_file_without_the_footer_or_with_other_rows_is_refused(tmp_path):
    make_rows(DAY).write_parquet(tmp_path / "plain.parquet")
    with pytest.raises(PublicationError, match="footer"):
        read_staged((tmp_path / "plain.parquet").read_bytes())
    ordered = ordered_rows(make_rows(DAY), *STATED)
    lying = encode(ordered, Footer(hash_rows(ordered[::-1]), make_statement(DAY).to_json()))
    with pytest.raises(PublicationError, match="hash in its footer"):
        read_staged(lying)
    fewer = ordered.drop("parent")
    with pytest.raises(PublicationError, match="other columns than a release has"):
        read_staged(encode(fewer, Footer(hash_rows(fewer), make_statement(DAY).to_json())))


# What a release says about itself.

MONTH = LongSpan.rounded(30, 7.549601781, Fraction(1, 10**6), Fraction(7217, 240), "draws")
DONE, STOPPED = Optimality(7.7e-24, 1.9e-12, 8, True), Optimality(0.0123, 0.11, 50, False)
FULL = {"long_spans": (MONTH,), "consistency": Consistency.rounded(DONE)}


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon_own": Fraction(10**99 + 1, 3**200)},
        {"supplier_rounding": Fraction(1, 3)},
        FULL,
        {"consistency": Consistency.rounded(STOPPED)},
    ],
)
def test_the_document_is_json_and_reads_back(changes):
    stated = make_statement(DAY, **changes)
    document = json.loads(json.dumps(stated.to_json(), allow_nan=False))
    assert ReleaseStatement.read(document) == stated
    assert ReleaseStatement.read(document).to_json() == document


WORDS = {
    "the plan's cost, rounded up": (
        {"epsilon_plan": Fraction(50, 3)},
        ["also where it straddles periods", "at most 16.6667;", "alone cost at most 0.6667"],
        ["paper", "days in a row"],
    ),
    # next to days of another plan, the grant's figure holds for their windows
    "another plan": (
        {"epsilon_plan": Fraction(1, 10)},
        ["with epsilon at most 0.1;", "privacy budget costs at most 1 with all of them together"],
        [],
    ),
    "aligned windows": ({"model": PrivacyModel("1", 48, 10, windows="aligned")}, ["not covered"], []),
    "roaming": (
        {"model": PrivacyModel("1", 48, 10, unit="roaming", leaves_per_step=3)}, ["up to 3 leaves"], []
    ),
    "the paper's calibration": (
        {"calibration": "paper", "epsilon_plan": Fraction(49, 2)}, ["24.5", "not the 1 that was asked"], []
    ),
    "simulated noise": ({"simulated": True}, ["protects nobody"], ["at most"]),
    "the guarantee and its border": (
        {},
        ["at most 10 in the unit of load_mw", "costs at most c times epsilon", "outside the guarantee"],
        ["presence or absence"],
    ),
    "rounding by the supplier": (
        {"supplier_rounding": Fraction(1, 3)}, ["changes of each reading by at most 9.6666 in the unit"], []
    ),
    "a small alpha": (
        {"model": replace(make_statement(DAY).model, alpha=Fraction(1, 100_000))}, ["at most 1/100000 in"], []
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "said", "unsaid"), WORDS.values(), ids=WORDS)
def test_words_state_the_accounted_cost_rounded_up_and_claim_no_more(changes, said, unsaid):
    words = make_statement(DAY, **changes).privacy_in_words
    assert [one for one in said if one not in words] == []
    assert [one for one in unsaid if one in words] == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "not recorded"),
        ({"bounds": (0, 10)}, "not recorded"),
        ({"metered": True}, "not recorded"),
        ({"bounds": (0, 10), "metered": False}, "at all is not covered"),
        ({"bounds": (0, 10), "metered": True}, "is covered as a change"),
        ({"bounds": (0, 11), "metered": True}, "up to 11 in each reading, which costs 2 times epsilon"),
        (
            {"bounds": ("-20.5", 1), "metered": True},
            "up to 20.5 in each reading, which costs 3 times epsilon",
        ),
        ({"bounds": (100, 101), "metered": True}, "up to 101 in each reading, which costs 11 times epsilon"),
    ],
)
def test_presence_is_covered_as_bounds_and_schema_of_the_day_have_it(changes, said):
    """By line 3 of section 1 of docs/privacy.md, alpha 10; what is not recorded counts as not covered."""
    exact = {key: tuple(map(Fraction, one)) if key == "bounds" else one for key, one in changes.items()}
    stated = make_statement(DAY, **exact)
    assert said in stated.privacy_in_words or "covered only where each row" in stated.privacy_in_words
    assert said in stated.terms_in_words
    assert ReleaseStatement.read(json.loads(json.dumps(stated.to_json()))) == stated
    assert set(changes) == {"bounds", "metered"} & set(stated.to_json())


@pytest.mark.parametrize(
    "amount", [Fraction(1, 3), Fraction(99995, 10), Fraction(365), Fraction(1, 10**7), 0]
)
def test_what_a_long_span_loses_is_rounded_up_to_a_few_digits(amount):
    span = LongSpan.rounded(30, float(amount), Fraction(1, 10), Fraction(amount), "plain")
    assert amount <= span.plain_sum <= amount * Fraction(1001, 1000)
    assert float(amount) <= span.epsilon


def test_figures_of_a_certificate_are_rounded_up_and_last_bits_are_left_out():
    rounded = Consistency.rounded
    least = Consistency(gap=1e-18, residual=1e-9, rounds=8, converged=True)
    assert rounded(DONE) == rounded(Optimality(1.6e-28, 7e-15, 8, True)) == least
    found = rounded(STOPPED)
    assert found == Consistency(gap=0.02, residual=0.2, rounds=50, converged=False)
    assert rounded(Optimality(found.gap, found.residual, 50, False)) == found


WRONG = [
    ("stream", ""),
    ("stream", "two\nlines"),
    ("revision", -1),
    ("vintage", True),
    ("step_minutes", 0),
    ("epsilon_plan", 1.0),
    ("epsilon_own", Fraction(-1)),
    ("calibration", "loose"),
    ("day", "local"),
    ("period", datetime(2016, 2, 1, tzinfo=UTC)),
    ("simulated", 0),
    ("value_column", "node"),
    ("value_column", "a b"),
    ("value_column", "Date"),
    ("supplier_rounding", Fraction(10)),
]
OF_SPANS = [
    ("n_days", 0),
    ("n_days", True),
    ("epsilon", 1.5),
    ("plain_sum", Fraction(-1)),
    ("delta", Fraction(1)),
    ("composed", "guessed"),
]


@pytest.mark.parametrize(
    ("made", "field", "value"),
    [*((make_statement(DAY), *one) for one in WRONG), *((MONTH, *one) for one in OF_SPANS)],
)
def test_a_wrong_field_is_named(made, field, value):
    with pytest.raises(ParameterError, match=field):
        made.changed(**{field: value})


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("noise", [None]), ("format", "other/1"), ("period", "2016-02-31"), ("privacy_model", [1]),
        ("epsilon_plan", "1e999999999"), ("epsilon_own", "1/0"), ("privacy_model extra", 1),
        ("mechanism", []), ("long_spans n_days", 0), ("long_spans composed", "guessed"),
        ("consistency gap", -1.0), ("consistency residual", np.nan), ("consistency rounds", True),
        ("consistency converged", None),
    ],
)  # fmt: skip
def test_another_document_is_refused(place, value):
    document = make_statement(DAY, **FULL).to_json()
    part, _, field = place.partition(" ")
    within = document[part] if field else document
    (within[0] if isinstance(within, list) else within)[field or part] = value
    with pytest.raises(PublicationError, match="statement"):
        ReleaseStatement.read(document)


def with_bands(rows):
    return rows.with_columns(
        pl.when(pl.col("step") != 3).then(value).alias(name)
        for name, value in zip(band_columns("load_mw"), (0.0, 7.0), strict=True)
    )


def test_a_staged_release_has_the_columns_that_it_states():
    stated = make_statement(DAY, bands=CountBands(known="some"))
    staged = stage(with_bands(make_rows(DAY)), stated)
    assert read_staged(staged.data) == staged
    for table, other in ((make_rows(DAY), stated), (with_bands(make_rows(DAY)), make_statement(DAY))):
        with pytest.raises(PublicationError, match="have the columns"):
            stage(table, other)


def test_counts_have_a_column_to_add_up_and_older_ones_lack_it(tmp_path):
    """`read_sum` takes it where no replicates are known; a day without it makes the sum that of values."""

    def put(day, **estimate):
        stated = make_statement(day, bands=CountBands(known="some", **estimate))
        table = with_bands(make_rows(day))
        table = table.with_columns(load_mw_estimate=pl.col("load_mw") - 0.5) if estimate else table
        publish(tmp_path, [stage(table, stated)], lambda _: "head-0")

    put(DAY, estimate=True)
    one = read_sum(tmp_path, ["FR"], DAY, DAY)
    n_steps = make_rows(DAY).filter(pl.col("node") == "FR").height
    assert one.estimate == pytest.approx(one.value - 0.5 * n_steps)
    put(NEXT)
    read = read_published(tmp_path, verify=True)
    assert read.columns[9:12] == ["load_mw_low", "load_mw_high", "load_mw_estimate"]
    assert read.filter(pl.col("date") == NEXT)["load_mw_estimate"].null_count() == 12
    both = read_sum(tmp_path, ["FR"], DAY, NEXT)
    assert both.estimate == both.value


@pytest.mark.parametrize(("gap", "keeps"), [(0.01, True), (NO_ANSWER, False)])
def test_facts_are_called_kept_only_where_the_solver_found_values(gap, keeps):
    kept = Kept(np.zeros((1, 2)), (), gap, converged=keeps)
    words = Constraints.rounded(({"at_most": "5"},), kept, 2.0).in_words
    assert ("nearest to the estimate that keep" in words, "found no values" in words) == (keeps, not keeps)
