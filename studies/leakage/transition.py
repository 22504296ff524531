"""Transition matrices: what is a legal one, its stationary distribution, and time reversed."""

import numpy as np
from numpy.typing import ArrayLike

from optstream.errors import ParameterError
from studies.leakage.amounts import Floats

ROW_TOLERANCE = 1e-9


def checked_transition(transition: ArrayLike, name: str = "transition") -> Floats:
    """Return a row-stochastic matrix as float64, shape (n_states, n_states), each row divided by its sum.

    Row i is the distribution given state i: of the next value for a forward matrix, of the previous one for a
    backward matrix. Raises ParameterError, with the parameter's name, where it is not square, has no state or
    an entry that is negative or not finite, or a row does not add up to 1 within 1e-9.
    """
    try:
        given = np.array(transition, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be a matrix of numbers") from None
    if given.ndim != 2 or given.shape[0] != given.shape[1] or given.shape[0] < 1:
        raise ParameterError(f"{name} must be a square matrix of at least one state; got shape {given.shape}")
    wrong = np.argwhere(~(np.isfinite(given) & (given >= 0)))
    if wrong.size:
        row, column = wrong[0]
        raise ParameterError(
            f"{name} must hold probabilities, finite and at least 0; "
            f"got {given[row, column]} at row {row}, column {column} (counted from 0)"
        )
    sums = given.sum(axis=1)
    off = np.flatnonzero(np.abs(sums - 1) > ROW_TOLERANCE)
    if off.size:
        row = int(off[0])
        raise ParameterError(
            f"rows of {name} must add up to 1 within {ROW_TOLERANCE:g}: row i is the distribution given "
            f"state i; row {row} (counted from 0) adds up to {sums[row]:.12g}"
        )
    normalised: Floats = given / sums[:, None]
    return normalised


def stationary_distribution(transition: ArrayLike) -> Floats:
    """Return the distribution that a chain keeps, all of it greater than 0.

    Source: Grassmann, Taksar and Heyman, Operations Research 1985: elimination without subtractions, so that
    small probabilities keep their relative precision.

    transition: of the chain, (n_states, n_states). Returns shape (n_states,). Raises ParameterError for a
    matrix that is not legal, or a reducible chain (one that cannot come from every state to every other): it
    keeps several distributions, or none without a 0.
    """
    reduced = checked_transition(transition).copy()
    n_states = len(reduced)
    if not _irreducible(reduced):
        raise ParameterError(
            "the chain is reducible: it has no unique stationary distribution that is greater than 0 in "
            "every state; give a prior, or the backward matrix itself"
        )
    for last in range(n_states - 1, 0, -1):
        reduced[:last, last] /= reduced[last, :last].sum()
        reduced[:last, :last] += np.outer(reduced[:last, last], reduced[last, :last])
    weights = np.ones(n_states)
    for state in range(1, n_states):
        weights[state] = weights[:state] @ reduced[:state, state]
    distribution: Floats = weights / weights.sum()
    return distribution


def backward_transition(transition: ArrayLike, prior: ArrayLike | None = None) -> Floats:
    """Return the backward matrix of a forward chain, by Bayes: its rows are the values one step earlier.

        backward[i, j] = Pr(l_t-1 = j | l_t = i) = prior[j] transition[j, i] / sum_k prior[k] transition[k, i]

    transition: forward, row i is the distribution of the next value given i, Pr(l_t = j | l_t-1 = i). prior:
    distribution of the value at a step, shape (n_states,); None is the stationary one, the only one for which
    the result is the same at every step. Raises ParameterError for a prior that is no distribution, a state
    that is never entered under it (what came before it is then not defined), or as `stationary_distribution`.
    """
    forward = checked_transition(transition)
    before = stationary_distribution(forward) if prior is None else _checked_prior(prior, len(forward))
    joint = before[:, None] * forward
    entered = joint.sum(axis=0)
    if (entered == 0).any():
        state = int(np.flatnonzero(entered == 0)[0])
        raise ParameterError(
            f"prior must let every state be entered; state {state} (counted from 0) never is: "
            "give the backward matrix itself"
        )
    return checked_transition((joint / entered).T, "backward matrix")


def _irreducible(transition: Floats) -> bool:
    """Return whether every state leads to every other: paths of up to 1, 2, 4, … steps."""
    n_states = len(transition)
    reached = (transition > 0) | np.eye(n_states, dtype=bool)
    for _ in range(n_states.bit_length()):
        # float32 products go through BLAS; counts stay exact below 2^24 states
        paths = reached.astype(np.float32)
        reached = (paths @ paths) > 0
    return bool(reached.all())


def _checked_prior(prior: ArrayLike, n_states: int) -> Floats:
    given = np.asarray(prior, dtype=np.float64)
    if given.shape != (n_states,) or not (np.isfinite(given) & (given >= 0)).all():
        raise ParameterError(
            f"prior must have a probability, at least 0, for each of {n_states} states; "
            f"got shape {given.shape}"
        )
    if abs(given.sum() - 1) > ROW_TOLERANCE:
        raise ParameterError(f"prior must add up to 1 within {ROW_TOLERANCE:g}; got {given.sum():.12g}")
    normalised: Floats = given / given.sum()
    return normalised
