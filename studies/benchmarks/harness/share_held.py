"""Shares of what was counted, and how sure they are where what is counted goes together."""

import numpy as np
from numpy.typing import NDArray


def share(held: NDArray[np.float64] | NDArray[np.bool_], draws: NDArray[np.float64]) -> str:
    """Return a share and its standard error, such as "94.9% ± 0.5%"; what belongs to one draw counts as one.

    held: (n,), which part of each was held. draws: (n, k), of each k numbers by which its draw is known. The
    error is nan for one draw, and 0 where all or nothing was held.
    """
    of_draws = np.unique(draws, axis=0, return_inverse=True)[1].ravel()
    away = np.bincount(of_draws, held - held.mean())
    several = away.size > 1
    error = np.sqrt((away**2).sum() * away.size / (away.size - 1)) / held.size if several else np.nan
    return f"{held.mean():.1%} ± {error:.1%}"
