"""Answers beside the data, in every kind of place: put, read, checked, taken back, made anew."""

from datetime import date
from fractions import Fraction
from json import dumps, loads

import polars as pl
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from optstream import ask, read_answers
from optstream.catalogue import check_files
from optstream.catalogue.questions import published_answers
from optstream.catalogue.questions.answers_index import parse_index
from optstream.catalogue.questions.published_answers import put_answers
from optstream.catalogue.questions.question import Question
from optstream.catalogue.signing import Signer, public_pem
from optstream.errors import ParameterError, PublicationError
from tests.optstream.catalogue.folders import KINDS, take_back

pytestmark = pytest.mark.slow

DAYS = [date(2016, 2, number) for number in (1, 2, 3, 4)]
SUMS = Question("sums", "sum", 4, level=1)
LOW = Question("low", "low", 3, Fraction(11), nodes=("FR",))
ASKED = (SUMS, LOW)


EVERYWHERE = pytest.mark.parametrize("published", KINDS, indirect=True)


def answered(folder):
    return {name for name in folder.files() if name.startswith("questions/")}


def days_of(folder):
    return sorted(loads(folder.read("questions.json"))["days"])


@pytest.fixture
def folder(published, put_all):
    put_all(published.name, *DAYS)
    assert put_answers(published.name, ASKED, 30)
    return published


@EVERYWHERE
def test_what_is_put_is_read_back_and_is_what_anybody_computes(folder):
    found = read_answers(folder.name)
    assert found.equals(ask(folder.name, ASKED))
    assert found["date"].unique().to_list() == DAYS
    # three steps a day have a time: 4 windows end on the first day for 3 steps, none for 4
    first = found.filter(date=DAYS[0])
    assert first.select("question", "node", "step", "answer", "happened").rows() == [
        ("low", "FR", 3, 40.0, False)
    ]
    assert found.filter(date=DAYS[1], question="sums", node="84")["answer"].to_list() == [44.0, 54.0, 74.0]
    assert read_answers(folder.name, DAYS[1], DAYS[2])["date"].unique().to_list() == DAYS[1:3]
    assert check_files(folder.name) == []


def test_the_files_are_one_dataset_that_polars_reads(tmp_path, put_all):
    put_all(tmp_path, *DAYS)
    put_answers(tmp_path, ASKED, 30)
    whole = pl.read_parquet(tmp_path / "questions")
    assert whole["date"].unique().sort().to_list() == DAYS


def test_putting_again_changes_nothing_and_another_question_makes_all_anew(folder):
    before = folder.files()
    assert not put_answers(folder.name, ASKED, 30)
    assert folder.files() == before
    assert put_answers(folder.name, (LOW,), 30)
    assert set(read_answers(folder.name)["question"]) == {"low"}
    assert len(answered(folder)) == len(DAYS)
    assert check_files(folder.name) == []


def test_a_day_published_anew_is_answered_anew_with_the_days_that_reach_it_and_no_other(folder, put):
    before = loads(folder.read("questions.json"))["days"]
    put(folder.name, DAYS[1], vintage=2, shift=5.0, head="h2")
    # until then nobody reads answers of a release that is not listed any more
    assert set(read_answers(folder.name)["date"]) == {DAYS[0], DAYS[3]}
    problems = [line for line in check_files(folder.name) if "answers of other releases" in line]
    assert len(problems) == 2
    assert put_answers(folder.name, ASKED, 30)
    after = loads(folder.read("questions.json"))["days"]
    same = {day for day in after if after[day] == before[day]}
    assert same == {"2016-02-01", "2016-02-04"}
    assert read_answers(folder.name).equals(ask(folder.name, ASKED))
    assert len(answered(folder)) == len(DAYS)


@EVERYWHERE
def test_a_withdrawn_day_takes_its_answers_and_those_that_reach_it_with_it(folder):
    take_back(folder.name, DAYS[1])
    assert days_of(folder) == ["2016-02-01", "2016-02-04"]
    assert {name.split("/")[1] for name in answered(folder)} == {"date=2016-02-01", "date=2016-02-04"}
    assert [line for line in check_files(folder.name) if "questions" in line] == []
    assert put_answers(folder.name, ASKED, 30)
    assert days_of(folder) == ["2016-02-01", "2016-02-03", "2016-02-04"]
    found = read_answers(folder.name).filter(date=DAYS[2])
    # no window reaches into the gap
    assert set(found.select("question", "step").rows()) == {("low", 3)}


def test_a_withdrawal_beside_a_damaged_index_leaves_no_answer_that_the_day_is_in(folder):
    folder.write("questions.json", b"{}")
    take_back(folder.name, DAYS[1])
    assert {name.split("/")[1] for name in answered(folder)} <= {"date=2016-02-01"}
    assert put_answers(folder.name, ASKED, 30)
    assert days_of(folder) == ["2016-02-01", "2016-02-03", "2016-02-04"]
    assert [line for line in check_files(folder.name) if "questions" in line] == []


