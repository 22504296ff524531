"""Commands for published folders and pages: export, report, verify-published; and the key that signs."""

from collections.abc import Sequence
from contextlib import closing, suppress
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Literal

import polars as pl
import typer

from flows.cli import options as cli
from flows.cli.output import Terminal
from optstream.catalogue import check_files, read_catalogue
from optstream.catalogue.about import About, find_hierarchy, read_about
from optstream.catalogue.backends import open_storage
from optstream.catalogue.layout import ABOUT, HIERARCHY, PAGE
from optstream.catalogue.read import catalogue_reader, rows_of, with_names
from optstream.catalogue.signing import read_public_keys, signature_check
from optstream.catalogue.standard_errors import Period, daily_replicates, period_sums
from optstream.errors import PublicationError
from tasks.config import Settings, load_settings
from tasks.ledger import need_ledger
from tasks.operate.keys import new_key
from tasks.operate.permissions import check_trusted
from tasks.pages.public import write_pages, write_public_page
from tasks.release.outcomes import ExportDocument, ReportDocument, VerifiedDocument, listed

app = cli.new_app()
NODES = 'Names of nodes, with commas between ("A, B" is one in quotes); all by default.'
AS_OF = "All rows in the hierarchy of this day, over renamed, split or merged units."
PUBLISHED = (
    "Make the data users' page alone, from this published folder (a path or a URL) and nothing else; needs "
    "no configuration."
)
OUTPUT = "With --published: write the page there instead of into the folder."


# `optstream export`: some nodes and days of a published folder as a file that other tools load.


@app.command(
    epilog=cli.examples(
        "optstream export published --from 2016-02-01 --to 2016-02-07 --output week.csv",
        "optstream export published --nodes 84,93 --weekly --as parquet --output weeks.parquet",
    )
)
def export(
    folder: Annotated[str, cli.FOLDER],
    output: Annotated[Path, cli.asks("FILE", "The file to write; none is overwritten.")],
    nodes: Annotated[str | None, cli.asks("NAMES", NODES)] = None,
    first: Annotated[
        date | None, cli.day_option("--from", "First day; the first published by default.")
    ] = None,
    last: Annotated[date | None, cli.day_option("--to", "Last day; the last published by default.")] = None,
    as_of: Annotated[date | None, cli.day_option("--as-of", AS_OF)] = None,
    daily: Annotated[bool, cli.flag("--daily", "Sums of each day, in place of steps.")] = False,
    weekly: Annotated[bool, cli.flag("--weekly", "Sums of each week, from Monday on.")] = False,
    monthly: Annotated[bool, cli.flag("--monthly", "Sums of each month.")] = False,
    kind: Annotated[Literal["csv", "parquet"], typer.Option("--as", help="The format of the file.")] = "csv",
    public_key: cli.PublicKeys = None,
    as_json: cli.Json = False,
) -> None:
    """Write some nodes and days of a published folder to a file.

    Needs the folder alone, and costs nothing: all values were published, sums of days, weeks and months
    with their standard errors.
    """
    if output.suffix == ".parquet" and kind != "parquet":
        raise typer.BadParameter(f"{output.name!r:.80} would hold {kind}: add --as parquet, or call it .csv")
    periods: dict[Period, bool] = {"day": daily, "week": weekly, "month": monthly}
    named = [name for name, wanted in periods.items() if wanted]
    if len(named) > 1:
        raise cli.WordsError("--daily, --weekly and --monthly are different files; export them one by one")
    storage, keys = open_storage(folder), public_key or None
    catalogue = catalogue_reader(storage, keys)()
    about, hierarchy = read_about(storage, signature_check(storage, ABOUT, keys)), None
    if as_of is not None:
        hierarchy = as_of, find_hierarchy(storage, signature_check(storage, HIERARCHY, keys))
    chosen = cli.names_in(nodes)
    rows = rows_of(storage, catalogue, chosen, first, last, verify=keys is not None, as_of=hierarchy)
    if named:
        # no file has replicates of another day's units
        days = pl.Series([], dtype=pl.Date) if as_of is not None else rows["date"].unique().sort()
        replicates = daily_replicates(storage, catalogue, days)
        rows = period_sums(rows, catalogue.value_column, named[0], replicates)
    rows = with_names(rows, about.nodes)
    if output.exists():
        raise cli.WordsError(f"{output} is there already; name another file, or remove it")
    with output.open("xb") as written:
        if kind == "parquet":
            rows.write_parquet(written)
        else:
            rows.write_csv(written, datetime_format="%Y-%m-%dT%H:%M:%SZ")
    terminal = Terminal(as_json)
    if about.known_noise:
        terminal.say(f"note: {about.known_noise_in_words}")
    terminal.say(f"{output}: {rows.height:,} rows")
    terminal.document(
        ExportDocument(file=str(output), rows=rows.height, known_noise=about.known_noise or None)
    )


# `optstream report`: rebuild the pages, as every night does.


