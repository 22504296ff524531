"""The guarantee of a stream as configured: model, hierarchy, and how epsilon is shared out."""

from datetime import date
from fractions import Fraction
from functools import cached_property
from importlib import import_module

from pydantic import SerializeAsAny

from optstream.errors import BudgetError
from optstream.mechanisms import on_tree
from optstream.privacy import PrivacyModel
from optstream.privacy.rules.noise_horizon import Horizon
from optstream.stream import AggregationTree, DatedHierarchy
from optstream.stream.hierarchy.margin import Margin
from optstream.stream.public_days import PublicDays
from tasks.config.clocks import Clocks
from tasks.config.shape import SHAPES_NOTHING, hash_of
from tasks.config.tables.hierarchy_changes import changes_of
from tasks.config.tables.margins import margin_of
from tasks.config.tables.mechanisms import Mechanism
from tasks.config.tables.sections import Budget, Hierarchy, Input, Privacy, Stream
from tasks.storage.kept_figures import kept


def guarantee_of(privacy: Privacy, stream: Stream, source: Input) -> PrivacyModel:
    """Return the privacy guarantee that three tables of a configuration describe; the supplier's rounding
    adds to alpha. Raises ParameterError where they do not fit together.
    """
    return PrivacyModel(
        epsilon=privacy.epsilon,
        window_length=privacy.window,
        alpha=privacy.alpha + source.supplier_rounding,
        resolution=privacy.resolution,
        unit=stream.unit,
        leaves_per_step=stream.leaves_per_step,
        delta=privacy.delta or 0,
    )


class Guarantee(Clocks):
    """What a stream promises, to which tree its epsilon goes, and in which shares.

    hierarchy: as configured. parents: (node, parent) of the oldest tree in input order, the root's parent
    None; see `tree_of`.
    """

    mechanism: SerializeAsAny[Mechanism]
    privacy: Privacy
    hierarchy: Hierarchy
    budget: Budget
    parents: tuple[tuple[str, str | None], ...]

    @cached_property
    def model(self) -> PrivacyModel:
        """The privacy guarantee of the stream. Its alpha is of what is delivered: what one customer moves,
        and with it the supplier's rounding (Lemma 2a, docs/privacy.md).
        """
        return guarantee_of(self.privacy, self.stream, self.input)

    def model_of(self, revision: int) -> PrivacyModel:
        """Return the part of the privacy guarantee that a release is planned under; revision: 0 for first
        releases.

        Its budget is its share of what the stream plans with: first releases have what is not kept back, all
        restatements together what is. Raises BudgetError for a restatement where nothing is kept back.
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
        """Return the aggregation tree that holds on a day."""
        return self.dated_hierarchy.tree_of(day)

    @property
    def metered(self) -> bool:
        """Whether each row of the input is one customer's."""
        return self.input.schema_ == "metered"

    def leaves_per_period(self, day: date) -> int:
        """The leaves that a customer's readings of a day may lie in: nothing keeps metered rows in one."""
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

    @property
    def stream_share(self) -> Fraction:
        """As configured, or with "model" what is expected to err least, by public figures alone."""
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
        """One for each level, root first, then the margin's: as configured, or with "model" what the prior
        expects to be best, of public figures alone.
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
        """Return what `budget.levels = "model"` means for the levels of the oldest tree, from public facts;
        raises ParameterError where there is no public scale.
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

    @cached_property
    def configuration_hash(self) -> str:
        """SHA-256 of what shapes a release: every key but secrets and places, numbers in lowest terms."""
        document = self.model_dump(mode="json", exclude=SHAPES_NOTHING, by_alias=False)
        if self.margin is not None:
            document["margin"] = [self.margin.name, *self.margin.nodes]
            if self.margin.cells:
                document["cells"] = {leaf: sorted(nodes) for leaf, nodes in self.margin.cells}
        if self.hierarchy.changes:
            document["hierarchy_changes"] = [one.to_document() for one in self.dated_hierarchy.changes]
        return hash_of(document)
