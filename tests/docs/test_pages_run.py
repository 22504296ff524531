"""Every command and every Python block of the documents runs, page by page; `-s` lists them.

`sh` blocks run as they stand. `console` blocks run line by line where a line begins with "$ "; what
follows it is compared with what was said, "…" standing for anything. `python` blocks of a page share
their names. All of a page's blocks run in one folder, in their order. Comments in a page, which no reader
sees, steer it:

    <!-- begins: tutorial.md -->      the page's folder is a copy of what that page left behind
    <!-- invisible-code: sh … -->     a block that no reader sees: what the page takes for granted
    <!-- skip: next "a reason" -->    the next block cannot run here; a skip without a reason is an error
    <!-- exits: 1 -->                 the next shell block's last command ends with this code
"""

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from unittest import SkipTest

import pytest
from sybil import Example, Region
from sybil.document import Document
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.markdown import CodeBlockParser, SkipParser
from sybil.parsers.markdown.lexers import DirectiveInHTMLCommentLexer
from typer._click.exceptions import UsageError
from typer.core import TyperGroup

from flows.cli.main import load
from flows.orchestration.environment import environment as prefect_environment
from tests.docs.warm import warm_optstream

PROMPT = "$ "
SHELLS = ("sh", "console")
BEGINS = re.compile(r"^<!-- begins: (\S+) -->$", re.MULTILINE)
SLOW = re.compile(r"^.*: still at work, .*\n", re.MULTILINE)
"""A line of a command on a busy machine, which no page shows."""
CHECKER = doctest.OutputChecker()
LOOSE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def exits(document: Document) -> Iterator[Region]:
    """Parse `<!-- exits: 1 -->` and keep the code for the block that follows."""
    for region in DirectiveInHTMLCommentLexer("exits")(document):
        yield Region(region.start, region.end, str(region.lexemes["arguments"]).strip(), keep_code)


def keep_code(example: Example) -> None:
    example.namespace["exits:"] = example.parsed


def parse(page: Path, environment: dict[str, str]) -> Document:
    shells = [
        CodeBlockParser(language, lambda example: _run_shell(example, environment)) for language in SHELLS
    ]
    python = CodeBlockParser("python", PythonEvaluator())
    return Document.parse(str(page), SkipParser(), exits, *shells, python)


def run(page: Path, folder: Path, environment: dict[str, str]) -> None:
    """Run and print a page's blocks in a folder; AssertionError at the first that differs from the page."""
    with chdir(folder):
        for example in parse(page, environment):
            if example.document.text[example.start] == "<":  # a comment
                assert example.parsed != ("next", None), f"{page.name}:{example.line} skips without a reason"
                example.evaluate()
                continue
            print(f"{page.name}:{example.line}", *commands_of(example), sep="\n    ")
            began = time.monotonic()
            try:
                example.evaluate()
            except SkipTest as reason:
                print(f"    [skipped: {reason}]")
            else:
                print(f"    [{time.monotonic() - began:.1f} s]")


def commands_of(example: Example) -> list[str]:
    """The lines that a reader would type; a block of Python is one."""
    lines = str(example.parsed).strip().splitlines()
    fence = example.document.text[example.start : example.end].lstrip().splitlines()[0]
    if fence == "```python":
        return [f"python: {lines[0]} …"]
    if fence == "```console":
        return [line.removeprefix(PROMPT) for line in lines if line.startswith(PROMPT)]
    joined = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [line for line in joined if line.strip() and not line.startswith(("#", " "))]


def _run_shell(example: Example, environment: dict[str, str]) -> None:
    """Run a block as its page says; its last command ends with 0, or what `exits` said."""
    expected = int(example.namespace.pop("exits:", 0))
    text = str(example.parsed)
    steps = _steps(text) if text.startswith(PROMPT) else [(text, None)]
    for number, (command, output) in enumerate(steps):
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command], env=environment, capture_output=True, text=True
        )
        said = done.stdout + SLOW.sub("", done.stderr)
        assert done.returncode == (expected if number == len(steps) - 1 else 0), f"{command}\n{said}"
        if output is not None:
            wanted = output.replace("…", "...")
            assert CHECKER.check_output(wanted, said, LOOSE), f"{command}\nsaid:\n{said}\nnot:\n{output}"


def _steps(text: str) -> list[tuple[str, str | None]]:
    """Each command of a console block with the output below it; None where none is shown."""
    steps = []
    for part in ("\n" + text).split("\n" + PROMPT)[1:]:
        command, _, output = part.partition("\n")
        steps.append((command, output if output.strip() else None))
    return steps


CHECKOUT = Path(__file__).parents[2]
TUTORIAL = CHECKOUT / "docs/tutorial.md"
PAGES = [
    TUTORIAL,
    CHECKOUT / "README.md",
    CHECKOUT / "SECURITY.md",
    *sorted(page for page in (CHECKOUT / "docs").rglob("*.md") if page != TUTORIAL),
]
BY_NIGHT = {
    *("README", "recover", "upgrade", "restate", "backfill", "choose-epsilon", "contracts", "products"),
    *("two-dimensions", "constraints", "configure", "monitoring", "pages", "leakage"),
}
"""Pages that take longest. By day the command line takes their commands, and does nothing."""
WITH_CODE = [
    pytest.param(page, marks=[pytest.mark.nightly] if page.stem in BY_NIGHT else [])
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
    found = BEGINS.search(page.read_text(encoding="utf-8"))
    if found is None:
        folder.mkdir()
    else:
        begins = found[1]
        if begins not in left:
            left[begins] = tmp_path / begins
            left[begins].mkdir()
            (before,) = (one for one in PAGES if one.name == begins)
            run(before, left[begins], shell)
        shutil.copytree(left[begins], folder)
    run(page, folder, shell)
    left[page.name] = folder


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
