"""How the errors of a published day hang together, from its measurements.

What it needs takes long to import: it is loaded where measurements are published.
"""

from optstream.catalogue.measurements.read_measurements import DayMeasurements
from optstream.catalogue.questions.figures import ErrorParts


def parts_from(day: DayMeasurements) -> ErrorParts | None:
    """Return how the errors of a published day hang together, from its measurements; free.

    Takes about as long as an estimate of the day.

    Args:
        day: As `read_measurements` returns it.

    Returns:
        The parts; None where the mechanism cannot be made again, or is on no tree.

    Raises:
        ParameterError: As `Mechanism.estimate`.
    """
    if day.mechanism is None:
        return None
    release = day.release()
    if release.tree is None:
        return None
    return ErrorParts(
        release.tree, release.noise_factor, release.error_factor, day.mechanism.days_independent
    )
