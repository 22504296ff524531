// The curve of a node by uPlot; lines come from the same server as JSON. Read it with arrow keys, or drag.
(async () => {
  const place = document.getElementById("curve"), readout = document.getElementById("readout");
  if (!place) return;
  const answer = await fetch(place.dataset.src, { credentials: "same-origin" });
  if (!answer.ok) { readout.textContent = `The figures cannot be read: the server answered ${answer.status}.`; return; }
  const { at, series } = await answer.json();
  if (!at.length) { place.hidden = true; readout.textContent = "Nothing is published on these days."; return; }
  const boxes = [...document.querySelectorAll(".shown input")];
  const wanted = () => new Set(boxes.filter((one) => one.checked).map((one) => one.name));
  const kind = (one) => one.kind.replace(/-(low|high)$/, "");
  for (const box of boxes) box.disabled = !series.some((one) => kind(one) === box.name);
  const bands = boxes.filter((one) => one.name === "error" || one.name === "noise");
  const known = ["error", "noise"].find((name) => bands.some((one) => one.name === name && !one.disabled));
  for (const box of bands) box.checked = box.name === known; // all errors where they are known
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const unit = place.dataset.unit ? ` ${place.dataset.unit}` : "";
  const format = (value) => value == null ? "–" : value.toLocaleString("en", { maximumSignificantDigits: 4 }) + unit;
  const stacked = (own) => {
    let below = at.map(() => 0);
    return own.map((one) => one.kind === "child" ? below = below.map((sum, i) => sum + one.values[i]) : one.values);
  };
  const zone = place.dataset.zone;
  const clock = new Intl.DateTimeFormat("sv", { timeZone: zone, dateStyle: "short", timeStyle: "short" }); // 2016-06-02 23:30
  const offset = new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "longOffset" });
  const local = (seconds) => clock.format(new Date(1000 * seconds));
  // "+02:00": the same clock time comes twice in autumn
  const offsetAt = (seconds) => offset.formatToParts(new Date(1000 * seconds)).find((one) => one.type === "timeZoneName").value.replace("GMT", "") || "+00:00";
  const axisTimes = (_, ticks) => {
    const part = ticks[ticks.length - 1] - ticks[0] > 3 * 86400 ? [5, 10] : [11, 16];
    const names = ticks.map((one) => local(one).slice(...part));
    return names.map((name, i) => (name === names[i - 1] ? "" : name)); // of several a day the first
  };
  let plot = null;
  function say(index) {
    if (index == null) return;
    const shown = wanted();
    const parts = series.filter((one) => one.kind === "value" || shown.has(kind(one)))
      .map((one) => `${one.label} ${format(one.values[index])}`);
    readout.textContent = `${local(at[index])} ${offsetAt(at[index])}: ${parts.join("; ")}`;
  }
  function draw() {
    const shown = wanted(), line = colour("--line"), dim = colour("--dim"), rule = colour("--rule");
    const chosen = series.filter((one) => one.kind === "value" || shown.has(kind(one)));
    const children = chosen.filter((one) => one.kind === "child");
    const own = [/^child/, /^error/, /^noise/, /before|replaced/, /^value/] // from the back to the front
      .flatMap((layer) => chosen.filter((one) => layer.test(one.kind)));
    const stroke = { value: line, "day-before": dim, "week-before": colour("--warn"), replaced: colour("--bad"), child: colour("--good") };
    const areas = [colour("--good-bg"), colour("--calm-bg")];
    const lines = own.map((one) => ({
      label: one.label,
      stroke: stroke[one.kind] || "transparent",
      width: one.kind === "value" ? 2 : 1,
      fill: one === children[0] ? areas[0] : undefined,
      dash: { replaced: [2, 3], "day-before": [4, 4], "week-before": [4, 4] }[one.kind],
      points: { show: at.length < 3 },
    }));
    const filled = [];
    own.forEach((one, i) => {
      if (one.kind.endsWith("-low")) filled.push({ series: [i + 2, i + 1], fill: one.kind.startsWith("noise") ? colour("--band") : rule });
      if (one.kind === "child" && i > 0) filled.push({ series: [i + 1, i], fill: areas[i % 2] });
    });
    // areas are compared by their height, so they stand on 0
    const range = (_, low, high) => uPlot.rangeNum(children.length ? Math.min(0, low) : low, high, 0.1, true);
    const axis = { stroke: dim, grid: { stroke: colour("--grid"), width: 1 }, ticks: { stroke: rule, width: 1 } };
    if (plot) plot.destroy();
    plot = new uPlot({
      width: place.clientWidth,
      height: 320,
      tzDate: (seconds) => uPlot.tzDate(new Date(1000 * seconds), zone),
      legend: { show: false },
      cursor: { y: false },
      series: [{}, ...lines],
      bands: filled,
      scales: { y: { range } },
      axes: [{ ...axis, values: axisTimes }, { ...axis, size: 70, label: place.dataset.unit || undefined, labelSize: 20, labelFont: "12px sans-serif", values: (_, ticks) => ticks.map((one) => one.toLocaleString("en")) }],
      hooks: { setCursor: [(one) => say(one.cursor.idx)] },
    }, [at, ...stacked(own)], place);
  }
  const zoom = (factor) => {
    const { min, max } = plot.scales.x, middle = (min + max) / 2, half = (max - min) * factor / 2;
    plot.setScale("x", { min: Math.max(at[0], middle - half), max: Math.min(at[at.length - 1], middle + half) });
  };
  let index = at.length - 1;
  place.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -24, PageDown: 24 }[event.key];
    if (step) {
      index = Math.max(0, Math.min(at.length - 1, index + step));
      plot.setCursor({ left: plot.valToPos(at[index], "x"), top: 10 }, false);
      say(index);
    } else if (event.key === "+") zoom(0.5);
    else if (event.key === "-") zoom(2);
    else if (event.key === "0") plot.setScale("x", { min: at[0], max: at[at.length - 1] });
    else return;
    event.preventDefault();
  });
  for (const box of boxes) box.addEventListener("change", draw);
  new ResizeObserver(() => plot && plot.setSize({ width: place.clientWidth, height: 320 })).observe(place);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
  readout.textContent = "Drag to zoom, double click to show all.";
  place.dataset.drawn = "yes";
})();
