"""Histories of two streams of one population against the brute force; the long form is a command.

The second may be a product of another quantity, with an alpha of its own, a resolution and a chosen share.

    python -m tests.optstream.ledger.histories --histories 2000 --seed 1

runs so many on SQLite and as many on PostgreSQL; `--control` breaks the pricing, which must be found.
"""

import argparse
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import count
from random import Random
from unittest.mock import patch

import numpy as np
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from sqlalchemy import select

from optstream.errors import BudgetError, LedgerError, ParameterError
from optstream.ledger import ReleaseState, StreamTerms, open_ledger
from optstream.ledger.accounting.kept_guarantees import losses_with
from optstream.ledger.database.engine import reading
from optstream.ledger.database.schema import GrantRow, ReleaseRow, StreamRow
from optstream.ledger.transactions.stream_rows import lock
from optstream.ledger.verification.releases import Account
from optstream.ledger.verification.verify import grant_problems, stream_problems
from optstream.mechanisms import (
    BudgetAbsorption,
    BudgetDistribution,
    Fast,
    Fourier,
    Gaussian,
    Hierarchical,
    HistoryInformed,
    HistoryInformedTree,
    Laplace,
    PeGaSus,
    Sample,
)  # fmt: skip
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree
from tests.optstream.ledger.brute_force import Charged, above, broken
from tests.temporary_postgresql import find_binaries, temporary_cluster

TREES = {
    "one leaf": AggregationTree.from_parents({"root": None}),
    "three leaves": AggregationTree.from_parents({"root": None, "a": "root", "b": "root", "c": "root"}),
}
DAYS = (0, 4, 8, 13, 16, 20, 25, 29, 33, 36)
"""First steps: days of three, four and five steps."""


def joint_blocks(model):
    """Blocks of one or two steps in groups of joint noise, as many as a window holds."""
    length = 2 if model.window_length > 3 else 1
    return HistoryInformed(
        model, model.window_length // length, length, history_days=3, noise="joint", group_size="3/2",
        period_lengths=(3, 4, 5), declared_leaves=1,
    )  # fmt: skip


MECHANISMS = {
    "Laplace": Laplace,
    "Sample": Sample,
    "PeGaSus": PeGaSus,
    "BudgetDistribution": BudgetDistribution,
    "BudgetAbsorption": BudgetAbsorption,
    "Fast": lambda model: Fast(model, n_samples=min(2, model.window_length)),
    "Fourier": lambda model: Fourier(model, n_coefficients=1, shortest_period=3),
    "JointLaplace": lambda model: Laplace(model, "joint", (3, 4, 5), declared_leaves=1),
    "JointBlocks": joint_blocks,
}
JOINT = ("JointLaplace", "JointBlocks")
BY_CURRENCY = {"epsilon": ("0", MECHANISMS), "rho": ("1/1000000", {"Gaussian": Gaussian})}
"""The delta of every guarantee, and what is released under it."""
FATES = ("published", "published", "published", "redrawn", "died thrice", "raised", "given up", "reserved")
LEASE = timedelta(minutes=10)
AT_ONCE = 100
"""Histories of one of the generator's seeds."""
CHANGES = {
    "epsilon": ("1/4", "1", "3"),
    "window_length": (2, 3, 5, 8),
    "alpha": ("1", "2", "3", "10"),
    "unit": (("customer", 1), ("roaming", 1), ("roaming", 3)),
    "windows": ("sliding", "sliding", "aligned"),
    "tree": tuple(TREES),
}
RATIOS = ("1", "1", "3", "1/2", "7/3")
"""Of the second stream's alpha to the first one's; other than 1, its resolution is its own, too."""
GUARANTEES = st.fixed_dictionaries({name: st.sampled_from(legal) for name, legal in CHANGES.items()})
_numbers = count()


def on_tree(pattern, tree):
    """A pattern with half of epsilon for each of two levels."""
    shares = ["1"] if len(tree.levels) == 1 else ["1/2", "1/2"]
    made = HistoryInformedTree if isinstance(pattern, HistoryInformed) else Hierarchical
    return made(pattern, tree, shares)


def hashed(trees):
    """The list as a ledger knows it: each entry's name stands for all before it."""
    return tuple((step, " ".join(map(str, trees[: number + 1]))) for number, (step, _) in enumerate(trees))


