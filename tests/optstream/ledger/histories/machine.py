"""One history: what is reserved, drawn and compromised of three streams, and what should be charged."""

from collections import Counter
from datetime import timedelta
from fractions import Fraction
from random import Random

import numpy as np
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from sqlalchemy import select

from optstream.errors import BudgetError, LedgerError, ParameterError
from optstream.ledger import Key, ReleaseState, open_ledger
from optstream.ledger.database import reading
from optstream.ledger.schema import GrantRow, StreamRow
from optstream.ledger.verify import Account, StreamCheck, grant_problems
from optstream.mechanisms import HistoryInformedTree, Laplace
from optstream.noise import simulated_noise
from tests.optstream.ledger.brute_force import Charged, above, broken, most_charged
from tests.optstream.ledger.histories.choices import (
    BY_CURRENCY,
    CHANGING,
    DAYS,
    FATES,
    JOINT,
    MARGIN,
    SHARES,
    TREES,
    on_tree,
)
from tests.optstream.ledger.histories.population import Population

LEASE = timedelta(minutes=10)


class Histories(Population):
    """Every release's charge as it was planned or drawn, beside the ledger's."""

    @rule(dice=st.integers(0, 2**32))
    def step(self, dice):
        """One thing that happens; hypothesis alone would prefer few rules and their first choices."""
        self.dice.append(dice)
        random = Random(repr((self.guarantee, self.dice)))
        what, stream = random.random(), random.choice(self.names)
        if what < 0.2 and self.charged:
            self.amend(random, stream)
        elif what < 0.23 and self.charged:
            self.compromise(random)
        elif what < 0.25:
            self.change_currency(stream)
        elif what < 0.35 and all(tree in CHANGING for _, tree in self.trees[stream]):
            self.change_tree(stream, random.choice(DAYS), random.choice(CHANGING))
        else:
            self.release(
                stream, random.randrange(len(DAYS) - 1),
                random.choice(sorted(BY_CURRENCY[self.currency][1])),
                random.choice(["1", "1/2", "1/2", "1/5"]), random.choice(FATES), random.randrange(1000),
                random.choice([None, "1/3"]),
            )  # fmt: skip

    def release(self, stream, day, mechanism, share, fate, draw, kept):
        """A first release, one that was left reserved, or a restatement."""
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
        self.counts["joint noise"] += mechanism == "JointLaplace" and made.reads_spends
        self.counts["joint blocks"] += isinstance(made, HistoryInformedTree)
        state = None
        if made.reads_spends:
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

    def compromise(self, random):
        """The noise of something that was drawn becomes known."""
        key = random.choice(sorted(self.charged))
        if self.ledger.find(key).state is ReleaseState.RESERVED:
            return
        self.ledger.compromise(key, "a stolen disk", self.now)
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
            checks = [StreamCheck(connection, member, account) for member in members]
            said = [line for check in checks for line in check.problems()]
            said += grant_problems(connection, row, account)
        assert not said, said
        self.counts["histories"] += 1
        self.counts["guarantees"] += len({one.guarantee for one in self.charged.values()})


def run(url, histories, chosen_seed, n_steps=14, currency="epsilon"):
    """Run so many histories on the ledger at `url`, and count what happened; raise for a broken guarantee."""
    counts = Counter()
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
