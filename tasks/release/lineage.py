"""Where a release came from: keyed hashes of its input files (HMAC-SHA256 under a key of the trusted folder,
since a plain hash of readings can be guessed), the record of its draw, and an OpenLineage event a day."""

import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import attr
import orjson
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, RunEvent, RunState
from openlineage.client.event_v2 import Run as LineageRun
from openlineage.client.facet_v2 import (
    DatasetFacet,
    RunFacet,
    column_lineage_dataset,
    documentation_dataset,
    schema_dataset,
)
from openlineage.client.serde import Serde

from optstream.catalogue import ReleaseStatement, band_columns, error_columns, estimate_column
from optstream.catalogue.rows import CUSTOMERS_ERROR
from optstream.errors import DumpError, LedgerError, PublicationError
from optstream.privacy.spends import CUSTOMERS
from optstream.storage.store import Location, StoreUrl, name_below
from tasks.config import Settings
from tasks.config.fields import located, step_minutes
from tasks.ingest import Dump
from tasks.ingest.arrivals import parts_of, place_of
from tasks.ingest.formats import identity_of, opened
from tasks.release.run import PublishedError, Run, Staged
from tasks.trusted.files import append_lines, exclusive_in, token_in, write_private

KEY_BYTES = 32
CHUNK = 2**20
THREADS = 4
UNKNOWN = "unknown"  # in place of a hash that nobody could take

Inputs = Mapping[str, str]  # the keyed hash of each input file, by its name below the input folder
Hash = Callable[[Dump, bool], Inputs]  # of a dump, whose files are left alone where it is not sound
INPUTS, STATED = "inputs", "stated"  # keys of the record of a draw; older records have the inputs alone
FOLDER = "input_folder"  # a stated key: the folder of the inputs


def input_key(settings: Settings) -> bytes:
    """The key, made once at random and kept. Raises LedgerError if the file is there and is no key."""
    path = settings.input_key_file
    if not path.exists():
        with exclusive_in(path.parent):
            if not os.path.lexists(path):  # of two first runs the second takes the first one's
                write_private(path, secrets.token_bytes(KEY_BYTES))
    key = path.read_bytes()
    if len(key) != KEY_BYTES:
        raise LedgerError(
            f"{path} must hold {KEY_BYTES} bytes, the key of the inputs' hashes; restore it from a backup, "
            "or remove it: a new one is made, and older hashes can then no longer be checked"
        )
    return key


def hashing(settings: Settings, dumps: Sequence[Dump]) -> Hash:
    """Look at the files before they are read; return a hash function, which raises DumpError for a dump that
    changed.
    """
    key, folder = input_key(settings), settings.input_folder
    before = {path: identity_of(path) for dump in dumps for files in dump.files for path in files}

    def inputs_of(dump: Dump, is_sound: bool) -> Inputs:
        own = {name_below(path, folder): path for files in dump.files for path in files}
        until = time.monotonic() + 60.0 * step_minutes(settings.input.time_limit)
        inputs: Inputs = {}
        if is_sound:
            with ThreadPoolExecutor(THREADS, "hash inputs") as pool:
                tags = pool.map(lambda path: _keyed_hash(key, path, until), own.values())
                inputs = {name: tag for name, tag in zip(own, tags, strict=True) if tag is not None}
        changed = [name for name, path in own.items() if identity_of(path) != before[path]]
        if changed:
            raise DumpError(
                f"{changed[0]} changed while it was read; write dumps under another name, move them into "
                "place when they are whole, then run again"
            )
        if is_sound and len(inputs) < len(own):
            raise DumpError(
                f"hashing the dump took longer than input.time_limit, {settings.input.time_limit}; "
                "deliver it again in fewer bytes, or set a longer limit"
            )
        return inputs

    return inputs_of


def _keyed_hash(key: bytes, path: Location, until: float) -> str | None:
    """The hash; None where it was not ready by then."""
    digest = hmac.new(key, digestmod=hashlib.sha256)
    try:
        with opened(path) as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
                if time.monotonic() >= until:
                    return None
    except OSError:  # then it is unreadable for ingestion as well, which says so
        return UNKNOWN
    return digest.hexdigest()


