"""The ledger as Parquet files, for other programs: streamed, whole, from one moment."""

import json
import os
import shutil
from fractions import Fraction
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from optstream.errors import LedgerError
from optstream.ledger import Ledger
from optstream.privacy import worst_window
from optstream.privacy.spends import spend_from_document
from optstream.storage.folders import sync_folder
from tasks.config import Settings
from tasks.config.fields import lies_within
from tasks.release.outcomes import Printed
from tasks.trusted.files import private_opener

# The columns of an exported ledger. Exact amounts are text ("2/3"), with a float next to them for reading.

COLUMNS: dict[str, dict[str, tuple[pa.DataType, str]]] = {
    "streams": {
        "stream": (pa.string(), "the stream's name"),
        "grant": (pa.string(), "the source and population whose budget it spends"),
        "epsilon": (pa.string(), "exact: the most that any window may lose, at delta where there is one"),
        "epsilon_float": (pa.float64(), "the same, rounded"),
        "delta": (pa.string(), "exact: delta of a budget of zero-concentrated privacy; else null"),
        "rho": (pa.string(), "exact: the most of it that any window may be charged; null likewise"),
        "window_length": (pa.int64(), "steps of a window"),
        "windows": (pa.string(), "sliding or aligned"),
        "alpha": (pa.string(), "exact: changes of a reading up to this are protected"),
        "resolution": (pa.string(), "exact: the unit in which readings are counted"),
        "unit": (pa.string(), "customer or roaming"),
        "leaves_per_step": (pa.int64(), "leaves that a roaming customer may be in at a step"),
        "hierarchy_hash": (pa.string(), "SHA-256 of the tree"),
        "calibration": (pa.string(), "strict or paper"),
        "calendar": (pa.string(), "how steps are counted"),
        "document": (pa.string(), "the other recorded terms, JSON"),
        "n_events": (pa.int64(), "events of the stream"),
        "head": (pa.string(), "hash of its last event"),
    },
    "releases": {
        "stream": (pa.string(), "the stream's name"),
        "period": (pa.string(), "the day, YYYY-MM-DD"),
        "revision": (pa.int64(), "from 0; each is charged"),
        "state": (pa.string(), "RESERVED, DRAWN, PUBLISHED or VOID, charged all the same"),
        "owner": (pa.string(), "the run that has or had it"),
        "lease_until": (pa.string(), "until when that run holds it, UTC"),
        "fencing_token": (pa.int64(), "grows with every owner"),
        "drawing": (pa.bool_(), "its draw was begun and not recorded"),
        "redraws": (pa.int64(), "how often a dead run's draw was repeated"),
        "first_step": (pa.int64(), "running index of its first step"),
        "n_steps": (pa.int64(), "its steps"),
        "generation": (pa.int64(), "which of its spends are in force"),
        "spends_hash": (pa.string(), "SHA-256 of those"),
        "measurements_hash": (pa.string(), "SHA-256 of its measurements; null before they are drawn"),
        "staged_hash": (pa.string(), "SHA-256 of the bytes to publish; null before"),
        "published_name": (pa.string(), "name of the published file; null before"),
        "reason": (pa.string(), "why it is VOID; null otherwise"),
        "compromised": (pa.string(), "why others know its noise: all windows it charges are lost; else null"),
    },
    "spends": {
        "stream": (pa.string(), "the stream's name"),
        "grant": (pa.string(), "whose budget is spent"),
        "period": (pa.string(), "the release's day"),
        "revision": (pa.int64(), "the release's revision"),
        "generation": (pa.int64(), "1: the plan that was reserved; more: what took its place"),
        "in_force": (pa.bool_(), "whether this is what the release is charged"),
        "position": (pa.int64(), "its place in the generation, from 0"),
        "first_step": (pa.int64(), "running index of its first step"),
        "n_steps": (pa.int64(), "its steps"),
        "kind": (pa.string(), "step, period, capped, joint or gaussian"),
        "level": (pa.int64(), "depth in the tree, root 0"),
        "stage": (pa.string(), "what was measured"),
        "epsilon": (pa.string(), "exact: the most that it alone charges any window; null if charged in rho"),
        "epsilon_float": (pa.float64(), "the same, rounded"),
        "rho": (pa.string(), "exact: the same in zero-concentrated privacy; null if charged in epsilon"),
        "rho_float": (pa.float64(), "the same, rounded"),
        "document": (pa.string(), "the spend whole, JSON, from which every window can be priced"),
    },
    "events": {
        "stream": (pa.string(), "the stream's name"),
        "number": (pa.int64(), "from 0, without gaps"),
        "at": (pa.string(), "when, UTC, ISO 8601"),
        "kind": (pa.string(), "what happened"),
        "period": (pa.string(), "the release's day; null for the stream's own events"),
        "revision": (pa.int64(), "the release's revision; null likewise"),
        "body": (pa.string(), "what changed, JSON"),
        "previous": (pa.string(), "hash of the event before"),
        "hash": (pa.string(), "SHA-256 of the stream's name and the columns above"),
    },
}

