"""Times of rows, and what a publisher says about the folder."""

import json
import os
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jsonschema import Draft202012Validator

from optstream.catalogue import check_files, digest_of, publish, read_catalogue, replace_page, stage, withdraw
from optstream.catalogue.about import About, NodeFacts, parse_about, put_about
from optstream.catalogue.documents import json_schema
from optstream.catalogue.index import catalogue_time
from optstream.catalogue.layout import ABOUT
from optstream.catalogue.metadata import MARKER
from optstream.catalogue.signing import Signer
from optstream.errors import PublicationError
from tests.optstream.catalogue.folders import DAY, take_back

MIDNIGHT = datetime(2016, 2, 2, tzinfo=UTC)


def all_times(folder):
    """The modification time of everything, also of what only a copy of the whole folder carries along."""
    return {
        path.relative_to(folder).as_posix(): datetime.fromtimestamp(path.stat().st_mtime, UTC)
        for path in [folder, *folder.rglob("*")]
    }


def times(folder):
    """The modification time of everything that readers list."""
    own = (".lock", ".incoming")
    return {name: time for name, time in all_times(folder).items() if not name.startswith(own)}


def test_times_say_what_was_published_not_when(tmp_path, put):
    entry = put(tmp_path, DAY, revision=0, vintage=0).entry
    listed = MIDNIGHT + timedelta(seconds=1)
    assert times(tmp_path) == {
        entry.file: MIDNIGHT,
        entry.manifest: MIDNIGHT,
        **dict.fromkeys((".", "catalogue.json", "data", f"data/date={DAY}", "manifests"), listed),
    }


def test_the_catalogue_s_time_rises_with_every_change_for_caches(tmp_path, put):
    seen = [datetime.min.replace(tzinfo=UTC)]
    for period, revision, vintage in [
        (DAY, 0, 0),
        (DAY, 0, 1),
        (DAY - timedelta(days=30), 0, 0),
        (DAY, 1, 1),
        (DAY + timedelta(days=1), 0, 0),
    ]:
        put(tmp_path, period, revision=revision, vintage=vintage)
        seen.append(times(tmp_path)["catalogue.json"])
        assert seen[-1] == catalogue_time(read_catalogue(tmp_path))
    assert seen == sorted(set(seen))


def test_publishing_again_after_a_crash_settles_the_times(tmp_path, put):
    put(tmp_path, DAY)
    before = times(tmp_path)
    for path in tmp_path.rglob("*"):
        os.utime(path)
    assert times(tmp_path) != before
    put(tmp_path, DAY)
    assert times(tmp_path) == before


@pytest.mark.parametrize("name", ["catalogue.json", "."])
def test_what_another_owner_made_keeps_its_time_and_stops_nothing(tmp_path, put, monkeypatch, name):
    real = os.utime

    def refuse(path, times=None, **rest):
        told = "." if isinstance(path, int) else path
        if told == name:
            raise PermissionError(1, "Operation not permitted")
        real(path, times, **rest)

    monkeypatch.setattr("os.utime", refuse)
    entry = put(tmp_path, DAY).entry
    assert times(tmp_path)[entry.file] == MIDNIGHT


def test_nothing_in_the_folder_has_a_time_of_a_run_after_a_revision_a_page_or_a_withdrawal(tmp_path, put):
    """A copy of the folder carries all of it along, also lock, half-written files and superseded ones."""

    def fresh():
        return {name for name, time in all_times(tmp_path).items() if time.year > DAY.year}

    put(tmp_path, DAY, revision=0, vintage=0)
    assert fresh() == set()
    put(tmp_path, DAY, revision=0, vintage=1)
    put(tmp_path, DAY, revision=1, vintage=0)
    assert any(path.is_file() for path in (tmp_path / "superseded").rglob("*"))
    assert fresh() == set()
    replace_page(
        tmp_path, lambda _place, made: f'<meta name="{MARKER}" content="{digest_of(made)}">'.encode()
    )
    assert fresh() == set()
    put(tmp_path, DAY + timedelta(days=1))
    take_back(tmp_path)
    assert fresh() == set()


def test_signatures_have_no_time_of_a_run(tmp_path, rows, statement):
    """A signature is written in the moment of its publication, which a draw's duration moves."""
    signer = Signer(Ed25519PrivateKey.from_private_bytes(bytes(32)), lambda _entries: None)

    def fresh():
        return {name for name, time in all_times(tmp_path).items() if time.year > DAY.year}

    def sign(period):
        stated = statement(period)
        publish(tmp_path, [(stage(rows(period), stated), stated)], lambda _: "h1", signer)

    sign(DAY)
    assert any((tmp_path / "signatures").iterdir())
    assert fresh() == set()
    sign(DAY + timedelta(days=1))
    assert fresh() == set()
    stream = read_catalogue(tmp_path).stream
    withdraw(tmp_path, DAY, lambda _entry, _known: "h2", stream=stream, signer=signer)
    assert fresh() == set()
    # of a manifest whose signature was written just before a crash, publishing again sets the time
    for path in (tmp_path / "signatures").iterdir():
        os.utime(path)
    before = fresh()
    sign(DAY + timedelta(days=1))
    assert fresh() < before


NODES = {
    "84": NodeFacts(name="Auvergne-Rhône-Alpes", latitude=45.5, longitude=4.5),
    "FR": NodeFacts(latitude=46.0, longitude=2.0),
}
FACTS = {"stream": "load", "publisher": "Example Grid", "licence": "CC BY 4.0"}
TOLD = About(**FACTS, nodes=NODES)
NOTHING = About(stream="load")


def test_what_an_earlier_version_wrote_is_read():
    nodes = '"nodes": {"84": {"name": "Auvergne", "area": [[[4, 45], [5, 45], [5, 46]]]}}'
    data = f'{{"format": "optstream.about/1", "stream": "load", {nodes}}}'.encode()
    assert parse_about(data).nodes == {"84": NodeFacts(name="Auvergne")}


def test_what_was_written_is_read_and_the_same_facts_give_the_same_bytes():
    told = TOLD.changed(known_noise=(("gas", "2016-02-01"),))
    schema = json_schema(About, "optstream.about/1", "title", "description")
    Draft202012Validator(schema).validate(json.loads(told.to_bytes()))
    assert parse_about(told.to_bytes()) == told
    data = TOLD.to_bytes()
    assert parse_about(data) == TOLD
    assert About(**FACTS, nodes=dict(reversed(NODES.items()))).to_bytes() == data


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


def test_it_is_put_once_and_is_no_finding(published, put):
    put(published.name, DAY)
    assert not put_about(published.name, NOTHING)
    assert ABOUT not in published.files()
    assert put_about(published.name, TOLD)
    assert parse_about(published.read(ABOUT)) == TOLD
    assert not put_about(published.name, TOLD)
    assert check_files(published.name) == []
    published.write(ABOUT, b"{}")
    assert [line for line in check_files(published.name) if ABOUT in line]
    assert put_about(published.name, NOTHING), "what is no longer told goes"
    assert parse_about(published.read(ABOUT)) == NOTHING
