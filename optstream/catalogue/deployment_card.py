"""The deployment card: a record for the public registry of differential privacy deployments.

The registry: https://registry.opendp.org, whose records have the layout of schemas/deployments-schema.yaml in
https://github.com/opendp/deployments-registry-data (commit 057e5d8), tier 3. A record is what its publisher
hands in there, as a draft: nothing is sent by this program.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any

from optstream.catalogue.about import About
from optstream.catalogue.metadata import Dataset, day_after, describe
from optstream.catalogue.statement import decimal_below, plain_number
from optstream.privacy import PrivacyModel
from optstream.stream.period import day_of

NOT_TOLD = "Not stated by the publisher."
CURATOR_TYPES = ("Government", "Industry", "Nonprofit")
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
"""That the registry knows; it takes others when they are added to its schema."""


@dataclass(frozen=True)
class StatedTerms:
    """What days were drawn under, as their statements say it: `ReleaseStatement.terms_in_words`."""

    words: str
    first: date
    last: date
    n_days: int


@dataclass(frozen=True)
class Deployment:
    """What the card says beside the newest release: of the ledger, and of the statements of all listed days.

    Attributes:
        guarantees: The privacy guarantees that days were planned under, oldest first; the last is in force.
        sharing: Names of the other streams that share the privacy budget.
        terms: What the listed days were drawn under, the newest last.
    """

    guarantees: tuple[PrivacyModel, ...]
    sharing: tuple[str, ...]
    terms: tuple[StatedTerms, ...]

    @property
    def model(self) -> PrivacyModel:
        """The privacy guarantee in force."""
        return self.guarantees[-1]


def deployment_card(dataset: Dataset, deployment: Deployment) -> dict[str, Any]:
    """Return the record of a stream in the registry's layout, of public facts alone; JSON-ready."""
    about, statement, model = dataset.about, dataset.statement, deployment.model
    mechanism, minutes, resolution, code = "", "", "", ""
    worst = max(deployment.guarantees, key=lambda one: one.epsilon)
    epsilon = worst.epsilon
    if statement is not None:
        own = {key: value for key, value in statement.mechanism.items() if key != "name"}
        mechanism = f"{statement.mechanism['name']} {_worded(own)}. "
        minutes, code = f"{statement.step_minutes} minutes", f" Code version {statement.code_version}."
        resolution = plain_number(statement.model.resolution)
        epsilon = max(epsilon, statement.epsilon_plan)
    parameters = {"epsilon": _rounded_up(epsilon)}
    if worst.rho is not None:
        parameters |= {"delta": float(worst.delta), "rho": float(worst.rho)}
    # floats decide in the Gaussian draw where they must agree with fractions (Lemma 20a)
    is_gaussian = bool((statement.model if statement else model).delta)
    names = deployment.sharing
    shares = "other stream shares" if len(names) == 1 else "other streams share"
    law = (
        "discrete Gaussian" if is_gaussian else "discrete Laplace (or joint, as each release's manifest says)"
    )
    return describe(
        "deployment-card.json.jinja",
        dataset,
        NOT_TOLD=NOT_TOLD,
        model=model,
        curator=about.publisher or NOT_TOLD,
        own_description=about.description or f"Series of {dataset.catalogue.value_column}.",
        first_published=day_after(day_of(dataset.catalogue.entries[0].period)),
        minutes=minutes,
        parameters=parameters,
        losses=" ".join(filter(None, _losses(dataset, deployment))),
        resolution=resolution,
        mechanism=mechanism,
        is_gaussian=is_gaussian,
        law=law,
        code=code,
        sharing=f" {len(names)} {shares} the budget: {', '.join(names)}." if names else "",
        to_fill_in=_to_fill_in(about),
    )


def _to_fill_in(about: About) -> str:
    """What the registry asks for and the publisher has not told, or not in its words; empty if nothing."""
    asked = [] if about.publisher else ["[published.about] publisher"]
    asked += [f"[published.about] {name}" for name in ("intended_use", "region") if not getattr(about, name)]
    if about.curator_type not in CURATOR_TYPES:
        asked.append(f"[published.about] curator_type ({', '.join(CURATOR_TYPES)})")
    if about.sector and about.sector not in SECTORS:
        asked.append(f"[published.about] sector ({', '.join(SECTORS)}, or ask the registry to add yours)")
    return f" To be told before it is handed in: {'; '.join(asked)}." if asked else ""


def _losses(dataset: Dataset, deployment: Deployment) -> list[str]:
    """What days to come and published ones lose, in words; longer spans of the newest statement."""
    statement = dataset.statement
    return [
        dataset.about.known_noise_in_words,
        f"For days to come: {_guarantee(deployment.model)}.",
        "As published days state it:",
        *(
            f"{one.first} to {one.last} ({one.n_days:,} day(s)): {one.words}"
            for one in reversed(deployment.terms)
        ),
        "A window over days of several terms is covered for what each of them covers.",
        *(
            f"{span.n_days} days in a row, each released once by this plan, lose at most epsilon "
            f"{_rounded_up(span.epsilon):g} at delta {float(span.delta):g}."
            for span in (statement.long_spans if statement else ())
        ),
        "Longer spans add up.",
    ]


def _guarantee(model: PrivacyModel) -> str:
    at_delta = ""
    if model.rho is not None:
        at_delta = (
            f" at delta {float(model.delta):g}, from rho {float(model.rho):.6g} of zero-concentrated privacy,"
        )
    return (
        f"epsilon at most {_rounded_up(model.epsilon):g}{at_delta} for any {model.window_length} "
        f"consecutive steps (sliding), changes of a reading of at most {decimal_below(model.alpha)}, "
        "less the supplier's rounding"
    )


def _worded(value: Any) -> str:
    """Return a parameter without Python's own notation: keys in parentheses, lists by spaces."""
    if isinstance(value, Mapping):
        return f"({', '.join(f'{key} {_worded(part)}' for key, part in value.items())})"
    if isinstance(value, list | tuple):
        return " ".join(map(_worded, value)) or "none"
    return str(value)


def _rounded_up(epsilon: Fraction) -> float:
    """Four decimals: a loss may be overstated, never understated."""
    return math.ceil(epsilon * 10**4) / 10**4
