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
from optstream.catalogue.metadata import Dataset, day_after
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
    """Return the record of a stream in the registry's layout, with the version of the catalogue in its notes.

    A function of what is published and of public settings; JSON-ready.
    """
    about = dataset.about
    curator = {"data_curator_name": about.publisher or NOT_TOLD}
    if about.curator_type:
        curator["data_curator_type"] = about.curator_type
    basic = {
        "name": dataset.title,
        "data_curators": [curator],
        "intended_use": about.intended_use or NOT_TOLD,
        "data_product_type": "Summary statistics",
        "data_product_region": about.region or NOT_TOLD,
        "description": _description(dataset),
        "publication_date": day_after(day_of(dataset.catalogue.entries[0].period)),
    }
    if about.sector:
        basic["data_product_sector"] = about.sector
    return {
        "url_slug": dataset.slug,
        "deployment": {
            "basic": basic,
            "dp_variant": {
                "variant_name": "Zero-concentrated DP" if deployment.model.delta else "Pure DP",
                "data_domain": f"Series of readings in the unit of {dataset.catalogue.value_column}; those "
                "beyond public bounds are clamped.",
                "unprotected_quantities": "The hierarchy and its nodes, the calendar, bounds and parameters, "
                "which days are published and which were measured again; and whether a customer has readings "
                "at all, on days whose terms do not cover it.",
            },
            "privacy_loss": _privacy_loss(dataset, deployment),
            "deployment_model": _model(),
            "implementation": _implementation(dataset, deployment),
            "administrative": {
                "evidence_sources": {"published_folder": _source(about)},
                "status": "Draft",
                "registry_authors": [about.publisher or NOT_TOLD],
                "tier": 3,
            },
        },
    }


def _source(about: About) -> dict[str, Any]:
    told = {"title": "The published folder: catalogue.json, manifests/ and data/", "url": about.address}
    return {
        "evidence_source_type": "Formal publication by the deploying organization",
        "misc": {key: text for key, text in told.items() if text is not None},
    }


def _to_fill_in(about: About) -> str:
    """What the registry asks for and the publisher has not told, or not in its words; empty if nothing."""
    asked = [] if about.publisher else ["[published] publisher"]
    asked += [f"[published.about] {name}" for name in ("intended_use", "region") if not getattr(about, name)]
    if about.curator_type not in CURATOR_TYPES:
        asked.append(f"[published.about] curator_type ({', '.join(CURATOR_TYPES)})")
    if about.sector and about.sector not in SECTORS:
        asked.append(f"[published.about] sector ({', '.join(SECTORS)}, or ask the registry to add yours)")
    return f" To be told before it is handed in: {'; '.join(asked)}." if asked else ""


def _description(dataset: Dataset) -> str:
    own = dataset.about.description or f"Series of {dataset.catalogue.value_column}."
    statement = dataset.statement
    often = "" if statement is None else f" Every {statement.step_minutes} minutes,"
    return f"{own}{often} for each leaf of a hierarchy and every sum above them; a file a day."


def _privacy_loss(dataset: Dataset, deployment: Deployment) -> dict[str, Any]:
    statement, model = dataset.statement, deployment.model
    worst = max(deployment.guarantees, key=lambda one: one.epsilon)
    epsilon = worst.epsilon if statement is None else max(worst.epsilon, statement.epsilon_plan)
    details = [
        dataset.about.known_noise_in_words,
        f"For days to come: {_guarantee(model)}.",
        "As published days state it:",
        *(
            f"{one.first} to {one.last} ({one.n_days:,} day(s)): {one.words}"
            for one in reversed(deployment.terms)
        ),
        "A window over days of several terms is covered for what each of them covers.",
        # of long spans alone: what one window loses is said here already
        *(_long_span(span) for span in (statement.long_spans if statement else ())),
        "Longer spans add up.",
    ]
    larger = "c^2 times rho" if model.delta else "c times epsilon"
    who = "One customer's readings" if model.unit == "customer" else "One roaming device's readings"
    most = model.leaves_per_step
    where = "at each step in one leaf" if most == 1 else f"at each step in at most {most} leaves"
    minutes = "" if statement is None else f" of {statement.step_minutes} minutes"
    return {
        "privacy_unit": f"{who} in any {model.window_length} consecutive steps{minutes}",
        "privacy_unit_details": f"Two inputs are adjacent if they differ in the readings of one customer "
        f"inside one window of {model.window_length} consecutive steps"
        f"{'' if model.windows == 'sliding' else ' of one day'}, {where}, each reading by at most what the "
        f"terms of its day cover, in the unit of {dataset.catalogue.value_column}. A change at most c times "
        f"as large, c a whole number, costs at most {larger}. Where the manifest of a day in "
        "the window limits that further, this holds for what that one covers.",
        # no number holds for all windows once noise is known
        **({} if dataset.about.known_noise else {"privacy_parameters": _parameters(worst, epsilon)}),
        "privacy_parameters_details": " ".join(filter(None, details)),
    }


