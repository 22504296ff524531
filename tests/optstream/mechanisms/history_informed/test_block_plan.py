"""What is measured: a plan that changes waits for headroom, parameters are chosen and checked."""

import pytest

from optstream.errors import ParameterError
from tests.optstream.mechanisms.history_informed.hourly_streams import (
    informed,
)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_blocks": 25}, r"n_blocks of HistoryInformed must be an integer in \[1, 24\]; got 25"),
        ({"n_blocks": 0}, r"n_blocks of HistoryInformed must be an integer in \[1, 24\]; got 0"),
        ({"n_blocks": 0, "block_length": None}, "n_blocks of HistoryInformed must be an integer"),
        ({"block_length": 5}, r"block_length of HistoryInformed must be an integer in \[1, 4\]; got 5"),
        ({"history_days": 0}, "history_days of HistoryInformed must be an integer of at least 1; got 0"),
        ({"relearn_days": -1}, "relearn_days of HistoryInformed must be an integer of at least 0; got -1"),
        ({"days": 24}, r"days of HistoryInformed must be optstream.PublicDays, such as .*; got 24"),
        ({"scale": "3"}, "scale of HistoryInformed must be a finite number greater than 0; got '3'"),
        ({"scale": 0.0}, "scale of HistoryInformed must be a finite number greater than 0; got 0.0"),
    ],
)
def test_bad_parameters_are_named(given, message):
    with pytest.raises(ParameterError, match=message):
        informed(**given)
