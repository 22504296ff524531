"""A page of a validation result: it fetches nothing, runs nothing, and takes no text for markup."""

import polars as pl

from data_contracts.data_docs import page_of
from data_contracts.judge import WHOLE, validated
from data_contracts.suites import none_of


def test_the_page_says_what_was_expected_and_fetches_nothing():
    frame = pl.DataFrame({"day": ["2025-01-15"], "region": ["84"], "off_grid": [7]})
    result = validated("raw", [none_of("off_grid", "must be the start of a step")], frame, WHOLE)
    page = page_of(result, ["<b>region</b>='84'"]).decode()
    assert "&lt;b&gt;region&lt;/b&gt;=&#39;84&#39;" in page
    assert "off_grid" in page
    assert "Failed" in page
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page
    for fetched in ("<script", "<link", "<img", "src=", "url("):
        assert fetched not in page, fetched


def test_the_page_does_not_grow_with_the_leaves():
    sizes = []
    for n_leaves in (100, 10_000):
        regions = [f"z{number:05}" for number in range(n_leaves)]
        frame = pl.DataFrame({"day": "2025-01-15", "region": regions, "off_grid": range(1, n_leaves + 1)})
        result = validated("raw", [none_of("off_grid", "must be the start of a step")], frame, WHOLE)
        page = page_of(result, []).decode()
        assert f"{n_leaves} unexpected" in page.replace(",", "")
        assert len(result.results[0].result["unexpected_index_list"]) == n_leaves, "the kept result is whole"
        sizes.append(len(page))
    assert sizes[1] < sizes[0] + 100
