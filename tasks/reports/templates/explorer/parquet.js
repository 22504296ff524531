// A small Parquet file of columns: one row group, one page a column, PLAIN, not compressed.
// Its structs (parquet.thrift of the Parquet format) are written in Thrift's compact protocol.
const parquet = (() => {
  const INT32 = 1, DOUBLE = 5, BYTES = 6, UTF8 = 0, DATE = 6;
  const I32 = 5, I64 = 6, TEXT = 8, LIST = 9, STRUCT = 12;
  const utf8 = (text) => new TextEncoder().encode(text);
  const joined = (parts) => {
    const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of parts) {
      bytes.set(part, at);
      at += part.length;
    }
    return bytes;
  };
  const varint = (n) => {
    const bytes = [];
    for (; n > 127; n = Math.floor(n / 128)) bytes.push((n % 128) + 128);
    return [...bytes, n];
  };
  const number = (n) => Uint8Array.from(varint(n * 2)); // zigzag; none is negative
  const word = (text) => joined([Uint8Array.from(varint(utf8(text).length)), utf8(text)]);

  // A struct of fields [id, type, bytes], ids rising by less than 16.
  const struct = (...fields) => {
    const parts = [];
    let before = 0;
    for (const [id, type, bytes] of fields) {
      parts.push(Uint8Array.of(((id - before) << 4) | type), bytes);
      before = id;
    }
    return joined([...parts, Uint8Array.of(0)]);
  };
  const i32 = (id, n) => [id, I32, number(n)];
  const i64 = (id, n) => [id, I64, number(n)];
  const text = (id, value) => [id, TEXT, word(value)];
  const inner = (id, bytes) => [id, STRUCT, bytes];
  const listOf = (id, type, items) => {
    const head = items.length < 15 ? [(items.length << 4) | type] : [0xf0 | type, ...varint(items.length)];
    return [id, LIST, joined([Uint8Array.from(head), ...items])];
  };

  // The bytes of the values of a column that are known.
  const plainValues = (column, values) => {
    if (column.type === BYTES) {
      return joined(values.flatMap((value) => {
        const bytes = utf8(value);
        return [new Uint8Array(Uint32Array.of(bytes.length).buffer), bytes];
      }));
    }
    return new Uint8Array((column.type === INT32 ? Int32Array : Float64Array).from(values).buffer);
  };
  // Which rows are known, a bit each in one packed run; none for a column that knows all.
  const levelsOf = (values) => {
    const groups = Math.ceil(values.length / 8), bits = new Uint8Array(groups);
    values.forEach((value, n) => { if (value !== null) bits[n >> 3] |= 1 << (n & 7); });
    const run = joined([Uint8Array.from(varint(groups * 2 + 1)), bits]);
    return joined([new Uint8Array(Uint32Array.of(run.length).buffer), run]);
  };

  // columns: name, type (INT32, DOUBLE, BYTES), converted (or undefined), optional, values (null where not known).
  const parquetOf = (columns) => {
    const rows = columns[0].values.length, parts = [utf8("PAR1")], chunks = [];
    let at = 4;
    for (const column of columns) {
      const values = plainValues(column, column.values.filter((value) => value !== null));
      const data = column.optional ? joined([levelsOf(column.values), values]) : values;
      const head = struct(i32(1, 0), i32(2, data.length), i32(3, data.length), inner(5, struct(i32(1, rows), i32(2, 0), i32(3, 3), i32(4, 3))));
      const size = head.length + data.length;
      parts.push(head, data);
      const meta = struct(i32(1, column.type), listOf(2, I32, [number(0), number(3)]), listOf(3, TEXT, [word(column.name)]), i32(4, 0), i64(5, rows), i64(6, size), i64(7, size), i64(9, at));
      chunks.push(struct(i64(2, at), inner(3, meta)));
      at += size;
    }
    const schema = [struct(text(4, "rows"), i32(5, columns.length)), ...columns.map((column) => struct(
      i32(1, column.type), i32(3, column.optional ? 1 : 0), text(4, column.name),
      ...(column.converted === undefined ? [] : [i32(6, column.converted)]),
    ))];
    const group = struct(listOf(1, STRUCT, chunks), i64(2, at - 4), i64(3, rows));
    const footer = struct(i32(1, 1), listOf(2, STRUCT, schema), i64(3, rows), listOf(4, STRUCT, [group]), text(6, "OptStream"));
    return joined([...parts, footer, new Uint8Array(Uint32Array.of(footer.length).buffer), utf8("PAR1")]);
  };
  return { parquetOf, INT32, DOUBLE, BYTES, UTF8, DATE };
})();
