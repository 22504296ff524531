"""The answers to questions, from published values alone: they cost nothing.

Lemma: an answer is a function of published values, of published measurements and of the question, which no
reading shaped; so whatever is asked, and however often, the privacy guarantee stays what it is
(post-processing, docs/privacy.md).
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import polars as pl

from optstream.catalogue.questions.figures import DayFigures, Floats
from optstream.catalogue.questions.question import Question
from optstream.catalogue.questions.window_errors import StepErrors, errors_of_windows
from optstream.estimation.pegasus.event_queries import jumps, low_signal, window_sums

SCHEMA: dict[str, pl.DataType] = {
    "question": pl.String(),
    "step": pl.Int32(),
    "timestamp": pl.Datetime("us", "UTC"),
    "node": pl.String(),
    "level": pl.Int32(),
    "answer": pl.Float64(),
    "happened": pl.Boolean(),
    "answer_noise_se": pl.Float64(),
    "answer_se": pl.Float64(),
    "answer_noise_se_at_most": pl.Float64(),
    "answer_se_at_most": pl.Float64(),
}
"""Columns of the answers of one day; its date is in the path of their file."""


def answers(questions: Sequence[Question], days: Sequence[DayFigures], resolution: Fraction) -> pl.DataFrame:
    """Return the answers of the windows that end on a day: columns of `SCHEMA`, by question as given, node,
    step.

    A window is of consecutive steps that have a time, also across midnight. Where the days before are too
    few, or a node was not there, the first windows are missing. days: the day itself last, before it those
    that windows reach, without a gap. resolution: of which the values are multiples, in their unit.
    """
    parts = [pl.DataFrame(schema=SCHEMA)]
    for question in questions:
        last = days[-1]
        levels = dict(zip(last.nodes, last.levels, strict=True))
        asked = [node for node in last.nodes if question.asks(node, levels[node])]
        if asked:
            parts.append(_of_nodes(question, asked, days, resolution))
    return pl.concat(parts)


def _of_nodes(
    question: Question, asked: Sequence[str], days: Sequence[DayFigures], resolution: Fraction
) -> pl.DataFrame:
    last, n_new = days[-1], days[-1].units.shape[1]
    reached = _reached(days, n_new + question.window - 1)
    units = np.hstack([_rows_of(day, asked, day.units) for day in reached])
    if units.shape[1] < question.window:
        return pl.DataFrame(schema=SCHEMA)
    sums, happened = _asked(question, units, resolution)
    noise, whole = _errors(question, asked, reached)
    n_windows = min(n_new, sums.shape[1])  # those that end on the day itself, not before
    kept = slice(sums.shape[1] - n_windows, None)
    ends = np.arange(n_new - n_windows, n_new)
    levels = dict(zip(last.nodes, last.levels, strict=True))
    of_node = np.repeat(np.arange(len(asked)), n_windows)
    of_step = np.tile(ends, len(asked))
    unit = resolution.numerator, resolution.denominator
    columns = {
        "question": pl.repeat(question.name, of_node.size, dtype=pl.String(), eager=True),
        "step": pl.Series(last.steps[of_step], dtype=pl.Int32),
        "timestamp": last.timestamps.gather(of_step),
        "node": pl.Series(asked, dtype=pl.String).gather(of_node),
        "level": pl.Series([levels[node] for node in asked], dtype=pl.Int32).gather(of_node),
        "answer": pl.Series(sums[:, kept].ravel() * unit[0] / unit[1]),
        "happened": None if happened is None else pl.Series(happened[:, kept].ravel()),
        "answer_noise_se": _known(noise[0][:, kept]),
        "answer_se": _known(whole[0][:, kept]),
        "answer_noise_se_at_most": _known(noise[1][:, kept]),
        "answer_se_at_most": _known(whole[1][:, kept]),
    }
    given = {name: column for name, column in columns.items() if column is not None}
    frame = pl.DataFrame(given).with_columns(
        pl.lit(None, dtype=SCHEMA[name]).alias(name) for name in set(SCHEMA) - set(given)
    )
    # of a node that was not there all the time the sum is unknown
    return frame.filter(pl.col("answer").is_not_nan()).select(SCHEMA.keys()).cast(pl.Schema(SCHEMA))


def _asked(
    question: Question, units: Floats, resolution: Fraction
) -> tuple[Floats, np.ndarray[tuple[int, int], np.dtype[np.bool_]] | None]:
    """Return each window's sum or difference in whole units, and whether the event happened.

    Units are whole numbers, so borders in whole units decide exactly as the exact ones do.
    """
    length, bound = question.window, (question.bound or 0) / resolution
    if not question.is_difference:
        sums = window_sums(units, length)
        return sums, None if question.kind == "sum" else low_signal(sums, math.floor(bound))
    signed = units if question.kind == "jump" else -units
    difference = signed[:, length - 1 :] - signed[:, : signed.shape[1] - length + 1]
    return difference, jumps(signed, length, math.ceil(bound))


def _errors(
    question: Question, asked: Sequence[str], days: Sequence[DayFigures]
) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Return standard errors and their bounds, of the noise alone and of the whole error."""
    parts = [day.parts_of(asked) for day in days]
    found = []
    for kind in (0, 1):
        steps = []
        for day, known in zip(days, parts, strict=True):
            single = _rows_of(day, asked, (day.noise, day.whole)[kind])
            # noise is drawn anew each day; what a mechanism leaves in doubt is not
            independent = day.days_independent
            steps.append(StepErrors(single, known[kind], independent))
        found.append(errors_of_windows(steps, question.window, question.is_difference))
    return found[0], found[1]


def _reached(days: Sequence[DayFigures], n_steps: int) -> list[DayFigures]:
    """Return the last days that have so many steps together; all of them where they have fewer."""
    reached, total = [], 0
    for day in reversed(days):
        reached.append(day)
        total += day.units.shape[1]
        if total >= n_steps:
            break
    return reached[::-1]


def _rows_of(day: DayFigures, asked: Sequence[str], figures: Floats) -> Floats:
    """Return the figures of some nodes, nan of one that the day does not have."""
    places = {node: place for place, node in enumerate(day.nodes)}
    rows = np.array([places.get(node, -1) for node in asked])
    found: Floats = np.where((rows >= 0)[:, None], figures[rows], np.nan)
    return found


def _known(errors: Floats) -> pl.Series:
    return pl.Series(errors.ravel(), dtype=pl.Float64).fill_nan(None)
