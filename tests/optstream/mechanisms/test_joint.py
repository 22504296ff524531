"""Independent and joint noise: who may have which, and what windows lose over nights and changes of plan."""

import hashlib
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import count, product
from operator import itemgetter
from random import Random

import numpy as np
import pytest

from optstream.ledger.accounting import covers
from optstream.measurement import EquallySpaced, ordered
from optstream.mechanisms import (
    Hierarchical,
    HistoryInformed,
    HistoryInformedTree,
    Laplace,
    OptStream,
    Uniform,
)
from optstream.noise import simulated_noise
from optstream.privacy import OrderSpend, PrivacyModel, StepSpend, charged_to_windows, worst_window
from optstream.privacy.spends import NOT_DRAWN
from optstream.stream import AggregationTree, Feature
from optstream.stream.private_period import public_part, raw_bytes, with_raw
from optstream.stream.public_days import PublicDays
from tests.optstream.mechanisms.planned_days import spends_of

MODEL, HALF_HOURS = PrivacyModel("1", 48, 1), (46, 48, 50)
TREE = AggregationTree.from_parents({"all": None, "A": "all", "B": "all"})
HALVES = ["1/2", "1/2"]
PLACE = 10**6
"""Numbers of an order: its name times this, and the place of a block in it."""


def test_independent_noise_is_drawn_as_before_joint_noise_came():
    """The same bytes from the same seed, whatever would say for whom noise might be joint."""
    values = np.arange(96.0).reshape(2, 48)
    plain = Laplace(MODEL).measure(values, noise=simulated_noise(3), first_step=48)
    by_hand = np.rint(values * 1000) + simulated_noise(3).discrete_laplace(48_000.0, (2, 48))
    assert np.array_equal(plain.points, by_hand)
    for mechanism in (
        Laplace(MODEL, "laplace", HALF_HOURS, 2, 1),
        Laplace(MODEL, None, HALF_HOURS, 2, None),
        Laplace(MODEL, None, None, 2, 1),
        Uniform(MODEL, "laplace", HALF_HOURS, 2, 1),
    ):
        again = mechanism.measure(values, noise=simulated_noise(3), first_step=48)
        assert again.to_bytes() == plain.to_bytes()
    shared = laplace(n_nodes=2, declared_leaves=1).measure(values, noise=simulated_noise(3), first_step=48)
    assert shared.spends != plain.spends


def test_a_tree_that_may_have_no_joint_noise_draws_the_bytes_that_the_code_before_it_drew():
    roaming = PrivacyModel("1", 48, 1, unit="roaming", leaves_per_step=2)
    forest = AggregationTree.from_parents({"all": None, "A": "all", "B": "all", "B1": "B", "B2": "B"})
    values = np.arange(144.0).reshape(3, 48)
    digests = []
    for model, shares in ((MODEL, ["0", "1/2", "1/2"]), (roaming, ["0", "1/2", "1/2"])):
        mechanism = Hierarchical(Laplace(model, period_lengths=HALF_HOURS), forest, shares)
        release = mechanism.release(values, noise=simulated_noise(11), first_step=48)
        assert not mechanism.adaptive
        digests.append(hashlib.sha256(release.measured.to_bytes()).hexdigest())
    assert digests == [
        "b13eca3482183705f85b56dfff6b710bb4409abde0bf23592495b93bf303e75c",
        "10fd387bf125884bb5045570561b7e74f43bf0f05389b62392593174faa3ec38",
    ]


def laplace(model=MODEL, noise="joint", **given):
    return Laplace(model, noise, **({"period_lengths": HALF_HOURS} | given))


def informed(model=MODEL, noise="joint", blocks=(16, 1), **given):
    more = {"period_lengths": HALF_HOURS, "days": PublicDays(48), "relearn_days": 0} | given
    return HistoryInformed(model, *blocks, noise=noise, **more)


def laplace_tree(noise="joint", declared_leaves=1, shares=HALVES):
    return Hierarchical(laplace(noise=noise, declared_leaves=declared_leaves), TREE, shares)


def informed_tree(noise="joint", declared_leaves=1, shares=HALVES, **given):
    pattern = informed(noise=noise, declared_leaves=declared_leaves, **given)
    return HistoryInformedTree(pattern, TREE, shares)


def points_tree(noise="joint", declared_leaves=1, shares=HALVES, features=()):
    return OptStream(
        MODEL, TREE, sampling=EquallySpaced(10), features=features, level_shares=shares, noise=noise,
        declared_leaves=declared_leaves, period_lengths=HALF_HOURS,
    )  # fmt: skip


sums_tree = partial(points_tree, features=[Feature((range(14), range(14, 48)), "parts")])


