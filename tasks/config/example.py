"""The commented configuration that `optstream init` writes."""

from collections.abc import Mapping
from dataclasses import dataclass

from optstream.errors import ParameterError
from optstream.mechanisms import mechanism_named
from tasks.config.schema import MECHANISMS, NAMES, kinds_with
from tasks.operate.simulate import FRENCH_REGIONS

# Kinds of example configurations: mechanism, readings, hierarchy and period, as `optstream init` asks.

MOST_LEVELS = 4
LEVELS = f"an integer in [2, {MOST_LEVELS}]"


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
    """Which example is wanted: of whole numbers of visits (counts) or a load; with a row a customer and step
    (metered) or a row a step; of so many levels, the root's counted; with a release an hour or a night.
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


QUARTERS = {
    "NW": ("North-West", ("28", "52", "53")),
    "NE": ("North-East", ("11", "27", "32", "44")),
    "SW": ("South-West", ("24", "75", "76")),
    "SE": ("South-East", ("84", "93")),
}
"""A level between nation and regions, made up: its code, what readers see, and its regions."""
HALVES = {"towns": "towns", "country": "countryside"}
"""A level below the regions, made up."""


def example_of(kind: Kind) -> str:
    """Return a commented configuration in TOML, which runs with what `optstream simulate` makes for it."""
    now, hourly, levels = kind.words, kind.hourly, kind.levels
    is_load, takes_samples = now == LOAD, bool(MECHANISMS[kind.mechanism].tables)
    is_rho = not takes_samples and mechanism_named(kind.mechanism).currency == "rho"
    parents, names = _hierarchy(levels)
    shares = ", ".join([f'"1/{levels}"'] * levels)
    return f"""\
# OptStream: {"a private release every hour" if hourly else "a nightly private release"} of the \
{"electricity load of" if is_load else f"{now.what} in"} the French regions.
# Relative paths start at this file's folder. Unknown keys are refused.

[stream]
{f'name = "french-{now.what}"':32}# the ledger knows the stream by this name
unit = "customer"               # or "roaming", with leaves_per_step
step = "30min"
{BY_THE_HOUR if hourly else ""}time_zone = "Europe/Paris"
day = "elapsed"                 # a day of 46, 48 or 50 half-hours; "fixed": 48 slots on every local day

{_mechanism(kind)}
[privacy]
epsilon = "1"                   # the most that any window may lose; a string, kept exact
{DELTA if is_rho else ""}window = 48                     # steps
{f'population = "french-{now.people}"':32}# whose readings: \
the privacy budget is theirs, whatever streams are called
{f'alpha = "{now.alpha}"':32}# {now.unit}: changes of one customer's reading up to this; \
c times as much, {"c^2 rho" if is_rho else "c epsilon"}
{f'resolution = "{now.resolution}"':32}# {now.unit}: readings are counted in this unit
{COUNTS if kind.counts else NO_COUNTS}
{f'bounds = ["0", "{now.largest}"]':32}# {now.unit}: public bounds of one reading; beyond them it is clamped
lower_bound = "0"               # the least that is published for a region

[hierarchy.parents]             # node = parent, the root's ""; or [hierarchy] file = "hierarchy.csv"
{_rows({"FR": "", **parents})}
[hierarchy.names]               # what readers see; [hierarchy.places] has places: 84 = [45.5, 4.5]
{_rows({"FR": "France (mainland)", **names})}
[budget]
{f"levels = [{shares}]":30}  # a share for each level, root first; 0 (not for leaves): derived
restatement_share = "1/10"      # of epsilon, kept to measure a wrong day again: 1/9 more noise before
{_samples(kind) if takes_samples else ""}
[input]                         # <folder>/region=<code>/date=<YYYY-MM-DD>/\
{"hour=<HH>/" if hourly else ""}*.parquet
folder = "dumps"
{METERED if kind.metered else AGGREGATED}
timestamp = "timestamp"         # with a time zone: instants; without: local wall clock
value = "{now.column}"
marker = "_SUCCESS"             # a dump has arrived when this file is there; or file_list = "_FILES"
# region = "zone"               # one folder a day holds all leaves, and this column says which row is whose
{ROUNDING if is_load else ""}# time_limit = "6h"             # for reading a day's dump
# raw_retention_days = 30       # after which dumps are deleted by whoever keeps them: OptStream deletes none
{FACTOR if is_load else ""}\
# [[input.changes]]             # what is other in later dumps; as many as the archive has: docs/data/input.md
# valid_from = 2015-07-01
# value = "load"

