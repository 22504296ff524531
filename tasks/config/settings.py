"""The settings as the tasks use them: model, tree, calendar, features, places."""

import hashlib
import json
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import SerializeAsAny

from optstream.catalogue.backends import Location
from optstream.errors import BudgetError
from optstream.mechanisms import on_tree
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree, Calendar, Feature
from optstream.stream.public_days import PublicDays
from tasks.config.checks import day_lengths, step_minutes
from tasks.config.paths import absolute, located, resolve_ledger_url
from tasks.config.tables.base import Section
from tasks.config.tables.layouts import Layout, layouts_of
from tasks.config.tables.mechanisms import Mechanism
from tasks.config.tables.schedule import Schedule
from tasks.config.tables.sections import (
    Budget,
    Contracts,
    Features,
    Hierarchy,
    Input,
    Ledger,
    Privacy,
    Published,
    Release,
    Sampling,
    Stream,
    Trusted,
    Watch,
)

PLACES = {"hierarchy", "ledger", "trusted", "watch", "release", "schedule", "contracts", "folder", "file"}
"""What shapes no release, or is in it by another name."""
USUAL_REVISE_DAYS = 14


class Settings(Section):
    """A validated configuration. Made by `load_settings`; its repr shows no secret.

    sampling, features_: None and none for mechanisms that have no such tables.
    parents: (node, parent) in input order, the root's parent None. folder: where relative paths start.
    """

    stream: Stream
    mechanism: SerializeAsAny[Mechanism]
    privacy: Privacy
    hierarchy: Hierarchy
    budget: Budget
    sampling: Sampling | None = None
    features_: Features = Features()
    input: Input
    published: Published
    trusted: Trusted
    ledger: Ledger
    watch: Watch | None = None
    release: Release | None = None
    schedule: Schedule | None = None
    contracts: Contracts | None = None
    parents: tuple[tuple[str, str | None], ...]
    folder: Path
    file: Path

    @cached_property
    def model(self) -> PrivacyModel:
        """What is promised. Its alpha is of what is delivered: what one customer moves, and with it the
        supplier's rounding (Lemma 2a, docs/privacy.md)."""
        return PrivacyModel(
            epsilon=self.privacy.epsilon,
            window_length=self.privacy.window,
            alpha=self.privacy.alpha + self.input.supplier_rounding,
            resolution=self.privacy.resolution,
            unit=self.stream.unit,
            leaves_per_step=self.stream.leaves_per_step,
            windows=self.privacy.windows,
        )

    def model_of(self, revision: int) -> PrivacyModel:
        """The part of the promise that a release is planned under: its epsilon is its share of the grant.

        First releases (revision 0) have what is not kept back, all restatements together what is.
        Raises BudgetError for a restatement where nothing is kept back.
        """
        share = self.budget.restatement_share
        if revision and not share:
            raise BudgetError(
                "a restatement is a new measurement and needs a share of epsilon of its own: nothing was "
                'reserved; keep one back for days to come with [budget] restatement_share = "1/10"'
            )
        return replace(self.model, epsilon=self.model.epsilon * (share if revision else 1 - share))

    @cached_property
    def tree(self) -> AggregationTree:
        return AggregationTree.from_parents(dict(self.parents))

    @cached_property
    def calendar(self) -> Calendar:
        return Calendar(step_minutes(self.stream.step), self.stream.time_zone, self.stream.day)

    @cached_property
    def shortest_day(self) -> int:
        """Steps of the shortest day that the calendar has."""
        return min(day_lengths(self.calendar))

    def describe_mechanism(self) -> dict[str, Any]:
        """The mechanism and all its parameters, as lineage states them: public."""
        described: dict[str, Any] = self.mechanism.model_dump(mode="json", exclude_none=True)
        if self.sampling is not None:
            described["sampling"] = self.sampling.model_dump(mode="json", exclude_none=True)
            described["features"] = self.features_.model_dump(mode="json")["named"]
        if self.leaves_per_period > 1 and "leaves_per_period" in self.mechanism.kind.__dataclass_fields__:
            described["leaves_per_period"] = self.leaves_per_period
        described["level_shares"] = [str(share) for share in self.level_shares]
        return described

    @property
    def leaves_per_period(self) -> int:
        """In how many leaves a customer's readings of a day may lie: nothing keeps metered rows in one."""
        return len(self.tree.leaves) if self.metered and self.model.unit == "customer" else 1

    def features(self, day: date) -> list[Feature]:
        """The named partitions of that day, in the file's order."""
        times = self.calendar.local_times(day)
        return [Feature.from_clock(cuts, times, name) for name, cuts in self.features_.named.items()]

    @property
    def resolution(self) -> Fraction:
        return self.privacy.resolution

    @property
    def bounds(self) -> tuple[Fraction, Fraction]:
        """Public bounds of one reading, to which it is clamped."""
        return self.privacy.bounds

    @property
    def lower_bound(self) -> Fraction:
        """The least that is published for a leaf."""
        return self.privacy.lower_bound

    @property
    def level_shares(self) -> tuple[Fraction, ...]:
        """As configured, or with "model" what the prior expects to be best: of public figures alone."""
        levels = self.budget.levels
        return levels if isinstance(levels, tuple) else self._chosen_shares()

    def _chosen_shares(self) -> tuple[Fraction, ...]:
        days = PublicDays(self.calendar.slots)
        pattern = self.mechanism.kind(self.model_of(0), days=days, **self.mechanism.parameters)
        shares: tuple[Fraction, ...] = on_tree(pattern, self.tree, "model").level_shares
        return shares

    @property
    def stage_shares(self) -> tuple[Fraction, ...] | None:
        return self.budget.stages

    @property
    def metered(self) -> bool:
        return self.input.schema_ == "metered"

    @property
    def layouts(self) -> tuple[Layout, ...]:
        """How dumps are laid out, oldest first."""
        return layouts_of(self.input)

    def input_of(self, day: date) -> Layout:
        """How the dumps of that day are laid out: its columns, the value's factor, what completes it."""
        *_, latest = (one for one in self.layouts if one.valid_from is None or one.valid_from <= day)
        return latest

    @property
    def input_folder(self) -> Location:
        """A path, or a URL of an object store."""
        return located(self.input.folder, self.folder)

    @property
    def published_folder(self) -> Location:
        """A path, or a URL of an object store."""
        return located(self.published.folder, self.folder)

    @property
    def trusted_folder(self) -> Path:
        return Path(str(located(self.trusted.folder, self.folder)))

    @property
    def signing_key_file(self) -> Path | None:
        """The key that signs what is published; None where nothing is signed."""
        key = self.published.signing_key
        return None if key is None else absolute(key, self.folder)

    @property
    def public_key_files(self) -> tuple[Path, ...]:
        """Public keys of former signing keys."""
        return tuple(absolute(one, self.folder) for one in self.published.public_keys)

    @property
    def witness_places(self) -> tuple[Location, ...]:
        """The folders that know how far the ledger is: in the trusted folder, and the second one if any."""
        second = self.trusted.witness
        own = self.trusted_folder / "witness"
        return (own,) if second is None else (own, located(second, self.folder))

    def publish_from(self, day: date) -> datetime | None:
        """The instant before which a day is not published, on the day after it; None: at any time."""
        if self.published.not_before is None:
            return None
        clock = time.fromisoformat(self.published.not_before)
        return datetime.combine(day + timedelta(days=1), clock, ZoneInfo(self.stream.time_zone))

    @property
    def watching(self) -> Watch:
        """What alarms go by, with its defaults where the configuration has no such table."""
        return self.watch or Watch()

    @property
    def revise_days(self) -> int:
        """How many days before the newest get a new estimate each night; 0 where the mechanism has none."""
        given = self.release.revise_days if self.release else None
        if given is not None:
            return given
        return USUAL_REVISE_DAYS if self.mechanism.kind.revises else 0

    @property
    def scheduling(self) -> Schedule:
        """When nights run, with its defaults where the configuration has no such table."""
        return self.schedule or Schedule()

    @property
    def staging_folder(self) -> Path:
        return self.trusted_folder / "staging"

    @property
    def measurements_folder(self) -> Path:
        return self.trusted_folder / "measurements"

    def measurements_of(self, day: date, revision: int) -> Path:
        """The folder of a release's measurements."""
        return self.measurements_folder / self.stream.name / f"{day}-r{revision}"

    def staging_of(self, day: date, revision: int) -> Path:
        """The folder of the bytes to be published, kept until they are."""
        return self.staging_folder / self.stream.name / f"{day}-r{revision}"

    @property
    def inputs_folder(self) -> Path:
        return self.trusted_folder / "inputs"

    def inputs_of(self, day: date, revision: int) -> Path:
        """The folder of the keyed hashes of what a release was drawn from."""
        return self.inputs_folder / self.stream.name / f"{day}-r{revision}"

    @property
    def input_key_file(self) -> Path:
        """The key of those hashes."""
        return self.trusted_folder / "input.key"

    @property
    def contracts_folder(self) -> Path | None:
        """Where users' own suites are; None where there are none."""
        return None if self.contracts is None else absolute(self.contracts.folder, self.folder)

    @property
    def validation_folder(self) -> Path:
        return self.trusted_folder / "validation"

    @property
    def audits_folder(self) -> Path:
        """What audits of the configured mechanism found."""
        return self.trusted_folder / "audit" / self.stream.name

    @property
    def watch_folder(self) -> Path:
        """Which alarms were told to whom."""
        return self.trusted_folder / "watch" / self.stream.name

    @property
    def report_file(self) -> Path:
        """The page that operators open each morning."""
        return self.report_folder / "report.html"

    @property
    def report_folder(self) -> Path:
        """Of one stream: two may share a trusted folder."""
        return self.trusted_folder / "report" / self.stream.name

    @property
    def summaries_file(self) -> Path:
        """Figures of the published files that the pages need not read again."""
        return self.report_folder / "summaries.parquet"

    @property
    def long_spans_file(self) -> Path:
        """What a month and a year lose by the plans of late, which statements repeat each night."""
        return self.report_folder / "long_spans.json"

    @property
    def composed_file(self) -> Path:
        """What the charges of a month and a year compose to, which the operators' page tells."""
        return self.report_folder / "composed.json"

    @property
    def catalogue_number_file(self) -> Path:
        """The number of the catalogue that was signed last."""
        return self.trusted_folder / "signed" / self.stream.name / "number"

    @property
    def serve_folder(self) -> Path:
        """The memory of the server that `optstream serve` starts, its password and its log lines."""
        return self.trusted_folder / "serve"

    @property
    def lineage_folder(self) -> Path:
        return self.trusted_folder / "lineage"

    @property
    def ledger_url(self) -> str:
        """The SQLAlchemy URL: a secret. An SQLite path is absolute."""
        return resolve_ledger_url(self.ledger.url.get_secret_value(), self.folder)

    @property
    def configuration_hash(self) -> str:
        """SHA-256 of what shapes a release: every key but secrets and places, numbers in lowest terms."""
        document: dict[str, Any] = self.model_dump(mode="json", exclude=PLACES, by_alias=False)
        for key in ("folder", "raw_retention_days", "time_limit"):
            del document["input"][key]
        for key in ("folder", "not_before", "signing_key", "public_keys"):
            del document["published"][key]
        # Keys that came later change no hash of a configuration without them.
        for key, absent in (("changes", []), ("factor", "1"), ("supplier_rounding", "0")):
            if document["input"][key] == absent:
                del document["input"][key]
        text = json.dumps(document, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()
