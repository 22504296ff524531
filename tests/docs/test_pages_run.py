"""Every command and every Python block of the documents runs, page by page; `-s` lists them."""

import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer._click.exceptions import UsageError
from typer.core import TyperGroup

from flows.cli.main import load
from flows.orchestration.environment import environment as prefect_environment
from tests.docs.runner import begins_from, commands_of, parse, run
from tests.docs.warm import warm_optstream

CHECKOUT = Path(__file__).parents[2]
TUTORIAL = CHECKOUT / "docs/tutorial.md"
PAGES = [
    TUTORIAL,
    CHECKOUT / "README.md",
    CHECKOUT / "SECURITY.md",
    *sorted(page for page in (CHECKOUT / "docs").rglob("*.md") if page != TUTORIAL),
]
BY_NIGHT = {
    CHECKOUT / name
    for name in (
        "README.md",
        "docs/recover.md",
        "docs/upgrade.md",
        "docs/restate.md",
        "docs/backfill.md",
        "docs/methods/choose-epsilon.md",
        "docs/data/contracts.md",
        "docs/products.md",
        "docs/two-dimensions.md",
        "docs/constraints.md",
        "docs/configure.md",
        "docs/monitoring.md",
        "docs/pages.md",
        "docs/research/leakage.md",
    )
}
"""Pages that take longest. By day the command line takes their commands, and does nothing."""
WITH_CODE = [
    pytest.param(page, marks=[pytest.mark.nightly] if page in BY_NIGHT else [])
    for page in PAGES
    if list(parse(page, {}))
]
THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}


@pytest.fixture(scope="module")
def shell() -> Iterator[dict[str, str]]:
    """The environment of a reader's shell: a warm `optstream`, and nothing else of ours."""
    with tempfile.TemporaryDirectory(prefix="optstream-pages-") as made:
        folder, tools = Path(made), Path(sys.executable).parent
        reader = {"PATH": f"{tools}:{os.environ['PATH']}", "HOME": made, "COLUMNS": "100"}
        reader |= {"LANG": "C.UTF-8", "PYTHONPATH": str(CHECKOUT), **THREADS}
        with warm_optstream(folder, reader | prefect_environment(folder / "prefect", {})) as caller:
            yield reader | {"PATH": f"{caller}:{reader['PATH']}"}


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What each page that ran left behind, by its name."""
    return {}


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_every_block_of_the_page_runs(page, shell, left, tmp_path):
    folder = tmp_path / "here"
    begins = begins_from(page)
    if begins is None:
        folder.mkdir()
    else:
        if begins not in left:
            left[begins] = tmp_path / begins
            left[begins].mkdir()
            run(page_named(begins), left[begins], shell)
        shutil.copytree(left[begins], folder)
    run(page, folder, shell)
    left[page.name] = folder


def page_named(name):
    (page,) = (one for one in PAGES if one.name == name)
    return page


def calls_of(page):
    """The words of each `optstream` of a page's shell blocks."""
    for example in parse(page, {}):
        fence = example.document.text[example.start : example.end].lstrip()
        if fence.startswith("<") and not fence.startswith("<!---"):
            continue
        for line in commands_of(example):
            for part in re.split(r"\|\|?|;|&&|\d?>|\$\(|\)", line):
                if re.match(r"\s*optstream\s", part):
                    yield shlex.split(part, comments=True)[1:]


def take(words):
    """Let the command line take the words, and do nothing; KeyError for a command that is not there."""
    name, *words = words
    if name.startswith("-"):
        return
    command = load(name)
    if isinstance(command, TyperGroup):
        name, *words = words
        command = command.commands[name]
    command.make_context(name, words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_the_command_line_takes_every_command_of_the_page(page):
    for words in calls_of(page):
        take(words)


def test_control_commands_are_found_and_wrong_ones_are_not_taken():
    assert ["ledger", "verify"] in list(calls_of(CHECKOUT / "docs/recover.md"))
    for words in (["rum"], ["ledger", "show", "--no-such-option"], ["run", "--date"]):
        with pytest.raises((KeyError, UsageError)):
            take(words)


@pytest.mark.parametrize(
    "block",
    [
        "```sh\nfalse\n```",
        "```sh\nfalse | true\n```",
        "<!-- exits: 1 -->\n\n```sh\ntrue\n```",
        "```console\n$ echo two\nthree\n```",
        "```console\n$ echo one\none\n$ echo two\none … two\n```",
        "```console\n$ false\n$ true\n```",
        "```python\nassert 1 == 2\n```",
        "<!-- skip: next -->\n\n```sh\ntrue\n```",
    ],
)
def test_what_does_not_do_as_the_page_says_is_found(block, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n{block}\n", encoding="utf-8")
    with pytest.raises(AssertionError):
        run(page, tmp_path, {"PATH": os.environ["PATH"]})
