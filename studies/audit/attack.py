"""The attack: learn, choose an event, test it on fresh runs.

The runs of each side are cut in three: a quarter to learn how the sides differ, a quarter to choose the
event of each family with the largest expected bound, half to count how often the chosen events happen. The
last half is used for nothing else, so the counts are binomial whatever was learned, and Clopper-Pearson
limits hold exactly. The bound is the largest over the tested events, each tested at its share of the error
(Bonferroni): it is above the true epsilon with probability at most `error`, 1e-9 by default.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.noise import NoiseSource
from optstream.privacy.exact import whole
from studies.audit.histories import Outputs, Subject
from studies.audit.statistics import Statistics, epsilon_bound, learn

Floats = NDArray[np.float64]
ERROR = 1e-9
BATCH = 2000
FEWEST_RUNS = 400
_TAIL = np.array([0.0005, 0.001, 0.002, 0.004])
LEVELS = np.sort(np.concatenate([np.linspace(0.0, 1.0, 129), _TAIL, 1.0 - _TAIL]))
"""The quantiles of both sides together that are tried as thresholds."""

Progress = Callable[[int, int], None]
"""Takes how many runs are done, and of how many, both sides together."""


@dataclass(frozen=True)
class AuditResult:
    """A lower bound on the epsilon of a mechanism, at `delta`, for one pair of neighbours."""

    mechanism: str
    neighbours: str
    method: Literal["sampling", "enumeration"]
    claimed: float
    lower_bound: float
    error: float
    runs: int
    event: str
    likely: int = 0
    unlikely: int = 0
    tested: int = 0
    delta: float = 0.0

    @classmethod
    def enumerated(
        cls, mechanism: str, neighbours: str, claimed: float, bound: float, event: str, delta: float = 0.0
    ) -> "AuditResult":
        """Return what was computed and not drawn: it holds for certain. event: the output with that ratio."""
        return cls(mechanism, neighbours, "enumeration", claimed, bound, 0.0, 0, event, delta=delta)

    @property
    def exceeds(self) -> bool:
        """Whether the mechanism is shown to cost more than it claims."""
        return self.lower_bound > self.claimed

    def to_document(self) -> dict[str, Any]:
        """Return the result as a JSON-ready document."""
        return {**asdict(self), "confidence": 1.0 - self.error, "exceeds": self.exceeds}


@dataclass(frozen=True)
class Event:
    """A statistic (a column of `Statistics.of`) at or above, or below, a threshold; likelier on one side."""

    name: str
    statistic: int
    threshold: float
    above: bool
    likelier: int

    def count(self, statistics: Floats) -> int:
        """Return in how many runs it happened; statistics (n_runs, n_statistics)."""
        reached = statistics[:, self.statistic] >= self.threshold
        return int(np.count_nonzero(reached == self.above))

    @property
    def text(self) -> str:
        """Return the event as text for people."""
        return f"{self.name} {'>=' if self.above else '<'} {self.threshold:.6g}"


def choose_events(
    statistics: Statistics, sides: Sequence[Floats], n_test: int, error: float, delta: float
) -> list[Event]:
    """Return each family's event with the largest expected bound in `n_test` further runs of each side."""
    best: dict[str, tuple[float, Event]] = {}
    for column, (family, name) in enumerate(zip(statistics.families, statistics.names, strict=True)):
        own = [side[:, column] for side in sides]
        n_runs, pooled = len(own[0]), np.sort(np.concatenate(own))
        thresholds = np.unique(pooled[np.rint(LEVELS * (pooled.size - 1)).astype(int)])
        above = np.stack([n_runs - np.searchsorted(np.sort(side), thresholds) for side in own])
        # (above or below, side, threshold), as many as the test would count
        hits = np.stack([above, n_runs - above]) * (n_test / n_runs)
        bounds = np.stack(
            [epsilon_bound(hits[:, side], hits[:, 1 - side], n_test, error, delta) for side in (0, 1)]
        )
        likelier, direction, place = np.unravel_index(int(np.argmax(bounds)), bounds.shape)
        bound = float(bounds[likelier, direction, place])
        if family not in best or bound > best[family][0]:
            event = Event(name, column, float(thresholds[place]), bool(direction == 0), int(likelier))
            best[family] = bound, event
    return [event for _, event in best.values()]


def audit(
    subject: Subject,
    *,
    n_runs: int,
    noise: NoiseSource,
    error: float = ERROR,
    progress: Progress | None = None,
) -> AuditResult:
    """Return a lower bound on the epsilon of a subject, at its delta, from at least 400 runs of each side."""
    whole(n_runs, "n_runs of an audit", FEWEST_RUNS)
    if not 0 < error < 0.5:
        raise ParameterError(f"error of an audit must be in (0, 1/2); got {error!r}")
    n_learn = n_choose = n_runs // 4
    n_test, done = n_runs - n_learn - n_choose, 0

    def draw(side: int, count: int) -> Iterator[Outputs]:
        nonlocal done
        for start in range(0, count, BATCH):
            size = min(BATCH, count - start)
            yield subject.sample(side, size, noise)
            done += size
            if progress:
                progress(done, 2 * n_runs)

    statistics = learn(*(_joined(draw(side, n_learn)) for side in (0, 1)))
    sides = [np.concatenate([statistics.of(part) for part in draw(side, n_choose)]) for side in (0, 1)]
    delta = float(getattr(subject, "delta", 0.0))
    events = choose_events(statistics, sides, n_test, error / len(set(statistics.families)), delta)
    hits = np.zeros((2, len(events)), dtype=np.int64)
    for side in (0, 1):
        for part in draw(side, n_test):
            reduced = statistics.of(part)
            hits[side] += [event.count(reduced) for event in events]
    likelier, columns = np.array([event.likelier for event in events]), np.arange(len(events))
    likely, unlikely = hits[likelier, columns], hits[1 - likelier, columns]
    bounds = epsilon_bound(likely, unlikely, n_test, error / len(events), delta)
    best = int(np.argmax(bounds))
    return AuditResult(
        mechanism=subject.name,
        neighbours=subject.neighbours,
        method="sampling",
        claimed=subject.claimed,
        lower_bound=max(0.0, float(bounds[best])),
        error=error,
        runs=n_runs,
        event=events[best].text,
        likely=int(likely[best]),
        unlikely=int(unlikely[best]),
        tested=n_test,
        delta=delta,
    )


def _joined(parts: Iterator[Outputs]) -> Outputs:
    drawn = list(parts)
    return Outputs(
        np.concatenate([part.numbers for part in drawn]), np.concatenate([part.answers for part in drawn])
    )
