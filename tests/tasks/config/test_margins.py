"""A margin in the configuration: cells, shares, columns, the hash, and what is not taken, in words."""

from datetime import date
from fractions import Fraction

import pytest

from optstream.stream import Lattice
from tasks.config.templates import example_of
from tasks.release.mechanism import mechanism_for

pytestmark = pytest.mark.slow

DAY = date(2016, 2, 1)
SECTORS = (
    '[hierarchy.margins]\nsector = ["industry", "households"]\n\n[budget]\nmargins = { sector = "1/4" }\n'
)
WITH_MARGIN = {
    "[budget]\n": SECTORS,
    'levels = ["1/2", "1/2"] ': 'levels = ["1/4", "1/4", "1/4"] ',
    '# region = "zone"  ': 'region = "region"\nmargin = "sector"\n# ',
}


@pytest.fixture
def loaded(load_text):
    def load(changes=WITH_MARGIN, mechanism="Laplace", more=None):
        return load_text(example_of(mechanism), *{**changes, **(more or {})}.items())

    return load


def test_each_leaf_has_a_cell_for_each_node_of_the_margin(loaded):
    settings = loaded()
    tree = settings.tree_of(DAY)
    assert isinstance(tree, Lattice)
    assert tree.nodes[-2:] == ("industry", "households")
    assert len(tree.leaves) == 24
    assert tree.cells["53-industry"] == ("53", "industry")
    assert settings.level_shares == (Fraction(1, 4),) * 4
    assert settings.describe_mechanism(DAY)["margin"] == "sector"
    assert settings.input_of(DAY).margin == "sector"


SOME = SECTORS.replace("\n[budget]", '\n[hierarchy.cells]\n53 = ["households"]\n[budget]')


def test_a_leaf_may_have_some_of_the_margins_nodes_alone(loaded):
    whole, settings = loaded(), loaded(more={SECTORS: SOME})
    tree = settings.tree_of(DAY)
    assert len(tree.leaves) == 23
    assert "53-industry" not in tree.nodes
    assert tree.children_of("53") == ("53-households",)
    assert len(tree.children_of("industry")) == 11
    assert len(tree.children_of("households")) == 12
    assert settings.configuration_hash != whole.configuration_hash
    assert settings.dated_hierarchy.hashes != whole.dated_hierarchy.hashes


def test_the_hash_knows_the_margin_and_is_as_before_without_one(loaded):
    plain = loaded({})
    assert "margin" not in plain.describe_mechanism(DAY)
    hashes = {loaded().configuration_hash, plain.configuration_hash}
    other = {SECTORS: SECTORS.replace("households", "homes")}
    assert loaded(more=other).configuration_hash not in hashes
    assert len(hashes) == 2


def test_names_may_be_given_to_nodes_of_the_margin_and_to_cells(loaded):
    named = {
        "[hierarchy.names]  ": '[hierarchy.names]\nindustry = "Industry"\n53-industry = "Breton industry"\n#'
    }
    settings = loaded(more=named)
    assert settings.called("industry") == "Industry (industry)"
    assert settings.called("53-industry") == "Breton industry (53-industry)"


@pytest.mark.parametrize("mechanism", ["OptStream", "HistoryInformed"])
def test_mechanisms_with_estimates_of_their_own_take_one(loaded, mechanism):
    settings = loaded(mechanism=mechanism)
    tree = mechanism_for(settings, DAY).tree
    assert isinstance(tree, Lattice)
    assert tree == settings.tree_of(DAY)


def test_pegasus_takes_one(loaded):
    assert isinstance(loaded(mechanism="PeGaSus").tree_of(DAY), Lattice)
