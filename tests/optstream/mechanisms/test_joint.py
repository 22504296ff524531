"""Joint noise over nights: windows lose what the orders they meet cost; the noise here names its order."""

from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import count
from operator import itemgetter
from random import Random

import numpy as np
import pytest

from optstream.ledger.accounting import covers
from optstream.measurement import ordered
from optstream.mechanisms import Laplace
from optstream.noise import simulated_noise
from optstream.privacy import OrderSpend, PrivacyModel, charged_to_windows, worst_window
from optstream.privacy.spends import NOT_DRAWN
from optstream.stream.private_period import public_part, raw_bytes, with_raw
from tests.optstream.mechanisms.test_laplace import (
    HALF_HOURS,
    MODEL,
    TREE,
    informed_tree,
    laplace_tree,
    points_tree,
)

WEEK = PrivacyModel("1", 7 * 24, 1)
PLACE = 10**6
"""Numbers of an order: its name times this, and the place of a block in it."""


MAKES = {
    "blocks at the root": partial(informed_tree, None, None, blocks=(8, 1)),
    "blocks at both levels": partial(informed_tree, None, 1, blocks=(8, 1)),
    "long blocks": partial(informed_tree, None, 1, blocks=(5, 4)),
    "two orders": partial(informed_tree, None, None, blocks=(24, 2)),
    "a week": partial(informed_tree, None, None, blocks=(12, 2), model=WEEK),
    "every step": partial(laplace_tree, None, None),
    "points": points_tree,
}


@pytest.fixture
def named_noise(monkeypatch):
    """Orders whose numbers name them."""
    names, used = count(1), set()

    def order_noise(source, n_blocks, orders):
        rows, after = [], []
        for order in orders:
            name = order.gaps[0] if order.gaps else next(names)
            assert (name, order.drawn) not in used, "a state served twice"
            used.update({(name, order.drawn)} if n_blocks else ())
            rows.append([name * PLACE + order.drawn + place for place in range(n_blocks)])
            after.append(replace(order, gaps=(name,), drawn=order.drawn + n_blocks))
        return np.array(rows, dtype=np.int64).reshape(len(orders), n_blocks), tuple(after)

    monkeypatch.setattr(ordered, "order_noise", order_noise)


