"""From settings to the mechanism of a day: its sampler, its stages, its shortest period."""

from datetime import date
from fractions import Fraction

import pytest

from optstream.errors import ParameterError
from optstream.measurement import L1Sampling
from tasks.config import load_settings
from tasks.release import draw, estimate, reserve, run
from tasks.release import pipeline as steps
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


def test_l1_sampling_is_as_configured(l1):
    assert mechanism_for(l1(), WINTER).sampling == L1Sampling(10, Fraction(1, 2), "even")


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


@pytest.mark.parametrize(("window", "shortest"), [(24, 24), (48, 46), (336, 46)])
def test_without_features_a_period_counts_as_no_longer_than_a_window(l1, window, shortest):
    assert mechanism_for(l1(window, features="[features]\n"), SPRING).shortest_period == shortest


def test_a_run_builds_the_mechanism_of_a_day_once(installation, monkeypatch):
    """Reserve, draw and estimate have the same one, the draw another only where covariates are read; what
    plans a whole year ahead builds its own.
    """
    built = []

    def build(settings, day, revision, *covariates):
        built.append((day, revision))
        return mechanism_for(settings, day, revision, *covariates)

    for module in (run, draw):
        monkeypatch.setattr(module, "mechanism_for", build)
    days = [date(2016, 6, 1), date(2016, 6, 2)]
    installation.release(*days)
    assert sorted(built) == [(day, 0) for day in days]
    for module in (estimate, reserve, steps):
        assert not hasattr(module, "mechanism_for")
