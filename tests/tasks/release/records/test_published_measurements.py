"""The file of a day's measurements: a reader redoes the release of it, and it goes where its day goes."""

import json
from datetime import UTC, date, datetime, timedelta

import fsspec
import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from optstream import read_measurements, read_published
from optstream.catalogue import check_files, read_catalogue
from optstream.errors import PublicationError
from optstream.mechanisms import MECHANISMS
from tasks.release.run import Status
from tests.by_night import few
from tests.tasks.release.vintage_nights import night
from tests.tasks.test_schemas import validator
from tests.tasks.two_regions import STEPS

DAYS = [date(2016, 6, 1) + timedelta(days=number) for number in range(3)]
DAY, NEXT, LAST = DAYS


def wanted(installation, name="OptStream"):
    """The small stream by this mechanism, which publishes its measurements."""
    installation.configure(
        'value = "load_mw"\n[trusted]', 'value = "load_mw"\nmeasurements = true\n[trusted]'
    )
    if name != "OptStream":
        installation.change_mechanism(name)
    installation.simulate(*DAYS)
    return installation


def files(installation):
    """The files of measurements, by day."""
    folder = installation.folder / "published/measurements"
    found: dict[str, list] = {}
    for path in sorted(folder.rglob("*.parquet")):
        found.setdefault(path.parent.name.removeprefix("date="), []).append(path)
    return found


def redone(installation, day):
    """Whether the values that follow from the file are those of the rows, to the last digit."""
    folder = installation.settings.published_folder
    rows = read_published(folder).filter(date=day)
    read = read_measurements(folder, day)
    nodes = read.mechanism.tree.nodes
    known = {(node, step): value for node, step, value in rows.select("node", "step", "load_mw").iter_rows()}
    values = read.values()
    again = {(node, step): values[row, step] for row, node in enumerate(nodes) for step in range(48)}
    revision = rows["revision"][0]
    (path,) = installation.settings.measurements_of(day, revision).glob("*[0-9a-f]")
    return again == known and read.measured.to_bytes() == path.read_bytes()


DAILY = ("OptStream", "Sample", "Fourier", "PeGaSus", "HistoryInformed", "Gaussian")
"""Tried by day, the others by night: test_release_mechanisms has a released start of each of those by day."""


@pytest.mark.parametrize("name", few(sorted(MECHANISMS, key=lambda name: name not in DAILY), len(DAILY)))
def test_a_reader_redoes_every_mechanisms_days_to_the_last_digit(installation, name):
    installation = wanted(installation, name)
    works = installation.release(DAY, NEXT)
    assert {work.outcome.status for work in works.values()} == {Status.PUBLISHED}
    assert all(redone(installation, day) for day in (DAY, NEXT))
    assert check_files(installation.folder / "published") == []
    (file,) = files(installation)[str(NEXT)]
    rows = pl.read_parquet(file)
    drawn = installation.measured(NEXT)
    parts = drawn.parts or (drawn,)
    assert 0 < rows.height <= sum(one.points.size + sum(map(np.size, one.answers.values)) for one in parts)
    assert rows.schema["value"] == pl.Int64
    assert rows["noise_variance"].is_finite().all()
    assert rows["node"].is_in(["FR", "84", "11"]).all()
    assert (rows["first_step"] + rows["n_steps"]).max() <= 48


def test_without_the_option_nothing_is_there_and_hashes_of_configurations_are_the_same(installation):
    before = installation.settings.configuration_hash
    installation.release(DAY)
    assert not (installation.folder / "published/measurements").exists()
    with pytest.raises(PublicationError, match="without measurements"):
        read_measurements(installation.folder / "published", DAY)
    assert wanted(installation).settings.configuration_hash == before


