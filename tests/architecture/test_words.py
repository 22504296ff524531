"""One word for one thing: texts have neither the words that were given up nor documents from elsewhere."""

import re
import tokenize
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
TREES = ("optstream", "tasks", "flows", "data_contracts", "studies")
GIVEN_UP = re.compile(
    r"\b(?:(?:the|a|each|of|by|to) grants?|houses?|strangers?|for ever|DESIGN|LAYOUT)\b(?![.\w]*[\]\[({}])"
)
"""A privacy budget, the project, an unknown region, permanently; documents that this repository lacks."""


def given_up(file):
    """The words of a file's texts and comments that were given up."""
    if not GIVEN_UP.search(file.read_text()):
        return []
    with file.open("rb") as source:
        texts = [
            token.string
            for token in tokenize.tokenize(source.readline)
            if token.type in (tokenize.STRING, tokenize.COMMENT)
        ]
    return [found[0] for text in texts for found in GIVEN_UP.finditer(text)]


@pytest.mark.parametrize("tree", TREES)
def test_texts_use_the_words_of_the_field(tree):
    found = {str(file): words for file in (CHECKOUT / tree).rglob("*.py") if (words := given_up(file))}
    assert found == {}


def test_a_word_that_was_given_up_is_seen(tmp_path):
    """Control: in a docstring, a message and a comment; a name, a key and a value's place are not prose."""
    file = tmp_path / "one.py"
    file.write_text(
        '"""Charge the grant."""\n# of strangers\nsay(f"of grant {grant.name}, {budget.grant:g}", "grant")\n'
    )
    assert given_up(file) == ["the grant", "strangers", "of grant"]
