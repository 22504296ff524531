"""The `[mechanism]` table: any mechanism by its name, its own keys, and which noise is joint."""

import json
from datetime import UTC, date, datetime
from fractions import Fraction

import numpy as np
import pytest

from optstream.catalogue.statement import noise_scales
from optstream.errors import ParameterError
from optstream.mechanisms import HistoryInformedTree
from optstream.noise import simulated_noise
from optstream.privacy import OrderSpend, StepSpend, worst_window
from optstream.stream.public_days import REST_DAY, SATURDAY, WORKDAY
from tasks.config.templates import example_of
from tasks.operate.doctor import Case, public_facts
from tasks.plan.dry_run import dry_run
from tasks.release.mechanism import mechanism_for
from tests.tasks.config.test_refusals import laid_over, refused
from tests.tasks.conftest import CONFIGURATION, PLAIN
from tests.tasks.two_regions import CONFIGURATION as TWO_REGIONS
from tests.tasks.two_regions import released_by

pytestmark = pytest.mark.slow

DAY, SPRING, AUTUMN = date(2025, 1, 15), date(2025, 3, 30), date(2025, 10, 26)
NOW = datetime(2025, 1, 16, tzinfo=UTC)
WORD = "stream.leaves_per_window = 1"
JOINT, LAPLACE = 'mechanism.noise = "joint"', 'mechanism.noise = "laplace"'


@pytest.fixture
def load(load_text):
    return lambda name, *pieces: load_text(laid_over(example_of(name), "\n".join(pieces)))


def test_holidays_are_those_of_the_country_and_those_that_are_named(load):
    keys = ('mechanism.country = "FR"', "mechanism.holidays = [2025-01-17]", "mechanism.scale = 500.0")
    mechanism = mechanism_for(load("HistoryInformed", *keys), DAY)
    assert type(mechanism) is HistoryInformedTree
    assert mechanism.pattern.scale == 500.0
    days, calendar = mechanism.pattern.days, load("HistoryInformed").calendar
    steps = [calendar.first_step(date(2025, 1, day)) for day in (1, 16, 17, 18, 19)]
    assert days.kinds(days.clock(steps)).tolist() == [REST_DAY, WORKDAY, REST_DAY, SATURDAY, REST_DAY]
    with pytest.raises(ParameterError, match=r"country must be a code .* got 'ZZ'"):
        mechanism_for(load("HistoryInformed", 'mechanism.country = "ZZ"'), DAY)


HASHES = {
    "OptStream": "335263f1e603f2bb",
    "Laplace": "6f74257b156628c9",
    "BudgetAbsorption": "12e2b9d6c17a886e",
    "PeGaSus": "cc35473b60e60ab6",
    "Fast": "9efc40168e61edc6",
    "HistoryInformed": "a0c02919b52c3b17",
}
"""Of version 0.2, whose mechanisms had keys that nobody named here."""


def test_the_configuration_hash_is_that_of_before_keys_went_and_knows_each_key(load_text):
    for name, known in HASHES.items():
        text = TWO_REGIONS if name == "OptStream" else released_by(name)
        assert load_text(text).configuration_hash[:16] == known
    assert load_text(laid_over(text, "mechanism.scale = 7.5")).configuration_hash[:16] not in HASHES.values()


# Joint noise: at the root by default, and at all levels where each customer's readings lie in one leaf.


@pytest.fixture
def stream(load_text):
    """The small stream: its root and two leaves, w = 48."""

    def make(*pieces, name="Laplace"):
        text = CONFIGURATION.format(**PLAIN)
        text = text if name == "OptStream" else released_by(name, text)
        return load_text(laid_over(text, "\n".join(pieces)))

    return make


def kinds(settings):
    mechanism = mechanism_for(settings, DAY)
    return [type(spend) for spend in mechanism.plan(48, settings.calendar.first_step(DAY))]


@pytest.mark.parametrize("name", ["Laplace", "Uniform"])
def test_the_operators_word_gives_it_to_all_levels_and_is_reported(stream, name):
    for keys in ((), (JOINT,)):
        settings = stream(WORD, *keys, name=name)
        assert kinds(settings) == [OrderSpend, OrderSpend]
        assert settings.describe_mechanism(date.min)["leaves_per_window"] == 1
        spends = mechanism_for(settings, DAY).plan(48)
        assert [entry.needs_one_leaf for entry in noise_scales(spends, Fraction(1))] == [False, True]
    assert "leaves_per_window" not in stream().describe_mechanism(date.min)
    # by default the root alone has it
    assert kinds(stream()) == [OrderSpend, StepSpend]
    assert kinds(stream(LAPLACE)) == [StepSpend, StepSpend]
    assert len({stream(*keys).configuration_hash for keys in ((), (LAPLACE,), (WORD,), (WORD, JOINT))}) == 4


@pytest.mark.parametrize("word", [(), (WORD,)])
def test_days_of_a_length_that_the_zone_has_no_more_are_planned_too(stream, word):
    """São Paulo put its clock forward on 16 October 2016, and gave that up in 2019."""
    settings = stream('stream.time_zone = "America/Sao_Paulo"', *word)
    calendar, spends, state = settings.calendar, [], None
    for day in (date(2016, 10, number) for number in range(14, 19)):
        mechanism = mechanism_for(settings, day)
        values, first = np.zeros((2, calendar.n_steps(day))), calendar.first_step(day)
        state = mechanism.recall(spends, state)
        measured = mechanism.measure(values, noise=simulated_noise(1), first_step=first, state=state)
        state, spends = measured.state, [*spends, *measured.spends]
    assert settings.period_lengths == (48,)
    assert [spend.n_steps for spend in spends if spend.level == 0] == [48, 48, 46, 48, 48]
    assert all(len(spend.parts) == spend.n_steps for spend in spends if isinstance(spend, OrderSpend))
    assert worst_window(spends, 48).epsilon <= 1


