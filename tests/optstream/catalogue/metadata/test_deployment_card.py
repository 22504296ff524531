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

TEXT, ANY = {"type": "string"}, {}
TEXTS = {"type": "array", "items": TEXT, "minItems": 1}
NUMBER, EITHER = {"type": "number"}, {"anyOf": [{"type": "string"}, {"type": "number"}]}


def fields(required, **kinds):
    return {
        "type": "object", "additionalProperties": False, "required": required.split(), "properties": kinds
    }  # fmt: skip


def of(*values):
    return {"type": "string", "enum": list(values)}


def texts(names):
    return dict.fromkeys(names.split(), TEXT)


REFERENCE = fields(
    "",
    **texts("address annote author booktitle doi editor email howpublished institution journal note"),
    **texts("organization publisher school type series title url"),
    **dict.fromkeys(
        ["chapter", "edition", "issn", "isbn", "month", "number", "pages", "volume", "year"], EITHER
    ),
)
KINDS = """article book booklet conference inbook incollection inproceedings manual mastersthesis misc
    phdthesis proceedings techreport unpublished"""
EVIDENCE = of(
    "Peer-reviewed publication",
    "Formal publication by the deploying organization",
    "Authorized organizational attestation",
    "Other public source",
)
# Names, kinds and enumerations of schemas/deployments-schema.yaml in
# https://github.com/opendp/deployments-registry-data (commit 057e5d8), which is in no package.
RECORD = fields(
    "url_slug deployment",
    url_slug=TEXT,
    deployment=fields(
        "basic administrative",
        basic=fields(
            "name data_curators description intended_use data_product_type data_product_region"
            " publication_date",
            **texts("name description intended_use data_product_region"),
            data_curators={
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "required": ["data_curator_name", "data_curator_type"],
                    "properties": {
                        "data_curator_name": TEXT,
                        "data_curator_type": of("Government", "Industry", "Nonprofit"),
                    },
                },
            },
            data_product_type=of(
                "Summary statistics",
                "Machine learning model",
                "Dataset",
                "Synthetic data",
                "Interactive API",
                "SQL queries",
            ),
            data_product_sector=of(
                "Technology", "Healthcare", "Education", "Government", "Energy", "Finance"
            ),
            publication_date={"type": "string", "format": "date"},
        ),
        dp_variant=fields(
            "",
            variant_name=of("Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"),
            **texts("data_domain unprotected_quantities"),
        ),
        privacy_loss=fields(
            "",
            **texts("privacy_unit privacy_unit_details"),
            number_of_privacy_units={"type": "integer"},
            privacy_parameters=fields("", epsilon=NUMBER, delta=EITHER, rho=NUMBER),
            privacy_parameters_details=ANY,
        ),
        deployment_model=fields(
            "",
            model_name=of("Local", "Central", "Shuffle", "Federated", "Varies"),
            **texts("model_name_details trust_assumptions release_type_details data_source_type_details"),
            actors=ANY,
            release_type=of("One release", "Many releases"),
            data_source_type=of("Static", "Dynamic"),
            access_type=of("Interactive", "Non-interactive"),
            access_type_details=TEXT,
        ),
        implementation=fields(
            "",
            **texts("preprocessing_and_hyperparameter_tuning mechanisms composition post_processing"),
            justification=TEXT,
            utility=ANY,
            additional_information=ANY,
        ),
        administrative=fields(
            "status registry_authors tier",
            evidence_sources={
                "type": "object",
                "patternProperties": {
                    r"^\w+$": {
                        "oneOf": [
                            fields("", evidence_source_type=EVIDENCE, **{kind: REFERENCE})
                            for kind in KINDS.split()
                        ]
                    }
                },
            },
            status=of(
                "Converted",
                "Draft",
                "Pending",
                "Changes Required",
                "Approved",
                "Approved (Update Requested)",
                "Approved (Pending)",
            ),
            registry_authors=TEXTS,
            tier={"type": "integer", "enum": [1, 2, 3]},
        ),
    ),
)
TOLD = About(
    "Example Grid", intended_use="Planning", region="France", sector="Energy", curator_type="Industry"
)
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
    checked = jsonschema.Draft7Validator(RECORD, format_checker=jsonschema.Draft7Validator.FORMAT_CHECKER)
    return [error.message for error in checked.iter_errors(card)]


@pytest.mark.parametrize("address", [None, "https://example.org/load"])
@pytest.mark.parametrize("model", [PrivacyModel("1/3", 48, 10), PrivacyModel("1", 48, 10, delta="1/1000000")])
def test_it_is_as_the_registrys_schema_has_it(dataset, model, address):
    """Of pure and of zero-concentrated privacy, with a release and without."""
    told = replace(dataset, about=replace(TOLD, address=address))
    deployment = replace(DEPLOYMENT, guarantees=(model,))
    card = deployment_card(told, deployment)
    assert problems(card) == []
    assert problems(deployment_card(replace(told, statement=None), deployment)) == []
    assert "before it is handed in" not in str(card)
    card["deployment"]["privacy_loss"]["loss"] = 0
    assert problems(card), "control: a field that the registry does not know"


def test_it_says_what_the_registry_asks_for_beside(dataset):
    """Of a kind or sector that the registry does not know a card is not as its schema has it."""
    nothing = deployment_card(replace(dataset, about=About()), DEPLOYMENT)
    assert problems(nothing) == ["'data_curator_type' is a required property"]
    said = nothing["deployment"]["implementation"]["additional_information"]
    assert said.endswith(
        "handed in: [published] publisher; [published.about] intended_use; [published.about] region;"
        " [published.about] curator_type (Government, Industry, Nonprofit)."
    )
    other = replace(TOLD, sector="Transport")
    card = deployment_card(replace(dataset, about=other), DEPLOYMENT)
    assert len(problems(card)) == 1
    assert "or ask the registry to add yours" in str(card)


def test_parameters_are_words_and_not_pythons_own_notation(dataset):
    mechanism = {
        "name": "OptStream",
        "sampling": {"method": "l1"},
        "features": {"day": [], "half": ["06:00", "18:00"]},
    }
    card = deployment_card(dataset, replace(DEPLOYMENT, mechanism=mechanism))
    said = card["deployment"]["implementation"]["mechanisms"]
    assert said.startswith("OptStream (sampling (method l1), features (day none, half 06:00 18:00)). Noise")


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
