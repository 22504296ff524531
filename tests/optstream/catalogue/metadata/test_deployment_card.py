"""The deployment card has the fields of the public registry, and never understates a loss."""

from dataclasses import replace

import jsonschema
import pytest

from optstream.catalogue.about import About
from optstream.catalogue.backends import open_storage
from optstream.catalogue.metadata import Deployment, StatedTerms, deployment_card, read_dataset
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
    publisher="Example Grid",
    intended_use="Planning",
    region="France",
    sector="Energy",
    curator_type="Industry",
)
DEPLOYMENT = Deployment(
    guarantees=(PrivacyModel("2", 48, 10), PrivacyModel("1/3", 48, 10)),
    sharing=("gas",),
    terms=(StatedTerms("epsilon at most 5 for all", DAY, DAY, 1), StatedTerms("less", DAY, DAY, 2)),
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
    told = replace(dataset, about=TOLD.changed(address=address))
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
        "handed in: [published.about] publisher; [published.about] intended_use; [published.about] region;"
        " [published.about] curator_type (Government, Industry, Nonprofit)."
    )
    quoted = deployment_card(dataset, replace(DEPLOYMENT, sharing=('the "gas"',)))
    assert 'the budget: the "gas".' in quoted["deployment"]["implementation"]["composition"]
    other = TOLD.changed(sector="Transport")
    card = deployment_card(replace(dataset, about=other), DEPLOYMENT)
    assert len(problems(card)) == 1
    assert "or ask the registry to add yours" in str(card)


def test_parameters_are_words_and_not_pythons_own_notation(dataset):
    mechanism = {
        "name": "OptStream",
        "sampling": {"method": "l1"},
        "features": {"day": [], "half": ["06:00", "18:00"]},
    }
    stated = replace(dataset, statement=dataset.statement.changed(mechanism=mechanism))
    card = deployment_card(stated, DEPLOYMENT)
    said = card["deployment"]["implementation"]["mechanisms"]
    assert said.startswith("OptStream (sampling (method l1), features (day none, half 06:00 18:00)). Noise")


def test_no_loss_is_understated(dataset):
    """Of each guarantee that days keep and of what the newest plan costs the largest, rounded up."""
    loss = deployment_card(dataset, DEPLOYMENT)["deployment"]["privacy_loss"]
    assert loss["privacy_parameters"]["epsilon"] == 2.0, "of days before"
    now = replace(DEPLOYMENT, guarantees=DEPLOYMENT.guarantees[1:])
    for statement, epsilon in ((dataset.statement, 1.0), (None, 0.3334)):
        card = deployment_card(replace(dataset, statement=statement), now)["deployment"]
        assert card["privacy_loss"]["privacy_parameters"]["epsilon"] == epsilon


def test_terms_of_days_are_as_their_statements_have_them(dataset):
    """The newest first; of what a stream is allowed in days to come the ledger says."""
    said = deployment_card(dataset, DEPLOYMENT)["deployment"]["privacy_loss"]["privacy_parameters_details"]
    newest, oldest = (
        said.index(f"({n} day(s)): {words}") for n, words in ((2, "less"), (1, "epsilon at most 5"))
    )
    assert newest < oldest
    assert "For days to come: epsilon at most 0.3334 " in said


def test_noise_that_became_known_is_told(dataset):
    lost = TOLD.changed(known_noise=(("gas", "2016-02-01"), ("load", "2016-02-03")))
    card = deployment_card(replace(dataset, about=lost), DEPLOYMENT)["deployment"]
    assert "privacy_parameters" not in card["privacy_loss"], "no number holds for every window"
    assert problems(deployment_card(replace(dataset, about=lost), DEPLOYMENT)) == []
    said = card["privacy_loss"]["privacy_parameters_details"]
    assert said.startswith("The noise of 2 release(s) of this privacy budget became known (gas 2016-02-01, ")


def test_it_tells_the_unit_and_whom_presence_leaves_out(dataset):
    card = deployment_card(dataset, DEPLOYMENT)["deployment"]
    unit = "One customer's readings in any 48 consecutive steps of 30 minutes"
    assert card["privacy_loss"]["privacy_unit"] == unit
    assert "whether a customer has readings" in card["dp_variant"]["unprotected_quantities"]
