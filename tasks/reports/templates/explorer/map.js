// Where nodes lie: an area each, or a circle as large as the mean of a day; its colour is how that is to the
// node's own days.
const MOST_PLACED = 500;
const CLASSES = [-0.2, -0.05, 0.05, 0.2];

// The class of a day against a node's own days: 0 far below to 4 far above; null where either is not known.
const classOf = (value, usual) => {
  const part = (value - usual) / Math.abs(usual);
  return Number.isFinite(part) ? CLASSES.filter((bound) => part >= bound).length : null;
};
const meanOf = (values) => {
  let sum = 0, n = 0;
  for (const value of values) if (Number.isFinite(value)) { sum += value; n += 1; }
  return n ? sum / n : NaN;
};
// The nodes of the level that has the most places, as far as a map can show them.
const placedNodes = (index) => {
  const levels = new Map();
  index.nodes.forEach((node, number) => {
    if (node.length <= 4) return;
    if (!levels.has(node[3])) levels.set(node[3], []);
    levels.get(node[3]).push(number);
  });
  const fit = [...levels.values()].filter((nodes) => nodes.length <= MOST_PLACED);
  return fit.reduce((most, nodes) => (nodes.length > most.length ? nodes : most), []);
};
// From longitude and latitude to (x, y) in a box that holds all nodes, with their areas: degrees of longitude are
// as wide as they are at the middle latitude.
const projection = (index, nodes, wide, tall, margin = 40) => {
  const middle = nodes.reduce((sum, node) => sum + index.nodes[node][4], 0) / nodes.length;
  const raw = ([longitude, latitude]) => [longitude * Math.cos((middle * Math.PI) / 180), -latitude];
  const ends = [[Infinity, -Infinity], [Infinity, -Infinity]];
  for (const [, , , , latitude, longitude, rings = []] of nodes.map((node) => index.nodes[node])) {
    for (const corner of [[longitude, latitude], ...rings.flat()].map(raw)) {
      ends.forEach((end, n) => { end[0] = Math.min(end[0], corner[n]); end[1] = Math.max(end[1], corner[n]); });
    }
  }
  const [across, down] = ends.map(([low, high]) => Math.max(high - low, 1e-6));
  const scale = Math.min((wide - 2 * margin) / across, (tall - 2 * margin) / down), sizes = [wide, tall];
  return (corner) => raw(corner).map((value, n) => sizes[n] / 2 + (value - (ends[n][0] + ends[n][1]) / 2) * scale);
};

// On paper the ground is light whatever the screen is; these are the light colours of the style.
const PAPER = {
  "--bg": "#fff", "--soft": "#f4f6f8", "--ink": "#1a1f24",
  "--m0": "#3b7dc4", "--m1": "#a9cbea", "--m2": "#e0e0e0", "--m3": "#f2b880", "--m4": "#d9701f",
};

