"""The JSON Schemas of status, manifest and catalogue, on documents of a real stream."""

import json
from datetime import date, timedelta
from functools import cache

import pytest
from jsonschema import Draft202012Validator

from optstream.ledger import Key
from studies.audit.run import keep_audit
from tasks.monitor.view import status_document
from tasks.schemas import DOCUMENTS, schema_of
from tests.tasks.two_regions import STEPS

FIRST = date(2016, 6, 1)
DAYS = [FIRST + timedelta(days=number) for number in range(8)]


@cache
def validator(name):
    return Draft202012Validator(schema_of(name), format_checker=Draft202012Validator.FORMAT_CHECKER)


def test_real_documents_fit_their_schema(watched):
    """Of a stream with a day in every state that alarms, and one of each that is fine but for running."""
    folder = watched.folder
    watched.configure("[input]\n", "[input]\nraw_retention_days = 9\n")
    watched.configure('restatement_share = "0"', 'restatement_share = "1/10"')
    watched.configure("max_runtime", "accepted_gaps = [2016-06-06]\nmax_runtime")
    watched.at("2016-06-09T12:00")
    watched.simulate(*DAYS)
    watched.released(*DAYS[:3])
    watched.release(DAYS[1], restate=True)
    watched.withdraw(DAYS[0])
    watched.release(DAYS[3], steps=STEPS[:6])
    watched.ledger.void(Key("two-regions", str(DAYS[3])), "a person said so", watched.now)
    watched.compromise(DAYS[2], "a stolen disk")
    (folder / f"dumps/region=84/date={DAYS[5]}/_SUCCESS").unlink()
    (folder / f"dumps/region=84/date={DAYS[6]}").rename(folder / "84")
    (folder / f"dumps/region=FR-AURA/date={DAYS[6]}").mkdir(parents=True)
    keep_audit(watched.settings, {"passed": False}, watched.now)
    published, view = folder / "published", watched.watch()
    manifests = [json.loads(path.read_text()) for path in sorted((published / "manifests").iterdir())]
    documents = {
        "optstream.status/3": [json.loads(json.dumps(status_document(watched.settings, view)))],
        "optstream.manifest/1": manifests,
        "optstream.catalogue/1": [json.loads((published / "catalogue.json").read_text())],
    }
    for name, found in documents.items():
        Draft202012Validator.check_schema(schema_of(name))
        assert found
        assert [error.message for one in found for error in validator(name).iter_errors(one)] == []


def objects(within, path=()):
    """The objects of a schema that name their keys, by where they stand."""
    if isinstance(within, dict) and "properties" in within:
        yield path, within
    for key, value in within.items() if isinstance(within, dict) else enumerate(within):
        if isinstance(value, (dict, list)):
            yield from objects(value, (*path, key))


FREE = {"mechanism", "oneOf", "known_noise"}
"""The parameters of a mechanism, and what repeats keys of the object that it is part of."""


@pytest.mark.parametrize("name", DOCUMENTS)
def test_an_object_has_no_key_that_its_schema_does_not_name(name):
    for path, found in objects(schema_of(name)):
        if FREE.isdisjoint(path):
            assert found["additionalProperties"] is False, path
            assert found.get("required") or path[-1] == "NodeFacts", path
