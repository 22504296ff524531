"""The proposed configuration: what is set, and what goes because it would not fit beside it."""

from fractions import Fraction

from tasks.config import load_settings
from tasks.plan.advise import write_proposal
from tests.tasks.two_regions import released_by


def test_what_stands_beside_the_proposal_stays(tmp_path):
    file, proposed = tmp_path / "own.toml", tmp_path / "proposed.toml"
    file.write_text(released_by("Laplace").replace("[budget]", '[budget]\nstream_share = "1/2"  # gas'))
    write_proposal(load_settings(file), {"budget": {"levels": ["1/4", "3/4"]}}, proposed)
    assert 'stream_share = "1/2"  # gas' in proposed.read_text()
    again = tmp_path / "again.toml"
    write_proposal(load_settings(proposed), {"budget": {"stream_share": "5/8"}}, again)
    assert load_settings(again).stream_share == Fraction(5, 8)
