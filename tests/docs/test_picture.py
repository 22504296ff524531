"""The README's picture: it is produced, it says what it shows, and it never shows real data."""

from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import vl_convert

from docs.generate.day_chart import BAND, MEASURED, RELEASED, TRUTH, draw
from docs.generate.picture import simulated_truth
from optstream.errors import DumpError, ParameterError
from tasks.config import Settings, load_settings
from tasks.config.example import EXAMPLE
from tasks.operate.simulate import simulate, write_dump

DAY = date(2016, 2, 1)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "optstream.toml").write_text(EXAMPLE, encoding="utf-8")
    return load_settings(tmp_path / "optstream.toml")


def frame(column: str, value: float) -> pl.DataFrame:
    steps = list(range(48)) * 2
    return pl.DataFrame(
        {"node": ["FR"] * 48 + ["84"] * 48, "step": steps, column: [value + k for k in steps]}
    )


def test_the_picture_names_what_it_shows() -> None:
    chart = draw(
        frame("load_mw", 5000.0),
        frame("load_mw", 5100.0),
        frame("half_width_mw", 300.0),
        names={"FR": "France", "84": "Auvergne-Rhône-Alpes"},
        title="One released day",
        subtitle=["what is protected"],
        measured_steps=[0, 20, 40],
    )
    svg = vl_convert.vegalite_to_svg(chart.to_json())
    for text in ("One released day", "what is protected", "France", "Auvergne-Rhône-Alpes", "load (GW)"):
        assert text in svg
    for entry in (RELEASED, TRUTH, BAND, MEASURED):
        assert f">{entry}<" in svg
    assert "NaN" not in svg


def test_without_a_band_none_is_promised() -> None:
    chart = draw(frame("load_mw", 1.0), frame("load_mw", 2.0), names={"84": "region"}, title="day")
    assert BAND not in vl_convert.vegalite_to_svg(chart.to_json())


def test_a_node_without_rows_is_refused() -> None:
    with pytest.raises(ParameterError, match="no rows of node '11'"):
        draw(frame("load_mw", 1.0), frame("load_mw", 2.0), names={"11": "region"}, title="day")


def test_the_truth_is_the_simulations_and_adds_up(settings: Settings) -> None:
    leaves, calendar = settings.tree_of(date.min).leaves, settings.calendar
    simulate(settings.input_folder, leaves=leaves, calendar=calendar, days=[DAY], seed=5)
    truth = simulated_truth(settings, DAY, 5)
    assert truth.shape == (13, 48)
    assert np.allclose(truth[0], truth[1:].sum(axis=0))
    with pytest.raises(DumpError, match="not the simulated dump of seed 6"):
        simulated_truth(settings, DAY, 6)


def test_real_dumps_are_not_drawn(settings: Settings) -> None:
    stamps = pl.Series(settings.calendar.utc_times(DAY), dtype=pl.Datetime("us", "UTC"))
    for leaf in settings.tree_of(date.min).leaves:
        rows = pl.DataFrame({"timestamp": stamps, "load_mw": np.full(48, 7000.0)})
        write_dump(settings.input_folder, leaf, DAY, rows)
    with pytest.raises(DumpError, match="real data are not drawn"):
        simulated_truth(settings, DAY, 0)


def test_a_day_without_dumps_is_said(settings: Settings) -> None:
    with pytest.raises(DumpError, match="no readable dump"):
        simulated_truth(settings, DAY, 0)
