"""`optstream export`: a file in each format, none is overwritten, and others' tools take them."""

import json
import warnings
from datetime import date

import polars as pl
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from typer.testing import CliRunner

from flows.cli import read as export_rows
from flows.cli.read import app
from optstream.catalogue import publish, read_published, stage
from optstream.catalogue.about import About, put_about
from optstream.catalogue.hierarchy_table import put_hierarchy
from optstream.catalogue.signing import Signer, public_pem
from optstream.errors import PublicationError
from optstream.stream import DatedHierarchy, TreeChange
from tests.optstream.catalogue.conftest import make_rows, make_statement

DAY = date(2016, 2, 1)
KEY = Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32)
TOLD = About("Example Grid", "CC BY 4.0", licence_address="https://creativecommons.org/licenses/by/4.0/")


@pytest.fixture
def folder(tmp_path):
    """One published day, signed."""
    statement, signer = make_statement(DAY), Signer(KEY, lambda _entries: None)
    release = (stage(make_rows(DAY), statement), statement)
    publish(tmp_path / "published", [release], lambda _: "h1", signer)
    put_about(tmp_path / "published", "../french load", TOLD, signer)
    return tmp_path / "published"


@pytest.fixture
def call(folder):
    return lambda *words: CliRunner().invoke(app, ["export", str(folder), *map(str, words)])


def test_files_hold_what_is_published_and_none_is_overwritten(folder, call, tmp_path):
    output = tmp_path / "rows"
    assert call("--output", f"{output}.parquet", "--as", "parquet").exit_code == 0
    assert pl.read_parquet(f"{output}.parquet").equals(read_published(folder))
    again = call("--output", f"{output}.parquet", "--as", "parquet")
    assert again.exit_code == 2
    assert "is there already" in again.output
    assert call("--output", f"{output}.csv", "--nodes", "84,FR", "--from", DAY, "--daily").exit_code == 0
    assert (
        (tmp_path / "rows.csv")
        .read_text()
        .splitlines()[1]
        .startswith("2016-02-01,2016-02-01,84,FR,1,1,4,64.0,16.0,")
    )
    (tmp_path / "rows.csv").unlink()
    both = call("--output", f"{output}-sums.csv", "--daily", "--weekly")
    assert both.exit_code == 2
    assert "different files" in both.output
    assert call("--output", f"{output}.csv").exit_code == 2, "its metadata is there still"
    assert not (tmp_path / "rows.csv").exists()


def csvw_problems(file):
    from csvw import CSVW

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        found = CSVW(str(file), validate=True)
        try:
            return [] if found.is_valid else [str(one.message) for one in found.warnings] or ["invalid"]
        except ValueError as error:  # a key that is there twice
            return [str(error)]


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("--daily",)], ids=["steps", "days"])
def test_a_csv_file_and_its_metadata_are_csv_on_the_web(call, tmp_path, words):
    file = tmp_path / "rows.csv"
    assert call("--output", file, *words).exit_code == 0
    described = json.loads((tmp_path / "rows.csv-metadata.json").read_text())
    names = [column["name"] for column in described["tableSchema"]["columns"]]
    assert names == file.read_text().splitlines()[0].split(",")
    assert described["dc:license"]["schema:name"] == "CC BY 4.0"
    assert csvw_problems(file) == []
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines, lines[-1]]))
    assert csvw_problems(file), "control: a row twice, against the key"
    file.write_text("\n".join(lines).replace(str(DAY), "yesterday", 1))
    assert csvw_problems(file), "control: a value that is no date"


def structure(measured):
    """The data structure that docs/data/published.md tells of, for a reader that demands one."""
    from sdmx.model import v30

    attributes = ("NOISE_SE", "MODEL_SE", "REVISION", "VINTAGE")
    return v30.DataStructureDefinition(
        id=measured,
        dimensions=v30.DimensionDescriptor(
            components=[v30.Dimension(id="NODE"), v30.TimeDimension(id="TIME_PERIOD")]
        ),
        measures=v30.MeasureDescriptor(components=[v30.Measure(id="OBS_VALUE")]),
        attributes=v30.AttributeDescriptor(components=[v30.DataAttribute(id=one) for one in attributes]),
    )


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("--daily",)], ids=["steps", "days"])
def test_sdmx_csv_is_read_by_its_structure(folder, call, tmp_path, words, caplog):
    """The reader warns of each part of the structure that no column is."""
    import sdmx

    file = tmp_path / "rows.csv"
    assert call("--output", file, "--as", "sdmx-csv", *words).exit_code == 0
    message = sdmx.read_sdmx(file, structure=structure("LOAD_MW"))
    (data,) = message.data
    rows = read_published(folder).drop_nulls("timestamp")
    expected = rows.n_unique(["date", "node"]) if words else rows.height
    assert len(data.obs) == expected
    assert caplog.messages == []
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0].replace("NODE", "PLACE"), *lines[1:]]))
    sdmx.read_sdmx(file, structure=structure("LOAD_MW"))
    assert caplog.messages == ["No column detected for <Dimension NODE>"], "control"


def test_with_a_key_all_that_is_told_is_signed_and_the_catalogue_is_read_once(
    folder, call, tmp_path, monkeypatch
):
    reads = []
    look = export_rows.catalogue_reader
    monkeypatch.setattr(export_rows, "catalogue_reader", lambda *given: reads.append(given) or look(*given))
    key = tmp_path / "publisher.pub"
    key.write_text(public_pem(KEY.public_key()))
    assert call("--output", tmp_path / "a.csv", "--daily", "--public-key", key).exit_code == 0
    assert len(reads) == 1
    told = folder / "about.json"
    told.write_text(told.read_text().replace("Example Grid", "Somebody else"))
    forged = call("--output", tmp_path / "b.csv", "--public-key", key)
    assert isinstance(forged.exception, PublicationError)
    assert not (tmp_path / "b.csv").exists()


def test_rows_are_written_in_the_hierarchy_of_another_day(tmp_path):
    """A unit that was renamed: its days before, too, have the name of the day that is asked for."""
    after = date(2016, 2, 2)
    oldest = (("FR", None), ("84", "FR"), ("Île & ../x", "FR"))
    hierarchy = DatedHierarchy(oldest, (TreeChange(after, renamed={"84": "ARA"}),))
    folder = tmp_path / "published"
    statement = make_statement(DAY)
    publish(folder, [(stage(make_rows(DAY), statement), statement)], lambda _: "h1")
    put_hierarchy(folder, hierarchy, lambda _: None, None)
    for words, name in (((), "84"), (("--as-of", after), "ARA")):
        output = tmp_path / f"{name}.parquet"
        call = ["--output", output, "--as", "parquet", "--nodes", name, *words]
        assert CliRunner().invoke(app, ["export", str(folder), *map(str, call)]).exit_code == 0
    values = [pl.read_parquet(tmp_path / f"{name}.parquet")["load_mw"].to_list() for name in ("84", "ARA")]
    assert values[0] == values[1]
    missing = CliRunner().invoke(
        app, ["export", str(folder), "--output", str(tmp_path / "x"), "--nodes", "ARA"]
    )
    assert "has a node 'ARA'" in str(missing.exception)
