"""The lines of a node's page, and the days that it asks for."""

from datetime import date

import pytest

from tasks.ui.node_facts import read_nodes
from tasks.ui.snapshot import take_snapshot
from tasks.ui.views.node_detail import Span
from tasks.ui.views.node_page import curve_of, node_page

FIRST = date(2016, 6, 1)


def test_what_is_shown_is_what_readers_have(installation):
    installation.released(FIRST, date(2016, 6, 2))
    found = take_snapshot(installation.folder / "optstream.toml", installation.now)
    span = Span(date(2016, 6, 2), date(2016, 6, 2))
    curve = curve_of(found.settings, "FR", span)
    lines = {one.kind: one.values for one in curve.series}
    assert curve.at[0] == 1_464_818_400  # 2016-06-02 00:00 in Paris
    assert len(curve.at) == 48
    both = zip(*(one.values for one in curve.series if one.kind == "child"), strict=True)
    assert [sum(pair) for pair in both] == pytest.approx(lines["value"])
    assert None not in lines["day-before"]
    assert "week-before" not in lines
    published = read_nodes(installation.settings, {"FR"}, [span.first])
    assert list(lines["value"]) == published["value"].to_list()
    shown = node_page(found.settings, "FR", span)
    assert (shown["parent"], shown["children"]) == (None, ("84", "11"))
    assert [at for at, *_ in shown["table"]][-1] == "2016-06-02 00:00 +02:00"
    assert shown["zone"] == "Europe/Paris"
    assert node_page(found.settings, "84", span)["parent"] == "FR"


def test_a_restatement_is_shown_with_what_it_replaced_as_that_was_published(installation):
    installation.configure('restatement_share = "0"', 'restatement_share = "1/10"')
    installation.release(FIRST)
    before = read_nodes(installation.settings, {"FR"}, [FIRST])["value"].to_list()
    installation.release(FIRST, restate=True)
    found = take_snapshot(installation.folder / "optstream.toml", installation.now)
    span = Span(FIRST, FIRST)
    (old,) = [one for one in curve_of(found.settings, "FR", span).series if one.kind == "replaced"]
    assert (old.label, list(old.values)) == ("revision 0, vintage 0", before)
    assert before != read_nodes(installation.settings, {"FR"}, [FIRST])["value"].to_list()
    (file,) = (installation.folder / "published/superseded").glob("*/*.parquet")
    file.write_bytes(file.read_bytes()[:-1])
    assert not [one for one in curve_of(found.settings, "FR", span).series if one.kind == "replaced"]
