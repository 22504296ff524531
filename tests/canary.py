"""The canary's search: recognisable numbers and words, in every form in which a program lets them slip.

`tests/secrets/test_canary_search.py` has all forms and wrappings, four of which may lie in one another.

Chance. A canary has 13 digits of its own, 43 bits. Among N of them a random 64-bit word hits with chance
N/2^64, a random number of 12 digits with N/10^12, two neighbouring float32 with N²/2^64 (one alone would hit
by chance, so it counts only in a typed column); of fewer digits only decimal fractions of the canaries' own
size count, and those only in places that hold no noisy values. With N = 500 and 100 MB of random bytes the
first and third are below 1e-8; noise that gives back 12 digits of a reading has chance below 1e-8 a value.
"""

import base64
import bz2
import lzma
import re
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

DEPTH = 4
UNITS = 10**9
"""Units in 1: a canary is a whole number of them, of 13 digits."""
FEWEST, MOST = 7, 13
PLAIN = re.compile(rb"(?<![\d.])(\d{4,9}\.\d{3,})")
SCIENTIFIC = re.compile(rb"(?<![\d.])(\d\.\d{5,})[eE][+-]?\d")
LONG = re.compile(rb"\d[\d.]{11,}")
BASE64 = re.compile(rb"(?:[A-Za-z0-9+/_-]{8,}(?:\\n|\r?\n)?)+")
HEX = re.compile(rb"[0-9a-fA-F]{16,}")
LONG1 = b"\x8a\x06"
GROUPED = re.compile(
    rb"(?<![\d.])\d{1,3}(?:([,_'\xa0 ]|\xc2\xa0|\xe2\x80\xaf|\xe2\x80\x89)\d{3})(?:\1\d{3})*(?:[.,]\d+)?"
)
COMMA = re.compile(rb"(?<![\d.,])(\d{4,6}),(\d{3,})(?![\d,])")
WIDE = re.compile(rb"(?:[\x20-\x7e]\0{1,3}){6,}")
"""Text of two or four bytes a letter: UTF-16, and what NumPy keeps."""
ESCAPED = re.compile(rb"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})|%([0-9a-fA-F]{2})|&#(\d{1,3});")


class Search:
    """Looks for these canaries. units: of each number; hashes: plain digests, as bytes."""

    def __init__(self, units: Iterable[int], words: Iterable[str], hashes: Iterable[bytes] = ()) -> None:
        self.units = np.unique(np.array(list(units), dtype=np.int64))
        floats = self.units / UNITS
        self._words = [form for word in words for form in (word.encode(), word.encode("utf-16-le"))]
        self._hashes = frozenset(hashes)
        self._wide = {
            "int64": self.units,
            "float64": np.unique(floats.view(np.int64)),
            "negative int64": np.unique(-self.units),
            "negative float64": np.unique((-floats).view(np.int64)),
        }
        self._narrow = np.unique(floats.astype(np.float32))
        self._pickled = {int(unit).to_bytes(6, "little") for unit in self.units if unit < 2**47}
        self._digits: dict[int, set[str]] = {
            n: {text for unit in self.units for text in (str(unit)[:n], _rounded(int(unit), n))}
            for n in range(FEWEST, MOST + 1)
        }

    def file(self, path: Path, noisy: bool = False) -> set[str]:
        """The forms found in a file; a database is asked for its values as well."""
        found = self.bytes(path.read_bytes(), noisy)
        with path.open("rb") as file:
            is_database = file.read(16) == b"SQLite format 3\0"
        return found | (self._database(path, noisy) if is_database else set())

    def bytes(self, data: bytes, noisy: bool = False, depth: int = DEPTH) -> set[str]:
        """The forms found in bytes. noisy: values near the canaries are to be expected: 12 digits count."""
        found = set(self._plainly(data, noisy))
        if depth:
            for how, inner in filter(lambda pair: pair[1], self._inside(data)):
                found |= {f"{how} > {form}" for form in self.bytes(inner, noisy, depth - 1)}
        return found

    def _database(self, path: Path, noisy: bool) -> set[str]:
        found: set[str] = set()
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            database.text_factory = bytes
            tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for (table,) in tables:
                rows = database.execute(f'SELECT * FROM "{table.decode()}"').fetchall()
                values = [value for row in rows for value in row if value is not None]
                texts = [value if isinstance(value, bytes) else repr(value).encode() for value in values]
                found |= {f"table > {form}" for form in self.bytes(b"\n".join(texts), noisy)}
        return found

    def _plainly(self, data: bytes, noisy: bool) -> Iterator[str]:
        lower = data.lower()
        if any(word.lower() in lower for word in self._words):
            yield "word"
        if any(digest in data for digest in self._hashes):
            yield "plain hash"
        for form, pattern in (("decimal", PLAIN), ("scientific", SCIENTIFIC), ("digits", LONG)):
            fewest = 12 if noisy or form == "digits" else FEWEST
            if any(self._is_canary(token, fewest) for token in set(pattern.findall(data))):
                yield form
        yield from self._numbers(data)
        starts = (match.end() for match in re.finditer(re.escape(LONG1), data))
        if any(data[start : start + 6] in self._pickled for start in starts):
            yield "pickled integer"

    def _is_canary(self, token: bytes, fewest: int) -> bool:
        digits = token.replace(b".", b"").lstrip(b"0").decode()
        n = min(len(digits), MOST)
        return n >= fewest and digits[:n] in self._digits[n]

    def _numbers(self, data: bytes) -> Iterator[str]:
        for order, name in (("<", "little-endian"), (">", "big-endian")):
            for form, wanted in self._wide.items():
                if any(_has(data, start, f"{order}i8", wanted) for start in range(8)):
                    yield f"{form} {name}"
            if any(self._has_neighbours(_words(data, start, f"{order}f4")) for start in range(4)):
                yield f"float32 {name}"

    def _has_neighbours(self, values: "np.ndarray") -> bool:
        near = np.flatnonzero((values >= self._narrow[0]) & (values <= self._narrow[-1]))
        if len(near) < 2:
            return False
        hits = near[np.isin(values[near], self._narrow)]
        return bool(np.any(np.diff(hits) == 1))

    def _inside(self, data: bytes) -> Iterator[tuple[str, bytes]]:
        runs = {re.sub(rb"\\n|\s", b"", run) for run in set(BASE64.findall(data))}
        letters = sorted(run.translate(bytes.maketrans(b"-_", b"+/")) for run in runs)
        for start in range(4):
            yield "base64", b"\n".join(_from_base64(run[start:]) for run in letters)
        runs = sorted(set(HEX.findall(data)))
        for start in range(2):
            yield "hex", b"\n".join(bytes.fromhex(_even(run[start:]).decode()) for run in runs)
        yield "digits in groups", b"\n".join(_grouped(data))
        yield "wide text", b"\n".join(run.replace(b"\0", b"") for run in set(WIDE.findall(data)))
        if ESCAPED.search(data):
            yield "escapes", ESCAPED.sub(_unescaped, data)
        yield from _decompressed(data)
        yield from self._parquet(data)

    def _parquet(self, data: bytes) -> Iterator[tuple[str, bytes]]:
        for start, end in pairwise([match.start() for match in re.finditer(b"PAR1", data)]):
            try:
                file = pq.ParquetFile(pa.BufferReader(data[start : end + 4]))
                table = file.read()
            except (pa.ArrowException, OSError):
                continue
            yield "parquet footer", repr([file.metadata.to_dict(), file.metadata.metadata]).encode()
            for column in table.itercolumns():
                yield "parquet column", "\n".join(map(str, column.to_pylist())).encode()
                while pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
                    column = pa.chunked_array(column.combine_chunks().flatten())
                if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
                    values = column.drop_null().to_numpy()
                    yield "parquet column", values.tobytes()
                    if values.dtype == np.float32:
                        lone = values[np.isin(values, self._narrow)]
                        yield "parquet column", np.repeat(lone, 2).tobytes()


