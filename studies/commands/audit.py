"""`python -m studies audit`: a progress bar, a line for each audit, a document."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from flows.cli.options import Json, WordsError, day_option, examples, flag, new_app
from flows.cli.output import Terminal
from studies.audit import Case
from studies.audit.run import (
    AuditRow,
    audit_cases,
    audit_document,
    configured_cases,
    run_audit,
)
from tasks.config import load_settings
from tasks.monitor.records import keep_audit

VERDICTS = {
    ("ours", True): "holds",
    ("ours", False): "EXCEEDS ITS CLAIM",
    ("control", True): "caught",
    ("control", False): "MISSED",
    ("twin", True): "not accused",
    ("twin", False): "ACCUSED",
}
app = new_app()


@app.command(
    epilog=examples(
        "python -m studies audit --only 'sparse vector'",
        "python -m studies audit --only rows",
        "python -m studies audit --config optstream.toml --date 2016-02-01",
    )
)
def audit(
    runs: Annotated[int, typer.Option(min=400, help="Runs of each side of a pair of neighbours.")] = 4000,
    only: Annotated[str, typer.Option(help="Only audits whose name contains this.")] = "",
    days: Annotated[bool, flag("--days", "Days of 46, 48 and 50 steps too; slow.")] = False,
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="Audit the mechanism of this configuration instead.")
    ] = None,
    day: Annotated[date | None, day_option("--date", "With --config: as on this day.")] = None,
    secure: Annotated[bool, flag("--secure", "Draw noise as it is published; slower.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of the simulated noise.")] = 0,
    output: Annotated[Path | None, typer.Option(help="Write the JSON document here.")] = None,
    as_json: Json = False,
) -> None:
    """Attack the mechanisms: is any epsilon broken?

    Measures epsilon from below on worst neighbours; what is broken on purpose must be caught. Exit code 1
    if any audit is not as it must be.
    """
    if (config is None) != (day is None):
        raise WordsError("--config and --date go together")
    keep = None
    if config and day:
        settings = load_settings(config)
        cases = configured_cases(settings, day, only)
        # a part of an audit is none
        keep = None if only else partial(keep_audit, settings, now=datetime.now(UTC))
    else:
        cases = audit_cases(days, only)
    passed = audit_and_show(
        cases, Terminal(as_json), n_runs=runs, seed=seed, secure=secure, output=output, keep=keep
    )
    raise typer.Exit(0 if passed else 1)


def audit_and_show(
    cases: Sequence[Case],
    terminal: Terminal,
    *,
    n_runs: int,
    seed: int = 0,
    secure: bool = False,
    output: Path | None = None,
    keep: Callable[[Mapping[str, Any]], object] | None = None,
) -> bool:
    """Run the audits, print each as it comes, write what was asked for; return whether all passed.

    keep: takes the document, to be looked up later.
    Raises ParameterError as `run_audit`.
    """
    rows: list[AuditRow] = []
    finished: dict[str, int] = {}
    with terminal.bar(total=len(cases) * 2 * n_runs) as update:

        def told(name: str, done: int, _: int) -> None:
            finished[name] = done
            if update is not None:
                update(completed=sum(finished.values()), description=name)

        for row in run_audit(cases, n_runs=n_runs, seed=seed, secure=secure, progress=told):
            rows.append(row)
            terminal.say(line(row))
    document = audit_document(rows, secure, seed)
    if output:
        output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    if keep:
        keep(document)
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
