"""The example configuration for another mechanism, input or hierarchy, as options of `optstream init` say."""

import re
from dataclasses import dataclass

from optstream.errors import ParameterError
from optstream.mechanisms import mechanism_named
from tasks.config.example import EXAMPLE, changed
from tasks.config.tables.mechanisms import MECHANISMS, NAMES, kinds_with

MOST_LEVELS = 4
LEVELS = f"an integer in [2, {MOST_LEVELS}]"
QUARTERS = {
    "NW": ("North-West", ("28", "52", "53")),
    "NE": ("North-East", ("11", "27", "32", "44")),
    "SW": ("South-West", ("24", "75", "76")),
    "SE": ("South-East", ("84", "93")),
}
"""A level between nation and regions, made up: its code, what readers see, and its regions."""
HALVES = {"towns": "towns", "country": "countryside"}
"""A level below the regions, made up."""


@dataclass(frozen=True)
class Words:
    """What an example says of its readings; numbers are texts of the file, in `unit`."""

    what: str
    people: str
    unit: str
    column: str
    alpha: str
    resolution: str
    largest: str
    scale: str
    threshold: str


LOAD = Words("load", "customers", "MW", "load_mw", "10", "0.001", "20000", "5000.0", "500")
VISITS = Words("visits", "visitors", "visits", "visits", "1", "1", "20000", "1000.0", "50")
METERS = Words("consumption", "customers", "kWh", "energy_kwh", "5", "0.001", "5", "15.0", "50")
METERED_VISITS = Words("visits", "visitors", "visits", "visits", "5", "1", "5", "15.0", "50")


@dataclass(frozen=True)
class Kind:
    """Which example is wanted.

    Attributes:
        mechanism: As a configuration names it.
        counts: Whole numbers of visits in place of a load.
        metered: A row a customer and step in place of a row a step.
        levels: Of the hierarchy, the root's counted.
        hourly: A release an hour in place of one a night.
    """

    mechanism: str = "OptStream"
    counts: bool = False
    metered: bool = False
    levels: int = 2
    hourly: bool = False

    def __post_init__(self) -> None:
        if self.mechanism not in MECHANISMS:
            raise ParameterError(f"mechanism of the example must be {NAMES}; got {self.mechanism!r:.80}")
        if not 2 <= self.levels <= MOST_LEVELS:
            raise ParameterError(f"levels of the example must be {LEVELS}; got {self.levels!r:.80}")
        if self.hourly and not mechanism_named(self.mechanism).serves_hours:
            raise ParameterError(
                f"an example by the hour is for mechanism {kinds_with('serves_hours')}; got "
                f"{self.mechanism!r}, which is made for days as a whole"
            )

    @property
    def words(self) -> Words:
        """What is said of its readings."""
        if self.counts:
            return METERED_VISITS if self.metered else VISITS
        return METERS if self.metered else LOAD


def example_of(kind: Kind) -> str:
    """Return a commented configuration in TOML, which runs with what `optstream simulate` makes for it."""
    text = _with_input(EXAMPLE, kind)
    text = _with_levels(text, kind.levels)
    if kind.hourly:
        text = _by_the_hour(text)
    return _with_mechanism(text, kind)


def _with_input(text: str, kind: Kind) -> str:
    """The readings' unit, their bounds and how they lie in a dump."""
    now = kind.words
    if now != LOAD:
        told = f"{now.what} in the French regions"
        text = changed(text, "electricity load of the French regions", told)
        for key, old, new in (
            ("name", '"french-load"', f'"french-{now.what}"'),
            ("population", '"french-customers"', f'"french-{now.people}"'),
            ("alpha", '"10"', f'"{now.alpha}"'),
            ("resolution", '"0.001"', f'"{now.resolution}"'),
            ("bounds", '["0", "20000"]', f'["0", "{now.largest}"]'),
        ):
            text = changed(text, f"^{re.escape(f'{key} = {old}')} *#", f"{key} = {new}".ljust(32) + "#")
        text = changed(text, 'threshold = "500"', f'threshold = "{now.threshold}"')
        # what is said of sums of MW and of columns in kW has no counterpart
        for gone in (r"^# supplier_rounding = .*\n", r"^# factor = .*\n"):
            text = changed(text, gone, "")
        text = text.replace('value = "load_mw"', f'value = "{now.column}"').replace("MW", now.unit)
    if kind.counts:
        text = changed(
            text,
            r"^# counts = true .*$",
            "counts = true                   # whole numbers: HistoryInformed goes by it",
        )
    if kind.metered:
        text = changed(
            text,
            r'^schema = "aggregated" .*$',
            'schema = "metered"              # a row a customer and step; or "aggregated": a row a step\n'
            'customer = "customer_id"        # whose reading a row is: no name or address',
        )
    return text


