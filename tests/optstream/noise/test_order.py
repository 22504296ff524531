"""Noise for a whole stream: orders by counting, its law, its loss, nights; false alarm 1e-7 a run."""

import math
from collections import Counter
from fractions import Fraction
from itertools import permutations, product
from unittest.mock import Mock

import numpy as np
import pytest
from scipy import stats

from optstream.errors import NoiseError
from optstream.noise import order, secure_noise, simulated_noise
from optstream.noise.order import MOST_BLOCKS, VARIANCES, Order, order_noise, order_table
from optstream.privacy.spends import ORDER_DEFECT

FALSE_ALARM = 1e-9
SOURCES = {"secure": secure_noise(), "simulated": simulated_noise(5)}
WRONG = {"spacing": {"drawn_as": 1}, "lost": {"forget": True}}


def sizes_of(window, nights, source, scale=1000.0, n_series=4000, forget=False, drawn_as=None):
    """Return the noise of nights of so many blocks each, (n_series, blocks), in scales."""
    orders, found = (Order(scale, drawn_as or window),) * n_series, []
    for count in nights:
        noise, orders = order_noise(source, count, orders)
        found.append(noise / scale)
        if forget:
            orders = (Order(scale, window),) * n_series
    return np.concatenate(found, axis=1)


@pytest.mark.parametrize("window", [1, 2, 3, 4])
def test_the_steps_of_an_order_are_those_of_all_linear_extensions(window):
    _, moves, passed = order_table(window)
    n = 7
    paths = Counter({(0, 0): 1})
    for _ in range(n):
        after = Counter()
        for (first, ahead), count in paths.items():
            for block in range(window):
                if (to := int(moves[block, ahead])) >= 0:
                    after[first + (int(passed[ahead]) if block == 0 else 0), to] += count
        paths = after
    # those that place the first n blocks, and no other
    counted = sum(
        all(places.index(i) < places.index(j) for i in range(n) for j in range(i + window, n))
        for places in permutations(range(n))
    )
    assert paths[n, 0] == counted


@pytest.mark.parametrize("window", [1, 2, 3, 4, 6, 8, 11, 14, 15, 16])
def test_rounded_weights_cost_less_than_is_charged(window):
    weights, moves, _ = order_table(window)
    assert weights.min() > 0
    grown = np.where(moves >= 0, weights[moves], 0).sum(axis=0)
    growth = grown.astype(np.longdouble) / weights
    low, high = int(growth.argmin()), int(growth.argmax())
    spread = Fraction(int(grown[high]), int(weights[high])) / Fraction(int(grown[low]), int(weights[low])) - 1
    assert 2 * (spread + Fraction(1, 2**60)) * (MOST_BLOCKS + window) < ORDER_DEFECT


def test_each_next_block_has_exactly_its_weight():
    """Of window 2: block 0 first for every number below its weight, block 1 for every other."""
    weights, moves, _ = order_table(2)
    first, both = int(weights[moves[0, 0]]), int(weights[moves[:, 0]].sum())
    for number, block in [(0, 0), (first - 1, 0), (first, 1), (both - 1, 1)]:
        source = Mock(uniform_below=Mock(side_effect=[np.array([number]), np.array([0])]))
        assert order._placed(source, 2, 1, [Order(1.0, 2)])[0][0] == block


def eigenvector(window):
    """Return the powers and coefficients of h, and its growth, by the transfer operator over sizes.

    h is a polynomial of the increments g of the largest chain at the last window - 1 blocks: a block's size
    below S, their sum, adds none, one of S + x adds x at weight e^-x. No linear extension is in it.
    """
    powers = [
        e for e in product(range(window), repeat=window - 1) if all(sum(e[:k]) <= k for k in range(window))
    ]
    at = {e: number for number, e in enumerate(powers)}
    matrix = np.zeros((len(powers), len(powers)))
    for e in powers:  # T h (g1, ...) = S h(g2, ..., 0) + integral of e^-x h(g2, ..., x)
        shifted = (0, *e[:-1])
        matrix[at[shifted], at[e]] += math.factorial(e[-1]) if e else 1
        for place in range(window - 1) if e and e[-1] == 0 else ():
            more = tuple(power + (place == n) for n, power in enumerate(shifted))
            matrix[at[more], at[e]] += 1.0
    values, vectors = np.linalg.eig(matrix)
    largest = int(values.real.argmax())
    found = vectors[:, largest].real
    return np.array(powers), found / found[at[(0,) * (window - 1)]], float(values[largest].real)


def chains(sizes, window):
    """Return the largest sum of a chain that ends at or before each block, with a 0 in front."""
    found = [0.0]
    for number, size in enumerate(np.abs(sizes)):
        found.append(max(found[-1], size + (found[number + 1 - window] if number >= window else 0.0)))
    return np.array(found)