def test_a_day_that_remembers_others_shows_their_sums_in_their_own_files_alone(learning):
    installation = wanted(learning)
    night(installation, *DAYS)
    folder = installation.folder / "published"
    assert read_catalogue(folder).entry(DAY).vintage == 1
    assert all(redone(installation, day) for day in DAYS)
    assert len(read_measurements(folder, DAY).later) == 2
    (file,) = files(installation)[str(LAST)]
    footer = json.loads(pq.read_metadata(file).metadata[b"optstream.measurements"])
    inner = footer["measured"]["state"]["levels"]["0"]["history"]
    assert len(inner["starts"]) > 0
    assert "sums" not in inner
    installation.withdraw(NEXT)
    assert set(files(installation)) == {str(DAY), str(LAST)}
    with pytest.raises(PublicationError, match="rests on measurements of earlier days"):
        read_measurements(folder, LAST)
    with pytest.raises(PublicationError, match="withdrawn"):
        read_measurements(folder, NEXT)
    assert check_files(folder) == []


def test_a_held_day_shows_no_measurements_before_its_hour(installation):
    installation = wanted(installation)
    installation.configure('folder = "published"\n', 'folder = "published"\nnot_before = "06:00"\n')
    installation.now = datetime(2016, 6, 2, 3, 59, tzinfo=UTC)
    assert installation.release(DAY)[DAY].outcome.status is Status.HELD
    assert not (installation.folder / "published").exists()
    installation.later(hours=1)
    assert installation.release(DAY, noise=None)[DAY].outcome.status is Status.PUBLISHED
    assert redone(installation, DAY)


def test_each_revision_has_a_file_and_a_withdrawal_takes_all(installation):
    installation.configure('restatement_share = "0"', 'restatement_share = "1/10"')
    installation = wanted(installation)
    installation.release(DAY)
    installation.later(hours=1)
    assert installation.release(DAY, restate=True)[DAY].outcome.status is Status.PUBLISHED
    assert [path.name[:11] for path in files(installation)[str(DAY)]] == ["revision-0-", "revision-1-"]
    assert redone(installation, DAY)
    installation.withdraw(DAY)
    assert files(installation) == {}
    assert check_files(installation.folder / "published") == []
    assert installation.problems() == []


def test_what_a_publisher_left_that_died_goes_with_a_day_that_was_never_listed(installation):
    installation = wanted(installation)
    installation.release(DAY, steps=STEPS[:-1])
    folder = installation.folder / f"published/measurements/date={DAY}"
    folder.mkdir(parents=True)
    (folder / f"revision-0-{'0' * 64}.parquet").write_bytes(b"written, and not listed")
    installation.later(hours=1)
    installation.withdraw(DAY)
    assert files(installation) == {}


def test_lost_and_damaged_ones_come_back_whatever_is_configured_by_then(installation):
    installation = wanted(installation)
    installation.release(DAY)
    (file,) = files(installation)[str(DAY)]
    whole = file.read_bytes()
    installation.configure("measurements = true\n", "")
    for damage in (file.unlink, lambda: file.write_bytes(b"damaged")):
        file.chmod(0o644)
        damage()
        assert "`optstream publish" in str(check_files(installation.folder / "published"))
        for kept in (installation.settings.staging_of(DAY, 0)).iterdir():
            kept.unlink()  # and made again from the stored measurements
        assert installation.publish_again(DAY)[0].status is Status.PUBLISHED
        assert file.read_bytes() == whole
        assert check_files(installation.folder / "published") == []
    folder = installation.folder / "published"
    manifest = json.loads((folder / read_catalogue(folder).entry(DAY).manifest).read_text())
    assert manifest["statement"]["measurements"]["file"].endswith(file.name)
    assert [one.message for one in validator("optstream.manifest/1").iter_errors(manifest)] == []


def test_in_an_object_store_they_come_and_go_with_their_day(installation):
    installation = wanted(installation)
    filesystem = fsspec.filesystem("memory", use_listings_cache=False)
    root = f"/{installation.folder.name}/measured"
    installation.configure('folder = "published"', f'folder = "memory://{root.lstrip("/")}"')
    assert installation.release(DAY)[DAY].outcome.status is Status.PUBLISHED
    assert len(filesystem.find(f"{root}/measurements")) == 1
    assert redone(installation, DAY)
    installation.withdraw(DAY)
    assert filesystem.find(f"{root}/measurements") == []
