"""The tables [questions]: what they mean, and what is refused with its place, rule and remedy."""

from fractions import Fraction

import pytest

from optstream.catalogue.questions.question import Question
from optstream.errors import ConfigurationError
from tasks.config.example import EXAMPLE
from tests.tasks.config.refused import refused


@pytest.fixture
def load(load_text):
    return lambda questions: load_text(EXAMPLE + questions)


def asked(**keys):
    table = {"ask": '"low"', "window": '"4h"', "at_most": '"-1.5"', "nodes": '["FR"]', **keys}
    lines = [f"{key} = {value}" for key, value in table.items() if value is not None]
    return "\n".join(["[questions.q]", *lines, ""])


def test_tables_become_questions_in_their_order(load):
    settings = load(
        '[questions."quiet night"]\nask = "low"\nwindow = "4h"\nat_most = "1500.5"\nnodes = ["FR", "84"]\n'
        '[questions.ramp]\nask = "jump"\nwindow = "90min"\nat_least = 250\nlevel = 1\n'
        '[questions.sums]\nask = "sum"\nwindow = "744h"\nlevel = 0\n'
    )
    assert settings.asked == (
        Question("quiet night", "low", 8, Fraction("1500.5"), ("FR", "84")),
        Question("ramp", "jump", 3, Fraction(250), (), 1),
        Question("sums", "sum", 1488, None, (), 0),
    )
    assert load(asked()).asked[0].bound == Fraction("-1.5")


def test_they_shape_no_release(load):
    assert load("").asked == ()
    assert load("").configuration_hash == load(asked()).configuration_hash


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"ask": '"lo"'}, 'questions.q: ask must be "sum", "low", "jump" or "drop"; got \'lo\''),
        ({"window": '"4"'}, "questions.q: window must be a length"),
        ({"window": '"45min"'}, "got '45min', and a step has 30 minutes"),
        ({"window": '"745h"'}, "at most 744h; got '745h'"),
        ({"ask": '"jump"', "window": '"30min"'}, "window must be at least two steps for 'jump'"),
        ({"at_most": None}, "questions.q: at_most is missing; it must be a decimal string"),
        ({"at_most": '"x"'}, 'questions.q: at_most must be for "low" alone'),
        ({"at_least": '"3"'}, "questions.q: at_least must be left out for 'low'"),
        ({"ask": '"drop"'}, "questions.q: at_least is missing; it must be a decimal string greater than 0"),
        ({"ask": '"drop"', "at_most": None, "at_least": '"0"'}, "questions.q: at_least must be"),
        ({"ask": '"sum"'}, "questions.q: at_most must be left out for 'sum'"),
        ({"nodes": None}, "questions.q must have one of the keys nodes, level; got neither"),
        ({"level": "1"}, "questions.q must have one of the keys nodes, level; got both"),
        ({"nodes": '["FR", "99"]'}, "questions.q: nodes must be nodes of the hierarchy; got '99'"),
        ({"nodes": '["FR", "FR"]'}, "questions.q: nodes must name each node once"),
        ({"nodes": None, "level": "2"}, "questions.q: level must be in [0, 1]"),
        ({"at_mst": '"3"'}, "questions.q: at_mst is not a known key; did you mean at_most?"),
    ],
)
def test_what_is_wrong_is_named_with_its_place_and_rule(load, keys, said):
    assert said in refused(load, asked(**keys))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[questions]\nq = 3\n", "questions.q: must be a table of keys: ask, window"),
        (asked().replace("questions.q", 'questions." q"'), "questions must be named by a printable text"),
        (asked().replace("questions.q", f"questions.{'q' * 65}"), "must be a printable text of 1 to 64"),
        (
            "".join(asked().replace("questions.q", f"questions.q{number}") for number in range(101)),
            "questions must be at most 100 tables; got 101",
        ),
    ],
)
def test_tables_that_are_none_or_too_many_are_refused(load, text, said):
    assert said in refused(load, text)


def test_answers_of_a_day_are_bounded(load, monkeypatch):
    monkeypatch.setattr("tasks.config.tables.questions.MOST_ANSWERS", 100)
    with pytest.raises(ConfigurationError, match=r"at most 100 answers a day.*got 576: ask a higher level"):
        load(asked(nodes=None, level="1"))
