"""Periods in a row: their measurements, spends and releases."""

import numpy as np

from optstream.noise import simulated_noise


def in_turn(act, periods, noise, first_step=0, state=None, keep=lambda state: state):
    """Give periods to a mechanism's method, each with its own noise and what is kept of the state before."""
    found = []
    for values in periods:
        found.append(act(values, noise=noise(first_step), first_step=first_step, state=state))
        state, first_step = keep(found[-1].state), first_step + values.shape[-1]
    return found


def daily_noise(seed, n_steps):
    """Simulated noise for each day of so many steps."""
    return lambda step: simulated_noise([seed, step // n_steps])


def spends_of(measured):
    return [spend for one in measured for spend in one.spends]


def released(mechanism, values, cuts, noise=None, **more):
    """The releases of the periods between these cuts, of noise that goes on from one to the next."""
    noise = noise or simulated_noise(1)
    return in_turn(mechanism.release, np.split(values, cuts, axis=1), lambda step: noise, **more)
