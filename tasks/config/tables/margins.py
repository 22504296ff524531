"""The margin of the hierarchy, its share and its column: whether they fit the rest of the file."""

from collections.abc import Iterator

from optstream.stream.hierarchy.margin import Margin
from tasks.config.tables.mechanisms import Mechanism, kinds_with
from tasks.config.tables.sections import Budget, Hierarchy, Input, Privacy


def margin_of(hierarchy: Hierarchy) -> Margin | None:
    """Return the margin as the hierarchy takes it; None where there is none, or more than one."""
    if len(hierarchy.margins) != 1:
        return None
    ((name, nodes),) = hierarchy.margins.items()
    return Margin(name, nodes, tuple(hierarchy.cells.items()))


def margin_problems(
    hierarchy: Hierarchy,
    budget: Budget | None,
    source: Input | None,
    mechanism: Mechanism | None,
    privacy: Privacy | None,
) -> Iterator[str]:
    """Yield key and rule where what speaks of a margin does not fit the others of the valid sections."""
    margins = hierarchy.margins
    if len(margins) > 1:
        yield (
            "hierarchy.margins must have one margin: numbers of three dimensions cannot always be rounded so "
            f"that all add up; got {', '.join(margins)}"
        )
    if budget is not None and budget.levels == "model":
        if budget.margins:
            yield (
                'budget.margins must be left out beside budget.levels = "model", which chooses the share of '
                f"the margin, too; got {', '.join(budget.margins)}"
            )
    elif budget is not None and set(budget.margins) != set(margins):
        yield (
            "budget.margins must have a share for each of hierarchy.margins and no other: "
            f"{', '.join(margins) or 'none'}; got {', '.join(budget.margins) or 'none'}"
        )
    if source is not None and source.margin is not None and (not margins or source.region is None):
        yield (
            "input.margin must be left out without hierarchy.margins and input.region: it is the column of "
            "the margin's node in rows whose region stands in another"
        )
    if not margins:
        if hierarchy.cells:
            yield "hierarchy.cells must be left out without hierarchy.margins, whose nodes they are of"
        return
    if mechanism is not None and not mechanism.takes_margin:
        able = kinds_with("takes_margin")
        yield (
            f"hierarchy.margins is for {able}, PeGaSus with groups of its own; "
            f"got {mechanism.name!r} otherwise: leave the margin out, or take one of them"
        )
    counts = privacy is not None and privacy.counts
    if counts and mechanism is not None and "counts" in mechanism.kind.__dataclass_fields__:
        yield (
            f"privacy.counts must be false for {mechanism.name} beside hierarchy.margins: its counts are "
            "shares of one node above each; got true"
        )
