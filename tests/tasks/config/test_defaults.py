"""A stream in ten lines: everything that has an obvious default, and a day that is released by it."""

from datetime import date
from fractions import Fraction

import pytest

from optstream.catalogue import read_published
from optstream.errors import ConfigurationError
from tasks.config import load_settings
from tasks.release.stages import Status
from tests.tasks.two_regions import CONFIGURATION, Installation

TEN_LINES = """\
stream = { name = "visits", step = "1h", time_zone = "Europe/Paris" }
mechanism.name = "OptStream"
hierarchy.parents = { city = "", north = "city", south = "city" }
input = { schema = "aggregated", value = "visits" }
[privacy]
epsilon = "1"
window = 24
population = "visitors"
alpha = "1"
bounds = ["0", "500"]
"""
WRITTEN = {
    "[privacy]": '[budget]\nlevels = ["1/2", "1/2"]\n[sampling]\nmethod = "equally_spaced"\nn_samples = 10\n'
    '[features]\n"day parts" = ["07:00", "12:00", "18:00"]\nday = []\n'
    '[published]\nfolder = "published"\nvalue = "visits"\n[trusted]\nfolder = "trusted"\n'
    '[ledger]\nurl = "sqlite:///trusted/ledger.sqlite"\n[privacy]',
    'visits" }\n': 'visits", folder = "dumps" }\n',
}
DAY = date(2016, 6, 1)


@pytest.mark.slow
def test_a_stream_in_ten_lines_releases_a_day(tmp_path):
    (tmp_path / "optstream.toml").write_text(TEN_LINES)
    assert TEN_LINES.count("\n") == 10
    installation = Installation(tmp_path)
    installation.simulate(DAY)
    assert installation.release(DAY)[DAY].outcome.status is Status.PUBLISHED
    rows = read_published(tmp_path / "published", verify=True)
    assert {"visits", "node"} <= set(rows.columns)
    assert rows.height == 24 * 3
    assert (tmp_path / "trusted/ledger.sqlite").is_file()


def test_what_is_left_out_is_as_if_it_was_written(load_text):
    short = load_text(TEN_LINES)
    text = TEN_LINES
    for old, new in WRITTEN.items():
        assert old in text
        text = text.replace(old, new)
    whole = load_text(text)
    assert whole.configuration_hash == short.configuration_hash
    assert (whole.published, whole.trusted, whole.ledger, whole.input) == (
        short.published, short.trusted, short.ledger, short.input,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "shares", "resolution"),
    [
        ("\n[privacy]", "\n[privacy]", ["1/2", "1/2"], "1/1000"),
        ("[privacy]", "[privacy]\ncounts = true", ["1/2", "1/2"], "1"),
        ('south = "city" }', 'south = "city", port = "south" }', ["1/3", "1/3", "1/3"], "1/1000"),
        ('mechanism.name', 'hierarchy.margins = { age = ["old", "young"] }\nmechanism.name',
         ["1/4", "1/4", "1/4", "1/4"], "1/1000"),
        ('mechanism.name', 'hierarchy.margins = { age = ["old", "young"] }\n'
         'budget.margins = { age = "1/2" }\n'
         'mechanism.name', ["1/6", "1/6", "1/6", "1/2"], "1/1000"),
    ],
)  # fmt: skip
def test_defaults_follow_what_is_written(load_text, old, new, shares, resolution):
    settings = load_text(TEN_LINES, (old, new))
    assert [str(share) for share in settings.level_shares] == shares
    assert settings.privacy.resolution == Fraction(resolution)


def test_without_the_column_of_the_dumps_nothing_else_is_blamed(tmp_path):
    (tmp_path / "optstream.toml").write_text(CONFIGURATION.replace('value = "load_mw"\n', ""))
    with pytest.raises(ConfigurationError, match=r"input\.value is missing") as refused:
        load_settings(tmp_path / "optstream.toml")
    assert str(refused.value).count("\n  - ") == 1
