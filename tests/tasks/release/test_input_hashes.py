"""Which files a release came from: keyed hashes, in the trusted zone alone."""

import hashlib
import hmac
import stat
from contextlib import nullcontext
from datetime import date

import polars as pl
import pytest

from optstream.errors import LedgerError
from tasks.release import pipeline as steps
from tasks.release.lineage import UNKNOWN, input_key
from tasks.release.run import Status
from tests.failing import Death, raising
from tests.tasks.two_regions import DRAWN

FIRST, SECOND = date(2016, 6, 1), date(2016, 6, 2)
DUMP = f"region=84/date={FIRST}/part-0.parquet"


def stated(installation):
    sources = installation.lineage()[0]["inputs"]
    return [source["facets"]["optstream_inputs"]["hmac_sha256"] for source in sources]


def expected(installation, name):
    key = (installation.folder / "trusted/input.key").read_bytes()
    return hmac.new(key, (installation.folder / "dumps" / name).read_bytes(), hashlib.sha256).hexdigest()


def test_with_the_key_alone_an_auditor_can_tell_which_files_a_release_came_from(installation):
    """No hash of an input stands in the public zone, and no plain one anywhere."""
    installation.released(FIRST)
    files = {name: tag for source in stated(installation) for name, tag in source.items()}
    names = [f"region={leaf}/date={FIRST}/part-0.parquet" for leaf in ("84", "11")]
    assert files == {name: expected(installation, name) for name in names}
    data = (installation.folder / "dumps" / DUMP).read_bytes()
    public, trusted = (installation.files(place).values() for place in ("published", "trusted"))
    assert not any(files[DUMP].encode() in written for written in public)
    for algorithm in ("md5", "sha1", "sha256", "sha512", "blake2b", "blake2s"):
        plain = hashlib.new(algorithm, data).hexdigest().encode()
        assert not any(plain in written for written in (*public, *trusted))


def test_the_key_is_made_once_for_its_owner_alone(installation):
    key = input_key(installation.settings)
    assert input_key(installation.settings) == key
    file = installation.folder / "trusted/input.key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(path.name for path in file.parent.iterdir()) == [".lock", "input.key"]
    file.write_bytes(b"short")
    with pytest.raises(LedgerError, match="must hold 32 bytes"):
        input_key(installation.settings)
    file.unlink()
    file.symlink_to("mounted/later")
    with pytest.raises(FileNotFoundError):  # else restated days would have hashes by another key
        input_key(installation.settings)
    assert file.is_symlink()


@pytest.mark.parametrize("is_drawn", [True, False])
def test_a_release_names_the_files_of_the_draw_that_counted(installation, monkeypatch, is_drawn):
    with monkeypatch.context() as patched:
        if not is_drawn:  # as a kill: nothing after it runs
            patched.setattr("tasks.release.draw.DrawingFile.fill", raising(Death))
            patched.setattr("tasks.release.draw._give_up", lambda *_: None)
        with nullcontext() if is_drawn else pytest.raises(Death):
            installation.release(FIRST, steps=DRAWN)
    before, path = expected(installation, DUMP), installation.folder / "dumps" / DUMP
    pl.read_parquet(path).with_columns(pl.col("load_mw") + 1).write_parquet(path)
    installation.later(hours=1)
    assert installation.status(FIRST) is Status.PUBLISHED
    assert before != expected(installation, DUMP)
    assert stated(installation)[0][DUMP] == (before if is_drawn else expected(installation, DUMP))


def test_a_release_without_record_says_unknown(installation):
    installation.cut_short(FIRST)
    for path in (installation.folder / "trusted/inputs").rglob("*.json"):
        path.unlink()
    installation.release(FIRST)
    assert stated(installation) == [UNKNOWN, UNKNOWN]


@pytest.mark.parametrize("how", ["written to", "replaced"])
def test_a_file_that_changes_while_it_is_read_refuses_its_day_alone(installation, monkeypatch, how):
    path, real = installation.folder / "dumps" / DUMP, steps.ingest

    def meanwhile(settings, dumps):
        read = real(settings, dumps)
        data = path.read_bytes()
        if how == "replaced":
            path.rename(path.with_suffix(".old"))
        path.write_bytes(data)
        return read

    monkeypatch.setattr(steps, "ingest", meanwhile)
    works = installation.release(FIRST, SECOND)
    assert works[FIRST].status is Status.REFUSED
    assert works[FIRST].message.startswith(f"{DUMP} changed while it was read")
    assert works[SECOND].status is Status.PUBLISHED
    assert installation.record(FIRST) is None
