"""Commands to begin with: an example configuration, dumps, made up or of a supplier, and advice."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from flows.cli import options as cli
from flows.cli.output import Terminal, figure
from optstream.errors import OptStreamError
from optstream.stream.tree import some_of
from tasks.config import load_settings
from tasks.config.fields import SETTLED
from tasks.config.schema import DEFAULT_MARKER, MECHANISMS
from tasks.config.templates import example_of
from tasks.operate.first_configuration import QUESTIONS, usual_zone, write_configuration
from tasks.operate.simulate import simulate as write_dumps
from tasks.operate.survey import ROLES, survey
from tasks.plan.advise import Comparison, Judged, StreamAdvice, advise_plans, write_proposal

CONFIG = (
    "The configuration file (TOML), else optstream.toml; may be repeated for the streams of one population."
)
SCALE = (
    "A leaf's typical reading, from public knowledge, where a configuration has no mechanism.scale; given "
    "once, or once for each configuration."
)
app = cli.new_app()


YES = "Take the usual answers, which it prints, to what --answer leaves open."
ANSWERS = f"An answer to a question of a folder; the keys: {', '.join(QUESTIONS)}. Repeat it for others."
COLUMNS = (
    f"Which column is which, where names do not say it; the roles: {', '.join(ROLES)}. Repeat it for others."
)


@app.command(
    epilog=cli.examples(
        "optstream init",
        "optstream init meters",
        "optstream init meters --yes --answer alpha=8 --answer zone=Europe/London,UTC,end",
        "optstream init --mechanism PeGaSus --hourly",
    )
)
def init(
    path: Annotated[
        Path, typer.Argument(help="The folder of your files, or the file to write an example to.")
    ] = cli.DEFAULT_CONFIG,
    mechanism: Annotated[str, cli.asks("NAME", f"One of {', '.join(MECHANISMS)}.")] = "HistoryInformed",
    counts: Annotated[bool, cli.flag("--counts", "Of whole numbers of visits, not a load.")] = False,
    metered: Annotated[
        bool, cli.flag("--metered", "Of a row a customer and step, not a row a step.")
    ] = False,
    hourly: Annotated[
        bool, cli.flag("--hourly", "Released every hour, not every night; by some mechanisms.")
    ] = False,
    yes: Annotated[bool, cli.flag("--yes", YES)] = False,
    answer: Annotated[list[str] | None, cli.asks("KEY=ANSWER", ANSWERS)] = None,
    column: Annotated[list[str] | None, cli.asks("ROLE=COLUMN", COLUMNS)] = None,
) -> None:
    """Write a configuration: an example, or one for the files of a folder.

    Of a folder it reads names, columns, types and stamps, never a reading; it asks six questions, chooses
    what is expected to err least, as `advise` does, and prints the expected errors. Files stay where they
    lie.
    """
    of_folder = path.is_dir()
    if (yes or answer or column) and not of_folder:
        raise cli.WordsError(f"--yes, --answer and --column go with a folder of files, which {path} is not")
    if of_folder:
        _begin(path, yes, answer or [], column or [])
        return
    text = example_of(mechanism, counts, metered, hourly)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise OptStreamError(f"{path} exists already; nothing was written: name another file") from None
    except OSError as error:
        raise OptStreamError(f"{path} cannot be written: {error.strerror}") from None
    print(f"wrote {path}; next: optstream simulate --config {path} --from 2016-02-01 --to 2016-02-02")


def _begin(folder: Path, yes: bool, answers: Sequence[str], columns: Sequence[str]) -> None:
    """Ask for what the files do not say, and write a configuration for them."""
    terminal = Terminal()
    given = _pairs("--answer is KEY=ANSWER", answers, [*QUESTIONS])
    named = _pairs("--column is ROLE=COLUMN", columns, ROLES)
    if cli.DEFAULT_CONFIG.exists():
        raise cli.WordsError(
            f"{cli.DEFAULT_CONFIG} is there already: begin each stream in a folder of its own, by mkdir gas; "
            "cd gas; optstream init ../FOLDER; streams of the same people: docs/products.md"
        )
    with terminal.step("look at the files"):
        asked = given.get("zone", "")
        found = survey(folder, usual_zone(asked), named, by_end=asked.rpartition(",")[2].strip() == "end")
    if not yes and given.keys() != QUESTIONS.keys() and not sys.stdin.isatty():
        raise cli.WordsError(
            f"there is no terminal to ask on: take the usual answers with --yes, or give {len(QUESTIONS)} by "
            f"--answer KEY=ANSWER: {', '.join(QUESTIONS)}"
        )
    roles, n_leaves = found.roles, len(found.regions)
    of = (roles.region and f" by {roles.region}") or f" ({some_of(found.regions)})"
    kind = f"a row a customer ({roles.customer}) and step" if roles.customer else "a row a leaf and step"
    terminal.say(
        f"{found.first} to {found.last}, {n_leaves} leaves{of}, {kind}; value {roles.value}, time "
        f"{' and '.join(roles.timestamp)}; no reading was read"
    )
    if found.left:
        terminal.say(f"columns left alone: {some_of(found.left)}")

    def ask(key: str, words: str, usual: str) -> str:
        if key in given:
            return given[key]
        if not yes:
            return str(typer.prompt(f"{key}: {words}", default=usual))
        terminal.say(f"{key}: {words}: taken for {usual}")
        return usual

    begun = write_configuration(found, ask, cli.DEFAULT_CONFIG)
    _show_errors(begun.advice, found.unit, terminal)
    for warning in (*found.doubts(), *begun.advice.proposed.warnings, *filter(None, [begun.ahead])):
        terminal.explain(f"ATTENTION {warning}")
    if found.decimal and (roles.customer is not None or found.decimal == ","):
        marks, other = {".": "points", ",": "commas"}, "," if found.decimal == "." else "."
        terminal.explain(
            f"ATTENTION any number with decimal {marks[other]} counts as 0: " * (roles.customer is not None)
            + f'numbers are taken to have decimal {marks[found.decimal]}: else write decimal = "{other}"'
        )
    if not found.marked:
        terminal.explain(
            f"no file {DEFAULT_MARKER} says which days are complete: files count once they were unchanged "
            f"for {SETTLED.seconds // 60} minutes (input.marker)"
        )
    terminal.say(f"wrote {cli.DEFAULT_CONFIG}; next: optstream run --date {begun.first}")


@app.command(epilog=cli.examples("optstream simulate --from 2016-02-01 --to 2016-02-14"))
def simulate(
    first: cli.First,
    last: cli.Last,
    config: cli.Config = cli.DEFAULT_CONFIG,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same days.")] = 0,
) -> None:
    """Write made-up dumps to try things out.

    They are calibrated on public means of the French regions; dumps that are there are kept.
    """
    settings = load_settings(config)
    written = write_dumps(settings, cli.days_between(first, last), seed)
    n_kept = written.count(False)
    print(f"{sum(written)} dumps written, {n_kept} were there already, in {settings.input_folder}")


def _pairs(form: str, texts: Sequence[str], keys: Sequence[str]) -> dict[str, str]:
    pairs = {key: said for key, _, said in (one.partition("=") for one in texts)}
    if unknown := pairs.keys() - {*keys}:
        raise cli.WordsError(f"{form} with one of {', '.join(keys)}; got {min(unknown)!r}")
    return pairs


def _show_errors(advice: StreamAdvice, unit: str, terminal: Terminal) -> None:
    of = unit and f", in {unit}"
    terminal.say(f"\nexpected error of a published value by {advice.proposed.mechanism}{of}")
    levels = zip(advice.levels, advice.judge.tree.levels, advice.proposed.expected, strict=True)
    rows = [
        (name, str(len(nodes)), figure(one.error), figure(one.size or 0.0)) for name, nodes, one in levels
    ]
    terminal.table(("level", "nodes", "error", "typical size"), rows, n_texts=1)
    kept = advice.judge.settings.budget.restatement_share
    terminal.say(
        f"{kept} of epsilon is kept to measure a wrong day again: {kept / (1 - kept)} more noise "
        "(budget.restatement_share)"
    )


# `optstream advise`: how to release one stream, or several of one population, by expected errors.


@app.command(
    epilog=cli.examples(
        "optstream advise --scale 5000",
        "optstream advise --config electricity.toml --config gas.toml --write e2.toml --write g2.toml",
    )
)
def advise(
    config: Annotated[list[Path] | None, cli.config_option(CONFIG, "FILE")] = None,
    scale: Annotated[list[float] | None, cli.asks("NUMBER", SCALE)] = None,
    write: Annotated[
        list[Path] | None,
        cli.asks(
            "FILE", "Write the proposed configuration next to the present one; once for each configuration."
        ),
    ] = None,
    as_json: cli.Json = False,
) -> None:
    """Propose how to release, from public facts alone.

    Mechanism, noise, blocks, shares of levels and streams, by their expected errors. Opens no dump and no
    ledger. What HistoryInformed has learned from noisy measurements is public too, and replaces the general
    prior.
    """
    streams = [load_settings(one) for one in config or [cli.DEFAULT_CONFIG]]
    scales: list[float | None] = [*scale] if scale else [None]
    if len(scales) not in (1, len(streams)):
        raise cli.WordsError(f"--scale is given once, or once for each of {len(streams)} configurations")
    if any(one is not None and not 0 < one < float("inf") for one in scales):
        raise cli.WordsError("--scale must be a finite number greater than 0")
    if write and len(write) != len(streams):
        raise cli.WordsError(f"--write is given once for each of {len(streams)} configurations")
    terminal = Terminal(as_json)
    with terminal.step("compare plans"):
        advice = advise_plans(streams, scales * (len(streams) // len(scales)))
    if advice.stream_shares_exceed_epsilon is not None:
        terminal.explain(
            f"the streams plan with {advice.stream_shares_exceed_epsilon} of epsilon together, which the "
            "ledger refuses; they are compared at equal shares of it"
        )
    for one in advice.streams:
        _show_stream(one, terminal, alone=len(streams) == 1)
    terminal.explain(
        "Errors are root mean squares that a prior expects, the one that the stream has learned from noisy "
        "measurements, else a general one: no dump and no ledger was read. Errors on your "
        "readings may differ; trying plans on them would cost privacy that nobody counts."
    )
    terminal.document(advice)
    for settings, one, path in zip(streams, advice.streams, write or (), strict=False):
        write_proposal(settings, one.keys, path)
        terminal.say(f"wrote {path}")


def _show_stream(advice: StreamAdvice, terminal: Terminal, *, alone: bool) -> None:
    best, settings = advice.proposed, advice.settings
    name, share = settings.stream.name, settings.budget.stream_share
    budget = settings.model.currency
    marks = {id(advice.configured): "configured"}
    marks[id(advice.best)] = "best" if advice.best is not advice.configured else "best, kept"
    terminal.say(f"\n{name}: plans with {share} of {budget}, least expected error first")
    _show_plans(advice, advice.plans, marks, terminal)
    if not alone:
        terminal.say(f"\n{name}: proposed with {advice.stream_share} of {budget}, errors then")
        _show_plans(advice, [best], {id(best): "proposed"}, terminal)
    for title, plan in (("as configured", advice.configured), ("proposed", best)):
        for warning in plan.warnings:
            terminal.explain(f"{title}: {warning}")
    if not advice.keys:
        terminal.say(f"\n{name}: no plan is expected to err less than the configured one")
        return
    if advice.keys.keys() == {"published"}:
        terminal.say(
            f"\n{name}: levels that are as good as nothing need not be published; in {settings.file.name}:\n"
            f"{as_toml(advice.keys)}"
        )
        return
    less = "less" if advice.gain >= 0 else "more"  # where it leaves a share to another stream
    terminal.say(
        f"\n{name}: {best.choice.label} is expected to err {abs(advice.gain):.0%} {less} than configured; "
        f"in {settings.file.name}:\n{as_toml(advice.keys)}"
    )


def _show_plans(
    compared: Comparison, plans: Sequence[Judged], marks: Mapping[int, str], terminal: Terminal
) -> None:
    rows = []
    for plan in plans:
        joint = ", ".join(compared.levels[level] for level in plan.joint_levels)
        errors = [figure(one.error) for one in plan.expected]
        rows.append((marks.get(id(plan), ""), plan.choice.label, joint, *errors, f"{plan.relative:.2%}"))
    sizes = [figure(one.size) for one in compared.best.expected if one.size is not None]
    rows.append(("", "typical size", "", *sizes, ""))
    terminal.table(("", "plan", "joint", *compared.levels, "of size"), rows, n_texts=3)


def as_toml(keys: Mapping[str, Mapping[str, Any]]) -> str:
    """Return keys of a configuration, by table, as a person would write them into it."""
    lines = []
    for table, entries in keys.items():
        lines.append(f"    [{table}]")
        for key, value in entries.items():
            if isinstance(value, Mapping):
                inside = ", ".join(f"{name} = {json.dumps(one)}" for name, one in value.items())
                lines.append(f"    {key} = {{ {inside} }}")
            else:
                lines.append(
                    f"    # {key}: leave it out" if value is None else f"    {key} = {json.dumps(value)}"
                )
    return "\n".join(lines)
