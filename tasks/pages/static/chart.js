// Every plot of a page, by uPlot, from the JSON next to it. Arrow keys read it out; drag to zoom.
(() => {
  "use strict";
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const STROKES = { value: "--line", several: "--line", stairs: "--line", bars: "--line", limit: "--bad", "day-before": "--dim", "week-before": "--warn", replaced: "--bad", child: "--good" };
  const DASHES = { limit: [6, 5], replaced: [2, 3], "day-before": [4, 4], "week-before": [4, 4] };
  const SEVERAL = ["--line", "--warn", "--good", "--bad", "--dim", "--calm"];
  const ALWAYS = new Set(["value", "several", "stairs", "bars", "limit"]);
  const LAYERS = [/^child/, /before|replaced/, /^limit/, /^(value|several|stairs|bars)/]; // from the back to the front
  const alike = document.createElement("span");

  function show(whole) {
    const place = whole.querySelector(".plot"), readout = whole.querySelector(".readout") || alike, spark = whole.matches(".spark");
    const data = JSON.parse(whole.querySelector("script").textContent), height = Number(whole.dataset.height);
    const chooser = (name) => whole.querySelector(`[data-chooses=${name}]`);
    const node = chooser("node"), span = chooser("span"), boxes = [...whole.querySelectorAll(".shown input")];
    const unit = data.unit ? ` ${data.unit}` : "";
    const format = (value) => (value == null ? "–" : value.toLocaleString("en", { maximumSignificantDigits: 4 }) + unit);
    const clock = new Intl.DateTimeFormat("sv", { timeZone: data.zone, dateStyle: "short", timeStyle: "short" }); // 2016-06-02 23:30
    const offset = new Intl.DateTimeFormat("en", { timeZone: data.zone, timeZoneName: "longOffset" });
    // "+02:00": the same clock time comes twice in autumn
    const offsetAt = (seconds) => (data.zone === "UTC" ? "" : ` ${offset.formatToParts(new Date(1000 * seconds)).find((one) => one.type === "timeZoneName").value.replace("GMT", "") || "+00:00"}`);
    let plot = null, at = [], lines = [], shown = new Set(), byDay = false, index = 0;
    const moment = (seconds) => (byDay ? clock.format(new Date(1000 * seconds)).slice(0, 10) : clock.format(new Date(1000 * seconds)) + offsetAt(seconds));
    const dayOf = (seconds, year) => new Date(1000 * seconds).toLocaleDateString("en-GB", { day: "numeric", month: "short", year: year ? "2-digit" : undefined, timeZone: data.zone });
    const axisTimes = (_, ticks) => ticks.map((one, i) => (i && ticks[i] - ticks[i - 1] < 86400 && !byDay ? clock.format(new Date(1000 * one)).slice(11, 16) : dayOf(one, at[at.length - 1] - at[0] > 366 * 86400)));
    const bound = (one, band, sign) => one.values.map((value, i) => {
      if (value === null || one[band][i] === null) return null;
      const end = value + sign * data.z * one[band][i];
      return data.least === null ? end : Math.max(end, data.least);
    });
    const bandOf = (one) => ["error", "noise"].find((name) => one[name] && (boxes.length ? shown.has(name) : name === "error"));
    function say(number) {
      if (number == null || !lines.length) return;
      const parts = lines.map((one) => {
        const band = bandOf(one), name = lines.length > 1 || boxes.length ? `${one.label} ` : "";
        return name + format(one.values[number]) + (band && one[band][number] !== null ? ` ± ${format(data.z * one[band][number])}` : "");
      });
      readout.textContent = `${moment(at[number])}: ${parts.join("; ")}`;
    }
    function draw() {
      const own = data.spans[span ? span.value : 0];
      shown = new Set(boxes.filter((one) => one.checked).map((one) => one.name));
      at = own.at;
      byDay = at.every((one, i) => !i || (one - at[i - 1]) % 86400 === 0) && data.zone === "UTC";
      const all = own.lines[node ? node.value : 0];
      lines = all.filter((one) => ALWAYS.has(one.kind) || shown.has(one.kind));
      const values = [], series = [{}], bands = [];
      const add = (numbers, style) => { values.push(numbers); return series.push({ points: { show: false }, ...style }) - 1; };
      let below = at.map(() => 0), under = null, several = 0;
      for (const one of LAYERS.flatMap((layer) => lines.filter((own) => layer.test(own.kind)))) {
        for (const band of ["noise", "error"].filter((name) => one[name] && (boxes.length ? shown.has(name) : name === "error"))) {
          const low = add(bound(one, band, -1), { stroke: "transparent" }), high = add(bound(one, band, 1), { stroke: "transparent" });
          bands.push({ series: [high, low], fill: colour(band === "noise" ? "--rule" : "--band") });
        }
        if (one.kind === "child") below = below.map((sum, i) => (sum === null || one.values[i] === null ? null : sum + one.values[i]));
        const nth = one.kind === "several" ? several++ : 0, stroke = one.kind === "several" ? SEVERAL[nth % SEVERAL.length] : STROKES[one.kind];
        const drawn = add(one.kind === "child" ? below : one.values, {
          label: one.label,
          stroke: colour(stroke),
          width: one.kind === "value" && !spark ? 2 : 1.5,
          dash: nth >= SEVERAL.length ? [5, 4] : DASHES[one.kind],
          fill: one.kind === "bars" ? colour("--band") : one.kind === "child" && under === null ? colour("--good-bg") : undefined,
          paths: one.kind === "stairs" || one.kind === "limit" ? uPlot.paths.stepped({ align: 1 }) : one.kind === "bars" ? uPlot.paths.bars({ size: [0.7, 24] }) : undefined,
          points: { show: !spark && one.kind !== "bars" && (at.length < 3 || data.few) },
        });
        if (one.kind === "child") {
          if (under !== null) bands.push({ series: [drawn, under], fill: colour(drawn % 2 ? "--good-bg" : "--calm-bg") });
          under = drawn;
        }
      }
      // areas are compared by their height, so they stand on 0
      const onZero = lines.some((one) => ["child", "stairs", "bars"].includes(one.kind));
      const range = (_, low, high) => (low === null ? [0, 1] : uPlot.rangeNum(onZero ? Math.min(0, low) : low, high, 0.1, true));
      // half a bar on either side, so that the first and the last are whole
      const barred = lines.some((one) => one.kind === "bars") && at.length > 1;
      const half = at.length === 1 ? 43200 : barred ? (at[at.length - 1] - at[0]) / (at.length - 1) / 2 : 0;
      const axis = { stroke: colour("--dim"), grid: { stroke: colour("--grid"), width: 1 }, ticks: { stroke: colour("--rule"), width: 1 } };
      if (plot) plot.destroy();
      plot = new uPlot({
        width: place.clientWidth,
        height,
        tzDate: (seconds) => uPlot.tzDate(new Date(1000 * seconds), data.zone),
        legend: { show: false },
        cursor: { show: !spark, y: false },
        series,
        bands,
        scales: { x: half ? { range: (_, first, last) => [first - half, last + half] } : {}, y: { range } },
        padding: spark ? [1, 0, 1, 0] : undefined,
        axes: spark ? [{ show: false }, { show: false }]
          : [{ ...axis, values: axisTimes, space: 70 }, { ...axis, size: 62, space: height < 200 ? 26 : 34, values: (_, ticks) => ticks.map((one) => one.toLocaleString("en", { maximumSignificantDigits: 6 })) }],
        hooks: { setCursor: [(one) => say(one.cursor.idx)] },
      }, [at, ...values], place);
      const known = lines.filter((one) => ALWAYS.has(one.kind) && one.kind !== "limit").flatMap((one) => one.values).filter((one) => one !== null);
      const from = known.length ? `from ${format(known.reduce((a, b) => Math.min(a, b)))} to ${format(known.reduce((a, b) => Math.max(a, b)))}` : "nothing published";
      const name = data.nodes.length ? `${data.quantity} of ${data.nodes[node ? node.value : 0]}` : data.quantity;
      place.setAttribute("aria-label", `${name}: ${from}${spark ? "" : "; left and right arrow keys read it out"}`);
      const keys = lines.length > 1 && !boxes.length;
      readout.replaceChildren(...(keys ? lines.map((one) => {
        const key = document.createElement("span");
        key.textContent = one.label;
        key.className = "line-key";
        key.style.borderColor = series.find((own) => own.label === one.label).stroke;
        return key;
      }) : [known.length ? `F${from.slice(1)}. Drag to zoom, double click to show all.` : "Nothing is published of it in this time."]));
      index = at.length;
      place.dataset.drawn = `${span ? span.value : 0} ${node ? node.value : 0}`;
      const figures = whole.querySelector(".figures");
      if (figures && figures.open) tabulate(figures);
    }
    function tabulate(figures) {
      const cell = (row, tag, text, scope) => {
        const made = row.appendChild(document.createElement(tag));
        made.textContent = text;
        if (scope) made.scope = scope;
        else made.className = "n";
      };
      const own = lines.filter((one) => ALWAYS.has(one.kind)), table = document.createElement("table"), head = table.createTHead().insertRow(), body = table.createTBody();
      cell(head, "th", byDay ? "Day" : `Begins${data.zone === "UTC" ? "" : ` (${data.zone})`}`, "col");
      for (const one of own) {
        cell(head, "th", one.label + (data.unit ? `, ${data.unit}` : ""), "col");
        if (bandOf(one)) cell(head, "th", "±", "col");
      }
      for (let i = at.length - 1; i >= 0 && body.rows.length < 500; i -= 1) {
        if (own.every((one) => one.values[i] === null)) continue;
        const row = body.insertRow();
        cell(row, "th", moment(at[i]), "row");
        for (const one of own) {
          cell(row, "td", format(one.values[i]).replace(unit, ""));
          if (bandOf(one)) cell(row, "td", one[bandOf(one)][i] === null ? "–" : format(data.z * one[bandOf(one)][i]).replace(unit, ""));
        }
      }
      figures.querySelector(".scroll").replaceChildren(table);
    }
    const figures = whole.querySelector(".figures");
    if (figures) figures.addEventListener("toggle", () => figures.open && tabulate(figures));
    const zoom = (factor) => {
      const { min, max } = plot.scales.x, middle = (min + max) / 2, half = ((max - min) * factor) / 2;
      plot.setScale("x", { min: Math.max(at[0], middle - half), max: Math.min(at[at.length - 1], middle + half) });
    };
    place.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || spark) return;
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
    for (const one of [node, span, ...boxes]) if (one) one.addEventListener("change", draw);
    new ResizeObserver(() => plot && plot.setSize({ width: place.clientWidth, height })).observe(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => place.isConnected && draw());
    draw();
  }

  const showAll = () => document.querySelectorAll(".chart").forEach(show);
  document.addEventListener("refreshed", showAll);
  showAll();
})();
