"""`[[input.changes]]`, and what streams of one population say once."""

from datetime import date, timedelta
from fractions import Fraction

import pytest

from optstream.errors import ConfigurationError
from tasks.config import load_settings, stream_files
from tasks.release.run import terms_of
from tests.tasks.config.conftest import refused
from tests.tasks.products import POPULATION, two_products

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


@pytest.fixture
def refusal(small):
    return lambda text, **changes: refused(small, marker=text, **changes)


def test_each_day_has_the_layout_that_began_last(small):
    source = small(marker=CHANGES).settings.input
    found = [(first, one.value, one.timestamp, one.factor, one.announcement) for first, one in source.layouts]
    thousandth = Fraction(1, 1000)
    assert found == [
        (date.min, "load", "timestamp", 1, "_SUCCESS"),
        (date(2015, 7, 1), "load_kw", "timestamp", thousandth, "_SUCCESS"),
        (date(2016, 1, 1), "load_kw", "when", thousandth, "_FILES"),
        (date(2016, 3, 1), "load_kw", "when", thousandth, "DONE"),
    ]
    settings, ends = small(marker=CHANGES).settings, [first for first, _ in source.layouts[1:]]
    for (first, layout), end in zip(source.layouts, [*ends, None], strict=True):
        last = date.max if end is None else end - timedelta(days=1)
        assert settings.input_of(first) == settings.input_of(last) == layout


def test_a_configuration_without_changes_has_the_hash_it_always_had(small):
    """As computed before changes and factors were known: published statements go on saying it."""
    plain = small().settings.configuration_hash
    assert plain == "dccccbf7d914ae119392ac499c561f95ede10f06fd0796313afe58c76c386b5c"
    assert small(marker='factor = "1"\nchanges = []').settings.configuration_hash == plain
    others = [CHANGES, CHANGES.replace("0.001", "0.01"), CHANGES.replace("07-01", "07-02"), 'factor = "10"']
    hashes = {small(marker=text).settings.configuration_hash for text in others}
    assert len(hashes | {plain}) == 5
    assert small(marker=CHANGES.replace('"0.001"', '"1/1000"')).settings.configuration_hash in hashes


FIRST = '[[input.changes]]\nvalid_from = 2015-07-01\nvalue = "load_kw"\n'
SECOND = FIRST.replace("2015", "2016").replace("load_kw", "load_gw")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (FIRST + "value_ = 1", "[[input.changes]] 1: value_ is not a known key; did you mean value?"),
        (FIRST + SECOND + "x = 1", "[[input.changes]] 2: x is not a known key; known: valid_from, timestamp"),
        (FIRST + SECOND + "timestamp = 1", "2: timestamp must be the name of a column, of 1 to 200 char"),
        (FIRST + 'marker = "../x"', "[[input.changes]] 1: marker must be a plain file name"),
        (FIRST + "factor = 0.001", "[[input.changes]] 1: factor must be a decimal string greater than 0"),
        (FIRST + 'factor = "0"', "[[input.changes]] 1: factor must be a decimal string greater than 0"),
        ("factor = 0.001", "input.factor must be a decimal string greater than 0"),
        ('[[input.changes]]\nvalue = "x"', "1: valid_from is missing; it must be a day such as"),
        ("changes = [3]", "[[input.changes]] 1: must be a table of keys: valid_from, timestamp, value"),
        ("changes = 3", "input.changes must be a list of at most 1000 tables, each headed [[input.changes]]"),
        ("[input.changes]", "input.changes must be a list of at most 1000 tables"),
        *(
            (FIRST.replace("2015-07-01", bad), "valid_from must be a day such as")
            for bad in ("20150701", "2015-07-01T00:00:00Z", "07:00:00", '"2015-7-1"', '"2015-W27-3"',
                        '"2015-02-30"', '"20150701"', "true")
        ),
        (FIRST + FIRST.replace("kw", "gw"), "[[input.changes]] 2: valid_from must be later than 2015-07-01"),
        (SECOND + FIRST, "later than 2016-07-01, that of the entry before it; got 2015-07-01"),
        (FIRST + FIRST.replace("2015", "2016"), "2: must change something: from 2016-07-01"),
        ("[[input.changes]]\nvalid_from = 2015-07-01", "[[input.changes]] 1: must change something"),
        (FIRST.replace("value", "marker").replace("load_kw", "_SUCCESS"), "1: must change something"),
        (FIRST.replace("load_kw", "load") + 'factor = "1.0"', "[[input.changes]] 1: must change something"),
        (FIRST + 'marker = "a"\nfile_list = "b"', "1: must have one of the keys marker, file_list; got both"),
        (FIRST.replace("load_kw", "timestamp"), "1: timestamp, value, customer and region must be different"),
        (FIRST + 'schema = "metered"', "1: schema must be left out: it decides what is protected"),
        (FIRST + 'folder = "other"', "1: folder must be left out: all dumps lie below one folder"),
        (FIRST + 'alpha = "5"', "1: alpha must be left out: the privacy guarantee is the same on all days"),
        (
            FIRST + 'bounds = ["0", "5"]',
            "1: bounds must be left out: the privacy guarantee is the same on all days",
        ),
        (FIRST + 'factor = "1e-30"', "factor of [[input.changes]] from 2015-07-01 must leave privacy.bounds"),
        (FIRST + 'factor = "1e30"', "factor of [[input.changes]] from 2015-07-01 must leave privacy.bounds"),
        ('factor = "1e30"', "input.factor must leave privacy.bounds below 10^15 and 2^50 units"),
    ],
)  # fmt: skip
def test_a_change_that_is_none_is_refused_with_its_place(refusal, text, told):
    assert told in refusal(text)


