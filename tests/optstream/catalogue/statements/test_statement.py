"""What a release says about itself: exact, readable back, and no more than may be claimed."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction

import polars as pl
import pytest

from optstream.catalogue import (
    CountBands,
    LongSpan,
    ReleaseStatement,
    band_columns,
    publish,
    read_published,
    read_staged,
    stage,
)
from optstream.catalogue.statement import Consistency
from optstream.errors import ParameterError, PublicationError
from optstream.estimation.estimate import Optimality
from optstream.privacy import PrivacyModel
from tests.optstream.catalogue.folders import DAY, NEXT


def test_the_document_is_json_and_reads_back(statement):
    stated = statement(DAY, epsilon_own=Fraction(10**99 + 1, 3**200))
    document = json.loads(json.dumps(stated.to_json(), allow_nan=False))
    assert ReleaseStatement.read(document) == stated
    assert document["epsilon_plan"] == "1"
    assert document["noise"] == [
        {"level": 0, "stage": "samples", "scale": "400", "scale_units": "400000"},
        {"level": 1, "stage": "sparse vector", "scale": None, "scale_units": None},
    ]
    assert document["privacy_model"]["window_length"] == 48


def test_words_state_the_accounted_cost_rounded_up(statement):
    words = statement(DAY, epsilon_plan=Fraction(50, 3)).privacy_in_words
    assert "48 consecutive steps of 30 minutes (also where it straddles periods)" in words
    assert "at most 16.6667;" in words
    assert "alone cost at most 0.6667" in words
    assert "at most 10 in the unit of load_mw" in words
    assert "outside the guarantee" in words
    assert "paper" not in words


def test_words_state_what_windows_over_different_plans_cost(statement):
    """A plan of 0.1 beside days of another plan: what holds for their windows is the grant's figure."""
    words = statement(DAY, epsilon_plan=Fraction(1, 10)).privacy_in_words
    assert "with epsilon at most 0.1;" in words
    assert "releases made under another plan" in words
    assert "privacy budget costs at most 1 with all of them together" in words


def test_words_name_weaker_guarantees(statement):
    assert (
        "not covered" in statement(DAY, model=PrivacyModel("1", 48, 10, windows="aligned")).privacy_in_words
    )
    roaming = PrivacyModel("1", 48, 10, unit="roaming", leaves_per_step=3)
    assert "up to 3 leaves" in statement(DAY, model=roaming).privacy_in_words
    paper = statement(DAY, calibration="paper", epsilon_plan=Fraction(49, 2)).privacy_in_words
    assert "24.5" in paper
    assert "not the 1 that was asked for" in paper
    simulated = statement(DAY, simulated=True).privacy_in_words
    assert "protects nobody" in simulated
    assert "at most" not in simulated


def test_words_say_no_more_of_rows_and_larger_changes_than_is_shown(statement):
    words = statement(DAY).privacy_in_words
    assert "in one leaf at a step" in words
    assert "c a whole number, costs at most c times epsilon" in words
    assert "clamped to at most that size above and below 0" in words
    assert "presence or absence" not in words


def test_words_take_the_suppliers_rounding_off_what_is_covered(statement):
    rounded = statement(DAY, supplier_rounding=Fraction(1, 3))
    assert "changes of each reading by at most 9.6666 in the unit" in rounded.privacy_in_words
    assert "whose errors are taken to spread by at most 0.3334" in rounded.privacy_in_words
    assert ReleaseStatement.read(rounded.to_json()) == rounded
    assert "supplier_rounding" not in statement(DAY).to_json()
    with pytest.raises(ParameterError, match="less than the model's alpha"):
        statement(DAY, supplier_rounding=Fraction(10))
    tiny = replace(statement(DAY).model, alpha=Fraction(1, 100_000))
    assert "by at most 1/100000 in" in statement(DAY, model=tiny).privacy_in_words


MONTH = LongSpan.rounded(30, 7.549601781, Fraction(1, 10**6), Fraction(7217, 240), "draws")


def test_a_statement_from_before_long_spans_reads_as_it_was_and_says_nothing_of_them(statement):
    document = statement(DAY).to_json()
    assert "long_spans" not in document
    assert ReleaseStatement.read(document).long_spans == ()
    assert "days in a row" not in document["privacy_in_words"]


@pytest.mark.parametrize(
    "amount", [Fraction(1, 3), Fraction(99995, 10), Fraction(365), Fraction(1, 10**7), 0]
)
def test_what_a_long_span_loses_is_rounded_up_to_a_few_digits(amount):
    span = LongSpan.rounded(30, float(amount), Fraction(1, 10), Fraction(amount), "plain")
    assert amount <= span.plain_sum <= amount * Fraction(1001, 1000)
    assert float(amount) <= span.epsilon


@pytest.mark.parametrize(
    ("field", "value"),
    [("n_days", 0), ("n_days", True), ("epsilon", 1.5), ("plain_sum", Fraction(-1)), ("delta", Fraction(1)),
     ("composed", "guessed")],
)  # fmt: skip
def test_a_wrong_field_of_a_long_span_is_named_and_none_is_read(statement, field, value):
    with pytest.raises(ParameterError, match=field):
        MONTH.changed(**{field: value})
    document = statement(DAY, long_spans=(MONTH,)).to_json()
    document["long_spans"][0][field] = str(value) if isinstance(value, Fraction) else value
    with pytest.raises(PublicationError, match="statement"):
        ReleaseStatement.read(document)


