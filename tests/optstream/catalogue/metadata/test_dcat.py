"""`dcat.jsonld` keeps what DCAT-AP demands, and says differential privacy in terms of DPV."""

import json
from pathlib import Path

import pytest

from optstream.catalogue.about import About
from optstream.catalogue.backends import open_storage
from optstream.catalogue.metadata import dcat, read_dataset
from tests.optstream.catalogue.folders import DAY, NEXT

TOLD = About(
    publisher="Example Grid",
    licence="CC BY 4.0",
    title="French load",
    contact="data@example.org",
    citation="Example Grid: French load.",
    address="https://example.org/load/",
    licence_address="https://creativecommons.org/licenses/by/4.0/",
)
PLACE = "https://example.org/copy/dcat.jsonld"
CONTACTS = (None, "data@example.org", "https://example.org/help", "Room 7")

pytestmark = pytest.mark.slow


def graph_of(document):
    import rdflib

    return rdflib.Graph().parse(data=json.dumps(document), format="json-ld", publicID=PLACE)


def breaks_shapes(document):
    from pyshacl import validate

    shapes = Path(__file__).with_name("dcat_ap.ttl").read_text()
    keeps, _, words = validate(graph_of(document), shacl_graph=shapes, shacl_graph_format="turtle")
    return "" if keeps else words


@pytest.fixture
def folder(tmp_path, put_all):
    """Two published days."""
    put_all(tmp_path / "published", DAY, NEXT)
    return tmp_path / "published"


@pytest.mark.parametrize("about", [TOLD, About(), *(About(contact=one) for one in CONTACTS)])
def test_it_keeps_what_dcat_ap_demands(folder, about):
    assert breaks_shapes(dcat(read_dataset(open_storage(folder), about))) == ""


@pytest.mark.parametrize("key", ["dct:title", "dcat:distribution", "dct:publisher", "dct:issued"])
def test_what_dcat_ap_forbids_is_found(folder, key):
    """Control: each of these, spoilt, is found by the shapes."""
    document = dcat(read_dataset(open_storage(folder), TOLD))
    assert breaks_shapes({**document, key: {"@id": "https://example.org/nothing"}})


NAMESPACE = "https://w3id.org/dpv#"
PLAIN = {"dpv": NAMESPACE}


def vocabulary():
    from rdflib import Graph

    return Graph().parse(Path(__file__).with_name("dpv_terms.ttl"))


def said_of(document):
    """The triples whose predicate is of the vocabulary."""
    from rdflib import Graph

    own = {key: value for key, value in document.items() if key.startswith("dpv:")}
    whole = {"@context": PLAIN, "@id": "https://a.example/", **own}
    graph = Graph().parse(data=json.dumps(whole), format="json-ld")
    return [(str(predicate), str(value)) for _, predicate, value in graph]


def misuses(document):
    """Terms that the vocabulary lacks, and values that a property does not take."""
    from rdflib import RDF, Namespace, URIRef

    known, found = vocabulary(), []
    for predicate, value in said_of(document):
        kinds = set(known.objects(URIRef(predicate), Namespace("https://schema.org/").rangeIncludes))
        if (URIRef(predicate), RDF.type, RDF.Property) not in known:
            found.append(predicate)
        elif not kinds & set(known.objects(URIRef(value), RDF.type)):
            found.append(value)
    return found


@pytest.fixture
def dataset(tmp_path, put):
    put(tmp_path / "published", DAY)
    return read_dataset(open_storage(tmp_path / "published"), About())


def test_the_description_uses_terms_that_there_are(dataset):
    document = dcat(dataset)
    assert said_of(document) == [(f"{NAMESPACE}hasTechnicalMeasure", f"{NAMESPACE}DifferentialPrivacy")]
    assert misuses(document) == []


def test_a_term_that_is_made_up_is_found():
    assert misuses({"dpv:hasPrivacy": {"@id": "dpv:DifferentialPrivacy"}}) == [f"{NAMESPACE}hasPrivacy"]
    assert misuses({"dpv:hasTechnicalMeasure": {"@id": "dpv:Laplace"}}) == [f"{NAMESPACE}Laplace"]
