"""What who may write the published folder cannot have signed: old states, used-up numbers, other days."""

import pytest

from optstream.catalogue import read_catalogue
from optstream.catalogue.index import LARGEST_SEQUENCE
from optstream.errors import ConfigurationError
from tasks.operate.keys import new_key
from tasks.operate.permissions import check_trusted
from tasks.release.stages import Status
from tests.tasks.operate.test_sign import (
    DAY,
    NEXT,
    days_in,
    get,
    put,
    sign_with,
    signed,
    statuses,
)

__all__ = ["signed"]


def listed(installation):
    return read_catalogue(installation.settings.published_folder)


def put_listed(installation, **changes):
    put(installation, "catalogue.json", listed(installation).changed(**changes).to_bytes())


def put_file(installation, name, data):
    folder = installation.settings.published_folder
    if isinstance(folder, type(installation.folder)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    put(installation, name, data)


@pytest.mark.parametrize("number", [None, 1, LARGEST_SEQUENCE - 1])
def test_a_forged_number_neither_begins_again_nor_uses_the_numbers_up(signed, number):
    signed.release(DAY)
    signed.release(NEXT)
    put_listed(signed, sequence=number)
    (done,) = signed.publish_again(DAY)
    assert done.status is Status.PUBLISHED
    assert listed(signed).sequence == 3
    assert days_in(signed) == [DAY, NEXT]
    assert signed.problems() == []


def test_the_number_rises_after_an_older_trusted_folder_was_brought_back(signed):
    signed.release(DAY)
    signed.settings.catalogue_number_file.unlink()
    signed.release(NEXT)
    assert listed(signed).sequence == 2


def test_an_old_catalogue_gets_no_new_number_by_the_next_night(signed):
    """Else who remembers the highest number would not notice that a day was taken away."""
    signed.release(DAY)
    old = get(signed, "catalogue.json")
    signed.release(NEXT)
    put(signed, "catalogue.json", old)
    third = NEXT.replace(day=3)
    signed.simulate(third)
    (done,) = signed.release(third).values()
    assert done.outcome.status is Status.FAILED
    assert f"{NEXT} is published, and catalogue.json does not list it" in done.outcome.message
    assert get(signed, "catalogue.json") == old
    assert [one.status for one in signed.publish_again(NEXT)] == [Status.PUBLISHED]
    signed.later(hours=1)
    assert statuses(signed.release(third)) == [Status.PUBLISHED]
    assert days_in(signed) == [DAY, NEXT, third]
    assert listed(signed).sequence == 4
    assert signed.problems() == []


def test_an_older_revision_is_not_signed_again(signed):
    signed.configure('restatement_share = "0"', 'restatement_share = "1/10"')
    signed.release(DAY)
    old = {name: get(signed, name) for name in ("catalogue.json", listed(signed).entry(DAY).file)}
    signed.release(DAY, restate=True)
    assert listed(signed).entry(DAY).revision == 1
    for name, data in old.items():
        put_file(signed, name, data)
    done = signed.release(NEXT)
    assert statuses(done) == [Status.FAILED]
    assert f"{DAY} is published, and catalogue.json lists an older release" in done[NEXT].outcome.message
    assert [one.status for one in signed.publish_again(DAY)] == [Status.PUBLISHED]
    assert listed(signed).entry(DAY).revision == 1


def test_a_withdrawal_of_one_day_signs_no_other_withdrawn_day(signed):
    """Of both days at once, it does; so two withdrawals that were cut short can be completed."""
    signed.release(DAY)
    signed.release(NEXT)
    file = listed(signed).entry(DAY).file
    old = {name: get(signed, name) for name in ("catalogue.json", file)}
    signed.take_back(DAY)
    for name, data in old.items():
        put_file(signed, name, data)
    told = signed.take_back(NEXT)[0]
    assert told.status is Status.FAILED
    assert f"`optstream withdraw --date {DAY} --reason WHY` completes it" in told.message
    assert get(signed, "catalogue.json") == old["catalogue.json"]
    told = signed.take_back(DAY)[0]
    assert f"`optstream withdraw --date {NEXT} --reason WHY` completes it" in told.message
    assert [told.status for told in signed.take_back(DAY, NEXT)] == [Status.WITHDRAWN] * 2
    assert days_in(signed) == []
    assert signed.problems() == []


@pytest.mark.parametrize("change", [{"rows_hash": "0" * 64}, {"ledger_head": "nobody-s"}])
def test_no_forged_part_of_an_entry_is_signed(signed, change):
    signed.release(DAY)
    put_listed(signed, periods=(listed(signed).entries[0].changed(**change),))
    forged = get(signed, "catalogue.json")
    done = signed.release(NEXT)
    assert statuses(done) == [Status.FAILED]
    assert "nothing was signed and nothing published" in done[NEXT].outcome.message
    assert signed.publish_again(DAY)[0].status is Status.FAILED
    assert get(signed, "catalogue.json") == forged
    assert signed.problems() != []


def test_a_forged_value_column_is_not_signed_by_a_withdrawal(signed):
    signed.release(DAY)
    put_listed(signed, value_column="other")
    told = signed.take_back(DAY)[0]
    assert told.status is Status.FAILED
    assert "another stream or value column" in told.message


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
