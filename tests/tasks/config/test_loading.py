"""A configuration as it is loaded: defaults, clocks, paths, hashes."""

import stat
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from optstream.errors import ConfigurationError
from optstream.ledger import open_ledger
from tasks.config import load_settings
from tasks.config.fields import ledger_database
from tasks.config.schema import next_fire
from tasks.config.templates import EXAMPLE
from tasks.monitor.facts import last_ended, late_from, max_runtime, raw_expires
from tests.tasks.two_regions import CONFIGURATION

EPSILON, CUTS, N_SAMPLES = 'epsilon = "1"', '["07:00", "12:00", "18:00"]', "n_samples = 10"


def test_all_problems_are_listed_at_once_and_nothing_else_is_blamed_for_what_is_missing(refusal, load_text):
    three = (EPSILON, 'epsilon = "0"'), ("n_samples = 10", "n_samples = 1"), ('84 = "FR"', '84 = ""')
    assert refusal(*three).count("\n  - ") == 3
    missing = refusal((EPSILON, ""), ("[stream]\n", "[mechanism.x]\n"))
    assert "privacy.epsilon is missing; it must be a decimal string greater than 0" in missing
    assert "[stream] is missing; its keys: name, unit" in missing
    with pytest.raises(ConfigurationError, match=r"input\.value is missing") as refused:
        load_text(CONFIGURATION, ('schema = "aggregated"\nvalue = "load_mw"\n', 'schema = "aggregated"\n'))
    assert str(refused.value).count("\n  - ") == 1


def test_a_password_is_never_shown(load, refusal, monkeypatch):
    url = "postgresql://clerk:hunter2@host/grants"
    settings = load(("sqlite:///trusted/ledger.sqlite", url))
    assert settings.ledger_url.render_as_string(hide_password=False) == url
    assert "hunter2" not in repr(settings) + str(settings) + repr(settings.ledger)
    mistakes = [
        ("sqlite:///trusted/ledger.sqlite", "mysql://clerk:hunter2@host/grants"),
        ("sqlite:///trusted/ledger.sqlite", "hunter2"),
        ('url = "sqlite:///trusted/ledger.sqlite"', 'urll = "postgresql://clerk:hunter2@host/grants"'),
        ('url = "sqlite:///trusted/ledger.sqlite"', 'url = ["hunter2"]'),
    ]
    for mistake in mistakes:
        message = refusal(mistake)
        assert "ledger.url" in message
        assert "hunter2" not in message
    with pytest.raises(ConfigurationError) as caught:
        load(mistakes[1])
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    monkeypatch.setenv("OPTSTREAM_LEDGER_URL", "mysql://clerk:hunter2@host/grants")
    message = refusal()
    assert "OPTSTREAM_LEDGER_URL" in message
    assert "hunter2" not in message


@pytest.mark.parametrize("name", ["OPTSTREAM_LEDGER_URL", "optstream_ledger_url"])
def test_the_environment_replaces_the_ledgers_address_however_its_name_is_written(
    load, monkeypatch, tmp_path, name
):
    """Else a run would charge another ledger, where nothing was spent yet."""
    monkeypatch.setenv(name, "sqlite:///elsewhere.sqlite")
    assert str(load().ledger_url) == f"sqlite:///{tmp_path}/elsewhere.sqlite"


def test_the_hash_knows_what_shapes_a_release_and_nothing_else(load, tmp_path):
    (tmp_path / "moved").mkdir()
    plain = load().configuration_hash
    same = [
        [(N_SAMPLES, f'{N_SAMPLES}\nmethod = "equally_spaced"')],
        [(EPSILON, 'epsilon = "1.0"')],
        [("sqlite:///trusted/ledger.sqlite", "postgresql://clerk:hunter2@host/grants")],
        [('folder = "dumps"', 'folder = "other"')],
    ]
    assert {load(*changes).configuration_hash for changes in same} == {plain}
    assert load(folder=tmp_path / "moved").configuration_hash == plain
    other = [
        [(EPSILON, 'epsilon = "0.5"')],
        [('84 = "FR"', '85 = "FR"'), ('84 = "Auvergne', '85 = "Auvergne')],
        [(CUTS, '["08:00"]')],
        [("n_samples = 10", "n_samples = 9")],
        [(N_SAMPLES, f'{N_SAMPLES}\nthreshold = "5"')],
        [(N_SAMPLES, f'{N_SAMPLES}\nthreshold = "6"')],
    ]
    hashes = {load(*changes).configuration_hash for changes in other}
    assert len(hashes | {plain}) == 7


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "`optstream init` writes an example"),
        (b"#" * (2**20 + 1), "must be at most 1 MiB"),
        (b'a = 1\nb = "\xff"\n', "UTF-8 text; see line 2"),
        (b"input = {}\n[[input.changes]]\n", r"line 2, column 16\); .* write it as \[NAME\], a line a key"),
        (b"a = 1\nb 2\n", r"is not TOML: .*\(at line 2, column 3\)"),
    ],
)
def test_an_unreadable_configuration_is_reported(tmp_path, content, message):
    if content is not None:
        (tmp_path / "optstream.toml").write_bytes(content)
    with pytest.raises(ConfigurationError, match=message):
        load_settings(tmp_path / "optstream.toml")


