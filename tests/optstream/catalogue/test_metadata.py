"""What a publisher says about a folder, and descriptions, valid by their formats, that only move forward."""

import hashlib
import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import yaml
from jsonschema import Draft202012Validator

from optstream.catalogue import check_files, metadata, publish, read_published, stage
from optstream.catalogue.about import About, NodeFacts, parse_about, put_about, put_hierarchy
from optstream.catalogue.backends import open_storage
from optstream.catalogue.documents import json_schema
from optstream.catalogue.layout import ABOUT
from optstream.catalogue.metadata import OWN, StatedTerms, deployment_card, put_metadata, read_dataset
from optstream.catalogue.standard_errors import Replicates, encode_replicates
from optstream.catalogue.statement import StatedErrors
from optstream.errors import PublicationError
from optstream.privacy import PrivacyModel
from optstream.stream import DatedHierarchy, TreeChange
from tests.optstream.catalogue.conftest import NODES, make_rows, make_statement, put
from tests.optstream.catalogue.folders import DAY, NEXT, PEM, SIGNER, memory_folder

FORMATS = Path(__file__).with_name("formats")
DESCRIBED = About(
    publisher="Example Grid",
    licence="CC BY 4.0",
    licence_address="https://creativecommons.org/licenses/by/4.0/",
    title="French load",
    description="Load of an example grid.",
    contact="data@example.org",
    citation="Example Grid: French load.",
    address="https://example.org/load/",
    intended_use="Planning",
    region="France",
    sector="Energy",
    curator_type="Industry",
)


@pytest.fixture
def folder(tmp_path):
    """Two published days with their errors, a change of the hierarchy, and their descriptions."""
    published = tmp_path / "published"
    estimate, replicates = np.ones((3, 4)), np.arange(24.0).reshape(2, 3, 4)
    for day in (DAY, NEXT):
        data = encode_replicates(Replicates.labelled(day, "whole", tuple(NODES), estimate, replicates))
        digest = hashlib.sha256(data).hexdigest()
        statement = make_statement(day, errors=StatedErrors(file_hash=digest, of="whole", replicates=2))
        staged = replace(stage(make_rows(day), statement), attachments={digest: data})
        publish(published, [staged], lambda _: "h1")
    parents = tuple((node, parent) for node, (parent, _) in NODES.items())
    change = TreeChange(NEXT + timedelta(days=1), {"84": "85"})
    put_hierarchy(published, DatedHierarchy(parents, (change,)), lambda _: None)
    put_metadata(published, DESCRIBED)
    return published


@pytest.fixture
def dataset(tmp_path):
    put(tmp_path / "published", DAY)
    return read_dataset(open_storage(tmp_path / "published"), DESCRIBED)


def package_problems(document):
    from frictionless import Package

    report = Package.validate_descriptor(document)
    return [error.message for error in report.errors] + [
        error.message for task in report.tasks for error in task.errors if "scheme" not in error.message
    ]


def croissant_problems(document):
    import mlcroissant

    try:
        found = mlcroissant.Dataset(document)
    except mlcroissant.ValidationError as error:
        return [str(error)]
    return list(found.metadata.ctx.issues.errors)


def dcat_problems(document):
    import rdflib
    from pyshacl import validate

    place = "https://example.org/copy/dcat.jsonld"
    graph = rdflib.Graph().parse(data=json.dumps(document), format="json-ld", publicID=place)
    shapes = (FORMATS / "dcat_ap.ttl").read_text()
    keeps, _, words = validate(graph, shacl_graph=shapes, shacl_graph_format="turtle")
    return [] if keeps else [words]


OTHER_FILES, NOTHING = {"@id": "others"}, {"@id": "https://example.org/nothing"}
# changes that break each: a type that the format does not know, a field of files that are not there
PACKAGE = [lambda found: found["resources"][0]["schema"]["fields"][0].update(type="whole")]
CROISSANT = [lambda found: found["recordSet"][0]["field"][1]["source"].update(fileSet=OTHER_FILES)]
DCAT = [
    lambda found, key=key: found.update({key: NOTHING})
    for key in ("dct:title", "dcat:distribution", "dct:publisher", "dct:issued")
]
VALID = {
    "package": (metadata.data_package, package_problems, PACKAGE),
    "croissant": (metadata.croissant, croissant_problems, CROISSANT),
    "dcat": (metadata.dcat, dcat_problems, DCAT),
}
CONTACTS = ("data@example.org", "https://example.org/help", "Room 7")


@pytest.mark.slow
@pytest.mark.parametrize(("describe", "problems", "spoilings"), VALID.values(), ids=VALID)
def test_descriptions_of_any_folder_are_valid_and_what_is_not_is_found(folder, describe, problems, spoilings):
    """Of a publisher that tells all, of one that tells nothing, and after every day was withdrawn."""
    for about in (DESCRIBED, About(), *(About(contact=one) for one in CONTACTS)):
        dataset = read_dataset(open_storage(folder), about)
        assert problems(describe(dataset)) == []
    entries = tuple(entry.changed(withdrawn=True) for entry in dataset.catalogue.entries)
    empty = dataset.catalogue.changed(periods=entries)
    for about in (DESCRIBED, About()):
        assert problems(describe(metadata.Dataset(empty, about, None))) == []
    for spoil in spoilings:
        broken = describe(read_dataset(open_storage(folder), DESCRIBED))
        spoil(broken)
        assert problems(broken), spoil


