"""Refusals with key, rule and remedy, and examples of every kind that are taken."""

import re
import tomllib
from datetime import date, timedelta
from itertools import product

import pytest
import tomlkit

from optstream.errors import ConfigurationError, ParameterError
from optstream.mechanisms import MECHANISMS, mechanism_named
from tasks.config.load import REMOVED
from tasks.config.schema import EVERY_HOUR
from tasks.config.templates import example_of

LOAD, HISTORY = example_of(), example_of("HistoryInformed")
HOURS, PEGASUS = example_of("PeGaSus", hourly=True), example_of("PeGaSus")
METERED = example_of("PeGaSus", metered=True)
MANY_DAYS = [date(2000, 1, 1) + timedelta(days=number) for number in range(1001)]
COLD = 'covariates = [{ name = "cold", path = "cold", source = "made up" }]'
WARMTH = 'covariates = [{{ name = "warmth", source = "made up", {} }}]'
HASH = "0" * 64
FACT = "constraints = [{{ {} }}]"
CUTS = 'features."day parts" = '
FIRST = '[[input.changes]]\nvalid_from = 2015-07-01\nvalue = "load_kw"\n'
SECOND = FIRST.replace("2015", "2016").replace("load_kw", "load_gw")
COUNTED = 'privacy.counts = true\nprivacy.resolution = "1"\n'
TUNED = "how a mechanism is tuned inside"


def refused(load, *arguments, **keys):
    with pytest.raises(ConfigurationError) as caught:
        load(*arguments, **keys)
    return str(caught.value)


def laid_over(text, piece):
    """The configuration with the keys of another in place of its own, table by table."""

    def laid(below, above):
        for key, value in above.items():
            both = isinstance(below.get(key), dict) and isinstance(value, dict)
            below[key] = laid(below[key], value) if both else value
        return below

    return tomlkit.dumps(laid(tomllib.loads(text), tomllib.loads(piece)))


