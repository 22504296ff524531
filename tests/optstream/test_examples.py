"""The examples of the public names' docstrings run, and print what they say."""

import doctest
from importlib import import_module
from pkgutil import walk_packages

import optstream

LOOSE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def test_the_examples_of_docstrings_print_what_they_say():
    found = [import_module(one.name) for one in walk_packages(optstream.__path__, "optstream.")]
    results = [doctest.testmod(one, optionflags=LOOSE) for one in found]
    assert sum(one.failed for one in results) == 0
    assert sum(one.attempted for one in results) >= 35
