"""HistoryInformed: later days sharpen earlier ones, series off the prior are named, hours differ."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from optstream.mechanisms import HistoryInformedTree
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel
from optstream.stream import Calendar
from optstream.stream.public_days import PublicDays
from tests.optstream.mechanisms.history_informed.hourly_streams import (
    SLOTS,
    TREE,
    informed,
    load,
    missed,
    run,
)

PRECISE = PrivacyModel("1000", SLOTS, 1)


def test_what_is_prepared_before_a_draw_changes_nothing_of_it():
    mechanism, stream = HistoryInformedTree(informed(), TREE, ["1/2", "1/2"]), load(9)
    state = run(mechanism, stream[:, : 8 * SLOTS])[-1].state
    ready = mechanism.prepared(state, 8 * SLOTS)
    assert ready["learned"] is not None
    one, other = (
        mechanism.measure(
            stream[:, 8 * SLOTS :], noise=simulated_noise(3), first_step=8 * SLOTS, state=given
        ).to_bytes()
        for given in (state, ready)
    )
    assert one == other


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize(("zone", "slot"), [("Europe/Paris", 2), ("Asia/Beirut", 0)])
def test_a_slot_that_the_wall_clock_skips_is_no_measurement(zone, slot, counts):
    """Its 0 is no reading: taken for one, it pulled the hours around it, and the day before, to 0."""
    calendar = Calendar(60, zone, "fixed")
    pattern = informed(days=PublicDays.from_calendar(calendar), model=replace(PRECISE, resolution=1))
    mechanism = HistoryInformedTree(replace(pattern, counts=counts), TREE, ["1/2", "1/2"], 0.0)
    stream, begins = load(9).round(), calendar.first_step(date(2016, 3, 20))
    skipped, stream[:, 7 * SLOTS + slot] = 7 * SLOTS + slot, 0.0
    state, releases = None, []
    for day in range(9):
        own, first = slice(day * SLOTS, (day + 1) * SLOTS), begins + day * SLOTS
        drawn = mechanism.measure(stream[:, own], noise=simulated_noise(day), first_step=first, state=state)
        state = drawn.state
        releases.append(mechanism.estimate(drawn))
    again = mechanism.revise(releases[7].measured, [releases[8].measured])
    for release in (releases[7], again):
        of, drawn = release.replicates(5)
        assert of == "whole"
        for numbers in (release.values, release.estimate, release.standard_errors, *drawn):
            assert not numbers[:, skipped - 7 * SLOTS].any()
    for day in (6, 7, 8):
        truth = TREE.add_up(stream[:, day * SLOTS : (day + 1) * SLOTS])
        assert (np.abs(releases[day].values - truth) < 0.15 * truth.max(axis=1, keepdims=True)).all()


@pytest.mark.slow
@pytest.mark.parametrize("on_tree", [False, True], ids=["series", "tree"])
def test_later_measurements_sharpen_an_earlier_day_at_no_cost(on_tree):
    mechanism = HistoryInformedTree(informed(), TREE, ["1/2", "1/2"]) if on_tree else informed()
    first, revised = [], []
    for seed in range(2):
        stream = load(15, seed)
        released = run(mechanism, stream, seed)
        for day in range(8, 12):
            later = [release.measured for release in released[day + 1 : day + 4]]
            again = mechanism.revise(released[day].measured, later)
            assert again.spends == released[day].spends
            assert again.measured is released[day].measured
            truth = stream[:, day * SLOTS : (day + 1) * SLOTS]
            first.append(missed([released[day]], truth).mean())
            revised.append(missed([again], truth).mean())
    assert np.mean(revised) < 0.97 * np.mean(first)


def test_series_that_jump_as_no_prior_expects_are_named_and_have_wider_bands():
    """After two weeks of habits every step jumps by up to 3 %: not enough for a day unlike all others."""
    stream = load(22, seed=5)
    stream[:, 15 * SLOTS :] *= np.random.default_rng(5).uniform(0.97, 1.03, (3, 7 * SLOTS))
    mechanism = informed(model=PRECISE)
    released = run(mechanism, stream)
    off = [mechanism.self_check(one.measured).levels_off for one in released]
    assert not any(off[:15])
    assert off[-3:] == [(1,)] * 3
    assert released[-1].standard_errors.mean() > 1.5 * released[14].standard_errors.mean()


def test_nights_are_narrow_and_noons_wide_once_blocks_show_it():
    """The same mean at all hours; every day moves the second half of its hours by a tenth, the first not."""
    random, noon = np.random.default_rng(6), np.arange(SLOTS) >= SLOTS // 2
    moved = np.exp(random.normal(0, 0.1, (3, 30, 1)) * noon)
    released = run(informed(model=PRECISE), (1000.0 * moved).reshape(3, -1))
    errors = released[-1].standard_errors.mean(axis=0)
    assert released[6].measured.before.get("hours") is None
    assert errors[noon][1:-1].min() > 2 * errors[~noon][1:-1].max()
