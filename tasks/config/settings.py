"""The settings as the tasks use them: the guarantee, and what is read, named, asked and told, and when."""

import math
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import Field

from optstream.catalogue.nodes import NodeFacts, called
from optstream.catalogue.statements.statement import MARGIN, TREE
from optstream.stream import Feature, day_of
from tasks.config.guarantee import Guarantee
from tasks.config.paths import absolute
from tasks.config.tables.covariates import Covariates
from tasks.config.tables.layouts import Layout, layouts_of
from tasks.config.tables.schedule import EVERY_HOUR, Schedule
from tasks.config.tables.sections import Features, Release, Sampling, Watch

USUAL_REVISE_DAYS = 14


class Settings(Guarantee):
    """A validated configuration. Made by `load_settings`; its repr shows no secret.

    Each table is as in the file (docs/configure.md); None where an optional one is left out, whose defaults
    `watching` and `scheduling` give. sampling, features_: none for mechanisms that have no such table.
    covariates: public series that explain part of the readings. node_facts, which has names
    and places, shape no release.
    """

    sampling: Sampling | None = None
    features_: Features = Features()
    watch: Watch | None = None
    release: Release | None = None
    schedule: Schedule | None = None
    covariates: Covariates = Covariates()
    node_facts: Mapping[str, NodeFacts] = Field(default_factory=dict)

    def describe_mechanism(self, day: date) -> dict[str, Any]:
        """Return the mechanism of a day and all its parameters, as lineage states them, for JSON: public."""
        described: dict[str, Any] = self.mechanism.model_dump(mode="json", exclude_none=True)
        if self.sampling is not None:
            described["sampling"] = self.sampling.model_dump(mode="json", exclude_none=True)
            described["features"] = self.features_.model_dump(mode="json")["named"]
        n_leaves = self.leaves_per_period(day)
        if n_leaves > 1 and "leaves_per_period" in self.mechanism.kind.__dataclass_fields__:
            described["leaves_per_period"] = n_leaves
        if self.counts_known:
            described["counts"] = True
        if self.declared_leaves is not None and "declared_leaves" in self.mechanism.kind.__dataclass_fields__:
            described["leaves_per_period"] = self.declared_leaves
        described["level_shares"] = [str(share) for share in self.level_shares]
        if self.margin is not None:
            described[MARGIN] = self.margin.name
        if self.dated_hierarchy.changes:
            described[TREE] = self.dated_hierarchy.hash_of(day)
        return described

    @property
    def counts_known(self) -> bool:
        """Whether readings are counts, and the mechanism makes use of that: then there are bands."""
        return self.privacy.counts and "counts" in self.mechanism.kind.__dataclass_fields__

    def features(self, day: date) -> list[Feature]:
        """Return the named partitions of a day, in the file's order; none where the mechanism has none."""
        times = self.calendar.local_times(day)
        return [Feature.from_clock(cuts, times, name) for name, cuts in self.features_.named.items()]

    @property
    def layouts(self) -> tuple[Layout, ...]:
        """How dumps are laid out, oldest first."""
        return layouts_of(self.input)

    def input_of(self, day: date) -> Layout:
        """Return how the dumps of a day are laid out: columns, the value's factor, what completes it."""
        *_, latest = (one for one in self.layouts if one.valid_from is None or one.valid_from <= day_of(day))
        return latest

    @property
    def least_units(self) -> int:
        """The lower bound of a leaf, in units of the resolution: raised to a whole one."""
        return math.ceil(self.privacy.lower_bound / self.privacy.resolution)

    def name_of(self, node: str) -> str | None:
        """Return the name of a node; None where it has none."""
        told = self.node_facts.get(node)
        return None if told is None else told.name

    def called(self, node: str) -> str:
        """Return what a person is told of a node: "Bretagne (53)", or the code alone if it has no name."""
        return called(node, self.node_facts)

    @property
    def watching(self) -> Watch:
        """What alarms go by, with its defaults where the configuration has no such table."""
        return self.watch or Watch()

    @property
    def event_log_file(self) -> Path | None:
        """Where the watch adds a line for each alarm that begins or ends; None where nowhere."""
        log = self.watching.log
        return None if log is None else absolute(log, self.folder)

    @property
    def revise_days(self) -> int:
        """How many days before the newest get a new estimate each night; 0 where the mechanism has none."""
        given = self.release.revise_days if self.release else None
        if given is not None:
            return given
        return USUAL_REVISE_DAYS if self.mechanism.kind.revises and self.stream.period == "day" else 0

    @property
    def scheduling(self) -> Schedule:
        """When nights run, with the defaults of what the configuration leaves out."""
        own = self.schedule or Schedule()
        if self.stream.period == "day" or "cron" in own.model_fields_set:
            return own
        return own.model_copy(update={"cron": EVERY_HOUR})
