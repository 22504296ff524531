"""Signatures: make a key, and check a published folder with a public one, as its readers can."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.console import Terminal
from flows.cli.options import DEFAULT_CONFIG, Config, Json, examples, new_app
from optstream.catalogue import check_files, read_catalogue
from optstream.catalogue.about import About, read_about
from optstream.catalogue.backends import open_storage
from optstream.catalogue.signing import read_public_keys
from optstream.errors import PublicationError
from tasks.config import load_settings
from tasks.signing.key import new_key

app, keys_app = new_app(), new_app("Signatures: make the key that signs.")
app.add_typer(keys_app, name="keys")
USUAL_KEY = "signing.pem"


@keys_app.command(epilog=examples("optstream keys new"))
def new(config: Config = DEFAULT_CONFIG) -> None:
    """Make the key that signs what is published.

    It lies in the trusted zone; its public key, for readers, is printed. Where the configuration names no
    `[published] signing_key`, it is made as `signing.pem` of the trusted folder, and the line for the
    configuration is printed. No key is ever overwritten.
    """
    settings = load_settings(config)
    path = settings.signing_key_file or settings.trusted_folder / USUAL_KEY
    public = new_key(path)
    (name,) = read_public_keys(public)
    print(f"key {name}: {path}, which nobody else may read; back it up with the ledger")
    print(f"its public key, for readers, is {public}:\n{public.read_text(encoding='ascii')}", end="")
    if settings.signing_key_file is None:
        print(f'name it in the configuration, under [published]: signing_key = "{path}"')


@app.command(
    epilog=examples(
        "optstream verify-published published",
        "optstream verify-published published --public-key signing.pub --at-least 41",
    )
)
def verify_published(
    folder: Annotated[str, typer.Argument(help="A path, or a URL such as s3://bucket/published.")],
    public_key: Annotated[
        list[Path] | None,
        typer.Option(
            "--public-key",
            metavar="FILE",
            help="The publisher's public key (PEM); may be repeated. Without, only hashes are compared.",
        ),
    ] = None,
    at_least: Annotated[
        int | None,
        typer.Option(min=1, metavar="NUMBER", help="The highest number of a catalogue seen before."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check a published folder, also by its signatures.

    Compares every file with the catalogue, and the catalogue with the public key. Needs the folder alone.
    Exit code 1 if a file is missing, altered or not listed, or if the key did not sign what it should have.
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
    told = f"{len(problems)} found" if problems else "nothing is wrong"
    terminal.say(f"{told}: {days}, catalogue {number}, {signed}")
    terminal.document(
        {
            "format": "optstream.verified/1",
            "stream": catalogue.stream,
            "sequence": catalogue.sequence,
            "days": len(listed),
            "signature_checked": bool(public_key),
            "problems": problems,
            **({"known_noise": list(map(list, about.known_noise))} if about.known_noise else {}),
        }
    )
    raise typer.Exit(1 if problems else 0)
