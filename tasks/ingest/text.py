"""Text files as rows: lines are cut one by one, so that no line changes what another one says.

A field may be quoted, within its line. Separator and header are found from the columns' names; what stands
above the header is skipped.
"""

import codecs
import csv
import gzip
import io
import lzma
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain, pairwise, product
from typing import Any, TypeVar

import polars as pl

from optstream.storage.store import Location, StoreUrl
from tasks.config.fields import SINCE_EPOCH, stamp_expression
from tasks.ingest.formats import opened

SEPARATORS = ",;\t|"
LOOKED_AT = 2**16
"""Bytes in which the header is looked for."""
CHECKED_AT_ONCE = 2**20
HIGHEST_HEADER = 50
"""Lines above which it stands."""
LARGEST_TEXT = 2**30
"""Bytes of a packed text that is unpacked in memory, whatever size its archive states."""
STAMP = (
    r"^(?<year>[0-9]{4})-?(?<month>[0-9]{2})-?(?<day>[0-9]{2})"
    r"(?:(?:T| +)(?<hours>[0-9]{1,2}):?(?<minutes>[0-9]{2})"
    r"(?::?(?<seconds>[0-9]{2})(?:[.,](?<part>[0-9]{1,9}))?)?)?"
    r" ?(?<offset>[Zz]|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?)?(?<half>$.)?$"
)
"""A stamp by ISO 8601, which may end in an offset from UTC."""
INTERVAL = r"^(?:(?<start>.{8,}?:.*?) - .*|(?<day>[^:]{8,}?) - [^:]*)$"
"""Two stamps; a date and a clock time are none."""
DAY, MICROSECOND = 86_400, 10**6
MONTHS = {
    "jan": "01", "feb": "02", "mar": "03", "apr": "04", "may": "05", "jun": "06",
    "jul": "07", "aug": "08", "sep": "09", "oct": "10", "nov": "11", "dec": "12",
}  # fmt: skip
LINE, NO_SIGN = "line", "\x01"
GZIP, ZIP = b"\x1f\x8b", b"PK\x03\x04"
UNPACKING = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, ValueError, LookupError,
    RuntimeError, MemoryError,
)  # fmt: skip
"""Errors of archives that are damaged, encrypted, or packed in an unknown way."""
csv.field_size_limit(sys.maxsize)  # a long field is its own line's fault


T = TypeVar("T")
_CACHES: list[Any] = []


def once_a_request(function: Callable[..., T]) -> Callable[..., T]:
    """Keep what a function found, for a file of many days, until `forget`."""
    cached = lru_cache(maxsize=64)(function)
    _CACHES.append(cached)
    return cached


def forget() -> None:
    """Drop what was kept: files may change, and readings stay in memory no longer than needed."""
    for cached in _CACHES:
        cached.cache_clear()


@dataclass(frozen=True)
class TextForm:
    """What a text file's header says. names: its columns; places: the positions of those that are used.
    skipped: lines up to the header. is_utf8: whether all of it is, on disk, perhaps in gzip.
    """

    separator: str
    names: tuple[str, ...]
    places: tuple[tuple[str, int], ...]
    skipped: int
    is_utf8: bool

    def reading(self, columns: Sequence[str]) -> "TextForm":
        """Return the form by which these columns alone are read."""
        return replace(self, places=tuple((one, self.names.index(one)) for one in columns))


@once_a_request
def form_of(file: Location, columns: tuple[str, ...]) -> TextForm | None:
    """Return the form of a text file, None without these columns. Raises OSError."""
    text, is_utf8 = _beginning(file)
    lines = text.split("\n")[:HIGHEST_HEADER]
    for (number, line), sign in product(enumerate(lines, 1), SEPARATORS):
        names = _cut(line, sign)
        if all(names.count(one) == 1 for one in columns):
            places = tuple((one, names.index(one)) for one in columns)
            return TextForm(sign, tuple(names), places, number, is_utf8)
    return None


