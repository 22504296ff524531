"""The signing key from its making to the readers: what the ledger does not know is never signed."""

import json
import logging
import os
import re
import stat
from base64 import b64encode
from datetime import date
from pathlib import Path

import fsspec
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from jsonschema import Draft202012Validator

from optstream.catalogue import publish, read_catalogue, read_published, stage
from optstream.catalogue import withdraw as withdraw_published
from optstream.catalogue.backends import open_storage
from optstream.catalogue.index import LARGEST_SEQUENCE
from optstream.catalogue.read import read_statement
from optstream.catalogue.signing import Signer
from optstream.errors import ConfigurationError, PublicationError
from tasks.operate.keys import new_key, read_key
from tasks.operate.permissions import check_trusted
from tasks.release.run import Status
from tasks.schemas import schema_of
from tests.tasks.two_regions import assert_ended

DAY, NEXT = date(2016, 6, 1), date(2016, 6, 2)


def sign_with(installation, name):
    installation.configure("[published]", f'[published]\nsigning_key = "trusted/{name}"')


@pytest.fixture(params=["path", pytest.param("s3", marks=pytest.mark.nightly)])
def signed(installation, request):
    """The small stream, published in a folder, by night in a store too, with a signing key."""
    if request.param == "s3":
        bucket = request.getfixturevalue("s3_bucket")
        installation.configure('folder = "published"', f'folder = "s3://{bucket}/public"')
    sign_with(installation, "signing.pem")
    installation.public = new_key(installation.settings.signing_key_file)
    return installation


def days_in(installation, key=None):
    rows = read_published(installation.settings.published_folder, public_key=key or installation.public)
    return rows["date"].unique().sort().to_list()


def put(installation, name, data):
    folder = installation.settings.published_folder
    if isinstance(folder, Path):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    with fsspec.open(f"{installation.settings.published_folder}/{name}", "wb") as file:
        file.write(data)


def get(installation, name):
    with fsspec.open(f"{installation.settings.published_folder}/{name}", "rb") as file:
        return file.read()


def kept(installation, day):
    return {one: get(installation, one) for one in ("catalogue.json", listed(installation).entry(day).file)}


def bring_back(installation, files):
    for name, data in files.items():
        put(installation, name, data)


def listed(installation):
    return read_catalogue(installation.settings.published_folder)


def assert_whole(installation, *days):
    assert days_in(installation) == [*days]
    assert installation.problems() == []


def test_what_a_night_publishes_is_signed_and_verified(signed):
    check_trusted(signed.settings)
    assert signed.status(DAY) is Status.PUBLISHED
    assert signed.status(NEXT) is Status.PUBLISHED
    assert_whole(signed, DAY, NEXT)
    document = json.loads(get(signed, "catalogue.json"))
    assert document["sequence"] == 2
    assert list(Draft202012Validator(schema_of("optstream.catalogue/2")).iter_errors(document)) == []
    assert signed.take_back(DAY)[0].status is Status.WITHDRAWN
    assert_whole(signed, NEXT)
    assert listed(signed).sequence == 3


def test_a_forged_day_is_refused_by_readers_and_not_signed_by_the_next_night(signed):
    """A consistent release of made-up values is in the place of the day's, without the ledger."""
    signed.release(DAY)
    folder, catalogue = signed.settings.published_folder, listed(signed)
    statement, rows = read_statement(open_storage(folder), catalogue.entry(DAY)), read_published(folder)
    put_listed(signed, periods=(), sequence=None)
    forged = stage(rows.with_columns(load_mw=rows["load_mw"] + 1000), statement)
    publish(folder, [forged], lambda known: known)
    assert read_published(folder, verify=True)["load_mw"].mean() > 1000
    with pytest.raises(PublicationError, match="not signed"):
        days_in(signed)
    assert "catalogue.json is not signed by key" in " ".join(signed.problems())
    signed.ends(NEXT, Status.FAILED, f"lists {DAY} with bytes that the ledger does not know")
    assert str(signed.record(NEXT).state) == "DRAWN", "it is published once the catalogue is right"
    with pytest.raises(PublicationError, match="not signed"):
        days_in(signed)


