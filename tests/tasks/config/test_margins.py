"""A margin in the configuration: cells, shares, columns, the hash, and what is not taken, in words."""

from datetime import date
from fractions import Fraction

import pytest

from optstream.errors import ConfigurationError
from optstream.stream import Lattice
from tasks.config.templates import example_of
from tasks.release.mechanism import mechanism_for
from tests.tasks.config.refused import refused

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


TWO = SECTORS.replace("[budget]", 'tariff = ["day", "night"]\n\n[budget]')
REFUSED = {
    "two margins": ({SECTORS: TWO}, "hierarchy.margins must have one margin: numbers of three dimensions"),
    "no share": (
        {SECTORS: SECTORS.replace('margins = { sector = "1/4" }\n', "")},
        "budget.margins must have a share for each of hierarchy.margins and no other: sector; got none",
    ),
    "a share too much": (
        {'levels = ["1/4", "1/4", "1/4"] ': 'levels = ["1/2", "1/4", "1/4"] '},
        "budget.levels and budget.margins must add up to at most 1; got 5/4",
    ),
    "a level too few": (
        {'levels = ["1/4", "1/4", "1/4"] ': 'levels = ["1/2", "1/4"] '},
        "a share for each of 3 levels, the cells' among them, and a margin's in budget.margins; got 2",
    ),
    "a code twice": (
        {SECTORS: SECTORS.replace('"households"', '"FR"')},
        "where that of a cell is region-node; 'FR' would be used twice",
    ),
    "a code that is no folder's": (
        {SECTORS: SECTORS.replace('"households"', '"house/holds"')},
        "hierarchy.margins",
    ),
    "cells of no region": (
        {SECTORS: SOME.replace("53 = [", "99 = [")},
        "cells must be of leaves of the hierarchy; '99' is none",
    ),
    "cells of no sector": (
        {SECTORS: SOME.replace('53 = ["households"]', '53 = ["homes"]')},
        "cells of '53' must be of one or more nodes of margin 'sector'; got 'homes'",
    ),
    "no cells": (
        {SECTORS: SOME.replace('53 = ["households"]', "53 = []")},
        "cells of '53' must be of one or more nodes of margin 'sector'; got none",
    ),
    "cells without a margin": (
        {SECTORS: SOME.replace('sector = ["industry", "households"]\n', "")},
        "hierarchy.cells must be left out without hierarchy.margins",
    ),
    "a column without regions": (
        {'region = "region"\n': ""},
        "input.margin must be left out without hierarchy.margins and input.region",
    ),
    "one column for both": (
        {'margin = "sector"\n#': 'margin = "region"\n#'},
        "must be different columns",
    ),
    "changes of the hierarchy": (
        {SECTORS: '[[hierarchy.changes]]\nvalid_from = 2016-07-01\nremoved = ["53"]\n\n' + SECTORS},
        "changes and margin 'sector' are not taken together",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_taken_is_said(loaded, case):
    more, says = REFUSED[case]
    changes = dict(WITH_MARGIN)
    for old, new in more.items():
        found = next((key for key, value in changes.items() if old in value), None)
        changes[found or old] = changes[found].replace(old, new) if found else new
    assert says in refused(loaded, changes)


@pytest.mark.parametrize("mechanism", ["OptStream", "HistoryInformed"])
def test_mechanisms_with_estimates_of_their_own_take_one(loaded, mechanism):
    settings = loaded(mechanism=mechanism)
    tree = mechanism_for(settings, DAY).tree
    assert isinstance(tree, Lattice)
    assert tree == settings.tree_of(DAY)


def test_counts_of_history_informed_are_not_taken(loaded):
    changes = {"# counts = true ": "counts = true\n#", 'resolution = "0.001"': 'resolution = "1"'}
    with pytest.raises(ConfigurationError, match=r"privacy\.counts must be false for HistoryInformed beside"):
        loaded(mechanism="HistoryInformed", more=changes)


def test_pegasus_takes_one(loaded):
    assert isinstance(loaded(mechanism="PeGaSus").tree_of(DAY), Lattice)
