"""Noise that goes on from period to period: which orders a period continues, its draw, and what it leaves."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optstream.noise import NoiseSource, Order, order_noise
from optstream.noise.order import LARGEST_WINDOW, MOST_BLOCKS, VARIANCES
from optstream.privacy import OrderSpend, Spend
from optstream.stream import RawState, State
from optstream.stream.private_period import ORDER, open_raw_state

LONGEST_GAP = 64
"""Windows without a release, after which new orders begin; up to it the blocks between are drawn, too."""
OF_OTHERS = 2**12  # characters of a raw state but for its numbers, at most
LARGEST_NUMBER = 40  # characters of a raw number and its place, generously
BEGIN = 4
"""Windows of blocks that orders draw before their first one, for their first blocks are not like others."""

Rule = Callable[[int, int], Sequence[range]]
"""Blocks that lie whole in a period, from its first running step and its length; counted from that step. Its
text names it: orders of one rule are not continued by another."""


@dataclass(frozen=True)
class OrderTerms:
    """Blocks of a window, at most, and steps of a block; more than `LARGEST_WINDOW` take several orders."""

    n_blocks: int
    length: int

    @property
    def orders(self) -> int:
        """How many orders there are. Privacy: none; a public rule."""
        return -(-self.n_blocks // LARGEST_WINDOW)

    @property
    def window(self) -> int:
        """Blocks of one order in a window, at most. Privacy: none; a public rule."""
        return -(-self.n_blocks // self.orders)

    @property
    def like_group(self) -> int:
        """Blocks of a group of joint noise with nearly this distribution. Privacy: none; public."""
        return round(1.3 + 0.6 * self.window)

    @property
    def deviation(self) -> float:
        """A block's noise relative to Laplace noise on a window's only block. Privacy: none; public."""
        return self.orders * sqrt(VARIANCES[self.window - 1] / 2.0)


def _texts(spend: OrderSpend, rule: str) -> list[str]:
    """Return all that the noise hangs on, as text. Privacy: none; terms are public."""
    moved = (spend.alpha_units, spend.leaves_changed, spend.n_nodes, spend.window_length)
    return [rule, *(str(one) for one in (spend.n_blocks, spend.longest, spend.scale, *moved))]


def next_spend(template: OrderSpend, rule: str, state: State | None, others: Sequence[Spend]) -> OrderSpend:
    """Return the spend of a period, its parts still to be chosen: which orders it continues, or begins.
    template: of the period, without parts, with its first step as `order`. rule: names where blocks lie.
    others: spends of other periods. Privacy: none; a function of public facts (Lemma 16b)."""
    known, first = (state or {}).get(ORDER) or {}, template.first_step
    if known.get("terms") != _texts(template, rule):
        return template
    gap, most = first - known["next_step"], LONGEST_GAP * template.window_length
    # each block that is drawn begins at a step of its own
    if not 0 <= gap <= most or known["drawn"] + gap + template.n_steps > MOST_BLOCKS:
        return template
    stop = template.steps.stop
    after = [
        one.first_step + one.parts[0].start
        for one in others
        if isinstance(one, OrderSpend)
        and (one.level, one.stage, one.order) == (template.level, template.stage, known["order"])
        and one.first_step >= stop
        and one.parts
    ]
    later = min(after) - stop + 1 if after else 0
    return replace(template, order=known["order"], earlier=first - known["last"], later=later)


@dataclass(frozen=True, eq=False)
class Ordered:
    """Noise for the parts of a period that are measured. spend: charges no window more than the plan. noise:
    (n_series, n_parts), for one use. after: the state for the next period, public but for its raw entry;
    empty where no orders have begun. left: raw, the noise of blocks that were passed over, for a late period
    there."""

    spend: OrderSpend
    noise: NDArray[np.int64]
    after: dict[str, Any]
    left: dict[str, Any]


def draw_ordered(
    spend: OrderSpend, rule: Rule, named: str, state: State | None, noise: NoiseSource
) -> Ordered:
    """Draw the noise of a period's parts, of each series, from the orders that the spend names.

    Where the raw entry of `state` does not go on with them, new orders begin, and those of the spend's parts
    stay that share no window with blocks of the others. Privacy: Lemma 15a, charged as Lemma 16b says. A raw
    entry must serve once; faults, not readings, decide whether there is one.
    """
    first, stop = spend.first_step, spend.steps.stop
    known, texts = (state or {}).get(ORDER) or {}, _texts(spend, named)
    terms = OrderTerms(spend.n_blocks, spend.longest)
    raw = open_raw_state(known["raw"]) if isinstance(known.get("raw"), RawState) else {}
    if (raw.get("order"), raw.get("terms")) != (spend.order, texts):
        raw = {}
    passed = {step: np.array(values, dtype=np.int64) for step, values in raw.get("passed", ())}
    own = [first + part.start for part in rule(first, spend.n_steps)]
    parts, order, last = spend.parts, spend.order, known.get("last")
    series, drawn = [_orders(spend, terms, one) for one in raw.get("series", ())], raw.get("drawn", 0)
    if series and not spend.later and raw["next_step"] <= first:
        begin, passed = raw["next_step"], {}
        own = [*(begin + part.start for part in rule(begin, first - begin)), *own]
    elif passed and {first + part.start for part in parts} <= passed.keys():
        series, own = [], []
    else:
        series, passed, last, drawn = [], {}, None, BEGIN * terms.window * terms.orders
        parts = tuple(part for part in parts if _is_apart(spend, part))
        own = [step for step in own if parts and step >= first + parts[0].start]
        if spend.earlier or spend.later:
            order = first
        spend = replace(spend, parts=parts, order=order, earlier=0, later=0)
        new = [Order(float(spend.scale), terms.window)] * spend.n_nodes
        for _ in range(terms.orders if own else 0):
            series.append(order_noise(noise, BEGIN * terms.window, new)[1])
    if own:
        found, series = _draw(noise, series, drawn, len(own))
        passed |= dict(zip(own, found.T, strict=True))
    wanted = [passed.pop(first + part.start) for part in parts]
    values = np.array(wanted, dtype=np.int64).reshape(len(parts), spend.n_nodes).T
    last = first + parts[-1].stop - 1 if parts else last
    kept = {"order": order, "terms": texts, "drawn": drawn + len(own), "next_step": stop}
    before = [[step, one.tolist()] for step, one in passed.items() if step < first]
    behind = [[step, one.tolist()] for step, one in passed.items() if step >= stop]
    after: dict[str, Any] = {}
    if last is not None and (series or behind or known):
        after = {
            **kept,
            "last": last,
            "raw": _raw({**kept, "series": _plain(series), "passed": behind}, spend),
        }
    left = {ORDER: {"raw": _raw({**kept, "series": [], "passed": before}, spend)}} if before else {}
    return Ordered(spend, values, {ORDER: after} if after else {}, left)


def _is_apart(spend: OrderSpend, part: range) -> bool:
    """Return whether no window holds steps of a part and of blocks not paid for. Privacy: none; public."""
    window = spend.window_length
    after = spend.n_steps + spend.later - part.stop
    return not ((spend.earlier and part.start + spend.earlier < window) or (spend.later and after < window))


def _draw(
    noise: NoiseSource, series: Sequence[tuple[Order, ...]], drawn: int, count: int
) -> tuple[NDArray[np.int64], list[tuple[Order, ...]]]:
    """Return the noise of the next blocks, (n_series, count), and the states of the orders.
    Privacy: Lemma 15a, for each order."""
    values, after = np.empty((len(series[0]), count), dtype=np.int64), list[tuple[Order, ...]]()
    for number, orders in enumerate(series):
        own = values[:, (number - drawn) % len(series) :: len(series)]
        own[:], states = order_noise(noise, own.shape[1], orders)
        after.append(states)
    return values, after


def _orders(spend: OrderSpend, terms: OrderTerms, plain: Sequence[Any]) -> tuple[Order, ...]:
    """Return the states of one order of each series. Privacy: none; nothing is shown."""
    return tuple(
        Order(float(spend.scale), terms.window, drawn, tuple(places), tuple(gaps), digits)
        for places, gaps, digits, drawn in plain
    )


def _plain(series: Sequence[tuple[Order, ...]]) -> list[Any]:
    """Return the states JSON-ready. Privacy: none; nothing is shown."""
    return [[[one.places, one.gaps, one.digits, one.drawn] for one in orders] for orders in series]


def _raw(content: dict[str, Any], spend: OrderSpend) -> RawState:
    """Return raw entries, padded, for their length depends on noise. Privacy: none; nothing is shown."""
    of_series = 2 * OrderTerms(spend.n_blocks, spend.longest).window * spend.orders
    places = (of_series + len(content["passed"])) * spend.n_nodes
    missing = LARGEST_NUMBER * places + OF_OTHERS - len(json.dumps(content))
    return RawState({**content, "filled": " " * max(missing, 0)})