def test_a_withdrawn_day_that_an_old_catalogue_lists_is_not_signed_again(signed):
    signed.release(DAY)
    old = kept(signed, DAY)
    signed.take_back(DAY)
    bring_back(signed, old)
    signed.ends(NEXT, Status.FAILED, f"{DAY} was withdrawn, and catalogue.json lists it")
    assert signed.take_back(DAY)[0].status is Status.WITHDRAWN
    signed.later(hours=1)
    assert signed.status(NEXT) is Status.PUBLISHED
    assert_whole(signed, NEXT)


def test_a_forged_tombstone_is_not_signed(signed):
    signed.release(DAY)
    folder = signed.settings.published_folder
    withdraw_published(folder, DAY, lambda _entry, known: known, stream="two-regions")
    signed.ends(NEXT, Status.FAILED, f"calls {DAY} withdrawn, and the ledger does not")


def test_a_stream_that_begins_to_sign_and_changes_its_key(installation):
    installation.release(DAY)
    sign_with(installation, "one.pem")
    one = new_key(installation.settings.signing_key_file)
    assert "not signed" in " ".join(installation.problems())
    installation.release(NEXT)
    assert days_in(installation, one) == [DAY, NEXT]
    assert installation.problems() == []
    installation.configure('signing_key = "trusted/one.pem"', 'signing_key = "trusted/two.pem"')
    two = new_key(installation.settings.signing_key_file)
    assert "not signed" in " ".join(installation.problems())
    installation.configure('"trusted/two.pem"', '"trusted/two.pem"\npublic_keys = ["trusted/one.pub"]')
    assert installation.problems() == []
    assert installation.take_back(DAY)[0].status is Status.WITHDRAWN
    assert days_in(installation, [one, two]) == days_in(installation, two) == [NEXT]
    assert installation.problems() == []


def test_a_new_key_is_its_owner_s_alone_and_never_overwritten(installation):
    sign_with(installation, "keys/signing.pem")
    path = installation.settings.signing_key_file
    before = os.umask(0)
    try:
        public = new_key(path)
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(one.stat().st_mode) for one in (path, public, path.parent)]
    assert modes == [0o600, 0o600, 0o700]
    kept = path.read_bytes()
    with pytest.raises(ConfigurationError, match="is there already"):
        new_key(path)
    result = public.read_bytes()
    public.unlink()  # as after a crash between the two
    assert new_key(path).read_bytes() == result
    assert path.read_bytes() == kept
    path.unlink()
    with pytest.raises(ConfigurationError, match=r"signing\.pub is there already"):
        new_key(path)
    path.write_bytes(kept)
    path.chmod(0o640)
    with pytest.raises(ConfigurationError, match=f"chmod 600 {path}"):
        check_trusted(installation.settings)


def test_the_key_is_in_no_log_message_or_published_file(signed, caplog):
    with caplog.at_level(logging.DEBUG):
        signed.release(DAY)
        spoilt = get(signed, "catalogue.json").replace(b'"revision": 0', b'"revision": 9')
        put(signed, "catalogue.json", spoilt)
        result = str(signed.outcome(NEXT)) + str(signed.problems()) + repr(signed.settings)
    key = read_key(signed.settings.signing_key_file)
    raw = key.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
    pem = signed.settings.signing_key_file.read_text().splitlines()[1]
    shown = result + caplog.text + repr(Signer(key, print))
    manifest = re.search(rb"manifests/release-[0-9a-f]{64}\.json", get(signed, "catalogue.json"))[0].decode()
    public = (get(signed, name) for name in ("catalogue.json", manifest))
    everything = shown.encode() + b"".join(public)
    for form in (raw, raw.hex().encode(), b64encode(raw), pem.encode()):
        assert form not in everything


def put_listed(installation, **changes):
    put(installation, "catalogue.json", listed(installation).changed(**changes).to_bytes())


