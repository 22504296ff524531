"""The lines of a node's page, and the days that it asks for."""

from dataclasses import asdict
from datetime import date
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from optstream.catalogue.about import NodeFacts
from optstream.errors import PublicationError
from optstream.stream import AggregationTree
from tasks.reports.drawing.figures import Z
from tasks.ui.node_facts import COLUMNS, read_nodes
from tasks.ui.snapshot import take_snapshot
from tasks.ui.views.node_detail import DAY, MOST_CHILDREN, Series, Span, node_curve
from tasks.ui.views.node_page import curve_of, find_nodes, moment_in, node_page

BEGIN = 1_464_732_000
FIRST = date(2016, 6, 1)


def rows(*found):
    return pl.DataFrame([(BEGIN + at, *rest) for at, *rest in found], schema=COLUMNS, orient="row")


def test_bands_stand_on_both_sides_and_only_where_they_are_known():
    found = rows((0, "FR", 100.0, 2.0, None), (1800, "FR", 50.0, None, None))
    curve = node_curve(found, "FR", (), BEGIN)
    assert curve.at == (BEGIN, BEGIN + 1800)
    lines = {one.kind: one.values for one in curve.series}
    assert lines == {
        "value": (100.0, 50.0),
        "noise-low": (100 - 2 * Z, None),
        "noise-high": (100 + 2 * Z, None),
    }


def test_a_band_of_counts_does_not_lie_below_zero():
    found = rows((0, "FR", 1.0, None, 2.0))
    lines = {one.kind: one.values for one in node_curve(found, "FR", (), BEGIN, least=0.0).series}
    assert (lines["error-low"], lines["error-high"]) == ((0.0,), (1.0 + 2 * Z,))


def test_children_have_their_own_figures_in_the_order_of_the_stack():
    found = rows((0, "FR", 10.0, None, None), (0, "84", 4.0, None, None), (0, "11", 6.0, None, None))
    curve = node_curve(found, "FR", ("84", "11"), BEGIN)
    assert [(one.label, one.values) for one in curve.series if one.kind == "child"] == [
        ("84", (4.0,)),
        ("11", (6.0,)),
    ]


def test_the_day_and_the_week_before_lie_behind_at_the_same_hour():
    found = rows(
        (-7 * DAY, "FR", 7.0, None, None), (-DAY, "FR", 1.0, None, None), (0, "FR", 10.0, None, None),
        (1800, "FR", 11.0, None, None),
    )  # fmt: skip
    curve = node_curve(found, "FR", (), BEGIN)
    lines = {one.kind: one.values for one in curve.series}
    assert lines == {"value": (10.0, 11.0), "day-before": (1.0, None), "week-before": (7.0, None)}


def test_what_was_replaced_lies_over_it_at_the_same_times():
    now, old = (
        rows((0, "FR", 10.0, None, None), (1800, "FR", 11.0, None, None)),
        rows((0, "FR", 8.0, 1.0, None)),
    )
    curve = node_curve(now, "FR", (), BEGIN, {"revision 0, vintage 0": old})
    assert curve.series[-1] == Series("revision 0, vintage 0", "replaced", (8.0, None))


def test_nothing_published_is_no_line_of_anything():
    curve = node_curve(rows(), "FR", ("84",), BEGIN)
    assert curve.at == ()
    assert asdict(curve.series[0]) == {"label": "FR", "kind": "value", "values": ()}


def test_children_beyond_those_that_are_stacked_are_one_and_the_stack_is_the_node():
    names = [f"leaf {number}" for number in range(MOST_CHILDREN + 5)]
    tree = AggregationTree.from_parents({"FR": None, **dict.fromkeys(names, "FR")})
    assert tree.children_of("FR") == tuple(names)
    assert tree.children_of("leaf 3") == ()
    known = [(at, name, 2.0, None, None) for at in (0, 1800) for name in names[:MOST_CHILDREN]]
    found = rows((0, "FR", 100.0, None, None), (1800, "FR", 90.0, None, None), *known[:-1])
    stack = [
        one for one in node_curve(found, "FR", names, BEGIN, called=str.upper).series if one.kind == "child"
    ]
    assert [one.label for one in stack] == [*map(str.upper, names[:MOST_CHILDREN]), "5 others"]
    assert sum(one.values[0] for one in stack) == 100
    assert stack[-1].values[1] is None, "one of the others is not known"


def test_spans_move_and_grow_at_their_end():
    span = Span(date(2016, 6, 5), date(2016, 6, 6))
    assert (span.n_days, span.moved(-2)) == (2, Span(date(2016, 6, 3), date(2016, 6, 4)))
    assert span.of_length(7) == Span(date(2016, 5, 31), date(2016, 6, 6))
    assert (span.with_week_before()[0], span.days()[-1]) == (date(2016, 5, 29), date(2016, 6, 6))


def test_a_node_is_called_by_its_name_with_its_code(small):
    told = {"84": NodeFacts("Auvergne"), "11": NodeFacts(latitude=48.0, longitude=2.0), "FR": NodeFacts("FR")}
    settings = small().settings.model_copy(update={"node_facts": told})
    assert [settings.called(node) for node in ("84", "11", "FR")] == ["Auvergne (84)", "11", "FR"]
    accented = settings.model_copy(update={"node_facts": {"11": NodeFacts("Île-de-France")}})
    assert find_nodes(accented, " ILE") == (("11", "Île-de-France (11)"),)
    assert [node for node, _ in find_nodes(accented, "1")] == ["11"]
    assert len(find_nodes(accented, "")) == 3
    assert find_nodes(accented, "nobody") == ()


def test_before_the_first_release_nothing_can_be_read(small):
    with pytest.raises(PublicationError):
        read_nodes(small().settings, {"FR"}, [FIRST])


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


def test_the_hour_that_comes_twice_in_autumn_is_told_apart():
    paris = ZoneInfo("Europe/Paris")
    both = [moment_in(paris, 1_477_785_600 + hour * 3600) for hour in range(2)]
    assert both == ["2016-10-30 02:00 +02:00", "2016-10-30 02:00 +01:00"]


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
