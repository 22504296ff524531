"""Public days: read in the stream's own layout, and never its own."""

import shutil
from datetime import date

import numpy as np
import polars as pl
import pytest

from optstream.errors import DumpError, ParameterError
from studies.public_proxy import public_days
from tests.tasks.ingest.test_layout_changes import CHANGES, write
from tests.tasks.ingest.test_layout_changes import DAYS as CHANGED_DAYS

DAYS = [date(2025, 1, 15), date(2025, 1, 16)]


def test_public_dumps_are_read_in_the_streams_own_layout(small, tmp_path):
    stream = small()
    for region, level in (("84", 3.0), ("11", 4.0)):
        for day in DAYS:
            stream.write(region, stream.rows(level, day), day)
    folder = tmp_path / "public"

    def published():
        shutil.rmtree(folder, ignore_errors=True)
        return shutil.copytree(stream.settings.input_folder, folder)

    days = public_days(stream.settings, published(), DAYS)
    leaves = stream.settings.tree_of(date.min).leaves
    assert np.array_equal(days[DAYS[1]], [[3.0 if leaf == "84" else 4.0] * 48 for leaf in leaves])
    with pytest.raises(DumpError, match=r"date=2025-01-17 holds no dump"):
        public_days(stream.settings, folder, [date(2025, 1, 17)])
    stream.write("11", stream.rows(4.0).head(47))
    with pytest.raises(DumpError, match="a number for each step"):
        public_days(stream.settings, published(), DAYS)
    stream.write("11", stream.rows(4.0).with_columns(load=pl.lit(None, pl.Float64)))
    with pytest.raises(DumpError, match="a number for each step"):
        public_days(stream.settings, published(), DAYS)


def test_the_streams_own_dumps_are_refused_links_followed(small, tmp_path):
    """How far releases miss them, and their mean, would be told without any noise or charge."""
    stream = small()
    settings, dumps = stream.settings, stream.settings.input_folder
    for region in ("84", "11"):
        for day in DAYS:
            stream.write(region, stream.rows(3.0, day), day)
    (tmp_path / "link").symlink_to(dumps)
    (tmp_path / "parts").mkdir()
    for region in dumps.glob("region=*"):
        (tmp_path / "parts" / region.name).symlink_to(region)
    for folder in (dumps, tmp_path / "link", tmp_path / "parts"):
        with pytest.raises(ParameterError, match=r"leads into input.folder, which is private: .* would leak"):
            public_days(settings, folder, DAYS)


def test_dumps_of_other_streams_of_the_population_are_refused_as_covariates_are(small, tmp_path):
    """The medians that `learn-proxy` prints of them would be published with every release of this stream."""
    stream, other = small(), tmp_path / "gas"
    for region in ("84", "11"):
        for day in DAYS:
            stream.write(region, stream.rows(3.0, day), day)
    dumps = shutil.copytree(stream.settings.input_folder, other / "delivered")
    (other / "gas.toml").write_text('[input]\nfolder = "delivered"\n\n[trusted]\nfolder = "kept"\n')
    (tmp_path / "public").symlink_to(dumps)
    privacy = stream.settings.privacy.model_copy(update={"population_file": str(other / "gas.toml")})
    settings = stream.settings.model_copy(update={"privacy": privacy})
    for folder in (dumps, tmp_path / "public", shutil.copytree(dumps, other / "kept" / "days")):
        with pytest.raises(ParameterError, match=r"gas.toml: (input|trusted).folder, which is private"):
            public_days(settings, folder, DAYS)
    (other / "gas.toml").rename(other / "optstream.toml")
    with pytest.raises(ParameterError, match=r"optstream.toml: input.folder, which is private"):
        public_days(stream.settings, dumps, DAYS)


def test_each_day_is_read_in_its_own_layout(small):
    stream = small(marker=CHANGES)
    for day in CHANGED_DAYS:
        for region in ("84", "11"):
            write(stream, region, stream.rows(2.5, day), day)
    copy = stream.settings.input_folder.rename(stream.settings.input_folder.with_name("public"))
    days = public_days(stream.settings, copy, CHANGED_DAYS)
    assert [float(values.mean()) for values in days.values()] == [2.5] * 4
