"""Random histories of three streams of one population against the brute force; `make histories` runs more."""

import os
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import count
from math import isqrt
from random import Random
from unittest.mock import patch

import numpy as np
import pytest
from sqlalchemy import select

from optstream import mechanisms
from optstream.errors import BudgetError, LedgerError, ParameterError
from optstream.ledger import Key, ReleaseState, StreamTerms, WindowLoss, lifecycle, open_ledger
from optstream.ledger.accounting import charges_of, losses_with
from optstream.ledger.database import reading
from optstream.ledger.schema import GrantRow, ReleaseRow, StreamRow
from optstream.ledger.verify import Account, StreamCheck, grant_problems
from optstream.mechanisms import Fast, Fourier, Hierarchical, HistoryInformed, HistoryInformedTree, Laplace
from optstream.noise import simulated_noise
from optstream.privacy import GaussianSpend, OrderSpend, PrivacyModel
from optstream.privacy.accountant import repriced
from optstream.stream import AggregationTree, Lattice
from tests.optstream.estimation.programs import product
from tests.optstream.ledger.brute_force import Charged, above, broken, most_charged

# What a history chooses among: hierarchies, days, mechanisms, guarantees, shares and fates.

TREES = {
    "cells": product(2, 2),
    "one leaf": AggregationTree.from_parents({"root": None}),
    "three leaves": AggregationTree.from_parents({"root": None, "a": "root", "b": "root", "c": "root"}),
}
SHARES = {"cells": ("0", "0", "1/2", "1/2"), "one leaf": ("1",), "three leaves": ("1/2", "1/2")}
"""Of epsilon by level; of cells, half for them and half for their margin."""
MARGIN = 3
"""The number of the margin, which no level of the other hierarchies has."""
CHANGING = tuple(name for name in TREES if not isinstance(TREES[name], Lattice))
"""Hierarchies that change on a day; with a margin none does."""
DAYS = (0, 4, 8, 13, 16, 20, 25, 29, 33, 36)
"""First steps: days of three, four and five steps."""


def joint_blocks(model):
    """Blocks of one or two steps with joint noise, as many as a window holds."""
    length = 2 if model.window_length > 3 else 1
    return HistoryInformed(
        model, model.window_length // length, length, history_days=3, noise="joint",
        period_lengths=(3, 4, 5), declared_leaves=1,
    )  # fmt: skip


PLAIN = ("Laplace", "Sample", "PeGaSus", "BudgetDistribution", "BudgetAbsorption")
MECHANISMS = {
    **{name: getattr(mechanisms, name) for name in PLAIN},
    "Fast": lambda model: Fast(model, n_samples=min(2, model.window_length)),
    "Fourier": lambda model: Fourier(model, n_coefficients=1, shortest_period=3),
    "JointLaplace": lambda model: Laplace(model, "joint", (3, 4, 5), declared_leaves=1),
    "JointBlocks": joint_blocks,
}
JOINT = ("JointLaplace", "JointBlocks")
BY_CURRENCY = {"epsilon": ("0", MECHANISMS), "rho": ("1/1000000", {"Gaussian": mechanisms.Gaussian})}
"""The delta of every guarantee, and the releases under it."""
FATES = ("published", "published", "published", "redrawn", "died thrice", "raised", "given up", "reserved")
GUARANTEE = {
    "epsilon": ("1/4", "1", "3"),
    "window_length": (2, 3, 5, 8),
    "alpha": ("1", "2", "3", "10"),
    "unit": (("customer", 1), ("roaming", 1), ("roaming", 3)),
}
"""What all streams of the budget agree on; what a stream has of its own follows."""
RATIOS = ("1", "1", "3", "1/2", "7/3")
"""Of a stream's alpha to the budget's; other than 1, its resolution is its own, too."""
CHOSEN = (None, Fraction(1, 5), Fraction(1, 2), Fraction(3, 5))
"""Shares of epsilon that public facts chose; None for one that is written."""


def on_tree(pattern, name):
    made = HistoryInformedTree if isinstance(pattern, HistoryInformed) else Hierarchical
    return made(pattern, TREES[name], SHARES[name])


LEASE = timedelta(minutes=10)


def hashed(trees):
    """The list as a ledger knows it: each entry's name stands for all before it."""
    return tuple((step, " ".join(map(str, trees[: number + 1]))) for number, (step, _) in enumerate(trees))


