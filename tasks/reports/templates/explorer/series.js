// From figures to what is plotted: steps, means, sums, their bands, and numbers as people read them.
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const MEASURES = {
  steps: { title: "Step by step", width: 28, least: 0.25, most: 100 },
  means: { title: "Daily means", width: 366, least: 3, most: Infinity },
  daily: { title: "Daily sums", width: 366, least: 3, most: Infinity },
  weekly: { title: "Weekly sums", width: 1100, least: 21, most: Infinity },
  monthly: { title: "Monthly sums", width: Infinity, least: 92, most: Infinity },
};

const dateOf = (store, day) => new Date((store.first + Math.floor(day)) * DAY);
const isoOf = (store, day) => dateOf(store, day).toISOString().slice(0, 10);
const inWords = (date) => `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()}`;

// Four digits, or the whole number if it has more; a dash for what is not known.
const shown = (value) => {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const digits = size >= 1000 || size === 0 ? 0 : Math.max(0, Math.min(6, 3 - Math.floor(Math.log10(size))));
  const [whole, rest] = value.toFixed(digits).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  const kept = (rest || "").replace(/0+$/, "");
  return (kept ? `${grouped}.${kept}` : grouped).replace(/^-/, "−");
};

// Round numbers that hold [low, high] between the first and the last.
const ticks = (low, high, most = 5) => {
  if (!(high > low)) [low, high] = [low - Math.max(1, Math.abs(low) / 2), high + Math.max(1, Math.abs(high) / 2)];
  const rough = (high - low) / (most - 1), unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * unit).find((one) => one >= rough * (1 - 1e-9));
  const start = Math.floor(low / step + 1e-9), stop = Math.ceil(high / step - 1e-9);
  return Array.from({ length: stop - start + 1 }, (_, n) => (start + n) * step);
};

// Stretches of days [start, stop): days, weeks from Monday, or months, that lie in the span as a whole.
const periods = (store, kind) => {
  if (kind === "daily") return Array.from({ length: store.size }, (_, day) => [day, day + 1]);
  const found = [];
  for (let start = 0; start < store.size;) {
    const date = dateOf(store, start);
    const ago = kind === "weekly" ? (date.getUTCDay() + 6) % 7 : date.getUTCDate() - 1;
    const length = kind === "weekly" ? 7
      : new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate();
    const stop = start - ago + length;
    if (ago === 0 && stop <= store.size) found.push([start, stop]);
    start = stop;
  }
  return found;
};

// A sum of days, each a mean times its steps. The deviations of all steps added up are the most that the sum's
// own can be, whatever the correlation (Minkowski). A day that lacks a figure leaves the sum without it.
const sumOf = (store, columns, [start, stop]) => {
  const sums = { value: 0, noise: 0, model: 0 };
  for (let day = start; day < stop; day += 1) {
    const steps = store.index.steps[day] * store.index.sum_factor;
    for (const name of COLUMNS) sums[name] += steps ? columns[name][day] * steps : NaN;
  }
  return sums;
};

// A point: x in days from the first, width, value, noise, model (standard deviations), and where it is from.
const pointsOf = (store, node, measure, from, to) => {
  const points = []; // tens of thousands: each is one literal, which a spread would make thrice as dear
  const add = (x, width, value, noise, model, day, step = null) => points.push({ x, width, value, noise, model, day, step });
  if (measure === "steps") {
    for (let day = Math.max(0, Math.floor(from)); day < Math.min(store.size, Math.ceil(to)); day += 1) {
      const found = store.stepsOf(node, day);
      if (!found) continue;
      const { steps, at, columns: { value, noise, model } } = found;
      for (let step = 0; step < steps; step += 1) {
        const [sure, total] = [noise ? noise[at + step] : NaN, model ? model[at + step] : NaN];
        add(day + (step + 0.5) / steps, 1 / steps, value[at + step], sure, total, day, step);
      }
    }
    return points;
  }
  const columns = store.daysOf(node);
  if (measure === "means") {
    for (let day = Math.max(0, Math.floor(from)); day < Math.min(store.size, Math.ceil(to)); day += 1) {
      add(day + 0.5, 1, columns.value[day], columns.noise[day], columns.model[day], day);
    }
    return points;
  }
  for (const [start, stop] of periods(store, measure)) {
    if (stop <= from || start >= to) continue;
    const sum = sumOf(store, columns, [start, stop]);
    add((start + stop) / 2, stop - start, sum.value, sum.noise, sum.model, start);
  }
  return points;
};

