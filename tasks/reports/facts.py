"""What a page says of a stream, as frozen values: every one of them was read from the published folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from optstream.catalogue import Catalogue, Entry, ReleaseStatement
from optstream.catalogue.about import About
from optstream.catalogue.deployment_card import StatedTerms
from optstream.catalogue.index import day_entries
from optstream.catalogue.statement import MARGIN

Values = NDArray[np.float64]
MISSING, DAMAGED = "missing", "damaged"
AS_GOOD_AS_NOTHING = 0.9
"""Of a level's typical figure: an error this large leaves nothing to be seen."""
MOST_NODES = 10_000
"""Nodes that a page shows, level by level from the root."""
RECENT_DAYS = 28
"""Days whose steps are drawn; of the days before, their means."""


@dataclass(frozen=True)
class Node:
    """A node as the published rows have it; parent: None at the root. level: root 0."""

    name: str
    parent: str | None
    level: int


@dataclass(frozen=True, eq=False)
class Daily:
    """Each node's days, (n_nodes, n_days), from the first listed day to the last without a gap.

    Mean, least and most of the day's steps; NaN where nothing is published. noise: the mean of the steps'
    standard deviations, which is the most that the standard deviation of the day's mean can be (Minkowski);
    NaN where the files do not say. model: likewise, of the steps' posterior standard errors. steps:
    (n_days,), how many each day has, 0 where nothing is published.
    """

    first: date
    mean: Values
    least: Values
    most: Values
    noise: Values
    model: Values
    steps: Sequence[int]

    @property
    def n_days(self) -> int:
        """How many days there are, gaps included."""
        return int(self.mean.shape[1])


@dataclass(frozen=True, eq=False)
class Recent:
    """Each node's steps of the last days, from `first` to `last`, the last listed day.

    days: those with a release, rising. values: for each of them (n_nodes, n_steps of that day); NaN where the
    node is not in it. noise: standard deviations of the same shape; NaN where the file does not say. model:
    posterior standard errors, likewise.
    """

    first: date
    last: date
    days: tuple[date, ...]
    values: tuple[Values, ...]
    noise: tuple[Values, ...]
    model: tuple[Values, ...]


@dataclass(frozen=True)
class LevelError:
    """How large a level's figures are and how wrong: root mean squares over the newest day's nodes and steps.

    error: of all that is wrong where the release states that (`is_total`), else of the noise alone.
    """

    level: int
    size: float
    error: float
    is_total: bool

    @property
    def is_as_good_as_nothing(self) -> bool:
        """Whether the figures are hardly larger than what is wrong with them."""
        return self.error >= AS_GOOD_AS_NOTHING * self.size


@dataclass(frozen=True, eq=False)
class PublicFacts:
    """A stream by its published folder alone.

    `daily`, `recent`, `statement` and `epsilon` are None, and there are no nodes, where every day was
    withdrawn.

    statement: of the newest listed release that is there. nodes: of that release, root first, level by level.
    daily, recent: in the nodes' order, for the first of them (`n_drawn`), as many as a page draws. epsilon:
    the most that any window may lose, the largest that a listed release states. lost: of listed days, what
    their file is, `MISSING` or `DAMAGED`; they are shown as gaps. about: publisher, licence and names of
    nodes, as far as they are told. level_errors: of the newest listed release that is there, where it states
    errors. has_card: whether a deployment card lies beside the page. terms: what the listed days were drawn
    under, the newest last.
    """

    catalogue: Catalogue
    statement: ReleaseStatement | None
    nodes: tuple[Node, ...]
    daily: Daily | None
    recent: Recent | None
    epsilon: Fraction | None = None
    lost: Mapping[date, str] = field(default_factory=dict)
    about: About = field(default_factory=About)
    level_errors: tuple[LevelError, ...] = ()
    has_card: bool = False
    terms: tuple[StatedTerms, ...] = ()

    @cached_property
    def listed(self) -> tuple[Entry, ...]:
        """The days that readers find, rising."""
        return day_entries(self.catalogue.listed)

    @property
    def n_drawn(self) -> int:
        """How many nodes have curves."""
        return 0 if self.daily is None else int(self.daily.mean.shape[0])

    @property
    def least(self) -> float | None:
        """What no value of the newest release lies below; None where nothing says."""
        return None if self.statement is None else least_of(self.statement)

    @property
    def margin(self) -> str | None:
        """What the last level is called, where the newest release states that it is a margin; else None."""
        stated = None if self.statement is None else self.statement.mechanism.get(MARGIN)
        return stated if isinstance(stated, str) else None

    def title_of(self, level: int) -> str:
        """Return what a level is called where a sentence begins: "Level 1", or "Margin sector"."""
        last = max((node.level for node in self.nodes), default=0)
        return f"Level {level}" if self.margin is None or level < last else f"Margin {self.margin}"

    @property
    def level_shares(self) -> tuple[str, ...]:
        """Each level's share of epsilon, root first, as the newest release states it; () where it states
        none.
        """
        stated = None if self.statement is None else self.statement.mechanism.get("level_shares")
        n_levels = len({node.level for node in self.nodes})
        if not isinstance(stated, list) or len(stated) != n_levels:
            return ()
        return tuple(stated) if all(isinstance(share, str) for share in stated) else ()

    @property
    def has_total(self) -> bool:
        """Whether any drawn value says how far it may be from the truth."""
        return self.daily is not None and bool(np.isfinite(self.daily.model).any())


def least_of(statement: ReleaseStatement) -> float | None:
    """Return what no value of a release lies below: 0 where they are counts, None where nothing says."""
    return None if statement.bands is None else 0.0


def as_values(column: pl.Series) -> Values:
    """Return the values of a column, NaN where it is null."""
    values: Values = column.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return values
