"""What a period knows of other periods' points, and what it tells the next: {"points": {level: steps}}."""

from collections.abc import Iterable, Mapping, Sequence

from optstream.errors import ParameterError
from optstream.measurement import L1Sampling
from optstream.measurement.l1_sampling import Choice
from optstream.measurement.linear import SAMPLES
from optstream.mechanisms.optstream.plan import LevelPlan
from optstream.mechanisms.state import measured_steps, own_state
from optstream.privacy import JointSpend, Spend, StepSpend
from optstream.privacy.rules.window_budget import WindowBudget
from optstream.privacy.spends import spend_from_document, spend_to_document
from optstream.stream import State

NAME = "OptStream"


def state_of(levels: Sequence[LevelPlan], spends: Iterable[Spend]) -> State:
    """Return the state that the spends of other periods imply, earlier and later ones."""
    known = list(spends)
    points = {
        plan.level: measured_steps((one for one in known if one.level == plan.level), SAMPLES)
        for plan in levels
    }
    return {"points": {str(level): [step for step, _ in steps] for level, steps in points.items()}}


def other_plans(levels: Sequence[LevelPlan], spends: Sequence[Spend]) -> State | None:
    """Return the spends of other periods as a state if some are of another plan, at a level with joint noise.

    The plan's own days fit beside each other in any order.
    """
    joint = {plan.level: plan for plan in levels if plan.groups}
    near = [spend for spend in spends if spend.level in joint]
    once = len({(spend.level, spend.stage, spend.first_step) for spend in near}) == len(near)
    if once and all(joint[spend.level].is_own(spend) for spend in near):
        return None
    return {"mechanism": NAME, "spends": [spend_to_document(spend) for spend in near]}


def spends_around(state: State | None) -> list[Spend]:
    """Return the spends that `other_plans` found. Raises ParameterError for another mechanism's state."""
    return [spend_from_document(one) for one in own_state(state, NAME).get("spends", ())]


def measured_points(spends: Iterable[Spend]) -> dict[int, tuple[int, ...]]:
    """Return each level's measured points of a period, from its start, by what is spent on them."""
    return {
        spend.level: tuple(step for step, weight in enumerate(spend.weights) if weight)
        for spend in spends
        if isinstance(spend, StepSpend | JointSpend) and spend.stage == SAMPLES
    }


def taken_points(plan: LevelPlan, state: State | None) -> tuple[int, ...]:
    """Return the points of other periods that the level's rule counts; the paper's calibration has no such
    rule.

    Raises ParameterError for a state that `state_of` or a release did not make: read as "no points", it
    would void the privacy guarantee in silence.
    """
    if state is None or plan.calibration == "paper":
        return ()
    try:
        taken = tuple(state["points"][str(plan.level)])
    except (KeyError, TypeError) as error:
        raise ParameterError(
            f'state of OptStream must be {{"points": {{"{plan.level}": [steps]}}}}, as releases have it'
        ) from error
    if any(isinstance(step, bool) or not isinstance(step, int) for step in taken):
        raise ParameterError("state of OptStream must hold running step indices, integers")
    return taken


def next_state(
    points: Mapping[int, Sequence[int]],
    n_steps: int,
    first_step: int,
    window_length: int,
    state: State | None,
) -> State:
    """Return the points that a window of the next period can still see. points: of this period, from its
    start.
    """
    seen = first_step + n_steps - window_length
    before = {} if state is None else state["points"]
    return {
        "points": {
            str(level): sorted(
                {step for step in before.get(str(level), ()) if step > seen}
                | {first_step + step for step in chosen if first_step + step > seen}
            )
            for level, chosen in points.items()
        }
    }


def choices(plans: Sequence[LevelPlan], n_steps: int, first_step: int, state: State | None) -> list[Choice]:
    """Return how each level's points of a period are to be chosen."""
    found = []
    for plan in plans:
        sampling, window = plan.sampling, plan.model.window_length
        assert isinstance(sampling, L1Sampling)
        taken = [(step, 1) for step in taken_points(plan, state)]
        rule = WindowBudget(sampling.n_samples, window, first_step, n_steps, taken)
        n_points = sampling.points_of_period(n_steps, window)
        threshold_units = round(sampling.threshold / plan.model.resolution)
        scales, take_remaining = plan.sampler_scales(n_steps), plan.calibration == "paper"
        found.append(Choice(plan.level, n_points, threshold_units, rule, scales, take_remaining))
    return found
