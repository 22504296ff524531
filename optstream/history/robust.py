"""Posteriors by the exact distributions of Laplace and joint noise, robust to a few wild values."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from optstream.history.posterior import Seen, TreePosterior
from optstream.history.self_check import EXACT_LATEST

Floats = NDArray[np.float64]

ROUNDS = 2
DAMPING = 0.8
GRID = np.linspace(0.0, 12.0, 1201)  # of standard deviations, for expectations
IN_TABLE, TABLE = 16, (1e-14, 1e5)
"""Entries of the table of Laplace noise's information for each unit of log(variance / scale^2); its ends."""
LEAST_DEVIATION = 0.15  # least standard deviation of the model, in scales of joint noise, for the grid
FARTHEST = 12.0  # standard deviations of the radius, above its mean
BEYOND = 4.0  # standard deviations of the model up to which a score is computed, where that is farther
STEPS = 0.25, 0.75
"""Of the grid of radii, in scales: scores are known to 3e-4, or 0.003 for a deviation below half a scale."""
REACH = 8.5  # standard deviations beyond which a normal's tail is nothing next to 1
NEARLY_NORMAL = 100.0
"""Variances of joint noise, above which the model's makes their sum normal within a percent."""
N_POINTS = 512  # for the integral of the information of joint noise
LOG_STEP = 0.5  # between the logarithms of variances where that is done; it changes slowly with them


def with_known_noise(posterior: TreePosterior) -> TreePosterior:
    """Return the posterior of pseudo-values that carry each measured value's information, given its noise.

    Given all others a value is N(mu, v) plus noise of a known scale b; p is the density of the two together.
    Its posterior mean is mu + v psi, psi = -(log p)', and its variance v - v^2 I on average, I = E[psi^2]
    (Masreliez 1975): those of Gaussian noise of variance 1/I - v on the pseudo-value mu + psi / I. For
    Laplace noise 1/I - v lies between b^2 and 2 b^2; for groups of g with joint noise between g b^2 and (g +
    1)(g + 2) b^2 / 3. Noise of a whole stream is taken as that of one block of a group of its own. One
    variance serves all values of a node; the values are found by a few rounds.
    """
    seen = posterior.seen
    prior, rotation = posterior.prior, posterior.rotation
    known = np.flatnonzero(np.isfinite(seen.noise))
    values, noise = seen.residuals.copy(), seen.noise.copy()
    for number in range(ROUNDS):
        surprise, spread = (part[known] for part in posterior.left_out(EXACT_LATEST))
        del posterior  # of 10,000 nodes it takes 0.3 GB, which the next one takes in its place
        predicted = values[known] - surprise
        normal_variance = np.maximum(spread - noise[known, None], 1e-12 * spread).mean(axis=1, keepdims=True)
        del surprise, spread
        slope, fisher, least = score_and_information(
            seen, known, seen.residuals[known] - predicted, normal_variance
        )
        damping = 1.0 if number == 0 else DAMPING
        aimed = np.clip(1.0 / fisher - normal_variance, least, seen.noise[known, None])[:, 0]
        values[known] += damping * (predicted + slope / fisher - values[known])
        noise[known] += damping * (aimed - noise[known])
        del predicted, slope
        posterior = TreePosterior(prior, replace(seen, residuals=values, noise=noise), rotation)
    return posterior


def score_and_information(
    seen: Seen, known: NDArray[np.int64], surprise: Floats, normal_variance: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return psi of these nodes' values, (n_known, n), its mean square and the least 1/I - v, (n_known,
    1)."""
    scales = np.sqrt(seen.noise[known] / 2.0)[:, None]
    slope, fisher = score(surprise, normal_variance, scales), information(normal_variance, scales)
    least = scales**2
    if seen.like_group is None:
        return slope, fisher, least
    for row in np.flatnonzero((seen.like_group[known] > 1).any(axis=1)):
        sizes, variance = seen.like_group[known[row]], float(normal_variance[row, 0])
        of_sizes = np.zeros((2, sizes.size))
        for size in np.unique(sizes):
            at, of_scale = sizes == size, (size + 1) * (size + 2) / 3.0
            scale = float(np.sqrt(seen.noise[known[row]] / of_scale))
            if size == 1:
                of_sizes[:, at] = [[fisher[row, 0]], [1.0 / least[row, 0]]]
            else:
                known_of_size = joint_information(variance, scale, int(size))
                of_sizes[:, at] = [[known_of_size], [1.0 / (size * scale**2)]]
                slope[row, at] = joint_score(surprise[row, at], variance, scale, int(size))
        fisher[row, 0], least[row, 0] = of_sizes[0].mean(), 1.0 / of_sizes[1].mean()
    return slope, fisher, least


def score(surprise: Floats, normal_variance: Floats, scale: Floats) -> Floats:
    """Return -(log p)' of a normal of variance `normal_variance` plus Laplace noise; at most 1 / scale."""
    right, left = _halves(surprise, normal_variance, scale)
    return np.asarray(np.tanh(0.5 * (right - left)) / scale)


