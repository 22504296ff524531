"""The page of a stream: surprises beside their history, and the mechanism's check where it has one."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

from optstream.mechanisms import HistoryInformed, Laplace
from tasks.monitor.facts import Comparison
from tasks.ui.render import page
from tasks.ui.surprises import Surprises
from tasks.ui.views.stream_page import MOST_REGIONS, stream_page
from tests.tasks.ui.conftest import FIRST

NOW = datetime(2016, 9, 1, 6, tzinfo=UTC)
NEWEST = FIRST + timedelta(days=69)
FOUND = Surprises(
    (), tuple(Comparison(NEWEST, f"r{number}", 54321.0, 108642.0, 1.0) for number in range(MOST_REGIONS + 1))
)


def shown(found):
    values = stream_page(found, NOW)
    return page("stream", home="/streams/two-regions", now=NOW, refresh_seconds=0, **values).decode()


def test_texts_with_their_unit_and_some_of_many_regions(snapshot):
    text = shown(snapshot(surprises=FOUND))
    assert f"the {MOST_REGIONS} of {MOST_REGIONS + 1} regions farthest from their history" in text
    assert f"r{MOST_REGIONS - 1}</a>" in text
    assert f"r{MOST_REGIONS}</a>" not in text
    assert text.count(">54,321<") == text.count(">108,642<") == text.count(">0.5<") == MOST_REGIONS
    assert "Published mean, MW" in text


def test_the_mechanism_s_own_check_is_told_where_it_has_one(snapshot, settings):
    def values_of(mechanism):
        found = snapshot(surprises=FOUND)
        facts = replace(found.view.facts, unlike=(FIRST, NEWEST))
        named = SimpleNamespace(mechanism=SimpleNamespace(kind=mechanism), published=settings.published)
        for name in ("called", "tree_of", "local_day", "watch", "scheduling", "stream"):
            setattr(named, name, getattr(settings, name))
        return stream_page(replace(found, view=replace(found.view, facts=facts), settings=named), NOW)

    assert values_of(HistoryInformed)["unlike"] == (NEWEST, FIRST)
    assert values_of(HistoryInformed)["has_check"]
    assert not values_of(Laplace)["has_check"]


def test_before_a_week_there_is_none(snapshot):
    for found in (snapshot(), snapshot(surprises=Surprises())):
        assert stream_page(found, NOW)["compared"] is None
        assert "Nothing can be compared yet" in shown(found)
