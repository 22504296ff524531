"""What releasing days would cost and how noisy it would be: from the configuration alone, nothing drawn."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np

from optstream.errors import ParameterError
from optstream.estimation.variances import noise_variances
from optstream.measurement import EquallySpaced
from optstream.mechanisms import OptStream
from optstream.mechanisms.plan import SAMPLING, LevelPlan
from optstream.mechanisms.suggestion import error_bound, suggest_n_samples
from optstream.noise import simulated_noise
from optstream.privacy import PeriodSpend, Spend, worst_window
from tasks.mechanism import mechanism_for
from tasks.preview import Band, DryRun, Level, Noise, NumberOfPoints, Period, Stage
from tasks.settings import Settings


def dry_run(settings: Settings, days: Sequence[date], lipschitz: float | None = None) -> DryRun:
    """Price the release of these days. Reads no dump and no ledger, spends nothing.

    lipschitz: the most by which a leaf moves from a step to the next, for a suggestion of n_samples.
    Raises ParameterError if the parameters do not fit each other, or for a suggestion where points are
    not equally spaced.
    """
    mechanism = mechanism_for(settings, days[0])
    if lipschitz is not None and mechanism.adaptive:
        raise ParameterError(
            'a suggested n_samples is for sampling.method "equally_spaced"; leave out --lipschitz with "l1"'
        )
    alike: dict[Any, list[date]] = {}
    for day in dict.fromkeys(days):
        residue = settings.calendar.first_step(day) % settings.privacy.window
        parts = tuple(feature.parts for feature in settings.features(day))
        alike.setdefault((settings.calendar.n_steps(day), residue, parts), []).append(day)
    return DryRun(
        stream=settings.stream.name,
        window_length=settings.privacy.window,
        grant=settings.model.epsilon,
        epsilon=mechanism.epsilon,
        points_known=not mechanism.adaptive,
        periods=tuple(_period(settings, same) for same in alike.values()),
        suggestions=() if lipschitz is None else _suggestions(mechanism, lipschitz),
    )


def _period(settings: Settings, days: Sequence[date]) -> Period:
    mechanism, calendar = mechanism_for(settings, days[0]), settings.calendar
    n_steps, first_step = calendar.n_steps(days[0]), calendar.first_step(days[0])
    spends = mechanism.plan(n_steps, first_step)
    plans = {plan.level: plan for plan in mechanism.levels}
    bands = _bands(mechanism, n_steps, first_step)
    levels = tuple(
        Level(
            level,
            len(nodes),
            plans[level].cost() if level in plans else Fraction(0),
            tuple(_stage(plans[level], spend, n_steps) for spend in spends if spend.level == level),
            bands[level],
        )
        for level, nodes in enumerate(mechanism.tree.levels)
    )
    return Period(tuple(days), n_steps, _worst(mechanism.model, spends), levels)


def _worst(model: Any, spends: Sequence[Spend]) -> Fraction:
    return worst_window(spends, model.window_length, model.windows).epsilon


def _stage(plan: LevelPlan, spend: Spend, n_steps: int) -> Stage:
    """The plan's own scales, in the unit of the readings."""
    if not isinstance(spend, PeriodSpend):
        scales = {"answers": spend.scale}
    else:
        assert spend.stage == SAMPLING
        sampler = plan.sampler_scales(n_steps)
        scales = {"threshold": sampler.threshold, "scores": sampler.query} if sampler else {}
    noise = tuple(Noise(of, float(scale * plan.model.resolution)) for of, scale in scales.items())
    return Stage(spend.stage, _worst(plan.model, [spend]), noise)


def _bands(mechanism: OptStream, n_steps: int, first_step: int) -> list[Band]:
    """How the noise goes through the estimate, by level, the lower bound left out."""
    if mechanism.adaptive:
        mechanism = replace(
            mechanism,
            sampling=EquallySpaced(mechanism.sampling.n_samples),
            stage_shares=mechanism.stage_shares[1:],
        )
    # Zeros and seeded noise: only positions and variances of these measurements are used.
    zeros = np.zeros((len(mechanism.tree.leaves), n_steps))
    measured = mechanism.measure(zeros, noise=simulated_noise(0), first_step=first_step)
    variances = noise_variances(measured, mechanism.tree, mechanism.features, mechanism.weights)
    levels = (variances[nodes.start : nodes.stop] for nodes in mechanism.tree.levels)
    return [Band(*(math.sqrt(v) for v in (level.mean(), level.min(), level.max()))) for level in levels]


def _suggestions(mechanism: OptStream, lipschitz: float) -> tuple[NumberOfPoints, ...]:
    """For each measured level, and for all measured nodes together, since one n_samples serves them all.

    A node moves at most as its leaves do together, and the bound is linear in the Lipschitz constant and
    in alpha / epsilon, so their means over nodes bound the nodes' mean error.
    """
    tree, window, resolution = mechanism.tree, mechanism.model.window_length, mechanism.model.resolution
    found, steepness, noise = [], [], []
    for plan in mechanism.levels:
        nodes = tree.levels[plan.level]
        moves = lipschitz * tree.leaves_below[nodes.start : nodes.stop]
        unit = float(plan.alpha_units * resolution / plan.epsilon_samples)
        found.append((plan.level, unit, float(moves.mean())))
        steepness += moves.tolist()
        noise += [unit] * len(nodes)
    if len(found) > 1:
        found.append((None, float(np.mean(noise)), float(np.mean(steepness))))
    configured = mechanism.sampling.n_samples
    return tuple(
        NumberOfPoints(
            level,
            (best := suggest_n_samples(window, 1.0, unit, moves)).n_samples,
            best.error,
            error_bound(window, configured, 1.0, unit, moves),
        )
        for level, unit, moves in found
    )
