"""Ed25519 signatures of the catalogue, which has the hashes of releases, and of facts and descriptions, which
it does not cover: of a file's very bytes, by a key of the trusted zone, written before the file and never
removed.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from optstream.catalogue.backends import Readable, Transaction, change_folder
from optstream.catalogue.index import LARGEST_SEQUENCE, SIGNED, Catalogue, Entry
from optstream.catalogue.layout import CATALOGUE, SIGNATURES, signature_file
from optstream.catalogue.statement import decode
from optstream.errors import ParameterError, PublicationError
from optstream.storage.store import Location

Keys = Mapping[str, Ed25519PublicKey]  # public keys by their identifiers
GivenKeys = Path | str | Sequence[Path | str]  # of one or more public keys: paths of PEM files, or PEM texts

LARGEST_KEY_FILE = 2**16
_PEM = re.compile(r"-----BEGIN PUBLIC KEY-----[A-Za-z0-9+/=\s]{1,500}-----END PUBLIC KEY-----")


@dataclass(frozen=True)
class Signer:
    """Signs publications.

    confirm: raises unless the ledger knows every entry of the catalogue that is there, which anyone may have
    written. next_number: from the number of a catalogue that one of the keys signed (0 for any other) to one
    that is higher than every one that was signed before.
    """

    key: Ed25519PrivateKey = field(repr=False)
    confirm: Callable[[Sequence[Entry]], None] = field(repr=False)
    next_number: Callable[[int], int] = field(default=lambda found: found + 1, repr=False)
    earlier: Keys = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        return key_name(self.key.public_key())

    def sign(self, transaction: Transaction, data: bytes) -> bool:
        """Write the signature of a file of these bytes, also over a wrong one; return if it was needed."""
        name, signature = signature_file(data, self.name), self.key.sign(data)
        try:
            is_needed = transaction.read(name) != signature
        except (FileNotFoundError, PublicationError):
            is_needed = True
        if is_needed:
            transaction.replace_marked(name, signature, transaction.mark(name))
        transaction.settle({name: SIGNED, SIGNATURES: SIGNED})
        return is_needed

    def take_up(self, transaction: Transaction, catalogue: Catalogue | None) -> None:
        """Raise PublicationError unless the ledger knows it, and the rows of an unsigned one match."""
        self.confirm(() if catalogue is None else catalogue.entries)
        if catalogue is None or self.has_signed(transaction, catalogue, **self.earlier):
            return
        for entry in catalogue.listed:
            if _has_other_rows(transaction, entry):
                raise PublicationError(
                    f"nothing was signed and nothing published: {CATALOGUE} lists {entry.period} with "
                    f"another rows_hash than its file has; restore {CATALOGUE} from a copy"
                )

    def has_signed(self, transaction: Transaction, catalogue: Catalogue, **others: Ed25519PublicKey) -> bool:
        """Return whether this key, or one of the others, signed this catalogue."""
        keys = {self.name: self.key.public_key(), **others}
        try:
            check_signature(transaction, CATALOGUE, catalogue.to_bytes(), keys)
        except (PublicationError, OSError):
            return False
        return True


def _has_other_rows(storage: Readable, entry: Entry) -> bool:
    """Return whether a listed file has other rows than listed; of a lost or altered one nothing is known."""
    with suppress(FileNotFoundError, PublicationError):
        data = storage.read(entry.file)
        if hashlib.sha256(data).hexdigest() == entry.file_hash:
            return decode(data)[1].rows_hash != entry.rows_hash
    return False


def put_file(
    transaction: Transaction, name: str, data: bytes, mark: str | None, signer: Signer | None = None
) -> bool:
    """Atomically replace the file that had this mark, signed if there is a key; return whether it changed."""
    changed = signer is not None and signer.sign(transaction, data)
    if mark is None or transaction.read(name) != data:
        transaction.replace_marked(name, data, mark)
        return True
    return changed


def put_fact(folder: Location | str, name: str, data: bytes, is_needed: bool, signer: Signer | None) -> bool:
    """Put a file of public facts as `put_file`; where it is not needed, none is made."""

    def put(transaction: Transaction) -> bool:
        mark = transaction.mark(name)
        if mark is None and not is_needed:
            return False
        transaction.prepare()
        return put_file(transaction, name, data, mark, signer)

    return change_folder(folder, put, name, "fix it and run `optstream report`")


def key_name(key: Ed25519PublicKey) -> str:
    """Return a key's identifier: the first 16 digits of the SHA-256 of its 32 bytes."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()[:16]


