"""Attack the mechanisms: is any epsilon broken?

Measures epsilon from below on worst neighbours; broken controls must be caught. Exit code 1 if any
audit is not as it must be.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from flows.cli.options import Json, WordsError, day_option, flag
from flows.cli.output import Terminal
from optstream.errors import ParameterError
from optstream.noise import NoiseSource, secure_noise, simulated_noise
from studies.audit.attack import ERROR
from studies.audit.cases import Case, control_cases, mechanism_cases, our_cases
from studies.audit.compromised import broken_compromised_subjects, compromised_subjects
from studies.audit.histories import Subject
from studies.audit.ledgers import (
    amended_subjects,
    apart_subjects,
    broken_tree_subjects,
    changed_tree_subjects,
    hasty_subjects,
    product_subjects,
)
from studies.audit.rows import broken_row_subjects, row_subjects
from tasks.config import Settings, load_settings
from tasks.monitor.facts import FORMAT as RECORD
from tasks.release.mechanism import mechanism_for
from tasks.trusted.files import write_private

FORMAT = "optstream.audit/1"
VERDICTS = {
    ("ours", True): "holds",
    ("ours", False): "EXCEEDS ITS CLAIM",
    ("control", True): "caught",
    ("control", False): "MISSED",
    ("twin", True): "not accused",
    ("twin", False): "ACCUSED",
}


def audit_cases(days: bool = False) -> tuple[Case, ...]:
    """Return our mechanisms, histories, the controls and their twins."""
    ours: Sequence[Subject] = (
        *row_subjects(), *amended_subjects(), *changed_tree_subjects(), *compromised_subjects(),
        *product_subjects(),
    )  # fmt: skip
    broken: Sequence[Subject] = (
        *broken_row_subjects(), *hasty_subjects(), *broken_tree_subjects(), *broken_compromised_subjects(),
        *apart_subjects(),
    )  # fmt: skip
    histories = [*(Case("ours", one) for one in ours), *(Case("control", one) for one in broken)]
    return (*our_cases(days=days), *histories, *control_cases())


def configured_cases(settings: Settings, day: date) -> tuple[Case, ...]:
    """Return the configured mechanism on the worst neighbours of that day. Raises as `mechanism_for`."""
    first_step, n_steps = settings.calendar.first_step(day), settings.calendar.n_steps(day)
    mechanism, name = mechanism_for(settings, day), f"stream {settings.stream.name}"
    return mechanism_cases(name, lambda _: mechanism, settings.tree_of(day), [n_steps], first_step)


def run_audit(
    cases: Sequence[Case],
    *,
    n_runs: int,
    seed: int = 0,
    secure: bool = False,
    error: float = ERROR,
    progress: Callable[[str, int], None] = lambda name, done: None,
) -> Iterator[dict[str, Any]]:
    """Audit one case after the other; yield each row of the document as soon as it is known."""
    seeds = np.random.SeedSequence(seed).spawn(len(cases))
    for case, own in zip(cases, seeds, strict=True):
        noise: NoiseSource = secure_noise() if secure else simulated_noise(own)
        started, name = time.perf_counter(), case.name

        def show(done: int, _: int, name: str = name) -> None:
            progress(name, done)

        result = case.run(n_runs=n_runs, noise=noise, error=error, progress=show)
        yield {
            "kind": case.kind,
            **result.to_document(),
            "accountant": case.accountant,
            "charged": case.charged,
            "passed": case.passes(result),
            "seconds": round(time.perf_counter() - started, 3),
        }


def line(row: Mapping[str, Any]) -> str:
    """Return one audit as text."""
    effort = "enumerated" if row["method"] == "enumeration" else f"{row['runs']:,} runs"
    accountant = "" if row["accountant"] is None else f", accountant {row['accountant']:.4g}"
    return (
        f"{VERDICTS[row['kind'], row['passed']]:>12}  epsilon >= {row['lower_bound']:.3f} "
        f"(claimed {row['claimed']:.4g}{accountant})  {row['mechanism']}: {row['neighbours']} "
        f"[{effort}, {row['seconds']:.1f} s]"
    )


def main(
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
    """Run the audits and print each as it comes; of a configuration, whole, it is kept for the monitor."""
    if (config is None) != (day is None):
        raise WordsError("--config and --date go together")
    settings, terminal = None if config is None else load_settings(config), Terminal(as_json)
    found = configured_cases(settings, day) if settings and day else audit_cases(days)
    cases = [case for case in found if only.casefold() in case.name.casefold()]
    if not cases:
        raise ParameterError(f"no audit is named like {only!r}; leave --only out to see all names")
    rows, finished = list[dict[str, Any]](), dict[str, int]()
    with terminal.bar(total=len(cases) * 2 * runs) as update:

        def progress(name: str, done: int) -> None:
            finished[name] = done
            if update is not None:
                update(completed=sum(finished.values()), description=name)

        for row in run_audit(cases, n_runs=runs, seed=seed, secure=secure, progress=progress):
            rows.append(row)
            terminal.say(line(row))
    document = {
        "format": FORMAT,
        "passed": all(row["passed"] for row in rows),
        "noise": "secure" if secure else f"simulated, seed {seed}",
        "false_alarms": sum(row["error"] for row in rows),
        "seconds": round(sum(row["seconds"] for row in rows), 3),
        "audits": rows,
    }
    if output:
        output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    if settings and not only:  # a part of an audit is none
        keep_audit(settings, document, now=datetime.now(UTC))
    terminal.say(
        f"{sum(row['passed'] for row in rows)} of {len(rows)} audits are as they must be; "
        f"a false alarm has probability {document['false_alarms']:.0e} at most; noise: {document['noise']}"
    )
    terminal.document(document)
    raise typer.Exit(0 if document["passed"] else 1)


def keep_audit(settings: Settings, document: Mapping[str, Any], now: datetime) -> Path:
    """Write an audit's document (`optstream.audit/1`) next to the earlier ones, with what it audited."""
    record = {
        "format": RECORD,
        "stream": settings.stream.name,
        "at": now.isoformat(),
        "configuration_hash": settings.configuration_hash,
        "audit": document,
    }
    path = settings.audits_folder / f"{now:%Y%m%dT%H%M%S%f}.json"
    write_private(path, json.dumps(record, indent=1).encode())
    return path