@pytest.mark.parametrize("make", [laplace, informed])
@pytest.mark.parametrize(
    ("unit", "n_nodes", "declared", "has_it"),
    [
        ("customer", 1, None, True),
        ("roaming", 1, None, True),
        ("customer", 2, 1, True),
        ("customer", 2, None, False),
        ("customer", 2, 2, False),
        ("roaming", 2, 1, False),
        ("customer", None, 1, False),
    ],
)
def test_noise_is_joint_only_where_a_lemma_allows_it(make, unit, n_nodes, declared, has_it):
    model = PrivacyModel("1", 48, 1, unit=unit)
    (spend,) = make(model, None, n_nodes=n_nodes, declared_leaves=declared).plan(48)
    assert isinstance(spend, OrderSpend) == has_it
    if has_it:
        assert (spend.n_nodes, spend.leaves_changed) == (n_nodes, 1)
    else:
        assert isinstance(spend, StepSpend)
        assert spend.scale == 1000 * sum(spend.weights)


@pytest.mark.parametrize("make", [laplace_tree, points_tree, informed_tree])
def test_a_tree_has_it_at_the_root_and_where_the_operator_says_that_customers_stay(make):
    joint = {
        (declared, spend.level)
        for declared in (None, 1)
        for spend in make(None, declared).plan(48)
        if isinstance(spend, OrderSpend)
    }
    assert joint == {(None, 0), (1, 0), (1, 1)}
    assert make(None, 1).adaptive


def days_after(spends, mechanism, n_days, first_step=0):
    found, state = [], None
    for at in range(first_step, first_step + 48 * n_days, 48):
        state = mechanism.recall([*spends, *spends_of(found)], state)
        noise, values = simulated_noise(at), np.full((2, 48), 1e5)
        found.append(mechanism.measure(values, noise=noise, first_step=at, state=state))
        state = found[-1].state
    return found


BEFORE = {
    "Laplace": lambda: Hierarchical(Laplace(MODEL), TREE, HALVES),
    "points": lambda: points_tree("laplace"),
    "points and sums": lambda: sums_tree("laplace", shares=["9/10", "1/10"]),
    "independent": lambda: informed_tree("laplace"),
    "longer blocks": lambda: informed_tree(blocks=(6, 4)),
    "root first": lambda: informed_tree(shares=["9/10", "1/10"]),
    "few": lambda: informed_tree(blocks=(2, 4)),
}


@pytest.mark.parametrize(
    ("make", "before", "declared"),
    [
        *product([informed_tree], [one for one in BEFORE if "points" not in one], [1, None]),
        (laplace_tree, "Laplace", 1),
        (points_tree, "points", 1),
        (sums_tree, "points and sums", 1),
    ],
)
def test_after_another_plan_no_window_loses_more(make, before, declared):
    """Blocks are left out, and the days go on: within three all that is planned is measured again."""
    mechanism = make(None, declared)
    for n_before in (1, 2):
        first = spends_of(days_after([], BEFORE[before](), n_before))
        second = days_after(first, mechanism, 4, 48 * n_before)
        assert worst_window([*first, *spends_of(second)], 48).epsilon <= 1
        planned = mechanism.plan(48, 48 * (n_before + 3))
        assert [one.weights for one in second[3].spends] == [one.weights for one in planned]
        assert np.isfinite(mechanism.estimate(second[0]).values).all()


MAKES = {
    "blocks at the root": partial(informed_tree, None, None, blocks=(8, 1)),
    "blocks at both levels": partial(informed_tree, None, 1, blocks=(8, 1)),
    "long blocks": partial(informed_tree, None, 1, blocks=(5, 4)),
    "two orders": partial(informed_tree, None, None, blocks=(24, 2)),
    "a week": partial(informed_tree, None, None, blocks=(12, 2), model=PrivacyModel("1", 7 * 24, 1)),
    "every step": partial(laplace_tree, None, None),
    "points": points_tree,
}


@pytest.fixture
def named_noise(monkeypatch):
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
        orders = [spend for spend in world.night(at, n_steps).spends if isinstance(spend, OrderSpend)]
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
    assert min(full) >= 7 / 8 * len(world.mechanism.plan(48)[0].parts), full


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


def test_a_raw_state_is_padded_and_says_nothing_of_the_noise():
    """Its length is the same whatever was drawn: how many blocks are placed ahead tells of sizes."""
    lengths = set()
    for seed in range(20):
        release = laplace(n_nodes=1).release(np.zeros((1, 48)), noise=simulated_noise(seed))
        lengths.add(len(raw_bytes(release.state)))
    assert max(lengths) - min(lengths) <= 16, lengths


def test_counting_on_a_reserved_day_is_caught(named_noise, monkeypatch):
    monkeypatch.setattr("tests.optstream.mechanisms.test_joint.NOT_DRAWN", 0)
    with pytest.raises(AssertionError):
        test_a_reserved_day_that_is_never_drawn_so_takes_nothing_over(named_noise)