SECTORS = """
hierarchy.margins.sector = ["industry", "households"]
budget = { levels = ["1/4", "1/4", "1/4"], margins.sector = "1/4" }
"""
TWO_DIMENSIONS = laid_over(example_of("Laplace"), SECTORS)
CASES = {
    LOAD: [
        ('privacy.epsilon = "-1"', "privacy.epsilon must be a decimal string greater than 0"),
        ("privacy.epsilon = 0.1", "privacy.epsilon must be a decimal string"),
        ('privacy.epsilon = "1e999999999"', "privacy.epsilon must be a decimal string"),
        ('privacy.alpha = "0"', "privacy.alpha must be a decimal string greater than 0, such as"),
        ('privacy.window = "48"', "privacy.window must be an integer in [1, 1000000]; got '48'"),
        ('privacy.bounds = ["20000", "0"]', "privacy.bounds must have the lower first"),
        ('privacy.bounds = ["0", "1e15"]', "privacy.bounds must be below 2^50 units"),
        ('input.missing_rows = "zero"\nprivacy.bounds = ["1", "20000"]', "privacy.bounds must hold 0 with"),
        ('published.value = "Load (MW)"', "published.value must be letters, digits and underscores"),
        ('published.value = "Date"', "none of the columns date, step, timestamp, node, parent, level"),
        ("privacy.windw = 48", "privacy.windw is not a known key; did you mean window?"),
        ('budget.levels = ["1/2", "3/4"]', "budget.levels must add up to at most 1; got 5/4"),
        ('budget.levels = ["1", "0"]', "budget.levels[1] must be greater than 0, for leaves stand on it"),
        ('budget.levels = ["1"]', "budget.levels must have a share for each of 2 levels; got 1"),
        (f'{CUTS}["12:00", "07:00"]', "the parts of a feature may not overlap"),
        (f'{CUTS}["07:00", "25:00"]', "features.'day parts' must be a list of clock times"),
        ("sampling.n_samples = 1", "sampling.n_samples must be an integer in [2, privacy.window]; got 1"),
        ("sampling.n_samples = 49", "sampling.n_samples must be an integer in [2, 48]; got 49"),
        ('sampling.threshold = "-1"', "sampling.threshold must be a decimal string of at least 0"),
        ('sampling.method = "l1"', "sampling.method must be left out: with sampling.threshold points"),
        ('sampling = { method = "equally_spaced", threshold = "5" }', "sampling.method must be left out"),
        ('mechanism.noise = "joint"\nstream.leaves_per_window = 1\nsampling.threshold = "1"',
         'mechanism.noise "joint" is for equally spaced points'),
        ("samplign = {}", "samplign is not a known section; did you mean sampling?"),
        ('hierarchy.parents.84 = ""', "exactly one root (a node without parent); got 'FR', '84'"),
        ('hierarchy.parents = { A = "B", B = "A" }', "the hierarchy has a cycle through 'A', 'B'"),
        ('hierarchy.parents.84 = "IT"', "the parent 'IT' of node '84' is not itself a node"),
        ('hierarchy.parents."../x" = "FR"', "hierarchy.parents must name nodes, which name folders, by lett"),
        ('hierarchy.parents."Zu\\u0308rich" = "FR"', "by letters (without combining marks), digits"),
        ('hierarchy.parents."N/A" = "FR"', "got 'N/A'. What readers see may be any words: hierarchy.names"),
        ('hierarchy.names.85 = "nowhere"', "'85' has a name or a place, and is not a node"),
        ('hierarchy.names.84 = "a\\nb"', "node '84': name: must be printable text of 1 to 100 characters"),
        ('hierarchy.names.84 = "\\u202eabc"', "name: must be printable text"),
        ("hierarchy.names.84 = 84", "hierarchy.names must be a table node ="),
        ("hierarchy.places.84 = [95.0, 4.5]", "latitude: Input should be less than or equal to 90"),
        ("hierarchy.places.84 = [45.0]", "hierarchy.places must be a table node ="),
        (FACT.format('nodes = ["84"]'), "must have one of the keys at_most, most_change, totals; got none"),
        (FACT.format('nodes = ["84"], at_most = "1", most_change = "up"'), "got at_most, most_change"),
        (FACT.format('at_most = "5"'), "[[constraints]] 1: must have nodes, or totals, whose file"),
        (FACT.format('nodes = 0, totals = "a.csv"'), "whose file names them; got 0 with totals"),
        (FACT.format('nodes = ["85"], at_most = "5"'), "must be of the hierarchy, such as '11'; got '85'"),
        (FACT.format('nodes = "sector", at_most = "5"'), "of the hierarchy, such as '11'; got 'sector'"),
        (FACT.format('nodes = 0.5, at_most = "5"'), "[[constraints]] 1: nodes must be a list of nodes"),
        (FACT.format("nodes = 0, at_most = 0.5"), "[[constraints]] 1: at_most must be a decimal string"),
        (FACT.format('nodes = 0, most_change = "down"'), 'such as "300", or "up" for what never falls'),
        (FACT.format('totals = "a.parquet"'), "[[constraints]] 1: totals must be the path of a .csv file"),
        (FACT.format('totals = "trusted/a.csv"'), "totals must not lie in trusted.folder, which is private"),
        (FACT.format('totals = "dumps/../dumps/a.csv"'), "totals must not lie in input.folder, which is"),
        (FACT.format('nodes = 0, atmost = "5"'), "atmost is not a known key; did you mean at_most?"),
        ("constraints.at_most = 5", "constraints must be a list of at most 100 tables, each headed [[constr"),
        ('stream.step = "7min"', "must divide a day of 1440 minutes; got 7"),
        ('stream.step = "2h"', "is not a whole number of steps of 120 minutes"),
        ('stream.time_zone = "Europe/Pari"', "must be an IANA name"),
        *(
            (f'stream.time_zone = "{zone}"', '"Etc/GMT-1", whose sign is POSIX\'s, for an hour ahead of UTC')
            for zone in ("GMT+1", "UTC+01:00", "+01:00", "UTC+1")
        ),
        ('stream.name = "../french"', "stream.name must be 1 to 64 letters"),
        ("stream.leaves_per_step = 2", 'stream.leaves_per_step must be 1 for unit "customer"; got 2'),
        ('stream.period = "week"', 'stream.period must be "day" or "hour"'),
        ("stream.seed = 1", "stream.seed is not a known key"),
        ('noise.source = "simulated"', "noise is not a known section"),
        ('input.marker = "../_SUCCESS"', "input.marker must be a plain file name"),
        ('input.file_list = "b"', "input must have one of the keys marker, file_list"),
        ('input.timestamp = "load_mw"', "must be different columns"),
        ('trusted.folder = "published/trusted"', "trusted.folder must not lie in published.folder"),
        ('input.folder = "./published"', "input.folder must not lie in published.folder"),
        ('input.folder = "memory://a/b"\npublished.folder = "memory://a"', "input.folder must not lie in p"),
        ('trusted.folder = "memory://a/trusted"', "trusted.folder must be a path of this machine"),
        ('published.folder = "nosuch://a/b"', "published.folder: nosuch:// is not a store that can"),
        ('published.folder = "s3://a/../b"', "published.folder must be a path, or a plain URL"),
        ('input.folder = "file://dumps"', "a file:// URL has three slashes"),
        ('ledger.url = "sqlite:///published/l.sqlite"', "the file of ledger.url must not lie in published.f"),
        ('ledger.url = "sqlite://"', "a ledger in memory would forget the spent budget"),
        *((f'ledger.url = "{url}"', "ledger.url (or OPTSTREAM_LEDGER_URL) must be an SQLAlchemy URL")
          for url in ("sqlite:///x.sqlite?mode=memory&uri=true", "sqlite:///file:x?uri=true",
                      "sqlite://trusted/x.sqlite", "sqlite:///~/x.sqlite", "sqlite:///:memory:",
                      "sqlite:///file:x")),
        *((f"trusted.lineage_retention_days = {value}",
           "trusted.lineage_retention_days must be a number of days, an integer in [1, 36500]; got")
          for value in ("0", "-1", "36501", "1.5", "true", '"7"')),
        *((f'published.about.publisher = "{text}"', "and publisher: must be printable text")
          for text in ("", "two\\nlines", " Example", "\\u202egrid", "x" * 201)),
        ('published.about.publishr = "Grid"', "title, description, contact, citation"),
        ("published.about.publisher = 1", "published.about must be a table of printable texts of 1 to 200 c"),
        ('published.about.licence_address = "nowhere"', "and licence_address: must begin with http:// or"),
        ('watch.late_after = "25:00"', 'watch.late_after must be a clock time such as "12:00"'),
        ("watch.max_runtime = 60", 'such as "30min" or "2h", at most "9999h"; got 60'),
        ('watch.first_day = "tomorrow"', "watch.first_day must be a day such as"),
        ('watch.accepted_gaps = ["2016-02-30"]', "watch.accepted_gaps must be a list of at most 10000 days"),
        ('watch.notify = ["Custom Webhook"]', "watch.notify must be a list of at most 20 notification block"),
        ('watch.log = "trusted/ledger.sqlite"', "watch.log must be the path of a file that ends in .jsonl"),
        ('watch.log = "published/x.jsonl"', "watch.log must not lie in published.folder, which is the publi"),
        ('watch.late_aftr = "06:00"', "watch.late_aftr is not a known key; did you mean late_after?"),
        ("schedule.catch_up_days = 0", "schedule.catch_up_days must be an integer in [1, 366]"),
        ('schedule.crons = "0 3 * * *"', "schedule.crons is not a known key; did you mean cron?"),
        ('schedule.cron = "0 12 * * *"', "schedule.cron must begin before watch.late_after, 12:00; got"),
        *((f'schedule.cron = "{cron}"', "schedule.cron must be five fields of numbers")
          for cron in ("0 3 * *", "0 3 * * * *", "0  3 * * *", "60 3 * * *", "0 24 * * *", "0 3 0 * *",
                       "0 3 * 13 *", "0 3 * * 8", "0 3 * * mon", "@daily", "5/10 3 * * *", "*/0 3 * * *",
                       "9-3 3 * * *", "0,, 3 * * *", "0 3 31 2 *", "0 3 L * *", "")),
        ('input = { step = "20min", combine = "sum" }', "input.step must divide stream.step"),
        ('input.step = "15min"', "input.combine must say how rows of a finer input.step make a step"),
        ('input.combine = "sum"', "be left out where none is finer"),
        ('input.stamps_zone = "Europe/Paris"', 'must be "UTC", or a fixed distance from it'),
        ('input = { period_number = "n", stamps = "end" }', "leave stamps and stamps_zone out"),
        ('input.stamps = "middle"', 'input.stamps must be "start" or "end"'),
        *((f'input.stamps_format = "{wrong}"', "must be a format such as")
          for wrong in ("%d/%m %H:%M", "%d/%m/%Y %m", "%d/%m/%Y %", "%d/%m/%y%Y", "%d/%m/%Y %I:%M",
                        "%d/%m/%Y %H %I %p")),
        ('input.path = "{region}.csv"', "watch.first_day must be given for an input.path without"),
        ('input.path = "{date:%Y-%m-%d}.csv"', "input.path must hold {region}, or input.region name"),
        *((f'input.path = "{wrong}"', "and a date in it must have its year")
          for wrong in ("{region}/{date:%d}.csv", "{region}/{date:%Y}/{utc:%m}.csv")),
        ('input.path = "{region}/{date:%Y-%B}.csv"', "and %B is none of its parts of a date"),
        *((f'input.path = "{wrong}"', "and it must name folders and a file below input.folder")
          for wrong in ("../{region}/{date:%Y}.csv", "/{region}/{date:%Y}.csv", "_x/{region}_{date:%Y}")),
        ('input.path = "{region}/{day:%Y}.csv"', "and it has a brace that is none of these"),
        ('input.path = "{region}/{date:%Y-%m-%d}/{hour}.csv"', 'for stream.period "hour" alone'),
        (FIRST + "value_ = 1", "[[input.changes]] 1: value_ is not a known key; did you mean value?"),
        (FIRST + SECOND + "x = 1", "[[input.changes]] 2: x is not a known key; known: valid_from, timestamp"),
        (FIRST + SECOND + "timestamp = 1", "2: timestamp must be the name of a column, of 1 to 200 char"),
        (FIRST + 'marker = "../x"', "[[input.changes]] 1: marker must be a plain file name"),
        (FIRST + 'factor = "0"', "[[input.changes]] 1: factor must be a decimal string greater than 0"),
        ("input.factor = 0.001", "input.factor must be a decimal string greater than 0"),
        ('[[input.changes]]\nvalue = "x"', "1: valid_from is missing; it must be a day such as"),
        ("input.changes = 3", "input.changes must be a list of at most 1000 tables, each headed [[input.ch"),
        *((FIRST.replace("2015-07-01", bad), "valid_from must be a day such as")
          for bad in ("20150701", "2015-07-01T00:00:00Z", "07:00:00", '"2015-7-1"', '"2015-W27-3"',
                      '"2015-02-30"', '"20150701"', "true")),
        (FIRST + FIRST.replace("kw", "gw"), "[[input.changes]] 2: valid_from must be later than 2015-07-01"),
        (SECOND + FIRST, "later than 2016-07-01, that of the entry before it; got 2015-07-01"),
        (FIRST + FIRST.replace("2015", "2016"), "2: must change something: from 2016-07-01"),
        (FIRST.replace("load_kw", "load_mw") + 'factor = "1.0"', "[[input.changes]] 1: must change somethin"),
        (FIRST + 'marker = "a"\nfile_list = "b"', "1: must have one of the keys marker, file_list; got both"),
        ('input.folder = "s3://bucket/dumps"\n' + FIRST + 'marker = ""', 'marker may be "" for folders of a'),
        (FIRST.replace("load_kw", "timestamp"), "1: timestamp, value, customer and region must be different"),
        (FIRST + 'schema = "metered"', "1: schema must be left out: it decides what is protected"),
        (FIRST + 'folder = "other"', "1: folder must be left out: all dumps lie below one folder"),
        *((FIRST + key, "must be left out: the privacy guarantee is the same on all days")
          for key in ('alpha = "5"', 'bounds = ["0", "5"]')),
        (FIRST + 'factor = "1e-30"', "factor of [[input.changes]] from 2015-07-01 must leave privacy.bounds"),
        ('input.factor = "1e30"', "input.factor must leave privacy.bounds below 10^15 and 2^50 units"),
        ('input.schema = "metered"\n[[input.changes]]\nvalid_from = 2015-07-01\ncustomer = "load_mw"',
         "customer and region must be different columns; got ['timestamp', 'load_mw', 'load_mw']"),
        ("".join(f'[[input.changes]]\nvalid_from = {day}\nvalue = "v{day}"\n' for day in MANY_DAYS),
         "a list of at most 1000 tables"),
        ('budget.levels = "best"', "budget.levels must be a list of shares in [0, 1]"),
        ('budget.levels = "model"', "shares are numbers: `optstream advise --write FILE` writes those"),
        ('privacy.epsilon = "1e-14"\nmechanism.name = "PeGaSus"', "mechanism: the noise would outgrow"),
        ("mechanism.name = 7", "mechanism.name must be \"OptStream\" or"),
        ('mechanism.name = "Furrier"', "or \"HistoryInformed\"; got 'Furrier'"),
        ("mechanism.leaves_per_period = 1", "left out: noise follows stream.unit and input.schema"),
        ('privacy.delta = "1e-6"', "privacy.delta is for mechanism.name"),
        ('mechanism.name = "Sample"', "[sampling] must be left out: it is for mechanism.name \"OptStream\""),
        ('mechanism.name = "Sample"', "[features] must be left out"),
        *((f'{table}.folder = "s3://AKIA1:hush@bucket/x"', "credentials come from the environment")
          for table in ("input", "published", "trusted")),
    ],
    PEGASUS: [
        ('mechanism.threshold = "-1"', "threshold of PeGaSus must be"),
        ('mechanism.treshold = "5"', "mechanism.treshold is not a known key; did you mean threshold"),
        ("mechanism.n_draws = 5", "mechanism.n_draws is not a known key"),
        ('mechanism.groups = "children"', f"mechanism.groups must be left out: {TUNED}"),
    ],
    METERED: [
        ('input.supplier_rounding = "1"', "input.supplier_rounding must be left out for input.schema"),
        ('published.reporting = true\nmechanism.name = "Gaussian"\nprivacy.delta = "1e-6"', "in epsilon"),
        ('published = { reporting = true, value = "customers" }', "another column"),
    ],
    HOURS: [
        ('stream.step = "2h"', 'shorter step, or period "day"'),
        ('stream.time_zone = "Australia/Lord_Howe"', 'set period = "day"'),
        ('mechanism.name = "Fourier"', 'stream.period "hour" is for mechanism.name "Laplace"'),
        ('mechanism.name = "HistoryInformed"\nrelease.revise_days = 2', "release.revise_days must be 0"),
        ('schedule.cron = "0 3 * * *"', 'must fire every hour for stream.period "hour"'),
        (f'mechanism.name = "HistoryInformed"\n{COLD}', 'covariates is for stream.period "day"'),
        (FACT.format('totals = "totals.csv"'), 'totals is of whole days; leave it out for stream.period'),
    ],
    HISTORY: [
        ("published.reporting = true", 'is for input.schema "metered"'),
        ("covariates = 1", "covariates must be a list of at most 8 tables, each headed [[covariates]]"),
        ('covariates = [{ name = "w", path = "w" }]', "1: source is missing; it must be a text of 1 to"),
        (WARMTH.format('path = "w", origin = "x"'), "[[covariates]] 1: origin is not a known key"),
        (WARMTH.format('path = "w", publication_lag_days = -1'), "must be an integer in [0, 366]"),
        ('covariates = [{ name = "a", path = "w", source = "x" }, { name = "a", path = "v", source = "x" }]',
         "[[covariates]] 2: name must not be that of another covariate; got 'a'"),
        (WARMTH.format('path = "w", nodes = ["99"]'), "must be of the hierarchy, such as '11'; got '99'"),
        (WARMTH.format('path = "w.csv"'), "1: sha256 is missing; it must be, of a file, what `sha256sum`"),
        (WARMTH.format('path = "w.csv", sha256 = "1f"'), "must be of a file, what `sha256sum` prints: 64"),
        (WARMTH.format(f'path = "w", sha256 = "{HASH}"'), "sha256 is for a .parquet or .csv file; got the"),
        (WARMTH.format('path = "w", level = 2'), "1: level must be left out: nodes of the deepest level"),
        *((WARMTH.format(f'path = "{place}"'), "1: path must not lie in input.folder, which is private")
          for place in ("dumps", "dumps/region=84")),
        (WARMTH.format(f'path = "trusted/x.csv", sha256 = "{HASH}"'), "path must not lie in trusted.folder"),
        ('hierarchy.cells.53 = ["homes"]', "hierarchy.cells must be left out without hierarchy.margins"),
        ('mechanism.noise = "joint"', 'noise "joint" at levels of several nodes is for customers whose'),
        ('mechanism.noise = "loud"', 'mechanism.noise must be "joint" or "laplace"'),
        ("stream.leaves_per_window = 2", "stream.leaves_per_window must be 1, where each customer's"),
        ('stream.unit = "roaming"\nmechanism.noise = "joint"', 'which stream.unit "customer" and input.sche'),
        ('stream.leaves_per_window = 1\ninput.schema = "metered"', 'must be left out for input.schema "mete'),
        ('stream.leaves_per_window = 1\nstream.unit = "roaming"', 'must be left out for unit "roaming"'),
        ("published.levels = [1]", "published.levels must be 0, 1 and so on without gaps, below 2; got [1]"),
        ('mechanism = { name = "Sample", noise = "joint" }', "mechanism.noise is not a known key"),
        ('privacy.counts = true\nprivacy.resolution = "2"', 'privacy.resolution must be "1" with privacy.c'),
        (f'{COUNTED}privacy.lower_bound = "-1"', "privacy.lower_bound must be at least 0 with privacy.co"),
    ],
    TWO_DIMENSIONS: [
        ("published.levels = [0]", "published.levels must be left out with hierarchy.margins"),
        ('hierarchy.margins.tariff = ["day"]', "hierarchy.margins must have one margin: three cannot be"),
        ('budget.margins.tariff = "0"', "budget.margins must have a share for each of hierarchy.margins and"),
        ('budget.levels = ["1/2", "1/4", "1/4"]', "budget.levels and budget.margins must add up to at most"),
        ('budget.levels = ["1/2", "1/4"]', "a share for each of 3 levels, the cells' among them, and a marg"),
        ('hierarchy.margins.sector = ["industry", "FR"]', "of a cell is region-node; 'FR' would be used t"),
        ('hierarchy.margins.sector = ["house/holds"]', "hierarchy.margins must be a table of one margin"),
        ('hierarchy.cells.99 = ["households"]', "cells must be of leaves of the hierarchy; '99' is none"),
        ('hierarchy.cells.53 = ["homes"]', "cells of '53' must be of one or more nodes of margin 'sector';"),
        ("hierarchy.cells.53 = []", "cells of '53' must be of one or more nodes of margin 'sector'; got non"),
        ('input.margin = "sector"', "input.margin must be left out without hierarchy.margins and input.regi"),
        ('input = { margin = "sector", region = "sector" }', "must be different columns"),
        ('hierarchy.changes = [{ valid_from = 2016-07-01, removed = ["53"] }]', "and margin 'sector' are no"),
        (f'mechanism.name = "HistoryInformed"\n{COUNTED}', "privacy.counts must be false for HistoryInform"),
    ],
}  # fmt: skip
TEMPLATES = (False, False), (True, False), (False, True)
"""Whether an example is of counts, and whether it is metered."""


