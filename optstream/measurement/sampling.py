"""Which steps are measured: rules."""

from dataclasses import dataclass
from fractions import Fraction

from optstream.errors import ParameterError
from optstream.privacy.exact import Exact, exact, whole
from optstream.privacy.sparse_vector import Allocation


def check_n_samples(count: object, window_length: int, name: str) -> None:
    """Raise ParameterError unless 2 <= count <= w. Privacy: none."""
    whole(count, f"n_samples of {name}", 2, window_length)


@dataclass(frozen=True)
class EquallySpaced:
    """`n_samples` steps at fixed residues of the running step index modulo the window.

    A public rule: choosing costs no privacy. Every window of w consecutive steps, wherever periods begin
    and however long days are, holds exactly `n_samples` of them: each residue modulo w meets it once. A
    period that starts at residue 0 and is w steps long has a point at both its ends.

    Source: OptStream, section 4.1; the fixed residues are ours (docs/privacy.md, Lemma 4).
    """

    n_samples: int

    def residues(self, window_length: int) -> tuple[int, ...]:
        """Return the sampled residues modulo w, rising. Raises ParameterError unless 2 <= n_samples <= w.

        Privacy: none; a public rule.
        """
        check_n_samples(self.n_samples, window_length, "EquallySpaced")
        # Half up in integers; the step between points is at least 1, so no two coincide.
        gaps = self.n_samples - 1
        return tuple((2 * i * (window_length - 1) + gaps) // (2 * gaps) for i in range(self.n_samples))

    def positions(self, n_steps: int, first_step: int, window_length: int) -> tuple[int, ...]:
        """Return the sampled steps of a period, counted from its start, rising; may be empty if it is short.

        Privacy: none; a public rule, and any window meets n_samples of its steps (Lemma 4).
        """
        chosen = set(self.residues(window_length))
        return tuple(step for step in range(n_steps) if (first_step + step) % window_length in chosen)


@dataclass(frozen=True, init=False)
class L1Sampling:
    """Steps chosen where straight lines fail: greedy over noisy L1 scores, decided once for a level.

    From the last point on, the first step at which the line back to it misses the series in between by
    more than `threshold` (unit of the readings times steps, a node of the level on average) becomes a
    point. The first step is always one. The algorithm does not guarantee the period's end: after the last
    point the reconstruction holds its value.
    At most `n_samples` points lie in any window, counting those of other periods: a step that would be one
    more is passed over, by a public rule. The paper takes the last steps unasked when only enough for
    n_samples are left; so does calibration="paper". Beside the window rule that is a ratchet (a day's i-th
    point can never lie before the day's before, so forced points move to the end of the day permanently), and
    calibration="strict" leaves them out: fewer points, never more.

    allocation: of the sparse vector's epsilon between threshold and queries, "even" or "optimal".
    Source: OptStream, Algorithm 3; the window rule and the level's common
    decision are ours
    (docs/privacy.md, Lemmas 5 to 7).
    """

    n_samples: int
    threshold: Fraction
    allocation: Allocation

    def __init__(self, n_samples: int, threshold: Exact, allocation: Allocation = "even") -> None:
        amount = exact(threshold, "threshold of L1Sampling")
        if amount < 0:
            raise ParameterError(f"threshold of L1Sampling must be at least 0; got {threshold!r}")
        if allocation not in ("even", "optimal"):
            raise ParameterError(f'allocation of L1Sampling must be "even" or "optimal"; got {allocation!r}')
        for name, value in {"n_samples": n_samples, "threshold": amount, "allocation": allocation}.items():
            object.__setattr__(self, name, value)

    def points_of_period(self, n_steps: int, window_length: int) -> int:
        """Return how many points a period may have: its part of a window's, rounded up. Privacy: none."""
        check_n_samples(self.n_samples, window_length, "L1Sampling")
        return min(self.n_samples, -(-self.n_samples * n_steps // window_length), n_steps)

    def longest_segment(self, n_steps: int, window_length: int) -> int:
        """Return the steps from one end to the other of the longest segment that is ever scored; 1 if none
        is.

        From the first step to the last one that is asked for. Privacy: none; it bounds Lemma 6.
        """
        points = self.points_of_period(n_steps, window_length)
        return max(n_steps - points, 1) if points > 1 else 1


Sampling = EquallySpaced | L1Sampling
