"""`dcat.jsonld`: a Dataset of DCAT 3 in JSON-LD, as DCAT-AP has it: what catalogues of open data harvest.

The formats: https://www.w3.org/TR/vocab-dcat-3/ and https://semiceu.github.io/DCAT-AP/. That the data are
differentially private is said by the W3C's Data Privacy Vocabulary; the amounts stand in the deployment card.
"""

from typing import Any

from optstream.catalogue.layout import CARD_PAGE, DATA, ERRORS, HIERARCHY
from optstream.catalogue.metadata.dataset import Dataset, day_after

MEDIA_TYPES = "https://www.iana.org/assignments/media-types/"
DAILY = "http://publications.europa.eu/resource/authority/frequency/DAILY"
CONTEXT = {
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "dpv": "https://w3id.org/dpv#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}


def dcat(dataset: Dataset) -> dict[str, Any]:
    """Return the folder as a DCAT Dataset: files of releases and of errors, and the hierarchy's table;
    JSON-ready.

    Addresses are relative to the file where the publisher tells none. Its size does not grow with the days.
    """
    about = dataset.about
    document: dict[str, Any] = {
        "@context": CONTEXT,
        "@id": about.address or "./",
        "@type": "dcat:Dataset",
        "dct:identifier": dataset.slug,
        "dct:title": _text(dataset.title),
        "dct:description": _text(dataset.description),
        "dcat:version": dataset.version,
        "dct:accrualPeriodicity": {"@id": DAILY, "@type": "dct:Frequency"},
        "dpv:hasTechnicalMeasure": {"@id": "dpv:DifferentialPrivacy"},
        "foaf:page": {"@id": CARD_PAGE, "@type": "foaf:Document"},
        "dcat:distribution": _distributions(dataset),
    }
    if about.publisher:
        document["dct:publisher"] = {"@type": "foaf:Agent", "foaf:name": about.publisher}
    if about.contact:
        document["dcat:contactPoint"] = _contact(about.publisher or dataset.title, about.contact)
    if about.citation:
        document["dct:bibliographicCitation"] = about.citation
    if span := dataset.first_and_last:
        first, last = span
        document["dct:issued"], document["dct:modified"] = (_date(day_after(day)) for day in span)
        document["dct:temporal"] = {
            "@type": "dct:PeriodOfTime",
            "dcat:startDate": _date(first.isoformat()),
            "dcat:endDate": _date(last.isoformat()),
        }
    if dataset.statement is not None:
        document["dcat:temporalResolution"] = {
            "@value": f"PT{dataset.statement.step_minutes}M",
            "@type": "xsd:duration",
        }
    return document


def _distributions(dataset: Dataset) -> list[dict[str, Any]]:
    told = [(f"{DATA}/", "A Parquet file for each published day; the path names the local day")]
    if dataset.has_errors:
        told.append((f"{ERRORS}/", "How the errors of values hang together, a Parquet file for each day"))
    if dataset.has_hierarchy:
        told.append((HIERARCHY, "Units of the hierarchy, with the days on which they hold, as Parquet"))
    return [_distribution(dataset, place, title) for place, title in told]


def _distribution(dataset: Dataset, place: str, title: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "@type": "dcat:Distribution",
        "dct:title": _text(title),
        "dcat:accessURL": {"@id": f"{(dataset.about.address or '.').rstrip('/')}/{place}"},
        "dcat:mediaType": {
            "@id": f"{MEDIA_TYPES}application/vnd.apache.parquet",
            "@type": "dct:MediaType",
        },
    }
    about = dataset.about
    licence = {"@id": about.licence_address, "rdfs:label": about.licence}
    if told := {key: text for key, text in licence.items() if text}:
        found["dct:license"] = {"@type": "dct:LicenseDocument", **told}
    return found


def _contact(name: str, contact: str) -> dict[str, Any]:
    address = (
        {"vcard:hasEmail": {"@id": f"mailto:{contact}"}}
        if "@" in contact
        else {"vcard:hasURL": {"@id": contact}}
        if contact.startswith(("http://", "https://"))
        else {"rdfs:comment": contact}
    )
    return {"@type": "vcard:Kind", "vcard:fn": name, **address}


def _text(words: str) -> dict[str, str]:
    return {"@value": words, "@language": "en"}


def _date(day: str) -> dict[str, str]:
    return {"@value": day, "@type": "xsd:date"}
