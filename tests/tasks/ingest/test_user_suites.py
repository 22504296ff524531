"""Users' suites on the three frames: they alarm operators, stop no day, and change no release."""

import json
from datetime import UTC, date, datetime

import pytest

from tests.tasks.monitor.conftest import WATCH, Watched
from tests.tasks.two_regions import CONFIGURATION

pytestmark = pytest.mark.slow

FIRST = date(2016, 6, 1)
SUITES = {
    "raw": ("rows", {"max_value": 1}),
    "private_period": ("steps", {"max_value": 1}),
    "release": ("total", {"max_value": -1}),
}


def suite(column, **kwargs):
    kind = "expect_column_values_to_be_between"
    wanted = {"type": kind, "kwargs": {"column": column, **kwargs}, "severity": "critical"}
    return json.dumps({"name": "any", "expectations": [wanted]})


def add(folder, suites):
    for frame, (column, kwargs) in suites.items():
        place = folder / "contracts" / frame
        place.mkdir(parents=True)
        (place / "odd.json").write_text(suite(column, **kwargs))


@pytest.fixture
def watched(tmp_path):
    text = CONFIGURATION + WATCH + '[contracts]\nfolder = "contracts"\n'
    (tmp_path / "optstream.toml").write_text(text)
    installation = Watched(tmp_path, datetime(2016, 6, 2, 12, tzinfo=UTC))
    installation.simulate(FIRST)
    return installation


def test_a_critical_expectation_of_a_user_stops_no_day_and_alarms_operators_alone(watched):
    add(watched.folder, SUITES)
    watched.released(FIRST)
    assert watched.record(FIRST).state.value == "PUBLISHED"
    alarms = [one for one in watched.watch().alarms if one.kind == "user-suite"]
    assert [one.words.split(" of [contracts]")[0] for one in sorted(alarms, key=lambda one: one.words)] == [
        f"2016-06-01: the suite {frame}/odd" for frame in sorted(SUITES)
    ]
    assert all("The day is not stopped: users' suites raise alarms only" in one.words for one in alarms)
    assert all(one.kind.depends_on_readings for one in alarms)
    paths = [path for path in (watched.folder / "published").rglob("*") if path.is_file()]
    published = b"".join(path.read_bytes() for path in paths)
    assert b"user-suite" not in published
    assert b"raw/odd" not in published


RAISING = """
import great_expectations as gx
import great_expectations.expectations as gxe

class Odd(gxe.ExpectColumnMaxToBeBetween):
    def {method}(self, *given, **named):
        raise {error}("odd")

suite = gx.ExpectationSuite(name="any", expectations=[Odd(column="day", max_value="2000-01-01")])
"""


@pytest.mark.parametrize(
    ("method", "error"),
    [
        ("get_validation_dependencies", "ValueError"),
        ("_validate", "SystemExit"),
    ],
)
def test_an_expectation_of_a_user_that_raises_stops_no_day(watched, method, error):
    """Whether it raises may depend on a reading."""
    for frame in SUITES:
        place = watched.folder / "contracts" / frame
        place.mkdir(parents=True, mode=0o700)
        (place / "odd.py").write_text(RAISING.format(method=method, error=error))
    watched.released(FIRST)
    assert watched.record(FIRST).state.value == "PUBLISHED"
    words = [one.words for one in watched.watch().alarms if one.kind == "user-suite"]
    assert len([one for one in words if f"could not be evaluated: {error}" in one]) == len(SUITES)


def test_each_day_is_judged_by_itself_and_users_aggregates_are_of_one_day(small, days):
    stream = small()
    file = stream.settings.file
    file.write_text(file.read_text() + '[contracts]\nfolder = "contracts"\n')
    from tasks.config import load_settings

    stream.settings = load_settings(file)
    add(file.parent, {"raw": ("absent", {"max_value": 0})})
    for number, day in enumerate(days(2)):
        for region in ("84", "11"):
            stream.write(region, stream.rows(1e9 if number else 1.0, day), day)
    place = file.parent / "contracts/raw/odd.json"
    mean = {"type": "expect_column_mean_to_be_between", "kwargs": {"column": "out_of_bounds", "max_value": 0}}
    place.write_text(json.dumps({"name": "x", "expectations": [mean]}))
    first, second = stream.judge(*days(2))
    assert first.alarms == ()
    assert [line for line in second.alarms if "raw/odd" in line] != []
    assert second.error is None
