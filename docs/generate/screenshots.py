"""The pictures of docs/report.md: both pages, narrow and wide, light and dark, and a run on Prefect's page.

    python -m docs.generate.screenshots --config demo/optstream.toml --into docs/pictures/report

Of what `make demo` left behind, which is simulated; a copy of it is released once more for Prefect's page, by
a real server that is gone afterwards. Needs Chromium (`apt-get install chromium`); nothing is fetched.
"""

import argparse
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

from flows.ui.looking import Looks
from tasks.config import Settings, load_settings
from tests.browser import find_chromium, running_chromium, visit
from tests.flows.ui.conftest import opened
from tests.prefect_server import running_server

SIZES = {"narrow": 360, "wide": 1280}
HEIGHT = {"narrow": 760, "wide": 900}
SCHEMES = ("light", "dark")


def main() -> int:
    """Take the pictures; return the exit code."""
    parser = argparse.ArgumentParser(description="Pictures of the pages, of simulated data.")
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="the demo's configuration")
    parser.add_argument("--into", type=Path, default=Path("docs/pictures/report"), metavar="FOLDER")
    chosen = parser.parse_args()
    executable = find_chromium()
    if executable is None:
        print("error: no Chromium here: install its package, or name it in OPTSTREAM_CHROMIUM")
        return 2
    chosen.into.mkdir(parents=True, exist_ok=True)
    settings = load_settings(chosen.config)
    with running_chromium(executable) as browser:
        own_pages(browser, settings, chosen.into)
        live_pages(browser, chosen.config, chosen.into.parent / "ui")
        prefect_pages(browser, settings, chosen.into)
    for path in sorted(chosen.into.glob("*.webp")):
        print(f"{path}  {path.stat().st_size // 1024} KB")
    return 0


def own_pages(browser: Any, settings: Settings, into: Path) -> None:
    """The top of each page; of the public one where its curves begin."""
    pages = {"operators": settings.report_file, "public": Path(str(settings.published_folder)) / "index.html"}
    for name, page in pages.items():
        for size, width in SIZES.items():
            for scheme in SCHEMES:
                with visit(browser, allowed=(page.as_uri(),), width=width, scheme=scheme) as seen:
                    seen.page.set_viewport_size({"width": width, "height": HEIGHT[size]})
                    seen.page.goto(page.as_uri())
                    if name == "public":
                        seen.page.evaluate("document.getElementById('curves').scrollIntoView()")
                    keep(seen.page, into / f"{name}-{size}-{scheme}.webp")


def live_pages(browser: Any, config: Path, into: Path) -> None:
    """The pages of `optstream ui`, wide; the curve in the dark."""
    settings, looks = load_settings(config), Looks([config], 30, lambda: datetime.now(UTC))
    looks.look()
    (seen,) = looks.snapshots
    newest = max(day.day for day in seen.view.days if day.listed is not None) if seen.view else None
    stream = f"/streams/{seen.stream}"
    into.mkdir(parents=True, exist_ok=True)
    for name, path, width, scheme in (
        ("overview", "/", 1440, "light"),
        ("overview", "/", 360, "dark"),
        ("stream", stream, 1440, "light"),
        ("day", f"{stream}/days/{newest}", 1440, "light"),
        ("node", f"{stream}/nodes/{settings.tree_of(date.min).nodes[0]}", 1440, "dark"),
    ):
        with opened(browser, looks, path, width=width, scheme=scheme) as shown:
            if name == "node":
                shown.page.wait_for_selector("#curve[data-drawn] canvas")
            keep(shown.page, into / f"{name}-{width}-{scheme}.webp")


def prefect_pages(browser: Any, settings: Settings, into: Path) -> None:
    """The page of one run, and of the pictures that it left."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "optstream.toml"
        shutil.copy(settings.file, config)
        day = date(2016, 3, 1)
        with running_server(Path(folder) / "prefect", with_pages=True) as api:
            known = {"PREFECT_API_URL": api, "PREFECT_HOME": str(Path(folder) / "prefect")}
            for words in (
                ["simulate", "--from", f"{day}", "--to", f"{day + timedelta(days=1)}"],
                ["run", "--date", f"{day}"],
            ):
                command = [sys.executable, "-m", "flows.cli.main", *words, "--config", str(config)]
                subprocess.run(command, env=os.environ | known, check=True, stdout=subprocess.DEVNULL)
            (run,), steps = ask(api, "flow_runs", {}), len(ask(api, "task_runs", {}))
            (release,) = ask(api, "artifacts", {"artifacts": {"key": {"any_": ["optstream-release"]}}})
            site = api.removesuffix("/api")
            for name, path, until in (
                ("prefect-run", f"/runs/flow-run/{run['id']}", f"{steps} Task runs"),
                ("prefect-release", f"/artifacts/artifact/{release['id']}", "SHA-256 of the rows"),
            ):
                with visit(browser, allowed=(f"{site}/", "data:"), width=SIZES["wide"]) as seen:
                    seen.page.goto(site + path)
                    seen.page.get_by_text(until).first.wait_for()
                    seen.page.wait_for_load_state("networkidle")
                    keep(seen.page, into / f"{name}.webp")


def keep(page: Any, into: Path) -> None:
    """What the browser shows, as WebP: a third of a PNG."""
    options = {"format": "webp", "quality": 80}
    taken = page.context.new_cdp_session(page).send("Page.captureScreenshot", options)
    into.write_bytes(base64.b64decode(taken["data"]))


def ask(api: str, kind: str, filters: dict[str, Any]) -> list[dict[str, Any]]:
    """What the server has of a kind."""
    request = Request(
        f"{api}/{kind}/filter",
        data=json.dumps(filters).encode(),
        headers={"Content-Type": "application/json"},
    )
    with build_opener(ProxyHandler({})).open(request, timeout=30) as answer:
        found: list[dict[str, Any]] = json.load(answer)
    return found


if __name__ == "__main__":
    sys.exit(main())