@pytest.mark.parametrize(
    ("text", "piece", "message"), [(text, *case) for text, cases in CASES.items() for case in cases],
    ids=[piece[:40] for cases in CASES.values() for piece, _ in cases],
)  # fmt: skip
def test_a_problem_is_reported_with_its_key_its_rule_and_the_remedy(load_text, text, piece, message):
    found = refused(load_text, laid_over(text, piece))
    assert message in found
    assert "hush" not in found


@pytest.mark.parametrize("named", sorted(REMOVED))
def test_of_a_key_of_an_earlier_version_it_is_said_once_what_to_do_without_it(load_text, named):
    table, _, key = named.removesuffix(' = "model"').partition(".")
    line = "" if not key else f'{key} = "model"' if "=" in named else f"{key} = 7"
    heading = "[[covariates]]" if table == "covariates" else f"[{table}]"
    text = LOAD.replace('levels = ["1/2", "1/2"]', "")
    text, n_found = re.subn(rf"^(# )?\[{table}\].*", f"{heading}\n{line}", text, flags=re.M)
    assert refused(load_text, text if n_found else f"{text}\n{heading}\n{line}").count(REMOVED[named]) == 1


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_kind_is_usable_and_is_what_was_asked_for(load_text, name):
    hours = [False, True][: 1 + mechanism_named(name).serves_hours]
    for (counts, metered), hourly in product(TEMPLATES, hours):
        settings = load_text(example_of(name, counts, metered, hourly))
        assert settings.mechanism.name == name
        assert (settings.privacy.counts, settings.metered) == (counts, metered)
        assert settings.tree_of(date.min).n_levels == 2 == len(settings.level_shares)
        assert settings.calendar.period == ("hour" if hourly else "day")
        assert set(settings.node_facts) == set(settings.tree_of(date.min).nodes)
        if counts:
            assert (settings.privacy.resolution, settings.privacy.lower_bound) == (1, 0)
        if metered:  # then it is protected, too, whether somebody has readings at all
            assert max(map(abs, settings.privacy.bounds)) <= settings.privacy.alpha


def test_what_an_example_by_the_hour_leaves_to_be_chosen_is_usable_too(load_text):
    text = example_of("Laplace", hourly=True).replace('cron = "0 3 * * *"', f'cron = "{EVERY_HOUR}"')
    chosen = r"^# (?=not_before|\[watch\]|late_after|max_runtime|\[schedule\]|cron)"
    settings = load_text(re.sub(chosen, "", text, flags=re.MULTILINE))
    assert settings.schedule.cron == EVERY_HOUR
    assert settings.watch is not None


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"counts": True, "metered": True}, "of counts or metered, not of both"),
        ({"hourly": True}, r"by the hour is for mechanism .*\"PeGaSus\".*; got 'OptStream'"),
    ],
)
def test_what_there_is_no_example_of_is_refused(wrong, message):
    with pytest.raises(ParameterError, match=message):
        example_of(**wrong)