def information(normal_variance: Floats, scale: Floats) -> Floats:
    """Return E[score^2], between 1 / (normal_variance + 2 scale^2) and 1 / scale^2; by a table, to 1e-7."""
    place = IN_TABLE * np.log(np.clip(normal_variance / scale**2, *TABLE))
    number = np.floor(place).astype(np.int64)
    first = int(number.min()) - 1
    table = np.array([_times_normal(one) for one in range(first, int(number.max()) + 3)])
    t, at = place - number, number - first
    cubic = (
        -t * (t - 1.0) * (t - 2.0) / 6.0 * table[at - 1]
        + (t + 1.0) * (t - 1.0) * (t - 2.0) / 2.0 * table[at]
        - (t + 1.0) * t * (t - 2.0) / 2.0 * table[at + 1]
        + (t + 1.0) * t * (t - 1.0) / 6.0 * table[at + 2]
    )
    return np.asarray(cubic / (normal_variance + 2.0 * scale**2))


@lru_cache(maxsize=2048)
def _times_normal(number: int) -> float:
    """Return the information over that of normal noise, for a table's variance, at scale 1."""
    normal_variance = float(np.exp(number / IN_TABLE))
    return laplace_information(normal_variance, 1.0) * (normal_variance + 2.0)


def laplace_information(normal_variance: float, scale: float) -> float:
    """Return what `information` does of one value, by an integral over the surprise."""
    at = GRID * np.sqrt(normal_variance + 2.0 * scale**2)
    right, left = _halves(at, np.array(normal_variance), np.array(scale))
    density = np.exp(np.logaddexp(right, left) + normal_variance / (2.0 * scale**2))
    squares = (np.tanh(0.5 * (right - left)) / scale) ** 2
    return float((squares * density).sum() / density.sum())


def joint_score(surprise: Floats, normal_variance: float, scale: float, size: int) -> Floats:
    """Return -(log p)' of a normal plus the noise of a block of a group of `size`, (n,). Given the radius r,
    Gamma(size + 1), that noise is uniform on [-r, r]: one integral over r."""
    variance = (size + 1) * (size + 2) / 3.0 * scale**2
    if normal_variance > NEARLY_NORMAL * variance:  # where the grid over r would be long
        return surprise / (normal_variance + variance)
    deviation = max(np.sqrt(normal_variance) / scale, LEAST_DEVIATION)
    farthest = size + 1.0 + FARTHEST * np.sqrt(size + 1.0)
    # beyond the reach of both the noise and the model's variance the score is constant
    away = np.minimum(np.abs(surprise) / scale, max(farthest, BEYOND * deviation))[:, None]
    step = min(1.2 * deviation, float(np.clip(0.25 * deviation, *STEPS)))
    radius = step * np.arange(1, int((farthest + 6.0 * deviation) / step) + 2)
    nearer = (radius - away) / deviation
    inside, slopes = scipy.special.ndtr(nearer), np.exp(-0.5 * nearer**2)
    # the far side of the noise is seen from radii of a few deviations alone
    small = radius < REACH * deviation
    farther = (radius[small] + away) / deviation
    inside[:, small] -= scipy.special.ndtr(-farther)
    slopes[:, small] -= np.exp(-0.5 * farther**2)
    of_radius = (size - 1) * np.log(radius) - radius
    weights = np.exp(of_radius - of_radius.max())
    means = slopes @ weights / (inside @ weights)
    return np.asarray(np.sign(surprise) * means / (deviation * np.sqrt(2.0 * np.pi) * scale))


def joint_information(normal_variance: float, scale: float, size: int) -> float:
    """Return E[joint_score^2] by a fixed sequence of points that fill the cube; to some percent."""
    if size == 1:
        return laplace_information(normal_variance, scale)
    place = np.log(max(normal_variance / scale**2, LEAST_DEVIATION**2)) / LOG_STEP
    low = int(np.floor(place))
    left, right = (_log_noise_variance(number, size) for number in (low, low + 1))
    noise_variance = np.exp(left + (place - low) * (right - left))
    return float(1.0 / (noise_variance * scale**2 + normal_variance))


@lru_cache(maxsize=1024)
def _log_noise_variance(number: int, size: int) -> float:
    """Return the logarithm of 1/I - v, at scale 1 and one of the variances of the table."""
    normal_variance = float(np.exp(LOG_STEP * number))
    radius, place, normal = _even_points().T
    noise = scipy.special.gammaincinv(size + 1.0, radius) * (2.0 * place - 1.0)
    surprise = noise + np.sqrt(normal_variance) * scipy.special.ndtri(normal)
    slopes = joint_score(surprise, normal_variance, 1.0, size)
    # E[s psi] = 1, so that what the points miss of the spread cancels
    information_of_slopes = float((slopes**2).mean() / (slopes * surprise).mean())
    # no better than the density allows, no worse than the variance says
    least, most = float(size), (size + 1) * (size + 2) / 3.0
    return float(np.log(np.clip(1.0 / information_of_slopes - normal_variance, least, most)))


def _even_points() -> Floats:
    """Return points that fill a cube evenly, (N_POINTS, 3): multiples of a vector, modulo 1."""
    root = 2.0
    for _ in range(64):  # x^4 = x + 1; of a line x^2, the golden ratio
        root = (1.0 + root) ** (1.0 / 4)
    steps = root ** -np.arange(1.0, 4.0)
    return np.asarray((0.5 + np.arange(1, N_POINTS + 1)[:, None] * steps) % 1.0)


def _halves(surprise: Floats, normal_variance: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """Return logarithms of the parts of p with noise above and below 0, but for a common factor."""
    deviation = np.sqrt(normal_variance)
    right = -surprise / scale + scipy.special.log_ndtr((surprise - normal_variance / scale) / deviation)
    left = surprise / scale + scipy.special.log_ndtr(-(surprise + normal_variance / scale) / deviation)
    return right, left
