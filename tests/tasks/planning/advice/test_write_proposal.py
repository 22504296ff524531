"""The proposed configuration: what is set, and what goes because it would not fit beside it."""

from fractions import Fraction

from tasks.config import load_settings
from tasks.plan.advise import write_proposal
from tests.tasks.planning.advice.test_population import LAPLACE


def test_a_proposed_share_takes_the_place_of_a_chosen_one(tmp_path):
    """A number beside the files by which a share is chosen is refused: they go with it."""
    chosen = '[budget]\nstream_share = "model"\nshared_with = ["other.toml"]  # gas'
    file, proposed = tmp_path / "own.toml", tmp_path / "proposed.toml"
    file.write_text(LAPLACE.replace("[budget]", chosen))
    write_proposal(load_settings(file), {"budget": {"stream_share": "5/8"}}, proposed)
    assert load_settings(proposed).stream_share == Fraction(5, 8)
    assert "shared_with" not in proposed.read_text()


def test_what_stands_beside_the_proposal_stays(tmp_path):
    chosen = '[budget]\nstream_share = "model"\nshared_with = ["other.toml"]  # gas'
    file, proposed = tmp_path / "own.toml", tmp_path / "proposed.toml"
    file.write_text(LAPLACE.replace("[budget]", chosen))
    write_proposal(load_settings(file), {"budget": {"levels": ["1/4", "3/4"]}}, proposed)
    assert 'shared_with = ["other.toml"]  # gas' in proposed.read_text()
