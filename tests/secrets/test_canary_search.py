"""The search itself: a planted leak is found in each form and in each wrapping, and nothing else is."""

import base64
import bz2
import gzip
import hashlib
import json
import lzma
import random
import sqlite3
import struct
import zlib

import cloudpickle
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from tests.canary import UNITS, Search

UNIT, OTHER = 7_318_264_951_837, 5_123_456_789_123
NUMBER = UNIT / UNITS
WORD = "Kq7Zx9-kanarek"
DIGEST = hashlib.sha256(b"a dump").digest()
SEARCH = Search([UNIT, OTHER], [WORD], [DIGEST])
SOMETHING = random.Random(1).randbytes(501)

FORMS = {
    "decimal": (b"value 7318.264951837 MW", "decimal"),
    "decimal of a float": (repr(NUMBER).encode(), "decimal"),
    "decimal as polars prints it": (str(pl.Series([NUMBER])).encode(), "decimal"),
    "decimal as numpy prints it": (str(np.array([NUMBER])).encode(), "decimal"),
    "decimal of 7 digits": (b"7318.265", "decimal"),
    "scientific": (f"{NUMBER:.12e}".encode(), "scientific"),
    "scientific of 7 digits": (f"{NUMBER:e}".encode(), "scientific"),
    "decimal in another unit": (f"{NUMBER * 1000:.3f}".encode(), "decimal"),
    "decimal with marks between thousands": (f"{NUMBER:,.6f}".encode(), "decimal"),
    "decimal with narrow spaces": (f"{NUMBER:,.6f}".replace(",", "\u202f").encode(), "decimal"),
    "decimal comma": (f"{NUMBER:.6f}".replace(".", ",").encode(), "decimal"),
    "decimal comma after spaces": (b"7 318,264951", "decimal"),
    "decimal in UTF-16": (repr(NUMBER).encode("utf-16-le"), "decimal"),
    "units with marks between thousands": (f"{UNIT:,}".encode(), "digits"),
    "units as text": (str(UNIT).encode(), "digits"),
    "int64": (struct.pack("<q", UNIT), "int64 little-endian"),
    "int64 big-endian": (struct.pack(">q", UNIT), "int64 big-endian"),
    "float64": (struct.pack("<d", NUMBER), "float64 little-endian"),
    "float64 big-endian": (struct.pack(">d", NUMBER), "float64 big-endian"),
    "negative int64": (struct.pack("<q", -UNIT), "negative int64 little-endian"),
    "negative float64": (struct.pack("<d", -NUMBER), "negative float64 little-endian"),
    "float32 big-endian": (struct.pack(">2f", NUMBER, OTHER / UNITS), "float32 big-endian"),
    "float32": (struct.pack("<2f", NUMBER, OTHER / UNITS), "float32 little-endian"),
    "cloudpickle of a float": (cloudpickle.dumps({"x": NUMBER}), "float64 big-endian"),
    "cloudpickle of an integer": (cloudpickle.dumps([UNIT]), "pickled integer"),
    "cloudpickle of an array": (cloudpickle.dumps(np.array([1.0, NUMBER])), "float64 little-endian"),
    "cloudpickle of a frame": (cloudpickle.dumps(pl.DataFrame({"x": [NUMBER]})), "float64 little-endian"),
    "word": (WORD.encode(), "word"),
    "word in capitals": (WORD.upper().encode(), "word"),
    "word in UTF-16": (WORD.encode("utf-16-le"), "word"),
    "word in a pickled array": (cloudpickle.dumps(np.array([WORD])), "word"),
    "word escaped in JSON": ("".join(f"\\u{ord(letter):04x}" for letter in WORD).encode(), "word"),
    "word escaped in HTML": ("".join(f"&#{ord(letter)};" for letter in WORD).encode(), "word"),
    "float64 as Python prints bytes": (repr(struct.pack("<d", NUMBER)).encode(), "float64 little-endian"),
    "plain hash": (DIGEST, "plain hash"),
}


