// What a page looks like to those who see little, and to those who use no mouse. Returns plain values.
(() => {
  const channel = (c) => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4 };
  const parts = (text) => text.match(/[\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const ratio = (a, b) => { const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05) };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const found = parts(getComputedStyle(at).backgroundColor);
      if (found.length === 3 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  const name = (e) => `${e.tagName.toLowerCase()}.${e.getAttribute("class") || ""} ${(e.textContent || "").trim().slice(0, 40)}`;
  const faint = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !element.checkVisibility() || element.closest("svg")) continue;
    const found = ratio(parts(getComputedStyle(element).color), ground(element));
    if (found < 4.5) faint.push([name(element), found]);
  }
  for (const path of document.querySelectorAll("path.line")) {
    const found = ratio(parts(getComputedStyle(path).stroke), ground(path));
    if (found < 3) faint.push(["line", found]);
  }
  const focusable = [...document.querySelectorAll("a[href], summary, button:not(:disabled), input, select, [tabindex='0']")].filter((e) => e.checkVisibility());
  const label = (e) => e.getAttribute("aria-label") || [...(e.labels || [])].map((one) => one.textContent).join(" ") || (e.getAttribute("aria-labelledby") || "").split(" ")
    .map((id) => (document.getElementById(id) || {}).textContent || "").join(" ").trim() || (e.textContent || "").trim();
  const nameless = [...focusable, ...document.querySelectorAll("[role], figure, section, nav, table th")]
    .filter((e) => !e.closest("[aria-hidden]") && !label(e)).map(name);
  const headless = [...document.querySelectorAll("table")].filter((t) => !t.querySelector("thead th[scope]") ||
    [...t.querySelectorAll("tbody tr")].some((r) => !r.querySelector("th[scope=row]"))).map(name);
  const regions = [...document.querySelectorAll("[role=region]")].map((e) => e.getAttribute("aria-label") || e.getAttribute("aria-labelledby"));
  const wide = [...document.querySelectorAll("body *")].filter((e) => e.checkVisibility() && !e.closest(".scroll, pre, svg, .x, .skip") &&
    e.getBoundingClientRect().right > innerWidth + 1).map(name);
  const tiny = [...document.querySelectorAll("body *")].filter((e) => e.checkVisibility() && !e.closest("svg, sup") &&
    parseFloat(getComputedStyle(e).fontSize) < 11.5).map(name);
  const led = [...document.querySelectorAll("[href^='#']")].map((e) => e.getAttribute("href").slice(1));
  const owners = [...document.querySelectorAll("[aria-labelledby]")].map((e) => e.getAttribute("aria-labelledby"));
  return {
    dangling: [...led, ...owners].filter((id) => !document.getElementById(id)),
    faint, nameless, headless, wide, tiny,
    twice: regions.filter((one, i) => regions.indexOf(one) !== i),
    order: focusable.map((e, i) => { e.dataset.order = i; return i }),
    language: document.documentElement.lang,
    title: document.title,
    overflow: document.documentElement.scrollWidth > innerWidth,
    landmarks: ["header", "nav", "main", "footer"].map((tag) => document.querySelectorAll(tag).length),
  };
})()