@dataclass(frozen=True)
class DrawRecord:
    """The record of a day's draw, in a file that may be gone or edited."""

    path: Path
    day: date

    def keep(self, inputs: Inputs, stated: Mapping[str, Any]) -> None:
        """Store the inputs and the statement of a draw, durable before its first sample."""
        document = {INPUTS: dict(sorted(inputs.items())), STATED: dict(stated)}
        write_private(self.path, json.dumps(document, indent=1).encode())

    def hand_over(self, token: int) -> None:
        """Keep it under the token of another owner, who goes on from that draw."""
        path = self.path.with_name(f"{token}.json")
        if path != self.path and self.path.exists():
            write_private(path, self.path.read_bytes())

    def inputs(self) -> Inputs:
        """The inputs of the draw; empty where the record does not say."""
        try:
            found = json.loads(self.path.read_bytes())
        except (OSError, ValueError):
            return {}
        inputs = found.get(INPUTS, found) if isinstance(found, dict) else found
        return {str(name): str(tag) for name, tag in inputs.items()} if isinstance(inputs, dict) else {}

    def stated(self) -> Mapping[str, Any] | None:
        """What a statement says of the draw; None where no record says. Raises PublicationError if edited."""
        try:
            stated = json.loads(self.path.read_bytes()).get(STATED)
            if stated is None or isinstance(stated.get("mechanism", {}), dict):
                return None if stated is None else {**stated}
        except OSError:
            return None
        except (ValueError, AttributeError, RecursionError):
            pass
        raise self.edited()

    def edited(self) -> PublicationError:
        """That the record is not as it was stored, and what to do."""
        return PublicationError(
            f"{self.path} is not as it was stored when {self.day} was drawn: restore it from a backup, or "
            f"give the day up with `optstream withdraw --date {self.day} --reason WHY`"
        )


def record_of_owner(settings: Settings, day: date, revision: int, token: int | None) -> DrawRecord:
    return DrawRecord(settings.inputs_of(day, revision) / f"{token}.json", day)


def record_of_draw(settings: Settings, day: date, revision: int, measurements_hash: str | None) -> DrawRecord:
    token = token_in(settings.measurements_of(day, revision), measurements_hash)
    return record_of_owner(settings, day, revision, token)


EVENTS = "events.jsonl"
PRODUCER = "urn:optstream"


def released_by_lineage(settings: Settings, days: Sequence[date] | None = None) -> frozenset[tuple[str, int]]:
    """The days and revisions, of these days or all, that the lineage has as published; read line by line."""
    job, released = f"{settings.stream.name}.release", set()
    wanted = [day.isoformat().encode() for day in days or ()]
    # a line is searched for one month, and for each day only where it has that
    named = () if days is None else ({day[:7] for day in wanted}, wanted)
    with suppress(FileNotFoundError), (settings.lineage_folder / EVENTS).open("rb") as lines:
        for line in lines:
            if not all(any(one in line for one in some) for some in named):
                continue
            with suppress(ValueError, KeyError, TypeError):  # a torn line tells nothing
                event = orjson.loads(line)
                if event["job"]["name"] == job:
                    statement = event["run"]["facets"]["optstream_privacy"]["statement"]
                    released.add((str(statement["period"]), int(statement["revision"])))
    return frozenset(released)


@attr.define
class PrivacyRunFacet(RunFacet):
    """The release's guarantee and cost; a facet of our own."""

    statement: dict[str, Any]
    estimate: str

    @staticmethod
    def _get_schema() -> str:
        return "urn:optstream:privacy-run-facet:2"


@attr.define
class KeyedInputFacet(DatasetFacet):
    """The files of a dataset, by name, with their HMAC-SHA256 under the trusted zone's key, or "unknown"."""

    hmac_sha256: dict[str, str] | str

    @staticmethod
    def _get_schema() -> str:
        return "urn:optstream:keyed-input-facet:1"


