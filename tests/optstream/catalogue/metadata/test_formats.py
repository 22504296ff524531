"""Each description passes the validator of its own format, and that tool loads the published rows by it."""

import json
from datetime import date, timedelta

import pytest

from optstream.catalogue import publish, read_published, stage
from optstream.catalogue.about import About
from optstream.catalogue.backends import open_storage
from optstream.catalogue.metadata.croissant import croissant
from optstream.catalogue.metadata.data_package import data_package
from optstream.catalogue.metadata.dataset import Dataset, read_dataset
from optstream.catalogue.metadata.write_metadata import put_metadata
from tests.optstream.catalogue.conftest import make_rows, make_statement

DAY = date(2016, 2, 1)
NEXT = DAY + timedelta(days=1)
TOLD = About(
    "Example Grid",
    "CC BY 4.0",
    title="French load",
    description="Load of an example grid.",
    contact="data@example.org",
    address="https://example.org/load/",
    licence_address="https://creativecommons.org/licenses/by/4.0/",
)


@pytest.fixture
def folder(tmp_path):
    """Two published days and their descriptions."""
    for day in (DAY, NEXT):
        statement = make_statement(day)
        publish(tmp_path / "published", [(stage(make_rows(day), statement), statement)], lambda _: "h1")
    put_metadata(tmp_path / "published", TOLD)
    return tmp_path / "published"


@pytest.fixture(params=[TOLD, About()], ids=["told", "untold"])
def dataset(request, folder):
    """The folder of a publisher that tells all, and of one that tells nothing."""
    return read_dataset(open_storage(folder), request.param)


def bare(dataset):
    """The same folder after every day was withdrawn."""
    from dataclasses import replace

    entries = tuple(replace(entry, withdrawn=True) for entry in dataset.catalogue.entries)
    return Dataset(replace(dataset.catalogue, entries=entries), dataset.about, None)


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
