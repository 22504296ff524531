"""Flows travel: a pool's and a cluster's workers are sent the one that asked them, by value."""

import cloudpickle
import pytest

from flows.orchestration.backfill import backfill
from flows.orchestration.nightly import nightly, nights
from flows.orchestration.release import release_days


@pytest.mark.parametrize("flow", [backfill, nightly, nights, release_days], ids=lambda flow: flow.name)
def test_a_flow_can_be_sent(flow):
    """What its body names must be found by its module there, or be pickled with it: no context variable."""
    assert cloudpickle.loads(cloudpickle.dumps(flow)).name == flow.name
