"""Whatever others write, it is read or refused with an OptStreamError, shows no reading and costs nothing."""

import os
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.properties.inputs import INPUTS

EXAMPLES = {"configuration": 50, "hierarchy": 50, "dumps": 2, "catalogue": 30, "measurements": 75}
TIMES = int(os.environ.get("OPTSTREAM_FUZZ_TIMES", "1"))
"""Multiplies the examples and, above 1, draws them by the given seed: `make fuzz`."""
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("source", INPUTS, ids=lambda source: source.name)
def test_hostile_input_is_read_or_refused_and_costs_nothing(world, source):
    refused, read = [], []

    @settings(
        max_examples=TIMES * EXAMPLES[source.name],
        deadline=None if TIMES == 1 else timedelta(minutes=1),
        derandomize=TIMES == 1,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(source.cases)
    def run(case):
        refusals = source.read(world, case)
        (refused if refusals and refusals != [None] * 4 else read).append(case)
        assert world.n_spends == 0

    run()
    assert refused, "a grammar that makes nothing hostile tests nothing"
    assert read, "a grammar that makes nothing readable tests only the first check"


@pytest.mark.parametrize("source", INPUTS, ids=lambda source: source.name)
def test_seeds_of_the_fuzzer_without_grammar_are_read(world, source):
    """Else it would only ever see the first check."""
    refusals = [source.read(world, source.from_bytes(seed)) for seed in source.seeds()]
    assert not refusals[-1] or refusals[0] in (None, [None] * 4), refusals
    assert world.n_spends == 0
