"""What readers find beside the figures: publisher, licence, names and places of nodes."""

import json

import pytest
from jsonschema import Draft202012Validator

from optstream.catalogue import check_files
from optstream.catalogue.about import About, NodeFacts, parse_about, put_about
from optstream.catalogue.documents import json_schema
from optstream.catalogue.layout import ABOUT
from optstream.errors import PublicationError
from tests.optstream.catalogue.folders import DAY

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
