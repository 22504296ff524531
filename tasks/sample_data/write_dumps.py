"""Writing raw dumps as a supplier would: a folder a region and day, or one a day; whole or absent."""

import os
import shutil
from datetime import date
from pathlib import Path

import polars as pl

from optstream.errors import DumpError, ParameterError
from tasks.ingest.arrival.parts import EVERY, place_of

PART = "part-0.parquet"


def dump_folder(folder: Path, region: str, day: date) -> Path:
    """Where the dump of one region and day lies; of "" that of all regions.

    Raises ParameterError for a name that is no plain one.
    """
    if region == EVERY:
        return folder / place_of(EVERY, day)
    if region.startswith(".") or any(sign in region for sign in "/\\=\0"):
        raise ParameterError(
            f"a region's name becomes a folder's: it must not begin with a dot or hold / \\ =; got {region!r}"
        )
    return folder / place_of(region, day)


def write_dump(
    folder: Path,
    region: str,
    day: date,
    rows: pl.DataFrame,
    *,
    marker: str | None = "_SUCCESS",
    file_list: str | None = None,
) -> bool:
    """Write one dump and its marker; return False if the same dump was already there, complete.

    The rows are written into a hidden folder beside, which is then renamed; the marker (or, if given, the
    list of files, one name a line) comes last. A killed writer's dump is completed by the next one.
    Raises DumpError where another dump lies: real data are never overwritten.
    """
    target = dump_folder(folder, region, day)
    announcement, text = (file_list, f"{PART}\n") if file_list else (marker or "_SUCCESS", "")
    if not target.exists():
        _write_rows(target, rows)
    elif not _holds(target, rows):
        raise DumpError(
            f"{target} already holds another dump; nothing is overwritten: write into another folder, "
            "or remove that one"
        )
    elif (target / announcement).exists():
        return False
    _write_text(target / announcement, text)
    return True


def _write_rows(target: Path, rows: pl.DataFrame) -> None:
    staging = target.parent / f".writing-{target.name}-{os.getpid()}"
    staging.mkdir(parents=True, exist_ok=True)
    try:
        rows.write_parquet(staging / PART)
        staging.rename(target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _write_text(target: Path, text: str) -> None:
    staging = target.parent / f".writing-{target.name}-{os.getpid()}"
    staging.write_text(text, encoding="utf-8")
    staging.replace(target)


def _holds(target: Path, rows: pl.DataFrame) -> bool:
    if [found.name for found in target.glob("*.parquet")] != [PART]:
        return False
    try:
        return pl.read_parquet(target / PART, hive_partitioning=False).equals(rows)
    except (pl.exceptions.PolarsError, OSError):
        return False
