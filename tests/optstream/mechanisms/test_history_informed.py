"""HistoryInformed: later days sharpen earlier ones, bands hold, medians, level shares, counts on a tree."""

from dataclasses import replace
from datetime import date
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.history.blocks import Blocks
from optstream.history.posterior import Seen, TreePosterior
from optstream.history.prior import COUNT_COMPONENTS, TemporalPrior
from optstream.mechanisms import Hierarchical, HistoryInformed, HistoryInformedTree, Laplace
from optstream.mechanisms.blocks import (
    LEAST,
    Figures,
    PlannedBlocks,
    PlannedNoise,
    choose_level_shares,
    choose_tree_blocks,
    expected_error_of,
    expected_level_errors,
    level_errors,
)
from optstream.mechanisms.history_informed import with_medians
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel, worst_window
from optstream.stream import AggregationTree, Calendar
from optstream.stream.public_days import PublicDays
from tests.by_night import few
from tests.optstream.mechanisms.planned_days import daily_noise, in_turn, spends_of

SLOTS = 24
DAYS = PublicDays.from_date(date(2025, 1, 6), SLOTS)
MODEL = PrivacyModel("1/10", SLOTS, 1)
TREE = AggregationTree.from_parents({"all": None, "A": "all", "B": "all", "C": "all"})
PRECISE = PrivacyModel("1000", SLOTS, 1)
HALF_HOURS, N_DAYS, ALPHA = 48, 28, 6
FEEDERS = AggregationTree.from_parents({"city": None} | {f"feeder {number}": "city" for number in range(10)})
PATTERN = HistoryInformed(
    PrivacyModel(4, HALF_HOURS, ALPHA, resolution="0.001"),
    scale=4.0,
    days=PublicDays.from_date(date(2024, 1, 1), HALF_HOURS),
    variation=ALPHA / 8,
)
CALM = {
    "drift": [0.05, 0.01, 6.0],
    "day to day": [0.004, 0.004, 1.5],
    "daily shape": [0.5, 0.004, 0.8, 300.0],
    "edges of the day": [0.003, 0.003, 0.12, 150.0],
    "kind of day": [0.004, 0.004, 0.9, 100.0],
    "shape of these days": [0.003, 0.003, 1.0, 3.0],
    "short memory": [0.003, 0.003, 0.08],
}
"""A series whose shape of the day says nearly all, and is the same everywhere."""
FLAT = AggregationTree.from_parents({"all": None} | {str(leaf): "all" for leaf in range(5)})
RAGGED = AggregationTree.from_parents({"all": None, "A": "all", "B": "all", "B1": "B", "B2": "B", "B3": "B"})
ALONE = AggregationTree.from_parents({"all": None})
COUNTED = PrivacyModel("1", SLOTS, 1, resolution=1)
N_BOROUGHS, N_ZONES = 3, 30
BOROUGHS = {f"b{number}": "city" for number in range(N_BOROUGHS)}
ZONES = {f"z{number}": f"b{number % N_BOROUGHS}" for number in range(N_ZONES)}
CITY = AggregationTree.from_parents({"city": None, **BOROUGHS, **ZONES})
SHARES = ["1/3", "1/6", "1/2"]
RATES = np.where(np.arange(N_ZONES) < 20, 0.02, np.where(np.arange(N_ZONES) < 28, 0.5, 12.0))


