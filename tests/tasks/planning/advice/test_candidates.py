"""What is proposed beside the configured plan: nothing that the configuration would refuse."""

import pytest

from tasks.config import load_settings
from tasks.config.example import Kind, example_of
from tasks.plan.advise import write_proposal
from tasks.plan.candidates import Choice, mechanism_choices, with_laplace_noise


@pytest.fixture
def a_month(load_text):
    """HistoryInformed that compares kinds of noise over a month."""
    horizon = ("[hierarchy.parents]", "horizon = { days = 30 }\n[hierarchy.parents]")
    return load_text(example_of(Kind("HistoryInformed")), horizon)


def test_a_horizon_goes_where_noise_is_said_or_cannot_be_joint(a_month):
    by_label = {one.label: one for one in mechanism_choices(a_month)}
    other = next(one for label, one in by_label.items() if label.startswith("Fourier"))
    for number, choice in enumerate((with_laplace_noise(by_label["as configured"]), other)):
        assert choice.settings.privacy.horizon is None
        file = a_month.file.with_name(f"proposed-{number}.toml")
        write_proposal(a_month, choice.keys, file)
        assert load_settings(file).privacy.horizon is None


def test_it_stays_where_noise_is_still_chosen(a_month):
    (kept,) = [one for one in mechanism_choices(a_month) if one.label == "Laplace"]
    assert kept.settings.privacy.horizon == a_month.privacy.horizon
    assert Choice("as configured", {}, a_month).settings.privacy.horizon is not None