def emit_lineage(run: Run, published: Staged, file: str) -> None:
    """Append the event of a published day to the events. Raises PublishedError if it cannot be written."""
    folder = run.settings.lineage_folder
    event = lineage_event(run, published, file)
    try:
        with exclusive_in(folder):  # `optstream purge` replaces this file by a shorter one
            append_lines(folder / EVENTS, [Serde.to_json(event)])
    except OSError as error:
        raise PublishedError(
            f"it is published and recorded, and its lineage event could not be written to {folder} "
            f"({error.strerror}): repair that folder or its disk",
            file,
        ) from error


def lineage_event(run: Run, published: Staged, file: str) -> RunEvent:
    """The event of a release, without row counts and plain hashes of dumps, which are about raw data."""
    settings, day, statement = run.settings, published.day, published.staged.statement
    record = run.ledger.find(run.key(day, published.revision))
    draw = record_of_draw(settings, day, published.revision, record.measurements_hash if record else None)
    drawn_in = located(str((draw.stated() or {}).get(FOLDER, settings.input_folder)), settings.folder)
    hashes: dict[str, dict[str, str]] = {}
    for name, tag in draw.inputs().items():
        hashes.setdefault(name.rpartition("/")[0] or ".", {})[name] = tag
    names = (
        [place_of(part, day) for part in parts_of(settings, day)] if settings.input.path is None else hashes
    )
    places = [drawn_in if name == "." else drawn_in / name for name in names]

    masked = column_lineage_dataset.Transformation(
        type="INDIRECT", subtype="AGGREGATION", description="sums with noise, fitted", masking=True
    )
    value, raw = settings.published.value, settings.input_of(day).value
    sources = [column_lineage_dataset.InputField(*_dataset(place), raw, [masked]) for place in places]
    before, after = ("date", "step", "timestamp", "node", "parent", "level"), ("revision", "vintage")
    bands = (*band_columns(value), estimate_column(value)) if statement.bands else ()
    behind = (CUSTOMERS, CUSTOMERS_ERROR) if statement.customers_scale is not None else ()
    columns = [*before, value, *error_columns(value), *bands, *behind, *after]
    output = OutputDataset(
        *_dataset(settings.published_folder / file),
        facets={
            "schema": schema_dataset.SchemaDatasetFacet(
                fields=[schema_dataset.SchemaDatasetFacetFields(name=column) for column in columns]
            ),
            "columnLineage": column_lineage_dataset.ColumnLineageDatasetFacet(
                fields={value: column_lineage_dataset.Fields(inputFields=sources)}
            ),
        },
    )
    inputs = [
        (place, "optstream_inputs", KeyedInputFacet(hashes.get(name_below(place, drawn_in)) or UNKNOWN))
        for place in places
    ] + [
        (
            settings.folder / one.path,
            "documentation",
            documentation_dataset.DocumentationDatasetFacet(one.source),
        )
        for one in settings.covariates
    ]
    privacy = PrivacyRunFacet(statement.to_json(), _estimate_words(statement))
    return RunEvent(
        eventType=RunState.COMPLETE,
        eventTime=run.clock().isoformat(),
        run=LineageRun(
            runId=str(uuid5(NAMESPACE_URL, f"{PRODUCER}:{statement.stream}:{file}")),
            facets={"optstream_privacy": privacy},
        ),
        job=Job(namespace="optstream", name=f"{statement.stream}.release"),
        inputs=[InputDataset(*_dataset(place), facets={name: facet}) for place, name, facet in inputs],
        outputs=[output],
        producer=PRODUCER,
    )


def _estimate_words(statement: ReleaseStatement) -> str:
    words = "first estimate"
    if statement.vintage:
        words = "revised estimate of measurements that were charged before; nothing more is spent"
    for solved in (statement.consistency, statement.constraints):
        if solved and not solved.converged:
            words += f". {solved.in_words}"
    return words


def _dataset(place: Location) -> tuple[str, str]:
    """Namespace and name: of an object its store's bucket and the key in it, as OpenLineage names them."""
    if isinstance(place, StoreUrl):
        bucket, _, key = place.text.removeprefix(f"{place.protocol}://").partition("/")
        return f"{place.protocol}://{bucket}", key
    return "file", str(place)
