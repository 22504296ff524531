"""The `[questions]` tables: what is asked of the published values, and answered beside them."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from optstream.catalogue.questions.question import LONGEST_NAME, MOST_WINDOW_MINUTES, Question
from optstream.stream import AggregationTree
from tasks.config.tables.base import Section
from tasks.config.tables.fields import Number, Positive, StepLength
from tasks.config.tables.fields import step_minutes as minutes_in

MOST_QUESTIONS = 100
MOST_ANSWERS = 10**7
"""Rows of one day's answers."""
NAMED = f"a printable text of 1 to {LONGEST_NAME} characters, without spaces around it"
ASK = '"sum", "low", "jump" or "drop"'
WINDOW = 'a length such as "30min" or "4h", whole steps of stream.step, at most 744h'
AT_MOST = (
    'for "low" alone: a decimal string such as "1500"; in the unit of the values, added up over the steps'
)
AT_LEAST = (
    'for "jump" and "drop" alone: a decimal string greater than 0, such as "250"; in the unit of the values'
)
LEVEL = "a level of the hierarchy, root 0, all of whose nodes are asked; nodes must then be left out"


class Asked(Section):
    """One question: a window of steps, and what is asked of it."""

    ask: Literal["sum", "low", "jump", "drop"] = Field(description=ASK)
    window: StepLength = Field(description=WINDOW)
    at_most: Number | None = Field(None, description=AT_MOST)
    at_least: Positive | None = Field(None, description=AT_LEAST)
    nodes: tuple[str, ...] = Field(
        (), strict=False, max_length=1000, description="a list of at most 1000 nodes of the hierarchy"
    )
    level: int | None = Field(None, ge=0, le=63, description=LEVEL)


class Questions(Section):
    """All of them, by name."""

    named: dict[Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME)], Asked] = Field(
        default_factory=dict, max_length=MOST_QUESTIONS
    )


def asked_of(questions: Questions, step_minutes: int) -> tuple[Question, ...]:
    """Return the questions as they are answered; raises ParameterError as `question_problems` says."""
    return tuple(
        Question(
            name,
            one.ask,
            minutes_in(one.window) // step_minutes,
            one.at_most if one.at_least is None else one.at_least,
            one.nodes,
            one.level,
        )
        for name, one in questions.named.items()
    )


def question_problems(questions: Questions, stream: Any, trees: Sequence[AggregationTree]) -> Iterator[str]:
    """Yield what is wrong between the keys of each question, and between it and stream and hierarchy: the
    key, its rule, and what it got. trees: that of every day; none where the hierarchy is not usable itself.
    """
    step_minutes = minutes_in(stream.step)
    for name, one in questions.named.items():
        place = f"questions.{name}"
        if not name.isprintable() or name != name.strip():
            yield f"questions must be named by {NAMED}; got {name!r}"
        yield from _window(place, one, step_minutes)
        yield from _bound(place, one)
        yield from _nodes(place, one, trees)
    rows = max((_rows(questions, tree, step_minutes) for tree in trees), default=0)
    if rows > MOST_ANSWERS:
        yield (
            f"questions must give at most {MOST_ANSWERS:,} answers a day, nodes times steps of all of them; "
            f"got {rows:,}: ask a higher level, or fewer nodes"
        )


def _window(place: str, one: Asked, step_minutes: int) -> Iterator[str]:
    minutes = minutes_in(one.window)
    if minutes % step_minutes or minutes > MOST_WINDOW_MINUTES:
        yield f"{place}: window must be {WINDOW}; got {one.window!r}, and a step has {step_minutes} minutes"
    elif one.ask in ("jump", "drop") and minutes < 2 * step_minutes:
        yield (
            f"{place}: window must be at least two steps for {one.ask!r}, whose first and last are compared; "
            f"got {one.window!r}, and a step has {step_minutes} minutes"
        )


def _bound(place: str, one: Asked) -> Iterator[str]:
    wanted = {"sum": (), "low": ("at_most",)}.get(one.ask, ("at_least",))
    for key, legal in (("at_most", AT_MOST), ("at_least", AT_LEAST)):
        given = getattr(one, key)
        if key in wanted and given is None:
            yield f"{place}: {key} is missing; it must be {legal.partition(': ')[2]}"
        if key not in wanted and given is not None:
            yield f"{place}: {key} must be left out for {one.ask!r}: it is {legal.partition(':')[0]}"


def _nodes(place: str, one: Asked, trees: Sequence[AggregationTree]) -> Iterator[str]:
    if bool(one.nodes) == (one.level is not None):
        given = "both" if one.nodes else "neither"
        yield f"{place} must have one of the keys nodes, level; got {given}"
    if len(set(one.nodes)) < len(one.nodes):
        yield f"{place}: nodes must name each node once"
    if not trees:
        return
    if unknown := [node for node in one.nodes if all(node not in tree.nodes for tree in trees)]:
        yield f"{place}: nodes must be nodes of the hierarchy; got {unknown[0]!r:.80}"
    n_levels = trees[0].n_levels
    if one.level is not None and one.level >= n_levels:
        yield f"{place}: level must be in [0, {n_levels - 1}], as the hierarchy has it; got {one.level}"


def _rows(questions: Questions, tree: AggregationTree, step_minutes: int) -> int:
    sizes = [len(level) for level in tree.levels]
    asked = sum(
        len(one.nodes) if one.level is None else (sizes[one.level] if one.level < len(sizes) else 0)
        for one in questions.named.values()
    )
    return asked * (24 * 60 // step_minutes)