def log_density(sizes, window, known):
    powers, coefficients, growth = known
    largest = chains(sizes, window)
    rises = np.concatenate([np.zeros(window - 1), np.diff(largest)])[len(sizes) :]
    h = float(coefficients @ np.prod(rises**powers, axis=1))
    return -largest[-1] + math.log(h) - len(sizes) * math.log(2 * growth)


@pytest.mark.parametrize("window", [2, 3, 4, 5])
def test_no_window_loses_more_than_epsilon_and_two_windows_do(window):
    known, rng, worst, worst_of_two = eigenvector(window), np.random.default_rng(window), 0.0, 0.0
    for trial in range(1200):
        sizes = rng.laplace(size=int(rng.integers(window, 5 * window))) * window
        start = int(rng.integers(0, len(sizes)))
        change = np.zeros(len(sizes))
        moved = change[start : start + window]
        # away from the noise, or anywhere
        moved[:] = np.sign(sizes[start : start + window]) if trial % 2 else rng.uniform(-1, 1, moved.size)
        loss = log_density(sizes, window, known) - log_density(sizes + change, window, known)
        worst = max(worst, abs(loss))
        change[start : start + window + 1] = np.sign(sizes[start : start + window + 1])
        worst_of_two = max(
            worst_of_two, log_density(sizes, window, known) - log_density(sizes + change, window, known)
        )
    assert 0.99 < worst < 1 + 1e-9
    assert worst_of_two > 1.5


@pytest.mark.parametrize(
    ("source", "wrong", "grid"),
    [
        ("secure", None, 48),
        ("simulated", None, 1),
        *(("simulated", wrong, 48) for wrong in WRONG),
        pytest.param("secure", None, 1, marks=pytest.mark.nightly),
        pytest.param("simulated", None, 48, marks=pytest.mark.nightly),
    ],
)
def test_two_blocks_over_midnight_have_the_density_of_the_norm(source, wrong, grid, monkeypatch):
    """Of window 2, h = 1 + g / phi: blocks 2 and 3 of two nights, given blocks 0 and 1, cell by cell."""
    monkeypatch.setattr(order, "GRID", grid)
    cells = 6
    n_series = 12_000 if grid > 1 else 4_000
    drawn = sizes_of(2, [1, 1], SOURCES[source], scale=2.0, n_series=n_series, **WRONG.get(wrong, {}))
    noise = np.abs(drawn) * 2.0
    found = np.zeros((cells, cells))
    np.add.at(found, tuple(np.minimum(np.rint(noise).astype(int), cells - 1).T), 1)
    phi = (1 + 5**0.5) / 2
    at = (np.arange(0, 80, 0.05) + 0.025) / 2.0  # in scales
    first, second = np.meshgrid(at, at, indexing="ij")
    largest = np.maximum(first, second)
    density = np.exp(-largest) * (1 + (largest - first) / phi) / phi**2
    place = np.minimum(np.floor(at * 2.0 + 0.5).astype(int), cells - 1)
    expected = np.zeros((cells, cells))
    np.add.at(expected, (place[:, None], place[None, :]), density)
    expected *= found.sum() / expected.sum()
    chance = stats.chi2.sf(((found - expected) ** 2 / expected).sum(), cells**2 - 1)
    assert bool(chance > FALSE_ALARM) is (wrong is None)


def exact_variance(window):
    """The mean of N (N + 1), N steps of the order from a block's last predecessor to itself, by the table."""
    weights, moves, passed = order_table(window)
    sets = np.arange(weights.size)
    chance = np.where(moves >= 0, weights[np.maximum(moves, 0)], 0).astype(float)
    chance /= chance.sum(axis=0)
    shares = np.full(sets.size, 1.0 / sets.size)
    for _ in range(2000):
        after = np.zeros(sets.size)
        for to, odds in zip(moves, chance, strict=True):
            np.add.at(after, np.maximum(to, 0), shares * odds)
        shares = after
    waiting = np.array([(sets >= 0) if at == 0 else (sets >> (at - 1) & 1) == 0 for at in range(window)])
    mean, square = np.zeros((2, window, sets.size))
    for _ in range(3 * window):  # each step brings blocks nearer
        means, squares = np.ones_like(mean), np.full_like(square, 2.0)
        for at in range(window):
            for placed in range(window):
                place = at - (passed if placed == 0 else 0)
                to, lasts = np.maximum(moves[placed], 0), (placed != at) & (place >= 0)
                odds, place = np.where(lasts, chance[placed], 0.0), np.maximum(place, 0)
                means[at] += odds * mean[place, to]
                squares[at] += odds * (square + 2 * mean)[place, to]
        mean, square = means * waiting, squares * waiting
    total = 0.0
    for freed in range(1, window + 1):
        for at in range(window - freed, window):
            some = passed == freed
            total += (shares * chance[0] * square[at, moves[0]])[some].sum()
    return total


