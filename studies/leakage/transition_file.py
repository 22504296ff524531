"""A transition matrix from a CSV file: small, plain, and every fault with its line and column."""

import csv
import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ConfigurationError

LARGEST_FILE = 2**20
MOST_STATES = 200
ROW_TOLERANCE = 1e-9
_NUMBER = re.compile(r"\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_LONGEST_CELL = 100
Line = tuple[int, list[str]]


@dataclass(frozen=True, eq=False)
class TransitionFile:
    """A chain as its file has it. rows: (n_states, n_states); row i is the distribution given state i.

    names: of the states, from the header, or None without one.
    """

    path: Path
    rows: NDArray[np.float64]
    names: tuple[str, ...] | None

    @property
    def n_states(self) -> int:
        return len(self.rows)


def read_transition(path: Path) -> TransitionFile:
    """Read a matrix: a line a row, cells separated by commas, with or without a first line of state names.

    At most 1 MiB and 200 states. Raises ConfigurationError naming file, line and column, the rule and the
    remedy: for a file that cannot be read, is not UTF-8 or not square, a cell that is not a plain number of
    at least 0, a row that does not add up to 1 within 1e-9, names that are empty or twice there.
    """
    lines = list(_lines(path, _text(path)))
    if not lines:
        raise ConfigurationError(f"{path}: it is empty; write a line for each state, cells between commas")
    names = None
    if not all(_NUMBER.fullmatch(cell) for cell in lines[0][1]):
        names = _names(path, *lines.pop(0))
    rows = [_row(path, number, cells) for number, cells in lines]
    n_columns = len(names if names is not None else rows[0])
    for (number, _), row in zip(lines, rows, strict=True):
        if len(row) != n_columns:
            raise ConfigurationError(
                f"{path}, line {number}: it must have {n_columns} cells as the first line has; got {len(row)}"
            )
    if len(rows) != n_columns or n_columns > MOST_STATES:
        header = "" if names is None else "; line 1 was taken as names, for not all of it is numbers"
        raise ConfigurationError(
            f"{path}: it must have as many rows as columns, a row for each state, at most {MOST_STATES}; "
            f"got {len(rows)} rows of {n_columns} columns{header}"
        )
    for (number, _), row in zip(lines, rows, strict=True):
        if abs(sum(row) - 1) > ROW_TOLERANCE:
            raise ConfigurationError(
                f"{path}, line {number}: the row must add up to 1 within {ROW_TOLERANCE:g}, for it is the "
                f"distribution given its state; it adds up to {sum(row):.10g}: write more digits"
            )
    return TransitionFile(path, np.array(rows), names)


def _text(path: Path) -> str:
    try:
        if not path.is_file():
            raise ConfigurationError(f"{path}: it does not exist, or is not a file; name a CSV file")
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "it cannot be read"
        raise ConfigurationError(f"{path}: {reason}; name a CSV file that can be read") from None
    if len(content) > LARGEST_FILE:
        raise ConfigurationError(f"{path}: it must be at most 1 MiB; write fewer states or digits")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(f"{path}, line {line}: it must be UTF-8 text; save it as such") from None


def _lines(path: Path, text: str) -> Iterator[Line]:
    """Lines that are not blank, with their numbers, cells stripped."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for cells in reader:
            stripped = [cell.strip() for cell in cells]
            if any(stripped):
                yield reader.line_num, stripped
    except csv.Error:
        raise ConfigurationError(
            f"{path}, line {reader.line_num}: it is not CSV; separate plain cells by commas, and close quotes"
        ) from None


def _names(path: Path, number: int, cells: list[str]) -> tuple[str, ...]:
    for column, cell in enumerate(cells, start=1):
        usable = cell and cell.isprintable() and len(cell) <= _LONGEST_CELL
        if not usable or cell in cells[: column - 1]:
            raise ConfigurationError(
                f"{path}, line {number}, column {column}: a state's name must be printable text of 1 to "
                f"{_LONGEST_CELL} characters, each name once; rename it, or leave the line of names out"
            )
    return tuple(cells)


def _row(path: Path, number: int, cells: list[str]) -> list[float]:
    for column, cell in enumerate(cells, start=1):
        if len(cell) > _LONGEST_CELL or not _NUMBER.fullmatch(cell):
            raise ConfigurationError(
                f"{path}, line {number}, column {column}: a cell must be a plain number of at least 0, such "
                "as 0.25, between commas; correct it"
            )
    return [float(cell) for cell in cells]
