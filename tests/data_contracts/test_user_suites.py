"""Users' suites, as JSON and as Python: what holds, what does not, and what cannot be judged. None raises."""

import json

import great_expectations as gx
import polars as pl
import pytest
from great_expectations.expectations import ExpectColumnMeanToBeBetween

from data_contracts.suites import judge_user_suite, user_suites

FRAME = pl.DataFrame({"day": ["2025-01-15"] * 2, "region": ["84", "11"], "rows": [48, 96], "absent": [0, 3]})
PYTHON = """
import great_expectations as gx
import great_expectations.expectations as gxe

most = gxe.ExpectColumnMaxToBeBetween(column="rows", max_value=50)
suite = gx.ExpectationSuite(name="any", expectations=[most])
"""


def written(**changes):
    suite = gx.ExpectationSuite(
        name="night", expectations=[ExpectColumnMeanToBeBetween(column="rows", min_value=50, max_value=80)]
    )
    document = suite.to_json_dict()
    document["expectations"][0].update(changes)
    return json.dumps(document)


def verdicts(folder):
    return [(suite.name, judge_user_suite(suite, FRAME)[1]) for suite in user_suites(folder)]


MEAN = "does not hold: expect_column_mean_to_be_between"
ODD, NOWHERE = ({"column": name, "max_value": 71} for name in ("rows", "nowhere"))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("night.json", written(), None),
        ("night.json", written(kwargs=ODD), f"{MEAN}(rows)"),
        ("night.json", written(kwargs=NOWHERE), f"{MEAN}(nowhere) could not be evaluated"),
        ("loads.py", PYTHON, "does not hold: expect_column_max_to_be_between(rows)"),
    ],
)
def test_a_suite_of_the_librarys_own_json_or_of_python_holds_or_does_not(tmp_path, name, content, said):
    (tmp_path / name).write_text(content)
    assert verdicts(tmp_path) == [(name.partition(".")[0], said)]


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
        ("a.json", written(type="betwen"), "has an expectation that the library does not know"),
        ("a.py", "suite = 1", "must assign a great_expectations.ExpectationSuite"),
        ("a.py", "raise ValueError('no')", "cannot be loaded: ValueError: no"),
        ("a b.json", "{}", "must have a name of letters"),
    ],
)
def test_a_file_that_is_no_suite_is_a_problem_and_raises_nothing(tmp_path, name, content, words):
    (tmp_path / name).write_text(content)
    ((_, said),) = verdicts(tmp_path)
    assert words in said
