"""The settings as the tasks use them: tables, places, times and the guarantee."""

import hashlib
import json
import math
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args, get_origin
from zoneinfo import ZoneInfo

from pydantic import Field, SerializeAsAny
from pydantic_core import to_jsonable_python

from optstream.catalogue.about import NodeFacts, called
from optstream.catalogue.statement import MARGIN, TREE
from optstream.errors import BudgetError
from optstream.privacy import PrivacyModel
from optstream.storage.store import Location
from optstream.stream import AggregationTree, Calendar, DatedHierarchy, Feature, Hour, day_of
from optstream.stream.lattice import Margin
from tasks.config import schema
from tasks.config.fields import Section, located, resolve_ledger_url

if TYPE_CHECKING:
    from sqlalchemy import URL

# What of a configuration shapes a release, as one hash.

SHAPES_NOTHING: dict[str, Any] = {
    **dict.fromkeys(("hierarchy", "node_facts", "ledger", "trusted", "watch", "release", "schedule"), True),
    **dict.fromkeys(("contracts", "folder", "file", "ledger_folder"), True),
    "input": {"folder", "raw_retention_days", "time_limit"},
    "published": {
        *("folder", "not_before", "measurements", "replicates", "signing_key", "public_keys", "about")
    },
    "privacy": {"population_file"},
    "covariates": {"__all__": {"path", "sha256"}},
}
"""Tables and keys that shape no release, or are in it by another name, as pydantic excludes them."""
FIRST: Mapping[str, str] = {
    "stream": "name unit leaves_per_step step time_zone day",
    "mechanism": "name threshold scale country holidays n_blocks block_length",
    "privacy": "epsilon window population alpha resolution bounds lower_bound",
    "budget": "levels restatement_share",
    "sampling": "n_samples threshold",
    "input": "schema_ timestamp value customer marker file_list",
    "published": "value",
}
"""The keys that the first hashes held at any value. All others are part of it where they have no default: a
key that comes keeps the hash of every configuration without it.
"""
OF_FIRST_CHANGES = frozenset(
    ["valid_from", "timestamp", "value", "customer", "factor", "marker", "file_list"]
)
"""The keys of an entry of [[input.changes]] that the first hashes held, also where left out."""
ALWAYS: Mapping[str, Mapping[str, Any]] = {
    "privacy": {"calibration": "strict", "windows": "sliding"},
    "budget": {"stages": None},
    "sampling": {"allocation": None},
}
"""Keys that an earlier version had, with their only value since; a mechanism's are its `fixed`."""
DELIVERY = "revision="
"""Below the input folder, with its number: the folder of a planned revision."""
REPORTING_SHARE = Fraction(1, 20)
USUAL_REVISE_DAYS = 14
UNITS = ("w", "kw", "mw", "gw", "wh", "kwh", "mwh", "gwh", "kvar", "l", "m3", "kg", "t", "c", "eur", "usd")
"""At the end of a column's name: of a quantity that is measured, not counted."""


class Within:
    """A place in the trusted folder, the stream's own with `{stream}` in it."""

    def __init__(self, place: str) -> None:
        self.place = place

    def __get__(self, settings: "Settings", _: type) -> Path:
        return settings.trusted_folder / self.place.format(stream=settings.stream.name)