class History:
    """Terms and releases that the ledger must take, and those that it must refuse."""

    def __init__(self, ledger, number, random, counts, currency):
        self.ledger, self.random, self.counts, self.currency = ledger, random, counts, currency
        self.names = tuple(f"{name} {number}" for name in ("load", "heat", "gas"))
        self.grant, self.now = f"people {number}", datetime(2026, 1, 1, tzinfo=UTC)
        self.guarantees, self.charged, self.owners = [], {}, count()
        self.ratios, self.trees, self.chosen = {}, {}, {}
        self._guarantee({name: random.choice(legal) for name, legal in GUARANTEE.items()})
        for name in self.names:
            self.ratios[name] = Fraction(random.choice(RATIOS))
            self.trees[name] = ((None, random.choice(sorted(TREES))),)
            self.counts["products"] += self.ratios[name] != 1
            if not self._refused(name, random.choice(CHOSEN), self.ledger.enrol, self.now):
                assert self._refused(name, None, self.ledger.enrol, self.now)

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

    def _refused(self, name, share, tell, *more):
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
        return [tree for step, tree in self.trees[stream] if step is None or step <= first_step][-1]

    def amend(self, stream):
        random = self.random
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
        if not self._refused(stream, share, self.ledger.amend, "another " + " and ".join(fields), self.now):
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

    def change_tree(self, stream):
        """Another tree from a day on, in the place of all that would have come later."""
        first_step, tree, before = self.random.choice(DAYS), self.random.choice(CHANGING), self.trees[stream]
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

    def step(self):
        random = self.random
        what, stream = random.random(), random.choice(self.names)
        if what < 0.2 and self.charged:
            self.amend(stream)
        elif what < 0.23 and self.charged:
            self.compromise()
        elif what < 0.25:
            self.change_currency(stream)
        elif what < 0.35 and all(tree in CHANGING for _, tree in self.trees[stream]):
            self.change_tree(stream)
        else:
            self.release(stream)

    def release(self, stream):
        """A first release, one that was left reserved, or a restatement."""
        random = self.random
        day, mechanism = random.randrange(len(DAYS) - 1), random.choice(sorted(BY_CURRENCY[self.currency][1]))
        share, fate = random.choice(["1", "1/2", "1/2", "1/5"]), random.choice(FATES)
        draw, kept = random.randrange(1000), random.choice([None, "1/3"])
        period = f"day {day}"
        last = self.ledger.latest(stream, period)
        taken_over = last is not None and last.state is ReleaseState.RESERVED
        revision = 0 if last is None else last.revision + (not taken_over)
        key, first_step, n_steps = Key(stream, period, revision), DAYS[day], DAYS[day + 1] - DAYS[day]
        named = self.tree_at(stream, first_step)
        tree, model = TREES[named], self.terms(stream).model
        own = model.with_budget(model.budget * Fraction(share))
        try:
            made = on_tree(BY_CURRENCY[self.currency][1][mechanism](own), named)
            _ = made.levels  # where joint noise cannot be had, it says so
        except ParameterError:
            # customers change leaf, the scale is too small for a group, or a period has one block
            assert mechanism in JOINT
            made = on_tree(Laplace(own), named)
        self.counts["joint noise"] += mechanism == "JointLaplace" and made.adaptive
        self.counts["joint blocks"] += isinstance(made, HistoryInformedTree)
        state = None
        if made.adaptive:
            state = made.recall(self.ledger.charged_near(key, range(first_step, first_step + n_steps)))
        plan = tuple(made.plan(n_steps, first_step, state))
        asked = Charged(plan, len(self.guarantees) - 1)
        self.counts["margins"] += MARGIN in {spend.level for spend in plan}
        measured = {level for level, part in enumerate(SHARES[named]) if part != "0"}
        assert {spend.level for spend in plan} == measured, "a level or a margin is measured and not charged"
        others = [one for other, one in self.charged.items() if other != key]
        refused = next(broken(self.guarantees, [*others, asked], asked), None)
        kept = None if kept is None or revision == 0 else Fraction(kept) * model.budget
        if kept is not None and not refused:
            restated = [
                one for other, one in self.charged.items() if other != key and other[0] == stream and other[2]
            ]
            spent = most_charged(self.guarantees, [*restated, asked], asked)
            refused = spent > kept and ("restatements", spent)
        same = self.charged.get(key) == asked
        try:
            held = self._reserve(key, plan, kept)
        except BudgetError as error:
            if same or not refused:
                raise AssertionError("refused, and no guarantee would be broken") from error
            self.counts["refused"] += 1
            self.counts["refused by an earlier guarantee"] += "by privacy guarantee" in str(error)
            self.counts["restatements refused"] += "kept back" in str(error)
            return
        self.charged[key] = asked
        assert same or not refused, f"reserved, and guarantee, window and cost are {refused}"
        self.counts["reserved"] += 1
        self.counts[fate] += 1
        if fate == "reserved":
            return
        if fate == "given up":
            self.ledger.void(key, "given up", self.now)
            return
        try:
            self.ledger.begin_draw(held, self.now)
        except BudgetError:
            assert refused, "only known noise stops a plan that was reserved"
            self.ledger.void(key, "its windows are lost", self.now)
            return
        if fate == "raised":
            self.ledger.void(key, "it raised", self.now)
            return
        for _ in range({"redrawn": 1, "died thrice": 2}.get(fate, 0)):
            held = self._reserve(key, plan)
            self.ledger.begin_draw(held, self.now)
        if fate == "died thrice":
            try:
                self._reserve(key, plan)
            except LedgerError:
                return
            raise AssertionError("a fourth owner was let in")
        values = np.random.default_rng(draw).integers(0, 50, (len(tree.leaves), n_steps))
        measured = made.measure(values, noise=simulated_noise(draw), first_step=first_step, state=state)
        self.ledger.record_drawn(held, "measured", measured.spends, self.now)
        self.charged[key] = Charged(tuple(measured.spends), asked.guarantee)
        self.ledger.record_staged(key, "staged", "release.parquet", self.now)
        self.ledger.record_published(key, self.now)

    def _reserve(self, key, plan, kept=None):
        self.now += timedelta(hours=1)
        owner = f"owner {next(self.owners)}"
        return self.ledger.reserve(
            key, plan, owner, self.now, LEASE, terms=self.terms(key[0]), restatements_epsilon=kept
        )

    def compromise(self):
        key = self.random.choice(sorted(self.charged))
        if self.ledger.find(key).state is ReleaseState.RESERVED:
            return
        self.ledger.compromise(key, "a stolen disk", self.now)
        self.charged[key] = Charged(self.charged[key].spends, self.charged[key].guarantee, True)
        self.counts["compromised"] += 1

    def check(self):
        found = above(self.guarantees, list(self.charged.values()))
        assert not found, f"guarantee, window and cost are {found[0]}"
        with reading(self.ledger._engine) as connection:
            row = connection.execute(select(GrantRow).where(GrantRow.name == self.grant)).one()
            account = Account()
            members = connection.execute(select(StreamRow).where(StreamRow.grant_id == row.id)).all()
            checks = [StreamCheck(connection, member, account) for member in members]
            said = [line for check in checks for line in check.problems()]
            said += grant_problems(connection, row, account)
        assert not said, said
        self.counts["histories"] += 1


