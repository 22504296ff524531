"""PeGaSus' perturber and grouper: noisy values, and runs of steps that look alike, decided step by step."""

from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.measurement.sums import measured_of
from optstream.noise import NoiseSource
from optstream.privacy import StepSpend
from optstream.stream import Measured, PrivatePeriod, RawState, State
from optstream.stream.private_period import open_private_period, open_raw_state, public_part

PERTURBER = "perturber"
GROUPER = "grouper"
ON_THRESHOLD, ON_DEVIATION = 4, 8  # scales of the grouper's noise, in units of alpha over its epsilon


@dataclass(frozen=True)
class GroupingTerms:
    """Scales of values and groups; a group that began under other terms is not continued. perturber: scale of
    each value's noise. grouper: the series' move at a changed step, over the grouper's epsilon; its noises
    have 4 and 8 times that scale. threshold_units: of a group's deviation."""

    perturber: Fraction
    grouper: Fraction
    threshold_units: int

    def to_texts(self, resolution: Fraction) -> list[str]:
        """Return all that an open group's raw numbers hang on, as text. Privacy: none; terms are public."""
        return [str(self.perturber), str(self.grouper), str(self.threshold_units), str(resolution)]


@dataclass(eq=False, repr=False, slots=True)
class OpenGroup:
    """A group that may still grow, raw: its noisy threshold, its sorted values and their sum."""

    limit: int
    exact: list[int]
    total: int


def measure_groups(
    period: PrivatePeriod,
    spends: tuple[StepSpend, StepSpend],
    threshold_units: int,
    state: State | None,
    noise: NoiseSource,
) -> Measured:
    """Measure every step of every series, and which steps are alike.

    choices["groups"] has, for each series and step, the running index of its group's first step; the new
    state has next_step, the noisy values of each open group, and `raw`. Privacy: Lemma 9 (PeGaSus' groups)
    and, for the noisy values, Lemma 3. The raw entry of `state`, the open groups of the period before, is
    used once; without it new groups open.
    """
    for spend in spends:
        if (spend.first_step, spend.weights) != (period.first_step, (1,) * period.n_steps):
            raise ParameterError(f"the spend of stage {spend.stage!r} does not price the steps it is for")
    terms = GroupingTerms(spends[0].scale, spends[1].scale, threshold_units)
    groups = _continued(state, terms, period)
    earlier: Sequence[Sequence[int]] = state["noisy"] if state and any(groups) else [[]] * period.n_leaves
    noisy, starts, groups = draw_groups(open_private_period(period), period.first_step, terms, groups, noise)
    variances = np.full(noisy.shape, 2.0 * float(terms.perturber) ** 2)
    raw = {
        "next_step": period.first_step + period.n_steps,
        "terms": terms.to_texts(period.resolution),
        "groups": [group and {"limit": group.limit, "exact": group.exact} for group in groups],
    }
    kept = {
        "next_step": raw["next_step"],
        "noisy": [
            [*before, *values.tolist()][len(before) + int(own[-1]) - period.first_step :] if group else []
            for group, own, before, values in zip(groups, starts, earlier, noisy, strict=True)
        ],
        "raw": RawState(raw),
    }
    measured = measured_of(
        period, noise, spends, positions=range(period.n_steps), points=noisy, variances=variances,
        state=kept, choices={"groups": starts.tolist()},
    )  # fmt: skip
    return replace(measured, before=public_part(state))


def open_since(measured: Measured) -> list[int]:
    """Return each open group's first step, a running index. Privacy: none; groups are released."""
    parts: tuple[Any, ...] = measured.parts or (measured,)
    return [
        int(starts[-1])
        for part in parts
        if any(spend.stage == GROUPER for spend in part.spends)
        for starts, noisy in zip(part.choices["groups"], part.state["noisy"], strict=True)
        if noisy
    ]


def draw_groups(
    exact: NDArray[np.int64],
    first_step: int,
    terms: GroupingTerms,
    groups: Sequence[OpenGroup | None],
    noise: NoiseSource,
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[OpenGroup | None]]:
    """Return noisy values and each step's group, both (n_series, n_steps), and the groups left open.

    At each step noise is drawn for the values, then for the thresholds of series that open a group, then for
    the comparisons of the others. `groups` are used up. Privacy: Lemma 3, and Lemma 5 with one positive
    answer.
    """
    current = list(groups)
    begins = [first_step - len(group.exact) if group else first_step for group in current]
    noisy, starts = np.empty_like(exact), np.empty_like(exact)
    for step in range(exact.shape[1]):
        values = [int(value) for value in exact[:, step]]
        noisy[:, step] = exact[:, step] + noise.discrete_laplace(float(terms.perturber), (len(values),))
        opening = [series for series, group in enumerate(current) if group is None]
        asked = [series for series, group in enumerate(current) if group is not None]
        on_limits = noise.discrete_laplace(float(ON_THRESHOLD * terms.grouper), (len(opening),))
        on_deviations = noise.discrete_laplace(float(ON_DEVIATION * terms.grouper), (len(asked),))
        for series, drawn in zip(opening, on_limits, strict=True):
            limit = terms.threshold_units + int(drawn)
            current[series] = OpenGroup(limit, [values[series]], values[series])
            begins[series] = first_step + step
        for series, drawn in zip(asked, on_deviations, strict=True):
            if not _takes(current[series], values[series], int(drawn)):
                # the step is a closed group of its own: the next one opens another
                current[series], begins[series] = None, first_step + step
        starts[:, step] = begins
    return noisy, starts, current


def _takes(group: OpenGroup | None, exact: int, drawn: int) -> bool:
    """Put the value in if dev(G with it) + noise < noisy threshold, in exact integers; return whether it is.
    Privacy: Lemma 5; one comparison of a sparse vector, whose query moves by at most twice its values."""
    assert group is not None
    insort(group.exact, exact)
    group.total += exact
    return scaled_deviation(group.exact, group.total) < len(group.exact) * (group.limit - drawn)


def scaled_deviation(exact: Sequence[int], total: int) -> int:
    """Return n times dev(G) = n sum |c_i - mean(G)| of n sorted values, exact. Privacy: Lemma 5 prices the
    comparisons with it, at 2 alpha for dev (Lemma 9, (2))."""
    n = len(exact)
    # Distances above the mean and below it add up to the same; n c > total just where c > floor(total / n).
    first_above = bisect_right(exact, total // n)
    return 2 * (n * sum(exact[first_above:]) - (n - first_above) * total)


def _continued(state: State | None, terms: GroupingTerms, period: PrivatePeriod) -> list[OpenGroup | None]:
    """Return the open groups of a state that ends where the period begins and has these terms.
    Privacy: Lemma 5; a group closes for reasons that no reading decides."""
    closed: list[OpenGroup | None] = [None] * period.n_leaves
    known: Mapping[str, Any] = state or {}
    if not isinstance(known.get("raw"), RawState) or known.get("next_step") != period.first_step:
        return closed
    raw = open_raw_state(known["raw"])
    sizes = [0 if group is None else len(group["exact"]) for group in raw["groups"]]
    same = raw["next_step"] == period.first_step and raw["terms"] == terms.to_texts(period.resolution)
    if not same or len(sizes) != len(closed) or sizes != [len(values) for values in known.get("noisy", ())]:
        return closed
    return [
        group and OpenGroup(int(group["limit"]), list(group["exact"]), sum(group["exact"]))
        for group in raw["groups"]
    ]