def public_pem(key: Ed25519PublicKey) -> str:
    """Return a public key as PEM text, for files and `read_public_keys`."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat  # half of cryptography

    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode("ascii")


def read_public_keys(given: GivenKeys) -> Keys:
    """Return the public keys of PEM files, or of PEM texts. Raises ParameterError."""
    several = [given] if isinstance(given, Path | str) else list(given)
    keys = [key for one in several for key in _keys_of(one)]
    if not keys:
        raise ParameterError("public_key must name at least one public key")
    return {key_name(key): key for key in keys}


def _keys_of(given: Path | str) -> Iterable[Ed25519PublicKey]:
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    text, what = str(given), "a public key"
    if isinstance(given, Path) or "-----BEGIN" not in given:
        what = f"the public key {given}"
        try:
            with Path(given).open("rb") as file:
                text = file.read(LARGEST_KEY_FILE).decode("ascii", "replace")
        except OSError as error:
            raise ParameterError(f"{what} cannot be read: {error.strerror}") from None
    found = _PEM.findall(text)
    if not found:
        raise ParameterError(f"{what} must be the text of a PEM file, -----BEGIN PUBLIC KEY-----")
    for pem in found:
        key = None
        with suppress(ValueError, UnsupportedAlgorithm):
            key = load_pem_public_key(pem.encode("ascii"))
        if not isinstance(key, Ed25519PublicKey):
            raise ParameterError(f"{what} must be an Ed25519 key, as `optstream keys new` makes")
        yield key


def check_signature(storage: Readable, name: str, data: bytes, keys: Keys) -> str:
    """Return the identifier of a key that signed this file, or raise PublicationError."""
    for key_id, key in keys.items():
        try:
            signature = storage.read(signature_file(data, key_id))
            key.verify(signature, data)
        except FileNotFoundError:
            continue
        except InvalidSignature:
            raise PublicationError(
                f"the signature of {name} by key {key_id} does not hold: somebody else wrote it; restore both"
            ) from None
        return key_id
    listed = ", ".join(sorted(keys))
    raise PublicationError(
        f"{name} is not signed by key {listed}: it was altered, or published without that key; ask its "
        "publisher, whose next publication, or `optstream publish DAY`, signs it"
    )


def signature_check(
    storage: Readable, name: str, given: GivenKeys | None
) -> Callable[[bytes], object] | None:
    """Return what raises PublicationError for bytes that none of these keys signed; None without keys."""
    return None if given is None else partial(check_signature, storage, name, keys=read_public_keys(given))


def put_catalogue(
    transaction: Transaction, found: Catalogue | None, catalogue: Catalogue, signer: Signer | None
) -> Catalogue:
    """Replace the catalogue, signed and numbered; only a signed one is believed its number."""
    if signer is None:
        if catalogue.sequence is not None:
            catalogue = catalogue.changed(sequence=min(catalogue.sequence + 1, LARGEST_SEQUENCE - 1))
        transaction.replace_catalogue(catalogue.to_bytes())
        return catalogue
    was_signed = found is not None and signer.has_signed(transaction, found, **signer.earlier)
    number = found.sequence if was_signed and found is not None else None
    catalogue = catalogue.changed(sequence=signer.next_number(number or 0))
    data = catalogue.to_bytes()
    signer.sign(transaction, data)
    transaction.replace_catalogue(data)
    return catalogue