@pytest.mark.parametrize("window", [2, 3, 5, 8])
def test_the_stated_variances_are_those_of_the_table(window):
    assert exact_variance(window) == pytest.approx(VARIANCES[window - 1], abs=1e-6)
    assert VARIANCES[1] == pytest.approx(3 + 5**0.5, abs=1e-6)


@pytest.mark.parametrize(
    ("window", "variance"),
    [
        (4, 15.0),
        (12, 91.7),
        *(pytest.param(*one, marks=pytest.mark.nightly) for one in [(6, 28.6), (8, 45.7)]),
    ],
)
def test_variances_are_those_of_the_transfer_operator(window, variance):
    """By simulation elsewhere, to 2 %; Laplace noise of the same loss has 2 * window^2."""
    noise = sizes_of(window, [3 * window, window], simulated_noise(window), n_series=6000)
    squares = (noise[:, 3 * window :] ** 2).mean(axis=1)
    assert abs(squares.mean() / variance - 1) < 0.02 + 6.2 * squares.std() / variance / 6000**0.5
    # uncorrelated: each sign is its own
    products = noise[:, -1] * noise[:, -2]
    assert abs(products.mean()) < 6.2 * products.std() / 6000**0.5


def test_nights_of_any_lengths_have_the_same_law():
    whole = np.abs(sizes_of(3, [12], simulated_noise(1), n_series=2_500))
    for nights in ([5, 7], [1] * 12, [3, 4, 5]):
        parts = np.abs(sizes_of(3, nights, simulated_noise(2), n_series=2_500))
        for block in (0, 4, 5, 11):
            assert stats.ks_2samp(whole[:, block], parts[:, block]).pvalue > FALSE_ALARM, nights
        largest = [one[:, 3:9].max(axis=1) for one in (whole, parts)]
        assert stats.ks_2samp(*largest).pvalue > FALSE_ALARM, nights


@pytest.mark.parametrize("scale", [0.1, 0.4, 3.0])
def test_digits_that_are_added_are_those_of_an_exponential(scale):
    """Digits 1 and 2 after the point, each 1 with chance 1 / (1 + exp(2^-digit / scale)), independent."""
    points = order._Points(simulated_noise(4), Order(scale, 1, digits=2), [0] * 12_000, 0)
    found = np.bincount(points.gaps, minlength=4)
    first, second = 1 / (1 + np.exp(0.5 / scale)), 1 / (1 + np.exp(0.25 / scale))
    expected = found.sum() * np.outer([1 - first, first], [1 - second, second]).ravel()
    assert stats.chi2.sf(((found - expected) ** 2 / expected).sum(), 3) > FALSE_ALARM


@pytest.mark.parametrize("grid", [48, 1])
def test_one_block_a_window_has_laplace_noise_rounded(grid, monkeypatch):
    monkeypatch.setattr(order, "GRID", grid)
    units = np.rint(sizes_of(1, [4] * 2, simulated_noise(9), scale=3.0, n_series=1000) * 3.0).astype(int)
    found = np.bincount(np.minimum(np.abs(units).ravel(), 12), minlength=13)
    ends = np.exp(-np.maximum(np.arange(14) - 0.5, 0) / 3.0)
    ends[13] = 0.0
    expected = found.sum() * -np.diff(ends)
    assert stats.chi2.sf(((found - expected) ** 2 / expected).sum(), 12) > FALSE_ALARM


@pytest.mark.parametrize(("scale", "window"), [(1.0, 0), (1.0, 17), (2.0**45, 4), (0.0, 4), (math.nan, 4)])
def test_a_scale_or_window_that_cannot_be_drawn_is_refused(scale, window):
    with pytest.raises(NoiseError):
        Order(scale, window)


def test_states_of_another_scale_or_window_and_too_many_blocks_are_refused():
    source, state = simulated_noise(1), Order(50.0, 4)
    for other in (Order(50.0, 3), Order(51.0, 4)):
        with pytest.raises(NoiseError, match="one scale and one window"):
            order_noise(source, 3, [state, other])
    with pytest.raises(NoiseError, match="begin a new one"):
        order_noise(None, 3, [Order(50.0, 4, drawn=MOST_BLOCKS - 2)])  # before anything is drawn
    assert order_noise(source, 2, [Order(1e-300, 4, drawn=MOST_BLOCKS - 2)])[1][0].drawn == MOST_BLOCKS
    assert order_noise(source, 2, [])[0].shape == (0, 2)
