"""What a release says about itself, from configuration and spends."""

from datetime import date

import optstream
from optstream.catalogue import ReleaseStatement, noise_scales
from optstream.mechanisms import Release
from tasks.settings import Settings


def statement_of(
    settings: Settings, day: date, release: Release, revision: int, vintage: int
) -> ReleaseStatement:
    """The statement in a release's footer and manifest: public facts only."""
    calendar = settings.calendar
    return ReleaseStatement(
        stream=settings.stream.name,
        period=day,
        revision=revision,
        vintage=vintage,
        model=settings.model,
        mechanism=settings.describe_mechanism(),
        calibration=settings.privacy.calibration,
        epsilon_plan=release.epsilon,
        epsilon_own=release.epsilon_alone,
        noise=noise_scales(release.spends),
        simulated=release.simulated,
        code_version=optstream.__version__,
        configuration_hash=settings.configuration_hash,
        value_column=settings.published.value,
        step_minutes=calendar.step_minutes,
        time_zone=calendar.time_zone,
        day=calendar.day,
    )
