"""The wrong lines of `make mutations` are still wrong lines of files that are there."""

import pytest

from tests.mutations import CHECKOUT, MUTATIONS


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.what)
def test_each_changes_one_place_of_a_file(mutation):
    text = (CHECKOUT / mutation.file).read_text(encoding="utf-8")
    assert text.count(mutation.right) == 1
    assert mutation.right != mutation.wrong
    assert all((CHECKOUT / path).exists() for path in mutation.asked)


def test_there_are_twenty():
    assert len({mutation.what for mutation in MUTATIONS}) >= 20
