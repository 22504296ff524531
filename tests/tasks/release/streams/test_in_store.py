"""The whole way with dumps and published folder in an object store: published, withdrawn, checked."""

import json
from datetime import UTC, date, datetime

import fsspec
import polars as pl
import pytest

from optstream.catalogue import find_catalogue
from optstream.errors import ConfigurationError, ParameterError
from tasks.ledger.export import export
from tasks.monitor.view import status_document, watch
from tasks.operate.doctor import examine
from tasks.operate.simulate import simulate
from tasks.release.outcomes import RunDocument, budget_of
from tasks.release.run import Status

DAYS = [date(2016, 6, 1), date(2016, 6, 2)]
DAY, NEXT = DAYS


@pytest.fixture(params=["memory", pytest.param("s3", marks=pytest.mark.nightly)])
def moved(installation, request):
    """The small installation with its dumps in a store, and its published folder there as well."""
    is_memory = request.param == "memory"
    root = f"/{installation.folder.name}" if is_memory else request.getfixturevalue("s3_bucket")
    filesystem = fsspec.filesystem(request.param, use_listings_cache=False)
    for path in sorted((installation.folder / "dumps").rglob("*")):
        if path.is_file():
            filesystem.pipe_file(f"{root}/{path.relative_to(installation.folder)}", path.read_bytes())
    url = f"{request.param}://{root.lstrip('/')}"
    installation.configure('folder = "dumps"', f'folder = "{url}/dumps"')
    installation.configure('folder = "published"', f'folder = "{url}/public"')
    installation.filesystem, installation.root = filesystem, root
    return installation


@pytest.mark.parametrize("moved", ["memory", "s3"], indirect=True)
def test_days_are_released_published_and_read(moved):
    done = moved.release(*DAYS)
    assert {work.status for work in done.values()} == {Status.PUBLISHED}
    url, rows = str(moved.settings.published_folder), moved.rows()
    assert rows["date"].unique().sort().to_list() == DAYS
    totals = rows.group_by("date", "step", "level").agg(pl.col("load_mw").sum()).sort("date", "step")
    nation, regions = (totals.filter(level=level)["load_mw"] for level in (0, 1))
    assert (nation - regions).abs().max() < 1e-6
    assert not (moved.folder / "published").exists()
    assert moved.problems() == []
    settings, budget = moved.settings, budget_of(moved.settings, moved.ledger)
    for document in (
        RunDocument.of(list(done.values()), settings, budget).to_json(),
        status_document(settings, watch(settings, moved.ledger, moved.now, live=False)),
    ):
        assert document["published"] == url
        assert all(day["file"].startswith("data/date=") for day in document["days"])
    # the lineage names objects and keyed hashes alone
    event, protocol = moved.lineage()[0], settings.input_folder.protocol
    (source, _) = event["inputs"]
    assert source["namespace"] == f"{protocol}://{moved.root.lstrip('/')}"
    assert source["name"] == f"dumps/region=84/date={DAY}"
    (tag,) = source["facets"]["optstream_inputs"]["hmac_sha256"].values()
    assert len(tag) == 64
    assert event["outputs"][0]["name"].startswith(f"public/data/date={DAY}/release-")
    said = json.dumps(moved.lineage())
    for path in moved.filesystem.find(f"{moved.root}/dumps"):
        tag = moved.filesystem.info(path).get("ETag", "no tag here").strip('"')
        assert tag not in said


def test_the_doctor_looks_at_stores(moved):
    moved.release(DAY)
    now = datetime(2016, 7, 1, 12, tzinfo=UTC)
    found = examine(moved.settings, {}, now)
    (times,) = [one for one in found if "an object store shows when" in one.rule]
    assert times.severity == "note"
    assert "published.not_before" in times.remedy
    assert [one.place for one in found if one.severity != "note" and "://" in one.place] == []
    moved.configure('value = "load_mw"\n[trusted]', 'value = "load_mw"\nnot_before = "06:00"\n[trusted]')
    assert not [one for one in examine(moved.settings, {}, now) if "an object store shows" in one.rule]
    for path in moved.filesystem.find(f"{moved.root}/dumps"):
        if path.endswith("_SUCCESS"):
            moved.filesystem.rm_file(path)
    (waits,) = [one for one in examine(moved.settings, {}, now) if "none has" in one.rule]
    assert waits.place == str(moved.settings.input_folder)
    assert waits.remedy.endswith("or correct input.marker")


def test_what_stays_local(moved):
    settings = moved.settings
    with pytest.raises(ParameterError, match=r"made up in a folder of this machine, not in .*://"):
        simulate(settings, [DAY], seed=1)
    export(settings, moved.run().ledger, moved.folder / "export")
    assert find_catalogue(settings.published_folder) is None
    moved.configure('folder = "trusted"', f'folder = "{settings.input_folder}"')
    with pytest.raises(ConfigurationError, match=r"trusted\.folder must be a path of this machine"):
        _ = moved.settings
