// Fetches this page again and puts its content in place; says when it could not. Nothing else runs here.
(() => {
  const seconds = Number(document.body.dataset.refresh);
  const fresh = document.getElementById("fresh");
  const opened = () => [...document.querySelectorAll("main details")].map((one) => one.open);
  let failedSince = null;
  async function refresh() {
    if (document.hidden) return;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", cache: "no-store" });
      if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const { id: active, value: typed } = document.activeElement || {};
      const open = opened(), left = [...document.querySelectorAll("main .scroll")].map((one) => one.scrollLeft);
      document.title = page.title;
      document.querySelector("main").replaceChildren(...page.querySelector("main").childNodes);
      document.querySelectorAll("main details").forEach((one, i) => { one.open = Boolean(open[i]) });
      document.querySelectorAll("main .scroll").forEach((one, i) => { one.scrollLeft = left[i] || 0 });
      const again = active && document.getElementById(active);
      if (again && again.matches("input")) again.value = typed;
      if (again) again.focus({ preventScroll: true });
      fresh.textContent = page.getElementById("fresh").textContent;
      fresh.classList.remove("old");
      failedSince = null;
    } catch {
      failedSince = failedSince || new Date();
      fresh.textContent = `Could not refresh since ${failedSince.toISOString().slice(0, 16).replace("T", " ")} UTC: what is shown is older. Tries again every ${seconds} s.`;
      fresh.classList.add("old");
    }
  }
  if (!(seconds > 0)) return;
  setInterval(refresh, 1000 * seconds);
  document.addEventListener("visibilitychange", refresh);
})();
