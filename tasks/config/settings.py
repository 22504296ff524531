"""The settings as the tasks use them: model, tree, level shares, features, schedule."""

import math
from collections.abc import Mapping
from datetime import date
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import Field, SerializeAsAny

from optstream.catalogue.nodes import NodeFacts, called
from optstream.catalogue.questions.question import Question
from optstream.catalogue.statements.statement import MARGIN, TREE
from optstream.errors import BudgetError
from optstream.mechanisms import on_tree
from optstream.privacy import PrivacyModel
from optstream.privacy.rules.noise_horizon import Horizon
from optstream.stream import AggregationTree, DatedHierarchy, Feature, day_of
from optstream.stream.hierarchy.margin import Margin
from optstream.stream.public_days import PublicDays
from tasks.config.clocks import Clocks
from tasks.config.paths import absolute
from tasks.config.shape import PLACES, hash_of
from tasks.config.tables.covariates import Covariates
from tasks.config.tables.fields import step_minutes
from tasks.config.tables.hierarchy_changes import changes_of
from tasks.config.tables.layouts import Layout, layouts_of
from tasks.config.tables.margins import margin_of
from tasks.config.tables.mechanisms import Mechanism
from tasks.config.tables.questions import Questions, asked_of
from tasks.config.tables.schedule import EVERY_HOUR, Schedule
from tasks.config.tables.sections import (
    Budget,
    Features,
    Hierarchy,
    Input,
    Privacy,
    Release,
    Sampling,
    Stream,
    Watch,
)
from tasks.storage.kept_figures import kept

USUAL_REVISE_DAYS = 14


def guarantee_of(privacy: Privacy, stream: Stream, source: Input) -> PrivacyModel:
    """Return the privacy guarantee that three tables of a configuration describe.

    Args:
        privacy: The table [privacy].
        stream: The table [stream].
        source: The table [input], whose supplier's rounding adds to alpha.

    Returns:
        The model.

    Raises:
        ParameterError: They do not fit together.
    """
    return PrivacyModel(
        epsilon=privacy.epsilon,
        window_length=privacy.window,
        alpha=privacy.alpha + source.supplier_rounding,
        resolution=privacy.resolution,
        unit=stream.unit,
        leaves_per_step=stream.leaves_per_step,
        windows=privacy.windows,
        delta=privacy.delta or 0,
    )


