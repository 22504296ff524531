"""What the documents' code blocks are, and how they run: sybil finds them, a shell or Python runs them.

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
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from unittest import SkipTest

from sybil import Example, Region
from sybil.document import Document
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.markdown import CodeBlockParser, SkipParser
from sybil.parsers.markdown.lexers import DirectiveInHTMLCommentLexer

PROMPT = "$ "
SHELLS = ("sh", "console")
BEGINS = re.compile(r"^<!-- begins: (\S+) -->$", re.MULTILINE)
SLOW = re.compile(r"^.*: still at work, .*\n", re.MULTILINE)
"""A line of a command on a busy machine, which no page shows."""
CHECKER = doctest.OutputChecker()
LOOSE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Directive:
    """Parses `<!-- name: value -->` and keeps the value under that name for the blocks that follow."""

    def __init__(self, name: str) -> None:
        self.name, self._lexer = name, DirectiveInHTMLCommentLexer(name)

    def __call__(self, document: Document) -> Iterator[Region]:
        for region in self._lexer(document):
            said = str(region.lexemes["arguments"]).strip()
            yield Region(region.start, region.end, said, lambda example: self._keep(example))

    def _keep(self, example: Example) -> None:
        example.namespace[f"{self.name}:"] = example.parsed


def begins_from(page: Path) -> str | None:
    """The page in whose folder this one goes on, if it says so."""
    found = BEGINS.search(page.read_text(encoding="utf-8"))
    return found[1] if found else None


def parse(page: Path, environment: dict[str, str]) -> Document:
    shells = [
        CodeBlockParser(language, lambda example: _run_shell(example, environment)) for language in SHELLS
    ]
    python = CodeBlockParser("python", PythonEvaluator())
    return Document.parse(str(page), SkipParser(), Directive("exits"), *shells, python)


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
