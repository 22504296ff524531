"""Which steps are measured: rules."""

from dataclasses import dataclass
from fractions import Fraction

from optstream.errors import ParameterError
from optstream.privacy.exact import Exact, exact, make_plain, plain, whole
from optstream.privacy.sparse_vector import Allocation


def check_n_samples(count: object, window_length: int, name: str) -> None:
    """Refuse a number of points that no window can have: raises ParameterError unless it is an integer of
    2 .. w. name: of the rule, for the error. Privacy: none.
    """
    whole(count, f"n_samples of {name}", 2, window_length)


@dataclass(frozen=True)
class EquallySpaced:
    """`n_samples` steps at fixed residues of the running step index modulo the window.

    A public rule: choosing costs no privacy. Every window of w consecutive steps, wherever periods begin
    and however long days are, holds exactly `n_samples` of them: each residue modulo w meets it once. A
    period that starts at residue 0 and is w steps long has a point at both its ends.

    Source: OptStream, section 4.1; the fixed residues are ours (docs/privacy.md, Lemma 4).

    Args:
        n_samples: Steps of any window, at least 2.
    """

    n_samples: int

    def __post_init__(self) -> None:
        make_plain(self)

    def residues(self, window_length: int) -> tuple[int, ...]:
        """Return the sampled residues modulo w, rising. Privacy: none; a public rule.

        Args:
            window_length: Steps of a window (w).

        Returns:
            `n_samples` of them.

        Raises:
            ParameterError: Not 2 <= n_samples <= w.
        """
        check_n_samples(self.n_samples, window_length, "EquallySpaced")
        # Half up in integers; the step between points is at least 1, so no two coincide.
        gaps = self.n_samples - 1
        return tuple((2 * i * (window_length - 1) + gaps) // (2 * gaps) for i in range(self.n_samples))

    def positions(self, n_steps: int, first_step: int, window_length: int) -> tuple[int, ...]:
        """Return the sampled steps of a period, counted from its start, rising.

        Privacy: none; a public rule, and any window meets n_samples of its steps (Lemma 4).

        Args:
            n_steps: Of the period.
            first_step: Its running index.
            window_length: Steps of a window (w).

        Returns:
            None of them, perhaps, if the period is short.

        Raises:
            ParameterError: Not 2 <= n_samples <= w.
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

    Source: OptStream, Algorithm 3; the window rule and the level's common decision are ours
    (docs/privacy.md, Lemmas 5 to 7).

    Args:
        n_samples: The most points of any window.
        threshold: Of the score, at least 0.
        allocation: Of the sparse vector's epsilon between threshold and queries, "even" or "optimal".

    Raises:
        ParameterError: A threshold below 0 or another allocation.
    """

    n_samples: int
    threshold: Fraction
    allocation: Allocation

    def __init__(self, n_samples: int, threshold: Exact, allocation: Allocation = "even") -> None:
        n_samples, amount = plain(n_samples), exact(threshold, "threshold of L1Sampling")
        if amount < 0:
            raise ParameterError(f"threshold of L1Sampling must be at least 0; got {threshold!r}")
        if allocation not in ("even", "optimal"):
            raise ParameterError(f'allocation of L1Sampling must be "even" or "optimal"; got {allocation!r}')
        for name, value in {"n_samples": n_samples, "threshold": amount, "allocation": allocation}.items():
            object.__setattr__(self, name, value)

    def points_of_period(self, n_steps: int, window_length: int) -> int:
        """Return how many points a period may have: its part of a window's, rounded up. Privacy: none.

        Args:
            n_steps: Of the period.
            window_length: Steps of a window (w).

        Returns:
            At most `n_samples`.

        Raises:
            ParameterError: Not 2 <= n_samples <= w.
        """
        check_n_samples(self.n_samples, window_length, "L1Sampling")
        return min(self.n_samples, -(-self.n_samples * n_steps // window_length), n_steps)

    def longest_segment(self, n_steps: int, window_length: int) -> int:
        """Return the steps from one end to the other of the longest segment that is ever scored.

        From the first step to the last one that is asked for. Privacy: none; it bounds Lemma 6.

        Args:
            n_steps: Of the period.
            window_length: Steps of a window (w).

        Returns:
            1 if none is.

        Raises:
            ParameterError: Not 2 <= n_samples <= w.
        """
        points = self.points_of_period(n_steps, window_length)
        return max(n_steps - points, 1) if points > 1 else 1


Sampling = EquallySpaced | L1Sampling