def header_of(file: Location) -> TextForm:
    """Return the form of a text file whose columns are not known: the first row of as many as the next, and
    as most below, or the only one. Its last name may be empty, where each line ends in a separator.
    """
    text, is_utf8 = _beginning(file)
    lines, found = text.split("\n")[:HIGHEST_HEADER], dict[TextForm, int]()
    for number, (line, after) in enumerate(pairwise([*lines, ""]), 1):
        sign = max(SEPARATORS, key=lambda one: len(_cut(line, one)))
        names = _cut(line, sign)
        is_above = len(names) == len(_cut(after, sign)) or "\n" not in text.strip()
        if len(names) > 1 and all(names[:-1]) and is_above:
            alike = sum(len(_cut(one, sign)) == len(names) for one in lines[number:])
            found[TextForm(sign, tuple(names), (), number, is_utf8)] = alike
    if not found:
        raise OSError("no header")
    return max(found, key=found.__getitem__)


def _cut(line: str, separator: str) -> list[str]:
    return [name.strip() for name in next(csv.reader([line.replace("\r", " ")], delimiter=separator), [])]


def _beginning(file: Location) -> tuple[str, bool]:
    with opened(file) as found, _in_plain_words():
        packing = found.read(len(ZIP))
        found.seek(0)
        if packing.startswith(ZIP):
            return _decoded(_content(file, LOOKED_AT)), False
        with gzip.open(found) if packing.startswith(GZIP) else nullcontext(found) as whole:
            head = whole.read(LOOKED_AT)
            return _decoded(head), not isinstance(file, StoreUrl) and _are_utf8(head, whole)


