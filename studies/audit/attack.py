"""The attack: learn, choose an event, test it on fresh runs.

The runs of each side are cut in three: a quarter to learn what tells the sides apart, a quarter to choose the
event of each family with the largest expected bound, half to count how often the chosen events happen. The
last half is used for nothing else, so the counts are binomial whatever was learned, and Clopper-Pearson
limits hold exactly. The bound is the largest over the tested events, each tested at its share of the error
(Bonferroni): it is above the true epsilon with probability at most `error`, 1e-9 by default.
"""

from collections.abc import Callable, Iterator

import numpy as np

from optstream.errors import ParameterError
from optstream.noise import NoiseSource
from optstream.privacy.exact import whole
from studies.audit.events import choose_events
from studies.audit.result import AuditResult
from studies.audit.statistics import epsilon_bound, learn
from studies.audit.subjects.subject import Outputs, Subject

ERROR = 1e-9
BATCH = 2000
FEWEST_RUNS = 400

Progress = Callable[[int, int], None]
"""Told how many runs are done, and of how many, both sides together."""


def audit(
    subject: Subject,
    *,
    n_runs: int,
    noise: NoiseSource,
    error: float = ERROR,
    progress: Progress | None = None,
) -> AuditResult:
    """Return a lower bound on the epsilon of a subject, from runs of each side of its neighbours.

    At its `delta`, where it has one: the bound is then on the epsilon at that delta.

    Costs no privacy: the neighbours are made up.

    subject: what is attacked. n_runs: of each side, at least 400. noise: simulated noise shows the shape of
    the distribution, secure noise what is published; the samplers are tested elsewhere. error: the
    probability, in (0, 1/2), that the bound is above the true epsilon. progress: told how many runs are done,
    and of how many, both sides together. Returns the bound, the event that gave it and its counts. Raises
    ParameterError for a number of runs or an error outside its range.
    """
    whole(n_runs, "n_runs of an audit", FEWEST_RUNS)
    if not 0 < error < 0.5:
        raise ParameterError(f"error of an audit must be in (0, 1/2); got {error!r}")
    n_learn = n_choose = n_runs // 4
    n_test = n_runs - n_learn - n_choose
    draw = _Draws(subject, noise, 2 * n_runs, progress)
    statistics = learn(*(_joined(draw(side, n_learn)) for side in (0, 1)))
    sides = [np.concatenate([statistics.of(part) for part in draw(side, n_choose)]) for side in (0, 1)]
    n_families = len(set(statistics.families))
    delta = float(getattr(subject, "delta", 0.0))
    events = choose_events(statistics, sides, n_test, error / n_families, delta)

    hits = np.zeros((2, len(events)), dtype=np.int64)
    for side in (0, 1):
        for part in draw(side, n_test):
            reduced = statistics.of(part)
            hits[side] += [event.count(reduced) for event in events]
    likelier = np.array([event.likelier for event in events])
    columns = np.arange(len(events))
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


class _Draws:
    """Runs of a subject in batches, counted for the progress that is shown."""

    def __init__(self, subject: Subject, noise: NoiseSource, total: int, progress: Progress | None) -> None:
        self._subject, self._noise, self._total, self._progress = subject, noise, total, progress
        self._done = 0

    def __call__(self, side: int, n_runs: int) -> Iterator[Outputs]:
        for start in range(0, n_runs, BATCH):
            size = min(BATCH, n_runs - start)
            yield self._subject.sample(side, size, self._noise)
            self._done += size
            if self._progress:
                self._progress(self._done, self._total)


def _joined(parts: Iterator[Outputs]) -> Outputs:
    drawn = list(parts)
    return Outputs(
        np.concatenate([part.numbers for part in drawn]), np.concatenate([part.answers for part in drawn])
    )