def test_points_of_optstream_have_it_where_it_is_asked_for_with_the_word(stream):
    assert set(kinds(stream(WORD, name="OptStream"))) == {StepSpend}
    settings = stream(WORD, JOINT, name="OptStream")
    mechanism = mechanism_for(settings, DAY)
    # of each level the points, and the sums of two features
    assert kinds(settings) == [OrderSpend, StepSpend, StepSpend] * 2
    assert mechanism.epsilon <= 1
    for day in (SPRING, AUTUMN):
        own = mechanism_for(settings, day)
        own.plan(settings.calendar.n_steps(day), settings.calendar.first_step(day))
        assert own.epsilon == mechanism.epsilon
    assert settings.describe_mechanism(date.min)["leaves_per_window"] == 1
    assert stream(WORD, name="OptStream").configuration_hash != settings.configuration_hash


# Whether readings are counts: by public facts where the key is left out.


@pytest.fixture
def visits(load_text):
    """A stream of visits for HistoryInformed, the key `counts` left out, with other keys."""
    text = example_of("HistoryInformed", counts=True)
    text = "\n".join(line for line in text.splitlines() if not line.startswith("counts ="))
    return lambda *pieces: load_text(laid_over(text, "\n".join(pieces)))


@pytest.mark.parametrize(
    ("piece", "counts", "warns"),
    [
        ("", True, False),
        ("privacy.counts = true", True, False),
        ("privacy.counts = false", False, True),
        ('privacy.alpha = "3"', False, True),
        ('privacy.alpha = "3"\nprivacy.counts = false', False, False),
        ('privacy.alpha = "3"\nprivacy.counts = true', True, False),
        ('privacy.resolution = "0.1"', False, False),
        ('privacy.lower_bound = "-1"', False, False),
        ('published.value = "load_mw"', False, False),
        ('input.factor = "0.1"', False, False),
        ('privacy.bounds = ["0", "20.5"]\nprivacy.counts = true', True, True),
        ('input.factor = "0.1"\nprivacy.counts = true', True, True),
    ],
)
def test_whether_readings_are_counts_follows_from_public_facts(visits, piece, counts, warns):
    settings = visits(piece)
    assert settings.privacy.counts is mechanism_for(settings, DAY).pattern.counts is counts
    said = f"privacy.counts is {str(counts).lower()}, and resolution"
    assert any(one.startswith(said) for one in dry_run(settings, [DAY]).warnings) is warns
    assert ("[privacy] counts" in [place for _, place, *_ in public_facts(Case(settings, {}, NOW))]) is warns


def test_counts_by_facts_have_the_hash_of_written_ones_and_others_keep_theirs(visits, load):
    assert visits().configuration_hash == visits("privacy.counts = true").configuration_hash
    laplace = load("Laplace", 'privacy.alpha = "1"\nprivacy.resolution = "1"\npublished.value = "visits"')
    assert not laplace.privacy.counts
    assert laplace.counts_warning is None


@pytest.mark.parametrize(
    ("stated", "counts"),
    [
        ({"stated": {"mechanism": {"name": "HistoryInformed"}}}, False),
        ({"inputs": {}}, False),  # of an earlier version
        ({"stated": {"mechanism": {"name": "HistoryInformed", "counts": True}}}, True),
        ({"stated": {"mechanism": {"name": "Laplace"}}}, True),
    ],
)
def test_a_stream_that_began_without_counts_goes_on_without_them(visits, stated, counts):
    settings = visits()
    record = settings.inputs_of(DAY, 0) / "1.json"
    record.parent.mkdir(parents=True)
    record.write_text(json.dumps(stated))
    again = visits()
    assert again.privacy.counts is counts
    assert (again.counts_warning is None) is counts


@pytest.mark.parametrize(
    ("name", "piece", "variation"),
    [
        ("HistoryInformed", "", 0.75),
        ("Laplace", "", None),
        ("HistoryInformed", 'privacy.bounds = ["-6", "6"]', None),
        ("HistoryInformed", 'privacy.bounds = ["0", "7"]', None),
    ],
)
def test_sums_of_metered_customers_vary_by_a_part_of_alpha(load_text, name, piece, variation):
    text = laid_over(example_of(name, metered=True), 'privacy.alpha = "6"\nprivacy.bounds = ["0", "6"]')
    settings = load_text(laid_over(text, piece))
    assert settings.variation == variation == settings.describe_mechanism(DAY).get("variation")
    assert getattr(mechanism_for(settings, DAY).mechanism, "variation", None) == variation


def test_a_mechanism_without_a_name_lists_the_names_and_no_other_table_is_blamed(load_text):
    message = refused(load_text, example_of("Laplace").replace('name = "Laplace"', ""))
    assert "mechanism.name is missing; it must be" in message
    assert "BudgetAbsorption" in message
    assert "sampling" not in message
