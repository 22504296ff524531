"""What `optstream audit` does and shows: a progress bar, a line for each audit, a document, a chart."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.progress import Progress

from flows.cli.console import Terminal
from optstream.audit import Case
from tasks.studies.audit import AuditRow, audit_document, draw_audit, run_audit

VERDICTS = {
    ("ours", True): "holds",
    ("ours", False): "EXCEEDS ITS CLAIM",
    ("control", True): "caught",
    ("control", False): "MISSED",
    ("twin", True): "not accused",
    ("twin", False): "ACCUSED",
}


def audit_and_show(
    cases: Sequence[Case],
    terminal: Terminal,
    *,
    n_runs: int,
    seed: int = 0,
    secure: bool = False,
    output: Path | None = None,
    plot: Path | None = None,
    keep: Callable[[Mapping[str, Any]], object] | None = None,
) -> bool:
    """Run the audits, print each as it comes, write what was asked for; return whether all passed.

    keep: takes the document, to be looked up later.
    Raises ParameterError as `run_audit` and `draw_audit`.
    """
    rows: list[AuditRow] = []
    with _progress(terminal, len(cases) * 2 * n_runs) as told:
        for row in run_audit(cases, n_runs=n_runs, seed=seed, secure=secure, progress=told):
            rows.append(row)
            terminal.say(line(row))
    document = audit_document(rows, secure, seed)
    if output:
        output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    if keep:
        keep(document)
    if plot:
        draw_audit(rows, plot)
    terminal.say(
        f"{sum(row.passed for row in rows)} of {len(rows)} audits are as they must be; "
        f"a false alarm has probability {document['false_alarms']:.0e} at most; noise: {document['noise']}"
    )
    terminal.document(document)
    return bool(document["passed"])


def line(row: AuditRow) -> str:
    """One audit, for people."""
    result = row.result
    effort = "enumerated" if result.method == "enumeration" else f"{result.runs:,} runs"
    accountant = "" if row.accountant is None else f", accountant {row.accountant:.4g}"
    return (
        f"{VERDICTS[row.kind, row.passed]:>12}  epsilon >= {result.lower_bound:.3f} "
        f"(claimed {result.claimed:.4g}{accountant})  {result.mechanism}: {result.neighbours} "
        f"[{effort}, {row.seconds:.1f} s]"
    )


@contextmanager
def _progress(terminal: Terminal, total: int) -> Iterator[Callable[[str, int, int], None] | None]:
    """A bar over all runs of all audits, where somebody watches."""
    if terminal.as_json or not terminal.console.is_terminal:
        yield None
        return
    with Progress(console=terminal.console, transient=True) as bar:
        shown = bar.add_task("audit", total=total)
        finished: dict[str, int] = {}

        def told(name: str, done: int, _: int) -> None:
            finished[name] = done
            bar.update(shown, completed=sum(finished.values()), description=name)

        yield told