def run(url, histories, seed, n_steps=14, currency="epsilon"):
    """Run so many histories on the ledger at `url`, and count what happened; raise for a broken guarantee."""
    counts, ledger = Counter(), open_ledger(url)
    try:
        for number in range(histories):
            history = History(ledger, number, Random(f"{seed} {number}"), counts, currency)
            for _ in range(n_steps):
                history.step()
            history.check()
    except AssertionError as error:
        error.add_note(f"It is history {number} of seed {seed}.")
        raise
    finally:
        ledger.close()
    return counts


HISTORIES = int(os.environ.get("OPTSTREAM_HISTORIES", "12"))
SEED = os.environ.get("OPTSTREAM_HISTORIES_SEED", "1")
HAPPENED = (
    "products", "margins", "amendments", "shares refused", "refused", "refused by an earlier guarantee",
    "restatements refused", "currencies refused", "changes", "changes refused", "compromised", *FATES,
)  # fmt: skip


@pytest.mark.parametrize(
    ("database", "currency"),
    [
        ("sqlite", "epsilon"),
        pytest.param("sqlite", "rho", marks=pytest.mark.slow),
        pytest.param("postgresql", "epsilon", marks=pytest.mark.nightly),
        pytest.param("postgresql", "rho", marks=pytest.mark.nightly),
    ],
)
def test_no_window_is_above_any_guarantee_that_was_stated_for_one_of_its_days(request, database, currency):
    counts = run(request.getfixturevalue(f"{database}_url"), HISTORIES, SEED, currency=currency)
    assert counts["histories"] == HISTORIES
    assert counts["reserved"] > 20
    assert [what for what in HAPPENED if not counts[what]] == []
    if currency == "epsilon":
        assert counts["joint noise"] > 0
        assert counts["joint blocks"] > 0


