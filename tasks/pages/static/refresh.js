// Fetches this page again and puts its content in place, unless it is the same; says when it could not.
(() => {
  const seconds = Number(document.body.dataset.refresh);
  const fresh = document.getElementById("fresh");
  const opened = () => [...document.querySelectorAll("main details")].map((one) => one.open);
  const chosen = () => [...document.querySelectorAll("main select")];
  let failedSince = null, seen = null;
  async function refresh() {
    if (document.hidden) return;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", cache: "no-store" });
      if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const content = page.querySelector("main").innerHTML;
      if (content !== seen) {
        seen = content;
        const { id: active, value: typed } = document.activeElement || {};
        const open = opened(), left = [...document.querySelectorAll("main .scroll")].map((one) => one.scrollLeft), before = chosen().map((one) => one.value);
        document.title = page.title;
        document.querySelector("main").replaceChildren(...page.querySelector("main").childNodes);
        document.querySelectorAll("main details").forEach((one, i) => { if (i in open) one.open = open[i] });
        document.querySelectorAll("main .scroll").forEach((one, i) => { one.scrollLeft = left[i] || 0 });
        chosen().forEach((one, i) => { if (before[i] in [...one.options]) one.value = before[i] });
        const again = active && document.getElementById(active);
        if (again && again.matches("input")) again.value = typed;
        if (again) again.focus({ preventScroll: true });
        document.dispatchEvent(new Event("refreshed"));
      }
      fresh.textContent = page.getElementById("fresh").textContent;
      fresh.classList.remove("old");
      failedSince = null;
    } catch {
      failedSince = failedSince || new Date();
      fresh.textContent = `Could not refresh since ${failedSince.toISOString().slice(0, 16).replace("T", " ")} UTC: this page is older. Tries again every ${seconds} s.`;
      fresh.classList.add("old");
    }
  }
  if (!(seconds > 0)) return;
  setInterval(refresh, 1000 * seconds);
  document.addEventListener("visibilitychange", refresh);
})();