def load(n_days, seed=0):
    """Three series with a shape of the day, weekends, a drift and a little of their own, (3, n_days * 24)."""
    generator = np.random.default_rng(seed)
    hours = np.arange(n_days * SLOTS)
    shape = 1 + 0.2 * np.sin((hours - 9) * np.pi / 12) + 0.05 * np.sin(hours * np.pi / 6)
    weekend = np.where(hours // SLOTS % 7 > 4, 0.9, 1.0)
    drift = np.exp(np.cumsum(generator.normal(0, 0.004, hours.size)))
    own = 1 + np.cumsum(generator.normal(0, 0.002, (3, hours.size)), axis=1)
    return np.round(np.array([[1500.0], [800.0], [2400.0]]) * shape * weekend * drift * own, 3)


def informed(model=MODEL, **given):
    return HistoryInformed(model, **{"n_blocks": 6, "block_length": 2, "days": DAYS, "scale": 1500.0} | given)


def run(mechanism, stream, seed=1):
    days = np.split(stream, stream.shape[1] // SLOTS, axis=1)
    return in_turn(mechanism.release, days, daily_noise(seed, SLOTS))


def test_what_is_prepared_before_a_draw_changes_nothing_of_it():
    mechanism, stream = HistoryInformedTree(informed(), TREE, ["1/2", "1/2"]), load(9)
    state = run(mechanism, stream[:, : 8 * SLOTS])[-1].state
    ready = mechanism.prepared(state, 8 * SLOTS)
    assert ready["learned"] is not None
    last, at = stream[:, 8 * SLOTS :], 8 * SLOTS
    one, other = (
        mechanism.measure(last, noise=simulated_noise(3), first_step=at, state=given).to_bytes()
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
    stream[:, 7 * SLOTS + slot] = 0.0
    days = np.split(stream, 9, axis=1)
    releases = in_turn(mechanism.release, days, daily_noise(0, SLOTS), begins)
    again = mechanism.revise(releases[7].measured, [releases[8].measured])
    for release in (releases[7], again):
        of, drawn = release.replicates(5)
        assert of == "whole"
        for numbers in (release.values, release.estimate, release.standard_errors, *drawn):
            assert not numbers[:, slot].any()
    for day in (6, 7, 8):
        truth = TREE.add_up(days[day])
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
            first.append(np.abs(released[day].values[-3:] - truth).mean())
            revised.append(np.abs(again.values[-3:] - truth).mean())
    assert np.mean(revised) < 0.97 * np.mean(first)


def test_series_that_jump_as_no_prior_expects_are_named_and_have_wider_bands():
    """After two weeks of habits every step jumps by up to 3 %: not enough for a day unlike all others."""
    stream = load(22, seed=5)
    stream[:, 15 * SLOTS :] *= np.random.default_rng(5).uniform(0.97, 1.03, (3, 7 * SLOTS))
    mechanism = informed(model=PRECISE)
    released = run(mechanism, stream)
    off = [mechanism.self_check(one.measured).levels_off for one in released]
    assert not any(off[:15])
    assert off[18:] == [(1,)] * 3 + [()]  # learned before day 21
    assert released[-2].standard_errors.mean() > 1.5 * released[14].standard_errors.mean()


def test_nights_are_narrow_and_noons_wide_once_blocks_show_it():
    """The same mean at all hours; every day moves the second half of its hours by a tenth, the first not."""
    random, noon = np.random.default_rng(6), np.arange(SLOTS) >= SLOTS // 2
    moved = np.exp(random.normal(0, 0.1, (3, 30, 1)) * noon)
    released = run(informed(model=PRECISE), (1000.0 * moved).reshape(3, -1))
    errors = released[-1].standard_errors.mean(axis=0)
    assert not released[6].measured.before["hours"]
    assert errors[noon][1:-1].min() > 2 * errors[~noon][1:-1].max()


def test_hours_that_blocks_no_longer_show_are_forgotten():
    mechanism = informed(model=PRECISE)
    state = run(mechanism, load(14))[-1].measured.state | {"hours": [3.0] * SLOTS}
    learned = mechanism.prepared(state, 14 * SLOTS)
    assert learned["learned"] == 14
    assert not learned["hours"]


def households(seed):
    """Return five households on each feeder: evening peaks, idle nights, appliances, (10, n_steps)."""
    random, hour = np.random.default_rng(seed), np.arange(HALF_HOURS) / 2
    size, evening = np.exp(random.normal(0, 0.5, (50, 1, 1))), random.normal(19, 1.2, (50, 1, 1))
    morning = random.uniform(0, 0.6, (50, 1, 1)) * np.exp(-(((hour - 7.5) / 1.2) ** 2))
    shape = 0.15 + morning + 1.3 * np.exp(-(((hour - evening) / 2) ** 2))
    days = np.exp(random.normal(0, 0.25, (50, N_DAYS, 1)))
    shapes = np.where(random.random((50, N_DAYS, 1)) < 0.1, 0.15, shape) * days * size
    used = shapes * random.gamma(2.0, 0.5, (50, N_DAYS, HALF_HOURS))
    switched_on = random.random(used.shape) < 0.04 * (shape / shape.max() + 0.1)
    used = np.minimum(used + switched_on * random.uniform(1, 3, used.shape), ALPHA)
    return used.reshape(10, 5, -1).sum(axis=1)


def released_after_two_weeks(pattern, seeds):
    """Yield the releases of the second half of the days, whether bands hold, and the measurements."""
    for seed in range(seeds):
        mechanism = HistoryInformedTree(pattern, FEEDERS, ["1/2", "1/2"])
        days = np.split(households(seed), N_DAYS, axis=1)
        measured = in_turn(mechanism.measure, days, daily_noise(seed, HALF_HOURS))
        for day, drawn in list(zip(days, measured, strict=True))[N_DAYS // 2 :]:
            release = mechanism.estimate(drawn)
            missed = np.abs(release.values - FEEDERS.add_up(day))
            yield release, missed <= 1.96 * release.standard_errors, drawn


@pytest.mark.slow
def test_bands_hold_after_two_weeks():
    releases, held, measured = zip(*released_after_two_weeks(PATTERN, 2), strict=True)
    release, held, drawn = releases[-1], np.array(held), measured[-1]
    assert 0.93 < held[:, 1:].mean() < 0.97
    assert held[:, 0].mean() > 0.93
    bare = replace(PATTERN, variation=None, components=PATTERN.prior_components)
    bare = HistoryInformedTree(bare, FEEDERS, ["1/2", "1/2"]).estimate(drawn)
    assert np.array_equal(release.values, bare.values), "it widens bands alone"
    squares = (release.replicates(200)[1] - release.estimate).var(axis=0)[1:].mean()
    assert squares == pytest.approx((release.standard_errors[1:] ** 2).mean(), rel=0.2)


@pytest.mark.slow
def test_the_evening_is_expected_to_be_high_before_it_can_be_seen():
    pattern = replace(PATTERN, model=PrivacyModel(1, HALF_HOURS, ALPHA, resolution="0.001"))
    releases, held, _ = zip(*released_after_two_weeks(pattern, 3), strict=True)
    assert np.array(held)[:, 0, -12:].mean() > 0.8, "0.70 with the prior of loads"
    squares = releases[-1].standard_errors[0] ** 2
    night, evening = squares[:12].mean(), squares[-12:].mean()
    assert evening > 3.5 * night, "2.6 where widths follow the size of hours as those of loads do"
    drawn = (releases[-1].replicates(400)[1] - releases[-1].estimate)[:, 0].var(axis=0)
    assert drawn.reshape(4, 12).mean(axis=1) == pytest.approx(squares.reshape(4, 12).mean(axis=1), rel=0.3)


def test_a_stream_starts_from_the_proxy_and_pays_the_same():
    model = PrivacyModel("1/5", SLOTS, 1)
    general = informed(model, n_blocks=4, block_length=1, scale=100.0)
    seeded, values, found = replace(general, components=with_medians(CALM)), np.full((6, SLOTS), 100.0), []
    for mechanism in (general, seeded):
        found.append(mechanism.release(values, noise=simulated_noise(1), first_step=SLOTS))
        prior = np.exp(found[-1].state["prior"])
        assert np.allclose(prior[-3], mechanism.prior_components[-2].shared)
    assert found[0].spends == found[1].spends
    assert not np.allclose(found[0].values, found[1].values)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"drift": [0.1, 0.1]}, r"component 'drift' of a prior must have 3 numbers in \[1e-09, 1e\+06\]"),
        ({"drift": [0.1, 0.0, 6.0]}, "component 'drift'"),
        ({"drift": [0.1, float("nan"), 6.0]}, "component 'drift'"),
        ({"drift": [0.1, 0.1, 1e-200]}, "component 'drift'"),
        ({"drift": [1e100, 0.1, 6.0]}, "component 'drift'"),
        ({"event": [0.3, 1.0]}, "a proxy shows the components drift, day to day"),
        ({"size": [0.3, 1.0]}, "got 'size'"),
    ],
)
def test_medians_that_are_none_are_refused(broken, said):
    with pytest.raises(ParameterError, match=said):
        with_medians({**CALM, **broken})
    with pytest.raises(ParameterError, match="component 'short memory'"):
        with_medians({name: values for name, values in CALM.items() if name != "short memory"})