class Histories(RuleBasedStateMachine):
    """A ledger and what should be in it: every release's charge as it was planned or drawn."""

    ledger = None
    counts = None
    currency = "epsilon"

    def __init__(self):
        super().__init__()
        number = next(_numbers)
        self.names = f"load {number}", f"heat {number}"
        self.grant, self.now = f"people {number}", datetime(2026, 1, 1, tzinfo=UTC)
        self.guarantees, self.charged, self.owners, self.dice = [], {}, count(), []

    @property
    def model(self):
        return self.guarantees[-1]

    def terms(self, name):
        trees, model, budget_alpha = hashed(self.trees[name]), self.model, None
        if name == self.names[1] and self.ratio != 1:
            budget_alpha = model.alpha
            model = replace(model, alpha=self.ratio * model.alpha, resolution=Fraction(1, 4))
        return StreamTerms(
            name, self.grant, model, trees[-1][1], "strict", "30 min", trees=trees,
            budget_alpha=budget_alpha, stream_share=self.chosen,
        )  # fmt: skip

    def tree_at(self, stream, first_step):
        """The tree of a day: that of the stream's list which began last."""
        return [tree for step, tree in self.trees[stream] if step is None or step <= first_step][-1]

    @initialize(guarantee=GUARANTEES, ratio=st.sampled_from(RATIOS), chosen=st.booleans())
    def begin(self, guarantee, ratio, chosen):
        self._guarantee(guarantee)
        self.ratio, self.chosen = Fraction(ratio), Fraction(1, 2) if chosen else None
        self.counts["products"] += self.ratio != 1
        self.trees = dict.fromkeys(self.names, ((None, guarantee["tree"]),))
        for name in self.names:
            self.ledger.enrol(self.terms(name), self.now)

    def _guarantee(self, guarantee):
        self.guarantee = guarantee
        unit, leaves = guarantee["unit"]
        delta, _ = BY_CURRENCY[self.currency]
        named = {name: guarantee[name] for name in ("epsilon", "window_length", "alpha", "windows")}
        self.guarantees.append(
            PrivacyModel(**named, resolution="1", unit=unit, leaves_per_step=leaves, delta=delta)
        )

    @rule(dice=st.integers(0, 2**32))
    def step(self, dice):
        """One thing that happens; hypothesis alone would prefer few rules and their first choices."""
        self.dice.append(dice)
        random = Random(repr((self.guarantee, self.dice)))
        what = random.random()
        if what < 0.2 and self.charged:
            self.amend(random)
        elif what < 0.23 and self.charged:
            self.compromise(random)
        elif what < 0.35:
            self.change_tree(random.choice(self.names), random.choice(DAYS), random.choice(sorted(TREES)))
        else:
            self.release(
                random.choice(self.names), random.randrange(len(DAYS) - 1),
                random.choice(sorted(BY_CURRENCY[self.currency][1])),
                random.choice(["1", "1/2", "1/2", "1/5"]), random.choice(FATES), random.randrange(1000),
            )  # fmt: skip

    def amend(self, random):
        """Another value of one field of the guarantee, or of all."""
        fields = random.choice([[field] for field in CHANGES] + [list(CHANGES)])
        wanted = {**self.guarantee, **{field: random.choice(CHANGES[field]) for field in fields}}
        # another tree is the amended stream's own; the rest is agreed on by all streams of a grant
        stream = random.choice(self.names)
        same_tree = "tree" not in fields or ((None, wanted["tree"]),) == self.trees[stream]
        if same_tree and wanted == {**self.guarantee, "tree": wanted["tree"]}:
            return
        self._guarantee(wanted)
        if "tree" in fields:
            self.trees[stream] = ((None, wanted["tree"]),)
        self.ledger.amend(self.terms(stream), "another " + " and ".join(fields), self.now)
        self.counts["amendments"] += 1

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

    def release(self, stream, day, mechanism, share, fate, draw):
        """A first release, one that was left reserved, or a restatement."""
        period = f"day {day}"
        last = self.ledger.latest(stream, period)
        taken_over = last is not None and last.state is ReleaseState.RESERVED
        revision = 0 if last is None else last.revision + (not taken_over)
        key, first_step, n_steps = (stream, period, revision), DAYS[day], DAYS[day + 1] - DAYS[day]
        tree = TREES[self.tree_at(stream, first_step)]
        model = self.terms(stream).model
        own = model.with_budget(model.budget * Fraction(share))
        try:
            made = on_tree(BY_CURRENCY[self.currency][1][mechanism](own), tree)
            _ = made.levels  # where joint noise cannot be had, it says so
        except ParameterError:
            # customers change leaf, the scale is too small for a group, or a period has one block
            assert mechanism in JOINT
            made = on_tree(Laplace(own), tree)
        self.counts["joint noise"] += mechanism == "JointLaplace" and made.reads_spends
        self.counts["joint blocks"] += isinstance(made, HistoryInformedTree)
        state = None
        if made.reads_spends:
            state = made.recall(self.ledger.charged_near(*key, first_step, n_steps))
        plan = tuple(made.plan(n_steps, first_step, state))
        asked = Charged(plan, len(self.guarantees) - 1)
        others = [one for other, one in self.charged.items() if other != key]
        refused = next(broken(self.guarantees, [*others, asked], asked), None)
        same = self.charged.get(key) == asked
        try:
            held = self._reserve(key, plan)
        except BudgetError as error:
            if same or not refused:
                raise AssertionError("refused, and no guarantee would be broken") from error
            self.counts["refused"] += 1
            self.counts["refused by an earlier guarantee"] += "by privacy guarantee" in str(error)
            return
        self.charged[key] = asked
        assert same or not refused, f"reserved, and guarantee, window and cost are {refused}"
        self.counts["reserved"] += 1
        self.counts[fate] += 1
        if fate == "reserved":
            return
        if fate == "given up":
            self.ledger.void(*key, "given up", self.now)
            return
        try:
            self.ledger.begin_draw(held, self.now)
        except BudgetError:
            assert refused, "only known noise stops a plan that was reserved"
            self.ledger.void(*key, "its windows are lost", self.now)
            return
        if fate == "raised":
            self.ledger.void(*key, "it raised", self.now)
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
        self.ledger.record_staged(*key, "staged", "release.parquet", self.now)
        self.ledger.record_published(*key, self.now)

    def _reserve(self, key, plan):
        self.now += timedelta(hours=1)
        owner = f"owner {next(self.owners)}"
        return self.ledger.reserve(*key, plan, owner, self.now, LEASE, terms=self.terms(key[0]))

    def compromise(self, random):
        """The noise of something that was drawn becomes known."""
        key = random.choice(sorted(self.charged))
        if self.ledger.find(*key).state is ReleaseState.RESERVED:
            return
        self.ledger.compromise(*key, "a stolen disk", self.now)
        self.charged[key] = Charged(self.charged[key].spends, self.charged[key].guarantee, True)
        self.counts["compromised"] += 1

    def teardown(self):
        """No window of the whole history is above any guarantee, and the ledger's own check agrees."""
        found = above(self.guarantees, list(self.charged.values()))
        assert not found, f"guarantee, window and cost are {found[0]}"
        with reading(self.ledger._engine) as connection:
            row = connection.execute(select(GrantRow).where(GrantRow.name == self.grant)).one()
            account = Account()
            members = connection.execute(select(StreamRow).where(StreamRow.grant_id == row.id)).all()
            said = [line for member in members for line in stream_problems(connection, member, account)]
            said += grant_problems(connection, row, account)
        assert not said, said
        self.counts["histories"] += 1
        self.counts["guarantees"] += len({one.guarantee for one in self.charged.values()})


