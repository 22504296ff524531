"""What stands in the place of a function that fails, or at which the process dies; and noise that does."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from optstream.noise import secure_noise

Act = Callable[[str, str], None]


class Death(BaseException):
    """It is not an Exception: nothing may catch it and tidy up."""


def raising(error):
    def fails(*_given, **_named):
        raise error

    return fails


class NoiseMeanwhile:
    """Secure noise that counts its samples; the first of each draw is thrown away."""

    simulated = False

    def __init__(self, happens=lambda: None, at=2):
        self._happens, self._at, self.calls, self.came = happens, at, 0, None

    def discrete_laplace(self, scale, size):
        self.calls += 1
        if self._at in (self.calls, "each"):
            self.came = self._happens()
        return secure_noise().discrete_laplace(scale, size)


def failing_noise(error):
    return NoiseMeanwhile(raising(error), at=3)


def no_noise():
    return NoiseMeanwhile(raising(AssertionError("nothing is drawn")), at="each")


@contextmanager
def death_at(*target: Any, error: type[BaseException] = Death) -> Iterator[None]:
    """The block dies where it calls the target, which is named as `setattr` of pytest's patches takes it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*target, raising(error))
        with pytest.raises(error):
            yield


@contextmanager
def at_each(calls: Iterable[tuple[Any, Iterable[str]]], act: Act) -> Iterator[None]:
    """Call act(moment, point) "before" and "after" each of these calls; a point names function and place."""
    with pytest.MonkeyPatch.context() as patch:
        for owner, names in calls:
            for name in names:
                patch.setattr(owner, name, _watched(getattr(owner, name), act))
        yield


def _watched(genuine: Callable[..., Any], act: Act) -> Callable[..., Any]:
    def call(*given: Any, **named: Any) -> Any:
        place = next((one for one in given if isinstance(one, str | int | os.PathLike)), "")
        act("before", f"{genuine.__name__} {place}")
        result = genuine(*given, **named)
        act("after", f"{genuine.__name__} {place}")
        return result

    return call


def dying_at(n: int, points: list[str]) -> Act:
    """The process dies before the n-th call. points: takes down those that came through."""

    def act(moment: str, point: str) -> None:
        if moment == "before":
            if len(points) >= n:
                raise Death
            points.append(point)

    return act
