"""The signing key: made once, kept in the trusted zone, and never shown."""

from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from optstream.catalogue.signing import LARGEST_KEY_FILE, public_pem
from optstream.errors import ConfigurationError
from tasks.config import Settings
from tasks.trusted.files import make_private_folder, write_new_private

PUBLIC = ".pub"
LEGAL = "must be an Ed25519 key in a PEM file, as `optstream keys new` makes"


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
        raise ConfigurationError(f"the signing key {path} {LEGAL}")
    return key


def new_key(path: Path) -> Path:
    """Make a signing key in a new file, its owner's alone, and its public key in a file beside it.

    Of a key whose public file is missing, as after a crash between the two, only that is written. Returns its
    path. Raises ConfigurationError, with nothing written, where it is there, or a key that cannot be read.
    """
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
    """The public keys whose signatures are the stream's: of the signing key, and the configured others.

    None where there are none. Raises ConfigurationError as `read_key`.
    """
    own = settings.signing_key_file
    keys: list[Path | str] = [*settings.public_key_files]
    if own is not None:
        keys.append(public_pem(read_key(own).public_key()))
    return keys or None