def _are_utf8(head: bytes, others: Any) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for part in chain([head], iter(partial(others.read, CHECKED_AT_ONCE), b"")):
            decoder.decode(part)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _decoded(content: bytes) -> str:
    """Return the text: UTF-16 by its mark, else each line by itself (Lemma 2c, docs/privacy.md)."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", "replace")
    return "\n".join(map(_line, content.removeprefix(codecs.BOM_UTF8).split(b"\n")))


def _line(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode("cp1252", "replace")


def _content(file: Location, most: int | None = None) -> bytes:
    """Return the first bytes of a text, of an archive those of its one member. Raises OSError where it has
    not one, or where its text is too large.
    """
    with opened(file) as found:
        content: bytes = found.read() if isinstance(file, StoreUrl) else found.readall()
    with _in_plain_words():
        if content.startswith(GZIP):
            with gzip.open(io.BytesIO(content)) as text:
                content = text.read(most or LARGEST_TEXT + 1)
        elif content.startswith(ZIP):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                (member,) = [
                    one
                    for one in archive.infolist()
                    if not (one.is_dir() or one.filename.startswith("__MACOSX/"))
                ]
                with archive.open(member) as text:
                    content = text.read(most or LARGEST_TEXT + 1)
        else:
            return content
        if len(content) > LARGEST_TEXT:
            raise OSError("it is too large")
        return content


@contextmanager
def _in_plain_words() -> Iterator[None]:
    """Raise OSError for a file that cannot be unpacked."""
    try:
        yield
    except UNPACKING as error:
        raise OSError("it cannot be unpacked") from error


def scan_text(file: Location, form: TextForm) -> pl.LazyFrame:
    """Return the used columns as text without spaces around it, null where it is empty."""
    source: Any = file if form.is_utf8 else _decoded(_content(file)).encode()
    lines = pl.scan_csv(
        source,
        separator=NO_SIGN,
        quote_char=None,
        has_header=False,
        schema={LINE: pl.String},
        skip_lines=form.skipped,
        extra_columns="ignore",
        encoding="utf8-lossy",
        glob=False,
        raise_if_empty=False,
    ).filter(pl.col(LINE).is_not_null())
    kind = pl.Struct(dict.fromkeys((name for name, _ in form.places), pl.String))

    def cut(lines: pl.Series) -> pl.Series:
        fields = lines.str.split(form.separator)
        found = {name: fields.list.get(place, null_on_oob=True) for name, place in form.places}
        quoted = lines.str.contains('"', literal=True).arg_true()
        if len(quoted):
            rows = [_cut(line, form.separator) for line in lines.gather(quoted)]
            for name, place in form.places:
                own = [row[place] if place < len(row) else None for row in rows]
                found[name] = found[name].scatter(quoted, pl.Series(own, dtype=pl.String))
        stripped = pl.DataFrame(found).with_columns(pl.all().str.strip_chars())
        return stripped.with_columns(pl.when(pl.all() != "").then(pl.all())).to_struct(lines.name)

    return lines.select(pl.col(LINE).map_batches(cut, return_dtype=kind, is_elementwise=True)).unnest(LINE)


@once_a_request
def lines_of(file: Location, form: TextForm) -> int:
    """Return how many lines with something in them lie below the header."""
    return int(scan_text(file, form).select(pl.len()).collect(engine="streaming").item())


@once_a_request
def is_zoned(file: Location, form: TextForm, stamp_columns: tuple[str, ...], written: str | None) -> bool:
    """Whether the first stamp of a text has an offset: then those of sums all need one."""
    if written == SINCE_EPOCH:
        return True
    parts = _parts(pl.concat_str(stamp_columns, separator=" "), written).struct.field("year", "offset")
    known = scan_text(file, form).select(parts).filter(pl.col("year").is_not_null())
    first = known.head(1).collect(engine="streaming")
    return first["offset"].null_count() < first.height


def _parts(stamps: pl.Expr, written: str | None) -> pl.Expr:
    """The parts of stamps; of an interval "… - …" those of its start."""
    if written is None or " - " not in written:
        stamps = stamps.str.replace(INTERVAL, "${start}${day}")
    return stamps.str.extract_groups(STAMP if written is None else stamp_expression(written))


def some_match(texts: pl.Series, written: str | None) -> bool:
    """Whether any text has the parts of a format, in a fraction of the time of `microseconds_of`."""
    expression = STAMP if written is None else stamp_expression(written)
    return bool((texts.str.contains(expression) | texts.str.contains(INTERVAL)).any())


def microseconds_of(stamps: pl.Expr, shifts: Mapping[bool, int], written: str | None = None) -> pl.Expr:
    """Return the microseconds from the epoch to stamps, shifted by whether they have an offset. written:
    their format, None for ISO 8601.

    Null for those without a shift, and for times that no clock shows; "24:00" is the next day's start.
    """
    if written == SINCE_EPOCH:
        digits = stamps.str.extract(stamp_expression(written))
        padded = digits.str.pad_end(19, "0").cast(pl.Int64, strict=False) // 1000
        return padded + pl.lit(shifts.get(True), pl.Int64)
    parts = _parts(stamps, written)

    def number(name: str) -> pl.Expr:
        return parts.struct.field(name).cast(pl.Int64, strict=False).fill_null(0)

    month, half = parts.struct.field("month"), parts.struct.field("half").str.to_lowercase()
    month = month if written is None else month.str.to_lowercase().str.slice(0, 3).replace(MONTHS)
    year = parts.struct.field("year").str.replace(r"^(..)$", "20$1")
    date = pl.concat_str([year, month.str.zfill(2), parts.struct.field("day").str.zfill(2)])
    days = date.str.to_date("%Y%m%d", strict=False).cast(pl.Int32).cast(pl.Int64)
    hours, minutes, seconds = number("hours"), number("minutes"), number("seconds")
    if written is not None:  # 12 AM is 0, 13 PM nothing
        of_half = pl.when(hours.is_between(1, 12)).then(hours % 12 + (half == "pm").cast(pl.Int64) * 12)
        hours = pl.when(half.is_null()).then(hours).otherwise(of_half)
    part = parts.struct.field("part").str.pad_end(9, "0").cast(pl.Int64, strict=False).fill_null(0) // 1000
    offset = parts.struct.field("offset")
    sign = pl.when(offset.str.starts_with("-")).then(-1).otherwise(1)
    away = offset.str.replace_all(r"[^0-9]", "").str.pad_end(4, "0").cast(pl.Int64, strict=False).fill_null(0)
    since = (hours * 60 + minutes - sign * (away // 100 * 60 + away % 100)) * 60 + seconds
    last = (hours == 24) & (minutes == 0) & (seconds == 0) & (part == 0)
    is_time = ((hours < 24) | last) & (minutes < 60) & (seconds < 60)
    whole = (days * DAY + since) * MICROSECOND + part
    own = (pl.lit(shifts.get(zoned), pl.Int64) for zoned in (False, True))
    return pl.when(is_time).then(whole + pl.when(offset.is_null()).then(next(own)).otherwise(next(own)))
