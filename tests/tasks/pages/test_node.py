"""The lines of a node's page, as readers have them, and why those that cannot be shown are not."""

from datetime import date

import pytest

from tasks.pages.node import Span, node_page, read_nodes

FIRST = date(2016, 6, 1)


def lines_of(installation, node, *days):
    page = node_page(installation.settings, node, Span(*days))
    return page, page["curve"]["spans"][0]["at"], page["curve"]["spans"][0]["lines"][0]


def test_what_is_shown_is_what_readers_have(installation):
    installation.released(FIRST, date(2016, 6, 2))
    second = date(2016, 6, 2)
    page, at, lines = lines_of(installation, "FR", second, second)
    by_kind = {one["kind"]: one["values"] for one in lines}
    assert at[0] == 1_464_818_400  # 2016-06-02 00:00 in Paris
    assert len(at) == 48
    both = zip(*(one["values"] for one in lines if one["kind"] == "child"), strict=True)
    assert [sum(pair) for pair in both] == pytest.approx(by_kind["value"], rel=1e-5)
    assert None not in by_kind["day-before"]
    assert "week-before" not in by_kind
    published = read_nodes(installation.settings, {"FR"}, [second])
    assert by_kind["value"] == pytest.approx(published["value"].to_list(), rel=1e-5)
    assert (page["parent"], page["children"], page["curve"]["zone"]) == (None, ("84", "11"), "Europe/Paris")
    reasons = {kind: why for kind, _, _, why in page["shown"]}
    assert {kind for kind, why in reasons.items() if why} == {"week-before", "replaced"}
    page, _, _ = lines_of(installation, "84", second, second)
    assert page["parent"] == "FR"
    assert "child" in {kind for kind, _, _, why in page["shown"] if why}


def test_a_restatement_is_shown_with_what_it_replaced_as_that_was_published(installation):
    installation.configure('restatement_share = "0"', 'restatement_share = "1/10"')
    installation.release(FIRST)
    before = read_nodes(installation.settings, {"FR"}, [FIRST])["value"].to_list()
    installation.release(FIRST, restate=True)
    _, _, lines = lines_of(installation, "FR", FIRST, FIRST)
    (old,) = [one for one in lines if one["kind"] == "replaced"]
    assert old["label"] == "revision 0, vintage 0"
    assert old["values"] == pytest.approx(before, rel=1e-5)
    assert before != read_nodes(installation.settings, {"FR"}, [FIRST])["value"].to_list()
    (file,) = (installation.folder / "published/superseded").glob("*/*.parquet")
    file.write_bytes(file.read_bytes()[:-1])
    assert not [one for one in lines_of(installation, "FR", FIRST, FIRST)[2] if one["kind"] == "replaced"]
