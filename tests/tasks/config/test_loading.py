"""A configuration as it is loaded: defaults, clocks, paths, hashes."""

import stat
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from optstream.catalogue.about import NodeFacts
from optstream.errors import ConfigurationError
from optstream.ledger import open_ledger
from tasks.config import load_settings, stream_files
from tasks.config.fields import ledger_database
from tasks.config.schema import next_fire
from tasks.config.templates import EXAMPLE, example_of
from tasks.monitor.facts import last_ended, late_from, max_runtime, raw_expires
from tests.tasks.config.test_refusals import SECTORS, laid_over, refused
from tests.tasks.two_regions import CONFIGURATION, POPULATION, two_products

EPSILON, CUTS, N_SAMPLES = 'epsilon = "1"', '["07:00", "12:00", "18:00"]', "n_samples = 10"
TREE = EXAMPLE[EXAMPLE.index("[hierarchy.parents]") : EXAMPLE.index("[budget]")]
TWO = {"node": ["FR", "84"], "parent": ["", "FR"]}


@pytest.fixture
def load(load_text):
    """Load the example configuration, changed."""
    return partial(load_text, EXAMPLE)


@pytest.fixture
def refusal(load):
    return partial(refused, load)


def test_all_problems_are_listed_at_once_and_nothing_else_is_blamed_for_what_is_missing(refusal, load_text):
    three = (EPSILON, 'epsilon = "0"'), ("n_samples = 10", "n_samples = 1"), ('84 = "FR"', '84 = ""')
    assert refusal(*three).count("\n  - ") == 3
    missing = refusal((EPSILON, ""), ("[stream]\n", "[mechanism.x]\n"))
    assert "privacy.epsilon is missing; it must be a decimal string greater than 0" in missing
    assert "[stream] is missing; its keys: name, unit" in missing
    missing = refused(load_text, CONFIGURATION, ('"aggregated"\nvalue = "load_mw"\n', '"aggregated"\n'))
    assert ("input.value is missing" in missing, missing.count("\n  - ")) == (True, 1)


def test_a_password_is_never_shown(load, refusal, monkeypatch):
    url = "postgresql://clerk:hunter2@host/grants"
    settings = load(("sqlite:///trusted/ledger.sqlite", url))
    assert settings.ledger_url.render_as_string(hide_password=False) == url
    assert "hunter2" not in repr(settings) + str(settings) + repr(settings.ledger)
    before, secret = 'url = "sqlite:///trusted/ledger.sqlite"', 'url = "hunter2"'
    mysql = url.replace("postgresql", "mysql")
    for mistake in (f'url = "{mysql}"', secret, f'urll = "{url}"', 'url = ["hunter2"]'):
        message = refusal((before, mistake))
        assert "ledger.url" in message
        assert "hunter2" not in message
    with pytest.raises(ConfigurationError) as caught:
        load((before, secret))
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    monkeypatch.setenv("OPTSTREAM_LEDGER_URL", mysql)
    message = refusal()
    assert "OPTSTREAM_LEDGER_URL" in message
    assert "hunter2" not in message


@pytest.mark.parametrize("name", ["OPTSTREAM_LEDGER_URL", "optstream_ledger_url"])
def test_the_environment_replaces_the_ledgers_address_by_any_name(load, monkeypatch, tmp_path, name):
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
    assert len({load(*changes).configuration_hash for changes in other} | {plain}) == 7


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"#" * (2**20 + 1), "must be at most 1 MiB"),
        (b'a = 1\nb = "\xff"\n', "UTF-8 text; see line 2"),
        (b"input = {}\n[[input.changes]]\n", r"line 2, column 16\); .* write it as \[NAME\], a line a key"),
        (b"a = 1\nb 2\n", r"is not TOML: .*\(at line 2, column 3\)"),
    ],
)
def test_an_unreadable_configuration_is_reported(tmp_path, content, message):
    (tmp_path / "optstream.toml").write_bytes(content)
    with pytest.raises(ConfigurationError, match=message):
        load_settings(tmp_path / "optstream.toml")


def test_folders_in_stores(load, tmp_path):
    pytest.importorskip("s3fs")
    store = ('folder = "dumps"', 'folder = "s3a://bucket/dumps/"')
    settings = load(store, ('folder = "published"', 'folder = "file:///srv/p"'))
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
    for table in ("published", "trusted", "ledger", "input"):
        assert getattr(whole, table) == getattr(short, table)


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


