"""The deployment card has the fields of the public registry, and never understates a loss."""

import re
from dataclasses import replace
from fractions import Fraction

import jsonschema
import pytest

from optstream.catalogue.about import About
from optstream.catalogue.backends import open_storage
from optstream.catalogue.metadata.dataset import read_dataset
from optstream.catalogue.metadata.deployment_card import Deployment, deployment_card
from optstream.catalogue.statements.noise_scales import NoiseScale
from optstream.privacy import PrivacyModel
from tests.optstream.catalogue.folders import DAY

TEXT = {"type": "string", "minLength": 1}
TEXTS = {"type": "array", "items": TEXT, "minItems": 1}


def fields(optional=(), **required):
    kinds = {**required, **dict.fromkeys(optional, TEXT)}
    return {
        "type": "object", "additionalProperties": False, "required": list(required), "properties": kinds
    }  # fmt: skip


# The layout of the records in https://github.com/opendp/deployments-registry-data (deployments/*.yaml with a
# `basic` section); that repository publishes no package with its schema.
RECORD = fields(
    url_slug={"type": "string", "pattern": "^[a-z0-9._-]+$"},
    status={"enum": ["Draft", "Pending", "Changes Required", "Approved"]},
    tier={"enum": [1, 2, 3]},
    deployment=fields(
        basic=fields(
            ["data_product_sector"],
            name=TEXT,
            data_curators={
                "type": "array",
                "minItems": 1,
                "items": fields(["data_curator_type"], data_curator_name=TEXT),
            },
            intended_use=TEXT,
            data_product_type={"enum": ["Summary statistics", "Synthetic data", "Machine learning model"]},
            data_product_region=TEXT,
            description=TEXT,
            publication_date={"type": "string", "format": "date"},
        ),
        dp_variant=fields(
            variant_name={"enum": ["Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP"]},
            data_domain=TEXT,
            unprotected_quantities=TEXT,
        ),
        privacy_loss=fields(
            privacy_unit=TEXT,
            privacy_unit_details=TEXT,
            privacy_parameters=fields(epsilon={"type": "number", "exclusiveMinimum": 0}),
            privacy_parameters_details=TEXT,
        ),
        deployment_model=fields(
            ["release_type_details", "data_source_type_details", "access_type_details"],
            model_name={"enum": ["Central", "Local", "Shuffle", "Federated"]},
            model_name_details=TEXT,
            actors=TEXT,
            release_type={"enum": ["One release", "Many releases"]},
            data_source_type={"enum": ["Static", "Dynamic"]},
            access_type={"enum": ["Interactive", "Non-interactive"]},
        ),
        accounting=fields(post_processing=TEXT, composition=TEXT),
        implementation=fields(
            preprocessing_and_hyperparameter_tuning=TEXT, mechanisms=TEXT, justification=TEXT
        ),
        administrative=fields(["notes"], sources=TEXT, registry_authors=TEXTS),
    ),
)
TOLD = About("Example Grid", intended_use="Planning", region="France", sector="Energy")
DEPLOYMENT = Deployment(
    guarantees=(PrivacyModel("2", 48, 10), PrivacyModel("1/3", 48, 10)),
    n_compromised=0,
    sharing=("gas",),
    restatement_share=Fraction(1, 10),
    supplier_rounding=Fraction(0),
    mechanism={"name": "Laplace", "noise": "joint"},
    bounds=(Fraction(0), Fraction(10)),
    metered=False,
    step_minutes=30,
    n_leaves=2,
)


@pytest.fixture
def dataset(tmp_path, put):
    """One published day."""
    put(tmp_path / "published", DAY)
    return read_dataset(open_storage(tmp_path / "published"), TOLD)


def problems(card):
    checked = jsonschema.Draft202012Validator(RECORD, format_checker=jsonschema.FormatChecker())
    return [error.message for error in checked.iter_errors(card)]