@pytest.mark.slow
def test_the_files_are_valid_by_the_data_package_too(folder):
    """Of errors most numbers of steps are absent."""
    from frictionless import validate

    report = validate(str(folder / "datapackage.json"))
    assert {task.name for task in report.tasks} == {"releases", "errors", "hierarchy", "catalogue"}
    assert [error.message for task in report.tasks for error in task.errors] == []
    assert report.errors == []


@pytest.mark.slow
def test_croissant_loads_the_rows(folder):
    import mlcroissant

    loaded = {
        (str(row["releases/date"])[:10], row["releases/step"], row["releases/node"].decode()): row[
            "releases/load_mw"
        ]
        for row in mlcroissant.Dataset(folder / "croissant.json").records("releases")
    }
    published = read_published(folder)
    columns = published["date"].cast(str), published["step"], published["node"]
    assert loaded == dict(zip(zip(*columns, strict=True), published["load_mw"], strict=True))


def test_they_are_of_the_catalogue_and_the_same_bytes_until_it_changes(published):
    assert not put_metadata(published.name, DESCRIBED), "there is nothing to describe"
    put(published.name, DAY)
    assert put_metadata(published.name, DESCRIBED)
    first = {name: published.read(name) for name in OWN}
    assert not put_metadata(published.name, DESCRIBED)
    assert check_files(published.name) == []
    put(published.name, NEXT)
    assert [line.split()[0] for line in check_files(published.name)] == list(OWN)
    assert put_metadata(published.name, DESCRIBED)
    assert check_files(published.name) == []
    assert all(published.read(name) != first[name] for name in OWN)
    published.write("datapackage.json", b'{"version": 1}')
    (line,) = check_files(published.name)
    assert line.startswith("datapackage.json is not of the days")


def test_one_of_an_older_catalogue_never_takes_the_place_of_a_newer_ones(monkeypatch):
    """Another publishes, and describes, after this one has read the catalogue."""
    published = memory_folder()
    put(published.name, DAY)
    read = metadata.read_dataset

    def overtaken(storage, about):
        found = read(storage, about)
        monkeypatch.setattr(metadata, "read_dataset", read)
        put(published.name, NEXT)
        put_metadata(published.name, DESCRIBED)
        return found

    monkeypatch.setattr(metadata, "read_dataset", overtaken)
    put_metadata(published.name, DESCRIBED)
    assert check_files(published.name) == []


def test_they_are_signed_where_the_catalogue_is(published):
    put(published.name, DAY)
    put_metadata(published.name, DESCRIBED, SIGNER)
    unsigned = [line for line in check_files(published.name, PEM) if "is not signed" in line]
    assert [line.split()[0] for line in unsigned] == ["catalogue.json", *OWN]
    put(published.name, DAY, signer=SIGNER)
    put_metadata(published.name, DESCRIBED, SIGNER)
    assert check_files(published.name, PEM) == []
    published.write("croissant.json", published.read("croissant.json").replace(b"Grid", b"Grit"))
    (line,) = check_files(published.name, PEM)
    assert line.startswith("croissant.json is not signed")


# The deployment card has the fields of the public registry, and never understates a loss.

RECORD = yaml.safe_load((FORMATS / "registry_record.yaml").read_text())
"""Names, kinds and enumerations of schemas/deployments-schema.yaml in
https://github.com/opendp/deployments-registry-data (commit 057e5d8), which is in no package."""
DEPLOYMENT = metadata.Deployment(
    guarantees=(PrivacyModel("2", 48, 10), PrivacyModel("1/3", 48, 10)),
    sharing=("gas",),
    terms=(StatedTerms("epsilon at most 5 for all", DAY, DAY, 1), StatedTerms("less", DAY, DAY, 2)),
)


def card_problems(card):
    checked = jsonschema.Draft7Validator(RECORD, format_checker=jsonschema.Draft7Validator.FORMAT_CHECKER)
    return [error.message for error in checked.iter_errors(card)]


@pytest.mark.parametrize("address", [None, "https://example.org/load"])
@pytest.mark.parametrize("model", [PrivacyModel("1/3", 48, 10), PrivacyModel("1", 48, 10, delta="1/1000000")])
def test_the_card_is_as_the_registrys_schema_has_it(dataset, model, address):
    """Of pure and of zero-concentrated privacy, with a release and without."""
    stated = {"name": "OptStream", "features": {"day": [], "half": ["06:00", "18:00"]}}
    about, statement = DESCRIBED.changed(address=address), dataset.statement.changed(mechanism=stated)
    described = replace(dataset, about=about, statement=statement)
    deployment = replace(DEPLOYMENT, guarantees=(model,))
    card = deployment_card(described, deployment)
    assert card_problems(card) == []
    assert "OptStream (features (day none, half 06:00 18:00))" in str(card)
    assert "before it is handed in" not in str(card)
    assert card_problems(deployment_card(replace(described, statement=None), deployment)) == []
    card["deployment"]["privacy_loss"]["loss"] = 0
    assert card_problems(card), "control: a field that the registry does not know"


