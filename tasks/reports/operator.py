"""What only the page of the trusted zone says: budget, alarms, and how each day stands."""

from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from optstream.ledger import Ledger
from tasks.config import Settings
from tasks.ledger.horizon import Horizon, read_horizons
from tasks.monitoring import StreamView, watch
from tasks.release.outcomes import Budget


@dataclass(frozen=True)
class Charge:
    """A release of the last days, and the most that it alone takes from any window."""

    period: str
    revision: int
    state: str
    epsilon: Fraction


@dataclass(frozen=True)
class OperatorFacts:
    """view: the days and alarms. nodes: how many each level has. shares: of epsilon, by level. links: what a
    file's name in the published folder is preceded by, for the page to link to it, or None. problem: why data
    users have no new page. horizons: what the last 30 and 365 days lost.
    """

    view: StreamView
    nodes: tuple[int, ...]
    shares: tuple[Fraction, ...]
    charges: tuple[Charge, ...]
    links: str | None
    problem: str | None = None
    horizons: tuple[Horizon, ...] = ()

    @property
    def budget(self) -> Budget:
        return self.view.facts.budget

    @property
    def at(self) -> datetime:
        return self.view.at


def operator_facts(
    settings: Settings, ledger: Ledger, now: datetime, links: str | None, problem: str | None
) -> OperatorFacts:
    """Look as `optstream status` does. Opens no dump. Raises LedgerError as `watch`."""
    view = watch(settings, ledger, now, live=settings.watch is not None)
    page = view.facts.page
    own = [] if page is None else [one for one in page.streams if one.terms.stream == settings.stream.name]
    charges = tuple(
        Charge(one.period, one.revision, one.state.value, one.epsilon)
        for stream in own
        for one in stream.releases
    )
    nodes = tuple(len(level) for level in settings.tree.levels)
    return OperatorFacts(
        view, nodes, settings.level_shares, charges, links, problem, read_horizons(settings, ledger)
    )
