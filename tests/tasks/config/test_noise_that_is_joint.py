"""`[mechanism] noise` and `[stream] leaves_per_period`: who may have joint noise, and what is said of it."""

import re
from datetime import date
from itertools import pairwise

import pytest

from optstream.catalogue.statement import noise_scales
from optstream.errors import ConfigurationError
from optstream.privacy import JointSpend, StepSpend, worst_window
from tasks.config import load_settings
from tasks.release.mechanism import mechanism_for


@pytest.fixture
def points(small):
    """points(WORD, 'noise = "joint"'): the small stream by OptStream, ten points in a window."""

    def make(stream, mechanism, *changes):
        file = small().settings.file
        text = file.read_text().replace('name = "small"', f'name = "small"\n{stream}')
        text = text.replace('name = "OptStream"', f'name = "OptStream"\n{mechanism}')
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        file.write_text(text)
        return load_settings(file)

    return make


DAY, SPRING, AUTUMN = date(2025, 1, 15), date(2025, 3, 30), date(2025, 10, 26)
WORD = "leaves_per_period = 1"
SHORT = '{ days = 1, delta = "1e-9" }'


@pytest.fixture
def stream(small):
    """stream('noise = "joint"', WORD): the small stream by Laplace; its root and two leaves, w = 48."""

    def make(mechanism="", stream="", name="Laplace", schema="aggregated", **changes):
        file = small(schema=schema).settings.file
        text = re.sub(r"\[sampling\]\n(?:[a-z].*\n)+", "", file.read_text())
        text = text.replace('name = "OptStream"', f'name = "{name}"\n{mechanism}')
        text = text.replace('name = "small"', f'name = "small"\n{stream}')
        for old, new in changes.items():
            text = text.replace(old, new)
        file.write_text(text)
        return load_settings(file)

    return make


def kinds(settings):
    mechanism = mechanism_for(settings, DAY)
    return [type(spend) for spend in mechanism.plan(48, settings.calendar.first_step(DAY))]


@pytest.mark.parametrize("name", ["Laplace", "Uniform"])
def test_the_operators_word_gives_it_to_all_levels_and_is_told(stream, name):
    for keys in ("", 'noise = "joint"'):
        settings = stream(keys, WORD, name)
        assert kinds(settings) == [JointSpend, JointSpend]
        assert settings.describe_mechanism(date.min)["leaves_per_period"] == 1
        spends = mechanism_for(settings, DAY).plan(48)
        assert [entry.needs_one_leaf for entry in noise_scales(spends)] == [False, True]
    assert "leaves_per_period" not in stream().describe_mechanism(date.min)


def test_a_horizon_chooses_by_its_price_and_changes_no_epsilon(stream):
    week, day = ({'alpha = "10"': f'alpha = "10"\nhorizon = {one}'} for one in ("{ days = 7 }", SHORT))
    settings = stream("", WORD, **week)
    assert kinds(settings) == [StepSpend, StepSpend]
    assert mechanism_for(settings, DAY).epsilon == mechanism_for(stream("", WORD), DAY).epsilon
    assert settings.configuration_hash != stream("", WORD).configuration_hash
    assert (
        kinds(stream("n_blocks = 16\nblock_length = 1", WORD, "HistoryInformed", **week)) == [StepSpend] * 2
    )
    assert (
        kinds(stream("n_blocks = 16\nblock_length = 1", WORD, "HistoryInformed", **day)) == [JointSpend] * 2
    )


def test_a_year_with_both_changes_of_clock_stays_within_epsilon(stream):
    settings = stream("", WORD)
    calendar, spends = settings.calendar, []
    for day in (SPRING, AUTUMN):
        for near in (day.replace(day=day.day - 1), day):
            spends += mechanism_for(settings, near).plan(calendar.n_steps(near), calendar.first_step(near))
    assert worst_window(spends, 48).epsilon <= mechanism_for(settings, DAY).epsilon <= 1
    assert {spend.n_steps for spend in spends} == {46, 48, 50}


