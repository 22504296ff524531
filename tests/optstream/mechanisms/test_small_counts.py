"""Counts on a tree: blocks of their own for small leaves, one headroom for all; what is published of them."""

from datetime import date
from itertools import pairwise

import numpy as np
import pytest

from optstream.history.prior import COUNT_COMPONENTS
from optstream.mechanisms import Hierarchical, HistoryInformed, HistoryInformedTree, Laplace
from optstream.privacy import PrivacyModel, worst_window
from optstream.stream import AggregationTree
from optstream.stream.public_days import PublicDays
from tests.by_night import few
from tests.optstream.mechanisms.planned_days import daily_noise, drawn, in_turn, spends_of
from tests.optstream.mechanisms.silent_noise import Hiding

SLOTS = 24
DAYS = PublicDays.from_date(date(2024, 1, 1), SLOTS)
MODEL = PrivacyModel("1", SLOTS, 1, resolution=1)
N_BOROUGHS, N_ZONES = 3, 30
BOROUGHS = {f"b{number}": "city" for number in range(N_BOROUGHS)}
ZONES = {f"z{number}": f"b{number % N_BOROUGHS}" for number in range(N_ZONES)}
TREE = AggregationTree.from_parents({"city": None, **BOROUGHS, **ZONES})
SHARES = ["1/3", "1/6", "1/2"]
RATES = np.where(np.arange(N_ZONES) < 20, 0.02, np.where(np.arange(N_ZONES) < 28, 0.5, 12.0))


def trips(n_days, seed=0, weekend=0.8):
    """Trips of thirty zones: twenty nearly empty, eight of a few, two busy; a shape of the day."""
    hours = np.arange(n_days * SLOTS)
    shape = 1 + 0.6 * np.sin((hours - 9) * np.pi / 12)
    rates = RATES[:, None] * shape * np.where(hours // SLOTS % 7 > 4, weekend, 1.0)
    return np.random.default_rng(seed).poisson(rates).astype(float)


def informed(**given):
    model = given.pop("model", MODEL)
    return HistoryInformed(model, **{"days": DAYS, "scale": 1.0, "counts": True} | given)


def on_tree(shares=SHARES, **given):
    given = {"n_blocks": 2, "block_length": 2} | given
    return HistoryInformedTree(informed(**given), TREE, shares)


def draw(mechanism, stream, state=None, first_step=0, lengths=None):
    return drawn(mechanism, stream, lengths or [SLOTS] * (stream.shape[1] // SLOTS), state, first_step)


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
    assert mechanism.epsilon <= MODEL.epsilon
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
        lambda: Hierarchical(Laplace(MODEL), TREE, ["1/4", "1/4", "1/2"]),
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
    assert worst_window(spends_of(first + second), SLOTS).epsilon <= MODEL.epsilon
    for part in second[2].parts:
        assert part.choices["blocks"]


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
                units = np.zeros((len(TREE.levels[level]), len(parts)), dtype=np.int64)
                units[node - TREE.levels[level].start] = [side * (at - first in part) for part in parts]
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
    truth = TREE.add_up(stream)[:, n_days // 2 * SLOTS :].sum(axis=1)
    days = np.split(stream, n_days, axis=1)
    for seed in range(n_seeds):
        measured = in_turn(MECHANISM.measure, days, daily_noise(seed, SLOTS))
        found = [MECHANISM.estimate(one) for one in measured[n_days // 2 :]]
        for release in found:
            assert release.values.min() >= 0
            assert np.allclose(TREE.add_up(release.estimate[TREE.leaf_indices]), release.estimate)
        if seed < 4:  # 100 replicates in all
            said.append(sum(release.replicates(25)[1].sum(axis=2) for release in found).var(axis=0, ddof=1))
        missed.append(sum(release.estimate.sum(axis=1) for release in found) - truth)
    said = np.sqrt(np.mean(said, axis=0))
    missed, sizes = np.array(missed), np.concatenate([np.full(1 + N_BOROUGHS, -1.0), RATES])
    assert TREE.nodes[-N_ZONES:] == tuple(ZONES)
    for group in (TREE.depths == 0, TREE.depths == 1, *(sizes == rate for rate in set(RATES))):
        bias = missed[:, group].mean(axis=1)
        assert abs(bias.mean()) < 2 * bias.std(ddof=1) / len(bias) ** 0.5
        assert (np.abs(missed) < 1.96 * said)[:, group].mean() > 0.9


def test_once_learned_the_expected_errors_are_those_that_estimates_state():
    """The control is what the prior alone expects, which knows no busy and no empty zones."""
    mechanism = on_tree(n_blocks=4, block_length=1)
    measured = draw(mechanism, trips(9))[-1]
    learned = mechanism.with_learned(measured.state, keeps_blocks=True)
    errors = mechanism.estimate(measured).standard_errors
    stated = [np.sqrt((errors[list(level)] ** 2).mean()) for level in TREE.levels]
    assert np.allclose(learned.expected_by_level()[:, 0], stated, rtol=1e-9)
    other = mechanism.with_learned(measured.state, keeps_blocks=False).expected_by_level()[:, 0]
    assert not np.allclose(other, stated, rtol=0.3)
    assert mechanism.with_learned(None, keeps_blocks=True) is mechanism


def test_closed_hours_are_in_their_bands_and_leaves_go_by_the_days_that_their_parents_know():
    """Five museums, Mondays off, one simulated draw. The fit of their sum reads 14 days of 28: 336 blocks."""
    tree = AggregationTree.from_parents({"all": None, **dict.fromkeys("abcde", "all")})
    random, days = np.random.default_rng(3), np.arange(30)
    visitors = np.array([0, 0.7, 0.7, 0.8, 1, 1.8, 1.7])[days % 7] * np.exp(random.normal(0, 0.15, 30))
    opened = (np.arange(SLOTS) // 9 == 1) * visitors[:, None]
    truth = random.poisson(np.array([[120.0], [90], [60], [50], [130]]) * opened.ravel())
    mechanism = HistoryInformedTree(informed(scale=30.0, n_blocks=24, block_length=1), tree, ["7/8", "1/8"])
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
    pattern = informed(model=PrivacyModel("1", 7, 1, resolution=1), days=days, scale=200.0, n_blocks=7)
    mechanism = HistoryInformedTree(pattern, tree, ["1/2", "1/2"])
    found = [mechanism.estimate(one) for one in draw(mechanism, cases, lengths=[1] * n_days)[n_days // 2 :]]
    truth = tree.add_up(cases)[:, n_days // 2 :]
    missed = np.stack([one.values[:, 0] for one in found], axis=1) - truth
    stated = np.stack([one.standard_errors[:, 0] for one in found], axis=1)
    for level in tree.levels:
        at = slice(level.start, level.stop)
        ratio = np.sqrt((stated[at] ** 2).mean() / (missed[at] ** 2).mean())
        assert 0.8 < ratio < 1.3, "1.5 where errors of expectations count by the part and not by its square"
