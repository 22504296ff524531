"""The file of a release's replicates: it comes, is replaced and goes with its release."""

import json
import re

import numpy as np
import polars as pl
import pytest

from optstream import read_published, read_sum
from optstream.catalogue import check_files, read_catalogue
from optstream.catalogue.backends import open_storage
from optstream.catalogue.replicates import Replicates, encode_replicates, read_day
from optstream.catalogue.sweep import clear_superseded
from optstream.errors import ParameterError, PublicationError
from tasks.release.run import Status
from tests.tasks.release.vintage_nights import DAYS, night
from tests.tasks.test_schemas import validator

FIRST, SECOND, THIRD = DAYS[:3]


def files(installation, folder="errors"):
    """{day: (revision, vintage) of each file of errors}."""
    found = {}
    for path in sorted((installation.folder / "published" / folder).rglob("*vintage*.parquet")):
        told = re.match(r"revision-(\d+)-vintage-(\d+)-", path.name)
        day = path.parent.name.removeprefix("date=")
        found.setdefault(day, []).append((int(told[1]), int(told[2])))
    return found


@pytest.fixture
def nights(learning):
    """Two nights: the first day has a new estimate after the second."""
    learning.once(two_nights)
    return learning


def two_nights(installation):
    night(installation, FIRST)
    night(installation, SECOND)


def test_each_listed_release_has_one_and_replaced_ones_lie_with_their_release(nights):
    assert files(nights) == {str(FIRST): [(0, 1)], str(SECOND): [(0, 0)]}
    assert files(nights, "superseded_errors") == {str(FIRST): [(0, 0)]}
    nights.assert_sound()
    folder = nights.folder / "published"
    manifest = json.loads((folder / read_catalogue(folder).entry(FIRST).manifest).read_text())
    assert manifest["statement"]["errors"]["of"] == "whole"
    assert [one.message for one in validator("optstream.manifest/1").iter_errors(manifest)] == []


def test_single_values_have_the_standard_errors_of_the_rows(nights):
    folder = nights.settings.published_folder
    rows = read_published(folder).filter(date=SECOND)
    for node, step in (("FR", 0), ("11", 17), ("84", 47)):
        known = rows.row(by_predicate=(pl.col("node") == node) & (pl.col("step") == step), named=True)
        found = read_sum(folder, [node], SECOND, SECOND, steps=[step])
        assert found.value == pytest.approx(known["load_mw"])
        # of 50 replicates: beyond half of it with less than 1e-6
        assert found.standard_error == pytest.approx(known["load_mw_se"], rel=0.5)
        assert found.noise_standard_error is None
        assert abs(found.estimate - found.value) < 0.001, (
            "the bound is far, and rounding adds less than a unit"
        )
        assert found.estimate != found.value


def test_lost_and_damaged_ones_come_back(nights):
    folder = nights.folder / "published"
    (path,) = (folder / f"errors/date={FIRST}").iterdir()
    whole = path.read_bytes()
    for damage in (path.unlink, lambda: path.write_bytes(b"damaged")):
        path.chmod(0o644)
        damage()
        assert "`optstream publish" in str(check_files(folder))
        with pytest.raises(PublicationError, match="optstream publish 2016-06-01"):
            read_sum(folder, ["11"], FIRST, FIRST)
        for kept in (nights.settings.staging_of(FIRST, 0)).iterdir():
            kept.unlink()  # and made again from the stored measurements
        assert nights.publish_again(FIRST)[0].status is Status.PUBLISHED
        assert path.read_bytes() == whole
        assert check_files(folder) == []


def test_what_is_of_no_listed_release_is_named(nights):
    folder = nights.folder / "published"
    (path,) = (folder / f"errors/date={FIRST}").iterdir()
    for stray in (path.name.replace("vintage-1", "vintage-7"), f"revision-0-vintage-1-{'0' * 64}.parquet"):
        path.with_name(stray).write_bytes(path.read_bytes())
        (problem,) = check_files(folder)
        assert f"{stray}' is of no listed release" in problem
        path.with_name(stray).unlink()


