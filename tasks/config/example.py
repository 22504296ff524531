"""The commented configuration that `optstream init` writes: a template, told another mechanism or hours."""

import re
from dataclasses import dataclass
from pathlib import Path

from optstream.errors import ParameterError
from optstream.mechanisms import mechanism_named
from tasks.config.schema import MECHANISMS, NAMES, kinds_with

TEMPLATES = Path(__file__).parent / "templates"
SCALES = {"load": "5000.0 ", "counts": "1000.0 ", "metered": "15.0   "}
"""Of each template the size of a typical leaf."""


@dataclass(frozen=True)
class Kind:
    """Which example is wanted: of whole numbers of visits (counts), of a row a customer and step (metered),
    or of a load; with a release an hour or a night.
    """

    mechanism: str = "OptStream"
    counts: bool = False
    metered: bool = False
    hourly: bool = False

    def __post_init__(self) -> None:
        if self.mechanism not in MECHANISMS:
            raise ParameterError(f"mechanism of the example must be {NAMES}; got {self.mechanism!r:.80}")
        if self.counts and self.metered:
            raise ParameterError(
                "an example is of counts or metered, not of both: into the metered one write [privacy] "
                'counts = true and resolution = "1"'
            )
        if self.hourly and not mechanism_named(self.mechanism).serves_hours:
            raise ParameterError(
                f"an example by the hour is for mechanism {kinds_with('serves_hours')}; got "
                f"{self.mechanism!r}, which is made for days as a whole"
            )

    @property
    def template(self) -> str:
        """The template that it is made of."""
        return "counts" if self.counts else "metered" if self.metered else "load"


def example_of(kind: Kind) -> str:
    """Return a commented configuration in TOML, which runs with what `optstream simulate` makes for it."""
    text = (TEMPLATES / f"{kind.template}.toml").read_text(encoding="utf-8")
    if not MECHANISMS[kind.mechanism].tables:
        text = _of_mechanism(text, kind)
    return _by_the_hour(text) if kind.hourly else text


def _of_mechanism(text: str, kind: Kind) -> str:
    own = "[mechanism]                     # its keys, and others: docs/methods/mechanisms.md\n"
    own += f'name = "{kind.mechanism}"\n'
    if "scale" in MECHANISMS[kind.mechanism].model_fields:
        own += f"scale = {SCALES[kind.template]:24}# a typical leaf; public, it decides how many blocks\n"
        own += 'country = "FR"                  # whose public holidays count as Sundays\n'
    text = re.sub(r"\[mechanism\].*\n(.+\n)+", own, text)
    text = re.sub(r"\[(sampling|features)\].*\n(.+\n)+\n", "", text)
    if mechanism_named(kind.mechanism).currency == "rho":
        text = text.replace("\nwindow =", f"\n{DELTA}\nwindow =")
        text = text.replace("c epsilon\n", "c^2 rho\n")
    return text


def _by_the_hour(text: str) -> str:
    text = text.replace("a nightly private release", "a private release every hour")
    text = text.replace("\ntime_zone =", f"\n{BY_THE_HOUR}\ntime_zone =")
    text = text.replace("/*.parquet", "/hour=<HH>/*.parquet")
    text = re.sub(r"# not_before = .*", HELD_AN_HOUR, text)
    return re.sub(r"# \[release\](.*\n)+?(?=\[ledger\])", EVERY_HOUR, text)


DELTA = 'delta = "1e-6"                  # beside the factor e^epsilon; far less than 1 / customers'
BY_THE_HOUR = 'period = "hour"                 # each hour is a release of its own: docs/hours.md'
HELD_AN_HOUR = '# not_before = "00:15"          # after the end of the hour: a drawn hour is held until then'
EVERY_HOUR = """\
# [watch]                       # of a stream that runs every hour: alarms, see docs/monitoring.md
# late_after = "00:30"          # after the end of an hour: from then on it is an alarm
# max_runtime = "10min"         # an hour under way for longer is stuck
# notify = ["custom-webhook/optstream"]

# [schedule]                    # of `optstream serve`, in the stream's time zone: see docs/schedule.md
# cron = "5 * * * *"            # five minutes past, at the hour before

"""
EXAMPLE = example_of(Kind())
"""The usual one."""
