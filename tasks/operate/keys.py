"""The signing key: made once, kept in the trusted zone, never shown; it signs what the ledger knows."""

from collections.abc import Collection, Iterator, Sequence
from datetime import date
from functools import partial
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from optstream.catalogue import Entry
from optstream.catalogue.signing import LARGEST_KEY_FILE, Signer, public_pem, read_public_keys
from optstream.errors import ConfigurationError, PublicationError
from optstream.ledger import Ledger, ReleaseOutline, ReleaseState, Vintage
from optstream.stream import period_from
from tasks.config import Settings
from tasks.trusted.files import exclusive_in, make_private_folder, write_new_private, write_private

PUBLIC = ".pub"


def read_key(path: Path) -> Ed25519PrivateKey:
    """The signing key of a file. Raises ConfigurationError, which shows nothing of it."""
    key = None
    try:
        with path.open("rb") as file:
            key = load_pem_private_key(file.read(LARGEST_KEY_FILE), password=None)
    except FileNotFoundError:
        raise ConfigurationError(
            f"the signing key {path} is not there: bring it back, or make one with `optstream keys new`"
        ) from None
    except OSError as error:
        raise ConfigurationError(f"the signing key {path} cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        pass
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigurationError(
            f"the signing key {path} must be an Ed25519 key in a PEM file, as `optstream keys new` makes"
        )
    return key


def new_key(path: Path) -> Path:
    """Make a signing key, its owner's alone, and its public file; ConfigurationError where it is there."""
    public = path.with_suffix(PUBLIC)
    if public == path:
        raise ConfigurationError(
            f"[published] signing_key must not end in {PUBLIC}, as its public key does: name {path.stem}.pem"
        )
    if public.exists() or public.is_symlink():
        raise ConfigurationError(
            f"{public} is there already, and no key is overwritten: for another key, name another file in "
            "[published] signing_key, and this one's public key in public_keys"
        )
    if path.exists() or path.is_symlink():
        key = read_key(path)
    else:
        key = Ed25519PrivateKey.generate()
        make_private_folder(path.parent)
        write_new_private(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    write_new_private(public, public_pem(key.public_key()).encode("ascii"))
    return public


def public_keys_of(settings: Settings) -> list[Path | str] | None:
    """The configured public keys and the signing key's own; None without any. Raises as `read_key`."""
    own = settings.signing_key_file
    keys: list[Path | str] = [*settings.public_key_files]
    if own is not None:
        keys.append(public_pem(read_key(own).public_key()))
    return keys or None


def next_number(settings: Settings, found: int) -> int:
    """Return a number that no catalogue of the stream had, durable before use: a crash leaves a gap."""
    path = settings.catalogue_number_file
    with exclusive_in(path.parent):
        text = path.read_bytes().strip() if path.exists() else b"0"
        if not (text.isdigit() and len(text) < 16):
            raise PublicationError(
                f"{path} must hold the number of the catalogue that was signed last; write it there: it is "
                "`sequence` of the newest catalogue.json"
            )
        number = max(int(text), found) + 1
        write_private(path, f"{number}\n".encode("ascii"))
    return number


NOTHING = "nothing was signed and nothing published"
RESTORE = "restore catalogue.json from a copy, and see `optstream ledger verify`"


def signer_of(settings: Settings, ledger: Ledger, mending: Collection[date] | None = None) -> Signer | None:
    """Return the signer, None without a key; call before the catalogue is read. Without `mending` days
    the catalogue must list every published day as it was last, or an old one's numbers would rise again.
    """
    path, files = settings.signing_key_file, settings.public_key_files
    if path is None:
        return None
    own, newest = read_key(path), dict[date, tuple[int, int]]()
    vintages = ledger.vintages(settings.stream.name)
    for one in ledger.outlines(settings.stream.name):
        if one.state is ReleaseState.PUBLISHED and one.withdrawn is None:
            known = vintages.get((one.period, one.revision), ())
            vintage = max((each.number for each in known if each.published), default=0)
            day = period_from(one.period)
            newest[day] = max(newest.get(day, (0, 0)), (one.revision, vintage))

    def confirm(entries: Sequence[Entry]) -> None:
        for line in _unconfirmed(settings.stream.name, ledger, entries, mending or ()):
            raise PublicationError(f"{NOTHING}: {line}")
        listed = {entry.period: (entry.revision, entry.vintage) for entry in entries}
        for day in sorted(set(newest) - set(mending or ())):
            if (day in listed or mending is None) and listed.get(day, (-1, -1)) < newest[day]:
                what = "lists an older release of it" if day in listed else "does not list it"
                raise PublicationError(
                    f"{NOTHING}: {day} is published, and catalogue.json {what}; `optstream publish {day}` "
                    f"puts it back, or `optstream withdraw --date {day} --reason WHY` gives it up "
                    "(`optstream ledger verify` names all)"
                )

    return Signer(own, confirm, partial(next_number, settings), read_public_keys(files) if files else {})


def _unconfirmed(
    stream: str, ledger: Ledger, entries: Sequence[Entry], mending: Collection[date]
) -> Iterator[str]:
    """Entries of a catalogue that the ledger, as it is now, does not know so."""
    releases = {(one.period, one.revision): one for one in ledger.outlines(stream)}
    vintages = ledger.vintages(stream)
    taken_back = []
    for entry in entries:
        key = (entry.period.isoformat(), entry.revision)
        release = releases.get(key)
        if release is None or recorded_otherwise(entry, release, vintages.get(key, ())) is not None:
            yield f"catalogue.json lists {entry.period} with bytes that the ledger does not know; {RESTORE}"
        elif entry.withdrawn and release.withdrawn is None and release.state is not ReleaseState.VOID:
            yield f"catalogue.json calls {entry.period} withdrawn, and the ledger does not; {RESTORE}"
        elif release.withdrawn is not None and not entry.withdrawn and entry.period not in mending:
            taken_back.append(entry.period)
    if taken_back:
        days = "".join(f" --date {day}" for day in taken_back)
        yield (
            f"{taken_back[0]} was withdrawn, and catalogue.json lists it; "
            f"`optstream withdraw{days} --reason WHY` completes it"
        )
    if ledger.missing_heads(entry.ledger_head for entry in entries):
        yield f"catalogue.json has an entry with a head that the ledger does not know; {RESTORE}"


def recorded_otherwise(entry: Entry, release: ReleaseOutline, known: Sequence[Vintage]) -> str | None:
    """What the ledger has instead of the listed bytes; None if it has these very bytes."""
    named = {0: (release.staged_hash, release.published_name)}
    named |= {one.number: (one.staged_hash, one.published_name) for one in known}
    recorded = named.get(entry.vintage, (None, "no such vintage"))
    return None if recorded == (entry.file_hash, entry.file.rpartition("/")[2]) else str(recorded[1])