# Ledgers with one wrong line each, which the histories must find.

RESERVE, TERMS = "optstream.ledger.lifecycle", "optstream.ledger.terms"


def each_stream_by_itself():
    """The other streams of the privacy budget are not added up."""
    check = lifecycle._check_windows

    def of_one_stream(connection, grant, stream_id, *rest):
        own = ReleaseRow.stream_id == stream_id
        with patch(f"{RESERVE}.losses_with", lambda *some, **named: losses_with(*some, own, **named)):
            check(connection, grant, stream_id, *rest)

    return patch(f"{RESERVE}._check_windows", of_one_stream)


def _without(kept):
    """Charges of those releases alone for which `kept` is true."""
    return patch(
        "optstream.ledger.accounting.charges_of",
        lambda near, guarantees: charges_of([one for one in near if kept(one)], guarantees),
    )


def rho_as_epsilon():
    """k neighbours in a row cost k times the rho of one, and not the square."""

    def linear(spend, planned, other):
        found = repriced(spend, planned, other)
        if not isinstance(spend, GaussianSpend):
            return found
        factor = found.alpha_units // spend.alpha_units
        if factor == 1:
            return found
        return replace(spend, scale=spend.scale * Fraction(10**6, isqrt(10**12 * factor) + 1))

    return patch("optstream.ledger.accounting.repriced", linear)


def restatements_for_free():
    """What restatements have taken of their share, by conditions on their releases, is not looked at."""

    def without(connection, grant, plan, *only):
        found = losses_with(connection, grant, plan, *only)
        return found if len(only) < 2 else [replace(found[0], loss=WindowLoss(0, 0))]

    return patch(f"{RESERVE}.losses_with", without)


def midnight_for_free():
    """Windows that began before a period pay nothing for its joint noise."""
    real = OrderSpend.charged

    def charged(spend, window_length):
        units, price = real(spend, window_length)
        units[: window_length - 1] = 0
        return units, price

    return patch.object(OrderSpend, "charged", charged)


ABOVE = "guarantee, window and cost are"
OTHER_TREE = "changes the hierarchy of days that were reserved|has another tree"
TWINS = {
    "the guarantee in force alone prices plans": (
        lambda: patch(f"{RESERVE}.losses_with", lambda *some, **named: losses_with(*some, **named)[:1]),
        ("epsilon", 9, ABOVE),
    ),
    "each stream by itself": (each_stream_by_itself, ("epsilon", 1, ABOVE)),
    "margins for free": (lambda: _without(lambda one: one.spend.level != MARGIN), ("rho", 1, ABOVE)),
    "known noise for free": (lambda: _without(lambda one: not one.is_known), ("epsilon", 2, ABOVE)),
    "rho as epsilon": (rho_as_epsilon, ("rho", 9, ABOVE)),
    "restatements for free": (restatements_for_free, ("rho", 1, "restatements")),
    "any currency": (
        lambda: patch(f"{TERMS}.check_currency_kept", lambda *_: None), ("rho", 1, "two currencies")
    ),
    "any shares": (
        lambda: patch(f"{TERMS}.refuse_more_than_all", lambda *_: None),
        ("rho", 2, "chosen shares are more than all"),
    ),
    "any tree on days that were reserved": (
        lambda: patch(f"{TERMS}.continues", lambda *_: True), ("epsilon", 2, OTHER_TREE)
    ),
    "midnight for free": (midnight_for_free, ("epsilon", 1, ABOVE)),
}  # fmt: skip
"""The currency, and seeds by which little is tried before the wrong line shows."""


@pytest.mark.slow
@pytest.mark.parametrize(("twin", "tried"), TWINS.values(), ids=TWINS)
def test_a_broken_twin_is_found(sqlite_url, twin, tried):
    currency, seed, found = tried
    with twin(), pytest.raises(AssertionError, match=found):
        run(sqlite_url, histories=10, seed=seed, currency=currency)