def expected(tree, noise, shares):
    blocks = choose_tree_blocks(tree, Figures(SLOTS, SLOTS, noise), tuple(map(Fraction, shares)))
    return expected_error_of(tree, Figures(SLOTS, SLOTS, noise), tuple(map(Fraction, shares)), blocks)


@pytest.mark.slow
@pytest.mark.parametrize("tree", [FLAT, RAGGED, ALONE])
@pytest.mark.parametrize(
    "noise",
    [pytest.param(1e-4, marks=pytest.mark.nightly), 1e-3, pytest.param(0.02, marks=pytest.mark.nightly), 0.5],
)
def test_they_add_up_fit_the_tree_and_are_never_worse_than_equal_ones(tree, noise):
    shares = choose_level_shares(tree, Figures(SLOTS, SLOTS, noise))
    assert sum(shares) == 1
    assert all(shares[tree.depths[leaf]] >= LEAST for leaf in tree.leaf_indices)
    equal = [Fraction(1, tree.n_levels)] * tree.n_levels
    assert expected(tree, noise, shares) <= expected(tree, noise, equal)


def test_blocks_of_a_week_are_as_good_as_any_number_of_them():
    """With 12 a week, 14 hours apart, hours of the day are seen less evenly than with 10 or 16."""
    public, shares = Figures(7 * SLOTS, SLOTS, 1e-3, joint=(True,), ordinary=SLOTS), (Fraction(1),)
    chosen = choose_tree_blocks(ALONE, public, shares)
    errors = [expected_error_of(ALONE, public, shares, (count, 1)) for count in (10, 12, 16, 24, 32, 48)]
    assert errors[1] > errors[0] > errors[2]
    assert expected_error_of(ALONE, public, shares, chosen) <= 1.01 * min(errors)


