"""Measures whether a stream by the hour stays as fast as it was, up to a year of 8,760 hours.

    python -m studies.benchmarks.nights.year_of_hours [--marks 100 1000 4000 8760]

Made-up rows of 13 nodes, already noised, go through the ledger, into the catalogue, and each day into one
file, by the library's own code; nothing is read, drawn or estimated, which costs the same all year. At
each mark the next three hours are timed: what an hour's run asks, writes and shows, in seconds of the
processor, the median of the three, with both pages as every run makes them. Takes half an hour.
"""

import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from optstream.catalogue import publish, stage
from optstream.catalogue.hours.closed_days import close_days
from optstream.ledger import Ledger, Reservation, open_ledger
from studies.benchmarks.harness.measure import command, in_words, parser, show, timed
from studies.benchmarks.inputs.configuration_text import configuration, leaves_below
from studies.benchmarks.inputs.fixture import rows_of, statement_of, stream
from studies.benchmarks.inputs.ledger_history import LEASE
from tasks.config import Settings
from tasks.monitoring import watch
from tasks.planning.backfill_plan import plan_backfill
from tasks.planning.nightly import days_of_night
from tasks.release.build_mechanism import mechanism_for
from tasks.release.run import terms_of
from tasks.reports import write_pages
from tasks.sample_data.load_shapes import FRENCH_REGIONS

FIRST = date(2015, 1, 1)
TIMED = ("plan", "ledger and catalogue", "closing of a day", "pages", "watch")
REPEATS = 3


@dataclass(frozen=True)
class Year:
    """A stream by the hour with a ledger and a published folder, filled hour by hour."""

    settings: Settings
    ledger: Ledger

    def rows(self, day: date) -> dict[date, pl.DataFrame]:
        """Made-up rows of a day, hour by hour."""
        calendar = self.settings.calendar
        whole = rows_of(self.settings.tree_of(day), replace(calendar, period="day"), day, 0)
        return {hour: whole.filter(step=calendar.step_of_day(hour)) for hour in calendar.periods_of(day)}

    def record(self, hour: date, digest: str) -> Reservation:
        """Take an hour through the ledger to its staged file."""
        settings, calendar, now = self.settings, self.settings.calendar, self.after(hour)
        name = settings.stream.name
        key = (name, str(hour), 0)
        plan = mechanism_for(settings, hour, 0).plan(calendar.n_steps(hour), calendar.first_step(hour), None)
        heads, terms = {self.ledger.head(name)}, terms_of(settings)
        held = self.ledger.reserve(*key, plan, "owner", now, LEASE, heads, terms)
        self.ledger.begin_draw(held, now)
        self.ledger.record_drawn(held, "measured", plan, now)
        self.ledger.record_staged(*key, digest, "name", now, held)
        return held

    def publish(self, rows: Mapping[date, pl.DataFrame]) -> None:
        """Stage hours, and put them into the published folder in one replacement of its catalogue."""
        name, minutes = self.settings.stream.name, self.settings.calendar.step_minutes
        staged, held = [], {}
        for hour, frame in rows.items():
            statement = statement_of(hour, minutes)
            staged.append((stage(frame, statement), statement))
            held[hour] = self.record(hour, staged[-1][0].file_hash)
        publish(self.settings.published_folder, staged, lambda known: self.ledger.head_after(name, known))
        for hour in rows:
            self.ledger.record_published(name, str(hour), 0, self.after(hour), held[hour])

    def after(self, hour: date) -> datetime:
        """Five minutes after its end."""
        return self.settings.clock_after(hour, "00:05")

    def plan(self, hour: date) -> None:
        """What a run asks first."""
        days = days_of_night(self.settings, self.ledger, self.after(hour))
        plan_backfill(self.settings, self.ledger, days)


def main(arguments: Sequence[str] | None = None) -> None:
    """Fill the year; print a line for each mark."""
    options = parser(__doc__, marks=[100, 1_000, 4_000, 8_760])
    marks = sorted(options.parse_args(arguments).marks)
    show(" | ".join(["hours", *TIMED, "bytes of the catalogue"]))
    with tempfile.TemporaryDirectory() as scratch:
        text = configuration(
            stream={"name": "hours", "step": "1h", "period": "hour"},
            privacy={"window": 24, "alpha": "10", "bounds": ["0", "30000"]},
            hierarchy={"parents": leaves_below("FR", FRENCH_REGIONS)},
            budget={"levels": ["1/3", "2/3"]},
            watch={"first_day": FIRST},
        )
        settings = stream(Path(scratch), text)
        with closing(open_ledger(settings.ledger_url)) as ledger:
            year, n_hours = Year(settings, ledger), 0
            ledger.enrol(terms_of(settings), datetime(2015, 1, 1, tzinfo=UTC))
            for day in (FIRST + timedelta(days=number) for number in range(marks[-1] // 23 + 2)):
                rows = year.rows(day)
                due = [mark for mark in marks if n_hours < mark <= n_hours + len(rows)]
                if due:
                    found = at_mark(year, rows, day)
                    size = (Path(scratch) / "published/catalogue.json").stat().st_size
                    show(" | ".join([f"{n_hours + len(rows):,}", *found, f"{size:,}"]))
                    marks = [mark for mark in marks if mark not in due]
                else:
                    year.publish(rows)
                    close_days(settings.published_folder, [day])
                n_hours += len(rows)
                if not marks:
                    break


def at_mark(year: Year, rows: Mapping[date, pl.DataFrame], day: date) -> list[str]:
    """Publish a day's hours one by one, and close it; return what each step of the last hours took."""
    found: dict[str, list[float]] = {}

    def call(name: str, work: Callable[..., Any], *arguments: Any) -> None:
        found.setdefault(name, []).append(timed(lambda: work(*arguments))[0].processor)

    many, last = [*rows][:-REPEATS], [*rows][-REPEATS:]
    year.publish({hour: rows[hour] for hour in many})
    write_pages(year.settings, year.ledger, year.after(many[-1]))  # with what came since the last mark
    for hour in last:
        call("plan", year.plan, hour)
        call("ledger and catalogue", year.publish, {hour: rows[hour]})
        call("pages", write_pages, year.settings, year.ledger, year.after(hour))
        call("watch", watch, year.settings, year.ledger, year.after(hour))
    call("closing of a day", close_days, year.settings.published_folder, [day])
    return [in_words(statistics.median(found[name])) for name in TIMED]


if __name__ == "__main__":
    command(main)
