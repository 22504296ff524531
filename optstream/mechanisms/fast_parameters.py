"""What FAST is made with: every refusal names the parameter, its range and what it got."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from optstream.errors import ParameterError
from optstream.privacy import PrivacyModel
from optstream.privacy.exact import make_plain, whole

SHARE_SAMPLED = Fraction(15, 100)

ROUNDING = 1e-9
"""By how much gains that were meant to add up to 1 may miss it."""


@dataclass(frozen=True)
class FastParameters:
    """The parameters of `Fast`, checked; what each means stands there."""

    model: PrivacyModel
    n_samples: int | None = None
    sampling: Literal["adaptive", "fixed"] = "adaptive"
    predictor: Literal["kalman", "linear"] = "kalman"
    proportional: float = 0.9
    integral: float = 0.1
    derivative: float = 0.0
    integration_time: int | None = None
    interval_step: float = 5.0
    set_point: float = 0.1
    min_interval: int = 1
    process_deviation: float | None = None
    error_floor: float | None = None

    def __post_init__(self) -> None:
        make_plain(self)
        window = self.model.window_length
        if self.n_samples is not None:
            whole(self.n_samples, "n_samples of Fast", 1, window)
        _one_of("sampling", self.sampling, ("adaptive", "fixed"))
        _one_of("predictor", self.predictor, ("kalman", "linear"))
        if self.integration_time is not None:
            whole(self.integration_time, "integration_time of Fast", 1, self.samples_in_window)
        whole(self.min_interval, "min_interval of Fast", 1, window)
        gains = {name: getattr(self, name) for name in ("proportional", "integral", "derivative")}
        for name, gain in gains.items():
            if not (_is_number(gain) and 0 <= gain <= 1):
                raise ParameterError(f"{name} of Fast must be a number in [0, 1]; got {gain!r}")
        if abs(sum(gains.values()) - 1) > ROUNDING:
            raise ParameterError(
                "proportional, integral and derivative of Fast must add up to 1; "
                f"got {tuple(gains.values())}, which add up to {sum(gains.values())}"
            )
        for name in ("interval_step", "set_point", "process_deviation", "error_floor"):
            value = getattr(self, name)
            left_out = value is None and name in ("process_deviation", "error_floor")
            if not left_out and not (_is_number(value) and 0 < value < math.inf):
                raise ParameterError(f"{name} of Fast must be a finite number greater than 0; got {value!r}")

    @property
    def samples_in_window(self) -> int:
        """The number M of samples in a window: the most steps of any window that are measured."""
        if self.n_samples is not None:
            return self.n_samples
        return max(1, int(SHARE_SAMPLED * self.model.window_length))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _one_of(name: str, value: Any, legal: tuple[str, str]) -> None:
    if value not in legal:
        raise ParameterError(f'{name} of Fast must be "{legal[0]}" or "{legal[1]}"; got {value!r}')
