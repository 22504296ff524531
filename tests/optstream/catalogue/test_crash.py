"""Death between any two steps: the catalogue lists only whole files, and the same call completes the work."""

import os
import shutil
from pathlib import Path

import polars as pl
import pytest

from optstream.catalogue import check_files, find_catalogue, read_catalogue, read_published
from optstream.errors import PublicationError
from tests.by_night import few
from tests.optstream.catalogue.folders import DAY, NEXT, days_in, take_back


class PowerCutError(BaseException):
    """Not an Exception: nothing may catch it and tidy up."""


def die_at(monkeypatch, n):
    """Let the process die instead of its n-th step on disk. Returns the list of steps that were taken."""
    taken = []

    def dying(call):
        def step(*arguments, **keywords):
            if len(taken) >= n:
                raise PowerCutError
            taken.append(call.__name__)
            return call(*arguments, **keywords)

        return step

    for name in ("replace", "link", "fsync", "unlink", "mkdir", "rmdir"):
        monkeypatch.setattr(os, name, dying(getattr(os, name)))
    return taken


def run_with_death_at_each_step(tmp_path, monkeypatch, prepare, work, check, each=1):
    """Repeat on fresh folders with a death at step 0, 1, 2, …, or each n-th, until the work gets through."""
    before = tmp_path / "before"
    prepare(before)
    for n in range(0, 200, each):
        folder = shutil.copytree(before, tmp_path / str(n))
        with monkeypatch.context() as patch:
            die_at(patch, n)
            try:
                work(folder)
                return n
            except PowerCutError:
                pass
        check(folder)
    raise AssertionError("the work never got through")


@pytest.mark.slow
def test_a_first_publication_survives_death_at_every_step(tmp_path, monkeypatch, put):
    def check(folder):
        if find_catalogue(folder) is not None:
            read_published(folder, verify=True)
        put(folder, DAY)
        assert check_files(folder) == []
        assert list((folder / ".incoming").iterdir()) == []
        assert read_published(folder, verify=True)["date"].to_list() == [DAY] * 12

    n = run_with_death_at_each_step(tmp_path, monkeypatch, Path.mkdir, lambda folder: put(folder, DAY), check)
    assert n > 15


@pytest.mark.slow
@pytest.mark.parametrize("each", few([3, 1], 1))
def test_days_published_at_once_appear_at_once_and_survive_death_at_every_step(
    tmp_path, monkeypatch, put, put_all, each
):
    def check(folder):
        days = read_published(folder, verify=True).group_by("date").agg(pl.col("revision").first())
        assert dict(days.iter_rows()) in ({DAY: 1}, {DAY: 2, NEXT: 2})
        put_all(folder, DAY, NEXT, revision=2)
        assert check_files(folder) == []
        days = read_published(folder, verify=True).select("date", "revision")
        assert dict(days.iter_rows()) == {DAY: 2, NEXT: 2}

    def work(folder):
        first, second = put_all(folder, DAY, NEXT, revision=2)
        assert first.changed
        assert second.changed

    n = run_with_death_at_each_step(tmp_path, monkeypatch, lambda folder: put(folder, DAY), work, check, each)
    assert n > 25


def test_death_after_the_catalogue_leaves_the_old_file_readable_and_swept_later(tmp_path, monkeypatch, put):
    """The window between the two replacements: two revisions under data/, one in the catalogue."""
    old = put(tmp_path, DAY).entry
    genuine, calls = os.replace, []

    def second_dies(source, target, **folders):
        calls.append(target)
        if len(calls) == 2:
            raise PowerCutError
        genuine(source, target, **folders)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", second_dies)
        with pytest.raises(PowerCutError):
            put(tmp_path, DAY, revision=2)
    assert read_catalogue(tmp_path).entry(DAY).revision == 2
    (problem,) = check_files(tmp_path)
    assert problem.startswith(f"'{old.file}' is not listed in the catalogue; publish")
    assert put(tmp_path, DAY, revision=2).changed
    assert check_files(tmp_path) == []


def restated(put):
    """A folder with a day in two revisions, and a day beside it."""

    def prepare(folder):
        put(folder, DAY)
        put(folder, DAY, revision=2)
        put(folder, NEXT)

    return prepare


@pytest.mark.slow
def test_a_withdrawal_survives_death_at_every_step(tmp_path, monkeypatch, put):
    def check(folder):
        listed = not read_catalogue(folder).entry(DAY).withdrawn
        days = days_in(folder)
        assert days == ([DAY, NEXT] if listed else [NEXT])
        take_back(folder)
        assert check_files(folder) == []
        assert not list(folder.rglob("date=2016-02-01"))
        assert not take_back(folder).changed

    n = run_with_death_at_each_step(tmp_path, monkeypatch, restated(put), take_back, check)
    assert n > 8


@pytest.mark.slow
def test_a_release_after_a_withdrawal_that_was_cut_short_completes_it(tmp_path, monkeypatch, put):
    """The withdrawn bytes must not come back as superseded ones."""

    def check(folder):
        if not read_catalogue(folder).entry(DAY).withdrawn:
            return
        new = put(folder, DAY, revision=3).entry
        assert check_files(folder) == []
        kept = [path.name for path in folder.rglob("*.parquet") if path.parent.name == "date=2016-02-01"]
        assert kept == [new.file.rpartition("/")[2]]

    run_with_death_at_each_step(tmp_path, monkeypatch, restated(put), take_back, check)


@pytest.mark.nightly
def test_a_release_after_a_withdrawal_survives_death_at_every_step(tmp_path, monkeypatch, put):
    def prepare(folder):
        restated(put)(folder)
        take_back(folder)

    def check(folder):
        assert read_published(folder, verify=True).group_by("date").len()["len"].unique().to_list() == [12]
        put(folder, DAY, revision=3)
        assert check_files(folder) == []
        assert read_catalogue(folder).entry(DAY).revision == 3

    n = run_with_death_at_each_step(
        tmp_path, monkeypatch, prepare, lambda folder: put(folder, DAY, revision=3), check
    )
    assert n > 10


def test_every_name_is_given_to_synced_bytes_and_then_synced_itself(tmp_path, monkeypatch, put):
    """A crash of the machine, not only of the process: the order of the calls is what there is to see."""
    put(tmp_path, DAY)
    with monkeypatch.context() as patch:
        taken = die_at(patch, 1000)
        put(tmp_path, DAY, revision=2)
    steps = " ".join(step for step in taken if step != "mkdir")
    # file, manifest, catalogue, the move to superseded/; before them the folders
    new, listed, moved = "fsync link unlink fsync", "fsync replace fsync", "replace fsync fsync"
    assert f"{new} {new} {listed}" in steps
    assert steps.endswith(moved)


def test_a_full_disk_is_our_error_and_the_rerun_completes(tmp_path, monkeypatch, put):
    put(tmp_path, DAY)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(PublicationError, match="No space left"):
            put(tmp_path, NEXT)
    assert days_in(tmp_path) == [DAY]
    put(tmp_path, NEXT)
    assert check_files(tmp_path) == []
