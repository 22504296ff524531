// Asks the server whether it knows the password, and stores it where Prefect's pages look for it.
(() => {
  const field = document.getElementById("secret"), said = document.getElementById("said");
  // only a path of this server: whoever made the link is not trusted
  const wanted = new URL(new URLSearchParams(location.search).get("to") || "/", location.origin);
  const to = wanted.origin === location.origin ? wanted.pathname + wanted.search : "/";
  document.querySelector("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const secret = btoa(String.fromCharCode(...new TextEncoder().encode(field.value.trim())));
    said.textContent = "Asks the server …";
    const headers = { Authorization: `Basic ${secret}` };
    const answer = await fetch("/api/admin/version", { headers }).catch(() => null);
    if (answer?.ok) {
      localStorage.setItem("prefect-password", secret);
      location.replace(to);
    } else {
      said.textContent = answer?.status === 401 ? "The server does not know this user and password."
        : "The server did not answer: see that `optstream serve` runs, then try again.";
      field.select();
    }
  });
})();