def test_the_expected_error_is_the_posteriors_own_and_falls_with_what_is_measured():
    starts, lengths = np.arange(0, 4 * SLOTS, 5), np.ones(20, dtype=np.int64)
    noise = np.array([0.02, 0.01, 0.01, 0.03, 0.03, 0.03])
    period, prior = range(3 * SLOTS, 4 * SLOTS), TemporalPrior.broad(SLOTS)
    plan = PlannedBlocks(prior, starts, lengths, period)
    found = level_errors(plan, RAGGED, [0.02, 0.01, 0.03])
    blocks, asked = Blocks.at(starts), Blocks.at(np.array(period))
    seen = Seen(RAGGED, blocks, np.ones((6, 20)), noise, np.ones(4))
    relative = TreePosterior(prior, seen).variances(asked).mean(axis=1) / np.array([4, 1, 3, 1, 1, 1]) ** 2
    assert found == pytest.approx([np.sqrt(relative[0]), np.sqrt(relative[1:3].mean()), np.sqrt(relative[3])])
    assert np.all(level_errors(plan, RAGGED, [np.inf, 0.01, 0.03]) >= found)
    # noise is heavy where the rest leaves little open: then it tells more than its variance says
    laplace = PlannedNoise(0.1)
    assert laplace.variance == pytest.approx(0.02)
    predicted = expected_level_errors(plan, RAGGED, [laplace, laplace, laplace])
    assert np.all(predicted < level_errors(plan, RAGGED, [0.02, 0.02, 0.02]))
    assert 0.01 < laplace.noise_variance(1e-3) < laplace.noise_variance(1.0) < 0.0201