[published]                     # the public zone: nothing else leaves
folder = "published"
value = "{now.column}"
# rounding = "unbiased"         # for many small counts, whose means over time are to stay; else "nearest"
{HELD_AN_HOUR if hourly else HELD_A_DAY}
# errors = false                # no files of how sure sums are: see docs/data/sums.md
# measurements = true           # the noisy measurements beside each release: see docs/data/measurements.md
# publisher = "Example Grid"    # for the page's citation; so too licence = "CC BY 4.0"
# signing_key = "trusted/signing.pem"  # `optstream keys new` makes it; readers check with its public key

[trusted]                       # staging, measurements, validation results, lineage
folder = "trusted"
validation_retention_days = 90  # for `optstream purge`; so too staging_, lineage_, raw_state_retention_days

{EVERY_HOUR if hourly else EVERY_NIGHT}
[ledger]                        # OPTSTREAM_LEDGER_URL in the environment replaces it
url = "sqlite:///trusted/ledger.sqlite"
"""


def _hierarchy(levels: int) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Parent and name of each node below the root."""
    regions = {code: region.name for code, region in FRENCH_REGIONS.items()}
    if levels == 2:
        return dict.fromkeys(regions, "FR"), regions
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
    return parents, names


def _rows(table: Mapping[str, str]) -> str:
    return "".join(f'{node} = "{value}"\n' for node, value in table.items())


def _mechanism(kind: Kind) -> str:
    """The mechanism's table."""
    section = MECHANISMS[kind.mechanism]
    if section.tables:
        return OPTSTREAM
    table = "[mechanism]                     # its keys, and others: docs/methods/mechanisms.md\n"
    table += f'name = "{kind.mechanism}"\n'
    if "scale" in section.model_fields:
        size = f"{kind.words.unit}: a typical leaf; public knowledge, which decides how many blocks"
        table += f"{f'scale = {kind.words.scale}':32}# {size}\n"
        table += 'country = "FR"                  # whose public holidays count as Sundays\n'
    return table


def _samples(kind: Kind) -> str:
    """What is OptStream's alone."""
    return f"""\
[sampling]
method = "equally_spaced"       # or "l1", points where the load bends, with threshold = \
"{kind.words.threshold}" ({kind.words.unit} × steps)
n_samples = 10                  # in any window

[features]                      # partitions of the day by clock times, whose sums are measured too
"day parts" = ["07:00", "12:00", "18:00"]
"day" = []
"""


OPTSTREAM = """\
[mechanism]                     # others (docs/methods/mechanisms.md) go without sampling and features
name = "OptStream"
"""
BY_THE_HOUR = 'period = "hour"                 # each hour is a release of its own: docs/hours.md\n'
DELTA = 'delta = "1e-6"                  # beside the factor e^epsilon; far less than 1 / customers\n'
COUNTS = "counts = true                   # whole numbers: HistoryInformed goes by it"
NO_COUNTS = """\
# counts = true                 # whole numbers of trips or visits, resolution "1": \
HistoryInformed goes by it"""
AGGREGATED = 'schema = "aggregated"           # a row a step; or "metered": a row a customer and step'
METERED = """\
schema = "metered"              # a row a customer and step; or "aggregated": a row a step
customer = "customer_id"        # whose reading a row is: no name or address"""
ROUNDING = """\
# supplier_rounding = "1"       # MW: sums that come rounded to whole MW; added to alpha: docs/data/input.md
"""
FACTOR = '# factor = "0.001"              # times a number of the column: MW where it holds kW\n'
HELD_A_DAY = """\
# not_before = "06:00"          # of the day after: \
a drawn day is held until then; a later run publishes it"""
HELD_AN_HOUR = """\
# not_before = "00:15"          # after the end of the hour: a drawn hour is held until then"""
EVERY_NIGHT = """\
# [release]                     # of HistoryInformed: so many days before the newest get a new estimate
# revise_days = 14              # each night, at no cost; 0 for none, see docs/methods/history-informed.md

# [watch]                       # of a stream that runs every night: alarms, see docs/monitoring.md
# late_after = "12:00"          # of the day after: from then on a day that is not released is an alarm
# max_runtime = "2h"            # a day that is under way for longer is stuck
# notify = ["custom-webhook/optstream"]

# [schedule]                    # of `optstream serve`, in the stream's time zone: see docs/schedule.md
# cron = "0 3 * * *"            # the first look of a night, at the day before
# look_every_minutes = 30       # further looks at what is late, until [watch] late_after
"""
EVERY_HOUR = """\
# [watch]                       # of a stream that runs every hour: alarms, see docs/monitoring.md
# late_after = "00:30"          # after the end of an hour: from then on it is an alarm
# max_runtime = "10min"         # an hour under way for longer is stuck
# notify = ["custom-webhook/optstream"]

# [schedule]                    # of `optstream serve`, in the stream's time zone: see docs/schedule.md
# cron = "5 * * * *"            # five minutes past, at the hour before
# look_every_minutes = 10       # further looks at what is late
"""
EXAMPLE = example_of(Kind())
"""The usual one."""
