"""That data are differentially private is said in terms that the Data Privacy Vocabulary has."""

import json
from pathlib import Path

import pytest

from optstream.catalogue.about import About
from optstream.catalogue.backends import open_storage
from optstream.catalogue.metadata import dcat, read_dataset
from tests.optstream.catalogue.folders import DAY

NAMESPACE = "https://w3id.org/dpv#"
PLAIN = {"dpv": NAMESPACE}
pytestmark = pytest.mark.slow


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
