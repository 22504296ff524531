// What is looked at: nodes, measure, band and days, as the address has it; and nodes found by their names.
const MOST_NODES = 8;
const BANDS = ["noise", "model", "none"];

const clamp = (store, view) => {
  const { width, least, most } = MEASURES[view.measure];
  let [from, to] = view.days;
  if (!Number.isFinite(from) || !Number.isFinite(to)) [from, to] = [store.size - width, store.size];
  const span = Math.min(Math.max(to - from, Math.min(least, store.size)), most, store.size);
  const middle = Math.min(Math.max((from + to) / 2, span / 2), store.size - span / 2);
  return { ...view, days: [middle - span / 2, middle + span / 2] };
};

const firstView = (store, band) => clamp(store, { nodes: [0], measure: "steps", band, days: [NaN, NaN] });

// The fragment of the address that restores a view: "#n=FR&n=84&m=means&b=noise&d=2016-01-01..2016-02-01".
const fragmentOf = (store, view) => {
  const text = new URLSearchParams();
  for (const node of view.nodes) text.append("n", store.index.nodes[node][0]);
  text.append("m", view.measure);
  text.append("b", view.band);
  const ends = [Math.floor(view.days[0] + 1e-6), Math.ceil(view.days[1] - 1e-6) - 1];
  text.append("d", ends.map((day) => isoOf(store, day)).join(".."));
  return `#${text}`;
};

// The view of a fragment, which anyone may have written; null where it is none.
const viewOf = (store, fragment, before) => {
  const text = new URLSearchParams(fragment.replace(/^#/, ""));
  if (!text.has("n")) return null;
  const names = new Set(text.getAll("n").slice(0, MOST_NODES));
  const nodes = [...names].map((name) => store.index.nodes.findIndex((node) => node[0] === name));
  const chosen = nodes.filter((node) => node >= 0);
  const days = /^(\d{4}-\d\d-\d\d)\.\.(\d{4}-\d\d-\d\d)$/.exec(text.get("d") || "");
  const ends = days ? [Date.parse(days[1]) / DAY - store.first, Date.parse(days[2]) / DAY - store.first + 1] : [NaN, NaN];
  return clamp(store, {
    nodes: chosen.length ? chosen : before.nodes,
    measure: Object.hasOwn(MEASURES, text.get("m")) ? text.get("m") : before.measure,
    band: BANDS.includes(text.get("b")) ? text.get("b") : before.band,
    days: ends[0] < ends[1] ? ends : [NaN, NaN],
  });
};

// Text as it is searched: without case and accents.
const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
const makeSearch = (index) => {
  const all = index.nodes.map(([id, name]) => [plain(name || ""), plain(id)]);
  // Numbers of the nodes that match best: those that begin so before those that hold it.
  return (text, most = 12) => {
    const wanted = plain(text.trim()), ranked = [[], [], []];
    for (let node = 0; node < all.length && ranked[0].length < most; node += 1) {
      const [name, id] = all[node];
      if (!wanted || name.startsWith(wanted) || id.startsWith(wanted)) ranked[0].push(node);
      else if (name.split(/[\s'-]+/).some((word) => word.startsWith(wanted))) ranked[1].push(node);
      else if (name.includes(wanted) || id.includes(wanted)) ranked[2].push(node);
    }
    return ranked.flat().slice(0, most);
  };
};

const zoomed = (store, view, factor, at = (view.days[0] + view.days[1]) / 2) => {
  const [from, to] = view.days, { least, most } = MEASURES[view.measure];
  const span = Math.min(Math.max((to - from) * factor, least), most, store.size), share = (at - from) / (to - from);
  return clamp(store, { ...view, days: [at - share * span, at - share * span + span] });
};
const moved = (store, view, days) => clamp(store, { ...view, days: view.days.map((day) => day + days) });
