"""Keyed hashes (HMAC-SHA256 under a key of the trusted folder) of the files of a release: a plain hash of
readings can be guessed.
"""

import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from optstream.errors import DumpError, LedgerError, PublicationError
from optstream.storage.folders import sync_folder
from optstream.storage.store import Location, name_below
from tasks.config import Settings
from tasks.config.fields import step_minutes
from tasks.ingest import Dump
from tasks.ingest.formats import identity_of, opened
from tasks.trusted.files import make_private_folder, token_in, write_private

KEY_BYTES = 32
CHUNK = 2**20
THREADS = 4
UNKNOWN = "unknown"
"""In place of a hash that nobody could take."""

Inputs = Mapping[str, str]
"""The keyed hash of each input file, by its name below the input folder."""
INPUTS, STATED = "inputs", "stated"
"""Keys of what is kept of a draw; before there was anything stated, it was the inputs alone."""
FOLDER = "input_folder"
"""Key of what is stated: the folder that the inputs lay in."""


def input_key(settings: Settings) -> bytes:
    """The key, made once at random and kept. Raises LedgerError if the file is there and is no key."""
    path = settings.input_key_file
    if not path.exists():
        _make_key(path)
    key = path.read_bytes()
    if len(key) != KEY_BYTES:
        raise LedgerError(
            f"{path} must hold {KEY_BYTES} bytes, the key of the inputs' hashes; restore it from a backup, "
            "or remove it: a new one is made, and older hashes can then no longer be checked"
        )
    return key


def _make_key(path: Path) -> None:
    """Whole or absent, and never over another: of two first runs the second takes the first one's."""
    make_private_folder(path.parent)
    aside = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}")
    write_private(aside, secrets.token_bytes(KEY_BYTES))
    try:
        os.link(aside, path)
    except FileExistsError:
        pass
    finally:
        aside.unlink()
    sync_folder(path.parent)


def hashing(settings: Settings, dumps: Sequence[Dump]) -> Callable[..., Inputs | DumpError]:
    """Look at the files before they are read; return what hashes each dump once read, if unchanged."""
    key, folder = input_key(settings), settings.input_folder
    before = {path: identity_of(path) for dump in dumps for files in dump.files for path in files}

    def inputs_of(dump: Dump, is_sound: bool = True) -> Inputs | DumpError:
        own = {name_below(path, folder): path for files in dump.files for path in files}
        until = time.monotonic() + 60.0 * step_minutes(settings.input.time_limit)
        inputs: Inputs = {}
        if is_sound:
            with ThreadPoolExecutor(THREADS, "hash inputs") as pool:
                tags = pool.map(lambda path: _keyed_hash(key, path, until), own.values())
                inputs = {name: tag for name, tag in zip(own, tags, strict=True) if tag is not None}
        changed = [name for name, path in own.items() if identity_of(path) != before[path]]
        if changed:
            return DumpError(
                f"{changed[0]} changed while it was read; write dumps under another name, move them into "
                "place when they are whole, then run again"
            )
        if is_sound and len(inputs) < len(own):
            return DumpError(
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


def keep_inputs(
    settings: Settings, day: date, revision: int, token: int, inputs: Inputs, stated: Mapping[str, Any]
) -> None:
    """Store what a draw is made from, durable before its first sample. stated: what its statement says."""
    path = settings.inputs_of(day, revision) / f"{token}.json"
    document = {INPUTS: dict(sorted(inputs.items())), STATED: dict(stated)}
    write_private(path, json.dumps(document, indent=1).encode())


def hand_over_inputs(settings: Settings, day: date, revision: int, token: int, to: int) -> None:
    """Keep what one owner drew from under the token of another, who goes on from that draw."""
    folder = settings.inputs_of(day, revision)
    if token != to and (folder / f"{token}.json").exists():
        write_private(folder / f"{to}.json", (folder / f"{token}.json").read_bytes())


@dataclass(frozen=True)
class DrawRecord:
    """What was kept of a day's draw, in a file that may be gone or edited."""

    path: Path
    day: date

    def inputs(self) -> Inputs:
        """What was drawn from; empty where the record does not say."""
        try:
            found = json.loads(self.path.read_bytes())
        except (OSError, ValueError):
            return {}
        inputs = found.get(INPUTS, found) if isinstance(found, dict) else found
        return {str(name): str(tag) for name, tag in inputs.items()} if isinstance(inputs, dict) else {}

    def stated(self) -> Mapping[str, Any] | None:
        """What a statement says of the draw; None where no record says. Raises PublicationError if edited."""
        try:
            told = json.loads(self.path.read_bytes()).get(STATED)
            if told is None or isinstance(told.get("mechanism", {}), dict):
                return None if told is None else {**told}
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


def record_of_draw(settings: Settings, day: date, revision: int, measurements_hash: str | None) -> DrawRecord:
    """The record of the draw of the measurements of this hash."""
    token = token_in(settings.measurements_of(day, revision), measurements_hash)
    return DrawRecord(settings.inputs_of(day, revision) / f"{token}.json", day)
