"""Each description passes the validator of its own format, and that tool loads the published rows by it."""

import hashlib
import json
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from optstream.catalogue import publish, read_published, stage
from optstream.catalogue.about import About, put_hierarchy
from optstream.catalogue.backends import open_storage
from optstream.catalogue.metadata import Dataset, croissant, data_package, put_metadata, read_dataset
from optstream.catalogue.replicates import Replicates, encode_replicates
from optstream.catalogue.statement import StatedErrors
from optstream.stream import DatedHierarchy, TreeChange
from tests.optstream.catalogue.conftest import NODES, make_rows, make_statement
from tests.optstream.catalogue.folders import DAY, NEXT

TOLD = About(
    publisher="Example Grid",
    licence="CC BY 4.0",
    title="French load",
    description="Load of an example grid.",
    contact="data@example.org",
    address="https://example.org/load/",
    licence_address="https://creativecommons.org/licenses/by/4.0/",
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
        staged = replace(stage(make_rows(day), statement), beside={digest: data})
        publish(published, [(staged, statement)], lambda _: "h1")
    parents = tuple((node, parent) for node, (parent, _) in NODES.items())
    change = TreeChange(NEXT + timedelta(days=1), {"84": "85"})
    put_hierarchy(published, DatedHierarchy(parents, (change,)), lambda _: None)
    put_metadata(published, TOLD)
    return published


@pytest.fixture(params=[TOLD, About()], ids=["told", "untold"])
def dataset(request, folder):
    """The folder of a publisher that tells all, and of one that tells nothing."""
    return read_dataset(open_storage(folder), request.param)


def bare(dataset):
    """The same folder after every day was withdrawn."""
    entries = tuple(entry.changed(withdrawn=True) for entry in dataset.catalogue.entries)
    return Dataset(dataset.catalogue.changed(periods=entries), dataset.about, None)


def problems_of_a_package(document):
    from frictionless import Package

    report = Package.validate_descriptor(json.loads(json.dumps(document)))
    return [error.message for error in report.errors] + [
        error.message for task in report.tasks for error in task.errors if "scheme" not in error.message
    ]


@pytest.mark.slow
def test_the_data_package_is_valid(dataset):
    assert problems_of_a_package(data_package(dataset)) == []
    assert problems_of_a_package(data_package(bare(dataset))) == []
    broken = data_package(dataset)
    broken["resources"][0]["schema"]["fields"][0]["type"] = "whole"
    assert problems_of_a_package(broken), "control: a field's type that the format does not know"


@pytest.mark.slow
def test_the_files_are_valid_by_the_data_package_too(folder):
    """Of errors most numbers of steps are absent."""
    from frictionless import validate

    report = validate(str(folder / "datapackage.json"))
    assert {task.name for task in report.tasks} == {"releases", "errors", "hierarchy", "catalogue"}
    assert [error.message for task in report.tasks for error in task.errors] == []
    assert report.errors == []


def problems_of_a_croissant(document):
    import mlcroissant

    try:
        found = mlcroissant.Dataset(json.loads(json.dumps(document)))
    except mlcroissant.ValidationError as error:
        return [str(error)]
    return list(found.metadata.ctx.issues.errors)


@pytest.mark.slow
def test_the_croissant_is_valid(dataset):
    assert problems_of_a_croissant(croissant(dataset)) == []
    assert problems_of_a_croissant(croissant(bare(dataset))) == []
    broken = croissant(dataset)
    broken["recordSet"][0]["field"][1]["source"]["fileSet"] = {"@id": "others"}
    assert problems_of_a_croissant(broken), "control: a field of files that are not there"


@pytest.mark.slow
def test_croissant_loads_the_rows(folder):
    import mlcroissant

    rows = mlcroissant.Dataset(folder / "croissant.json").records("releases")
    loaded = {
        (str(row["releases/date"])[:10], row["releases/step"], row["releases/node"].decode()): row[
            "releases/load_mw"
        ]
        for row in rows
    }
    published = read_published(folder)
    columns = published["date"].cast(str), published["step"], published["node"]
    assert loaded == dict(zip(zip(*columns, strict=True), published["load_mw"], strict=True))
