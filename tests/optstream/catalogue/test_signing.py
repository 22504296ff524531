"""Signed catalogues, in every kind of place: what the key did not sign is not read with it."""

import os

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from optstream.catalogue import check_files, read_catalogue, read_published
from optstream.catalogue.layout import signature_file
from optstream.catalogue.publication import close_days
from optstream.catalogue.signing import Signer, public_pem, read_public_keys
from optstream.errors import ParameterError, PublicationError
from tests.failing import raising
from tests.optstream.catalogue.conftest import days_in, put, take_back
from tests.optstream.catalogue.folders import DAY, KINDS, NEXT, PEM, PRIVATE, SIGNER

OTHER_KEY = Ed25519PrivateKey.from_private_bytes(bytes([2]) * 32)
OTHER, OTHER_PEM = Signer(OTHER_KEY, lambda _entries: None), public_pem(OTHER_KEY.public_key())


def sign(folder, period=DAY, by=SIGNER, **more):
    return put(folder.name, period, signer=by, **more)


def signed_days_in(folder, key=PEM):
    return days_in(folder.name, public_key=key)


def refused(folder, match, key=PEM):
    with pytest.raises(PublicationError, match=match):
        read_published(folder.name, public_key=key)
    lines = check_files(folder.name, public_key=key)
    own = ("catalogue.json", "the signature of catalogue.json")
    assert [line for line in lines if line.startswith(own)], lines


@pytest.mark.parametrize("published", KINDS, indirect=True)
def test_what_is_signed_is_read_with_the_key_and_without(published):
    sign(published)
    sign(published, NEXT)
    assert signed_days_in(published) == signed_days_in(published, None) == [DAY, NEXT]
    assert check_files(published.name, public_key=PEM) == []
    assert read_catalogue(published.name).sequence == 2
    catalogue = published.read("catalogue.json")
    PRIVATE.public_key().verify(published.read(signature_file(catalogue, SIGNER.name)), catalogue)


def test_a_lost_or_spoilt_signature_is_put_back(published):
    sign(published)
    before = published.files()
    (name,) = [one for one in before if one.startswith("signatures/")]
    published.remove(name)
    assert sign(published).changed
    published.write(name, b"spoilt")
    assert sign(published).changed
    assert published.files() == before


def test_the_catalogue_alone_is_signed_and_covers_manifests_and_files_by_its_hashes(published, tmp_path):
    """Version 0.2 signed manifests too: those signatures are no longer read."""
    entry = sign(published).entry
    (only,) = [name for name in published.files() if name.startswith("signatures/")]
    assert only == signature_file(published.read("catalogue.json"), SIGNER.name)
    manifest = published.read(entry.manifest)
    for signature in (PRIVATE.sign(manifest), b"spoilt"):
        published.write(signature_file(manifest, SIGNER.name), signature)
        assert signed_days_in(published) == [DAY]
        assert check_files(published.name, public_key=PEM) == []
    other = manifest.replace(b'"revision": 1', b'"revision": 2')
    assert other != manifest
    for signature in (PRIVATE.sign(manifest), b"spoilt"):
        published.write(signature_file(other, SIGNER.name), signature)
        published.write(entry.manifest, other)
        (line,) = check_files(published.name, public_key=PEM)
        assert "says other things than the file and the catalogue" in line
    another = put(tmp_path / "other", DAY, shift=5.0).entry
    published.write(entry.file, (tmp_path / "other" / another.file).read_bytes())
    with pytest.raises(PublicationError, match="differs from its hash"):
        read_published(published.name, public_key=PEM)


def test_a_day_withdrawn_before_there_was_a_key_is_signed_when_it_is_withdrawn_again(published):
    put(published.name, DAY)
    take_back(published.name)
    refused(published, "is not signed")
    assert take_back(published.name, signer=SIGNER).changed
    assert signed_days_in(published) == []
    assert check_files(published.name, public_key=PEM) == []
    assert not take_back(published.name, signer=SIGNER).changed


def test_a_folder_that_lost_a_file_is_signed_and_one_that_lists_other_rows_is_not(published):
    put(published.name, DAY)
    lost = put(published.name, NEXT).entry
    published.remove(lost.file)
    assert sign(published, NEXT).changed
    assert check_files(published.name, public_key=PEM) == []
    for name in [one for one in published.files() if one.startswith("signatures/")]:
        published.remove(name)
    listed = published.read("catalogue.json").replace(lost.rows_hash.encode(), b"0" * 64)
    published.write("catalogue.json", listed)
    with pytest.raises(PublicationError, match="lists 2016-02-02 with another rows_hash than its file has"):
        sign(published, DAY, revision=2)
    assert published.read("catalogue.json") == listed


def test_keys_are_changed_one_after_the_other(published, tmp_path):
    """Readers know the new key before it is used, and the old one for as long as they like."""
    sign(published)
    sign(published, by=OTHER)  # the same day again: the catalogue is signed by both
    assert signed_days_in(published, PEM) == signed_days_in(published, OTHER_PEM) == [DAY]
    sign(published, NEXT, by=OTHER)
    refused(published, "not signed by key")
    both = tmp_path / "keys.pem"
    both.write_text(PEM + OTHER_PEM)
    for keys in (OTHER_PEM, [PEM, OTHER_PEM], both, str(both)):
        assert signed_days_in(published, keys) == [DAY, NEXT]
        assert check_files(published.name, public_key=keys) == []
    assert read_catalogue(published.name).sequence == 2


def test_no_day_is_closed_in_a_catalogue_that_the_ledger_does_not_know(published):
    sign(published)
    before, refuse = published.files(), raising(PublicationError("not in the ledger"))
    with pytest.raises(PublicationError, match="not in the ledger"):
        close_days(published.name, [DAY], Signer(PRIVATE, refuse))
    assert published.files() == before


X25519 = X25519PrivateKey.generate().public_key()


@pytest.mark.parametrize(
    "given",
    [
        "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
        X25519.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode(),
        "no-such-file.pem",
        [],
    ],
)
def test_what_is_no_public_key_is_refused_in_words(given):
    with pytest.raises(ParameterError, match="public"):
        read_public_keys(given)


def test_a_signature_that_is_a_pipe_keeps_nobody_waiting(tmp_path):
    put(tmp_path, DAY, signer=SIGNER)
    path = tmp_path / signature_file((tmp_path / "catalogue.json").read_bytes(), SIGNER.name)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(PublicationError, match="not a plain file"):
        read_published(tmp_path, public_key=PEM)