@contextmanager
def in_force_alone():
    """The control: what the code did before, new plans priced by the guarantee in force alone."""

    def first_of(*arguments, **named):
        return losses_with(*arguments, **named)[:1]

    with patch("optstream.ledger.transactions.reserve.losses_with", first_of):
        yield


@contextmanager
def each_stream_by_itself():
    """The control of products: the other streams of the privacy budget are not added up."""
    reserving = []

    def locked(connection, stream):
        reserving[:] = lock(connection, stream)
        return tuple(reserving)

    def of_one_stream(connection, grant, plan, *only, **named):
        return losses_with(connection, grant, plan, *only, ReleaseRow.stream_id == reserving[0].id, **named)

    place = "optstream.ledger.transactions.reserve"
    with patch(f"{place}.lock", locked), patch(f"{place}.losses_with", of_one_stream):
        yield


def run(url, histories, chosen_seed, n_steps=14, currency="epsilon"):
    """Run so many histories on the ledger at `url`; raise AssertionError for the first broken guarantee.

    Returns how often each thing happened.
    """
    counts = dict.fromkeys(
        ["histories", "guarantees", "amendments", "reserved", "refused", "refused by an earlier guarantee",
         "compromised", "products", "joint noise", "joint blocks", "changes", "changes refused", *FATES], 0,
    )  # fmt: skip
    machine = type(
        "Histories", (Histories,), {"ledger": open_ledger(url), "counts": counts, "currency": currency}
    )
    machine.TestCase.settings = settings()
    how = settings(
        max_examples=histories, stateful_step_count=n_steps, deadline=None, database=None,
        phases=[Phase.generate], suppress_health_check=list(HealthCheck), print_blob=False,
    )  # fmt: skip
    try:
        run_state_machine_as_test(seed(chosen_seed)(machine), settings=how)
    finally:
        machine.ledger.close()
    return counts


def main():
    """The long form: prints the counts of each database."""
    told = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    told.add_argument("--histories", type=int, default=2000)
    told.add_argument("--seed", type=int, default=1)
    told.add_argument("--database", choices=["sqlite", "postgresql"], help="only this one")
    told.add_argument("--currency", choices=sorted(BY_CURRENCY), default="epsilon", help="of all guarantees")
    told.add_argument("--control", action="store_true", help="with broken pricing, which must be found")
    asked = told.parse_args()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="optstream-histories-"))
        urls = {"sqlite": f"sqlite:///{folder}/ledger.sqlite"}
        binaries = find_binaries()
        if binaries is None:
            print("PostgreSQL is not installed: only SQLite is tried", file=sys.stderr)
        else:
            urls["postgresql"] = stack.enter_context(temporary_cluster(binaries)).new_url()
        for database, url in urls.items():
            if asked.database not in (None, database):
                continue
            if asked.control:
                with in_force_alone():
                    try:
                        run(url, asked.histories, asked.seed, currency=asked.currency)
                    except AssertionError as found:
                        print(f"{database}: the control is found: {found}")
                        continue
                sys.exit(f"{database}: the control was not found")
            total = Counter()
            for batch in range(-(-asked.histories // AT_ONCE)):
                number = AT_ONCE * asked.seed + batch
                total.update(run(url, min(AT_ONCE, asked.histories), number, currency=asked.currency))
                print(f"{database}, seed {asked.seed}: {dict(total)}", flush=True)


if __name__ == "__main__":
    main()
