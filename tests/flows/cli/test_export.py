"""Published files: exported in each format, signed and verified."""

import json
from datetime import date

import polars as pl
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from typer.testing import CliRunner

from flows.cli.read import app
from optstream.catalogue import publish, read_published, stage
from optstream.catalogue.about import About, NodeFacts, put_about, put_hierarchy
from optstream.catalogue.signing import Signer, public_pem
from optstream.errors import PublicationError
from optstream.stream import DatedHierarchy, TreeChange
from tests.flows.command import invoke
from tests.optstream.catalogue.conftest import make_rows, make_statement

DAY = date(2016, 2, 1)
KEY = Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32)
SIGNER = Signer(KEY, lambda _entries: None)
ABOUT = About(stream="../french load", publisher="Example Grid", licence="CC BY 4.0")
DAYS = [date(2016, 6, 1), date(2016, 6, 2)]
VERIFIED = "nothing is wrong: 2 days up to 2016-06-02, catalogue {}\n"
AGAINST = ("verify-published", "published", "--public-key", "trusted/signing.pub")


def published(folder, rows, signer=None):
    publish(folder, [stage(rows, make_statement(DAY))], lambda _: "h1", signer)
    return folder


@pytest.fixture
def folder(tmp_path):
    folder = published(tmp_path / "published", make_rows(DAY), SIGNER)
    put_about(folder, ABOUT, SIGNER)
    return folder


def export(folder, output, *words):
    is_parquet = output.suffix == ".parquet" and "--as" not in words
    given = [*words, *(("--as", "parquet") if is_parquet else ())]
    return CliRunner().invoke(app, ["export", str(folder), "--output", str(output), *map(str, given)])


def test_names_stand_next_to_codes_where_the_publisher_gives_them(folder, tmp_path):
    put_about(folder, About(stream="../french load", nodes={"84": NodeFacts(name="Auvergne")}), SIGNER)
    for words in ((), ("--daily",)):
        output = tmp_path / f"named{len(words)}"
        for kind in (".parquet", ".csv"):
            assert export(folder, output.with_suffix(kind), *words).exit_code == 0
        rows = pl.read_parquet(output.with_suffix(".parquet"))
        names = {"84": "Auvergne", "FR": None, "Île & ../x": None}
        assert dict(rows.select("node", "name").unique().iter_rows()) == names
        assert rows.columns.index("name") == rows.columns.index("node") + 1
        assert output.with_suffix(".csv").read_text().splitlines()[0].split(",") == rows.columns


@pytest.mark.parametrize("listed", ['"Loire, Pays",FR', 'FR, "Loire, Pays"'])
def test_a_name_with_a_comma_stands_in_quotes(tmp_path, listed):
    rows = make_rows(DAY).with_columns(pl.col("node", "parent").replace("84", "Loire, Pays"))
    folder, output = published(tmp_path / "commas", rows), tmp_path / "rows.parquet"
    assert "has a node 'Loire'" in str(export(folder, output, "--nodes", "FR,Loire").exception)
    assert export(folder, output, "--nodes", listed).exit_code == 0
    assert {*pl.read_parquet(output)["node"]} == {"FR", "Loire, Pays"}


def test_files_hold_what_is_published_and_none_is_overwritten(folder, tmp_path):
    output, sums = tmp_path / "rows.parquet", tmp_path / "sums.csv"
    assert export(folder, output).exit_code == 0
    assert pl.read_parquet(output).equals(read_published(folder))
    assert export(folder, sums, "--nodes", "84,FR", "--from", DAY, "--daily").exit_code == 0
    (_, first, *_) = sums.read_text().splitlines()
    assert first.startswith("2016-02-01,2016-02-01,84,FR,1,1,4,64.0,16.0,")
    before = {path: path.read_bytes() for path in tmp_path.glob("*.*")}
    for refused, words in (
        (export(folder, output), "is there already"),
        (export(folder, tmp_path / "both.csv", "--daily", "--weekly"), "different files"),
        (export(folder, tmp_path / "as.parquet", "--as", "csv"), "add --as parquet"),
    ):
        assert refused.exit_code == 2
        assert words in " ".join(refused.output.split())
    assert {path: path.read_bytes() for path in tmp_path.glob("*.*")} == before


def test_with_a_key_every_file_is_verified(folder, tmp_path):
    key = tmp_path / "publisher.pub"
    key.write_text(public_pem(KEY.public_key()))
    assert export(folder, tmp_path / "a.csv", "--daily", "--public-key", key).exit_code == 0
    about = folder / "about.json"
    about.write_text(about.read_text().replace("Example Grid", "Somebody else"))
    assert isinstance(export(folder, tmp_path / "b.csv", "--public-key", key).exception, PublicationError)
    assert not (tmp_path / "b.csv").exists()


def test_rows_are_written_in_the_hierarchy_of_another_day(tmp_path):
    """A unit that was renamed: its days before, too, have the name of the day that is asked for."""
    after = date(2016, 2, 2)
    oldest = (("FR", None), ("84", "FR"), ("Île & ../x", "FR"))
    hierarchy = DatedHierarchy(oldest, (TreeChange(after, renamed={"84": "ARA"}),))
    folder = published(tmp_path / "published", make_rows(DAY))
    put_hierarchy(folder, hierarchy, lambda _: None, None)
    values = []
    for words, name in (((), "84"), (("--as-of", after), "ARA")):
        output = tmp_path / f"{name}.parquet"
        assert export(folder, output, "--nodes", name, *words).exit_code == 0
        values.append(pl.read_parquet(output)["load_mw"].to_list())
    assert values[0] == values[1]
    assert "has a node 'ARA'" in str(export(folder, tmp_path / "x", "--nodes", "ARA").exception)


@pytest.mark.slow
def test_a_key_is_made_named_and_used(installation):
    installation.simulate(*DAYS)
    installation.release(DAYS[0])
    shown = invoke("keys", "new")
    assert shown.exit_code == 0
    key = installation.folder / "trusted/signing.pem"
    assert "-----BEGIN PUBLIC KEY-----" in shown.output
    assert "PRIVATE" not in shown.output
    assert key.read_text().splitlines()[1] not in shown.output
    assert "catalogue.json is not signed by key" in invoke(*AGAINST).output.replace("\n", " ")
    found = invoke(*AGAINST, "--json")
    document = json.loads(found.output)
    assert (found.exit_code, document["days"], document["signature_checked"]) == (1, 1, True)
    assert "catalogue.json is not signed by key" in document["problems"][0]
    line = shown.output.splitlines()[-1].rpartition(": ")[2]
    assert line == f'signing_key = "{key}"'
    installation.configure('value = "load_mw"\n[trusted]', f'value = "load_mw"\n{line}\n[trusted]')
    installation.release(DAYS[1])
    found = invoke(*AGAINST)
    assert (found.exit_code, found.output) == (0, VERIFIED.format("number 1, hashes and signature compared"))
    assert invoke(*AGAINST[:2]).output.startswith("nothing is wrong: 2 days")
