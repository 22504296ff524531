"""How dumps are laid out, and from which day on: the columns, the value's unit, what completes a dump."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from datetime import date
from fractions import Fraction
from itertools import accumulate, pairwise

from optstream.stream.quantise import LARGEST_UNITS
from tasks.config.tables.fields import LARGEST_BOUND
from tasks.config.tables.sections import CHANGES, Change, Input, Privacy

DEFAULT_MARKER = "_SUCCESS"
Bounds = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class Layout:
    """How the dumps of the days from `valid_from` on are laid out, until the next layout. valid_from: None in
    the oldest.

    value, timestamp, customer: columns, the last in metered input. factor: what a number of the value column
    is multiplied by, exactly, to be a reading in the unit of alpha and bounds. marker, file_list: the file
    whose presence says that a dump has arrived, or that lists a dump's files; the other is None. region:
    column of the leaves' names, where one folder holds the rows of all; None where each leaf has a folder;
    the same in every layout of a stream. margin: column of the margin's nodes, where a row's leaf is the cell
    of its region and of that node.
    """

    value: str
    timestamp: str = "timestamp"
    customer: str = "customer_id"
    factor: Fraction = Fraction(1)
    marker: str | None = DEFAULT_MARKER
    file_list: str | None = None
    valid_from: date | None = None
    region: str | None = None
    margin: str | None = None

    @property
    def announcement(self) -> str:
        """The file without which a dump has not arrived."""
        return str(self.file_list or self.marker)

    def key(self, name: str) -> str:
        """Return what a key such as "factor" is called in messages: with its table, and its first day."""
        return f"input.{name}" if self.valid_from is None else f"{name} of {CHANGES} from {self.valid_from}"

    def in_column_units(self, bounds: Bounds, resolution: Fraction) -> tuple[Bounds, Fraction]:
        """Return public bounds and resolution, which are in alpha's unit, divided by the factor: in the value
        column's.

        Clamping a number n to these and rounding it half up to this resolution gives the same integer as
        clamping and rounding the reading n * factor by the stream's own (docs/privacy.md, Lemma 2).
        """
        return (bounds[0] / self.factor, bounds[1] / self.factor), resolution / self.factor


def layouts_of(source: Input) -> tuple[Layout, ...]:
    """Every layout, oldest first."""
    return tuple(accumulate(source.changes, _changed, initial=_changed(Layout(source.value), source)))


def _changed(before: Layout, change: Change | Input) -> Layout:
    given = {
        field.name: getattr(change, field.name)
        for field in fields(Layout)
        if getattr(change, field.name, None) is not None
    }
    if "marker" in given or "file_list" in given:
        given = {"marker": None, "file_list": None, **given}
    return replace(before, **given)


def layout_problems(source: Input) -> Iterator[str]:
    """Whether each layout can be read, and each change is one."""
    if source.marker is not None and source.file_list is not None:
        yield "input must have one of the keys marker, file_list; got both"
    layouts = layouts_of(source)
    yield from _columns("input.timestamp, input.value, input.customer and input.region", source, layouts[0])
    for number, (before, now) in enumerate(pairwise(layouts)):
        yield from _change(f"{CHANGES} {number + 1}:", source.changes[number], before, now)
        yield from _columns(f"{CHANGES} {number + 1}: timestamp, value, customer and region", source, now)


def _change(named: str, change: Change, before: Layout, now: Layout) -> Iterator[str]:
    if change.marker is not None and change.file_list is not None:
        yield f"{named} must have one of the keys marker, file_list; got both"
    if before.valid_from is not None and change.valid_from <= before.valid_from:
        yield (
            f"{named} valid_from must be later than {before.valid_from}, that of the entry before it; "
            f"got {change.valid_from}"
        )
    if replace(now, valid_from=before.valid_from) == before:
        yield (
            f"{named} must change something: from {change.valid_from} on dumps are laid out as before; "
            "remove it, or give what is other"
        )


def _columns(named: str, source: Input, layout: Layout) -> Iterator[str]:
    columns = [layout.timestamp, layout.value]
    columns += [layout.customer] if source.schema_ == "metered" else []
    columns += [one for one in (layout.region, layout.margin) if one is not None]
    if len(set(columns)) < len(columns):
        yield f"{named} must be different columns; got {columns}"


def factor_problems(source: Input, privacy: Privacy) -> Iterator[str]:
    """Whether the bounds can be counted exactly in each layout's own unit."""
    firsts = {layout.factor: layout for layout in reversed(layouts_of(source))}
    for layout in firsts.values():
        if layout.factor == 1:
            continue  # then it is privacy.bounds that is too large
        bounds, resolution = layout.in_column_units(privacy.bounds, privacy.resolution)
        largest = max(abs(bound) for bound in bounds)
        if largest > LARGEST_BOUND or not countable_up_to(largest, resolution):
            yield (
                f"{layout.key('factor')} must leave privacy.bounds below 10^15 and 2^50 units of "
                f"privacy.resolution in the column's own unit; got {layout.factor}"
            )


def countable_up_to(largest: Fraction, resolution: Fraction) -> bool:
    """Whether readings of this size, and those just beyond, are exact integers of this resolution."""
    # Readings are cut one whole unit, or one float, outside the bounds before they are rounded.
    return (largest + 1) / resolution * (1 + Fraction(1, 2**20)) + 2 < LARGEST_UNITS
