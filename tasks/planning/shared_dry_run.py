"""What several products of one privacy budget would cost together, and how far each is from the truth."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any

from tasks.config import Settings
from tasks.planning.advice.stream_shares import check_population
from tasks.planning.dry_run import dry_run
from tasks.planning.preview import DryRun, dry_run_document


@dataclass(frozen=True)
class Product:
    """A stream's dry run, and the share of epsilon that it plans with."""

    share: Fraction
    found: DryRun


@dataclass(frozen=True)
class SharedBudget:
    """The products of one privacy budget, by stream; amounts in the budget's currency."""

    population: str
    grant: Fraction
    products: tuple[Product, ...]

    @property
    def epsilon(self) -> Fraction:
        """What all plans, repeated without end, cost any window at most (Lemma 1)."""
        return sum((one.found.epsilon for one in self.products), Fraction(0))

    @property
    def fits(self) -> bool:
        """Whether no window will ever be charged more than the privacy budget."""
        return self.epsilon <= self.grant


def price_products(streams: Sequence[Settings], days: Sequence[Sequence[date]]) -> tuple[SharedBudget, ...]:
    """Price the release of days of several streams, an entry for each population; reads public covariates
    alone, spends nothing. days: of each stream.

    Raises ConfigurationError for streams of one population whose files do not agree, ParameterError as
    `dry_run`.
    """
    members: dict[str, list[tuple[Settings, Sequence[date]]]] = {}
    for settings, own in zip(streams, days, strict=True):
        members.setdefault(settings.privacy.population, []).append((settings, own))
    found = []
    for population, several in members.items():
        check_population([settings for settings, _ in several])
        products = tuple(Product(settings.stream_share, dry_run(settings, own)) for settings, own in several)
        found.append(SharedBudget(population, products[0].found.grant, products))
    return tuple(found)


def products_document(budgets: Sequence[SharedBudget]) -> dict[str, Any]:
    """`optstream run --dry-run --json` of several streams: versioned, for machines."""
    return {
        "format": "optstream.dry-runs/1",
        "populations": [
            {
                "population": budget.population,
                "currency": budget.products[0].found.currency,
                "grant": str(budget.grant),
                "plans": str(budget.epsilon),
                "fits": budget.fits,
                "streams": [
                    {"stream_share": str(one.share), **dry_run_document(one.found)} for one in budget.products
                ],
            }
            for budget in budgets
        ],
    }
