"""`[mechanism] noise` and `[stream] leaves_per_period`: who may have joint noise, and what is said of it."""

import re
from datetime import date
from fractions import Fraction
from itertools import pairwise

import pytest

from optstream.catalogue.statement import noise_scales
from optstream.privacy import JointSpend, StepSpend, worst_window
from tasks.config import load_settings
from tasks.plan.dry_run import dry_run
from tasks.release.mechanism import mechanism_for

DAY, SPRING, AUTUMN = date(2025, 1, 15), date(2025, 3, 30), date(2025, 10, 26)
WORD = "leaves_per_period = 1"


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


def test_by_default_the_root_alone_has_joint_noise(stream):
    assert kinds(stream()) == [JointSpend, StepSpend]
    assert kinds(stream('noise = "laplace"')) == [StepSpend, StepSpend]


@pytest.mark.parametrize("name", ["Laplace", "Uniform"])
def test_the_operators_word_gives_it_to_all_levels_and_is_told(stream, name):
    for keys in ("", 'noise = "joint"'):
        settings = stream(keys, WORD, name)
        assert kinds(settings) == [JointSpend, JointSpend]
        assert settings.describe_mechanism(date.min)["leaves_per_period"] == 1
        spends = mechanism_for(settings, DAY).plan(48)
        assert [entry.needs_one_leaf for entry in noise_scales(spends, Fraction(1))] == [False, True]
    assert "leaves_per_period" not in stream().describe_mechanism(date.min)


@pytest.mark.parametrize(("word", "leaves"), [("", StepSpend), (WORD, JointSpend)])
def test_blocks_of_history_informed_have_it_where_laplace_has(stream, word, leaves):
    settings = stream("scale = 10000.0", word, "HistoryInformed")
    assert kinds(settings) == [JointSpend, leaves]
    assert settings.describe_mechanism(date.min).get("leaves_per_period") == (1 if word else None)
    root, _ = mechanism_for(settings, DAY).plan(48)
    assert noise_scales([root], Fraction(1))[0].noise == "joint over 6 blocks"
    joint = dry_run(settings, [DAY]).periods[0].levels[0].stages[0].noise[0]
    assert joint.joint_over == max(map(len, root.groups))
    plain = stream('scale = 10000.0\nnoise = "laplace"', word, "HistoryInformed")
    assert kinds(plain) == [StepSpend, StepSpend]


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


def test_points_of_optstream_have_it_where_it_is_asked_for_with_the_word(points):
    assert set(kinds(points(WORD, ""))) == {StepSpend}
    settings = points(WORD, 'noise = "joint"')
    mechanism = mechanism_for(settings, DAY)
    # of each level the points, and the sums of two features
    assert kinds(settings) == [JointSpend, StepSpend, StepSpend] * 2
    assert mechanism.epsilon <= 1
    for day in (SPRING, AUTUMN):
        own = mechanism_for(settings, day)
        own.plan(settings.calendar.n_steps(day), settings.calendar.first_step(day))
        assert own.epsilon == mechanism.epsilon
    assert settings.describe_mechanism(date.min)["leaves_per_period"] == 1
    assert points(WORD, "").configuration_hash != settings.configuration_hash


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


def test_the_dry_run_says_over_how_many_steps_noise_is_joint(stream):
    root, leaves = dry_run(stream(), [DAY]).periods[0].levels
    (joint,), (plain,) = root.stages[0].noise, leaves.stages[0].noise
    assert (joint.joint_over, plain.joint_over) == (6, 1)
    # both levels have half of epsilon: 960 for Laplace noise, and 9 groups in place of 48 steps
    assert (joint.scale, plain.scale) == pytest.approx((180, 960), rel=1e-9)
    assert joint.deviation == pytest.approx(180 * (7 * 8 / 3) ** 0.5, rel=1e-9)
    document = dry_run(stream(), [DAY]).to_json()
    root, leaves = document["periods"][0]["levels"]
    assert root["stages"][0]["noise"][0]["joint_over"] == 6
    assert "joint_over" not in leaves["stages"][0]["noise"][0]