def test_a_configuration_without_changes_has_the_hash_it_always_had(small):
    """As computed before changes and factors were known: published statements go on saying it."""
    plain = small().settings.configuration_hash
    assert plain == "dccccbf7d914ae119392ac499c561f95ede10f06fd0796313afe58c76c386b5c"
    assert small(marker='factor = "1"\nchanges = []').settings.configuration_hash == plain
    change = '[[input.changes]]\nvalid_from = "2015-07-01"\nvalue = "load_kw"\nfactor = "0.001"'
    others = [change, change.replace("0.001", "0.01"), change.replace("07-01", "07-02"), 'factor = "10"']
    hashes = {small(marker=text).settings.configuration_hash for text in others}
    assert len(hashes | {plain}) == 5
    assert small(marker=change.replace("0.001", "1/1000")).settings.configuration_hash in hashes


def test_deadlines_are_of_the_stream_s_own_clock_also_when_it_changes(load_text):
    watch = '[watch]\nlate_after = "02:30"\nmax_runtime = "90min"\n'
    settings = load_text(CONFIGURATION + watch, ("[input]\n", "[input]\nraw_retention_days = 3\n"))
    assert late_from(settings, date(2016, 6, 1)).astimezone(UTC) == datetime(2016, 6, 2, 0, 30, tzinfo=UTC)
    # the day after is the one that has no half past two
    assert late_from(settings, date(2016, 3, 26)).astimezone(UTC) == datetime(2016, 3, 27, 1, 30, tzinfo=UTC)
    assert max_runtime(settings) == timedelta(minutes=90)
    assert raw_expires(settings, date(2016, 6, 1)) == datetime(2016, 6, 4, 22, tzinfo=UTC)
    assert last_ended(settings, datetime(2016, 6, 1, 21, 59, tzinfo=UTC)) == date(2016, 5, 31)
    assert last_ended(settings, datetime(2016, 6, 1, 22, 0, tzinfo=UTC)) == date(2016, 6, 1)
    after = datetime(2026, 3, 28, 2, 30, tzinfo=ZoneInfo("Europe/Paris"))
    # the 29th has no half past two
    for crons, fires in ((["30 2 * * *"], "29T03:00"), (["30 2 * * *", "0 12 * * *"], "28T12:00")):
        assert f"{next_fire(crons, after):%dT%H:%M}" == fires


# `[hierarchy]`: from a table or a file, with names, places and a margin.


@pytest.mark.parametrize(("content", "message"), [
    ("node,parent\nFR,\nA,FR\nA,FR\n", "must name each node once"),
    ("node,parent\nFR,\nA,FR\na,FR\n", "'A', 'a' differ by case, spaces or the form"),
    ("node,parent\nFR,\nA1,FR\nA 1,FR\n", "'A 1', 'A1' differ by case, spaces or the form"),
    ("node,parent\nFR,\nA1,FR\nA\uff11,FR\n", "differ by case, spaces or the form"),
    ("node,parent\nFR,\nA1,FR\nA\u11601,FR\n", "differ by case, spaces or the form"),
    ("node,parent\nFR,\nA,FR\nB ,FR\n", "'B ' ends in a space: take it out"),
    ("node,up\nFR,\n", "must hold the columns node and parent"),
    ("node,parent\nFR,\n../x,FR\n", "must name nodes, which name folders, by letters"),
    *((f"{header}\nFR{commas}\n{commas}", "must have each column once")
      for header in ("node,parent,parent", "node,node,parent", "node,parent,name,name")
      for commas in ["," * header.count(",")]),
    *(({"node": codes, "parent": [None, codes[0]]}, "text or whole numbers")
      for codes in ([1.0, 2.0], [True, False], [date(2016, 1, 1), date(2016, 1, 2)])),
    *((TWO | facts, "true or a date")
      for facts in ({"name": [1.0, 2.0]}, {"name": [True, False]},
                    {"latitude": [True, False], "longitude": [False, True]},
                    {"latitude": [date(1970, 1, 5)] * 2, "longitude": [1.0, 2.0]})),
    (b"PAR1 secret PAR1", "must hold the columns node and parent"),
])  # fmt: skip
def test_an_unusable_hierarchy_file_is_reported(refusal, tmp_path, content, message):
    file = tmp_path / ("tree.csv" if isinstance(content, str) else "tree.parquet")
    if isinstance(content, dict):
        pl.DataFrame(content).write_parquet(file)
    else:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    said = refusal((TREE, f'[hierarchy]\nfile = "{file.name}"\n'))
    assert message in said
    assert "secret" not in said


def test_a_hierarchy_file_is_csv_or_parquet(refusal):
    assert "must end in .csv or .parquet" in refusal((TREE, '[hierarchy]\nfile = "tree.pickle"\n'))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_of_the_hierarchy_may_have_names_and_places(load, tmp_path, ending):
    columns = {"node": ["FR", "01"], "parent": ["", "FR"], "name": [None, "Ain"]}
    others = {"note": ["", "seen by nobody"], "latitude": [None, 46.1], "longitude": [None, 5.3]}
    table = pl.DataFrame(columns | others)
    file = tmp_path / f"tree.{ending}"
    table.write_csv(file) if ending == "csv" else table.write_parquet(file)
    settings = load((TREE, f'[hierarchy]\nfile = "tree.{ending}"\n'))
    assert settings.node_facts == {"01": NodeFacts(name="Ain", latitude=46.1, longitude=5.3)}
    assert settings.tree_of(date.min).leaves == ("01",)


