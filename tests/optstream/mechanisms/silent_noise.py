"""Noise that is known, often none: shows what the data alone decide, and what was asked for."""

import numpy as np


class SilentNoise:
    """None at all, or one number everywhere, and a record of what was asked for: (scale, size)."""

    simulated = True

    def __init__(self, drawn=0):
        self.drawn, self.asked = drawn, []

    def discrete_laplace(self, scale, size):
        self.asked.append((scale, size))
        return np.full(size, self.drawn, dtype=np.int64)

    @property
    def scales(self):
        """Each scale that was asked for, once, the smallest first."""
        return sorted({scale for scale, _ in self.asked})


class Undrawn:
    """Noise that nothing may be drawn of: a refusal comes first."""

    simulated = True

    def discrete_laplace(self, scale, size):
        raise AssertionError("noise was drawn before the refusal")


class ListedNoise:
    """Noise that is written down: for each of these scales the draws in their order; none at others."""

    simulated = True

    def __init__(self, stock):
        self.stock = {scale: list(draws) for scale, draws in stock.items()}

    def discrete_laplace(self, scale, size):
        if scale not in self.stock:
            return np.zeros(size, dtype=np.int64)
        return np.array([self.stock[scale].pop(0) for _ in range(size[0])], dtype=np.int64)
