"""The files that a Delta table has now, by its log: commits of JSON, replayed from the first on.

A log whose beginning was replaced by a checkpoint, and tables whose files are not simply their rows, are
refused by name. The log's statistics, which hold readings, are not looked at.
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

from optstream.errors import DumpError

LOG = "_delta_log"
LARGEST_COMMIT = 2**24
_COMMIT = re.compile(r"([0-9]{20})\.json")
HARMLESS = {"timestampNtz", "deletionVectors", "v2Checkpoint", "vacuumProtocolCheck"}
"""Features of tables whose files hold their rows as they are, where no file has a deletion vector."""
_REMEDY = "deliver its present rows as plain Parquet files in another folder"


def present_files(log: Mapping[str, Callable[[int], bytes]]) -> frozenset[str]:
    """Return the paths of the table's files below its folder. log: by name, functions that read a file, at
    most so many bytes and one more.
    """
    commits = sorted(name for name in log if _COMMIT.fullmatch(name))
    numbers = [int(name.removesuffix(".json")) for name in commits]
    if not commits or numbers != list(range(len(numbers))):
        raise DumpError(f"{LOG} has not every commit from the first on, but a checkpoint; {_REMEDY}")
    present = dict[str, None]()
    for name in commits:
        try:
            if len(content := log[name](LARGEST_COMMIT)) > LARGEST_COMMIT:
                raise DumpError(f"{LOG}/{name} must be at most 16 MiB; {_REMEDY}")
            actions = [json.loads(line) for line in content.decode().splitlines() if line.strip()]
            for action in actions:
                _replay(action, present)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise DumpError(f"{LOG}/{name} cannot be read as a commit; write the table again") from None
    return frozenset(present)


def _replay(action: dict[str, Any], present: dict[str, None]) -> None:
    added = action.get("add") or {}
    protocol, table = action.get("protocol") or {}, action.get("metaData") or {}
    mapped = table.get("configuration", {}).get("delta.columnMapping.mode", "none")
    features = {*protocol.get("readerFeatures", ())} - HARMLESS
    if features or mapped != "none" or added.get("deletionVector"):
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
