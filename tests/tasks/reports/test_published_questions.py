"""Questions of the configuration, answered beside the data of released nights, and taken back with them."""

import json
import shutil
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from optstream import ask, read_answers, read_measurements, read_published
from optstream.catalogue import check_files
from tests.tasks.conftest import TWO_REGIONS, Installation
from tests.tasks.release.records.test_published_measurements import DAY, DAYS, LAST, NEXT, wanted

pytestmark = pytest.mark.slow

QUESTIONS = """
[questions."quiet night"]
ask = "low"
window = "4h"
at_most = "100000"
nodes = ["11"]
[questions.ramp]
ask = "jump"
window = "1h"
at_least = "250"
level = 1
[questions.fall]
ask = "drop"
window = "2h"
at_least = "100.5"
nodes = ["FR"]
[questions.evening]
ask = "sum"
window = "90min"
level = 0
"""


@pytest.fixture(scope="module", params=["OptStream", "Laplace", "HistoryInformed"])
def nights(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("questions")
    (folder / "optstream.toml").write_text(TWO_REGIONS + QUESTIONS)
    installation = wanted(Installation(folder), request.param)
    installation.release(*DAYS)
    assert installation.write_pages().problem is None
    return request.param, installation


def test_the_answers_are_those_of_the_published_rows_by_the_definitions(nights):
    _, installation = nights
    folder = installation.settings.published_folder
    rows = read_published(folder).sort("node", "date", "step")
    found = read_answers(folder)
    asked = {question.name: question for question in installation.settings.asked}
    assert set(found["question"]) == set(asked)
    known = {
        (name, node, day, step): (answer, happened)
        for name, node, day, step, answer, happened in found.select(
            "question", "node", "date", "step", "answer", "happened"
        ).iter_rows()
    }
    n_expected = 0
    for question in asked.values():
        for (node, level), of_node in rows.group_by("node", "level"):
            if not question.asks(node, level):
                continue
            exact = [Fraction(round(value * 1000), 1000) for value in of_node["load_mw"]]
            ends = of_node.select("date", "step").rows()
            for last in range(question.window - 1, len(exact)):
                window = exact[last - question.window + 1 : last + 1]
                change = window[-1] - window[0]
                answer, happened = {
                    "sum": (sum(window), None),
                    "low": (sum(window), question.bound is not None and sum(window) <= question.bound),
                    "jump": (change, question.bound is not None and change >= question.bound),
                    "drop": (-change, question.bound is not None and -change >= question.bound),
                }[question.kind]
                assert known[question.name, node, *ends[last]] == (float(answer), happened)
                n_expected += 1
    assert n_expected == len(known) == (144 - 7) + 2 * (144 - 1) + (144 - 3) + (144 - 2)


def test_errors_within_a_day_are_those_of_the_days_own_release(nights):
    name, installation = nights
    folder = installation.settings.published_folder
    release = read_measurements(folder, NEXT).release()
    first, found = release.measured.first_step, read_answers(folder, NEXT, NEXT)
    sums = found.filter(question="evening")
    for row in sums.filter(pl.col("step") >= 2).iter_rows(named=True):
        wanted_ = release.sum(["FR"], [first + row["step"] - back for back in range(3)])
        for kind, expected in (
            ("answer_se", wanted_.standard_error),
            ("answer_noise_se", wanted_.noise_standard_error),
        ):
            assert (row[kind] is None) == (expected is None)
            assert expected is None or row[kind] == pytest.approx(expected, rel=1e-6)
            if (name, kind) == ("OptStream", "answer_se"):  # of single values it is known, of no sum
                steps = slice(row["step"] - 2, row["step"] + 1)
                at_most = release.standard_errors[release.tree.nodes.index("FR"), steps].sum()
                assert row["answer_se_at_most"] == pytest.approx(at_most, rel=1e-4)
            else:
                assert row[f"{kind}_at_most"] == row[kind]
    assert sums["answer_se"].null_count() == (48 if name == "OptStream" else 2 * (name != "Laplace"))
    ramp = found.filter(question="ramp", node="84", step=20).row(0, named=True)
    if name == "Laplace":
        # independent steps: a difference errs as a sum does
        pair = release.sum(["84"], [first + 19, first + 20])
        assert ramp["answer_noise_se"] == pytest.approx(pair.noise_standard_error, rel=1e-6)


def test_across_midnight_independent_noise_is_exact_and_a_models_doubt_is_bounded(nights):
    name, installation = nights
    folder = installation.settings.published_folder
    row = read_answers(folder, NEXT, NEXT).filter(question="evening", step=0).row(0, named=True)
    parts = []
    for day, steps in ((DAY, (46, 47)), (NEXT, (0,))):
        release = read_measurements(folder, day).release()
        parts.append(release.sum(["FR"], [release.measured.first_step + step for step in steps]))
    if name == "HistoryInformed":
        apart = [one.standard_error for one in parts]
        assert row["answer_se"] is None
        assert row["answer_se_at_most"] == pytest.approx(sum(apart), rel=1e-6)
    else:
        apart = [one.noise_standard_error for one in parts]
        assert row["answer_noise_se"] == pytest.approx(np.hypot(*apart), rel=1e-6)


def test_anybody_computes_the_same_from_a_copy_of_the_public_folder_alone(nights, tmp_path):
    """What is published of answers is a function of what is published: it costs no privacy."""
    _, installation = nights
    copy = tmp_path / "copy"
    shutil.copytree(installation.folder / "published", copy)
    shutil.rmtree(copy / "questions")
    (copy / "questions.json").unlink()
    found = ask(copy, installation.settings.asked)
    assert found.equals(read_answers(installation.settings.published_folder))


def test_page_descriptions_and_checks_know_the_answers(nights):
    _, installation = nights
    published = installation.folder / "published"
    assert check_files(published) == []
    assert b'href="questions.json"' in (published / "index.html").read_bytes()
    package = json.loads((published / "datapackage.json").read_text())
    (resource,) = (one for one in package["resources"] if one["name"] == "answers")
    assert {published / name for name in resource["path"]} == set(
        (published / "questions").rglob("*.parquet")
    )
    names = [field["name"] for field in resource["schema"]["fields"]]
    assert names == [name for name in read_answers(published).columns if name != "date"]
    document = json.loads((published / "croissant.json").read_text())
    assert [one["@id"] for one in document["recordSet"]] == ["releases", "errors", "answers"]


def test_a_day_that_is_taken_back_takes_answers_with_it_and_the_rest_is_answered_anew(installation):
    installation.folder.joinpath("optstream.toml").write_text(TWO_REGIONS + QUESTIONS)
    installation.simulate(*DAYS)
    installation.release(*DAYS)
    installation.write_pages()
    published = installation.folder / "published"
    days = sorted(path.name for path in (published / "questions").iterdir())
    assert days == [f"date={day}" for day in DAYS]
    installation.withdraw(NEXT)
    assert sorted(path.name for path in (published / "questions").iterdir()) == [f"date={DAY}"]
    assert [line for line in check_files(published) if "question" in line] == []
    assert installation.write_pages().problem is None
    found = read_answers(published)
    assert found["date"].unique().to_list() == [DAY, LAST]
    # no window reaches across the day that was taken back
    assert found.filter(date=LAST, question="evening")["step"].min() == 2
    assert check_files(published) == []


def test_answers_that_cannot_be_written_are_a_problem_of_the_page_and_stop_no_night(installation):
    installation.folder.joinpath("optstream.toml").write_text(TWO_REGIONS + QUESTIONS)
    installation.simulate(DAY)
    installation.release(DAY)
    (installation.folder / "published/questions").write_text("in the way")
    written = installation.write_pages()
    assert written.problem is not None
    assert "questions" in written.problem
    assert written.public is not None
    assert (installation.folder / "published/index.html").is_file()