@pytest.mark.parametrize("word", ["", WORD])
def test_days_of_a_length_that_the_zone_has_no_more_are_planned_too(stream, word):
    """São Paulo put its clock forward on 16 October 2016, and gave that up in 2019."""
    settings = stream("", word, **{"Europe/Paris": "America/Sao_Paulo"})
    calendar, spends = settings.calendar, []
    for day in (date(2016, 10, number) for number in range(14, 19)):
        mechanism = mechanism_for(settings, day)
        state = mechanism.recall(spends)
        spends += mechanism.plan(calendar.n_steps(day), calendar.first_step(day), state)
    assert settings.period_lengths == (48,)
    assert [spend.n_steps for spend in spends if spend.level == 0] == [48, 48, 46, 48, 48]
    assert all(spend.groups for spend in spends if isinstance(spend, JointSpend))
    assert worst_window(spends, 48).epsilon <= 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mechanism": 'noise = "joint"'}, 'noise "joint" at levels of several nodes is for customers whose'),
        ({"mechanism": 'noise = "loud"'}, 'mechanism.noise must be "joint" or "laplace"'),
        ({"stream": "leaves_per_period = 2"}, "stream.leaves_per_period must be 1, where each customer's"),
        ({"stream": "leaves_per_period = true"}, "leaves_per_period must be 1, .* left out; got True"),
        ({"stream": "leaves_per_period = 1.0"}, "leaves_per_period must be 1, .* left out; got 1.0"),
        (
            {"stream": 'unit = "roaming"', "mechanism": 'noise = "joint"'},
            'which stream.unit "customer" and input.schema "aggregated" allow',
        ),
        ({"stream": WORD, "schema": "metered"}, 'must be left out for input.schema "metered"'),
        ({"stream": f'{WORD}\nunit = "roaming"'}, 'must be left out for unit "roaming"'),
        ({"mechanism": 'noise = "joint"', "name": "Sample"}, "mechanism.noise is not a known key"),
    ],
)
def test_a_word_that_nobody_may_give_is_refused_with_the_remedy(stream, given, message):
    with pytest.raises(ConfigurationError, match=message):
        stream(**given)


@pytest.mark.parametrize(
    ("mechanism", "name", "horizon", "message"),
    [
        (
            "",
            "Sample",
            "{ days = 7 }",
            'privacy.horizon is for mechanism.name .* got "?.Sample.*leave horizon out',
        ),
        (
            'noise = "joint"',
            "Laplace",
            "{ days = 7 }",
            "got both, and mechanism.noise 'joint': leave out one",
        ),
        ("", "Laplace", "{ days = 0 }", "privacy.horizon.* days = 365"),
        ("", "Laplace", '{ days = 7, delta = "1" }', r"delta must be in \[1e-10, 1/10\]; got 1"),
    ],
)
def test_a_horizon_that_chooses_nothing_is_refused_with_the_remedy(stream, mechanism, name, horizon, message):
    with pytest.raises(ConfigurationError, match=message):
        stream(mechanism, WORD, name, **{'alpha = "10"': f'alpha = "10"\nhorizon = {horizon}'})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("", 'noise = "joint"'), 'noise "joint" at levels of several nodes is for customers whose'),
        (
            (WORD, 'noise = "joint"', ('"equally_spaced"', '"l1"\nthreshold = "1"')),
            'noise "joint" is for sampling.method "equally_spaced"',
        ),
    ],
)
def test_points_that_may_not_have_it_are_refused(points, given, message):
    with pytest.raises(ConfigurationError, match=message):
        points(*given)


def test_keys_that_are_left_out_change_no_configuration_hash(stream):
    """The key that came later and is not given is as if it did not exist."""
    hashes = [
        stream(*given).configuration_hash
        for given in (("",), ('noise = "laplace"',), ('noise = "joint"', WORD), ("", WORD))
    ]
    assert all(one != other for one, other in pairwise([*hashes, hashes[0]]))
    document = stream().model_dump(mode="json")
    assert document["stream"]["leaves_per_period"] is None
    assert document["mechanism"]["noise"] is None
