"""Users' suites, as JSON and as Python: what holds, what does not, and what cannot be judged. None raises."""

import json

import great_expectations as gx
import polars as pl
import pytest
from great_expectations.expectations import ExpectColumnMeanToBeBetween

from data_contracts.user_suites import judge_user_suite, user_suites

FRAME = pl.DataFrame({"day": ["2025-01-15"] * 2, "region": ["84", "11"], "rows": [48, 96], "absent": [0, 3]})
PYTHON = """
import great_expectations as gx
import great_expectations.expectations as gxe

most = gxe.ExpectColumnMaxToBeBetween(column="rows", max_value=50)
suite = gx.ExpectationSuite(name="any", expectations=[most])
"""


def written(folder, name="night.json", **changes):
    """A suite as the library itself writes it."""
    suite = gx.ExpectationSuite(
        name="night", expectations=[ExpectColumnMeanToBeBetween(column="rows", min_value=50, max_value=80)]
    )
    document = suite.to_json_dict()
    document["expectations"][0].update(changes)
    (folder / name).write_text(json.dumps(document))


def verdicts(folder):
    return [(suite.name, judge_user_suite(suite, FRAME)[1]) for suite in user_suites(folder)]


def test_a_suite_of_the_librarys_own_json_holds_or_does_not(tmp_path):
    written(tmp_path)
    assert verdicts(tmp_path) == [("night", None)]
    written(tmp_path, kwargs={"column": "rows", "max_value": 71})
    assert verdicts(tmp_path) == [("night", "does not hold: expect_column_mean_to_be_between(rows)")]


def test_a_python_file_gives_its_suite(tmp_path):
    (tmp_path / "loads.py").write_text(PYTHON)
    assert verdicts(tmp_path) == [("loads", "does not hold: expect_column_max_to_be_between(rows)")]


@pytest.mark.parametrize("open_one", ["file", "folder"])
def test_a_python_file_that_others_may_write_is_not_run(tmp_path, open_one):
    folder = tmp_path / "raw"
    folder.mkdir()
    (folder / "loads.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    (folder if open_one == "folder" else folder / "loads.py").chmod(0o777)
    ((name, words),) = verdicts(folder)
    assert (name, words.split(":")[0]) == ("loads", "was not run")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.json", "{", "cannot be loaded: JSONDecodeError"),
        ("a.json", "[]", "cannot be loaded: TypeError"),
        ("a.json", '{"expectations": []}', "must have 1 to 500 expectations"),
        ("a.json", " " * (2**20 + 1), "it is larger than 1 MiB"),
        ("a.py", "suite = 1", "must assign a great_expectations.ExpectationSuite"),
        ("a.py", "raise ValueError('no')", "cannot be loaded: ValueError: no"),
        ("a b.json", "{}", "must have a name of letters"),
    ],
)
def test_a_file_that_is_no_suite_is_a_problem_and_raises_nothing(tmp_path, name, content, words):
    (tmp_path / name).write_text(content)
    ((_, said),) = verdicts(tmp_path)
    assert words in said


def test_an_expectation_that_the_library_does_not_know_is_a_problem_not_a_pass(tmp_path):
    written(tmp_path, type="expect_column_mean_to_be_betwen")
    ((_, said),) = verdicts(tmp_path)
    assert "has an expectation that the library does not know" in said


def test_an_expectation_that_cannot_be_evaluated_is_reported(tmp_path):
    written(tmp_path, kwargs={"column": "nowhere", "max_value": 1})
    ((_, said),) = verdicts(tmp_path)
    assert said == "does not hold: expect_column_mean_to_be_between(nowhere) could not be evaluated"