@pytest.mark.parametrize("about", [TOLD, About()], ids=["told", "untold"])
def test_it_has_the_registrys_fields(dataset, about):
    assert problems(deployment_card(replace(dataset, about=about), DEPLOYMENT)) == []
    gone = replace(dataset, about=about, statement=None)
    assert problems(deployment_card(gone, DEPLOYMENT)) == []
    broken = deployment_card(dataset, DEPLOYMENT)
    broken["deployment"]["privacy_loss"]["delta"] = 0
    assert problems(broken), "control: a field that the registry does not know"


def test_no_loss_is_understated(dataset):
    """Of what is in force and of what the newest plan costs the larger, rounded up; earlier ones are told."""
    loss = deployment_card(dataset, DEPLOYMENT)["deployment"]["privacy_loss"]
    assert loss["privacy_parameters"]["epsilon"] == 1.0, "the statement's plan costs 1"
    alone = deployment_card(replace(dataset, statement=None), DEPLOYMENT)["deployment"]["privacy_loss"]
    assert alone["privacy_parameters"]["epsilon"] == 0.3334
    assert "earlier guarantee keep it: epsilon at most 2 " in loss["privacy_parameters_details"]


def test_what_the_suppliers_rounding_takes_of_alpha_is_not_said_to_be_covered(dataset):
    rounded = replace(DEPLOYMENT, supplier_rounding=Fraction(1, 2))
    loss = deployment_card(dataset, rounded)["deployment"]["privacy_loss"]
    assert "each reading by at most 9.5 in the unit" in loss["privacy_unit_details"]
    assert "In force: epsilon at most 0.3334 " in loss["privacy_parameters_details"]
    assert "changes of a reading of at most 9.5. Days" in loss["privacy_parameters_details"]
    assert "at most 10, less what the supplier rounded then." in loss["privacy_parameters_details"]
    thirds = replace(DEPLOYMENT, guarantees=(PrivacyModel("1", 48, "2/3"),))
    assert "by at most 0.6666 in" in str(deployment_card(dataset, thirds))


def test_noise_that_is_priced_for_customers_in_one_leaf_says_so(dataset):
    details = deployment_card(dataset, DEPLOYMENT)["deployment"]["privacy_loss"]["privacy_unit_details"]
    assert "readings of one period lie in" not in details
    assert "Where the manifest of a day in the window limits that further" in details
    noise = (NoiseScale(1, "blocks", Fraction(50), 6, 2),)
    joint = replace(dataset, statement=replace(dataset.statement, noise=noise))
    details = deployment_card(joint, DEPLOYMENT)["deployment"]["privacy_loss"]["privacy_unit_details"]
    assert "It covers customers whose readings of one period lie in at most 1 leaf." in details


def test_noise_that_became_known_is_told(dataset):
    card = deployment_card(dataset, replace(DEPLOYMENT, n_compromised=2))["deployment"]
    assert "noise of 2 release(s) became known" in card["privacy_loss"]["privacy_parameters_details"]


def test_it_tells_the_unit_and_whom_presence_leaves_out(dataset):
    card = deployment_card(dataset, DEPLOYMENT)["deployment"]
    assert re.fullmatch(
        "One customer's readings in any 48 consecutive steps of 30 minutes",
        card["privacy_loss"]["privacy_unit"],
    )
    assert "has readings at all" in card["dp_variant"]["unprotected_quantities"]
    metered = replace(DEPLOYMENT, metered=True)
    card = deployment_card(dataset, metered)["deployment"]
    assert "has readings at all" not in card["dp_variant"]["unprotected_quantities"]


@pytest.mark.parametrize("bounds", [(Fraction(0), Fraction(11)), (Fraction("-10.5"), Fraction(1))])
def test_presence_is_left_out_where_readings_may_be_larger_than_what_is_covered(dataset, bounds):
    """With alpha 10 somebody's rows that come or go cost twice epsilon (docs/privacy.md, section 1)."""
    card = deployment_card(dataset, replace(DEPLOYMENT, metered=True, bounds=bounds))["deployment"]
    reach = "11" if bounds[1] == 11 else "10.5"
    said = f"has readings at all, but as a change of up to {reach} in each reading"
    assert said in card["dp_variant"]["unprotected_quantities"]
