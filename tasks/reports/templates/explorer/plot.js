// The picture of a view on a canvas: axes with their unit, bands, lines; a value by itself is a dot.
const SPANS = [
  ...[1, 3, 6, 12].map((n) => ({ kind: "hours", n, days: n / 24 })),
  ...[1, 2, 7, 14].map((n) => ({ kind: "days", n, days: n })),
  ...[1, 3, 6].map((n) => ({ kind: "months", n, days: 30.4 * n })),
  ...[1, 2, 5, 10].map((n) => ({ kind: "years", n, days: 365.25 * n })),
];
const DASHES = [[], [], [], [], [7, 3], [7, 3], [2, 3], [2, 3]];

// Where the axis of time is marked, and with what.
const timeMarks = (store, [from, to], most) => {
  const span = SPANS.find((one) => (to - from) / one.days <= most) || SPANS.at(-1), marks = [];
  const dayText = (date) => `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
  if (span.kind === "hours" || span.kind === "days") {
    const monday = span.n >= 7 ? (8 - dateOf(store, 0).getUTCDay()) % 7 : 0;
    for (let n = Math.ceil((from - monday) / span.days - 1e-9); n * span.days + monday <= to + 1e-9; n += 1) {
      const x = n * span.days + monday, hour = Math.round((x - Math.floor(x + 1e-9)) * 24);
      marks.push({ x, text: hour ? `${String(hour).padStart(2, "0")}:00` : dayText(dateOf(store, x + 1e-9)) });
    }
    return marks;
  }
  const begin = dateOf(store, from), step = span.kind === "years" ? 12 * span.n : span.n;
  const start = begin.getUTCFullYear() * 12 + begin.getUTCMonth();
  for (let month = Math.floor(start / step) * step; ; month += step) {
    const x = Date.UTC(Math.floor(month / 12), month % 12, 1) / DAY - store.first;
    if (x > to) return marks;
    const name = span.kind === "years" ? "" : `${MONTHS[month % 12]} `;
    if (x >= from) marks.push({ x, text: name + Math.floor(month / 12) });
  }
};

// Runs of neighbouring points whose values are known.
const runsOf = (points) => {
  const runs = [];
  let before = null;
  for (const point of points) {
    if (!Number.isFinite(point.value)) { before = null; continue; }
    if (before && point.x - before.x < 1.2 * Math.max(point.width, before.width)) runs.at(-1).push(point);
    else runs.push([point]);
    before = point;
  }
  return runs;
};

// A run as columns of pixels: of many points in one column the last, and what they span.
const columnsOf = (run, xOf, deviation, least) => {
  const columns = [], dense = run.length > xOf(run.at(-1).x) - xOf(run[0].x) && run.length > 100;
  for (const point of run) {
    const x = dense ? Math.round(xOf(point.x)) : xOf(point.x);
    const wide = deviation(point), lower = Math.max(point.value - wide, least), upper = point.value + wide, last = columns.at(-1);
    if (last && last.x === x) {
      last.low = Math.min(last.low, point.value);
      last.high = Math.max(last.high, point.value);
      last.lower = Math.min(last.lower, lower);
      last.upper = Math.max(last.upper, upper);
      last.last = point.value;
    } else {
      columns.push({ x, last: point.value, low: point.value, high: point.value, lower, upper });
    }
  }
  return columns;
};

// The least and the most of what is seen, bands included.
const extentOf = (lines, deviation, least) => {
  let low = Infinity, high = -Infinity;
  for (const { points } of lines) {
    for (const point of points) {
      if (!Number.isFinite(point.value)) continue;
      const wide = deviation(point) || 0;
      low = Math.min(low, Math.max(point.value - wide, least));
      high = Math.max(high, point.value + wide);
    }
  }
  return low <= high ? [low, high] : [0, 1];
};

const nearest = (points, x) => {
  let found = null;
  for (const point of points) {
    if (Number.isFinite(point.value) && (!found || Math.abs(point.x - x) < Math.abs(found.x - x))) found = point;
  }
  return found && Math.abs(found.x - x) <= Math.max(found.width, 0.5) ? found : null;
};

// Draws; returns what turns pixels into days. picture: view, lines (points, colour, number), deviation, unit,
// least (below which nothing lies), reading (a day, or null), colours.
const draw = (canvas, store, picture) => {
  const ratio = window.devicePixelRatio || 1, wide = canvas.clientWidth, tall = canvas.clientHeight;
  if (canvas.width !== Math.round(wide * ratio)) canvas.width = Math.round(wide * ratio);
  if (canvas.height !== Math.round(tall * ratio)) canvas.height = Math.round(tall * ratio);
  const pen = canvas.getContext("2d"), { colours, deviation, least, lines } = picture, [from, to] = picture.view;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.fillStyle = colours.ground;
  pen.fillRect(0, 0, wide, tall);
  pen.font = `12px ${colours.font}`;
  const marks = ticks(...extentOf(lines, deviation, least), tall < 260 ? 4 : 6), labels = marks.map(shown);
  const left = 10 + Math.max(...labels.map((text) => pen.measureText(text).width));
  const box = { left, right: wide - 10, top: 26, bottom: tall - 26 };
  const xOf = (x) => box.left + ((x - from) / (to - from)) * (box.right - box.left);
  const yOf = (y) => box.bottom - ((y - marks[0]) / (marks.at(-1) - marks[0])) * (box.bottom - box.top);
  pen.lineWidth = 1;
  pen.strokeStyle = colours.grid;
  pen.fillStyle = colours.dim;
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  pen.beginPath();
  marks.forEach((mark, n) => {
    pen.moveTo(box.left, yOf(mark));
    pen.lineTo(box.right, yOf(mark));
    pen.fillText(labels[n], box.left - 6, yOf(mark));
  });
  pen.textAlign = "center";
  for (const mark of timeMarks(store, picture.view, Math.max(2, (box.right - box.left) / 90))) {
    pen.moveTo(xOf(mark.x), box.bottom);
    pen.lineTo(xOf(mark.x), box.bottom + 5);
    const half = pen.measureText(mark.text).width / 2;
    if (xOf(mark.x) - half >= 0 && xOf(mark.x) + half <= wide) pen.fillText(mark.text, xOf(mark.x), box.bottom + 15);
  }
  pen.stroke();
  pen.textAlign = "left";
  pen.fillText(picture.title, 4, 11);
  pen.save();
  pen.beginPath();
  pen.rect(box.left, box.top - 4, box.right - box.left, box.bottom - box.top + 8);
  pen.clip();
  const drawn = lines.map((line) => ({ ...line, runs: runsOf(line.points).map((run) => columnsOf(run, xOf, deviation, least)) }));
  for (const { runs, colour } of drawn) {
    pen.fillStyle = colour;
    pen.globalAlpha = 0.22;
    for (const run of runs.flatMap(stated)) band(pen, run, yOf);
  }
  pen.globalAlpha = 1;
  for (const { runs, colour, number } of drawn) trace(pen, runs, yOf, colour, DASHES[number % DASHES.length]);
  if (picture.reading !== null) {
    pen.strokeStyle = colours.dim;
    pen.setLineDash([]);
    pen.beginPath();
    pen.moveTo(xOf(picture.reading), box.top);
    pen.lineTo(xOf(picture.reading), box.bottom);
    pen.stroke();
  }
  pen.restore();
  return { dayAt: (x) => from + ((x - box.left) / (box.right - box.left)) * (to - from), daysIn: (pixels) => (pixels / (box.right - box.left)) * (to - from) };
};

// The parts of a run whose deviations are known.
const stated = (run) => {
  const parts = [];
  let inside = false;
  for (const column of run) {
    const known = Number.isFinite(column.lower);
    if (known && !inside) parts.push([]);
    if (known) parts.at(-1).push(column);
    inside = known;
  }
  return parts;
};

const band = (pen, columns, yOf) => {
  if (columns.length === 1) {
    const [{ x, lower, upper }] = columns;
    pen.fillRect(x - 3, yOf(upper), 6, yOf(lower) - yOf(upper));
    return;
  }
  pen.beginPath();
  for (const { x, upper } of columns) pen.lineTo(x, yOf(upper));
  for (const { x, lower } of columns.toReversed()) pen.lineTo(x, yOf(lower));
  pen.fill();
};

const trace = (pen, runs, yOf, colour, dash) => {
  pen.strokeStyle = colour;
  pen.fillStyle = colour;
  pen.lineWidth = 1.8;
  pen.lineJoin = "bevel";
  pen.setLineDash(dash);
  const few = runs.reduce((sum, run) => sum + run.length, 0) <= 60;
  for (const run of runs) {
    pen.beginPath();
    for (const { x, low, high } of run) {
      pen.lineTo(x, yOf(low));
      if (low !== high) pen.lineTo(x, yOf(high));
    }
    pen.stroke();
    if (run.length > 1 && !few) continue;
    for (const { x, last } of run) {
      pen.beginPath();
      pen.arc(x, yOf(last), 3, 0, 2 * Math.PI);
      pen.fill();
    }
  }
};
