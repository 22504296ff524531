"""What a person is told when a run is done."""

from datetime import date
from fractions import Fraction
from types import SimpleNamespace

import pytest

from flows.cli.output import Terminal
from tasks.release.stages import Outcome, Status


@pytest.mark.parametrize(("status", "times"), [(Status.REFUSED, 1), (Status.UNCHANGED, 3)])
def test_what_is_wrong_with_many_days_alike_is_said_once(status, times, capsys):
    days = [date(2016, 2, day) for day in (1, 2, 3)]
    ended = [SimpleNamespace(day=day, outcome=Outcome(status, f"{day}: lacks a column")) for day in days]
    settings = SimpleNamespace(published_folder="published", validation_folder="validation")
    budget = SimpleNamespace(model=SimpleNamespace(window_length=48), in_words="epsilon 1", spent=Fraction(0))
    Terminal().outcomes(ended, settings, budget)
    told = capsys.readouterr().out
    assert told.count("lacks a column") == times
    assert told.count("as 2016-02-01") == 3 - times