def _parameters(model: PrivacyModel, epsilon: Fraction) -> dict[str, float]:
    """The keys of the card; rho and delta only where the currency is rho."""
    found = {"epsilon": _rounded_up(epsilon)}
    return found if model.rho is None else found | {"delta": float(model.delta), "rho": float(model.rho)}


def _guarantee(model: PrivacyModel) -> str:
    kind, at_delta = "sliding" if model.windows == "sliding" else "inside one period", ""
    if model.rho is not None:
        at_delta = f" at delta {float(model.delta):g}, from rho {float(model.rho):.6g}"
    return (
        f"epsilon at most {_rounded_up(model.epsilon):g}{at_delta} for any {model.window_length} "
        f"consecutive steps ({kind}), changes of a reading of at most {decimal_below(model.alpha)}, "
        "less the supplier's rounding"
    )


def _long_span(span: Any) -> str:
    return (
        f"{span.n_days} days in a row, each released once by this plan, lose at most epsilon "
        f"{_rounded_up(span.epsilon):g} at delta {float(span.delta):g}."
    )


def _model() -> dict[str, str]:
    return {
        "model_name": "Central",
        "model_name_details": "Readings stay in a trusted zone; only the published folder leaves it.",
        "actors": "The supplier of the readings, the operator of the trusted zone, and everybody who reads "
        "the published folder.",
        "trust_assumptions": "Supplier and operator see the readings and are trusted with them. Everybody "
        "else sees the published folder alone, is not trusted, and may know anything about all other "
        "customers.",
        "release_type": "Many releases",
        "release_type_details": "A release a day. The privacy budget belongs to windows, not to days: every "
        "window of consecutive steps has one epsilon, over all releases, days measured again among them.",
        "data_source_type": "Dynamic",
        "data_source_type_details": "New readings come in every day.",
        "access_type": "Non-interactive",
    }


def _worded(value: Any) -> str:
    """Return a parameter without Python's own notation: keys in parentheses, lists by spaces."""
    if isinstance(value, Mapping):
        return f"({', '.join(f'{key} {_worded(part)}' for key, part in value.items())})"
    if isinstance(value, list | tuple):
        return " ".join(map(_worded, value)) or "none"
    return str(value)


def _implementation(dataset: Dataset, deployment: Deployment) -> dict[str, str]:
    statement = dataset.statement
    mechanism, resolution, noise = "", "", ""
    if statement is not None:
        parameters = {key: value for key, value in statement.mechanism.items() if key != "name"}
        mechanism = f"{statement.mechanism['name']} {_worded(parameters)}. "
        resolution = f" to {plain_number(statement.model.resolution)}"
        noise = f" Code version {statement.code_version}."
    law, without = "discrete Laplace (or joint, as each release's manifest says)", "floating point"
    if (statement.model if statement else deployment.model).delta:
        # floats decide there where they must agree with fractions (Lemma 20a)
        law, without = "discrete Gaussian", "rounding"
    names = deployment.sharing
    shares = "other stream shares" if len(names) == 1 else "other streams share"
    streams = f" {len(names)} {shares} the budget: {', '.join(names)}." if names else ""
    return {
        "preprocessing_and_hyperparameter_tuning": "Readings are clamped to public bounds and rounded"
        f"{resolution}. Parameters come from the configuration, from public series, "
        "or from measurements that were charged; none is tuned on readings.",
        "mechanisms": f"{mechanism}Noise is {law}, drawn exactly on "
        f"integers from the operating system's generator, so no {without} is in the draw. Files hold no "
        "time of a run; when they appear shows when one ended, unless a fixed hour is waited for. A "
        "machine that dies in the seconds of a draw draws again, at most twice, which is not charged. Scales "
        f"are in manifests/.{noise}",
        "composition": "Sequential composition, exact in rational numbers, of all measurements that a window "
        "holds, over all releases, days measured again, and streams of the same customers. The plan is "
        f"charged in a ledger before anything is drawn, and refused if a window would lose more.{streams}",
        "post_processing": "Values are estimated from the noisy measurements, made to add up over the "
        "hierarchy, lifted to a public lower bound and rounded. A new estimate of a day (a vintage) uses "
        "measurements that were charged before.",
        "justification": "The guarantee's lemmas, and tests that attack them, are in the project's document "
        "on privacy.",
        "utility": "What noise does to each value, or how far it is off where the mechanism knows that, "
        "stands beside it in data/, and for sums in errors/.",
        "additional_information": f"Made of the published folder in version {dataset.version}, with its "
        f"ledger.{_to_fill_in(dataset.about)}",
    }


def _rounded_up(epsilon: Fraction) -> float:
    """Four decimals: a loss may be overstated, never understated."""
    return math.ceil(epsilon * 10**4) / 10**4