@app.command(
    epilog=cli.examples(
        "optstream report",
        "optstream report --config population.toml",
        "optstream report --published published --output page.html",
    )
)
def report(
    config: cli.Configs = None,
    published: Annotated[str | None, cli.asks("FOLDER", PUBLISHED)] = None,
    output: Annotated[Path | None, cli.asks("FILE", OUTPUT)] = None,
    as_json: cli.Json = False,
) -> None:
    """Write the pages for operators and for data users.

    They show calendar, curves, budget and alarms, and how to read the published folder.
    """
    if published is not None:
        terminal = Terminal(as_json)
        lost = write_public_page(published, output)
        page = str(output) if output else f"{published.rstrip('/')}/index.html"
        terminal.say(f"data users: {page}")
        terminal.document(ReportDocument(trusted=None, public=page))
        raise typer.Exit(_show_lost(lost, terminal).code)
    if output is not None:
        raise cli.WordsError("--output is for --published")

    def of_stream(settings: Settings, terminal: Terminal) -> cli.Done:
        check_trusted(settings)
        with closing(need_ledger(settings)) as ledger:
            try:
                facts = write_pages(settings, ledger, datetime.now(UTC))
            except PublicationError:  # once the operators' page is there
                terminal.document(ReportDocument(trusted=str(settings.report_file), public=None))
                raise
        public = None if facts is None else str(settings.published_folder / PAGE)
        terminal.say(f"operators:  {settings.report_file}")
        terminal.say(f"data users: {public or 'no page: nothing is published'}")
        terminal.document(ReportDocument(trusted=str(settings.report_file), public=public))
        return _show_lost(tuple(facts.lost if facts else ()), terminal)

    cli.each_stream(config, as_json, of_stream)


def _show_lost(lost: Sequence[date], terminal: Terminal) -> cli.Done:
    """Name the days that the page cannot show; code 1 if there are any."""
    if not lost:
        return cli.Done(0, "written")
    terminal.say(
        f"their published file is missing or damaged, and the page shows the other days: {listed(lost)}; "
        f"`optstream publish {lost[0]}` writes the same bytes again"
    )
    return cli.Done(1, f"written, {len(lost)} days cannot be shown")


# Signatures: make a key, and check a published folder with a public one, as its readers can.

keys_app = cli.new_app("Signatures: make the key that signs.")
app.add_typer(keys_app, name="keys")


@keys_app.command(epilog=cli.examples("optstream keys new"))
def new(config: cli.Config = cli.DEFAULT_CONFIG) -> None:
    """Make the key that signs publications.

    It lies in the trusted zone; its public key, for readers, is printed. Where the configuration names no
    `[published] signing_key`, it is made as `signing.pem` of the trusted folder, and the line for the
    configuration is printed. No key is ever overwritten.
    """
    settings = load_settings(config)
    path = settings.signing_key_file or settings.trusted_folder / "signing.pem"
    public = new_key(path)
    (name,) = read_public_keys(public)
    print(f"key {name}: {path}, which nobody else may read; back it up with the ledger")
    print(f"its public key, for readers, is {public}:\n{public.read_text(encoding='ascii')}", end="")
    if settings.signing_key_file is None:
        print(f'name it in the configuration, under [published]: signing_key = "{path}"')


@app.command(
    epilog=cli.examples(
        "optstream verify-published published",
        "optstream verify-published published --public-key signing.pub --at-least 41",
    )
)
def verify_published(
    folder: Annotated[str, cli.FOLDER],
    public_key: Annotated[
        list[Path] | None, cli.public_key_option(" Without, only hashes are compared.")
    ] = None,
    at_least: Annotated[
        int | None, cli.asks("NUMBER", "The highest number of a catalogue seen before.", min=1)
    ] = None,
    as_json: cli.Json = False,
) -> None:
    """Check a published folder, also by its signatures.

    Compares every file with the catalogue, and the catalogue with the public key. Needs the folder alone.
    Exit code 1 if a file is missing, altered or not listed, or lacks the key's signature.
    """
    terminal = Terminal(as_json)
    catalogue = read_catalogue(folder)
    problems = check_files(folder, public_key or None)
    if at_least is not None and (catalogue.sequence or 0) < at_least:
        problems.append(
            f"catalogue.json has number {catalogue.sequence or 'none'}, and you have seen {at_least}: an "
            "older one was put in its place; ask its publisher"
        )
    about = About()
    with suppress(PublicationError):  # a problem that is named already
        about = read_about(open_storage(folder))
    for line in problems:
        terminal.say(f"problem: {line}")
    if about.known_noise:
        terminal.say(f"note: {about.known_noise_in_words}")
    listed = [entry.period for entry in catalogue.entries if not entry.withdrawn]
    days = f"{len(listed)} days" + (f" up to {max(listed)}" if listed else "")
    number = "unnumbered" if catalogue.sequence is None else f"number {catalogue.sequence}"
    signed = "hashes compared" if not public_key else "hashes and signature compared"
    verdict = f"{len(problems)} found" if problems else "nothing is wrong"
    terminal.say(f"{verdict}: {days}, catalogue {number}, {signed}")
    terminal.document(
        VerifiedDocument(
            stream=catalogue.stream,
            sequence=catalogue.sequence,
            days=len(listed),
            signature_checked=bool(public_key),
            problems=tuple(problems),
            known_noise=about.known_noise or None,
        )
    )
    raise typer.Exit(1 if problems else 0)
