"""Where a release came from: one OpenLineage event a published day, kept in the trusted zone."""

import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import attr
import orjson
from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    DatasetFacet,
    RunFacet,
    column_lineage_dataset,
    documentation_dataset,
    schema_dataset,
)
from openlineage.client.transport.file import FileConfig, FileTransport

from optstream.catalogue import ReleaseStatement, band_columns, error_columns
from optstream.storage.folders import sync_folder
from optstream.storage.store import Location, StoreUrl, name_below
from tasks.config import Settings
from tasks.config.fields import located
from tasks.ingest.arrivals import parts_of, place_of
from tasks.release.inputs import FOLDER, UNKNOWN, Inputs, record_of_draw
from tasks.release.run import Run as ReleaseRun
from tasks.release.stages import PublishedError, Staged
from tasks.trusted.files import exclusive_in

# What the file of lineage events says: read without OpenLineage's client, whose import takes long.

EVENTS = "events.jsonl"


def told_releases(settings: Settings, days: Sequence[date] | None = None) -> frozenset[tuple[str, int]]:
    """The days and revisions, of these days or all, that the lineage has as published; read line by line."""
    job, told = f"{settings.stream.name}.release", set()
    wanted = None if days is None else [day.isoformat().encode() for day in days]
    with suppress(FileNotFoundError), (settings.lineage_folder / EVENTS).open("rb") as lines:
        for line in lines:
            if wanted is not None and not any(day in line for day in wanted):
                continue
            with suppress(ValueError, KeyError, TypeError):  # a torn line tells nothing
                event = orjson.loads(line)
                if event["job"]["name"] == job:
                    statement = event["run"]["facets"]["optstream_privacy"]["statement"]
                    told.add((str(statement["period"]), int(statement["revision"])))
    return frozenset(told)


PRODUCER = "urn:optstream"


@attr.define
class PrivacyRunFacet(RunFacet):
    """What the release protects and what it cost; a facet of our own."""

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


def emit_lineage(run: ReleaseRun, published: Staged, file: str) -> None:
    """Append the event of a published day to the events. Raises PublishedError if it cannot be written."""
    folder, day, revision = run.settings.lineage_folder, published.day, published.revision
    record = run.ledger.find(run.key(day, revision))
    digest = record.measurements_hash if record else None
    draw = record_of_draw(run.settings, day, revision, digest)
    told = draw.stated() or {}
    drawn_in = located(str(told.get(FOLDER, run.settings.input_folder)), run.settings.folder)
    event = lineage_event(run.settings, day, published.statement, file, run.clock(), draw.inputs(), drawn_in)
    try:
        _append(folder, event)
    except (OSError, RuntimeError) as error:  # the client makes the one of the other
        reason = error.strerror if isinstance(error, OSError) else type(error).__name__
        raise PublishedError(
            f"it is published and recorded, and its lineage event could not be written to {folder} "
            f"({reason}): mend that folder or its disk",
            file,
        ) from error


def _append(folder: Path, event: RunEvent) -> None:
    path = folder / EVENTS
    # `optstream purge` puts a shorter file in the place of this one
    with exclusive_in(folder):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                os.write(descriptor, b"\n")  # a full disk or a power cut tore the event before
            transport = FileTransport(FileConfig(log_file_path=str(path), append=True))
            OpenLineageClient(transport=transport).emit(event)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        sync_folder(folder)


def lineage_event(
    settings: Settings,
    day: date,
    statement: ReleaseStatement,
    published_file: str,
    now: datetime,
    drawn_from: Inputs,
    drawn_in: Location,
) -> RunEvent:
    """The event of a release, without row counts and plain hashes of dumps, which are about raw data."""
    places = [drawn_in / place_of(part, day) for part in parts_of(settings, day)]
    hashes: dict[str, dict[str, str]] = {}
    for name, tag in drawn_from.items():
        hashes.setdefault(name.rpartition("/")[0], {})[name] = tag

    masked = column_lineage_dataset.Transformation(
        type="INDIRECT", subtype="AGGREGATION", description="sums with noise, fitted", masking=True
    )
    value, raw = settings.published.value, settings.input_of(day).value
    sources = [column_lineage_dataset.InputField(*_dataset(place), raw, [masked]) for place in places]
    before, after = ("date", "step", "timestamp", "node", "parent", "level"), ("revision", "vintage")
    bands = band_columns(value) if statement.bands else ()
    columns = [*before, value, *error_columns(value), *bands, *after]
    output = OutputDataset(
        *_dataset(settings.published_folder / published_file),
        facets={
            "schema": schema_dataset.SchemaDatasetFacet(
                fields=[schema_dataset.SchemaDatasetFacetFields(name=column) for column in columns]
            ),
            "columnLineage": column_lineage_dataset.ColumnLineageDatasetFacet(
                fields={value: column_lineage_dataset.Fields(inputFields=sources)}
            ),
        },
    )
    document = statement.to_json()
    return RunEvent(
        eventType=RunState.COMPLETE,
        eventTime=now.isoformat(),
        run=Run(
            runId=str(uuid5(NAMESPACE_URL, f"{PRODUCER}:{statement.stream}:{published_file}")),
            facets={"optstream_privacy": PrivacyRunFacet(document, _estimate_words(statement))},
        ),
        job=Job(namespace="optstream", name=f"{statement.stream}.release"),
        inputs=[
            InputDataset(
                *_dataset(place),
                facets={
                    "optstream_inputs": KeyedInputFacet(hashes.get(name_below(place, drawn_in)) or UNKNOWN)
                },
            )
            for place in places
        ]
        + [
            InputDataset(
                *_dataset(settings.folder / one.path),
                facets={"documentation": documentation_dataset.DocumentationDatasetFacet(one.source)},
            )
            for one in settings.covariates
        ],
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