@pytest.mark.parametrize(
    ("field", "value"),
    [
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
    ],
)
def test_a_wrong_field_is_named(statement, field, value):
    with pytest.raises(ParameterError, match=field):
        statement(DAY).changed(**{field: value})


@pytest.mark.parametrize(
    "spoil",
    [
        lambda document: document.pop("noise"),
        lambda document: document.update(format="other/1"),
        lambda document: document.update(period="2016-02-31"),
        lambda document: document.update(epsilon_plan="1e999999999"),
        lambda document: document.update(epsilon_own="1/0"),
        lambda document: document["privacy_model"].update(extra=1),
        lambda document: document.update(noise=[None]),
        lambda document: document.update(privacy_model=[1]),
    ],
)
def test_another_document_is_refused(statement, spoil):
    document = statement(DAY).to_json()
    spoil(document)
    with pytest.raises(PublicationError, match="statement"):
        ReleaseStatement.read(document)


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
def test_presence_is_covered_as_bounds_and_schema_of_the_day_have_it(statement, changes, said):
    """By line 3 of section 1 of docs/privacy.md, alpha 10; what is not recorded counts as not covered."""
    exact = {key: tuple(map(Fraction, one)) if key == "bounds" else one for key, one in changes.items()}
    stated = statement(DAY, **exact)
    assert said in stated.privacy_in_words or "covered only where each row" in stated.privacy_in_words
    assert said in stated.terms_in_words
    assert ReleaseStatement.read(json.loads(json.dumps(stated.to_json()))) == stated
    assert set(changes) == {"bounds", "metered"} & set(stated.to_json())


def with_bands(rows):
    low, high = band_columns("load_mw")
    return rows.with_columns(
        pl.when(pl.col("step") == 3).then(None).otherwise(0.0).alias(low),
        pl.when(pl.col("step") == 3).then(None).otherwise(7.0).alias(high),
    )


def put(folder, rows, stated):
    publish(folder, [(stage(rows, stated), stated)], lambda known: "head-0")


def test_a_staged_release_has_the_columns_that_it_states(rows, statement):
    stated = statement(DAY, bands=CountBands(known="some"))
    staged = stage(with_bands(rows(DAY)), stated)
    assert read_staged(staged.data) == (staged, stated)
    with pytest.raises(PublicationError, match="have the columns"):
        stage(rows(DAY), stated)
    with pytest.raises(PublicationError, match="have the columns"):
        stage(with_bands(rows(DAY)), statement(DAY))


def test_a_stream_that_became_one_of_counts_is_read_as_one_frame(tmp_path, rows, statement):
    """A day without bands, then one with: null where a release has none; each file keeps its own columns."""
    put(tmp_path, rows(DAY), statement(DAY))
    assert "load_mw_low" not in read_published(tmp_path).columns
    bands = statement(NEXT, bands=CountBands(known="some"))
    put(tmp_path, with_bands(rows(NEXT)), bands)
    read = read_published(tmp_path, verify=True)
    assert read.columns[6:11] == [
        "load_mw", "load_mw_noise_se", "load_mw_se", "load_mw_low", "load_mw_high",
    ]  # fmt: skip
    assert read.filter(pl.col("date") == DAY)["load_mw_low"].null_count() == 12
    assert read.filter(pl.col("date") == NEXT)["load_mw_high"].drop_nulls().to_list() == [7.0] * 9


DONE, STOPPED = Optimality(7.7e-24, 1.9e-12, 8, True), Optimality(0.0123, 0.11, 50, False)


@pytest.mark.parametrize("found", [DONE, STOPPED])
def test_a_certificate_is_json_and_reads_back(statement, found):
    stated = statement(DAY, consistency=Consistency.rounded(found))
    document = json.loads(json.dumps(stated.to_json(), allow_nan=False))
    assert ReleaseStatement.read(document) == stated
    assert ReleaseStatement.read(document).to_json() == document


def test_figures_are_rounded_up_and_last_bits_are_left_out():
    rounded = Consistency.rounded
    least = Consistency(gap=1e-18, residual=1e-9, rounds=8, converged=True)
    assert rounded(DONE) == rounded(Optimality(1.6e-28, 7e-15, 8, True)) == least
    found = rounded(STOPPED)
    assert found == Consistency(gap=0.02, residual=0.2, rounds=50, converged=False)
    assert rounded(Optimality(found.gap, found.residual, 50, False)) == found


@pytest.mark.parametrize(
    ("field", "value"),
    [("gap", -1.0), ("gap", "much"), ("gap", None), ("residual", float("nan")), ("rounds", 1.5),
     ("rounds", True), ("rounds", -1), ("converged", 1), ("converged", None)],
)  # fmt: skip
def test_another_certificate_is_refused(statement, field, value):
    document = statement(DAY, consistency=Consistency.rounded(DONE)).to_json()
    document["consistency"][field] = value
    with pytest.raises(PublicationError, match="statement"):
        ReleaseStatement.read(document)
    del document["consistency"][field]
    with pytest.raises(PublicationError, match="statement"):
        ReleaseStatement.read(document)
