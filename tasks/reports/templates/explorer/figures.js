// Figures: from bytes to typed arrays, out of the page itself or out of the files beside it.
const MAGIC = 0x4f534331;
const DAY = 86400000;

const bytesOf = (text) => {
  const raw = atob(text.trim()), bytes = new Uint8Array(raw.length);
  for (let n = 0; n < raw.length; n += 1) bytes[n] = raw.charCodeAt(n);
  return bytes.buffer;
};

// A file of figures; see tasks/reports/curves.py. Throws where the bytes are something else.
const parseFigures = (buffer) => {
  const view = new DataView(buffer);
  if (view.getUint32(0) !== MAGIC) throw new Error("no file of figures");
  const length = view.getUint32(4, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const offsets = [0];
  for (const steps of header.steps) offsets.push(offsets.at(-1) + (header.kind === "days" ? 1 : steps));
  const places = offsets.at(-1), columns = {};
  let at = 8 + length;
  for (const name of header.columns) {
    const kind = name === "value" ? Float64Array : Float32Array;
    columns[name] = new kind(buffer, at, header.count * places);
    at += columns[name].byteLength;
  }
  return { ...header, places, offsets, columns, from: Date.parse(header.first) / DAY };
};

const COLUMNS = ["value", "noise", "model"];
const unknown = (size) => ({
  value: new Float64Array(size).fill(NaN),
  noise: new Float32Array(size).fill(NaN),
  model: new Float32Array(size).fill(NaN),
});

// What can be looked at: index and names of files as the page has them; days and recent: parsed figures;
// load(name): a promise of bytes, or null where nothing can be loaded.
const makeStore = (index, files, days, recent, load) => {
  const first = Date.parse(index.first) / DAY, size = index.steps.length;
  const loaded = new Map(), lost = new Set(), waiting = new Map(), columnsOf = new Map();

  const covers = (figures, node) => node >= figures.start && node < figures.start + figures.count;
  const fill = (columns, figures, node) => {
    const shift = figures.from - first, row = (node - figures.start) * figures.places;
    for (const name of Object.keys(figures.columns)) {
      for (let n = 0; n < figures.places; n += 1) columns[name][shift + n] = figures.columns[name][row + n];
    }
  };

  // The means of all days of a node, NaN where they are not known, or not loaded yet.
  const daysOf = (node) => {
    if (!columnsOf.has(node)) {
      const columns = unknown(size);
      if (covers(days, node)) fill(columns, days, node);
      for (const figures of loaded.values()) {
        if (figures.kind === "days" && covers(figures, node)) fill(columns, figures, node);
      }
      columnsOf.set(node, columns);
    }
    return columnsOf.get(node);
  };

  const nameOf = (kind, key, node) => (files[kind][key] || [])[Math.floor(node / index.block)];
  const keyOf = (kind, day) => new Date((first + day) * DAY).toISOString().slice(0, kind === "days" ? 4 : 7);
  const isRecent = (node, day) => covers(recent, node) && first + day >= recent.from
    && first + day < recent.from + recent.steps.length;

  // The steps of a day: the figures that hold them and where; null where there are none, or not yet.
  const stepsOf = (node, day) => {
    const figures = isRecent(node, day) ? recent : loaded.get(nameOf("steps", keyOf("steps", day), node));
    if (!figures || !covers(figures, node)) return null;
    const number = first + day - figures.from, at = figures.offsets[number];
    const steps = figures.steps[number] || 0;
    return steps ? { columns: figures.columns, at: (node - figures.start) * figures.places + at, steps } : null;
  };

  // Names of the files that a view needs and that are not here.
  const needed = (nodes, bySteps, from, to) => {
    const names = new Set(), kind = bySteps ? "steps" : "days";
    for (const node of nodes) {
      if (!bySteps && covers(days, node)) continue;
      for (let day = Math.max(0, Math.floor(from)); day < Math.min(size, Math.ceil(to)); day += 1) {
        if (!index.steps[day] || (bySteps && isRecent(node, day))) continue;
        const name = nameOf(kind, keyOf(kind, day), node);
        if (name && !loaded.has(name)) names.add(name);
      }
    }
    return [...names];
  };

  const take = async (name) => {
    try {
      const figures = parseFigures(await load(name));
      loaded.set(name, figures);
      for (const [node, columns] of columnsOf) {
        if (figures.kind === "days" && covers(figures, node)) fill(columns, figures, node);
      }
    } catch {
      lost.add(name);
    }
    waiting.delete(name);
  };
  // Loads files of these names, each once; resolves when all have come, or are known to be lost.
  const fetchAll = (names) => Promise.all(names.filter((name) => !lost.has(name)).map((name) => {
    if (!waiting.has(name)) waiting.set(name, take(name));
    return waiting.get(name);
  }));

  return { index, first, size, daysOf, stepsOf, needed, fetchAll, lost, canLoad: load !== null };
};
