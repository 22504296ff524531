"""Commands in an alarm's words are code, and all else is text."""

import pytest

from tasks.reports.markup import with_code


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("run `optstream status` now", "run <code>optstream status</code> now"),
        ("`a` and `b`", "<code>a</code> and <code>b</code>"),
        ("a ` alone", "a ` alone"),
        ("`a` and ` alone", "<code>a</code> and ` alone"),
        ("<b>`<i>`", "&lt;b&gt;<code>&lt;i&gt;</code>"),
        ("", ""),
    ],
)
def test_backticks_are_code(text, html):
    assert str(with_code(text)) == html
