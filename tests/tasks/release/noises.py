"""Secure noise in whose samples something happens: a fault, a stop, another run."""

from optstream.noise import secure_noise
from tests.failing import raising


class NoiseMeanwhile:
    """Secure noise that counts its samples; the first of each draw is thrown away."""

    simulated = False

    def __init__(self, happens=lambda: None, at=2):
        self._happens, self._at, self.calls, self.came = happens, at, 0, None

    def discrete_laplace(self, scale, size):
        self.calls += 1
        if self._at in (self.calls, "each"):
            self.came = self._happens()
        return secure_noise().discrete_laplace(scale, size)


def failing_noise(error):
    return NoiseMeanwhile(raising(error), at=3)


def no_noise():
    return NoiseMeanwhile(raising(AssertionError("nothing is drawn")), at="each")
