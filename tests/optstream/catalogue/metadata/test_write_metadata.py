"""Descriptions of the published folder: of its catalogue, moving forward only, signed where it is."""

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from optstream.catalogue import check_files
from optstream.catalogue import metadata as write_metadata
from optstream.catalogue.about import About
from optstream.catalogue.metadata import OWN, put_metadata
from optstream.catalogue.signing import Signer, public_pem
from tests.optstream.catalogue.folders import DAY, NEXT, memory_folder

KEY = Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32)
TOLD = About(
    publisher="Example Grid",
    licence="CC BY 4.0",
    contact="data@example.org",
    address="https://example.org/load/",
)


def test_they_are_of_the_catalogue_and_the_same_bytes_until_it_changes(published, put):
    assert not put_metadata(published.name, TOLD), "there is nothing to describe"
    put(published.name, DAY)
    assert put_metadata(published.name, TOLD)
    first = {name: published.read(name) for name in OWN}
    assert not put_metadata(published.name, TOLD)
    assert check_files(published.name) == []
    put(published.name, NEXT)
    behind = check_files(published.name)
    assert [line.split()[0] for line in behind] == list(OWN)
    assert put_metadata(published.name, TOLD)
    assert check_files(published.name) == []
    assert all(published.read(name) != first[name] for name in OWN)
    published.write("datapackage.json", b'{"version": 1}')
    (line,) = check_files(published.name)
    assert line.startswith("datapackage.json is not of the days")


def test_one_of_an_older_catalogue_never_takes_the_place_of_a_newer_ones(put, monkeypatch):
    """Another publishes, and describes, after this one has read the catalogue."""
    published = memory_folder()
    put(published.name, DAY)
    read = write_metadata.read_dataset

    def overtaken(storage, about):
        found = read(storage, about)
        monkeypatch.setattr(write_metadata, "read_dataset", read)
        put(published.name, NEXT)
        put_metadata(published.name, TOLD)
        return found

    monkeypatch.setattr(write_metadata, "read_dataset", overtaken)
    put_metadata(published.name, TOLD)
    assert check_files(published.name) == []


def test_they_are_signed_where_the_catalogue_is(published, put):
    key = Signer(KEY, lambda _entries: None)
    put(published.name, DAY)
    put_metadata(published.name, TOLD, key)
    pem = public_pem(KEY.public_key())
    unsigned = [line for line in check_files(published.name, pem) if "is not signed" in line]
    assert [line.split()[0] for line in unsigned] == ["catalogue.json", *OWN]
    put(published.name, DAY, signer=key)
    put_metadata(published.name, TOLD, key)
    assert check_files(published.name, pem) == []
    published.write("croissant.json", published.read("croissant.json").replace(b"Grid", b"Grit"))
    (line,) = check_files(published.name, pem)
    assert line.startswith("croissant.json is not signed")