class World:
    """Nights as the release makes them: plans from charged spends, raw state taken once, draws that die."""

    store = dict

    def __init__(self, mechanism):
        self.mechanism, self.raw = mechanism, self.store()
        self.public, self.plans, self.measured = {}, {}, {}

    def reserve(self, first_step, n_steps):
        """Plan from what is charged, and from the newest day before: what is only reserved names no order."""
        before = max((one for one in self.public if one < first_step), default=None)
        near = [
            spend
            if at in self.public or not isinstance(spend, OrderSpend)
            else replace(spend, order=NOT_DRAWN)
            for at, plan in self.plans.items()
            if at != first_step
            for spend in plan
        ]
        state = self.mechanism.recall(near, self.public.get(before))
        plan = self.mechanism.plan(n_steps, first_step, state)
        self.plans[first_step] = plan
        assert worst_window(self.spends, self.mechanism.model.window_length).epsilon <= 1
        return before, state

    def draw(self, first_step, n_steps, before, state, *, dies=False, void=False):
        raw = self.raw.pop(before, None)
        informed = with_raw(state, raw) if raw else state
        values = np.zeros((2, n_steps))
        found = self.mechanism.measure(
            values, noise=simulated_noise(1), first_step=first_step, state=informed
        )
        if dies:
            return self.draw(first_step, n_steps, before, state)
        self.measured[first_step] = found  # of a void day too: that it raised may tell of its noise
        if void:
            return None
        assert covers(self.plans[first_step], found.spends, self.mechanism.model.window_length)
        self.plans[first_step] = found.spends
        self.public[first_step], self.raw[first_step] = public_part(found.state), raw_bytes(found.state)
        if left := raw_bytes(found.before):
            self.raw[before] = left
        return found

    def night(self, first_step, n_steps, **faults):
        return self.draw(first_step, n_steps, *self.reserve(first_step, n_steps), **faults)

    @property
    def spends(self):
        return [spend for plan in self.plans.values() for spend in plan]

    def blocks(self):
        """Each measured block with joint noise: level, node, first step, steps, name of its order, place."""
        for first, measured in self.measured.items():
            for spend in (one for one in measured.spends if isinstance(one, OrderSpend)):
                part = measured
                if measured.parts:
                    part = next(one for one in measured.parts if one.spends[0].level == spend.level)
                spans = (part.choices or {}).get("blocks") or [[step, step + 1] for step in part.positions]
                numbers = part.answers.values[0] if (part.choices or {}).get("blocks") else part.points
                if len(numbers) == len(TREE.nodes):
                    nodes = TREE.levels[spend.level]
                    numbers = numbers[nodes.start : nodes.stop]
                for node, row in enumerate(numbers):
                    for (start, stop), number in zip(spans, row, strict=True):
                        name, place = divmod(int(number), PLACE)
                        yield spend, node, first + start, stop - start, name, place

    def check(self):
        """No number serves twice, orders keep their distance, and no window loses more than it is charged."""
        window = self.mechanism.model.window_length
        blocks = list(self.blocks())
        served = Counter((name, place) for *_, name, place in blocks)
        assert not served or max(served.values()) == 1, "noise served twice"
        of_order = {}
        for spend, node, start, _, name, place in blocks:
            of_order.setdefault(name, []).append((place, start, spend, node))
        for known in of_order.values():
            known.sort(key=lambda one: one[0])
            per_order = -(-known[0][2].n_blocks // known[0][2].orders)
            for place, start, _, node in known:
                for other, then, _, of_node in known:
                    assert of_node == node
                    if other - place >= per_order:
                        assert then - start >= window, "two blocks of a chain in one window"
        others = [one for plan in self.plans.values() for one in plan if not isinstance(one, OrderSpend)]
        spends = self.spends
        assert worst_window(spends, window).epsilon <= 1
        # per level: the worst node's orders, each a part of the spend's charge (k orders, one price)
        starts = sorted({start for _, _, start, _, _, _ in blocks})
        lowest, highest = (starts[0] - window, starts[-1] + window) if starts else (0, 0)
        charges = charged_to_windows(spends, window, range(lowest, highest))
        blocks.sort(key=itemgetter(2))
        firsts, longest = [start for _, _, start, *_ in blocks], max((one[3] for one in blocks), default=0)
        for begin, charge in zip(range(lowest, highest), charges, strict=True):
            met = {}
            near = slice(bisect_right(firsts, begin - longest), bisect_left(firsts, begin + window))
            for spend, node, start, length, name, _ in blocks[near]:
                if start + length > begin:
                    met.setdefault((spend.level, node), {})[name] = spend.unit_charge / spend.orders
            levels = {}
            for (level, _), names in met.items():
                levels[level] = max(levels.get(level, Fraction(0)), sum(names.values()))
            apart = Fraction(0)
            for one in others:
                charged, price = one.charged(window)
                at = begin + window - 1 - one.first_step
                apart += int(charged[at]) * price if 0 <= at < len(charged) else 0
            truth = sum(levels.values(), apart)
            assert truth <= charge, "a window loses more than it is charged"
            yield truth

    @property
    def worst(self):
        return max(self.check(), default=Fraction(0))


@pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)
def test_days_in_a_row_measure_all_that_is_planned_at_the_price_of_a_window(make, named_noise):
    world, at = World(make()), 0
    for n_steps in (48, 46, 48, 50, 48):
        found = world.night(at, n_steps)
        orders = [spend for spend in found.spends if isinstance(spend, OrderSpend)]
        assert orders
        assert all(spend.order == 0 for spend in orders)
        at += n_steps
    assert 1 - Fraction(1, 10**6) < world.worst <= 1
    for measured in world.measured.values():
        assert any(spend.parts for spend in measured.spends if isinstance(spend, OrderSpend))


