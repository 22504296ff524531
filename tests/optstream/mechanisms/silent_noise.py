"""No noise: shows what the data alone decide."""

import numpy as np


class SilentNoise:
    """None at all, and a record of what was asked for: (scale, size)."""

    simulated = True

    def __init__(self):
        self.asked = []

    def discrete_laplace(self, scale, size):
        self.asked.append((scale, size))
        return np.zeros(size, dtype=np.int64)


class Scaled:
    """Noise of another scale than was asked for."""

    simulated = True

    def __init__(self, noise, factor):
        self.noise, self.factor = noise, factor

    def discrete_laplace(self, scale, size):
        return self.noise.discrete_laplace(scale * self.factor, size)
