"""Checking what FAST is made with: every refusal names the parameter, its range and what it got."""

import math
from typing import TYPE_CHECKING, Any

from optstream.errors import ParameterError

if TYPE_CHECKING:
    from optstream.mechanisms.fast import Fast

ROUNDING = 1e-9
"""By how much gains that were meant to add up to 1 may miss it."""


def check_fast(fast: "Fast") -> None:
    """Raise ParameterError for the first parameter that is outside its range."""
    window = fast.model.window_length
    if fast.n_samples is not None:
        _whole("n_samples", fast.n_samples, 1, window)
    _one_of("sampling", fast.sampling, ("adaptive", "fixed"))
    _one_of("predictor", fast.predictor, ("kalman", "linear"))
    if fast.integration_time is not None:
        _whole("integration_time", fast.integration_time, 1, fast.samples_in_window)
    _whole("min_interval", fast.min_interval, 1, window)
    gains = {name: getattr(fast, name) for name in ("proportional", "integral", "derivative")}
    for name, gain in gains.items():
        if not (_is_number(gain) and 0 <= gain <= 1):
            raise ParameterError(f"{name} of Fast must be a number in [0, 1]; got {gain!r}")
    if abs(sum(gains.values()) - 1) > ROUNDING:
        raise ParameterError(
            "proportional, integral and derivative of Fast must add up to 1; "
            f"got {tuple(gains.values())}, which add up to {sum(gains.values())}"
        )
    for name in ("interval_step", "set_point", "process_deviation", "error_floor"):
        value = getattr(fast, name)
        left_out = value is None and name in ("process_deviation", "error_floor")
        if not left_out and not (_is_number(value) and 0 < value < math.inf):
            raise ParameterError(f"{name} of Fast must be a finite number greater than 0; got {value!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _whole(name: str, value: Any, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ParameterError(f"{name} of Fast must be an integer in [{least}, {most}]; got {value!r}")


def _one_of(name: str, value: Any, legal: tuple[str, str]) -> None:
    if value not in legal:
        raise ParameterError(f'{name} of Fast must be "{legal[0]}" or "{legal[1]}"; got {value!r}')
