"""Days in a row: their measurements, spends and releases."""

from optstream.noise import simulated_noise


def drawn(mechanism, values, lengths, state=None, first_step=0):
    """The measurements of periods of these lengths in a row, each given the state before it."""
    found, at = [], 0
    for length in lengths:
        noise, own = simulated_noise([1, first_step + at]), values[:, at : at + length]
        found.append(mechanism.measure(own, noise=noise, first_step=first_step + at, state=state))
        state, at = found[-1].state, at + length
    return found


def spends_of(measured):
    return [spend for one in measured for spend in one.spends]


def released(mechanism, values, cuts, keep=lambda state: state, noise=None, first_step=0):
    """The periods between these cuts in a row, each given what is kept of the state before it."""
    noise, state, parts = noise or simulated_noise(1), None, []
    for first, end in zip([0, *cuts], [*cuts, values.shape[1]], strict=True):
        own, at = values[:, first:end], first_step + first
        parts.append(mechanism.release(own, noise=noise, first_step=at, state=state))
        state = keep(parts[-1].state)
    return parts
