"""Rows of a campaign that are done, so that one which was stopped goes on."""

import hashlib
import json
import secrets
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Any

from tests.faults.points.attacks import Tally

CHECKOUT = Path(__file__).parents[2]
CODE = ("optstream", "tasks", "flows", "data_contracts", "tests/faults")


class Kept:
    """A file of rows of one seed and one state of the code; of another code nothing is taken."""

    def __init__(self, file: Path, code: str | None = None) -> None:
        self._file = file
        self._code = digest_of_code() if code is None else code
        self._said: dict[str, Any] = {}
        self._writing = Lock()

    def begin(self, kills: int, flows: int, seed: int | None) -> int:
        """The seed: of what is kept, or a new one where nothing fits."""
        begun = {"code": self._code, "kills": kills, "flows": flows}
        old = json.loads(self._file.read_text()) if self._file.exists() else {}
        if {name: old.get(name) for name in begun} == begun and seed in (None, old["seed"]):
            self._said = old
        else:
            self._said = {**begun, "seed": secrets.randbelow(2**31) if seed is None else seed, "rows": {}}
        return int(self._said["seed"])

    def row(self, database: str, fault: str) -> Tally | None:
        """What this fault came to, if it was tried."""
        found = self._said["rows"].get(f"{database}: {fault}")
        return None if found is None else Tally(**found)

    def keep(self, database: str, fault: str, tally: Tally) -> None:
        """Write it down, the whole file anew."""
        with self._writing:
            self._said["rows"][f"{database}: {fault}"] = asdict(tally)
            self._file.parent.mkdir(parents=True, exist_ok=True)
            staged = self._file.with_suffix(".new")
            staged.write_text(json.dumps(self._said, indent=1))
            staged.replace(self._file)


def digest_of_code() -> str:
    """Of every Python file that the campaign runs."""
    digest = hashlib.sha256()
    for folder in CODE:
        for file in sorted((CHECKOUT / folder).rglob("*.py")):
            digest.update(file.relative_to(CHECKOUT).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()