def parquet(codec, **columns):
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(pa.table(columns or {"x": [1.0, NUMBER]}), sink, compression=codec)
    return sink.getvalue().to_pybytes()


def framed(codec, data):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


WRAPPINGS = {
    "as it is": lambda leak: leak,
    "base64": base64.b64encode,
    "base64 in lines, in JSON": lambda leak: json.dumps(base64.encodebytes(leak * 9).decode()).encode(),
    "base64 for URLs": base64.urlsafe_b64encode,
    "base64 after other letters": lambda leak: b"xyz" + base64.b64encode(leak),
    "hex": lambda leak: leak.hex().encode(),
    "hex in capitals, half a byte off": lambda leak: b"F" + leak.hex().upper().encode(),
    "zstd": lambda leak: framed("zstd", leak * 3),
    "lz4": lambda leak: framed("lz4", leak * 3),
    "gzip": gzip.compress,
    "zlib": zlib.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "parquet, zstd": lambda leak: parquet("zstd", x=pa.array([leak * 2] * 3, pa.binary())),
    "parquet, snappy": lambda leak: parquet("snappy", x=pa.array([leak * 2] * 3, pa.binary())),
    "zstd in base64": lambda leak: base64.b64encode(framed("zstd", leak)),
    "a pickle, as base64 in JSON": lambda leak: json.dumps(
        {"result": base64.encodebytes(cloudpickle.dumps(leak)).decode()}
    ).encode(),
    "hex in gzip in base64": lambda leak: base64.b64encode(gzip.compress(leak.hex().encode())),
}


# Every form in the plainest wrappings, every wrapping around a text, a number and a pickle.
FEW_FORMS = ("decimal", "float64", "cloudpickle of a float")
FEW_WRAPPINGS = ("as it is", "base64", "hex", "zstd", "parquet, snappy")


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_a_planted_leak_is_found(wrapping):
    for form in FORMS if wrapping in FEW_WRAPPINGS else FEW_FORMS:
        leak, name = FORMS[form]
        planted = SOMETHING + b"\n" + WRAPPINGS[wrapping](b" " + leak + b" ") + b"\n" + SOMETHING
        found = SEARCH.bytes(planted)
        assert any(one.split(" > ")[-1] == name for one in found), (form, found)


@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "lz4", "none"])
@pytest.mark.parametrize(
    "column",
    [
        pa.array([1.0, NUMBER]),
        pa.array([1.0, NUMBER], pa.float32()),
        pa.array([1, UNIT]),
        pa.array([str(UNIT)]),
        pa.array([WORD]),
        pa.array([NUMBER] * 5000),
        pa.array([[NUMBER, 1.0]] * 20, pa.list_(pa.float32())),
    ],
)
def test_typed_columns_are_read_whatever_their_codec_and_encoding(codec, column):
    assert any(found.startswith("parquet column") for found in SEARCH.bytes(parquet(codec, x=column)))


def test_footers_are_read():
    sink = pa.BufferOutputStream()
    table = pa.table({"x": [0.0]}).replace_schema_metadata({"mean": f"{NUMBER:.4f}"})
    pa.parquet.write_table(table, sink)
    assert "parquet footer > decimal" in SEARCH.bytes(sink.getvalue().to_pybytes())


def test_a_database_is_asked_for_its_values_also_where_a_page_ends_in_the_middle_of_one(tmp_path):
    path = tmp_path / "x.db"
    for value in (NUMBER, UNIT, "x" * 4060 + WORD + "x" * 5000, struct.pack("<d", NUMBER)):
        path.unlink(missing_ok=True)
        database = sqlite3.connect(path)
        database.execute("CREATE TABLE leak (value)")
        assert SEARCH.file(path) == set()
        database.execute("INSERT INTO leak VALUES (?)", [value])
        database.commit()
        database.close()
        assert any(found.startswith("table > ") for found in SEARCH.file(path)), value
