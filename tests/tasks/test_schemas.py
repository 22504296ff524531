"""The JSON Schemas of status, manifest and catalogue, on documents of a real stream."""

import json
from datetime import UTC, date, datetime, timedelta
from functools import cache

import pytest
from jsonschema import Draft202012Validator

from optstream.ledger import Key
from studies.audit.run import keep_audit
from tasks.monitor.view import status_document
from tasks.schemas import DOCUMENTS, schema_of
from tests.tasks.two_regions import CONFIGURATION, STEPS, WATCH, Installation

FIRST = date(2016, 6, 1)
DAYS = [FIRST + timedelta(days=number) for number in range(8)]


@cache
def validator(name):
    return Draft202012Validator(schema_of(name), format_checker=Draft202012Validator.FORMAT_CHECKER)


@pytest.fixture
def installation(tmp_path):
    """A stream with a day in every state that alarms, and one of each that is fine but for running."""
    folder = tmp_path
    text = CONFIGURATION.replace("[input]\n", "[input]\nraw_retention_days = 9\n")
    text = text.replace('restatement_share = "0"', 'restatement_share = "1/10"')
    accepted = WATCH.replace("max_runtime", "accepted_gaps = [2016-06-06]\nmax_runtime")
    (folder / "optstream.toml").write_text(text + accepted)
    installation = Installation(folder, datetime(2016, 6, 9, 12, tzinfo=UTC))
    installation.simulate(*DAYS)
    installation.released(*DAYS[:3])
    installation.release(DAYS[1], restate=True)
    installation.withdraw(DAYS[0])
    installation.release(DAYS[3], steps=STEPS[:6])
    installation.ledger.void(Key("two-regions", str(DAYS[3])), "a person said so", installation.now)
    installation.compromise(DAYS[2], "a stolen disk")
    (folder / f"dumps/region=84/date={DAYS[5]}/_SUCCESS").unlink()
    (folder / f"dumps/region=84/date={DAYS[6]}").rename(folder / "84")
    (folder / f"dumps/region=FR-AURA/date={DAYS[6]}").mkdir(parents=True)
    keep_audit(installation.settings, {"passed": False}, installation.now)
    return installation


def test_real_documents_fit_their_schema(installation):
    folder, view = installation.folder / "published", installation.watch()
    manifests = [json.loads(path.read_text()) for path in sorted((folder / "manifests").iterdir())]
    documents = {
        "optstream.status/3": [json.loads(json.dumps(status_document(installation.settings, view)))],
        "optstream.manifest/1": manifests,
        "optstream.catalogue/1": [json.loads((folder / "catalogue.json").read_text())],
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
