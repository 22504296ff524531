"""All examinations in a row. Each looks and changes nothing, but for a probe file that it removes again.

In an object store it puts the probe that publishing puts there as well, and that stays.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime

from optstream.errors import ConfigurationError, NoiseError
from optstream.noise import NoiseSource, secure_noise
from tasks.config import Settings
from tasks.doctor.finding import Finding, Severity, wrong
from tasks.doctor.places import places
from tasks.doctor.record import record
from tasks.doctor.surroundings import Ask, ask_server, surroundings
from tasks.release.guards.readiness import make_ready

ORDER = list(Severity)


def examine(
    settings: Settings, environment: Mapping[str, str], now: datetime, ask: Ask = ask_server
) -> list[Finding]:
    """Return what is wrong around a stream, the worst first. A ledger that is there is opened, as `status`
    does; none is made.

    environment: the operator's variables, before OptStream set its own. ask: how a Prefect server is asked
    for its settings.
    """
    found = [
        *places(settings),
        *surroundings(settings, environment, ask),
        *record(settings, now),
        *noise(secure_noise()),
    ]
    return sorted(found, key=lambda finding: ORDER.index(finding.severity))


def noise(source: NoiseSource) -> Iterator[Finding]:
    """A finding if the source gives no noise here; a sample is drawn and thrown away."""
    try:
        make_ready(source)
    except NoiseError as error:
        yield wrong(
            "the library of the noise", str(error), "mend the installation; no day can be drawn before"
        )


def unusable(place: object, error: ConfigurationError) -> list[Finding]:
    """Return the finding for a configuration file that does not load: its zones may be nested, too."""
    return [wrong(place, str(error), "correct the configuration, then ask the doctor again")]
