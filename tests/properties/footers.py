"""A Parquet footer in Thrift's compact protocol, taken apart and put together so that it can lie."""

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from tests.properties.damage import NUMBERS, names

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
INTEGERS = (I16, I32, I64)
N_ROWS, ROW_GROUPS, KEY_VALUES = 3, 4, 5
"""Fields of FileMetaData."""
GROUP_COLUMNS, GROUP_ROWS = 1, 3
"""Fields of RowGroup."""
COLUMN_METADATA, COLUMN_VALUES = 3, 5
"""Field of ColumnChunk, and of ColumnMetaData."""

Struct = dict[int, tuple[int, Any]]


def split(file: bytes) -> tuple[bytes, Struct]:
    """What stands before the footer, and the footer."""
    length = int.from_bytes(file[-8:-4], "little")
    footer, _ = _read(file[-8 - length : -8], 0, STRUCT)
    return file[: -8 - length], footer


def join(body: bytes, footer: Struct) -> bytes:
    """The file again, its footer's length as it is."""
    written = _write(STRUCT, footer)
    return body + written + len(written).to_bytes(4, "little") + b"PAR1"


def places(content: Any, kind: int = STRUCT) -> Iterator[tuple[Any, Any, int]]:
    """Every number, text and list below: the container that holds it, its key there, and its kind."""
    if kind == STRUCT:
        for number, (inner, value) in content.items():
            if inner != STRUCT:
                yield content, number, inner
            yield from places(value, inner)
    elif kind in (LIST, SET):
        inner, values = content
        for index, value in enumerate(values):
            if inner != STRUCT:
                yield values, index, inner
            yield from places(value, inner)


def put(container: Any, key: Any, kind: int, value: Any) -> None:
    container[key] = (kind, value) if isinstance(container, dict) else value


def _read(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in (TRUE, FALSE):
        return kind == TRUE, at
    if kind == BYTE:
        return data[at], at + 1
    if kind in INTEGERS:
        number, at = _read_number(data, at)
        return (number >> 1) ^ -(number & 1), at
    if kind == DOUBLE:
        return data[at : at + 8], at + 8
    if kind == BINARY:
        length, at = _read_number(data, at)
        return data[at : at + length], at + length
    if kind in (LIST, SET):
        length, inner, at = data[at] >> 4, data[at] & 15, at + 1
        if length == 15:
            length, at = _read_number(data, at)
        values = []
        for _ in range(length):
            value, at = (data[at] == TRUE, at + 1) if inner in (TRUE, FALSE) else _read(data, at, inner)
            values.append(value)
        return (inner, values), at
    assert kind == STRUCT, "Parquet's footer has no maps"
    fields: Struct = {}
    number = 0
    while data[at]:
        inner, step, at = data[at] & 15, data[at] >> 4, at + 1
        number, at = (number + step, at) if step else _read(data, at, I16)
        value, at = _read(data, at, inner)
        fields[number] = (inner, value)
    return fields, at + 1


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while data[at] >= 128:
        number |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
    return number | data[at] << shift, at + 1


def _write(kind: int, value: Any) -> bytes:
    if kind in (TRUE, FALSE):
        return b""
    if kind == BYTE:
        return bytes([value])
    if kind in INTEGERS:
        return _write_number((value << 1) ^ (value >> 63))
    if kind == DOUBLE:
        return bytes(value)
    if kind == BINARY:
        return _write_number(len(value)) + value
    if kind in (LIST, SET):
        inner, values = value
        head = bytes([min(len(values), 15) << 4 | inner])
        head += b"" if len(values) < 15 else _write_number(len(values))
        if inner in (TRUE, FALSE):
            return head + bytes(TRUE if entry else FALSE for entry in values)
        return head + b"".join(_write(inner, entry) for entry in values)
    written = b""
    for number, (inner, content) in sorted(value.items()):
        kept = (TRUE if content else FALSE) if inner in (TRUE, FALSE) else inner
        written += bytes([kept]) + _write(I16, number) + _write(inner, content)
    return written + b"\0"


def _write_number(number: int) -> bytes:
    number &= 2**64 - 1
    written = b""
    while number >= 128:
        written += bytes([number & 127 | 128])
        number >>= 7
    return written + bytes([number])


TEXT = st.one_of(names().map(lambda text: text.encode("utf-8", "replace")), st.binary(max_size=10))


@st.composite
def lying(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """The file with one to three numbers or texts of its footer changed, or a list of it repeated."""
    body, footer = split(draw(whole))
    footer = copy.deepcopy(footer)
    for _ in range(draw(st.integers(1, 3))):
        container, key, kind = draw(st.sampled_from(list(places(footer))))
        old = container[key][1] if isinstance(container, dict) else container[key]
        if kind in INTEGERS or kind == BYTE:
            number = draw(st.one_of(st.integers(0, 8), st.sampled_from(NUMBERS)))
            new = number & 255 if kind == BYTE else number
        elif kind == BINARY:
            new = draw(TEXT)
        elif kind == LIST:
            new = old[0], old[1] * draw(st.sampled_from([0, 2, 3, 50]))
        else:
            if isinstance(container, dict) and draw(st.booleans()):
                del container[key]
            continue
        put(container, key, kind, new)
    return join(body, footer)
