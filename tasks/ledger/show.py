"""What the ledger holds, in dates: terms, releases with their charge, and what each window has left."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from itertools import dropwhile, takewhile

from optstream.errors import OptStreamError
from optstream.ledger import Ledger, StreamTerms, Stretch
from optstream.ledger.dated_trees import continues
from optstream.ledger.transactions.enrol import OF_GRANT
from optstream.privacy import PrivacyModel, worst_window
from optstream.stream import Calendar
from tasks.config import Settings
from tasks.ledger.show_pages import (
    BudgetSummary,
    ChargedRelease,
    DayHeadroom,
    StreamPage,
    WindowHeadroom,
    calendar_of,
    in_words,
)
from tasks.release.build_mechanism import mechanism_for
from tasks.release.carry_over import recall
from tasks.release.run import terms_of

DAYS_SHOWN = 14


def read_book(
    settings: Settings, ledger: Ledger, first: date | None = None, last: date | None = None
) -> tuple[BudgetSummary, ...]:
    """A page for each privacy budget. first, last: the days to look at; by default the last fortnight of each
    one's history, and what follows it until a day is untouched.

    Reads only the history that windows with a step of these days see, and plans each day without a release
    as a run would; nothing is reserved.
    """
    grants: dict[str, list[StreamTerms]] = {}
    for name in ledger.streams():
        known = ledger.terms(name)
        if known is not None:
            grants.setdefault(known.grant, []).append(known)
    return tuple(_page(settings, ledger, members, first, last) for members in grants.values())


def guarantee_changed(settings: Settings, ledger: Ledger) -> list[str]:
    """Return where the configuration's privacy guarantee differs from the ledger's."""
    known = ledger.terms(settings.stream.name)
    return [] if known is None else known.differing(terms_of(settings))


def refused_changes(settings: Settings, ledger: Ledger) -> list[str]:
    """Return what of the configuration's privacy guarantee a run is refused for: `enrol` takes trees of days
    to come, and of a stream without releases whatever no other stream of its privacy budget relies on.
    """
    stream, wanted = settings.stream.name, terms_of(settings)
    known, last = ledger.terms(stream), ledger.last_release(stream)
    if known is None or last is None:
        others = [
            terms
            for terms in map(ledger.terms, ledger.streams())
            if terms is not None and terms.stream != stream and terms.grant == wanted.grant
        ]
        return [name for name in OF_GRANT if any(name in terms.differing(wanted) for terms in others)]
    changed = known.differing(wanted)
    to_come = continues(known.trees, wanted.trees, last.first_step + last.n_steps)
    return [] if changed == ["hierarchy_hash"] and to_come else changed


def _page(
    settings: Settings, ledger: Ledger, members: list[StreamTerms], first: date | None, last: date | None
) -> BudgetSummary:
    terms = members[0]
    calendar, model = calendar_of(terms), terms.model
    newest = max(
        (release.first_step for one in members if (release := ledger.last_release(one.stream))), default=None
    )
    charged = ledger.last_charged(terms.grant)
    free_from = None if charged is None else charged.last_start + 1
    days = _days(calendar, model, newest, free_from, first, last)
    steps = _steps(calendar, model, days, newest, free_from)
    stretches: Sequence[Stretch] = ledger.charged_windows(terms.grant, steps)
    pages = tuple(_stream_page(ledger, one, steps) for one in members)
    released = {release.period for page in pages for release in page.releases}
    own = any(one.stream == settings.stream.name for one in members) and calendar == settings.calendar
    if first is None:
        days = tuple(dropwhile(lambda day: day != last and day.isoformat() not in released, days))
    headrooms = tuple(
        _day(settings, ledger, terms, stretches, day, own and day.isoformat() not in released) for day in days
    )
    if not first and not last and newest is not None:
        # unasked, only the windows that the last release or a later one meets
        stretches = _from(stretches, newest - model.window_length + 1)
    windows = tuple(_window(calendar, model.budget, one) for one in stretches if one.charged or first or last)
    free = None if calendar is None or free_from is None else calendar.local_time(free_from)
    shared = ledger.shared_window(terms.grant, steps) if steps else None
    return BudgetSummary(terms.grant, terms, calendar, pages, headrooms, windows, free_from, free, shared)


def _days(
    calendar: Calendar | None,
    model: PrivacyModel,
    newest: int | None,
    free_from: int | None,
    first: date | None,
    last: date | None,
) -> tuple[date, ...]:
    """Those asked for, or a fortnight of history and the days after it up to the first untouched."""
    if calendar is None:
        return ()
    first = None if first is None else calendar.periods(first, first + timedelta(days=1))[0]
    last = None if last is None else calendar.periods(last - timedelta(days=1), last)[-1]
    if newest is not None:
        latest = calendar.period_from_step(newest)
        first = first or min(calendar.after(latest, 1 - DAYS_SHOWN), last or latest)
        if last is None:
            last = max(first, calendar.after(latest))
            lead = model.window_length - 1 if model.windows == "sliding" else 0
            while free_from is not None and calendar.first_step(last) - lead < free_from:
                last = calendar.after(last)
    first, last = first or last, last or first
    if first is None or last is None:
        return ()
    return tuple(calendar.periods(first, last))


def _steps(
    calendar: Calendar | None,
    model: PrivacyModel,
    days: Sequence[date],
    newest: int | None,
    free_from: int | None,
) -> range:
    """The steps of the days; without a calendar, as many windows back as days are shown."""
    if calendar is not None and days:
        return range(calendar.first_step(days[0]), calendar.first_step(calendar.after(days[-1])))
    if newest is None or free_from is None:
        return range(0)
    return range(newest - DAYS_SHOWN * model.window_length, max(free_from, newest) + 1)


def _stream_page(ledger: Ledger, terms: StreamTerms, steps: range) -> StreamPage:
    model, found = terms.model, []
    for outline in ledger.outlines(terms.stream, steps):
        record = ledger.find(terms.stream, outline.period, outline.revision)
        spends = record.spends if record else ()
        epsilon = worst_window(spends, model.window_length, model.windows).epsilon
        found.append(ChargedRelease(outline.period, outline.revision, outline.state, epsilon))
    return StreamPage(terms, ledger.count_by_state(terms.stream), tuple(found))


def _day(
    settings: Settings,
    ledger: Ledger,
    terms: StreamTerms,
    stretches: Sequence[Stretch],
    day: date,
    plan: bool,
) -> DayHeadroom:
    calendar, model = settings.calendar if plan else calendar_of(terms), terms.model
    assert calendar is not None
    first, n_steps = calendar.first_step(day), calendar.n_steps(day)
    lead = model.window_length - 1 if model.windows == "sliding" else 0
    near = _from(stretches, first - lead)
    charged = max(
        (one.charged for one in takewhile(lambda one: one.first_start < first + n_steps, near)),
        default=Fraction(0),
    )
    headroom = DayHeadroom(day, model.budget - charged)
    if not plan:
        return headroom
    try:
        mechanism = mechanism_for(settings, day)
        memory = recall(settings, ledger, mechanism, day, 0)
        judged = ledger.judge_plan(terms.grant, mechanism.plan(n_steps, first, memory.state))
    except OptStreamError as error:
        return replace(headroom, may=False, because=str(error))
    for one in judged:
        if one.is_broken:
            return replace(headroom, may=False, because=in_words(one))
    return replace(headroom, may=True)


def _from(stretches: Sequence[Stretch], start: int) -> Sequence[Stretch]:
    """Those with a window that begins at `start` or later; they are sorted."""
    return stretches[bisect_left(stretches, start, key=lambda one: one.last_start) :]


def _window(calendar: Calendar | None, budget: Fraction, one: Stretch) -> WindowHeadroom:
    starts = (one.first_start, one.last_start)
    first, last = (None if calendar is None else calendar.local_time(start) for start in starts)
    return WindowHeadroom(*starts, first, last, budget - one.charged)