def test_files_that_are_lost_altered_or_nobodys_are_named_and_made_anew(folder):
    lost, altered, *_ = sorted(answered(folder))
    folder.remove(lost)
    folder.write(altered, b"else")
    folder.write("questions/date=2016-02-01/answers-x.parquet", b"stray")
    problems = "\n".join(line for line in check_files(folder.name) if "questions" in line)
    assert f"{lost} is missing" in problems
    assert f"{altered} differs from its hash" in problems
    assert "answers-x.parquet' is not listed in questions.json" in problems
    with pytest.raises(PublicationError, match="is missing"):
        read_answers(folder.name)
    folder.remove(altered)  # as the message says
    assert put_answers(folder.name, ASKED, 30)
    assert check_files(folder.name) == []


def test_a_damaged_release_leaves_its_days_unanswered_and_stops_no_other(published, put_all):
    put_all(published.name, *DAYS)
    (name,) = (name for name in published.files() if name.startswith("data/date=2016-02-02"))
    published.remove(name)
    assert put_answers(published.name, ASKED, 30)
    assert days_of(published) == ["2016-02-01", "2016-02-04"]


def test_where_nothing_is_asked_there_is_no_file_and_what_was_asked_before_goes(published, put_all):
    put_all(published.name, *DAYS)
    assert not put_answers(published.name, (), 30)
    assert "questions.json" not in published.files()
    with pytest.raises(ParameterError, match="answers no questions"):
        read_answers(published.name)
    put_answers(published.name, ASKED, 30)
    assert put_answers(published.name, (), 30)
    assert answered(published) == set()
    assert read_answers(published.name).height == 0
    assert check_files(published.name) == []


def test_an_empty_folder_and_unknown_nodes_levels_and_days_are_refused(published, put_all):
    assert not put_answers(published.name, ASKED, 30)
    put_all(published.name, *DAYS)
    with pytest.raises(ParameterError, match="has no node 'XX'"):
        ask(published.name, [Question("q", "sum", 1, nodes=("XX",))])
    with pytest.raises(ParameterError, match="has no level 2; the deepest is 1"):
        ask(published.name, [Question("q", "sum", 1, level=2)])
    with pytest.raises(ParameterError, match="no day of this span"):
        ask(published.name, ASKED, date(2017, 1, 1))
    with pytest.raises(ParameterError, match="at most 31 days"):
        ask(published.name, [Question("q", "sum", 31 * 48 + 1, level=0)])


@EVERYWHERE
def test_a_signed_index_is_read_by_the_key_and_a_forged_one_refused(published, put):
    signer = Signer(Ed25519PrivateKey.generate(), lambda _: None)
    key = public_pem(signer.key.public_key())
    put(published.name, DAYS[0], signer=signer)
    put_answers(published.name, ASKED, 30, signer)
    assert read_answers(published.name, public_key=key).height
    assert check_files(published.name, key) == []
    index = published.read("questions.json").replace(b'"bound": "11"', b'"bound": "12"')
    published.write("questions.json", index)
    with pytest.raises(PublicationError, match=r"questions.json is not signed by key"):
        read_answers(published.name, public_key=key)
    assert any("questions.json is not signed" in line for line in check_files(published.name, key))


def test_many_days_are_put_in_turns(published, put_all, monkeypatch):
    monkeypatch.setattr("optstream.catalogue.questions.published_answers.MOST_AT_ONCE", 2)
    put_all(published.name, *DAYS)
    assert put_answers(published.name, ASKED, 30)
    assert days_of(published) == [str(day) for day in DAYS]
    assert check_files(published.name) == []


@pytest.mark.parametrize(
    "change",
    [
        {"format": "optstream.questions/2"},
        {"step_minutes": 0},
        {"step_minutes": True},
        {"stream": 3},
        {"questions": []},
        {"questions": {"q": {"kind": "sum", "window": 10**9, "level": 0}}},
        {"questions": {"q": {"kind": "low", "window": 1, "level": 0, "bound": "1e999999"}}},
        {"days": {"2016-02-01": {"file_hash": "../x", "made_of": "0" * 64}}},
        {"days": {"yesterday": {"file_hash": "0" * 64, "made_of": "0" * 64}}},
        {"days": []},
    ],
)
def test_an_index_that_is_none_is_refused(change):
    whole = {
        "format": "optstream.questions/1",
        "stream": "s",
        "value_column": "load",
        "step_minutes": 30,
        "questions": {"q": {"kind": "low", "window": 2, "level": 0, "bound": "-3/2"}},
        "days": {"2016-02-01": {"file_hash": "0" * 64, "made_of": "0" * 64}},
    }
    assert parse_index(dumps(whole).encode()).questions[0].bound == Fraction(-3, 2)
    with pytest.raises(PublicationError, match=r"questions.json is not optstream.questions/1"):
        parse_index(dumps(whole | change).encode())


def test_a_day_that_is_withdrawn_while_answers_are_made_has_none_at_any_moment(
    published, put_all, monkeypatch
):
    put_all(published.name, *DAYS)
    make, seen = published_answers._missing, []

    def made_meanwhile(*arguments):
        seen.append({name.split("/")[1] for name in answered(published)})
        files = make(*arguments)
        if len(seen) == 1:
            take_back(published.name, DAYS[1])
        return files

    monkeypatch.setattr(published_answers, "_missing", made_meanwhile)
    assert put_answers(published.name, ASKED, 30)
    assert len(seen) > 1
    assert not any("date=2016-02-02" in folders for folders in seen)
    assert days_of(published) == ["2016-02-01", "2016-02-03", "2016-02-04"]
