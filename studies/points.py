"""How many points to sample, from public figures alone: their noise grows with their number, gaps shrink."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.privacy.exact import whole

Real = float | Fraction  # nothing here needs to be exact


@dataclass(frozen=True)
class Suggestion:
    """The number of points with the least bound, and that bound: mean absolute error a step."""

    n_samples: int
    error: float


def suggest_n_samples(window_length: int, epsilon: Real, alpha: Real, lipschitz: Real) -> Suggestion:
    """Return the n_samples in [2, w] whose `error_bound` is least, the smallest of several.

    epsilon: of the sampled points at one level. alpha: the most that one customer can change there at a step.
    lipschitz: the greatest move of a node's series from one step to the next, in the unit of the
    readings, a public figure: one computed from private readings would be an uncharged release.
    Near 1 + sqrt(L (w - 1) epsilon / (3 alpha)) where gaps are long.
    """
    _check(window_length, epsilon, alpha, lipschitz)
    counts = np.arange(2, window_length + 1)
    bounds = float(alpha / epsilon) * counts + float(lipschitz) * _missed(window_length, counts)
    best = int(np.argmin(bounds))
    return Suggestion(int(counts[best]), float(bounds[best]))


def error_bound(window_length: int, n_samples: int, epsilon: Real, alpha: Real, lipschitz: Real) -> float:
    """Return a bound on the mean absolute error a step of `EquallySpaced(n_samples)`, reconstructed.

    It holds in expectation for every period of w steps, wherever it begins, of every series that moves by
    at most L (`lipschitz`) a step; before features and consistency, the rounding to the resolution left out.

    Proof. *Noise.* Points carry Laplace noise of scale b = k alpha / epsilon, whose mean absolute value is
    at most b (discrete: 1 / sinh(1 / b), in units). Between two points the noise is a convex combination
    of theirs, held ends repeat one: at most b by the triangle inequality. *Reconstruction.* At offset s of a
    gap of d steps the line weighs its ends (d - s) / d and s / d, from which the series is at most L s and
    L (d - s) away: it misses by at most 2 L s (d - s) / d, which adds up to L (d^2 - 1) / 3 over the gap.
    The residues' gaps add up to w - 1 and each is the quotient (w - 1) / (k - 1), rounded down or up; the
    gap from residue w - 1 to residue 0 is 1 and has no step inside. *Ends.* A period that begins inside a
    gap cuts it: c - 1 of its steps are held from the left, d - c from the right, off by at most L a step of
    distance, in all L ((c - 1) c + (d - c) (d - c + 1)) / 2 <= L d (d - 1) / 2, by convexity in c. That is
    L (d - 1) (d - 2) / 6 more than without the cut, and only one gap is cut; the longest bounds it.
    Source: after OptStream, Theorem 11.
    """
    _check(window_length, epsilon, alpha, lipschitz)
    whole(n_samples, "n_samples of error_bound", 2, window_length)
    missed = _missed(window_length, np.array([n_samples]))
    return float(n_samples * alpha / epsilon + float(lipschitz) * missed[0])


def _missed(window_length: int, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the bound's part for the reconstruction at L = 1, for each number of points."""
    gaps = counts - 1
    shorter, n_longer = np.divmod(window_length - 1, gaps)
    inside = n_longer * ((shorter + 1) ** 2 - 1) + (gaps - n_longer) * (shorter**2 - 1)
    longest = shorter + (n_longer > 0)
    cut = (longest - 1) * (longest - 2)
    return np.asarray((inside / 3 + cut / 6) / window_length, dtype=np.float64)


def _check(window_length: object, epsilon: Real, alpha: Real, lipschitz: Real) -> None:
    whole(window_length, "window_length", 2)
    for name, value in (("epsilon", epsilon), ("alpha", alpha)):
        if not (value > 0 and math.isfinite(value)):
            raise ParameterError(f"{name} must be a finite number greater than 0; got {value!r}")
    if not (lipschitz >= 0 and math.isfinite(lipschitz)):
        raise ParameterError(f"lipschitz must be a finite number of at least 0; got {lipschitz!r}")