def _with_levels(text: str, levels: int) -> str:
    """The tables of the hierarchy, and equal shares of epsilon."""
    if levels == 2:
        return text
    regions = dict(re.findall(r'^(\d\d) = "(.+)"$', text[text.index("[hierarchy.names]") :], re.MULTILINE))
    parents = dict.fromkeys(QUARTERS, "FR")
    parents |= {region: code for code, (_, own) in QUARTERS.items() for region in own}
    names = {code: name for code, (name, _) in QUARTERS.items()} | regions
    if levels == MOST_LEVELS:
        parents |= {f"{region}-{half}": region for region in regions for half in HALVES}
        names |= {
            f"{region}-{half}": f"{name}, {word}"
            for region, name in regions.items()
            for half, word in HALVES.items()
        }
    for table, rows, root in (("parents", parents, ""), ("names", names, "France (mainland)")):
        lines = "".join(f'{node} = "{value}"\n' for node, value in {"FR": root, **rows}.items())
        text = changed(text, rf"^(\[hierarchy\.{table}\].*\n)(?:.+\n)+", rf"\g<1>{lines}")
    shares = ", ".join([f'"1/{levels}"'] * levels)
    return changed(text, r'^levels = \["1/2", "1/2"\] *', f"levels = [{shares}]  ")


def _by_the_hour(text: str) -> str:
    """A release an hour: its dumps and its clock."""
    period = 'period = "hour"'.ljust(32) + "# each hour is a release of its own: docs/hours.md"
    for old, new in (
        (r"a nightly private release", "a private release every hour"),
        (r'^(step = "30min")$', rf"\g<1>\n{period}"),
        (r"/date=<YYYY-MM-DD>/\*", "/date=<YYYY-MM-DD>/hour=<HH>/*"),
        (
            r"^# not_before = .*$",
            '# not_before = "00:15"          # after the end of the hour: a drawn hour is held until then',
        ),
        (r"^# \[release\] .*\n# revise_days .*\n\n", ""),
        (r"of a stream that runs every night: alarms", "of a stream that runs every hour: alarms"),
        (
            r"^# late_after = .*$",
            '# late_after = "00:30"          # after the end of an hour: from then on it is an alarm',
        ),
        (r"^# max_runtime = .*$", '# max_runtime = "10min"         # an hour under way for longer is stuck'),
        (r"^# cron = .*$", '# cron = "5 * * * *"            # five minutes past, at the hour before'),
        (r"^# look_every_minutes = .*$", "# look_every_minutes = 10       # further looks at what is late"),
    ):
        text = changed(text, old, new)
    return text


def _with_mechanism(text: str, kind: Kind) -> str:
    """The mechanism's table; the tables of OptStream's only where it is OptStream."""
    section = MECHANISMS[kind.mechanism]
    if section.tables:
        return text
    lines = {
        "[mechanism]": "its keys, and others: docs/methods/mechanisms.md",
        f'name = "{kind.mechanism}"': "",
    }
    if "scale" in section.model_fields:
        size = f"{kind.words.unit}: a typical leaf; public knowledge, which decides how many blocks"
        lines |= {
            f"scale = {kind.words.scale}": size,
            'country = "FR"': "whose public holidays count as Sundays",
        }
    table = "".join(f"{line:32}# {said}\n" if said else f"{line}\n" for line, said in lines.items())
    text = changed(text, r"^\[mechanism\].*\n(?:.+\n)+", table)
    if mechanism_named(kind.mechanism).currency == "rho":
        given = 'delta = "1e-6"'.ljust(32) + "# beside the factor e^epsilon; far less than 1 / customers"
        text = changed(text, "c times as much, c epsilon", "c times as much, c^2 rho")
        text = changed(text, r"^(epsilon = .*)$", rf"\g<1>\n{given}")
    for gone in (r"^stages = .*\n", r"^\[sampling\].*\n(?:.+\n)+\n", r"^\[features\].*\n(?:.+\n)+\n"):
        text = changed(text, gone, "")
    return text
