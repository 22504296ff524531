"""What `--help` says beside each command's own words: its panel, one line, and examples that can be typed."""

from dataclasses import dataclass

import typer

START = "Set up"
RELEASE = "Release"
LOOK = "Look"
REPAIR = "Repair and look after"
STUDY = "Study: nothing is released"


@dataclass(frozen=True)
class Help:
    """panel: where the list of commands has it. line: what stands beside its name there."""

    line: str
    examples: tuple[str, ...] = ()
    panel: str | None = None


TEXTS = {
    "init": Help("Write a commented example configuration that runs.", ("optstream init",), START),
    "simulate": Help(
        "Write made-up dumps to try things out.",
        ("optstream simulate --from 2016-02-01 --to 2016-02-14",),
        START,
    ),
    "import-rte": Help(
        "Turn RTE's yearly files (éCO2mix) into daily dumps.",
        ("optstream import-rte eCO2mix_RTE_*_2016.zip --into dumps",),
        START,
    ),
    "doctor": Help("Look for what lets secrets out or stops nights.", ("optstream doctor",), START),
    "keys": Help("Signatures: make the key that signs.", panel=START),
    "keys new": Help("Make the key that signs what is published.", ("optstream keys new",)),
    "run": Help(
        "Release days, each once, from dump to published file.",
        (
            "optstream run --date 2016-02-01 --dry-run",
            "optstream run --date 2016-02-01",
            "optstream run --date 2016-02-01 --restate",
        ),
        RELEASE,
    ),
    "backfill": Help(
        "Release every missing day of a span.",
        (
            "optstream backfill --from 2013-01-01 --to 2016-12-31 --dry-run",
            "optstream backfill --from 2013-01-01 --to 2016-12-31 --workers 2",
        ),
        RELEASE,
    ),
    "serve": Help(
        "Run the stream every night, and its watch every hour.",
        ("optstream serve", "optstream serve --api https://prefect.example.org/api"),
        RELEASE,
    ),
    "report": Help(
        "Write the pages for operators and for data users.",
        ("optstream report", "optstream report --published published --output page.html"),
        LOOK,
    ),
    "status": Help(
        "Print the calendar, the budget and the alarms.",
        ("optstream status", "optstream status --json"),
        LOOK,
    ),
    "watch": Help("Print them too, and tell of what is new or over.", ("optstream watch",), LOOK),
    "ledger": Help("What was spent: show, horizon, verify, export, amend.", panel=LOOK),
    "ledger show": Help(
        "Print terms, releases, and what each window has left.",
        ("optstream ledger show", "optstream ledger show --from 2016-02-01 --to 2016-02-29"),
    ),
    "ledger horizon": Help(
        "Print what a customer's whole month or year loses.",
        ("optstream ledger horizon --days 365 --delta 1e-6",),
    ),
    "ledger verify": Help("Find any edit, gap or difference.", ("optstream ledger verify",)),
    "ledger export": Help(
        "Write it as Parquet, for the trusted zone.", ("optstream ledger export --into exported",)
    ),
    "ledger amend": Help(
        "Declare another promise.",
        ("optstream ledger amend --dry-run", "optstream ledger amend --reason 'the board raised epsilon'"),
    ),
    "ledger release-lease": Help(
        "Free a day that a run holds which is gone.",
        ("optstream ledger release-lease 2016-02-01 --why 'its machine burnt'",),
    ),
    "ledger compromised": Help(
        "Record that others know the noise of days.",
        ("optstream ledger compromised --date 2016-02-01 --reason 'a stolen disk'",),
    ),
    "verify-published": Help(
        "Check a published folder, also by its signatures.",
        (
            "optstream verify-published published",
            "optstream verify-published published --public-key signing.pub --at-least 41",
        ),
        LOOK,
    ),
    "withdraw": Help(
        "Take days back out of the catalogue; they stay charged.",
        ("optstream withdraw --date 2016-02-01 --reason 'the wrong dump'",),
        REPAIR,
    ),
    "publish": Help(
        "Write lost or damaged published files again, for free.",
        ("optstream publish 2016-02-01", "optstream publish --from 2016-02-01 --to 2016-02-29"),
        REPAIR,
    ),
    "purge": Help(
        "Remove what is past its retention.", ("optstream purge --dry-run", "optstream purge"), REPAIR
    ),
    "audit": Help(
        "Attack the mechanisms: is any epsilon broken?",
        (
            "optstream audit --only 'sparse vector'",
            "optstream audit --only rows",
            "optstream audit --config optstream.toml --date 2016-02-01",
        ),
        STUDY,
    ),
    "leakage": Help(
        "Measure what knowing a customer's habits adds.",
        ("optstream leakage --transition M.csv --plot leakage.svg",),
        STUDY,
    ),
    "evaluate": Help(
        "Recommend how to release, or rerun the papers.",
        (
            "optstream evaluate --config optstream.toml --trials 1",
            "optstream evaluate --into evaluation --short",
        ),
        STUDY,
    ),
    "learn-proxy": Help(
        "Learn what to believe at first from a public series.",
        ("optstream learn-proxy --data public --name 'open data of 2013' --from 2013-01-01 --to 2013-12-31",),
        STUDY,
    ),
}


def add_help(app: typer.Typer, group: str = "") -> None:
    """Give every command of `app`, and of its groups, its panel and line, and examples below its options."""
    for command in app.registered_commands:
        name = command.name or (command.callback.__name__.replace("_", "-") if command.callback else "")
        text = TEXTS.get(f"{group} {name}".strip())
        if text is not None:
            command.rich_help_panel, command.short_help = text.panel, text.line
            command.epilog = "\n\n".join(["Examples:", *(f"`{one}`" for one in text.examples)])
    for inner in app.registered_groups:
        text = TEXTS.get(inner.name or "")
        if text is not None:
            inner.rich_help_panel, inner.short_help = text.panel, text.line
        if inner.typer_instance is not None:
            add_help(inner.typer_instance, inner.name or "")