// Sets the map going; choose(node) is called for a circle that is pressed. Returns what draws it: at the next
// frame, or at once and for paper.
const makeMap = (store, get, choose) => {
  const { index } = store, nodes = placedNodes(index), canvas = get("map"), slider = get("day");
  if (!nodes.length) return () => {};
  let circles = [];
  const say = ({ node, value }) => `${labelOf(index, node)} ${shown(value)}${index.unit ? ` ${index.unit}` : ""}`;
  const drawMap = (paper = false) => {
    const ratio = window.devicePixelRatio || 1, wide = canvas.clientWidth, tall = canvas.clientHeight;
    canvas.width = Math.round(wide * ratio);
    canvas.height = Math.round(tall * ratio);
    const pen = canvas.getContext("2d"), style = getComputedStyle(canvas), day = Number(slider.value);
    const read = (name) => (paper && PAPER[name]) || style.getPropertyValue(name).trim();
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = read("--soft");
    pen.fillRect(0, 0, wide, tall);
    const values = nodes.map((node) => store.daysOf(node).value[day]), place = projection(index, nodes, wide, tall);
    const largest = Math.max(...values.filter(Number.isFinite).map(Math.abs), 1e-300);
    const widest = Math.min(24, wide / 24, 0.22 * Math.sqrt(wide * tall / nodes.length)); // many lie close together
    circles = nodes.map((node, n) => {
      const [, , , , latitude, longitude, rings] = index.nodes[node], [x, y] = place([longitude, latitude]);
      const size = Number.isFinite(values[n]) ? 3 + Math.sqrt(Math.abs(values[n]) / largest) * widest : 3;
      const radius = rings ? 0 : size, path = new Path2D();
      if (!rings) path.arc(x, y, radius, 0, 2 * Math.PI);
      for (const ring of rings || []) {
        ring.map(place).forEach((corner, i) => (i ? path.lineTo(...corner) : path.moveTo(...corner)));
        path.closePath();
      }
      return { node, x, y, value: values[n], radius, path, rings, kind: classOf(values[n], meanOf(store.daysOf(node).value)) };
    }).sort((a, b) => Boolean(b.rings) - Boolean(a.rings) || b.radius - a.radius);
    pen.font = `12px ${style.fontFamily}`;
    pen.textAlign = "center";
    pen.lineWidth = 1;
    for (const { path, kind } of circles) {
      pen.fillStyle = kind === null ? read("--bg") : read(`--m${kind}`);
      pen.fill(path, "evenodd");
      pen.strokeStyle = read("--ink");
      pen.stroke(path);
    }
    if (circles.length <= 40 && wide > 500) {
      for (const { node, x, y, radius, rings } of circles) {
        pen.fillStyle = rings ? "#000" : read("--ink");
        pen.fillText(index.nodes[node][1] || index.nodes[node][0], x, y + (rings ? 4 : radius + 13));
      }
    }
    const known = circles.filter((circle) => circle.kind !== null).sort((a, b) => b.value - a.value);
    const date = inWords(dateOf(store, day));
    slider.setAttribute("aria-valuetext", date);
    get("map-told").textContent = known.length ? `${date}: the most ${say(known[0])}, the least ${say(known.at(-1))}.` : `${date}: not published.`;
    canvas.setAttribute("aria-label", `Map of daily means. ${get("map-told").textContent}`);
  };
  let planned = false;
  const plan = (paper = null) => {
    if (paper !== null) { drawMap(paper); return; }
    if (!planned) window.requestAnimationFrame(() => { planned = false; drawMap(); });
    planned = true;
  };
  const show = async () => {
    plan();
    const names = store.needed(nodes, false, Number(slider.value), Number(slider.value) + 1);
    if (!store.canLoad || !names.length) return;
    await store.fetchAll(names);
    plan();
  };
  slider.max = store.size - 1;
  slider.value = store.size - 1;
  slider.addEventListener("input", show);
  const hitBy = (event) => {
    const ratio = window.devicePixelRatio || 1, pen = canvas.getContext("2d");
    const inside = ({ x, y, radius, path, rings }) => (rings ? pen.isPointInPath(path, event.offsetX * ratio, event.offsetY * ratio, "evenodd")
      : Math.hypot(x - event.offsetX, y - event.offsetY) <= Math.max(radius, 10));
    const away = ({ x, y, rings }) => (rings ? Infinity : Math.hypot(x - event.offsetX, y - event.offsetY));
    return circles.toReversed().filter(inside).reduce((best, one) => (best && away(best) <= away(one) ? best : one), undefined);
  };
  canvas.addEventListener("click", (event) => {
    const hit = hitBy(event);
    if (hit) choose(hit.node);
  });
  canvas.addEventListener("pointermove", (event) => {
    const hit = hitBy(event);
    canvas.title = hit ? say(hit) : "";
  });
  get("places").hidden = false;
  new ResizeObserver(() => plan()).observe(canvas);
  show();
  return plan;
};
