// Loads Prefect's pages where the browser holds the server's password, and leads to the log-in page where not.
(async () => {
  const own = document.currentScript.dataset.loads, stored = localStorage.getItem("prefect-password");
  const headers = { Authorization: `Basic ${stored}` };
  const answer = stored && await fetch("/api/admin/version", { headers }).catch(() => null);
  if (stored && answer?.status !== 401) {
    const script = document.createElement("script");
    script.type = "module";
    script.src = own;
    document.head.append(script);
  } else {
    location.replace(`/log-in.html?to=${encodeURIComponent(location.pathname + location.search)}`);
  }
})();
