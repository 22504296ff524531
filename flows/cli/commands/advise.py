"""`optstream advise`: how to release one stream, or several of one population, by expected errors."""

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.console import Terminal
from flows.cli.options import DEFAULT_CONFIG, Json, WordsError, asks, examples, new_app
from flows.cli.show.plan_advice import show_plan_advice
from optstream.errors import ParameterError
from tasks.config import load_settings
from tasks.planning.advice.propose_plans import advise_plans
from tasks.planning.advice.write_proposal import write_proposal

app = new_app()


@app.command(
    epilog=examples(
        "optstream advise --scale 5000",
        "optstream advise --config electricity.toml --config gas.toml --write e2.toml --write g2.toml",
        "optstream advise --picture plans.svg",
    )
)
def advise(
    config: Annotated[
        list[Path] | None,
        typer.Option(
            "--config",
            "-c",
            metavar="FILE",
            help="The configuration file (TOML), else optstream.toml; may be repeated for the streams of one "
            "population.",
        ),
    ] = None,
    scale: Annotated[
        list[float] | None,
        asks(
            "NUMBER",
            "A leaf's typical reading, from public knowledge, where a configuration has no "
            "mechanism.scale; given once, or once for each configuration.",
        ),
    ] = None,
    picture: Annotated[Path | None, asks("FILE", "Draw the expected errors, as .svg or .png.")] = None,
    write: Annotated[
        list[Path] | None,
        asks(
            "FILE", "Write the proposed configuration, beside the present one; once for each configuration."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Propose how to release, from public facts alone.

    Mechanism, noise, shares of levels and streams, by their expected errors. Opens no dump and no ledger.
    """
    streams = [load_settings(one) for one in config or [DEFAULT_CONFIG]]
    scales: list[float | None] = [*scale] if scale else [None]
    if len(scales) not in (1, len(streams)):
        raise WordsError(f"--scale is given once, or once for each of {len(streams)} configurations")
    if any(one is not None and not 0 < one < float("inf") for one in scales):
        raise WordsError("--scale must be a finite number greater than 0")
    if write and len(write) != len(streams):
        raise WordsError(f"--write is given once for each of {len(streams)} configurations")
    if picture is not None and picture.suffix not in (".svg", ".png"):
        raise ParameterError(f"a chart is written as .svg or .png; got {picture.name}")
    terminal = Terminal(as_json)
    with terminal.step("compare plans"):
        advice = advise_plans(streams, scales * (len(streams) // len(scales)))
    show_plan_advice(advice, terminal)
    for settings, one, path in zip(streams, advice.streams, write or (), strict=False):
        write_proposal(settings, one.keys, path)
        terminal.say(f"wrote {path}")
    if picture is not None:
        from tasks.planning.advice.plans_picture import draw_plans  # altair takes a second

        draw_plans(advice, picture)
        terminal.say(f"drew {picture}")