SCHEMAS = {
    table: pa.schema(
        [pa.field(name, kind, metadata={"description": says}) for name, (kind, says) in columns.items()]
    )
    for table, columns in COLUMNS.items()
}
ROWS_AT_ONCE = 20_000


class Exported(Printed):
    """Where the files are, and how many rows each has, by table."""

    format: Literal["optstream.ledger-export/1"] = "optstream.ledger-export/1"
    folder: Path
    n_rows: dict[str, int]


def export(settings: Settings, ledger: Ledger, folder: Path, n_rows_at_once: int = ROWS_AT_ONCE) -> Exported:
    """Write the tables as Parquet into a new private folder, once all are whole. Raises LedgerError."""
    target = folder.absolute()
    if lies_within(target, settings.published_folder):
        raise LedgerError(
            f"{folder} lies in published.folder, which is the public zone, and the ledger is not public: "
            "name a folder outside it"
        )
    if target.exists() or target.is_symlink():
        raise LedgerError(f"{folder} exists already; nothing was written: name another folder")
    aside, n_rows = target.with_name(f".{target.name}.{os.getpid()}"), dict.fromkeys(SCHEMAS, 0)
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    aside.mkdir(mode=0o700)
    try:
        for table, batches in groupby(ledger.batches(n_rows_at_once), key=itemgetter(0)):
            with open(aside / f"{table}.parquet", "xb", opener=private_opener) as file:
                with pq.ParquetWriter(file, SCHEMAS[table], compression="zstd") as writer:
                    for _, columns in batches:
                        batch = pa.table(_prepared(table, columns), schema=SCHEMAS[table])
                        writer.write_table(batch)
                        n_rows[table] += batch.num_rows
                file.flush()
                os.fsync(file.fileno())
        sync_folder(aside)
        aside.rename(target)
        sync_folder(target.parent)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    return Exported(folder=target, n_rows=n_rows)


def _prepared(table: str, columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The ledger's rows with values derived from their documents."""
    if table == "streams":
        columns["resolution"] = [str(json.loads(model)["resolution"]) for model in columns.pop("model")]
        columns["epsilon_float"] = [float(Fraction(epsilon)) for epsilon in columns["epsilon"]]
    if table == "spends":
        lengths, priced = columns.pop("window_length"), []
        for known, length in zip(map(json.loads, columns["document"]), lengths, strict=True):
            # spends that repeat are priced once, but for a capped one, which names steps of other periods
            known["first_step"] *= known["kind"] == "capped"
            priced.append(_price(json.dumps(known), length))
        for place, name in enumerate(DERIVED):
            columns[name] = [facts[place] for facts in priced]
    return columns


DERIVED = ("kind", "level", "stage", "epsilon", "epsilon_float", "rho", "rho_float")


@lru_cache(maxsize=4096)
def _price(document: str, window_length: int) -> tuple[Any, ...]:
    """Return the columns DERIVED: the amounts are the most that any window is charged by the spend."""
    known = json.loads(document)
    spend = spend_from_document(known)
    charged = worst_window([spend], window_length).epsilon
    own, other = (str(charged), float(charged)), (None, None)
    amounts = (*own, *other) if spend.currency == "epsilon" else (*other, *own)
    return known["kind"], known["level"], known["stage"], *amounts