def test_the_card_names_what_the_registry_needs_too(dataset):
    """Of a kind or sector that the registry does not know a card is not as its schema has it."""
    nothing = deployment_card(replace(dataset, about=About()), DEPLOYMENT)
    assert card_problems(nothing) == ["'data_curator_type' is a required property"]
    assert nothing["deployment"]["implementation"]["additional_information"].endswith(
        "handed in: [published.about] publisher; [published.about] intended_use; [published.about] region;"
        " [published.about] curator_type (Government, Industry, Nonprofit)."
    )
    card = deployment_card(replace(dataset, about=DESCRIBED.changed(sector="Transport")), DEPLOYMENT)
    assert len(card_problems(card)) == 1
    assert "or ask the registry to add yours" in str(card)


def test_no_loss_is_understated_and_terms_of_days_come_newest_first(dataset):
    """Of each guarantee that days keep and of what the newest plan costs the largest, rounded up."""
    now = replace(DEPLOYMENT, guarantees=DEPLOYMENT.guarantees[1:])
    cases = [(dataset.statement, DEPLOYMENT, 2.0), (dataset.statement, now, 1.0), (None, now, 0.3334)]
    for statement, deployment, epsilon in cases:
        card = deployment_card(replace(dataset, statement=statement), deployment)["deployment"]
        assert card["privacy_loss"]["privacy_parameters"]["epsilon"] == epsilon
    card = deployment_card(dataset, DEPLOYMENT)["deployment"]
    said = card["privacy_loss"]["privacy_parameters_details"]
    assert said.index("(2 day(s)): less") < said.index("(1 day(s)): epsilon at most 5")
    assert "For days to come: epsilon at most 0.3334 " in said
    unit = "One customer's readings in any 48 consecutive steps of 30 minutes"
    assert card["privacy_loss"]["privacy_unit"] == unit
    assert "whether a customer has readings" in card["dp_variant"]["unprotected_quantities"]
    lost = DESCRIBED.changed(known_noise=(("gas", "2016-02-01"), ("load", "2016-02-03")))
    card = deployment_card(replace(dataset, about=lost), DEPLOYMENT)
    assert card_problems(card) == []
    loss = card["deployment"]["privacy_loss"]
    assert "privacy_parameters" not in loss, "no number holds for every window"
    known = "The noise of 2 release(s) of this privacy budget became known (gas 2016-02-01, "
    assert loss["privacy_parameters_details"].startswith(known)


# What a publisher says about the folder.

PLACES = {
    "84": NodeFacts(name="Auvergne-Rhône-Alpes", latitude=45.5, longitude=4.5),
    "FR": NodeFacts(latitude=46.0, longitude=2.0),
}
PLACED = DESCRIBED.changed(nodes=PLACES)


def test_what_was_written_is_read_and_the_same_facts_give_the_same_bytes():
    described = PLACED.changed(known_noise=(("gas", "2016-02-01"),))
    schema = json_schema(About, "optstream.about/1", "title")
    Draft202012Validator(schema).validate(json.loads(described.to_bytes()))
    assert parse_about(described.to_bytes()) == described
    assert PLACED.changed(nodes=dict(reversed(PLACES.items()))).to_bytes() == PLACED.to_bytes()


@pytest.mark.parametrize(
    "rest",
    [
        '"nodes": []',
        '"nodes": {"84": {"name": "a\u202eb"}}',
        '"nodes": {"84": {"name": ""}}',
        '"nodes": {"84": {"latitude": 4}}',
        '"nodes": {"84": {"latitude": NaN, "longitude": 4}}',
        '"nodes": {"84": {"latitude": "4", "longitude": "4"}}',
        f'"nodes": {{"84": {{"latitude": 1{"0" * 400}, "longitude": 4}}}}',
        '"nodes": {"84": "a name"}',
        '"nodes": {}, "licence": "a\\nb"',
    ],
)
def test_what_somebody_else_wrote_is_refused(rest):
    with pytest.raises(PublicationError, match=r"about\.json is not of format"):
        parse_about(f'{{"format": "optstream.about/1", "stream": "load", {rest}}}'.encode())


def test_it_is_put_once_and_is_no_finding(published):
    put(published.name, DAY)
    assert not put_about(published.name, About())
    assert ABOUT not in published.files()
    assert put_about(published.name, PLACED)
    assert parse_about(published.read(ABOUT)) == PLACED
    assert not put_about(published.name, PLACED)
    assert check_files(published.name) == []
    published.write(ABOUT, b"{}")
    assert [line for line in check_files(published.name) if ABOUT in line]
    assert put_about(published.name, About()), "facts no longer stated are removed"
    assert parse_about(published.read(ABOUT)) == About()
