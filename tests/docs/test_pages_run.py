"""Every command and every Python block of the documents runs, page by page; `-s` lists them.

What cannot run here is marked in the page with its reason, and listed too.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.prefect_server import running_server
from flows.orchestrator import environment as prefect_environment
from tests.docs.runner import Page, commands_of, parse
from tests.docs.warm import warm_optstream

HOUSE = Path(__file__).parents[2]
TUTORIAL = HOUSE / "docs/tutorial.md"
PAGES = [TUTORIAL, HOUSE / "README.md", HOUSE / "SECURITY.md"] + sorted(
    page for page in (HOUSE / "docs").rglob("*.md") if page != TUTORIAL
)
WITH_CODE = [page for page in PAGES if list(parse(page, {}))]
THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}


@pytest.fixture(scope="module")
def shell() -> Iterator[dict[str, str]]:
    """The environment of a reader's shell: a warm `optstream`, one server for all, nothing of ours besides."""
    with tempfile.TemporaryDirectory(prefix="optstream-pages-") as made:
        folder, tools = Path(made), Path(sys.executable).parent
        reader = {"PATH": f"{tools}:{os.environ['PATH']}", "HOME": made, "COLUMNS": "100", "LANG": "C.UTF-8"}
        reader |= THREADS | {"PYTHONPATH": str(HOUSE)}
        home = folder / "prefect"
        with running_server(home) as url:
            server = {"PREFECT_API_URL": url, "PREFECT_HOME": str(home)}
            with warm_optstream(folder, reader | prefect_environment(home, {}) | server) as caller:
                yield reader | {"PATH": f"{caller}:{reader['PATH']}"}


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What each page that ran left behind, by its name."""
    return {}


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(HOUSE)))
def test_every_block_of_the_page_runs(page, shell, left, tmp_path, monkeypatch):
    monkeypatch.delenv("OPTSTREAM_LEDGER_URL", raising=False)
    folder = tmp_path / "here"
    begins = next((one.parsed for one in parse(page, {}) if one.document.text[one.start :].startswith("<!-- begins")), None)
    if begins is None:
        folder.mkdir()
    else:
        assert begins in left, f"{page.name} goes on from {begins}, which did not run: run the whole file"
        shutil.copytree(left[begins], folder)
    running = Page(page, folder, shell)
    try:
        running.run()
    finally:
        print(*running.ran, sep="\n")
    left[page.name] = folder
