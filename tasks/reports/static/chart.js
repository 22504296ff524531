// One curve with its band, by uPlot, of the data that the page itself holds.
(() => {
  "use strict";
  const place = document.getElementById("chart"), readout = document.getElementById("chart-readout");
  const data = JSON.parse(document.getElementById("chart-data").textContent);
  const node = document.getElementById("chart-node"), span = document.getElementById("chart-span");
  data.nodes.forEach((name, number) => node.add(new Option(name, number)));
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const format = (value) => `${value.toLocaleString("en", { maximumSignificantDigits: 4 })}${data.unit ? ` ${data.unit}` : ""}`;
  const moment = (seconds) => new Date(1000 * seconds).toISOString().slice(0, span.value === "days" ? 10 : 16).replace("T", " ");
  const dayOf = (seconds) => new Date(1000 * seconds).toLocaleDateString("en-GB", { day: "numeric", month: "short", year: data.days.at.length > 366 ? "2-digit" : undefined, timeZone: "UTC" });
  let plot = null, at = [], values = [], errors = [], index = 0;
  const bound = (sign) => values.map((value, i) => {
    if (value === null || errors[i] === null) return null;
    const end = value + sign * data.z * errors[i];
    return data.least === null ? end : Math.max(end, data.least);
  });
  function say(number) {
    if (number == null || values[number] === null) return;
    const error = errors[number] === null ? "" : ` ± ${format(data.z * errors[number])}`;
    readout.textContent = `${moment(at[number])}: ${format(values[number])}${error}`;
  }
  function draw() {
    const own = data[span.value], dim = colour("--dim");
    at = own.at;
    values = own.values[node.value];
    errors = own.errors[node.value];
    const axis = { stroke: dim, grid: { stroke: colour("--grid"), width: 1 }, ticks: { stroke: colour("--rule"), width: 1 } };
    if (plot) plot.destroy();
    plot = new uPlot({
      width: place.clientWidth,
      height: 320,
      tzDate: (seconds) => uPlot.tzDate(new Date(1000 * seconds), "UTC"),
      legend: { show: false },
      cursor: { y: false },
      series: [{}, { stroke: "transparent" }, { stroke: "transparent" }, { stroke: colour("--line"), width: 1.5, points: { show: at.length < 3 } }],
      bands: [{ series: [2, 1], fill: colour("--band") }],
      axes: [{ ...axis, values: (_, ticks) => ticks.map((one, i) => (i && ticks[i] - ticks[i - 1] < 86400 ? moment(one).slice(11, 16) : dayOf(one))), space: 70 },
        { ...axis, size: 66, values: (_, ticks) => ticks.map((one) => one.toLocaleString("en")) }],
      hooks: { setCursor: [(one) => say(one.cursor.idx)] },
    }, [at, bound(-1), bound(1), values], place);
    const known = values.filter((value) => value !== null), name = data.nodes[node.value];
    const words = known.length ? `from ${format(Math.min(...known))} to ${format(Math.max(...known))}` : "nothing published";
    place.setAttribute("aria-label", `${data.quantity} of ${name}: ${words}; left and right arrow keys read it out`);
    readout.textContent = known.length ? `F${words.slice(1)}. Drag to zoom, double click to show all.` : "Nothing is published of it in this time.";
    index = at.length - 1;
    place.dataset.drawn = `${span.value} ${node.value}`;
  }
  place.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    index = Math.max(0, Math.min(at.length - 1, index + step));
    plot.setCursor({ left: plot.valToPos(at[index], "x"), top: 10 }, false);
    say(index);
    event.preventDefault();
  });
  document.getElementById("chart-whole").hidden = false;
  node.addEventListener("change", draw);
  span.addEventListener("change", draw);
  new ResizeObserver(() => plot && plot.setSize({ width: place.clientWidth, height: 320 })).observe(place);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
})();
