"""Names and places of nodes, as readers find them beside the figures."""

import pytest

from optstream.catalogue.node_facts import NodeFacts, nodes_document, parse_node_facts
from optstream.errors import PublicationError

FACTS = {"84": NodeFacts("Auvergne-Rhône-Alpes", 45.5, 4.5), "FR": NodeFacts(latitude=46.0, longitude=2.0)}


def test_what_was_written_is_read_and_the_same_facts_give_the_same_bytes():
    data = nodes_document("load", FACTS)
    assert parse_node_facts(data) == FACTS
    assert nodes_document("load", dict(reversed(FACTS.items()))) == data


@pytest.mark.parametrize(
    "nodes",
    [
        "[]",
        '{"84": {"name": "a\\u202eb"}}',
        '{"84": {"name": ""}}',
        '{"84": {"latitude": 4}}',
        '{"84": {"latitude": NaN, "longitude": 4}}',
        '{"84": {"latitude": "4", "longitude": "4"}}',
        '{"84": {"color": "red"}}',
        '{"84": "a name"}',
    ],
)
def test_what_somebody_else_wrote_is_refused(nodes):
    with pytest.raises(PublicationError, match=r"nodes\.json is not of format"):
        parse_node_facts(f'{{"format": "optstream.nodes/1", "stream": "load", "nodes": {nodes}}}'.encode())
