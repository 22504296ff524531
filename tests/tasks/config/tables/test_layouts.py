"""`[[input.changes]]`: which layout holds on a day, and what is refused."""

from datetime import date, timedelta
from fractions import Fraction

import pytest

from tasks.config import Layout
from tests.tasks.config.refused import refused

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
    settings = small(marker=CHANGES).settings
    oldest = Layout("load")
    kilowatts = Layout("load_kw", factor=Fraction(1, 1000), valid_from=date(2015, 7, 1))
    listed = Layout(
        "load_kw", "when", "customer_id", Fraction(1, 1000), None, "_FILES", valid_from=date(2016, 1, 1)
    )
    marked = Layout("load_kw", "when", "customer_id", Fraction(1, 1000), "DONE", None, date(2016, 3, 1))
    assert settings.input.layouts == (oldest, kilowatts, listed, marked)
    expected = {
        date(1970, 1, 1): oldest,
        date(2015, 6, 30): oldest,
        date(2015, 7, 1): kilowatts,
        date(2015, 12, 31): kilowatts,
        date(2016, 1, 1): listed,
        date(2016, 2, 29): listed,
        date(2016, 3, 1): marked,
        date.max: marked,
    }
    assert {day: settings.input_of(day) for day in expected} == expected
    assert [layout.announcement for layout in settings.input.layouts] == [
        "_SUCCESS",
        "_SUCCESS",
        "_FILES",
        "DONE",
    ]


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
        ('[[input.changes]]\nvalue = "x"', "1: valid_from is missing; it must be the first day"),
        ("changes = [3]", "[[input.changes]] 1: must be a table of keys: valid_from, timestamp, value"),
        ("changes = 3", "input.changes must be a list of at most 1000 tables, each headed [[input.changes]]"),
        ("[input.changes]", "input.changes must be a list of at most 1000 tables"),
        *(
            (FIRST.replace("2015-07-01", bad), "valid_from must be the first day that is laid out so")
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
    assert small(marker=same).settings.input.layouts[1].customer == "load"
    told = refusal(same, schema="metered")
    assert "customer and region must be different columns; got ['timestamp', 'load', 'load']" in told


def test_many_changes_are_told_apart_or_refused(small, refusal):
    def changes(number):
        days = (date(2000, 1, 1) + timedelta(days=day) for day in range(number))
        return "".join(f'[[input.changes]]\nvalid_from = {day}\nvalue = "v{day}"\n' for day in days)

    settings = small(marker=changes(1000)).settings
    assert settings.input_of(date(2001, 1, 1)).value == "v2001-01-01"
    assert "a list of at most 1000 tables" in refusal(changes(1001))
