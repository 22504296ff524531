"""From settings to the mechanism of a day: its sampler, its stages, its shortest period."""

from datetime import date

import pytest

from optstream.errors import ParameterError
from tasks.config import load_settings
from tasks.release.mechanism import mechanism_for

WINTER, SPRING = date(2025, 1, 15), date(2025, 3, 30)
METHOD = 'method = "equally_spaced"\nn_samples = 10\n'


@pytest.fixture
def l1(small):
    """The settings of the small stream with L1 sampling."""

    def make(window=48, features="", **keys):
        stream = small()
        text = stream.settings.file.read_text()
        given = {"threshold": '"0.5"', **keys}
        listed = "".join(f"{key} = {value}\n" for key, value in given.items())
        text = text.replace(METHOD, f'method = "l1"\nn_samples = 10\n{listed}{features}')
        stream.settings.file.write_text(text.replace("window = 48", f"window = {window}"))
        return load_settings(stream.settings.file)

    return make


def test_the_noise_of_l1_sampling_is_that_of_the_shortest_day_on_every_day(l1):
    """Otherwise a window that meets a 46-step day would lose more than its plan says."""
    settings = l1()
    mechanisms = [mechanism_for(settings, day) for day in (WINTER, SPRING)]
    assert {mechanism.shortest_period for mechanism in mechanisms} == {46}
    assert {mechanism.epsilon for mechanism in mechanisms} == {mechanisms[0].epsilon}
    assert mechanisms[0].epsilon <= 1
    assert mechanisms[1].plan(46)
    with pytest.raises(ParameterError):
        mechanisms[1].plan(44)