def _from_base64(run: bytes) -> bytes:
    return base64.b64decode(run + b"A" * (-len(run) % 4))


def _grouped(data: bytes) -> Iterator[bytes]:
    """Numbers as people write them, without the marks between thousands, and with a decimal point."""
    for match in GROUPED.finditer(data):
        whole, comma, rest = match[0].replace(match[1], b"").partition(b",")
        yield whole + (b"." if comma else b"") + rest
    for match in COMMA.finditer(data):
        yield match[1] + b"." + match[2]


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = int(match[4]) if match[4] else int(match[1] or match[2] or match[3], 16)
    return bytes([code]) if code < 256 else b"?"


def _even(run: bytes) -> bytes:
    return run[: len(run) // 2 * 2]


def _rounded(unit: int, n: int) -> str:
    scale = 10 ** (len(str(unit)) - n)
    return str((unit + scale // 2) // scale)


def _has(data: bytes, start: int, kind: str, wanted: "np.ndarray") -> bool:
    words = _words(data, start, kind)
    near = words[(words >= wanted[0]) & (words <= wanted[-1])]
    return len(near) > 0 and bool(np.isin(near, wanted).any())


def _words(data: bytes, start: int, kind: str) -> "np.ndarray":
    """The bytes from there on as numbers, as many as there are whole."""
    count = max(0, len(data) - start) // np.dtype(kind).itemsize
    return np.frombuffer(data, kind, offset=start, count=count) if count else np.empty(0, kind)


def _decompressed(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Whatever stands compressed anywhere in the bytes; garbage after a stream's end does not matter."""
    for codec, magic in {"zstd": b"\x28\xb5\x2f\xfd", "lz4": b"\x04\x22\x4d\x18"}.items():
        for match in re.finditer(re.escape(magic), data):
            yield codec, _streamed(data[match.start() :], codec)
    for name, magic, reader in (
        ("gzip", rb"\x1f\x8b\x08", lambda: zlib.decompressobj(31)),
        ("zlib", rb"\x78[\x01\x5e\x9c\xda]", zlib.decompressobj),
        ("bz2", rb"BZh[1-9]1AY&SY", bz2.BZ2Decompressor),
        ("xz", rb"\xfd7zXZ\x00", lzma.LZMADecompressor),
    ):
        for match in re.finditer(magic, data):
            with suppress(zlib.error, OSError, lzma.LZMAError, EOFError):
                yield name, reader().decompress(data[match.start() :])


def _streamed(data: bytes, codec: str) -> bytes:
    """What follows the stream's end is an error that takes the last read with it: then byte by byte."""
    content = b""
    for size in (2**12, 1):
        parts = [content]
        with suppress(pa.ArrowException, OSError):
            stream = pa.CompressedInputStream(pa.BufferReader(data), codec)
            stream.read(len(content))
            while part := stream.read(size):
                parts.append(part)
        content = b"".join(parts)
    return content