class Settings(Clocks):
    """A validated configuration. Made by `load_settings`; its repr shows no secret.

    Each table is as in the file (docs/configure.md); None where an optional one is left out.

    Attributes:
        mechanism: The pattern of release, with its parameters.
        privacy: Epsilon, window, alpha, bounds and resolution.
        hierarchy: As configured; `parents` is what it means.
        budget: How epsilon is shared out between levels, and what is kept back for restatements.
        sampling: None for mechanisms that have no such table.
        features_: Empty for mechanisms that have no such table.
        watch: None where not given; see `watching`.
        release: None where not given.
        schedule: None where not given; see `scheduling`.
        questions: What is asked of the published values; they shape no release. See `asked`.
        covariates: Public series that explain part of the readings; none where not given.
        parents: (node, parent) of the oldest tree in input order, the root's parent None; see `tree_of`.
        node_facts: Names and places, of the nodes that have any; they shape no release.
    """

    mechanism: SerializeAsAny[Mechanism]
    privacy: Privacy
    hierarchy: Hierarchy
    budget: Budget
    sampling: Sampling | None = None
    features_: Features = Features()
    watch: Watch | None = None
    release: Release | None = None
    schedule: Schedule | None = None
    covariates: Covariates = Covariates()
    questions: Questions = Questions()
    parents: tuple[tuple[str, str | None], ...]
    node_facts: Mapping[str, NodeFacts] = Field(default_factory=dict)

    @cached_property
    def model(self) -> PrivacyModel:
        """The privacy guarantee of the stream.

        Its alpha is of what is delivered: what one customer moves, and with it the supplier's rounding (Lemma
        2a, docs/privacy.md).
        """
        return guarantee_of(self.privacy, self.stream, self.input)

    def model_of(self, revision: int) -> PrivacyModel:
        """Return the part of the privacy guarantee that a release is planned under.

        Its budget is its share of what the stream plans with: first releases have what is not kept back, all
        restatements together what is.

        Args:
            revision: 0 for first releases.

        Returns:
            The model, with that budget.

        Raises:
            BudgetError: It is a restatement, and nothing is kept back for them.
        """
        kept_back = self.budget.restatement_share
        if revision and not kept_back:
            raise BudgetError(
                "a restatement is a new measurement and needs a share of the budget of its own: nothing was "
                'reserved; keep one back for days to come with [budget] restatement_share = "1/10"'
            )
        share = self.stream_share * (kept_back if revision else 1 - kept_back)
        return self.model.with_budget(self.model.budget * share)

    @property
    def kept_for_restatements(self) -> Fraction:
        """The most that all restatements of the stream may cost any window."""
        return self.model.budget * self.stream_share * self.budget.restatement_share

    @cached_property
    def dated_hierarchy(self) -> DatedHierarchy:
        """The oldest tree and its changes; `tree_of` is what holds on a day."""
        return DatedHierarchy(self.parents, changes_of(self.hierarchy.changes), self.margin)

    @cached_property
    def margin(self) -> Margin | None:
        """What makes cells of the leaves; None where there is a tree alone."""
        return margin_of(self.hierarchy)

    def tree_of(self, day: date) -> AggregationTree:
        """Return the aggregation tree that holds on a day.

        Args:
            day: The local day.

        Returns:
            The tree.
        """
        return self.dated_hierarchy.tree_of(day)

    def describe_mechanism(self, day: date) -> dict[str, Any]:
        """Return the mechanism of a day and all its parameters, as lineage states them.

        Args:
            day: The local day.

        Returns:
            JSON-ready, public.
        """
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

    def leaves_per_period(self, day: date) -> int:
        """Return in how many leaves a customer's readings of a day may lie: nothing keeps metered rows in
        one.

        Args:
            day: The local day.

        Returns:
            The number of leaves of its tree, or 1.
        """
        return len(self.tree_of(day).leaves) if self.metered and self.model.unit == "customer" else 1

    @property
    def declared_leaves(self) -> int | None:
        """The same by the operator's word; None where the file does not say it: no default is a word."""
        return self.stream.leaves_per_period

    @property
    def noise_horizon(self) -> Horizon | None:
        """The span at whose price joint and Laplace noise are compared; None where one window's is meant."""
        given = self.privacy.horizon
        return None if given is None else Horizon(given.days * self.calendar.slots, given.delta)

    def features(self, day: date) -> list[Feature]:
        """Return the named partitions of a day.

        Args:
            day: The local day.

        Returns:
            In the file's order; empty where the mechanism has none.
        """
        times = self.calendar.local_times(day)
        return [Feature.from_clock(cuts, times, name) for name, cuts in self.features_.named.items()]

    @property
    def stream_share(self) -> Fraction:
        """As configured, or with "model" what is expected to err least of the population's streams: of public
        figures alone.
        """
        share = self.budget.stream_share
        return share if isinstance(share, Fraction) else self._kept_stream_share

    @cached_property
    def _kept_stream_share(self) -> Fraction:
        """That which the model chooses, found once for these files and kept, where there is a place."""
        # what expects errors builds mechanisms, from settings: it is looked up when it is asked for
        chooser = import_module("tasks.planning.advice.population")
        others = chooser.other_streams(self)

        def chosen() -> Fraction:
            share: Fraction = chooser.model_stream_share(self, others)
            return share

        if not self.trusted_folder.is_dir():
            return chosen()
        facts = ["stream share", self.stream.name, *sorted(one.configuration_hash for one in (self, *others))]
        found = kept(self.level_shares_file, facts, lambda: str(chosen()))
        try:
            return Fraction(found)
        except (TypeError, ValueError, ZeroDivisionError):  # a damaged file costs the time again
            return chosen()

    @property
    def level_shares(self) -> tuple[Fraction, ...]:
        """As configured, or with "model" what the prior expects to be best: of public figures alone.

        One for each level, root first, then the margin's.
        """
        levels = self.budget.levels
        return (*levels, *self.budget.margins.values()) if isinstance(levels, tuple) else self._kept_shares

    @cached_property
    def _kept_shares(self) -> tuple[Fraction, ...]:
        """Those that the model chooses, found once for a configuration and kept, where there is a place."""
        if not self.trusted_folder.is_dir():
            return self.model_level_shares()
        facts = [self.configuration_hash, "level shares by the noise that is drawn", str(self.stream_share)]
        found = kept(self.level_shares_file, facts, lambda: [str(one) for one in self.model_level_shares()])
        try:
            return tuple(Fraction(one) for one in found)
        except (TypeError, ValueError, ZeroDivisionError):  # a damaged file costs the time again
            return self.model_level_shares()

    def model_level_shares(self) -> tuple[Fraction, ...]:
        """Return what `budget.levels = "model"` means: for mechanisms that choose shares, from public facts.

        Returns:
            One share for each level of the oldest tree.

        Raises:
            ParameterError: There is no public scale.
        """
        pattern = self.mechanism.kind(
            self.model_of(0),
            days=PublicDays(self.calendar.slots),
            counts=self.privacy.counts,
            # what noise is drawn: joint noise errs less at the levels that may have it
            period_lengths=self.period_lengths,
            declared_leaves=self.declared_leaves,
            horizon=self.noise_horizon,
            **self.mechanism.parameters,
        )
        # of the oldest tree: another list after each change would leave out the blocks of the days before it
        oldest = self.dated_hierarchy.periods[0][1]
        shares: tuple[Fraction, ...] = on_tree(pattern, oldest, "model").level_shares
        return shares

    @property
    def metered(self) -> bool:
        """Whether each row of the input is one customer's."""
        return self.input.schema_ == "metered"

    @property
    def layouts(self) -> tuple[Layout, ...]:
        """How dumps are laid out, oldest first."""
        return layouts_of(self.input)

    def input_of(self, day: date) -> Layout:
        """Return how the dumps of a day are laid out.

        Args:
            day: The local day.

        Returns:
            Its columns, the value's factor, what completes it.
        """
        *_, latest = (one for one in self.layouts if one.valid_from is None or one.valid_from <= day_of(day))
        return latest

    @property
    def least_units(self) -> int:
        """The lower bound of a leaf, in units of the resolution: raised to a whole one."""
        return math.ceil(self.privacy.lower_bound / self.privacy.resolution)

    def name_of(self, node: str) -> str | None:
        """Return the name of a node.

        Args:
            node: Its code.

        Returns:
            None where it has none.
        """
        told = self.node_facts.get(node)
        return None if told is None else told.name

    def called(self, node: str) -> str:
        """Return what a person is told of a node: its name with its code, "Bretagne (53)".

        Args:
            node: Its code.

        Returns:
            The code alone where the node has no name, or is none of the hierarchy.
        """
        return called(node, self.node_facts)

    @property
    def asked(self) -> tuple[Question, ...]:
        """The questions that are answered beside the data, in the file's order."""
        return asked_of(self.questions, step_minutes(self.stream.step))

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

    @cached_property
    def configuration_hash(self) -> str:
        """SHA-256 of what shapes a release: every key but secrets and places, numbers in lowest terms."""
        document = self.model_dump(mode="json", exclude=PLACES, by_alias=False)
        if self.margin is not None:
            document["margin"] = [self.margin.name, *self.margin.nodes]
            if self.margin.cells:
                document["cells"] = {leaf: sorted(nodes) for leaf, nodes in self.margin.cells}
        if self.hierarchy.changes:
            document["hierarchy_changes"] = [one.to_document() for one in self.dated_hierarchy.changes]
        return hash_of(document)