const known = (points) => points.filter((point) => Number.isFinite(point.value));
const unitOf = (index, measure) => (measure === "steps" || measure === "means" ? index.unit : index.sum_unit);
const isSum = (measure) => !["steps", "means"].includes(measure);

// When a point is: a step by its clock where the day has its usual steps, by its number elsewhere.
const whenOf = (store, point, measure) => {
  const day = inWords(dateOf(store, point.day)), minutes = store.index.step_minutes;
  if (measure === "steps") {
    if (Math.round(1 / point.width) * minutes !== 1440) return `${day}, step ${point.step}`;
    const at = point.step * minutes, two = (n) => String(n).padStart(2, "0");
    return `${day}, ${two(Math.floor(at / 60))}:${two(at % 60)}`;
  }
  if (measure === "weekly") return `week from ${day}`;
  return measure === "monthly" ? day.slice(day.indexOf(" ") + 1) : day;
};

// What a level is called: the last one by the margin's name, where it is a margin.
const levelOf = (index, level) => (index.margin && level === index.nodes.at(-1)[3] ? index.margin : `level ${level}`);

const labelOf = (index, node) => {
  const [id, name] = index.nodes[node];
  return name && name !== id ? `${name} (${id})` : id;
};

const NAMES = { steps: ["", "noise_se", "se"], means: ["mean_", "noise_se_at_most", "se_at_most"] };
const quoted = (value) => (/[",\n\r]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
// A name that begins as a formula would run in a spreadsheet: it is led by an apostrophe.
const cell = (text) => quoted(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text);

// The rows of what is plotted; values as published, standard errors with their six digits.
const rowsOf = (store, nodes, measure, from, to) => nodes.flatMap((node) => {
  const [id, name] = store.index.nodes[node];
  return known(pointsOf(store, node, measure, from, to)).map((point) => ({
    date: isoOf(store, point.day), step: point.step, node: id, number: node, name: name || "", point,
  }));
});
// The columns of those rows, by the names that files of them have.
const tableOf = (store, nodes, measure, from, to) => {
  const [prefix, noise, model] = NAMES[measure] || [`${measure}_sum_`, "noise_se_at_most", "se_at_most"];
  const unit = unitOf(store.index, measure).toLowerCase(), own = store.index.value;
  const value = isSum(measure) && unit ? `${prefix}${store.index.quantity.replaceAll(" ", "_")}_${unit}` : prefix + own;
  const rows = rowsOf(store, nodes, measure, from, to), digits = measure === "steps" ? 0 : 15;
  const rounded = (number, most) => (Number.isFinite(number) ? (most ? Number(number.toPrecision(most)) : number) : null);
  return {
    date: rows.map((row) => row.date),
    ...(measure === "steps" ? { step: rows.map((row) => row.step) } : {}),
    node: rows.map((row) => row.node),
    name: rows.map((row) => row.name),
    [value]: rows.map((row) => rounded(row.point.value, digits)),
    [noise]: rows.map((row) => rounded(row.point.noise, 6)),
    [model]: rows.map((row) => rounded(row.point.model, 6)),
  };
};
const csvOf = (table) => {
  const names = Object.keys(table), text = (value) => (value === null ? "" : typeof value === "string" ? cell(value) : String(value));
  const lines = table.date.map((_, n) => names.map((name) => text(table[name][n])).join(","));
  return `${[names.join(","), ...lines].join("\r\n")}\r\n`;
};
const parquetOfTable = (table) => parquet.parquetOf(Object.entries(table).map(([name, values]) => {
  if (name === "date") return { name, type: parquet.INT32, converted: parquet.DATE, values: values.map((day) => Date.parse(day) / DAY) };
  if (name === "step") return { name, type: parquet.INT32, values };
  if (name === "node" || name === "name") return { name, type: parquet.BYTES, converted: parquet.UTF8, values };
  return { name, type: parquet.DOUBLE, optional: true, values };
}));
