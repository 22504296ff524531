"""The deployment card of a stream as files: what ledger and statements add to the folder."""

from collections.abc import Mapping
from typing import Any

from optstream.catalogue.deployment_card import Deployment, StatedTerms, deployment_card
from optstream.catalogue.layout import CARD, CARD_PAGE
from optstream.catalogue.metadata import Dataset, Describe, to_bytes
from optstream.ledger import Ledger
from tasks.config import Settings
from tasks.reports.render import templates_of


def deployment_of(settings: Settings, ledger: Ledger, terms: tuple[StatedTerms, ...]) -> Deployment:
    """Return what the ledger adds to a stream's card. terms: what the listed days were drawn under.

    With the configured privacy guarantee alone where the ledger knows no stream of this name yet.
    """
    name = settings.stream.name
    guarantees = ledger.guarantees(name) or {0: settings.model}
    sharing = tuple(sorted(one.stream for one in ledger.siblings(name)))
    return Deployment(tuple(guarantees[number] for number in sorted(guarantees)), sharing, terms)


def card_files(deployment: Deployment) -> Mapping[str, Describe]:
    """Return by name what makes the card's two files of a published folder: JSON, and the same as a page."""

    def page(dataset: Dataset) -> bytes:
        return card_page(deployment_card(dataset, deployment))

    return {CARD: lambda dataset: to_bytes(deployment_card(dataset, deployment)), CARD_PAGE: page}


def card_page(card: Mapping[str, Any]) -> bytes:
    """Return a card of `deployment_card` as HTML in which nothing runs and which fetches nothing. Pure."""
    environment = templates_of("tasks.reports")
    template = environment.get_template("deployment_card.html.jinja")
    return template.render(card=card["deployment"]).encode()
