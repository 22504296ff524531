"""Published files: exported in each format, signed and verified."""

import json
import stat
from datetime import UTC, date, datetime

import polars as pl
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from typer.testing import CliRunner

from flows.cli import read as export_rows
from flows.cli.read import app
from optstream.catalogue import publish, read_published, stage
from optstream.catalogue.about import About, NodeFacts, put_about, put_hierarchy
from optstream.catalogue.signing import Signer, public_pem
from optstream.errors import ConfigurationError, PublicationError
from optstream.stream import DatedHierarchy, TreeChange
from tests.flows.command import invoke
from tests.optstream.catalogue.conftest import make_rows, make_statement
from tests.tasks.two_regions import CONFIGURATION, Installation

DAY = date(2016, 2, 1)
KEY = Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32)
TOLD = About(
    stream="../french load",
    publisher="Example Grid",
    licence="CC BY 4.0",
    licence_address="https://creativecommons.org/licenses/by/4.0/",
)


@pytest.fixture
def folder(tmp_path):
    """One published day, signed."""
    statement, signer = make_statement(DAY), Signer(KEY, lambda _entries: None)
    release = (stage(make_rows(DAY), statement), statement)
    publish(tmp_path / "published", [release], lambda _: "h1", signer)
    put_about(tmp_path / "published", TOLD, signer)
    return tmp_path / "published"


@pytest.fixture
def call(folder):
    return lambda *words: CliRunner().invoke(app, ["export", str(folder), *map(str, words)])


def test_names_stand_beside_codes_where_the_publisher_tells_them(folder, call, tmp_path):
    told = About(stream="../french load", nodes={"84": NodeFacts(name="Auvergne")})
    put_about(folder, told, Signer(KEY, lambda _entries: None))
    for words in ((), ("--daily",)):
        output = tmp_path / f"named{len(words)}"
        assert call("--output", f"{output}.parquet", "--as", "parquet", *words).exit_code == 0
        assert call("--output", f"{output}.csv", *words).exit_code == 0
        rows = pl.read_parquet(f"{output}.parquet")
        assert dict(rows.select("node", "name").unique().iter_rows()) == {
            "84": "Auvergne",
            "FR": None,
            "Île & ../x": None,
        }
        assert rows.columns.index("name") == rows.columns.index("node") + 1
        assert (tmp_path / f"named{len(words)}.csv").read_text().splitlines()[0].split(",") == rows.columns


@pytest.mark.parametrize("listed", ['"Loire, Pays",FR', 'FR, "Loire, Pays"'])
def test_a_name_with_a_comma_stands_in_quotes(tmp_path, listed):
    """The configuration takes such names."""
    rows = make_rows(DAY).with_columns(pl.col("node", "parent").replace("84", "Loire, Pays"))
    folder, output = tmp_path / "commas", tmp_path / "rows.parquet"
    statement = make_statement(DAY)
    publish(folder, [(stage(rows, statement), statement)], lambda _: "h1")
    words = ["export", str(folder), "--output", str(output), "--as", "parquet", "--nodes"]
    assert "has a node 'Loire'" in str(CliRunner().invoke(app, [*words, "FR,Loire"]).exception)
    assert CliRunner().invoke(app, [*words, listed]).exit_code == 0
    assert {*pl.read_parquet(output)["node"]} == {"FR", "Loire, Pays"}


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
    both = call("--output", f"{output}-sums.csv", "--daily", "--weekly")
    assert both.exit_code == 2
    assert "different files" in both.output


def test_no_csv_is_written_under_a_name_of_parquet(call, tmp_path):
    output = tmp_path / "rows.parquet"
    assert call("--output", output).exit_code == 2
    assert not output.exists()


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


DAYS = [date(2016, 6, 1), date(2016, 6, 2)]
ARMOUR = "-----BEGIN PUBLIC KEY-----"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "optstream.toml").write_text(CONFIGURATION)
    installation = Installation(tmp_path, datetime(2016, 7, 1, tzinfo=UTC))
    installation.simulate(*DAYS)
    return installation


@pytest.mark.slow
def test_a_key_is_made_named_and_used(here):
    said = invoke("keys", "new")
    assert said.exit_code == 0
    key = here.folder / "trusted/signing.pem"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert ARMOUR in said.output
    assert "PRIVATE" not in said.output
    assert key.read_text().splitlines()[1] not in said.output
    line = said.output.splitlines()[-1].rpartition(": ")[2]
    assert line == f'signing_key = "{key}"'
    here.configure('value = "load_mw"\n[trusted]', f'value = "load_mw"\n{line}\n[trusted]')
    with pytest.raises(ConfigurationError, match="is there already, and no key is overwritten"):
        invoke("keys", "new")
    here.release(*DAYS)
    found = invoke("verify-published", "published", "--public-key", "trusted/signing.pub")
    assert (found.exit_code, found.output) == (
        0,
        "nothing is wrong: 2 days up to 2016-06-02, catalogue number 1, hashes and signature compared\n",
    )


@pytest.mark.slow
def test_without_a_key_hashes_are_compared_and_with_one_unsigned_is_a_problem(here):
    here.release(*DAYS)
    invoke("keys", "new")
    assert invoke("verify-published", "published").output == (
        "nothing is wrong: 2 days up to 2016-06-02, catalogue unnumbered, hashes compared\n"
    )
    found = invoke("verify-published", "published", "--public-key", "trusted/signing.pub", "--json")
    assert found.exit_code == 1
    document = json.loads(found.output)
    assert (document["format"], document["days"], document["signature_checked"]) == (
        "optstream.verified/1",
        2,
        True,
    )
    assert "catalogue.json is not signed by key" in document["problems"][0]