@pytest.mark.parametrize("kind", ["blocks at the root", "every step", "points"])
def test_a_late_day_is_measured_in_full(kind, named_noise):
    world = World(MAKES[kind]())
    for day in (0, 3, 2, 1, 4):
        world.night(48 * day, 48)
    full = [len(world.measured[48 * day].spends[0].parts) for day in range(5)]
    planned = len(world.mechanism.plan(48)[0].parts)
    assert min(full) >= 7 / 8 * planned, full


def test_a_reserved_day_that_is_never_drawn_so_takes_nothing_over(named_noise):
    """Day 2 of 0, 2 and 4 reserved, day 1 drawn before it; or day 2 planned once more."""
    for again in (False, True):
        world = World(MAKES["blocks at both levels"]())
        for day in (0, 4):
            world.night(48 * day, 48)
        reserved = world.reserve(96, 48)
        world.night(48, 48)
        if again:
            reserved = world.reserve(96, 48)
        world.draw(96, 48, *reserved)
        world.night(144, 48)
        assert world.worst <= 1


@pytest.mark.parametrize("seed", range(12))
def test_whatever_owners_do_at_once_no_window_loses_more_than_it_is_charged(seed, named_noise):
    dice = Random(seed)
    world, waiting, held = World(dice.choice(list(MAKES.values()))()), list(range(10)), {}
    dice.shuffle(waiting)
    waiting.sort(key=lambda day: day + 3 * dice.random())
    while waiting or held:
        if waiting and (not held or dice.random() < 0.5):
            day = waiting.pop(0)
            held[day] = world.reserve(48 * day, 48)
            continue
        day = dice.choice(sorted(held))
        if dice.random() < 0.2:  # its run ended before the draw
            held[day] = world.reserve(48 * day, 48)
        fault = dice.choice(["", "", "", "dies", "void", "lost"])
        if fault == "lost":
            world.raw.pop(dice.choice([*world.raw, None]), None)
        world.draw(48 * day, 48, *held.pop(day), **({fault: True} if fault in ("dies", "void") else {}))
    assert world.worst <= 1


def broken_apart(monkeypatch):
    monkeypatch.setattr(ordered, "_is_apart", lambda spend, part: True)


def broken_raw(monkeypatch):
    """A raw entry serves as often as it is asked for."""

    class Kept(dict):
        def pop(self, key, default=None):
            return self.get(key, default)

    monkeypatch.setattr(World, "store", Kept)


def broken_claims(monkeypatch):
    """Spends that leave windows to the night before which do not reach its last block."""
    real = ordered.next_spend

    def nearer(new, rule, state, others):
        found = real(new, rule, state, others)
        return replace(found, earlier=min(found.earlier, 1))

    monkeypatch.setattr("optstream.mechanisms.joint.next_spend", nearer)


@pytest.mark.parametrize(
    ("twin", "history", "dies"),
    [(broken_apart, [0, 1, 2, 3], 2), (broken_raw, [0, 1, 2, 3], 2), (broken_claims, [0, 1, 2], None)],
)
def test_broken_twins_are_caught(twin, history, dies, named_noise, monkeypatch):
    twin(monkeypatch)
    with pytest.raises(AssertionError):  # noqa: PT012  # any of the checks
        world = World(MAKES["blocks at the root"]())
        for day in history:
            world.night(48 * day, 48, dies=day == dies)
        assert world.worst <= 1


# the real noise


def test_a_raw_state_is_padded_and_says_nothing_of_the_noise():
    """Its length is the same whatever was drawn: how many blocks are placed ahead tells of sizes."""
    lengths = set()
    for seed in range(20):
        release = Laplace(MODEL, "joint", HALF_HOURS, 1).release(
            np.zeros((1, 48)), noise=simulated_noise(seed)
        )
        lengths.add(len(raw_bytes(release.state)))
    assert max(lengths) - min(lengths) <= 16, lengths


def test_counting_on_a_reserved_day_is_caught(named_noise, monkeypatch):
    monkeypatch.setattr("tests.optstream.mechanisms.test_joint.NOT_DRAWN", 0)
    with pytest.raises(AssertionError):
        test_a_reserved_day_that_is_never_drawn_so_takes_nothing_over(named_noise)
