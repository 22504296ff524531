"""The commented configuration that `optstream init` writes."""

import re

from optstream.errors import ParameterError

EXAMPLE = """\
# OptStream: a nightly private release of the electricity load of the French regions.
# Relative paths start at this file's folder. Unknown keys are refused.

[stream]
name = "french-load"            # the ledger knows the stream by this name
unit = "customer"               # or "roaming", with leaves_per_step
step = "30min"
time_zone = "Europe/Paris"
day = "elapsed"                 # a day of 46, 48 or 50 half-hours; "fixed": 48 slots on every local day

[mechanism]                     # others (docs/methods/mechanisms.md) go without sampling, features and stages
name = "OptStream"
weights = "variance"            # or "paper"

[privacy]
epsilon = "1"                   # the most that any window may lose; a string, kept exact
window = 48                     # steps
population = "french-customers" # whose readings: the privacy budget is theirs, whatever streams are called
alpha = "10"                    # MW: changes of one customer's reading up to this; c times as much, c epsilon
resolution = "0.001"            # MW: readings are counted in this unit
# counts = true                 # whole numbers of trips or visits, resolution "1": HistoryInformed goes by it
bounds = ["0", "20000"]         # MW: public bounds of one reading; beyond them it is clamped
lower_bound = "0"               # the least that is published for a region
calibration = "strict"
windows = "sliding"             # every window, also one that straddles midnight

[hierarchy.parents]             # node = parent, the root's ""; or [hierarchy] file = "hierarchy.csv"
FR = ""
11 = "FR"
24 = "FR"
27 = "FR"
28 = "FR"
32 = "FR"
44 = "FR"
52 = "FR"
53 = "FR"
75 = "FR"
76 = "FR"
84 = "FR"
93 = "FR"

[hierarchy.names]               # what readers see; [hierarchy.places] has places: 84 = [45.5, 4.5]
FR = "France (mainland)"
11 = "Île-de-France"
24 = "Centre-Val de Loire"
27 = "Bourgogne-Franche-Comté"
28 = "Normandie"
32 = "Hauts-de-France"
44 = "Grand Est"
52 = "Pays de la Loire"
53 = "Bretagne"
75 = "Nouvelle-Aquitaine"
76 = "Occitanie"
84 = "Auvergne-Rhône-Alpes"
93 = "Provence-Alpes-Côte d'Azur"

[budget]
levels = ["1/2", "1/2"]         # a share for each level, root first; 0 (not for leaves): derived
restatement_share = "0"         # of epsilon, kept back: without, a day is never measured again
stages = ["1/2", "1/2"]         # samples, features; with method "l1" three: sampling, samples, features

[sampling]
method = "equally_spaced"       # or "l1", points where the load bends, with threshold = "500" (MW × steps)
n_samples = 10                  # in any window

[features]                      # partitions of the day by clock times, whose sums are measured too
"day parts" = ["07:00", "12:00", "18:00"]
"day" = []

[input]                         # <folder>/region=<code>/date=<YYYY-MM-DD>/*.parquet
folder = "dumps"
schema = "aggregated"           # a row a step; or "metered": a row a customer and step
timestamp = "timestamp"         # with a time zone: instants; without: local wall clock
value = "load_mw"
marker = "_SUCCESS"             # a dump has arrived when this file is there; or file_list = "_FILES"
# region = "zone"               # one folder a day holds all leaves, and this column says which row is whose
# supplier_rounding = "1"       # MW: sums that come rounded to whole MW; added to alpha: docs/data/input.md
# time_limit = "6h"             # for reading a day's dump
# raw_retention_days = 30       # after which dumps are deleted by whoever keeps them: OptStream deletes none
# factor = "0.001"              # times a number of the column: MW where it holds kW
# [[input.changes]]             # what is other in later dumps; as many as the archive has: docs/data/input.md
# valid_from = 2015-07-01
# value = "load"

[published]                     # the public zone: nothing else leaves
folder = "published"
value = "load_mw"
# rounding = "unbiased"         # for many small counts, whose means over time are to stay; else "nearest"
# not_before = "06:00"          # of the day after: a drawn day is held until then; a later run publishes it
# errors = false                # no files of how sure sums are: see docs/data/sums.md
# measurements = true           # the noisy measurements beside each release: see docs/data/measurements.md
# publisher = "Example Grid"    # for the page's citation; so too licence = "CC BY 4.0"
# signing_key = "trusted/signing.pem"  # `optstream keys new` makes it; readers check with its public key

[trusted]                       # staging, measurements, validation results, lineage
folder = "trusted"
validation_retention_days = 90  # for `optstream purge`; so too staging_, lineage_, raw_state_retention_days

# [questions."quiet nights"]    # answered beside the data, at no cost in privacy: see docs/data/questions.md
# ask = "low"                   # or "sum"; "jump" and "drop" with at_least
# window = "4h"
# at_most = "300000"            # MW, added up over the window's steps
# nodes = ["FR"]                # or level = 1

# [release]                     # of HistoryInformed: so many days before the newest get a new estimate
# revise_days = 14              # each night, at no cost; 0 for none, see docs/methods/history-informed.md

# [watch]                       # of a stream that runs every night: alarms, see docs/monitoring.md
# late_after = "12:00"          # of the day after: from then on a day that is not released is an alarm
# max_runtime = "2h"            # a day that is under way for longer is stuck
# notify = ["custom-webhook/optstream"]

# [schedule]                    # of `optstream serve`, in the stream's time zone: see docs/schedule.md
# cron = "0 3 * * *"            # the first look of a night, at the day before
# look_every_minutes = 30       # further looks at what is late, until [watch] late_after

[ledger]                        # OPTSTREAM_LEDGER_URL in the environment replaces it
url = "sqlite:///trusted/ledger.sqlite"
"""


def changed(text: str, pattern: str, new: str) -> str:
    """The text with the one place that has the pattern replaced. Raises ParameterError if it has not one."""
    found, n_places = re.subn(pattern, new, text, flags=re.MULTILINE)
    if n_places != 1:
        raise ParameterError(f"the example must have one place like {pattern}; it has {n_places}")
    return found
