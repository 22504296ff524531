"""A mechanism's state for the next period: a public, JSON-ready value that names its mechanism."""

from collections.abc import Iterable
from typing import Any

from optstream.errors import ParameterError
from optstream.privacy import JointSpend, Spend, StepSpend
from optstream.privacy.spends import spend_from_document, spend_to_document
from optstream.stream import Measured, State


def own_state(state: State | None, mechanism: str) -> dict[str, Any]:
    """Return the state of this mechanism; empty at the start of a stream.

    Another mechanism's raises ParameterError: read as "nothing spent", it would void the privacy guarantee
    silently.
    """
    if state is None:
        return {}
    if not hasattr(state, "get") or state.get("mechanism") != mechanism:
        raise ParameterError(f"state of {mechanism} must be a state that a release of {mechanism} left")
    return dict(state)


def memory_of(before: State | None, mechanism: str) -> dict[str, Any]:
    """Return `own_state`, but empty for another mechanism's: the stream has changed its mechanism."""
    return own_state(before, mechanism) if before and before.get("mechanism") == mechanism else {}


def state_of_spends(spends: Iterable[Spend], mechanism: str) -> State:
    """Return a state that holds the spends of other periods."""
    return {"mechanism": mechanism, "spends": [spend_to_document(spend) for spend in spends]}


def known_spends(state: State | None, mechanism: str) -> list[Spend]:
    """Return what `state_of_spends` was given; none for no state. Raises ParameterError as `own_state`."""
    return [spend_from_document(one) for one in own_state(state, mechanism).get("spends", ())]


def measured_steps(spends: Iterable[Spend], stage: str) -> list[tuple[int, Any]]:
    """Return (running step, weight) of every step that these spends measured at this stage, rising."""
    return sorted(
        (spend.first_step + step, weight)
        for spend in spends
        if isinstance(spend, StepSpend | JointSpend) and spend.stage == stage
        for step, weight in enumerate(spend.weights)
        if weight
    )


def still_seen(steps: Iterable[tuple[int, Any]], end: int, window_length: int) -> list[tuple[int, Any]]:
    """Return, rising, steps that share a window with one at or after `end`, repeats included."""
    return sorted((step, weight) for step, weight in steps if step > end - window_length)


def points_after(points: Iterable[int], end: int, window_length: int) -> list[int]:
    """Return the measured steps of `points` as `still_seen` does."""
    return [step for step, _ in still_seen(((point, 1) for point in points), end, window_length)]


def last_values(measured: Measured) -> dict[str, Any]:
    """Return the last values of a period, from which `estimate.hold` begins the next one."""
    assert measured.point_variances is not None
    if measured.positions:
        return {
            "held": [int(value) for value in measured.points[:, -1]],
            "held_variance": float(measured.point_variances[0, -1]),
        }
    before = measured.before or {}
    return {key: before[key] for key in ("held", "held_variance") if key in before}