class Settings(Section):
    """A validated configuration. Made by `load_settings`; its repr shows no secret.

    Each table is as in the file (docs/configure.md); None, or empty, where an optional one is left out, or
    the mechanism has no such table; `watching` and `scheduling` give defaults.

    parents: (node, parent) of the oldest tree in input order, the root's parent None; see `tree_of`.
    node_facts: names and places; they shape no release. folder: where relative paths start, that of the
    configuration file, which is `file`; both absolute. ledger_folder: where that of `ledger.url` starts,
    which a population's file may say.
    """

    stream: schema.Stream
    mechanism: SerializeAsAny[schema.Mechanism]
    privacy: schema.Privacy
    hierarchy: schema.Hierarchy
    budget: schema.Budget
    sampling: schema.Sampling | None = None
    features_: schema.Features = Field({})
    input: schema.Input
    published: schema.Published
    trusted: schema.Trusted
    ledger: schema.Ledger
    watch: schema.Watch | None = None
    release: schema.Release | None = None
    schedule: schema.Schedule | None = None
    contracts: schema.Contracts | None = None
    covariates: schema.Covariates = ()
    constraints: schema.Constraints = ()

    parents: tuple[tuple[str, str | None], ...]
    node_facts: Mapping[str, NodeFacts] = {}
    folder: Path
    file: Path
    ledger_folder: Path

    # Where everything lies: the zones, and the files of the trusted folder.

    staging_folder: ClassVar[Within] = Within("staging")
    """The bytes to be published, by stream and release."""
    measurements_folder: ClassVar[Within] = Within("measurements")
    """The measurements, by stream and release."""
    inputs_folder: ClassVar[Within] = Within("inputs")
    """The keyed hashes of what releases were drawn from, by stream and release."""
    input_key_file: ClassVar[Within] = Within("input.key")
    validation_folder: ClassVar[Within] = Within("validation")
    """What the suites found, for the trusted zone alone."""
    audits_folder: ClassVar[Within] = Within("audit/{stream}")
    watch_folder: ClassVar[Within] = Within("watch/{stream}")
    """Which alarms were sent to whom."""
    report_folder: ClassVar[Within] = Within("report/{stream}")
    report_file: ClassVar[Within] = Within("report/{stream}/report.html")
    """The page that operators open each morning."""
    summaries_file: ClassVar[Within] = Within("report/{stream}/summaries.parquet")
    """Figures of the published files that the pages need not read again."""
    curves_file: ClassVar[Within] = Within("report/{stream}/curves.json")
    """The curves that the last night drew, for the live pages."""
    long_spans_file: ClassVar[Within] = Within("report/{stream}/long_spans.json")
    """What a month and a year lose by the plans of late, which statements repeat each night."""
    composed_file: ClassVar[Within] = Within("report/{stream}/composed.json")
    """What the charges of a month and a year compose to, for the operators' page."""
    blocks_file: ClassVar[Within] = Within("report/{stream}/blocks.json")
    """The blocks that public facts choose, for `status` to plan with."""
    catalogue_number_file: ClassVar[Within] = Within("signed/{stream}/number")
    """The number of the catalogue that was signed last."""
    serve_folder: ClassVar[Within] = Within("serve")
    """The memory of the server that `optstream serve` starts, its password and its log lines."""
    lineage_folder: ClassVar[Within] = Within("lineage")

    @property
    def input_folder(self) -> Location:
        return located(self.input.folder, self.folder)

    def delivered(self, revision: int) -> "Settings":
        """Return the settings with the input folder of a planned revision, of the same layout."""
        if not 0 < revision <= (self.budget.revisions or 0):
            return self
        folder = f"{self.input.folder.rstrip('/')}/{DELIVERY}{revision}"
        return self.model_copy(update={"input": self.input.model_copy(update={"folder": folder})})

    @property
    def published_folder(self) -> Location:
        return located(self.published.folder, self.folder)

    @property
    def trusted_folder(self) -> Path:
        return Path(str(located(self.trusted.folder, self.folder)))

    @property
    def signing_key_file(self) -> Path | None:
        """The key that signs publications; None where nothing is signed."""
        key = self.published.signing_key
        return None if key is None else self.folder / key

    @property
    def public_key_files(self) -> tuple[Path, ...]:
        """Public keys of former signing keys."""
        return tuple(self.folder / one for one in self.published.public_keys)

    @property
    def witness_places(self) -> tuple[Location, ...]:
        """The folders that know how far the ledger is: in the trusted folder, and the second one if any."""
        second = self.trusted.witness
        own = self.trusted_folder / "witness"
        return (own,) if second is None else (own, located(second, self.folder))

    @property
    def contracts_folder(self) -> Path | None:
        """Where users' own suites are; None where there are none."""
        return None if self.contracts is None else self.folder / self.contracts.folder

    @property
    def event_log_file(self) -> Path | None:
        """Where the watch adds a line for each alarm that begins or ends; None where nowhere."""
        log = self.watching.log
        return None if log is None else self.folder / log

    @property
    def ledger_url(self) -> "URL":
        """The SQLAlchemy URL: a secret. An SQLite path is absolute."""
        return resolve_ledger_url(self.ledger.url.get_secret_value(), self.ledger_folder)

    def measurements_of(self, day: date, revision: int) -> Path:
        """Return the folder of a release's measurements, which may be missing."""
        return self.measurements_folder / self.stream.name / f"{day}-r{revision}"

    def staging_of(self, day: date, revision: int) -> Path:
        """Return the folder of the bytes to be published, kept until they are; it may be missing."""
        return self.staging_folder / self.stream.name / f"{day}-r{revision}"

    def inputs_of(self, day: date, revision: int) -> Path:
        """Return the folder of the keyed hashes of a draw's inputs, which may be missing."""
        return self.inputs_folder / self.stream.name / f"{day}-r{revision}"

    # When things are: the periods of the calendar, and what clock times mean.

    @cached_property
    def calendar(self) -> Calendar:
        """The calendar that cuts local days into steps."""
        return self.stream.calendar

    @cached_property
    def period_lengths(self) -> tuple[int, ...]:
        """Steps of every kind of period that the calendar has, rising."""
        return tuple(sorted(schema.period_lengths(self.calendar)))

    def publish_from(self, period: date) -> datetime | None:
        """Return the instant before which a period is not published; None where it may be at any time."""
        not_before = self.published.not_before
        return None if not_before is None else self.clock_after(period, not_before)

    def clock_after(self, period: date, clock: str) -> datetime:
        """Return the instant of a time such as "06:00": on the day after a day, or so long after an hour."""
        after = time.fromisoformat(clock)
        if isinstance(period, Hour):
            ends = self.calendar.ends_at(period).astimezone(UTC)
            return ends + timedelta(hours=after.hour, minutes=after.minute)
        return datetime.combine(period + timedelta(days=1), after, ZoneInfo(self.stream.time_zone))

    def local_period(self, now: datetime) -> date:
        """Return the period that it is in the stream's zone."""
        return self.calendar.period_at(now)

    def local_day(self, now: datetime) -> date:
        """Return the day that it is in the stream's zone."""
        return day_of(self.local_period(now))

    @property
    def watching(self) -> schema.Watch:
        """What alarms go by, with its defaults where the configuration has no such table."""
        return self.watch or schema.Watch()

    @property
    def scheduling(self) -> schema.Schedule:
        """When nights run, with the defaults of omitted keys."""
        own = self.schedule or schema.Schedule()
        if self.stream.period == "day" or "cron" in own.model_fields_set:
            return own
        return own.model_copy(update={"cron": schema.EVERY_HOUR})

    @property
    def revise_days(self) -> int:
        """How many days before the newest get a new estimate each night; 0 where the mechanism has none."""
        given = self.release.revise_days if self.release else None
        if given is not None:
            return given
        return USUAL_REVISE_DAYS if self.mechanism.kind.revises and self.stream.period == "day" else 0

    # The input, and nodes as people know them.

    @property
    def metered(self) -> bool:
        """Whether each row of the input is one customer's."""
        return self.input.schema_ == "metered"

    def input_of(self, day: date) -> schema.Input:
        """Return how the dumps of a day are laid out: columns, the value's factor, what completes it."""
        return [layout for first, layout in self.input.layouts if first <= day_of(day)][-1]

    @property
    def least_units(self) -> int:
        """The lower bound of a leaf, in units of the resolution: raised to a whole one."""
        return math.ceil(self.privacy.lower_bound / self.privacy.resolution)

    def name_of(self, node: str) -> str | None:
        """Return the name of a node; None where it has none."""
        facts = self.node_facts.get(node)
        return None if facts is None else facts.name

    def called(self, node: str) -> str:
        """Return how people read the name of a node: "Bretagne (53)", or the code alone if it has no name."""
        return called(node, self.node_facts)

    # The guarantee of the stream, its tree, and the shares of epsilon.

    @cached_property
    def model(self) -> PrivacyModel:
        """The privacy guarantee of the stream. Its alpha is of the delivered readings."""
        return schema.guarantee_of(self.privacy, self.stream, self.input)

    def model_of(self, revision: int) -> PrivacyModel:
        """Return the part of the guarantee that first releases are planned under, or restatements: each
        planned one under a part of its own, else all together (Lemma 23, docs/privacy.md).
        """
        kept_back = self.budget.restatement_share
        if revision and not kept_back:
            raise BudgetError(
                "a restatement is a new measurement and needs a share of the budget of its own: nothing was "
                'reserved; keep one back for days to come with [budget] restatement_share = "1/10"'
            )
        n_planned = self.budget.revisions
        if n_planned and revision > n_planned:
            raise BudgetError(
                f"this would be revision {revision}, and budget.revisions keeps shares for {n_planned} of a "
                "day: nothing was reserved; keep more for days to come"
            )
        restated = kept_back / self.budget.shares
        share = self.budget.stream_share * (restated if revision else 1 - kept_back)
        return self.model.with_budget(self.model.budget * share * (1 - self.reporting_share))

    @property
    def reporting_share(self) -> Fraction:
        """What counts of customers have of each release's part of the guarantee (Lemma 24)."""
        return REPORTING_SHARE if self.published.reporting else Fraction(0)

    def reporting_epsilon(self, revision: int) -> Fraction:
        """Return the most that the counts of customers cost any window; 0 where there are none."""
        share = self.reporting_share
        return self.model_of(revision).budget * share / (1 - share) if share else share

    @property
    def kept_for_restatements(self) -> Fraction:
        """The most that all restatements of the stream may cost any window."""
        return self.model.budget * self.budget.stream_share * self.budget.restatement_share

    @cached_property
    def dated_hierarchy(self) -> DatedHierarchy:
        """The oldest tree and its changes; `tree_of` is what holds on a day."""
        return DatedHierarchy(self.parents, self.hierarchy.tree_changes, self.margin)

    @cached_property
    def margin(self) -> Margin | None:
        """What makes cells of the leaves; None where there is a tree alone."""
        return self.hierarchy.margin

    def tree_of(self, day: date) -> AggregationTree:
        """Return the aggregation tree that holds on a day."""
        return self.dated_hierarchy.tree_of(day)

    def n_published(self, day: date) -> int:
        """Return how many nodes of a day's tree are published, its first ones."""
        levels, tree = self.published.levels, self.tree_of(day)
        return tree.levels[levels[-1]].stop if levels else len(tree.nodes)

    def leaves_per_period(self, day: date) -> int:
        """The most leaves of one customer's readings of a day: nothing keeps metered rows in one."""
        return len(self.tree_of(day).leaves) if self.metered and self.model.unit == "customer" else 1

    @property
    def level_shares(self) -> tuple[Fraction, ...]:
        """One for each level, root first, then the margin's."""
        return (*self.budget.levels, *self.budget.margins.values())

    @property
    def counts_known(self) -> bool:
        """Whether readings are counts, and the mechanism makes use of that: then there are bands."""
        return self.privacy.counts and self._takes_counts

    @property
    def variation(self) -> float | None:
        """The part of alpha by which sums of customers vary from step to step (`HistoryInformed`), if any.

        Of customers between 0 and alpha no more than alpha; an eighth is that of households.
        """
        low, high = self.privacy.bounds
        is_small = self.metered and low >= 0 and high <= self.privacy.alpha
        takes = "variation" in self.mechanism.kind.__dataclass_fields__
        return float(self.privacy.alpha) / 8 if is_small and takes and not self.privacy.counts else None

    @property
    def _takes_counts(self) -> bool:
        return self.margin is None and "counts" in self.mechanism.kind.__dataclass_fields__

    @property
    def _is_delivered_whole(self) -> bool:
        is_mean = self.input.combine == "mean"
        return (
            not is_mean
            and self.privacy.is_whole
            and {layout.factor for _, layout in self.input.layouts} == {1}
        )

    @property
    def _may_count(self) -> bool:
        """Whether readings are whole and of no quantity that is measured, by the name of their column."""
        return self._is_delivered_whole and self.published.value.lower().rpartition("_")[2] not in UNITS

    @property
    def counts_by_facts(self) -> bool:
        """Whether public facts say that readings are counts, one of each customer, for a mechanism that asks.

        Not for a stream whose newest draw was not of counts: it goes on so.
        """
        if not (self._takes_counts and self._may_count and self.model.alpha == 1):
            return False
        with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
            newest = max((self.inputs_folder / self.stream.name).glob("*/*.json"))
            drawn = json.loads(newest.read_bytes()).get("stated", {}).get("mechanism", {})
            return bool(drawn.get("counts", drawn.get("name", self.mechanism.name) != self.mechanism.name))
        return True

    @property
    def counts_warning(self) -> str | None:
        """How `privacy.counts` contradicts the public facts; None where it does not."""
        is_sure = self.model.alpha == 1 or "counts" not in self.privacy.model_fields_set
        if self._takes_counts and self.privacy.counts and not self._is_delivered_whole:
            return (
                "privacy.counts is true, and resolution, bounds, alpha or input.factor are not of whole "
                "numbers: estimates and bands are of another quantity; correct one of them"
            )
        if self._takes_counts and not self.privacy.counts and self._may_count and is_sure:
            return (
                "privacy.counts is false, and resolution, bounds and alpha are of counts, whose sums are "
                "biased so and whose bands do not hold: write counts = true, unless they are none"
            )
        return None

    def features(self, day: date) -> list[Feature]:
        """Return the named partitions of a day, in the file's order; none where the mechanism has none."""
        times = self.calendar.local_times(day)
        return [Feature.from_clock(cuts, times, name) for name, cuts in self.features_.items()]

    def describe_mechanism(self, day: date) -> dict[str, Any]:
        """Return the mechanism of a day and all its parameters, as lineage states them, for JSON: public."""
        described: dict[str, Any] = self.mechanism.model_dump(mode="json", exclude_none=True)
        described |= {key: value for key, value in self.mechanism.fixed.items() if value is not None}
        if self.sampling is not None:
            described["sampling"] = self.sampling.model_dump(mode="json", exclude_none=True)
            described["features"] = {name: list(cuts) for name, cuts in self.features_.items()}
        taken, n_leaves = self.mechanism.kind.__dataclass_fields__, self.leaves_per_period(day)
        if n_leaves > 1 and "leaves_per_period" in taken:
            described["leaves_per_period"] = n_leaves
        if self.counts_known:
            described["counts"] = True
        if self.variation is not None:
            described["variation"] = self.variation
        if self.stream.leaves_per_window is not None and "declared_leaves" in taken:
            described["leaves_per_window"] = self.stream.leaves_per_window
        described["level_shares"] = [str(share) for share in self.level_shares]
        if self.margin is not None:
            described[MARGIN] = self.margin.name
        if self.dated_hierarchy.changes:
            described[TREE] = self.dated_hierarchy.hash_of(day)
        return described

    @cached_property
    def configuration_hash(self) -> str:
        """SHA-256 of what shapes a release, as of a configuration of an older version that means the same."""
        document = self.model_dump(mode="json", exclude=SHAPES_NOTHING, by_alias=False)
        for table, first in FIRST.items():
            if document[table] is None:
                continue
            for key, field in type(getattr(self, table)).model_fields.items():
                default = field.get_default(call_default_factory=True)
                is_later = key in document[table] and key not in first.split() and not field.is_required()
                if is_later and document[table][key] == to_jsonable_python(default):
                    del document[table][key]
        for change in document["input"].get("changes", ()):
            for key in change.keys() - {*OF_FIRST_CHANGES}:
                if change[key] is None:
                    del change[key]
        for table, keys in {**ALWAYS, "mechanism": self.mechanism.fixed}.items():
            if document[table] is not None:
                document[table] |= keys
        document["features_"] = {"named": document["features_"]}
        for covariate in document["covariates"]:
            covariate |= {"node": "node", "level": None}
        for name in ("covariates", "constraints"):
            given = document.pop(name)
            document |= {name: {"given": given}} if given else {}
        if self.margin is not None:
            document["margin"] = [self.margin.name, *self.margin.nodes]
            if self.margin.cells:
                document["cells"] = {leaf: sorted(nodes) for leaf, nodes in self.margin.cells}
        if self.hierarchy.changes:
            document["hierarchy_changes"] = [one.to_document() for one in self.dated_hierarchy.changes]
        text = json.dumps(document, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


SECTIONS: dict[str, Any] = {
    name.rstrip("_"): Annotated[(field.annotation, *field.metadata)]
    if get_origin(field.annotation) in (dict, tuple)
    else (*get_args(field.annotation), field.annotation)[0]
    for name, field in takewhile(lambda item: item[0] != "parents", Settings.model_fields.items())
}
"""The tables' types by their names in the file."""
