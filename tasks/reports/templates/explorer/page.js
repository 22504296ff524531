// The page: what its controls do to the view, and what the view does to the page. Names are set as text only.
const start = () => {
  const get = (id) => document.getElementById(id);
  const index = JSON.parse(get("index").textContent), files = JSON.parse(get("files").textContent);
  const days = parseFigures(bytesOf(get("days").textContent)), recent = parseFigures(bytesOf(get("recent").textContent));
  const load = window.location.protocol === "file:" ? null : async (name) => {
    const answer = await fetch(name);
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.arrayBuffer();
  };
  const store = makeStore(index, files, days, recent, load), search = makeSearch(index);
  const canvas = get("plot"), measure = get("measure"), band = get("band"), find = get("find"), found = get("found");
  const knows = (name) => days.columns[name] !== undefined || recent.columns[name] !== undefined;
  const usual = knows("model") ? "model" : "none"; // noise alone is drawn when asked for
  let view = viewOf(store, window.location.hash, firstView(store, usual)) || firstView(store, usual);
  let reading = null, scale = null, planned = false, active = -1, paper = false, later = 0, tabling = 0, planMap = () => {};

  const make = (tag, text, attributes = {}) => {
    const element = document.createElement(tag);
    element.textContent = text;
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  const colourOf = (number) => getComputedStyle(canvas).getPropertyValue(`--${paper ? "p" : "c"}${number % MOST_NODES}`).trim();
  const deviation = (point) => (view.band === "none" ? NaN : index.z * point[view.band]);
  let points = null; // of each node of the view, until it or what is loaded changes
  const linesOf = () => {
    points = points || view.nodes.map((node) => pointsOf(store, node, view.measure, ...view.days));
    return view.nodes.map((node, number) => ({ points: points[number], colour: colourOf(number), number, node }));
  };

  const render = () => {
    planned = false;
    const style = getComputedStyle(canvas), read = (name) => style.getPropertyValue(name).trim();
    const colours = paper ? { ground: "#fff", grid: "#d5dbe0", dim: "#333" }
      : { ground: read("--bg"), grid: read("--grid"), dim: read("--dim") };
    const lines = linesOf(), unit = unitOf(index, view.measure);
    const what = `${index.quantity}${unit ? ` in ${unit}` : ""}, ${MEASURES[view.measure].title.toLowerCase()}`;
    scale = draw(canvas, store, {
      view: view.days, lines, deviation, least: index.least ?? -Infinity, reading, title: what[0].toUpperCase() + what.slice(1),
      colours: { ...colours, font: style.fontFamily },
    });
    tellReading(lines, unit);
    describe(lines, unit);
    window.clearTimeout(tabling);
    if (get("table").open) tabling = window.setTimeout(() => fillTable(unit), 150);
  };
  const plan = () => {
    if (!planned) window.requestAnimationFrame(render);
    planned = true;
  };

  const tellReading = (lines, unit) => {
    const texts = [];
    if (reading !== null) {
      for (const { points, node } of lines) {
        const point = nearest(points, reading);
        if (!point) continue;
        const wide = deviation(point), sure = Number.isFinite(wide) ? ` ± ${shown(wide)}` : "";
        if (!texts.length) texts.push(whenOf(store, point, view.measure));
        texts.push(`${labelOf(index, node)}: ${shown(point.value)}${sure}${unit ? ` ${unit}` : ""}`);
      }
    }
    get("reading").textContent = texts.join(" · ") || "Move over the plot to read figures.";
  };

  const describe = (lines, unit) => {
    const told = lines.map(({ points, node }) => {
      const values = known(points).map((point) => point.value);
      if (!values.length) return `${labelOf(index, node)}: nothing published`;
      const ends = [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))].map(shown);
      return `${labelOf(index, node)}: from ${ends[0]} to ${ends[1]}${unit ? ` ${unit}` : ""}`;
    });
    canvas.setAttribute("aria-label", `${MEASURES[view.measure].title} of ${index.quantity}. ${told.join(". ")}`);
  };

  const bandNote = () => {
    const widest = view.measure === "steps" ? "" : " Of means and sums of days it is exact where the folder says how the errors of steps hang together; else, and over several days, it is the widest that it can be: the deviations added up, whatever their correlation.";
    if (view.band === "none") {
      if (knows("model")) return "No band is drawn: choose one to see how sure a figure is.";
      return knows("noise") ? "No band is drawn: the releases state what noise did to a figure (“Noise only” shows it), not how far it is from the truth." : "No band is drawn: the releases state none.";
    }
    if (!knows(view.band)) return "The releases do not state this band, so none is drawn.";
    const side = `${index.z} standard deviations on each side; where a release does not state them, there is no band.`;
    return (view.band === "noise" ? `The band is noise only: ${side} It says nothing of how far a figure is from the truth.`
      : `The band is the total as the mechanism's own model has it, and as right as that model is: ${side}`) + widest;
  };

  const status = (text) => { get("status").textContent = text; };
  const loadView = async () => {
    const names = store.needed(view.nodes, view.measure === "steps", ...view.days);
    if (!names.length) return status("");
    if (!store.canLoad) return status("A page that was opened as a file shows the last days step by step, and the days of the first nodes. Open it from a web server for everything; in the published folder: python -m http.server");
    if (names.every((name) => store.lost.has(name))) return status("Figures of this view are not beside the page. It may be an older one: load it again.");
    status("Loading …");
    const wanted = view;
    await store.fetchAll(names);
    points = null;
    plan();
    if (wanted === view) status(names.some((name) => store.lost.has(name)) ? "Some figures are not beside the page. It may be an older one: load it again." : "");
    return undefined;
  };

  // Shows a view; the address follows once it stays for a moment.
  const apply = (next, isNew = true) => {
    const same = !isNew && next.nodes.join() === view.nodes.join();
    [view, points] = [next, null];
    measure.value = view.measure;
    band.value = view.band;
    get("from").value = isoOf(store, view.days[0] + 1e-6);
    get("to").value = isoOf(store, Math.ceil(view.days[1] - 1e-6) - 1);
    get("band-note").textContent = bandNote();
    get("sum-note").hidden = !isSum(view.measure);
    if (!same) showChosen();
    plan();
    loadView();
  };
  const change = (next) => {
    apply(next, false);
    window.clearTimeout(later);
    later = window.setTimeout(address, 150);
  };
  const address = () => window.history.replaceState(null, "", fragmentOf(store, view));

  const showChosen = () => {
    get("chosen").replaceChildren(...view.nodes.map((node, number) => {
      const item = make("li", ""), label = labelOf(index, node);
      const button = make("button", "", { type: "button", "aria-label": `Remove ${label}` });
      const swatch = make("span", "", { class: "swatch", "aria-hidden": "true" });
      swatch.style.borderTop = `4px ${number < 4 ? "solid" : number < 6 ? "dashed" : "dotted"} ${colourOf(number)}`;
      button.append(swatch, make("span", label), make("span", "×", { "aria-hidden": "true" }));
      button.disabled = view.nodes.length === 1;
      button.addEventListener("click", () => {
        change({ ...view, nodes: view.nodes.filter((one) => one !== node) });
        get("chosen").querySelector("button").focus();
      });
      item.append(button);
      return item;
    }));
    get("parts").disabled = !index.nodes.some((node) => node[2] === view.nodes[0]);
  };

  const add = (nodes) => {
    const all = [...new Set([...view.nodes, ...nodes])];
    change({ ...view, nodes: all.slice(0, MOST_NODES) });
    if (all.length > MOST_NODES) status(`At most ${MOST_NODES} nodes are plotted at once; remove one first.`);
  };

  // The search: a field with a list below it; arrows move, Enter takes, Escape closes.
  const close = () => {
    found.hidden = true;
    active = -1;
    find.setAttribute("aria-expanded", "false");
    find.removeAttribute("aria-activedescendant");
  };
  const choose = (node) => {
    find.value = "";
    close();
    add([node]);
  };
  const list = () => {
    const nodes = search(find.value);
    active = -1;
    found.replaceChildren(...nodes.map((node, number) => {
      const [, , parent, level] = index.nodes[node];
      const item = make("li", "", { role: "option", id: `found-${number}`, "aria-selected": "false" });
      item.append(make("span", labelOf(index, node)), make("span", parent < 0 ? "the root" : ` in ${labelOf(index, parent)}, ${levelOf(index, level)}`, { class: "place" }));
      item.addEventListener("mousedown", (event) => { event.preventDefault(); choose(node); });
      item.node = node;
      return item;
    }));
    if (!nodes.length) found.replaceChildren(make("li", "No node is called so.", { role: "option", "aria-disabled": "true", "aria-selected": "false" }));
    found.hidden = false;
    find.setAttribute("aria-expanded", "true");
  };
  const mark = (next) => {
    const items = [...found.children].filter((item) => item.node !== undefined);
    if (!items.length) return;
    active = (next + items.length) % items.length;
    items.forEach((item, number) => item.setAttribute("aria-selected", String(number === active)));
    items[active].scrollIntoView({ block: "nearest" });
    find.setAttribute("aria-activedescendant", items[active].id);
  };
  find.addEventListener("input", list);
  find.addEventListener("focus", list);
  find.addEventListener("blur", close);
  find.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (found.hidden) list();
      mark(active + (event.key === "ArrowDown" ? 1 : active < 0 ? 0 : -1));
    } else if (event.key === "Enter") {
      const item = found.children[Math.max(active, 0)];
      if (!found.hidden && item && item.node !== undefined) choose(item.node);
    } else if (event.key === "Escape") {
      close();
    } else {
      if (event.key === "Tab") close(); // a list that scrolls would take the focus, and go with it
      return;
    }
    event.preventDefault();
  });
  get("parts").addEventListener("click", () => add(index.nodes.flatMap((node, number) => (node[2] === view.nodes[0] ? [number] : []))));

  measure.addEventListener("change", () => {
    const middle = view.days[1], { width } = MEASURES[measure.value], span = Math.max(view.days[1] - view.days[0], Math.min(width, store.size));
    change(clamp(store, { ...view, measure: measure.value, days: [middle - Math.min(span, MEASURES[measure.value].most), middle] }));
  });
  band.addEventListener("change", () => change({ ...view, band: band.value }));
  const fromDates = () => {
    const ends = ["from", "to"].map((id) => Date.parse(get(id).value) / DAY - store.first);
    if (ends[0] <= ends[1]) change(clamp(store, { ...view, days: [ends[0], ends[1] + 1] }));
  };
  get("from").addEventListener("change", fromDates);
  get("to").addEventListener("change", fromDates);
  const span = () => view.days[1] - view.days[0];
  const ACTIONS = {
    earlier: () => change(moved(store, view, -span() / 2)),
    later: () => change(moved(store, view, span() / 2)),
    nearer: () => change(zoomed(store, view, 1 / 2)),
    wider: () => change(zoomed(store, view, 2)),
    all: () => change(clamp(store, { ...view, days: [store.size - Math.min(MEASURES[view.measure].most, store.size), store.size] })),
  };
  for (const [id, action] of Object.entries(ACTIONS)) get(id).addEventListener("click", action);

  const read = (step) => {
    const [line] = linesOf(), points = known(line.points), at = reading === null ? view.days[1] : reading;
    const here = points.findIndex((point) => point.x >= at - 1e-9);
    const next = points[Math.min(Math.max((here < 0 ? points.length : here) + step, 0), points.length - 1)];
    if (!next) return;
    reading = next.x;
    if (reading < view.days[0] || reading > view.days[1]) change(moved(store, view, step * span() / 2));
    plan();
  };
  const KEYS = {
    ArrowLeft: () => change(moved(store, view, -span() / 10)), ArrowRight: () => change(moved(store, view, span() / 10)),
    PageUp: ACTIONS.earlier, PageDown: ACTIONS.later, "+": ACTIONS.nearer, "=": ACTIONS.nearer, "-": ACTIONS.wider, 0: ACTIONS.all,
    Home: () => change(moved(store, view, -view.days[0])), End: () => change(moved(store, view, store.size - view.days[1])),
    ",": () => read(-1), ".": () => read(1),
  };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(KEYS, event.key)) return;
    event.preventDefault();
    get("reading").setAttribute("aria-live", "polite");
    KEYS[event.key]();
  });

  // Mouse and touch: one pointer moves the days, two zoom; a wheel zooms with Ctrl, or once the plot is chosen.
  const pointers = new Map();
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, event.offsetX);
  });
  for (const kind of ["pointerup", "pointercancel"]) canvas.addEventListener(kind, (event) => pointers.delete(event.pointerId));
  canvas.addEventListener("pointerleave", () => { reading = null; plan(); });
  canvas.addEventListener("pointermove", (event) => {
    if (!scale) return;
    get("reading").removeAttribute("aria-live");
    const before = pointers.get(event.pointerId), others = [...pointers].filter(([id]) => id !== event.pointerId);
    if (before === undefined) {
      reading = scale.dayAt(event.offsetX);
      plan();
      return;
    }
    pointers.set(event.pointerId, event.offsetX);
    if (others.length) {
      const other = others[0][1], gap = Math.max(Math.abs(before - other), 8), wide = Math.max(Math.abs(event.offsetX - other), 8);
      change(zoomed(store, view, gap / wide, scale.dayAt((event.offsetX + other) / 2)));
    } else if (event.offsetX !== before) {
      change(moved(store, view, -scale.daysIn(event.offsetX - before)));
    }
  });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && document.activeElement !== canvas) return;
    event.preventDefault();
    change(zoomed(store, view, Math.exp(Math.min(Math.max(event.deltaY, -200), 200) / 300), scale.dayAt(event.offsetX)));
  }, { passive: false });
  canvas.addEventListener("dblclick", (event) => change(zoomed(store, view, 1 / 2, scale.dayAt(event.offsetX))));

  const MOST_ROWS = 1000;
  const fillTable = (unit) => {
    const rows = rowsOf(store, view.nodes, view.measure, ...view.days);
    get("rows").replaceChildren(...rows.slice(0, MOST_ROWS).map((row) => {
      const line = make("tr", "");
      const wide = deviation(row.point), sure = Number.isFinite(wide) ? `± ${shown(wide)}` : "–";
      line.append(make("th", whenOf(store, row.point, view.measure), { scope: "row" }), make("td", labelOf(index, row.number)),
        make("td", shown(row.point.value), { class: "n" }), make("td", sure, { class: "n" }));
      return line;
    }));
    get("value-head").textContent = unit ? `Value (${unit})` : "Value";
    get("rows-note").textContent = rows.length > MOST_ROWS ? `The first ${MOST_ROWS} of ${rows.length} rows; the CSV has all.` : `${rows.length} rows.`;
  };
  get("table").addEventListener("toggle", plan);
  const save = async (ending, type, bytesOfTable) => {
    await loadView();
    const table = tableOf(store, view.nodes, view.measure, ...view.days);
    const link = make("a", "", { download: `${index.stream}-${view.measure}-${get("from").value}-${get("to").value}.${ending}` });
    link.href = URL.createObjectURL(new Blob([bytesOfTable(table)], { type }));
    link.click();
    window.setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  get("csv").addEventListener("click", () => save("csv", "text/csv", csvOf));
  get("parquet").addEventListener("click", () => save("parquet", "application/vnd.apache.parquet", parquetOfTable));
  get("link").addEventListener("click", async () => {
    address();
    try {
      await window.navigator.clipboard.writeText(window.location.href);
      status("The link to this view is copied.");
    } catch {
      status("The address of this page is the link to this view.");
    }
  });

  for (const name of ["noise", "model"]) if (!knows(name)) band.querySelector(`option[value=${name}]`).disabled = true;
  new ResizeObserver(plan).observe(canvas);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { showChosen(); plan(); planMap(); });
  const toPaper = (begins) => {
    paper = begins;
    showChosen();
    render();
    planMap(paper);
  };
  window.addEventListener("beforeprint", () => toPaper(true));
  window.addEventListener("afterprint", () => toPaper(false));
  window.addEventListener("hashchange", () => {
    const next = viewOf(store, window.location.hash, view);
    if (next) apply(next);
  });
  get("explorer").hidden = false;
  get("still").hidden = true;
  apply(view);
  planMap = makeMap(store, get, (node) => add([node]));
};
start();
