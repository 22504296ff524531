"""A step for several days: each is taken on by itself, and its errors become its end."""

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import TypeVar, cast

from optstream.errors import BudgetError, ContractError, DumpError, HeldError, OptStreamError
from tasks.release.day import Ended, Stage, Status
from tasks.storage.failures import is_failure, unexpected

At = TypeVar("At", bound=Stage)
Passed = TypeVar("Passed", bound=Stage)
Next = TypeVar("Next", bound=Stage)
Result = TypeVar("Result")


class PublishedError(OptStreamError):
    """What failed came after readers had the day. file: what they have, in the published folder."""

    def __init__(self, message: str, file: str) -> None:
        super().__init__(message)
        self.file = file


def each(
    days: Iterable[At | Passed], at: type[At], step: Callable[[At], Next]
) -> list[Next | Passed | Ended]:
    """Take the days at a stage one step on, and pass the others; one that fails ends, and stops no other."""
    return [_one(day, step) if isinstance(day, at) else cast("Passed", day) for day in days]


def together(
    days: Sequence[At | Passed],
    at: type[At],
    step: Callable[[Sequence[At]], Sequence[Result]],
    then: Callable[[At, Result], Next],
) -> list[Next | Passed | Ended]:
    """Take the days at a stage one step on, all at once; `then` makes of each day's result its next stage. A
    result that is an error is the day's end.

    Should a library fail on them, they are taken one by one, so that one day costs no other.
    """
    results = _results([day for day in days if isinstance(day, at)], step)

    def take(day: At) -> Next:
        result = results[day.day]
        if isinstance(result, BaseException):
            raise result
        return then(day, result)

    return [_one(day, take) if isinstance(day, at) else cast("Passed", day) for day in days]


def and_after(ended: Sequence[Ended], work: Callable[[], Sequence[Ended]]) -> list[Ended]:
    """The days that are over, and those that end by what is done after them all.

    Should that fail, the last of them once more, for that alone: what became of all is told none the less.
    """
    after = list[Ended]()
    if not ended:
        return [*work()]

    def take(day: Ended) -> Ended:
        after.extend(work())
        return day

    last = each(ended[-1:], Ended, take)
    after += [
        one.ended(
            one.outcome.status,
            "only what follows the days, new estimates or pages (`optstream report` writes them); the days "
            f"are as told: {one.outcome.message}",
        )
        for one in last
        if one is not ended[-1]
    ]
    return [*ended, *after]


def _results(
    days: Sequence[At], step: Callable[[Sequence[At]], Sequence[Result]]
) -> dict[date, Result | BaseException]:
    if not days:
        return {}
    try:
        return dict(zip([day.day for day in days], step(days), strict=True))
    except BaseException as error:  # what a library says may hold a reading: it is not passed on
        if not is_failure(error):
            raise
        if len(days) == 1:
            return {days[0].day: error}
    return {day: result for one in days for day, result in _results([one], step).items()}


def _one(day: At, step: Callable[[At], Next]) -> Next | Ended:
    try:
        return step(day)
    except HeldError as error:
        return day.ended(Status.BUSY, str(error), free_at=error.until)
    except PublishedError as error:
        return day.ended(Status.FAILED, str(error), error.file)
    except OptStreamError as error:
        refused = isinstance(error, (BudgetError, ContractError, DumpError))
        return day.ended(Status.REFUSED if refused else Status.FAILED, str(error))
    except BaseException as error:  # a library's message may hold a raw value: say only what and where
        if not is_failure(error):
            raise
        return day.ended(Status.FAILED, unexpected(error))