@pytest.mark.parametrize("number", [None, 1, LARGEST_SEQUENCE - 1])
def test_a_forged_number_neither_begins_again_nor_uses_the_numbers_up(signed, number):
    signed.release(DAY)
    signed.settings.catalogue_number_file.unlink()  # an older trusted folder was brought back
    signed.release(NEXT)
    assert listed(signed).sequence == 2
    put_listed(signed, sequence=number)
    assert_ended(*signed.publish_again(DAY), Status.PUBLISHED)
    assert listed(signed).sequence == 3
    assert_whole(signed, DAY, NEXT)


def test_an_old_catalogue_gets_no_new_number_by_the_next_night(signed):
    """Else who remembers the highest number would not notice that a day was taken away."""
    signed.release(DAY)
    old = get(signed, "catalogue.json")
    signed.release(NEXT)
    put(signed, "catalogue.json", old)
    third = NEXT.replace(day=3)
    signed.simulate(third)
    signed.ends(third, Status.FAILED, f"{NEXT} is published, and catalogue.json does not list it")
    assert get(signed, "catalogue.json") == old
    assert_ended(*signed.publish_again(NEXT), Status.PUBLISHED)
    signed.later(hours=1)
    assert signed.status(third) is Status.PUBLISHED
    assert_whole(signed, DAY, NEXT, third)
    assert listed(signed).sequence == 4


def test_an_older_revision_is_not_signed_again(signed):
    signed.configure('restatement_share = "0"', 'restatement_share = "1/10"')
    signed.release(DAY)
    old = kept(signed, DAY)
    signed.release(DAY, restate=True)
    assert listed(signed).entry(DAY).revision == 1
    bring_back(signed, old)
    signed.ends(NEXT, Status.FAILED, f"{DAY} is published, and catalogue.json lists an older release")
    assert_ended(*signed.publish_again(DAY), Status.PUBLISHED)
    assert listed(signed).entry(DAY).revision == 1


def test_a_withdrawal_of_one_day_signs_no_other_withdrawn_day(signed):
    """Of both days at once, it does; so two withdrawals that were cut short can be completed."""
    signed.release(DAY)
    signed.release(NEXT)
    old = kept(signed, DAY)
    signed.take_back(DAY)
    bring_back(signed, old)
    completes = "`optstream withdraw --date {} --reason WHY` completes it".format
    assert_ended(*signed.take_back(NEXT), Status.FAILED, completes(DAY))
    assert get(signed, "catalogue.json") == old["catalogue.json"]
    assert_ended(*signed.take_back(DAY), Status.FAILED, completes(NEXT))
    assert [result.status for result in signed.take_back(DAY, NEXT)] == [Status.WITHDRAWN] * 2
    assert_whole(signed)


@pytest.mark.parametrize("change", [{"rows_hash": "0" * 64}, {"ledger_head": "nobody-s"}])
def test_no_forged_part_of_an_entry_is_signed(signed, change):
    signed.release(DAY)
    put_listed(signed, periods=(listed(signed).entries[0].changed(**change),))
    forged = get(signed, "catalogue.json")
    signed.ends(NEXT, Status.FAILED, "nothing was signed and nothing published")
    assert signed.publish_again(DAY)[0].status is Status.FAILED
    assert get(signed, "catalogue.json") == forged
    assert signed.problems() != []


def test_a_forged_value_column_is_not_signed_by_a_withdrawal(signed):
    signed.release(DAY)
    put_listed(signed, value_column="other")
    assert_ended(*signed.take_back(DAY), Status.FAILED, "another stream or value column")


def test_no_run_begins_with_a_broken_key(installation):
    """Else its days would be drawn, and none published."""
    sign_with(installation, "signing.pem")
    public = new_key(installation.settings.signing_key_file)
    check_trusted(installation.settings)
    key = installation.settings.signing_key_file.read_bytes()
    installation.settings.signing_key_file.write_bytes(key[:60])
    with pytest.raises(ConfigurationError, match=r"nothing was read or drawn: .* must be an Ed25519 key"):
        check_trusted(installation.settings)
    installation.settings.signing_key_file.write_bytes(key)
    installation.configure('"trusted/signing.pem"', '"trusted/signing.pem"\npublic_keys = ["gone.pub"]')
    with pytest.raises(ConfigurationError, match=r"nothing was read or drawn: the public key .*gone\.pub"):
        check_trusted(installation.settings)
    assert public.is_file()
