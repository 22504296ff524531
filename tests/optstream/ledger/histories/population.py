"""The three streams of one population: what they agree on, what each has of its own, how both change."""

from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from itertools import count

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize

from optstream.errors import LedgerError
from optstream.ledger import StreamTerms
from optstream.privacy import PrivacyModel
from tests.optstream.ledger.histories.choices import (
    BY_CURRENCY,
    CHOSEN,
    GUARANTEE,
    GUARANTEES,
    PRODUCT,
    TREES,
)

_numbers = count()


def hashed(trees):
    """The list as a ledger knows it: each entry's name stands for all before it."""
    return tuple((step, " ".join(map(str, trees[: number + 1]))) for number, (step, _) in enumerate(trees))


class Population(RuleBasedStateMachine):
    """Terms that the ledger must take, and those that it must refuse."""

    ledger = None
    counts = None
    currency = "epsilon"

    def __init__(self):
        super().__init__()
        number = next(_numbers)
        self.names = tuple(f"{name} {number}" for name in ("load", "heat", "gas"))
        self.grant, self.now = f"people {number}", datetime(2026, 1, 1, tzinfo=UTC)
        self.guarantees, self.charged, self.owners, self.dice = [], {}, count(), []
        self.ratios, self.trees, self.chosen = {}, {}, {}

    @property
    def model(self):
        return self.guarantees[-1]

    def terms(self, name):
        trees, model, budget_alpha = hashed(self.trees[name]), self.model, None
        if self.ratios[name] != 1:
            budget_alpha = model.alpha
            model = replace(model, alpha=self.ratios[name] * model.alpha, resolution=Fraction(1, 4))
        return StreamTerms(
            name, self.grant, model, trees[-1][1], "30 min", trees=trees,
            budget_alpha=budget_alpha, stream_share=self.chosen[name],
        )  # fmt: skip

    @initialize(guarantee=GUARANTEES, products=st.tuples(*[PRODUCT] * 3))
    def begin(self, guarantee, products):
        self._guarantee(guarantee)
        for name, (ratio, tree, chosen) in zip(self.names, products, strict=True):
            self.ratios[name], self.trees[name] = Fraction(ratio), ((None, tree),)
            self.counts["products"] += self.ratios[name] != 1
            if not self._told(name, chosen, self.ledger.enrol, self.now):
                assert self._told(name, None, self.ledger.enrol, self.now)

    def _told(self, name, share, tell, *more):
        """Whether the ledger took the terms with this chosen share: unless all are then more than 1."""
        before, self.chosen[name] = self.chosen.get(name), share
        too_much = share is not None and sum(filter(None, self.chosen.values())) > 1
        try:
            tell(self.terms(name), *more)
        except LedgerError:
            assert too_much, "refused, and chosen shares are not more than all"
            self.counts["shares refused"] += 1
            self.chosen[name] = before
            return False
        assert not too_much, "chosen shares are more than all"
        return True

    def _guarantee(self, guarantee):
        self.guarantee = guarantee
        unit, leaves = guarantee["unit"]
        delta, _ = BY_CURRENCY[self.currency]
        named = {name: guarantee[name] for name in ("epsilon", "window_length", "alpha")}
        self.guarantees.append(
            PrivacyModel(**named, resolution="1", unit=unit, leaves_per_step=leaves, delta=delta)
        )

    def tree_at(self, stream, first_step):
        """The tree of a day: that of the stream's list which began last."""
        return [tree for step, tree in self.trees[stream] if step is None or step <= first_step][-1]

    def amend(self, random, stream):
        """Another value of one field, or of all that the budget agrees on and the hierarchy."""
        fields = random.choice([[field] for field in (*GUARANTEE, "tree", "share")] + [[*GUARANTEE, "tree"]])
        wanted = self.guarantee | {
            name: random.choice(GUARANTEE[name]) for name in fields if name in GUARANTEE
        }
        trees, share = self.trees[stream], self.chosen[stream]
        if "tree" in fields:
            trees = ((None, random.choice(sorted(TREES))),)
        if "share" in fields:
            share = random.choice(CHOSEN[1:])
        if (wanted, trees, share) == (self.guarantee, self.trees[stream], self.chosen[stream]):
            return
        before = self.guarantee
        self._guarantee(wanted)
        # the hierarchy and the share are the amended stream's own
        self.trees[stream] = trees
        if not self._told(stream, share, self.ledger.amend, "another " + " and ".join(fields), self.now):
            self.guarantee = before
            self.guarantees.pop()
            return
        self.counts["amendments"] += 1

    def change_currency(self, stream):
        """A budget keeps the currency that it began with."""
        own = self.terms(stream)
        delta = "1/1000000" if own.model.currency == "epsilon" else 0
        try:
            self.ledger.amend(
                replace(own, model=replace(own.model, delta=delta, rho=None)), "another currency", self.now
            )
        except LedgerError:
            self.counts["currencies refused"] += 1
            return
        raise AssertionError("a budget has two currencies")

    def change_tree(self, stream, first_step, tree):
        """Another tree from a day on, in the place of all that would have come later."""
        before = self.trees[stream]
        kept = tuple(one for one in before if one[0] is None or one[0] < first_step)
        own = [one.steps for (name, *_), one in self.charged.items() if name == stream]
        reserved_until = max((max(steps) + 1 for steps in own), default=first_step)
        self.trees[stream] = (*kept, (first_step, tree))
        if self.trees[stream] == before:
            return
        # the same tree from the same day on is no change of its days
        touched = [step for step, _ in set(before) ^ set(self.trees[stream])]
        try:
            self.ledger.enrol(self.terms(stream), self.now)
        except LedgerError:
            assert min(touched) < reserved_until, "refused, and no day that was reserved has another tree"
            self.trees[stream] = before
            self.counts["changes refused"] += 1
            return
        assert not own or min(touched) >= reserved_until, "a day that was reserved has another tree"
        self.counts["changes"] += 1