def left_by_a_crash(installation, day, rank, digest=None):
    """A publisher wrote a file of errors, and died before anything listed it."""
    path = next((installation.folder / f"published/errors/date={day}").iterdir())
    named = re.sub(r"revision-\d+-vintage-\d+", "revision-{}-vintage-{}".format(*rank), path.name)
    named = named if digest is None else re.sub("[0-9a-f]{64}", digest, named)
    path.with_name(named).write_bytes(path.read_bytes())


def test_what_a_crash_left_leaves_with_the_next_release_or_its_day(nights):
    left_by_a_crash(nights, SECOND, (0, 7))
    left_by_a_crash(nights, FIRST, (1, 0))
    left_by_a_crash(nights, SECOND, (0, 1), "0" * 64)  # an estimate that was made again, in other digits
    night(nights, THIRD)
    assert files(nights)[str(SECOND)] == [(0, 1)]
    nights.withdraw(FIRST)
    assert str(FIRST) not in files(nights)
    nights.assert_sound()


def test_publishing_again_clears_up_beside_a_whole_release(nights):
    left_by_a_crash(nights, FIRST, (0, 1), "0" * 64)
    (problem,) = check_files(nights.folder / "published")
    assert "is of no listed release" in problem
    assert nights.publish_again(FIRST)[0].status is Status.PUBLISHED
    nights.assert_sound()


def test_without_its_manifest_nothing_of_a_release_leaves(nights):
    folder = nights.folder / "published"
    (listed,) = (folder / f"errors/date={FIRST}").iterdir()
    left_by_a_crash(nights, FIRST, (0, 1), "0" * 64)
    entry = read_catalogue(folder).entry(FIRST)
    (folder / entry.manifest).unlink()
    open_storage(folder).change(lambda transaction: clear_superseded(transaction, entry))
    assert listed.exists()


def test_a_file_that_was_replaced_while_days_were_read_is_read_where_it_lies(nights):
    folder = nights.settings.published_folder
    storage, known = open_storage(folder), read_catalogue(folder)
    before = read_day(storage, known, known.entry(SECOND), verify=True)
    night(nights, THIRD)
    assert read_catalogue(folder).entry(SECOND).vintage == 1
    again = read_day(storage, known, known.entry(SECOND), verify=True)
    assert again.rows.equals(before.rows)


@pytest.mark.parametrize(
    ("nodes", "n_steps"), [(("FR", "11"), 48), (("FR", "11", "84"), 47), (("FR", "11", "12"), 48)]
)
def test_a_file_of_other_nodes_or_steps_is_refused(nights, monkeypatch, nodes, n_steps):
    """Left out of the sum, the missing ones would make it look surer than it is."""
    drawn = np.ones((2, len(nodes), n_steps))
    data = encode_replicates(Replicates.labelled(SECOND, "whole", nodes, drawn[0], drawn))
    monkeypatch.setattr("optstream.catalogue.replicates.read_beside", lambda *_: data)
    with pytest.raises(PublicationError, match=r"other nodes or steps than .*parquet; restore it"):
        read_sum(nights.settings.published_folder, ["11", "84"], SECOND, SECOND)


def test_a_withdrawn_day_takes_all_of_them_along(nights):
    nights.withdraw(FIRST)
    assert files(nights) == {str(SECOND): [(0, 0)]}
    assert files(nights, "superseded_errors") == {}
    with pytest.raises(ParameterError, match="must be published; 1 of them are"):
        read_sum(nights.settings.published_folder, ["11"], FIRST, SECOND)


def test_a_day_does_not_wait_for_errors_that_cannot_be_drawn(installation, monkeypatch):
    def fails(*_):
        raise np.linalg.LinAlgError("no covariance")

    monkeypatch.setattr("optstream.mechanisms.base.Mechanism.noise_replicates", fails)
    (work,) = installation.release(FIRST).values()
    assert work.outcome.status is Status.PUBLISHED, work.outcome
    assert files(installation) == {}
    assert check_files(installation.folder / "published") == []
