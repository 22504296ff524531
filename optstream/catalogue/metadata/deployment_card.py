"""The deployment card: a record for the public registry of differential privacy deployments.

The registry: https://registry.opendp.org, whose records have the layout of schemas/deployments-schema.yaml in
https://github.com/opendp/deployments-registry-data (commit 057e5d8), tier 3. A record is what its publisher
hands in there, as a draft: nothing is sent by this program.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from optstream.catalogue.about import About
from optstream.catalogue.metadata.dataset import Dataset, day_after
from optstream.catalogue.statements.statement import decimal_below
from optstream.privacy import PrivacyModel
from optstream.stream.period import day_of

NOT_TOLD = "Not stated by the publisher."
CURATOR_TYPES = ("Government", "Industry", "Nonprofit")
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
"""That the registry knows; it takes others when they are added to its schema."""


@dataclass(frozen=True)
class Deployment:
    """What the card says beside the published folder, from ledger and configuration: public facts alone.

    Attributes:
        guarantees: The privacy guarantees that days were planned under, oldest first; the last is in force.
        n_compromised: How many releases' noise became known, so that nothing protects what they hold.
        sharing: Names of the other streams that share the privacy budget.
        restatement_share: Part of epsilon that is kept back for measuring days again.
        supplier_rounding: The part of alpha that the supplier's rounding of sums takes, in the unit of the
            values.
        mechanism: {"name": …} with its parameters, JSON-ready.
        bounds: Lowest and highest reading; others are clamped to them.
        metered: Whether each row of the input is one customer's.
        step_minutes: Length of a step.
        n_leaves: Of the hierarchy.
    """

    guarantees: tuple[PrivacyModel, ...]
    n_compromised: int
    sharing: tuple[str, ...]
    restatement_share: Fraction
    supplier_rounding: Fraction
    mechanism: Mapping[str, Any]
    bounds: tuple[Fraction, Fraction]
    metered: bool
    step_minutes: int
    n_leaves: int

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
        "description": _description(dataset, deployment),
        "publication_date": day_after(day_of(dataset.catalogue.entries[0].period)),
    }
    if about.sector:
        basic["data_product_sector"] = about.sector
    return {
        "url_slug": dataset.slug,
        "deployment": {
            "basic": basic,
            "dp_variant": _variant(dataset, deployment),
            "privacy_loss": _privacy_loss(dataset, deployment),
            "deployment_model": _model(deployment),
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


def _description(dataset: Dataset, deployment: Deployment) -> str:
    own = dataset.about.description or f"Series of {dataset.catalogue.value_column}."
    return (
        f"{own} Every {deployment.step_minutes} minutes, for {deployment.n_leaves:,} "
        f"{'leaf' if deployment.n_leaves == 1 else 'leaves'} of a hierarchy and every sum above them; "
        "a file a day."
    )


def _variant(dataset: Dataset, deployment: Deployment) -> dict[str, str]:
    low, high = map(_shown, deployment.bounds)
    rows = "a row for each customer and step" if deployment.metered else "a row for each leaf and step"
    presence, reach = "", max(map(abs, deployment.bounds))
    if not deployment.metered:
        presence = " Whether a customer has readings at all (rows are the supplier's sums)."
    elif reach > min(one.alpha for one in deployment.guarantees):
        change = f"a change of up to {_shown(reach)} in each reading"
        presence = f" Whether a customer has readings at all, but as {change}."
    return {
        "variant_name": "Zero-concentrated DP" if deployment.model.delta else "Pure DP",
        "data_domain": f"Series of readings with {rows} of {deployment.step_minutes} minutes, each between "
        f"{low} and {high} in the unit of {dataset.catalogue.value_column}; others are clamped.",
        "unprotected_quantities": "The hierarchy and its nodes, the calendar, bounds and parameters, which "
        f"days are published and which were measured again.{presence}",
    }


def _privacy_loss(dataset: Dataset, deployment: Deployment) -> dict[str, Any]:
    statement, model = dataset.statement, deployment.model
    epsilon = model.epsilon if statement is None else max(model.epsilon, statement.epsilon_plan)
    change = model.alpha - deployment.supplier_rounding
    in_force = f"In force: {_guarantee(model, change)}."
    leaves = f"{statement.leaves_in_words} " if statement is not None and statement.leaves_in_words else ""
    earlier = [
        f"Days that were planned under an earlier guarantee keep it: {_guarantee(one, one.alpha)}"
        f"{'' if deployment.metered else ', less what the supplier rounded then'}."
        for one in deployment.guarantees[:-1]
    ]
    lost = f"The noise of {deployment.n_compromised} release(s) became known: windows with a step of "
    compromised = [f"{lost}one of them are not protected."] if deployment.n_compromised else []
    larger = "c^2 times rho" if model.delta else "c times epsilon"
    who = "One customer's readings" if model.unit == "customer" else "One roaming device's readings"
    most = model.leaves_per_step
    where = "at each step in one leaf" if most == 1 else f"at each step in at most {most} leaves"
    # of long spans alone: what one window loses is said here already
    longer = [] if statement is None else [_long_span(span) for span in statement.long_spans]
    return {
        "privacy_unit": f"{who} in any {model.window_length} consecutive steps of "
        f"{deployment.step_minutes} minutes",
        "privacy_unit_details": f"Two inputs are adjacent if they differ in the readings of one customer "
        f"inside one window of {model.window_length} consecutive steps"
        f"{'' if model.windows == 'sliding' else ' of one day'}, {where}, each reading by at most "
        f"{decimal_below(change)} in the unit of {dataset.catalogue.value_column}. A change at most c times "
        f"as large, c a whole number, costs at most {larger}. {leaves}Where the manifest of a day in "
        "the window limits that further, this holds for what that one covers.",
        "privacy_parameters": _parameters(model, epsilon),
        "privacy_parameters_details": " ".join(
            [in_force, *compromised, *earlier, *longer, "Longer spans add up."]
        ),
    }


def _parameters(model: PrivacyModel, epsilon: Fraction) -> dict[str, float]:
    """The keys of the card; rho and delta only where the currency is rho."""
    found = {"epsilon": _rounded_up(epsilon)}
    return found if model.rho is None else found | {"delta": float(model.delta), "rho": float(model.rho)}


def _at_delta(model: PrivacyModel) -> str:
    if model.rho is None:
        return ""
    return f" at delta {float(model.delta):g}, from rho {float(model.rho):.6g} of zero-concentrated privacy,"


def _guarantee(model: PrivacyModel, change: Fraction) -> str:
    kind = "sliding" if model.windows == "sliding" else "inside one period"
    return (
        f"epsilon at most {_rounded_up(model.epsilon):g}{_at_delta(model)} for any {model.window_length} "
        "consecutive steps "
        f"({kind}), changes of a reading of at most {decimal_below(change)}"
    )


def _long_span(span: Any) -> str:
    return (
        f"{span.n_days} days in a row, each released once by this plan, lose at most epsilon "
        f"{_rounded_up(span.epsilon):g} at delta {float(span.delta):g}."
    )


def _model(deployment: Deployment) -> dict[str, str]:
    share = deployment.restatement_share
    again = f" {share} of epsilon is kept back for measuring a day again." if share else ""
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
        f"window of consecutive steps has one epsilon, over all releases.{again}",
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
    parameters = _worded({key: value for key, value in deployment.mechanism.items() if key != "name"})
    noise = "" if statement is None else f" Code version {statement.code_version}."
    law, without = "discrete Laplace (or joint, as each release's manifest says)", "floating point"
    if deployment.model.delta:
        # floats decide there where they must agree with fractions (Lemma 20a)
        law, without = "discrete Gaussian", "rounding"
    names = deployment.sharing
    shares = "other stream shares" if len(names) == 1 else "other streams share"
    streams = f" {len(names)} {shares} the budget: {', '.join(names)}." if names else ""
    return {
        "preprocessing_and_hyperparameter_tuning": "Readings are clamped to public bounds and rounded to "
        f"{_shown(deployment.model.resolution)}. Parameters come from the configuration, from public series, "
        "or from measurements that were charged; none is tuned on readings.",
        "mechanisms": f"{deployment.mechanism['name']} {parameters}. Noise is {law}, drawn exactly on "
        f"integers from the operating system's generator, so no {without} is in the draw. No time of a run "
        "reaches a reader. Scales are in manifests/."
        f"{noise}",
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
        f"ledger and configuration.{_to_fill_in(dataset.about)}",
    }


def _shown(amount: Fraction) -> str:
    """An exact number as people read it."""
    return f"{amount.numerator:,}" if amount.denominator == 1 else f"{float(amount):.6g}"


def _rounded_up(epsilon: Fraction) -> float:
    """Four decimals: a loss may be overstated, never understated."""
    return math.ceil(epsilon * 10**4) / 10**4
