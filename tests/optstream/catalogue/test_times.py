"""Times of rows, and what a publisher says about the folder."""

import json
import os
from datetime import UTC, datetime, timedelta

import pytest
from jsonschema import Draft202012Validator

from optstream.catalogue import check_files, read_catalogue, replace_page
from optstream.catalogue.about import About, NodeFacts, parse_about, put_about
from optstream.catalogue.documents import json_schema
from optstream.catalogue.index import catalogue_time
from optstream.catalogue.layout import ABOUT, signature_file
from optstream.errors import PublicationError
from tests.optstream.catalogue.conftest import put
from tests.optstream.catalogue.folders import DAY, NEXT, SIGNER, make_page, take_back

MIDNIGHT = datetime(2016, 2, 2, tzinfo=UTC)


def times(folder):
    """The modification time of everything, also of what only a copy of the whole folder carries along."""
    return {
        path.relative_to(folder).as_posix(): datetime.fromtimestamp(path.stat().st_mtime, UTC)
        for path in [folder, *folder.rglob("*")]
    }


def of_a_run(folder):
    """What has the time of this run."""
    return {name for name, time in times(folder).items() if time.year > DAY.year}


def test_the_catalogue_s_time_rises_with_every_change_for_caches(tmp_path):
    seen = [datetime.min.replace(tzinfo=UTC)]
    for period, revision, vintage in [
        (DAY, 0, 0),
        (DAY, 0, 1),
        (DAY - timedelta(days=30), 0, 0),
        (DAY, 1, 1),
        (NEXT, 0, 0),
    ]:
        put(tmp_path, period, revision=revision, vintage=vintage)
        seen.append(times(tmp_path)["catalogue.json"])
        assert seen[-1] == catalogue_time(read_catalogue(tmp_path))
    assert seen == sorted(set(seen))


@pytest.mark.parametrize("name", ["catalogue.json", "."])
def test_what_another_owner_made_keeps_its_time_and_stops_nothing(tmp_path, monkeypatch, name):
    real = os.utime

    def refuse(path, times=None, **rest):
        if name == ("." if isinstance(path, int) else path):
            raise PermissionError(1, "Operation not permitted")
        real(path, times, **rest)

    monkeypatch.setattr("os.utime", refuse)
    entry = put(tmp_path, DAY).entry
    assert times(tmp_path)[entry.file] == MIDNIGHT


@pytest.mark.parametrize("signer", [None, SIGNER], ids=["unsigned", "signed"])
def test_nothing_in_the_folder_has_the_time_of_a_run(tmp_path, signer):
    """A copy carries all of it along, also lock, half-written files, superseded ones and signatures."""
    for work in (
        lambda: put(tmp_path, DAY, revision=0, vintage=0, signer=signer),
        lambda: put(tmp_path, DAY, revision=0, vintage=1, signer=signer),
        lambda: put(tmp_path, DAY, revision=1, vintage=0, signer=signer),
        lambda: replace_page(tmp_path, make_page),
        lambda: put(tmp_path, NEXT, signer=signer),
        lambda: take_back(tmp_path, signer=signer),
    ):
        work()
        assert of_a_run(tmp_path) == set()
    if signer:
        # of a file whose signature was written just before a crash, putting it again sets the time
        put_about(tmp_path, DESCRIBED, signer)
        (tmp_path / signature_file(DESCRIBED.to_bytes(), signer.name)).touch()
        before = of_a_run(tmp_path)
        put_about(tmp_path, DESCRIBED, signer)
        assert of_a_run(tmp_path) < before


NODES = {
    "84": NodeFacts(name="Auvergne-Rhône-Alpes", latitude=45.5, longitude=4.5),
    "FR": NodeFacts(latitude=46.0, longitude=2.0),
}
FACTS = {"stream": "load", "publisher": "Example Grid", "licence": "CC BY 4.0"}
DESCRIBED = About(**FACTS, nodes=NODES)
NOTHING = About(stream="load")


def test_what_an_earlier_version_wrote_is_read():
    nodes = '"nodes": {"84": {"name": "Auvergne", "area": [[[4, 45], [5, 45], [5, 46]]]}}'
    data = f'{{"format": "optstream.about/1", "stream": "load", {nodes}}}'.encode()
    assert parse_about(data).nodes == {"84": NodeFacts(name="Auvergne")}


def test_what_was_written_is_read_and_the_same_facts_give_the_same_bytes():
    described = DESCRIBED.changed(known_noise=(("gas", "2016-02-01"),))
    schema = json_schema(About, "optstream.about/1", "title")
    Draft202012Validator(schema).validate(json.loads(described.to_bytes()))
    assert parse_about(described.to_bytes()) == described
    data = DESCRIBED.to_bytes()
    assert parse_about(data) == DESCRIBED
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


def test_it_is_put_once_and_is_no_finding(published):
    put(published.name, DAY)
    assert not put_about(published.name, NOTHING)
    assert ABOUT not in published.files()
    assert put_about(published.name, DESCRIBED)
    assert parse_about(published.read(ABOUT)) == DESCRIBED
    assert not put_about(published.name, DESCRIBED)
    assert check_files(published.name) == []
    published.write(ABOUT, b"{}")
    assert [line for line in check_files(published.name) if ABOUT in line]
    assert put_about(published.name, NOTHING), "facts no longer stated are removed"
    assert parse_about(published.read(ABOUT)) == NOTHING