@pytest.mark.parametrize("codes", [["01", "1"], [1, 2]])
def test_codes_are_text_or_whole_numbers(load, tmp_path, codes):
    pl.DataFrame({"node": codes, "parent": [None, codes[0]]}).write_parquet(tmp_path / "nodes.parquet")
    settings = load((TREE, '[hierarchy]\nfile = "nodes.parquet"\n'))
    assert settings.tree_of(date.min).nodes == tuple(str(code) for code in codes)


def test_a_leaf_may_have_some_of_the_margins_nodes_alone(load_text):
    sectors = f'{SECTORS}input = {{ region = "region", margin = "sector" }}\n'
    some = f'{sectors}hierarchy.cells.53 = ["households"]'
    plain, other, whole, settings = (
        load_text(laid_over(example_of("Laplace"), piece))
        for piece in ("", sectors.replace("house", ""), sectors, some)
    )
    assert "margin" not in plain.describe_mechanism(date.min)
    tree = settings.tree_of(date.min)
    assert len(tree.leaves) == 23
    assert "53-industry" not in tree.nodes
    assert tree.children_of("53") == ("53-households",)
    assert len(tree.children_of("industry")) == 11
    assert len(tree.children_of("households")) == 12
    assert len({one.configuration_hash for one in (plain, whole, settings, other)}) == 4
    assert settings.dated_hierarchy.hashes != whole.dated_hierarchy.hashes


# What streams of one population say once, in a file that each of them names.


@pytest.fixture
def products(tmp_path):
    return two_products(tmp_path)


def test_the_file_changes_no_hash(products):
    gas = products["gas"]
    before = gas.settings.configuration_hash
    own = 'epsilon = "1"\nwindow = 48\npopulation = "people"\nbudget_alpha = "1"'
    gas.configure('population_file = "../population.toml"', own)
    gas.configure("[stream]", '[stream]\nstep = "30min"\ntime_zone = "Europe/Paris"')
    (gas.folder / "optstream.toml").open("a").write('[ledger]\nurl = "sqlite:///../ledger/ledger.sqlite"\n')
    assert gas.settings.configuration_hash == before


def test_what_is_said_twice_must_be_the_same_and_the_ledger_is_not_shown(products):
    gas = products["gas"]
    gas.configure('alpha = "3"', 'alpha = "3"\nepsilon = "1"')
    assert gas.settings.model.epsilon == 1
    gas.configure('epsilon = "1"', 'epsilon = "2"')
    message = refused(load_settings, gas.folder / "optstream.toml")
    assert "privacy.epsilon is another in" in message
    assert "got '2' and '1': say it once, there" in message
    (gas.folder / "optstream.toml").open("a").write('[ledger]\nurl = "postgresql://u:secret@there/ledger"\n')
    message = refused(load_settings, gas.folder / "optstream.toml")
    assert "ledger.url is another in" in message
    assert "secret" not in message


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("window = 48", "window = 0", "privacy.window must be an integer in [1, 1000000]; got 0 (in "),
        ("window = 48", 'window = 48\nalpha = "1"', "privacy.alpha is each stream's own"),
        ("[stream]", "[streams_]", "streams_ is none of its tables; did you mean streams?"),
        ('"gas/optstream.toml"', '"heat.toml"', "whose streams do not list it: add it there"),
        ("streams = [", "streams = [1, ", "streams must be a list of at most 33 paths"),
        ('["electricity/optstream.toml", "gas/optstream.toml"]', "[", "is not TOML"),
    ],
)
def test_a_mistake_in_the_file_is_reported_with_its_place(products, tmp_path, before, after, message):
    assert before in POPULATION
    (tmp_path / "population.toml").write_text(POPULATION.replace(before, after))
    found = refused(load_settings, tmp_path / "gas/optstream.toml")
    assert message in found
    assert "population.toml" in found


def test_a_population_file_is_no_configuration_and_names_those_of_its_streams(products, tmp_path):
    file = tmp_path / "population.toml"
    assert "is the file of a population" in refused(load_settings, file)
    own = [tmp_path / name / "optstream.toml" for name in products]
    assert stream_files([file]) == own
    assert stream_files([own[1], file]) == own[::-1]
    assert stream_files([tmp_path / "absent.toml"]) == [tmp_path / "absent.toml"]
    file.write_text("streams = []\n")
    with pytest.raises(ConfigurationError, match="streams must list"):
        stream_files([file])