def test_folders_in_stores(load, tmp_path):
    pytest.importorskip("s3fs")
    settings = load(
        ('folder = "dumps"', 'folder = "s3a://bucket/dumps/"'),
        ('folder = "published"', 'folder = "file:///srv/p"'),
    )
    assert str(settings.input_folder) == "s3://bucket/dumps"
    assert settings.published_folder == Path("/srv/p")
    assert settings.trusted_folder == tmp_path / "trusted"
    assert settings.configuration_hash == load().configuration_hash


@pytest.mark.parametrize("name", ["what?", "a#b", "50%25", "two words", "q?mode=memory&uri=true"])
def test_the_ledger_lies_in_the_folder_whatever_its_name_holds(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    (folder / "optstream.toml").write_text(EXAMPLE)
    url = load_settings(folder / "optstream.toml").ledger_url
    assert ledger_database(url) == folder / "trusted" / "ledger.sqlite"
    with closing(open_ledger(url)) as ledger:
        assert ledger.terms("anything") is None
    assert stat.S_IMODE((folder / "trusted" / "ledger.sqlite").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [name]


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


def test_what_is_left_out_is_as_if_it_was_written(load_text):
    short, whole = load_text(TEN_LINES), load_text(TEN_LINES, *WRITTEN.items())
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


CHANGES = """
[[input.changes]]
valid_from = 2015-07-01
value = "load_kw"
factor = "0.001"
[[input.changes]]
valid_from = "2016-01-01"
timestamp = "when"
file_list = "_FILES"
[[input.changes]]
valid_from = 2016-03-01
marker = "DONE"
"""


def test_a_configuration_without_changes_has_the_hash_it_always_had(small):
    """As computed before changes and factors were known: published statements go on saying it."""
    plain = small().settings.configuration_hash
    assert plain == "dccccbf7d914ae119392ac499c561f95ede10f06fd0796313afe58c76c386b5c"
    assert small(marker='factor = "1"\nchanges = []').settings.configuration_hash == plain
    others = [CHANGES, CHANGES.replace("0.001", "0.01"), CHANGES.replace("07-01", "07-02"), 'factor = "10"']
    hashes = {small(marker=text).settings.configuration_hash for text in others}
    assert len(hashes | {plain}) == 5
    assert small(marker=CHANGES.replace('"0.001"', '"1/1000"')).settings.configuration_hash in hashes


def test_deadlines_are_of_the_stream_s_own_clock_also_when_it_changes(load_text):
    watch = '[watch]\nlate_after = "02:30"\nmax_runtime = "90min"\n'
    settings = load_text(CONFIGURATION + watch, ("[input]\n", "[input]\nraw_retention_days = 3\n"))
    assert late_from(settings, date(2016, 6, 1)).astimezone(UTC) == datetime(2016, 6, 2, 0, 30, tzinfo=UTC)
    # the day after is the one that has no half past two
    assert late_from(settings, date(2016, 3, 26)).astimezone(UTC) == datetime(2016, 3, 27, 1, 30, tzinfo=UTC)
    assert max_runtime(settings) == timedelta(minutes=90)
    ends = datetime(2016, 6, 4, 22, tzinfo=UTC)
    assert raw_expires(settings, date(2016, 6, 1)) == ends
    assert last_ended(settings, datetime(2016, 6, 1, 21, 59, tzinfo=UTC)) == date(2016, 5, 31)
    assert last_ended(settings, datetime(2016, 6, 1, 22, 0, tzinfo=UTC)) == date(2016, 6, 1)
    after = datetime(2026, 3, 28, 2, 30, tzinfo=ZoneInfo("Europe/Paris"))
    # the 29th has no half past two
    for crons, fires in ((["30 2 * * *"], "29T03:00"), (["30 2 * * *", "0 12 * * *"], "28T12:00")):
        assert f"{next_fire(crons, after):%dT%H:%M}" == fires