def test_only_metered_input_needs_a_column_of_customers(small, refusal):
    same = '[[input.changes]]\nvalid_from = 2015-07-01\ncustomer = "load"'
    assert small(marker=same).settings.input.layouts[1][1].customer == "load"
    told = refusal(same, schema="metered")
    assert "customer and region must be different columns; got ['timestamp', 'load', 'load']" in told


def test_many_changes_are_told_apart_or_refused(small, refusal):
    def changes(number):
        days = (date(2000, 1, 1) + timedelta(days=day) for day in range(number))
        return "".join(f'[[input.changes]]\nvalid_from = {day}\nvalue = "v{day}"\n' for day in days)

    settings = small(marker=changes(1000)).settings
    assert settings.input_of(date(2001, 1, 1)).value == "v2001-01-01"
    assert "a list of at most 1000 tables" in refusal(changes(1001))


@pytest.fixture
def products(tmp_path):
    return two_products(tmp_path)


def test_each_stream_has_what_the_file_says_and_an_alpha_of_its_own(products, tmp_path):
    electricity, gas = (one.settings for one in products.values())
    for one in (electricity, gas):
        assert one.privacy.population == "people"
        assert (one.model.epsilon, one.model.window_length) == (1, 48)
        assert one.stream.time_zone == "Europe/Paris"
        assert str(one.ledger_url) == f"sqlite:///{tmp_path}/ledger/ledger.sqlite"
    # whose alpha is the budget's has none of its own, in the ledger's terms as without the file
    assert terms_of(electricity).budget_alpha is None
    assert terms_of(gas).budget_alpha == electricity.model.alpha == 1
    assert terms_of(gas).alpha_ratio == 3


def test_the_file_changes_no_hash(products):
    gas = products["gas"]
    before = gas.settings.configuration_hash
    gas.configure('population_file = "../population.toml"', "")
    gas.configure(
        "[privacy]", '[privacy]\nepsilon = "1"\nwindow = 48\npopulation = "people"\nbudget_alpha = "1"'
    )
    gas.configure("[stream]", '[stream]\nstep = "30min"\ntime_zone = "Europe/Paris"')
    (gas.folder / "optstream.toml").open("a").write('[ledger]\nurl = "sqlite:///../ledger/ledger.sqlite"\n')
    assert gas.settings.configuration_hash == before


def test_what_is_said_twice_must_be_the_same(products):
    gas = products["gas"]
    gas.configure('alpha = "3"', 'alpha = "3"\nepsilon = "1"')
    assert gas.settings.model.epsilon == 1
    gas.configure('epsilon = "1"', 'epsilon = "2"')
    told = refused(load_settings, gas.folder / "optstream.toml")
    assert "privacy.epsilon is another in" in told
    assert "got '2' beside '1': say it once, there" in told


def test_another_ledger_is_refused_and_not_shown(products):
    gas = products["gas"]
    (gas.folder / "optstream.toml").open("a").write('[ledger]\nurl = "postgresql://u:secret@there/ledger"\n')
    told = refused(load_settings, gas.folder / "optstream.toml")
    assert "ledger.url is another in" in told
    assert "secret" not in told


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("window = 48", "window = 0", "privacy.window must be an integer in [1, 1000000]; got 0 (in "),
        ("window = 48", 'window = 48\nalpha = "1"', "privacy.alpha is each stream's own"),
        ("[stream]", "[streams_]", "streams_ is none of its tables; did you mean streams?"),
        ('"gas/optstream.toml"', '"heat.toml"', "whose streams do not list it: add it there"),
        ("streams = [", "streams = [1, ", "streams must be a list of at most 33 paths"),
        (
            'streams = ["electricity/optstream.toml", "gas/optstream.toml"]\n[privacy]',
            "[privacy",
            "is not TOML",
        ),
    ],
)
def test_a_mistake_in_the_file_is_told_with_its_place(products, tmp_path, before, after, told):
    assert before in POPULATION
    (tmp_path / "population.toml").write_text(POPULATION.replace(before, after))
    found = refused(load_settings, tmp_path / "gas/optstream.toml")
    assert told in found
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
