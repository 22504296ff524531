"""The operators' page of a stream: plots are as published, and the written page is the live one."""

from datetime import date, timedelta

import polars as pl
import pytest

from tasks.pages.render import page
from tasks.pages.snapshot import take_snapshot
from tasks.pages.stream import overview, stream_page

pytestmark = pytest.mark.slow
FIRST, SECOND = date(2016, 6, 1), date(2016, 6, 2)


def drawn(document):
    """Values by label of the first span and node."""
    return {one["label"]: one["values"] for one in document["spans"][0]["lines"][0]}


@pytest.fixture
def watched(installation):
    """Two released days with their pages, and a third that is late."""
    installation.configure("[trusted]", "[watch]\nfirst_day = 2016-06-01\n[trusted]")
    installation.release(FIRST, SECOND)
    installation.write_pages()
    installation.now = installation.settings.calendar.ends_at(SECOND) + timedelta(hours=40)
    return installation


def test_series_errors_arrivals_run_times_and_windows_are_plots(watched):
    snapshot = take_snapshot(watched.settings.file, watched.now)
    shown = stream_page(snapshot, watched.now)
    rows = pl.read_parquet(watched.folder / "published/data", hive_partitioning=True).sort("date", "step")
    root = rows.filter(pl.col("node") == "FR")
    assert shown["curves"]["nodes"][0] == "FR"
    assert drawn(shown["curves"])["FR"] == pytest.approx(root["load_mw"].to_list(), rel=1e-5)
    (row,) = overview([snapshot], watched.now)
    means = root.group_by("date", maintain_order=True).agg(pl.col("load_mw").mean())["load_mw"]
    assert drawn(row.curve)["FR"] == pytest.approx(means.to_list(), rel=1e-5)
    plots = {title: document for title, _, document in shown["plots"]}
    assert set(plots) == {"Error by level", "Arrival by region", "Run time"}
    assert list(drawn(plots["Error by level"])) == ["level 0", "level 1"]
    kept = snapshot.view.facts.figures.filter(pl.col("node") == "FR")["model"]
    assert sorted(drawn(plots["Error by level"])["level 0"]) == pytest.approx(sorted(kept), rel=1e-5)
    assert set(drawn(plots["Arrival by region"])) == {"84", "11"}
    assert len(drawn(plots["Run time"])["run time"]) == 2
    windows = drawn(shown["windows"])
    assert (
        0 < max(windows["charged"]) <= windows["may be charged"][0] == float(watched.settings.model.epsilon)
    )


def test_the_written_page_is_the_live_one_without_a_server(watched):
    watched.write_pages()
    written = watched.settings.report_file.read_text()
    snapshot = take_snapshot(watched.settings.file, watched.now)
    values = stream_page(snapshot, watched.now)
    live = page(
        "stream",
        home="/s",
        links=None,
        contracts="/s/contracts/",
        now=watched.now,
        refresh_seconds=30,
        **values,
    ).decode()
    for said in ("was not complete by", "Charged to the worst window", ">late</b>", "Error by level"):
        assert said in written
        assert said in live
    assert "/static/" in live
    assert "/static/" not in written
    assert "Loss over longer spans" in written, "a night composes it"


def test_curves_of_an_older_catalogue_are_said_to_be_old(watched):
    def are_old():
        return stream_page(take_snapshot(watched.settings.file, watched.now), watched.now)["curves_are_old"]

    assert not are_old()
    watched.withdraw(SECOND)
    assert are_old()
    watched.write_pages()
    assert not are_old()
