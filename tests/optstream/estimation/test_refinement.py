"""Common refinements against their definition, on random trees."""

import numpy as np
import pytest

from optstream.mechanisms.pegasus import refine
from optstream.stream import AggregationTree

RAGGED = AggregationTree.from_parents(
    {
        "all": None,
        "A": "all",
        "B": "all",
        "alone": "all",
        "A1": "A",
        "A2": "A",
        "B1": "B",
        "a": "A1",
        "b": "A1",
    }
)


def random_groups(generator, n_series, n_steps, first_step):
    """The first steps of runs; some of the first runs began before the period."""
    cuts = generator.random((n_series, n_steps)) < 0.3
    cuts[:, 0] = False
    steps = np.where(cuts, np.arange(n_steps) + first_step, -1)
    steps[:, 0] = first_step - generator.integers(0, 4, n_series)
    return np.maximum.accumulate(steps, axis=1)


def children_of(tree, node):
    return [child for child, parent in enumerate(tree.parents) if parent == node]


@pytest.mark.parametrize("given", [(1, 2, 3), (2, 3), (1, 3), (0, 1, 2, 3), (3,)])
def test_two_steps_share_a_group_if_they_share_one_in_every_child(given):
    """Levels that are given keep theirs; the others are cut where any child is cut, and nowhere else."""
    tree, generator = RAGGED, np.random.default_rng(3)
    for _ in range(50):
        # a level that holds a leaf and is not among those given would be no input: here its leaf never cuts
        groups = {
            level: random_groups(generator, len(tree.levels[level]), 9, 20)
            if level in given
            else np.full((len(tree.levels[level]), 9), 10)
            for level in {*given, *tree.depths[tree.leaf_indices].tolist()}
        }
        begins = refine(groups, tree, 9)
        assert begins.shape == (9, 9)
        for level, nodes in enumerate(tree.levels):
            for place, node in enumerate(nodes):
                if level in groups:
                    assert np.array_equal(begins[node], groups[level][place])
                    continue
                below = begins[children_of(tree, node)]
                for one, other in np.ndindex(9, 9):
                    alike = np.all(below[:, one] == below[:, other])
                    assert (begins[node, one] == begins[node, other]) == alike
                # and a group's name is its first step
                for step in range(9):
                    first = np.flatnonzero(begins[node] == begins[node, step])[0]
                    assert begins[node, step] == first + 20 or (first == 0 and begins[node, step] < 20)
