"""The files that a Delta table has now, by its log: commits of JSON, replayed from the first or a checkpoint.

Tables whose files are not simply their rows are refused by name. The log's statistics, which hold readings,
are not read.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from optstream.errors import DumpError
from optstream.storage.parquet import Limits, claims_of

LOG = "_delta_log"
LARGEST_COMMIT, LARGEST_CHECKPOINT = 2**24, 2**28
LIMITS = Limits(rows=2**22, columns=10_000, group_bytes=2**32)
"""The most that a checkpoint's footer may claim."""
AT_ONCE = 64
"""Rows of a checkpoint in memory together: one text of its file may stand in each."""
OF_CHECKPOINT = ("add.path", "add.deletionVector", "protocol", "metaData.configuration", "sidecar.path")
_COMMIT = re.compile(r"([0-9]{20})\.json")
_CHECKPOINT = re.compile(r"([0-9]{20})\.checkpoint\.parquet")
HARMLESS = {"timestampNtz", "deletionVectors", "v2Checkpoint", "vacuumProtocolCheck"}
"""Features of tables whose files hold their rows as they are, where no file has a deletion vector."""
_REMEDY = "deliver its present rows as plain Parquet files in another folder"


def present_files(log: Mapping[str, Callable[[int], bytes]]) -> frozenset[str]:
    """Return the paths of the table's files below its folder. log: by name, functions that read a file, at
    most so many bytes and one more.
    """
    numbers = sorted(int(name[:20]) for name in log if _COMMIT.fullmatch(name))
    whole = [int(name[:20]) for name in log if _CHECKPOINT.fullmatch(name)]
    last = -1 if 0 in numbers else max(whole, default=-1)
    numbers = [number for number in numbers if number > last]
    if numbers != [*range(last + 1, last + 1 + len(numbers))] or not (numbers or whole):
        raise DumpError(
            f"{LOG} has not every commit from the first on, or from a whole checkpoint; {_REMEDY}"
        )
    present = dict[str, None]()
    sources = [(f"{last:020}.checkpoint.parquet", LARGEST_CHECKPOINT, _checkpoint)] * (last >= 0)
    sources += [(f"{number:020}.json", LARGEST_COMMIT, _commit) for number in numbers]
    for name, largest, actions_of in sources:
        try:
            if len(content := log[name](largest)) > largest:
                raise DumpError(f"{LOG}/{name} must be at most {largest // 2**20} MiB; {_REMEDY}")
            for action in actions_of(content):
                _replay(action, present)
        except (*_BROKEN, pa.ArrowException):
            raise DumpError(f"{LOG}/{name} cannot be read as a commit; write the table again") from None
    return frozenset(present)


_BROKEN = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, MemoryError)


def _commit(content: bytes) -> Iterator[Any]:
    yield from (json.loads(line) for line in content.decode().splitlines() if line.strip())


def _checkpoint(content: bytes) -> Iterator[Any]:
    claims = claims_of(content)
    if claims is None or not claims.within(LIMITS):
        raise ValueError
    file = pq.ParquetFile(pa.BufferReader(content), metadata=claims.footer)
    for batch in file.iter_batches(AT_ONCE, columns=[*OF_CHECKPOINT], use_threads=False):
        yield from batch.to_pylist()


def _replay(action: dict[str, Any], present: dict[str, None]) -> None:
    added = action.get("add") or {}
    protocol, table = action.get("protocol") or {}, action.get("metaData") or {}
    mapped = dict(table.get("configuration") or ()).get("delta.columnMapping.mode", "none")
    features = {*(protocol.get("readerFeatures") or ())} - HARMLESS
    if features or action.get("sidecar") or mapped != "none" or added.get("deletionVector"):
        how = "deletion vectors" if added.get("deletionVector") else "renamed columns or features of its own"
        raise DumpError(f"the table of {LOG} has {how}; {_REMEDY}")
    for kind in ("remove", "add"):
        if one := action.get(kind):
            path = unquote(one["path"])
            if "://" in path or PurePosixPath(path).is_absolute() or ".." in path.split("/"):
                raise DumpError(f"{LOG} names files outside the table's folder; {_REMEDY}")
            present.pop(path, None)
            if kind == "add":
                present[path] = None
