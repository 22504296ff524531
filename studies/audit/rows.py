"""Rows that come and go, and customers who change leaf: from dumps on, through the real ingestion.

What neighbours are claimed to cost is the table of docs/privacy.md, section 1 (Lemma 2b).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from optstream.errors import ParameterError
from studies.audit.histories import History, HistorySubject
from studies.audit.stream import DAYS, LEAVES, made_up_stream
from tasks.config import Settings
from tasks.ingest import Dump, discover, ingest
from tasks.operate.simulate import write_dump
from tasks.release.mechanism import mechanism_for

A, B = range(len(LEAVES))
MIDNIGHT = (3, 4)
"""The steps of a window of 2 over the border of two days."""
LENGTH = 4
"""Steps of a day."""
STEPS = range(2 * LENGTH)


@dataclass(frozen=True)
class Row:
    """A row of one customer: running step, leaf, reading."""

    step: int
    leaf: int
    reading: float = 1.0


Rows = Sequence[Row]
Rule = Callable[[Rows], Rows]
"""Which of a customer's rows are delivered."""


def _at(leaf: int, steps: Sequence[int], reading: float = 1.0) -> list[Row]:
    """A row at each of the steps."""
    return [Row(step, leaf, reading) for step in steps]


@dataclass(frozen=True)
class RowPair:
    """What one customer's rows are on either side, and what that is claimed to cost."""

    mechanism: str
    neighbours: str
    claimed: float
    one: Rows
    other: Rows
    stream: Mapping[str, str] = field(default_factory=dict)
    rule: Rule = list
    n_days: int = 2

    @property
    def subject(self) -> HistorySubject:
        """To be audited; dumps are written and read when it is first run."""
        return HistorySubject(self.mechanism, self.neighbours, self.claimed, partial(_both, self))


def _both(pair: RowPair) -> tuple[History, History]:
    days = DAYS[: pair.n_days]
    one, other = (_ingested(pair.rule(rows), days, pair.stream) for rows in (pair.one, pair.other))
    return one, other


ALWAYS = _at(A, STEPS)
AWAY = [row for row in ALWAYS if row.step not in MIDNIGHT]
VISIT = _at(B, MIDNIGHT)
OPTSTREAM = 'name = "OptStream"\n[sampling]\nmethod = "equally_spaced"\nn_samples = 2\n[features]\nday = []'
ROAMING = {"schema": "aggregated", "unit": "roaming", "leaves_per_step": "2", "bounds": '["0", "10"]'}


def row_subjects() -> tuple[HistorySubject, ...]:
    """Rows that come, go, are repeated or change leaf in a window over midnight."""
    laplace, presence = "rows, Laplace", "a customer absent in a window"
    repeated = [*_at(A, MIDNIGHT, 0.0), *ALWAYS]  # of several rows in a leaf the first counts
    elsewhere = _at(B, STEPS)
    return tuple(
        pair.subject
        for pair in (
            RowPair(laplace, presence, 1, ALWAYS, AWAY),
            RowPair("rows, OptStream", presence, 1, ALWAYS, AWAY, {"mechanism": OPTSTREAM}),
            RowPair(laplace, "rows repeated with other readings", 1, ALWAYS, repeated),
            RowPair(laplace, "rows in a second leaf", 1, elsewhere, [*elsewhere, *_at(A, MIDNIGHT)]),
            RowPair(laplace, "rows that change leaf", 2, ALWAYS, [*AWAY, *VISIT]),
            RowPair("rows of sums, roaming", "a device changes leaf", 1, ALWAYS, [*AWAY, *VISIT], ROAMING),
        )
    )


def broken_row_subjects() -> tuple[HistorySubject, ...]:
    """BROKEN ON PURPOSE: other rules for rows in several leaves, and claims that the table does not make."""
    one_step = {"window": "1", "epsilon": "2"}  # twice 2 shows with fewer runs than twice 1
    day, step = STEPS[:LENGTH], MIDNIGHT[:1]
    stays, visit = _at(A, day), _at(B, step)
    moves = [*(row for row in stays if row.step not in step), *visit]
    return tuple(
        pair.subject
        for pair in (
            RowPair(
                "rows, first leaf of the day", "one row in another leaf", 1,
                [Row(0, A), *_at(B, day)], _at(B, day), {"window": "1"}, first_leaf_of_the_day, 1,
            ),
            RowPair(
                "rows, first leaf of the step", "a row in a second leaf", 2,
                [*stays, *visit], moves, one_step, first_leaf_of_the_step, 1,
            ),
            RowPair(
                "rows, a change of leaf charged as one reading", "a row that changes leaf", 2,
                stays, moves, one_step, n_days=1,
            ),
            RowPair(
                "rows, bounds as wide as alpha and far from 0", "a customer absent in a window", 1,
                ALWAYS, AWAY, {"bounds": '["100", "101"]'},
            ),
        )
    )  # fmt: skip


def first_leaf_of_the_day(rows: Rows) -> Rows:
    """BROKEN ON PURPOSE: of a customer's rows of a day those in the first leaf count, by name."""
    return _first_leaf(rows, lambda row: row.step // LENGTH)


def first_leaf_of_the_step(rows: Rows) -> Rows:
    """BROKEN ON PURPOSE: of a customer's rows of a step those in the first leaf count, by name."""
    return _first_leaf(rows, lambda row: row.step)


def _first_leaf(rows: Rows, together: Callable[[Row], int]) -> Rows:
    home: dict[int, int] = {}
    for row in rows:
        home[together(row)] = min(home.get(together(row), row.leaf), row.leaf)
    return [row for row in rows if row.leaf == home[together(row)]]


def _ingested(rows: Rows, days: Sequence[date], changes: Mapping[str, str]) -> History:
    """The periods of days whose dumps hold these rows, next to those of others, and their mechanisms."""
    with TemporaryDirectory() as name:
        settings = made_up_stream(Path(name), **changes)
        for number, day in enumerate(days):
            own = [replace(row, step=row.step % LENGTH) for row in rows if row.step // LENGTH == number]
            for leaf, region in enumerate(LEAVES):
                rows_of_leaf = [row for row in own if row.leaf == leaf]
                table = _table(settings, settings.calendar.utc_times(day), rows_of_leaf)
                write_dump(Path(name, settings.input.folder), region, day, table)
        found = discover(settings, days)
        dumps = [dump for dump in found.values() if isinstance(dump, Dump)]
        periods = [read.period for read in ingest(settings, dumps)]
        sound = [period for period in periods if period is not None]
        if len(sound) < len(days):
            raise ParameterError(
                "a made-up dump of the audit was refused: the audit is wrong, not the stream"
            )
        return [(mechanism_for(settings, day), period) for day, period in zip(days, sound, strict=True)]


def _table(settings: Settings, stamps: Sequence[datetime | None], own: Rows) -> pl.DataFrame:
    """A region's dump of a day: the customer's rows and those of a neighbour, or their sums."""
    if settings.metered:
        return pl.DataFrame(
            {
                "customer_id": ["mover"] * len(own) + ["keeper"] * len(stamps),
                "timestamp": [*(stamps[row.step] for row in own), *stamps],
                "reading": [*(row.reading for row in own), *([0.5] * len(stamps))],
            }
        )
    sums = [0.5 + sum(row.reading for row in own if row.step == step) for step in range(len(stamps))]
    return pl.DataFrame({"timestamp": stamps, "reading": sums})
