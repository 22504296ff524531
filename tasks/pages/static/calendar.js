// Arrow keys in the calendar: one day is reached by Tab, the others from it.
(() => {
  const find = (date) => document.getElementById(`d-${date.toISOString().slice(0, 10)}`);
  const at = (year, month, day) => {
    const last = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
    return new Date(Date.UTC(year, month, Math.min(day, last)));
  };
  const moves = {
    ArrowLeft: (y, m, d) => new Date(Date.UTC(y, m, d - 1)),
    ArrowRight: (y, m, d) => new Date(Date.UTC(y, m, d + 1)),
    ArrowUp: (y, m, d) => at(y, m - 1, d),
    ArrowDown: (y, m, d) => at(y, m + 1, d),
    PageUp: (y, m, d) => at(y - 1, m, d),
    PageDown: (y, m, d) => at(y + 1, m, d),
    Home: (y, m) => at(y, m, 1),
    End: (y, m) => at(y, m, 31),
  };
  document.addEventListener("keydown", (event) => {
    const cell = event.target.closest("[data-day]"), move = moves[event.key];
    if (!cell || !move || event.ctrlKey || event.metaKey || event.altKey) return;
    const [year, month, day] = cell.id.slice(2).split("-").map(Number);
    const wanted = find(move(year, month - 1, day));
    event.preventDefault();
    if (!wanted) return;
    const folded = wanted.closest("details");
    if (folded) folded.open = true;
    wanted.focus();
  });
  document.addEventListener("focusin", (event) => {
    if (!event.target.matches("[data-day]")) return;
    for (const one of document.querySelectorAll('[data-day][tabindex="0"]')) one.tabIndex = -1;
    event.target.tabIndex = 0;
  });
})();
