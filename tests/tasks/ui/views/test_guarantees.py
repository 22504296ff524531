"""Guarantees that days were planned under, and the windows whose limit they are."""

from datetime import date, timedelta

from optstream.ledger import ReleaseOutline, ReleaseState
from optstream.privacy import PrivacyModel
from tasks.ui.views.guarantees import guarantee_rows

FIRST = date(2016, 6, 1)


def releases(*amendments):
    """A day of 48 steps each."""
    days = [FIRST + timedelta(days=number) for number in range(len(amendments))]
    return {
        day: ReleaseOutline(str(day), 0, ReleaseState.PUBLISHED, 48 * number, 48, *[None] * 6, amendment)
        for number, (day, amendment) in enumerate(zip(days, amendments, strict=True))
    }


def model(epsilon="1", window=48, alpha="10"):
    return PrivacyModel(epsilon, window, alpha, resolution="1")


def test_each_guarantee_has_its_days_and_the_newest_comes_first():
    rows = guarantee_rows({0: model("2"), 1: model("3"), 2: model("1")}, releases(0, 0, 2))
    assert [(row.number, row.epsilon, row.days, row.now) for row in rows] == [
        (2, "1", "2016-06-03 to 2016-06-03", True),
        (0, "2", "2016-06-01 to 2016-06-02", False),
    ]
    assert rows[0].steps is None
    assert (rows[1].steps, rows[1].limit) == (range(-47, 96), 2.0)
    assert (rows[1].window, rows[1].alpha) == ("sliding, 48 steps", "10")


def test_one_that_counts_otherwise_is_no_limit_of_the_picture():
    for other in (model(window=24), model(alpha="20")):
        assert guarantee_rows({0: other, 1: model()}, releases(0, 1))[1].steps is None


def test_before_the_first_release_there_is_the_one_of_now_or_none():
    assert [row.days for row in guarantee_rows({0: model()}, {})] == [""]
    assert guarantee_rows({}, {}) == ()
