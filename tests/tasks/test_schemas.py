"""The JSON Schemas of status, manifest and catalogue, on documents of real streams and on spoilt ones."""

import copy
import json
from datetime import UTC, date, datetime, timedelta

import pytest
from jsonschema import Draft202012Validator

from optstream.ledger import Key
from studies.audit.run import keep_audit
from tasks.monitor.view import status_document
from tasks.schemas import schema_of
from tests.tasks.monitor.conftest import WATCH, Watched
from tests.tasks.two_regions import CONFIGURATION, STEPS

pytestmark = pytest.mark.slow

FIRST = date(2016, 6, 1)
DAYS = [FIRST + timedelta(days=number) for number in range(8)]
SCHEMAS = ("optstream.status/3", "optstream.manifest/1", "optstream.catalogue/1")


def validator(name):
    return Draft202012Validator(schema_of(name), format_checker=Draft202012Validator.FORMAT_CHECKER)


@pytest.fixture(scope="module")
def installation(tmp_path_factory):
    """A stream with a day in every state that alarms, and one of each that is fine but for running."""
    folder = tmp_path_factory.mktemp("watched")
    text = CONFIGURATION.replace("[input]\n", "[input]\nraw_retention_days = 9\n")
    text = text.replace('restatement_share = "0"', 'restatement_share = "1/10"')
    accepted = WATCH.replace("max_runtime", "accepted_gaps = [2016-06-06]\nmax_runtime")
    (folder / "optstream.toml").write_text(text + accepted)
    installation = Watched(folder, datetime(2016, 6, 9, 12, tzinfo=UTC))
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


@pytest.fixture(scope="module")
def documents(installation):
    folder, status = (
        installation.folder / "published",
        status_document(installation.settings, installation.watch()),
    )
    manifests = [json.loads(path.read_text()) for path in sorted((folder / "manifests").iterdir())]
    return {
        "optstream.status/3": [json.loads(json.dumps(status))],
        "optstream.manifest/1": manifests,
        "optstream.catalogue/1": [json.loads((folder / "catalogue.json").read_text())],
    }


@pytest.mark.parametrize("name", SCHEMAS)
def test_real_documents_fit_their_schema(documents, name):
    Draft202012Validator.check_schema(schema_of(name))
    assert documents[name]
    for document in documents[name]:
        assert [error.message for error in validator(name).iter_errors(document)] == []
        assert document["format"] == name


def places(document, path=()):
    """The path of every object and array within."""
    yield path
    children = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in children:
        if isinstance(value, (dict, list)):
            yield from places(value, (*path, key))


def spoilt(document):
    """The document with a foreign key in each of its objects, and with each key of each object gone."""
    for path in places(document):
        within = document
        for key in path:
            within = within[key]
        if isinstance(within, dict):
            for key in [None, *within]:
                other = copy.deepcopy(document)
                target = other
                for step in path:
                    target = target[step]
                if key is None:
                    target["foreign"] = "?"
                else:
                    del target[key]
                yield (*path, key), other


FREE = {("counts",), ("statement", "mechanism")}
OPTIONAL = {"waiting_for", "levels", "days_until_raw_expires", "accepted", "withdrawn", "standard_errors"}
OPTIONAL |= {"long_spans", "consistency", "errors", "replicates", "no_errors", "bounds", "metered"}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_foreign_key_and_a_missing_one_are_refused(documents, name):
    """Everywhere, but for the parameters of a mechanism, the counts, and what only some days have."""
    judge, tried = validator(name), 0
    for path, other in spoilt(documents[name][0]):
        optional = path[-1] in OPTIONAL and len(path) > 1
        free = path[:-1] in FREE or path[:2] == ("statement", "mechanism") or path[:-1] == ("periods",)
        kept = path[-1] not in (None, "name") or (path[-1] is None and path[0] == "statement")
        if optional or (free and kept):
            continue
        tried += 1
        assert not judge.is_valid(other), path
    assert tried > 20