def trips(n_days, seed=0, weekend=0.8):
    """Trips of thirty zones: twenty nearly empty, eight of a few, two busy; a shape of the day."""
    hours = np.arange(n_days * SLOTS)
    shape = 1 + 0.6 * np.sin((hours - 9) * np.pi / 12)
    rates = RATES[:, None] * shape * np.where(hours // SLOTS % 7 > 4, weekend, 1.0)
    return np.random.default_rng(seed).poisson(rates).astype(float)


def counted(**given):
    return informed(**{"model": COUNTED, "scale": 1.0, "counts": True} | given)


def on_tree(shares=SHARES, **given):
    given = {"n_blocks": 2, "block_length": 2} | given
    return HistoryInformedTree(counted(**given), CITY, shares)


def draw(mechanism, stream, state=None, first_step=0, lengths=None):
    lengths = lengths or [SLOTS] * (stream.shape[1] // SLOTS)
    periods = np.split(stream, np.cumsum(lengths), axis=1)[: len(lengths)]
    return in_turn(mechanism.measure, periods, lambda step: simulated_noise([1, step]), first_step, state)


MECHANISM = on_tree()


def exact_loss(periods, window_length):
    """The most that readings changed by alpha in one leaf lose: moved steps of each block over its scale."""
    blocks = []
    for one in periods:
        for part in one.parts:
            scale = float(np.sqrt(part.answers.variances[0].ravel()[0] / 2))
            blocks += [(part.first_step + a, part.first_step + b, scale) for a, b in part.choices["blocks"]]
    last = max(stop for _, stop, _ in blocks)
    return max(
        sum(max(min(stop, at + window_length) - max(start, at), 0) / b for start, stop, b in blocks)
        for at in range(-window_length, last)
    )


def test_small_leaves_have_one_block_a_window_and_the_levels_above_share_theirs():
    mechanism = on_tree()
    assert mechanism.small_level == 2
    blocks = [own.blocks for _, own in mechanism.levels]
    assert blocks[0] == blocks[1]
    assert (blocks[2].n_blocks, blocks[2].length) == (1, 4)
    assert mechanism.epsilon <= COUNTED.epsilon
    assert float(mechanism.epsilon) == pytest.approx(1)


@pytest.mark.parametrize("window", few([5, 24, 25, 23, 48], 3))
@pytest.mark.parametrize("blocks", [(1, 1), (2, 2), (3, 1)])
def test_no_window_loses_more_wherever_periods_begin(window, blocks):
    """Periods of any lengths, gaps none; by the accountant and by the attack, over all windows."""
    model = PrivacyModel("1", window, 1, resolution=1)
    mechanism = on_tree(model=model, n_blocks=blocks[0], block_length=blocks[1], relearn_days=0)
    lengths = [1, 24, 23, 25, 7, 2, 24, 24]
    periods = draw(mechanism, trips(6)[:, : sum(lengths)], lengths=lengths)
    assert worst_window(spends_of(periods), window).epsilon <= 1
    assert exact_loss(periods, window) <= 1 + 1e-9
    # all that was planned is measured: levels with blocks of their own do not crowd each other out
    for one, (at, end) in zip(periods, pairwise(np.cumsum([0, *lengths])), strict=True):
        for (_, own), part in zip(mechanism.levels, one.parts, strict=True):
            planned = own.blocks.parts(int(at), int(end - at))
            assert part.choices["blocks"] == [[block.start, block.stop] for block in planned]


@pytest.mark.parametrize("days", [1, 3])
@pytest.mark.parametrize(
    "before",
    [
        lambda: Hierarchical(Laplace(COUNTED), CITY, ["1/4", "1/4", "1/2"]),
        lambda: on_tree(counts=False, n_blocks=6, block_length=2),
        lambda: on_tree(["1/12", "1/12", "5/6"], n_blocks=1, block_length=3),
        lambda: on_tree(["1/2", "1/4", "1/4"], n_blocks=8, block_length=1),
    ],
    ids=["Laplace", "no counts", "leaves first", "root first"],
)
def test_after_another_plan_levels_share_one_headroom(before, days):
    """The change of plan: no window exceeds epsilon, and what fits is measured again within two days."""
    mechanism, stream, cut = on_tree(relearn_days=0), trips(6), days * SLOTS
    first = draw(before(), stream[:, :cut])
    state = mechanism.recall(spends_of(first), first[-1].state)
    second = draw(mechanism, stream[:, cut : cut + 3 * SLOTS], state=state, first_step=cut)
    assert worst_window(spends_of(first + second), SLOTS).epsilon <= COUNTED.epsilon
    for part in second[2].parts:
        assert part.choices["blocks"]


class Hiding:
    """Simulated noise that makes up for a change: at each call less what the change moved there, in turn."""

    simulated = True

    def __init__(self, seed, moved):
        self._source, self._moved = simulated_noise(seed), list(moved)

    def discrete_laplace(self, scale, size):
        return self._source.discrete_laplace(scale, size) - self._moved.pop(0)


def test_everything_but_the_noisy_sums_is_the_same_for_neighbours():
    """Noise that hides one customer's change exactly, at every level: nothing else tells the two apart."""
    mechanism, states, released = on_tree(), [None, None], [[], []]
    (_, of_leaves) = mechanism.levels[-1]
    stream, other, at = trips(9), trips(9), 3 * SLOTS + of_leaves.blocks.parts(3 * SLOTS, SLOTS)[0].start
    other[4, at] += 1.0
    path = [0, 1 + 4 % N_BOROUGHS, 1 + N_BOROUGHS + 4]
    for day in range(9):
        first = day * SLOTS
        for side, whole in enumerate((stream, other)):
            moved = []
            for (level, own), node in zip(mechanism.levels, path, strict=True):
                parts = own.blocks.parts(first, SLOTS)
                units = np.zeros((len(CITY.levels[level]), len(parts)), dtype=np.int64)
                units[node - CITY.levels[level].start] = [side * (at - first in part) for part in parts]
                moved.append(units)
            release = mechanism.release(
                whole[:, first : first + SLOTS], noise=Hiding([7, day], moved), first_step=first,
                state=states[side],
            )  # fmt: skip
            states[side] = release.state
            released[side].append(release)
    for one, two in zip(*released, strict=True):
        assert one.measured.to_bytes() == two.measured.to_bytes()
        assert np.array_equal(one.values, two.values)
        assert np.array_equal(one.bands, two.bands)


def test_what_a_version_with_other_components_learned_is_learned_anew_the_next_night():
    """And not after as many days as it had been known: until then each day would be judged by medians."""
    before, after = on_tree(components=COUNT_COMPONENTS), on_tree()
    state = draw(before, trips(10))[-1].state
    assert state["learned"] < 10
    ready = after.prepared(state, 10 * SLOTS)
    medians = after._belief(None).prior.logs
    assert ready["learned"] == 10
    assert len(ready["prior"]) == len(medians)
    assert not np.allclose(ready["prior"], medians)


@pytest.mark.slow
@pytest.mark.parametrize(("n_seeds", "n_days"), [(4, 14), pytest.param(8, 28, marks=pytest.mark.nightly)])
def test_sums_over_weeks_are_unbiased_for_nodes_of_every_size(n_seeds, n_days):
    """Values are never negative and err less; their sums are biased, those of estimates are not."""
    stream, missed, said = trips(n_days, weekend=1.0), [], []
    truth = CITY.add_up(stream)[:, n_days // 2 * SLOTS :].sum(axis=1)
    days = np.split(stream, n_days, axis=1)
    for seed in range(n_seeds):
        measured = in_turn(MECHANISM.measure, days, daily_noise(seed, SLOTS))
        found = [MECHANISM.estimate(one) for one in measured[n_days // 2 :]]
        for release in found:
            assert release.values.min() >= 0
            assert np.allclose(CITY.add_up(release.estimate[CITY.leaf_indices]), release.estimate)
        if seed < 4:  # 100 replicates in all
            said.append(sum(release.replicates(25)[1].sum(axis=2) for release in found).var(axis=0, ddof=1))
        missed.append(sum(release.estimate.sum(axis=1) for release in found) - truth)
    said = np.sqrt(np.mean(said, axis=0))
    missed, sizes = np.array(missed), np.concatenate([np.full(1 + N_BOROUGHS, -1.0), RATES])
    assert CITY.nodes[-N_ZONES:] == tuple(ZONES)
    for group in (CITY.depths == 0, CITY.depths == 1, *(sizes == rate for rate in set(RATES))):
        bias = missed[:, group].mean(axis=1)
        assert abs(bias.mean()) < 2 * bias.std(ddof=1) / len(bias) ** 0.5
        assert (np.abs(missed) < 1.96 * said)[:, group].mean() > 0.9


def test_once_learned_the_expected_errors_are_those_that_estimates_state():
    """The control is what the prior alone expects, which knows no busy and no empty zones."""
    mechanism = on_tree(n_blocks=4, block_length=1)
    measured = draw(mechanism, trips(9))[-1]
    learned = mechanism.with_learned(measured.state, keeps_blocks=True)
    errors = mechanism.estimate(measured).standard_errors
    stated = [np.sqrt((errors[list(level)] ** 2).mean()) for level in CITY.levels]
    assert np.allclose(learned.expected_by_level()[:, 0], stated, rtol=1e-9)
    other = mechanism.with_learned(measured.state, keeps_blocks=False).expected_by_level()[:, 0]
    assert not np.allclose(other, stated, rtol=0.3)
    assert mechanism.with_learned(None, keeps_blocks=True) is mechanism


def test_closed_hours_are_in_their_bands_and_leaves_go_by_the_days_that_their_parents_know():
    """Five museums, Mondays off, one simulated draw. The fit of their sum reads 28 days of 56: 672 blocks."""
    tree = AggregationTree.from_parents({"all": None, **dict.fromkeys("abcde", "all")})
    random, days = np.random.default_rng(3), np.arange(58)
    visitors = np.array([0, 0.7, 0.7, 0.8, 1, 1.8, 1.7])[days % 7] * np.exp(random.normal(0, 0.15, 58))
    opened = (np.arange(SLOTS) // 9 == 1) * visitors[:, None]
    truth = random.poisson(np.array([[120.0], [90], [60], [50], [130]]) * opened.ravel())
    mechanism = HistoryInformedTree(
        counted(scale=30.0, n_blocks=24, block_length=1, relearn_days=0), tree, ["7/8", "1/8"]
    )
    assert mechanism.small_level == 1
    released = [mechanism.estimate(one) for one in draw(mechanism, truth.astype(float))[-7:]]
    low, high = np.stack([one.bands for one in released], axis=1)
    true = tree.add_up(truth)[:, -7 * SLOTS :].reshape(6, 7, SLOTS).swapaxes(0, 1)
    held = ((low <= true) & (true <= high))[:, 0]
    assert held[:, opened[-1] == 0].mean() > 0.9
    assert held.mean() > 0.9
    missed = np.stack([one.values for one in released])[:, 1:] - true[:, 1:]
    errors = np.stack([one.standard_errors for one in released])[:, 1:]
    assert 0.5 < np.sqrt((errors**2).mean() / (missed**2).mean()) < 2.0


@pytest.mark.slow
def test_a_measured_count_errs_as_its_noise_does_and_hardly_by_its_expectation():
    """Daily cases of 12 regions, each measured: stated and found errors of the nation and of regions."""
    random, n_days = np.random.default_rng(3), 70
    tree = AggregationTree.from_parents({"nation": None} | {f"region {n}": "nation" for n in range(12)})
    wave = 200 * np.exp(random.normal(0, 0.6, (12, 1)) + 0.6 * np.sin(np.arange(n_days) / 12))
    cases = random.poisson(wave * random.gamma(30, 1 / 30, wave.shape)).astype(float)
    days = PublicDays.from_date(date(2024, 1, 1), 1)
    pattern = counted(
        model=PrivacyModel("1", 7, 1, resolution=1), days=days, scale=200.0, n_blocks=7, block_length=1
    )
    mechanism = HistoryInformedTree(pattern, tree, ["1/2", "1/2"])
    found = [mechanism.estimate(one) for one in draw(mechanism, cases, lengths=[1] * n_days)[n_days // 2 :]]
    truth = tree.add_up(cases)[:, n_days // 2 :]
    missed = np.stack([one.values[:, 0] for one in found], axis=1) - truth
    stated = np.stack([one.standard_errors[:, 0] for one in found], axis=1)
    for level in tree.levels:
        at = slice(level.start, level.stop)
        ratio = np.sqrt((stated[at] ** 2).mean() / (missed[at] ** 2).mean())
        assert 0.8 < ratio < 1.3, "1.5 where errors of expectations count by the part and not by its square"
