"""The nation's error before and after a change of the hierarchy, on the real load of the French regions.

    python -m studies.benchmarks.history.changed_hierarchy --data FOLDER

`HistoryInformed` releases the days of 2016 before a change and after it, three times with the same noise:
with what was learned carried over, with all forgotten (which is what an amendment does), and with a hierarchy
that never changed. The split is made up: a region falls into two parts, whose share of it moves from hour to
hour. FOLDER holds `rte_regional_load_2013_2016.parquet`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from optstream import HistoryInformed, HistoryInformedTree, PrivacyModel, simulated_noise
from optstream.privacy.spends import spend_from_document
from optstream.stream import DatedHierarchy, State, TreeChange
from optstream.stream.changes import TreeMap
from optstream.stream.public_days import PublicDays
from studies.benchmarks.harness.measure import command, parser, show

CHANGED = date(2016, 5, 1)
N_BEFORE, N_AFTER = 42, 14
STEPS = 48
SCALE = 4500.0
"""Public: MW of a typical region."""
NEW, FIRST_PART = "93", 0.65
"""The region that begins, where one is added; the mean share of the first part, where one is split."""
CHANGES: Mapping[str, Mapping[str, Any]] = {
    "renamed": {"renamed": {"84": "ARA", "44": "GES"}},
    "split, public sizes": {"split": {"84": {"84N": Fraction(13), "84S": Fraction(7)}}},
    "split, equal sizes": {"split": {"84": {"84N": Fraction(1), "84S": Fraction(1)}}},
    "merged": {"merged": {"76+93": ("76", "93")}},
    "added": {"added": {NEW: "FR"}},
    "removed": {"removed": ("93",)},
}
Values = NDArray[np.float64]


def loads(folder: Path, first: date, n_days: int) -> dict[str, Values]:
    """Return each region's half-hours in MW, (n_days * 48,)."""
    rows = pl.read_parquet(folder / "rte_regional_load_2013_2016.parquet")
    stamp, last = pl.col("timestamp_local"), first + timedelta(days=n_days)
    rows = rows.filter((stamp.dt.date() >= first) & (stamp.dt.date() < last)).sort("region_code", stamp)
    found = {str(code): own["load_mw"].to_numpy() for (code,), own in rows.group_by("region_code")}
    return {code: np.nan_to_num(values.astype(np.float64)) for code, values in found.items()}


def with_parts(of: dict[str, Values]) -> dict[str, Values]:
    """Return the loads and those of all units that the changes bring, made of them."""
    hours = np.arange(len(of["84"])) / 2.0
    share = FIRST_PART + 0.05 * np.sin(2 * np.pi * hours / 24.0)
    parts = {"84N": of["84"] * share, "84S": of["84"] * (1 - share)}
    return {**of, **parts, "ARA": of["84"], "GES": of["44"], "76+93": of["76"] + of["93"]}


def run(hierarchy: DatedHierarchy, of: dict[str, Values], way: str, seed: int) -> tuple[float, float, float]:
    """Return the nation's root mean square error over the last two weeks before the change, the three days
    after it, and the two weeks after it. way: "carried" or "forgotten".
    """
    first, noise = CHANGED - timedelta(days=N_BEFORE), simulated_noise(seed)
    public, state, errors = PublicDays.from_date(first, STEPS, ()), None, []
    start = public.day_of(0)
    for number in range(N_BEFORE + N_AFTER):
        day = first + timedelta(days=number)
        tree, first_step = hierarchy.tree_of(day), number * STEPS
        model = PrivacyModel("1", STEPS, "10", resolution="0.001")
        mechanism = HistoryInformedTree(
            HistoryInformed(model, scale=SCALE, days=public), tree, (Fraction(1, 2), Fraction(1, 2))
        )
        if day == CHANGED and hierarchy.changes:
            between = hierarchy.map_between(day - timedelta(days=1), day)
            state = _over(mechanism, state, between, first_step, way)
        at = slice(first_step, first_step + STEPS)
        truth = np.array([of[leaf][at] for leaf in tree.leaves])
        release = mechanism.release(truth, noise=noise, first_step=first_step, state=state)
        state = release.state
        errors.append(float(np.mean((release.values[0] - truth.sum(axis=0)) ** 2)))
    assert start == public.day_of(0)
    spans = errors[N_BEFORE - 14 : N_BEFORE], errors[N_BEFORE : N_BEFORE + 3], errors[N_BEFORE:]
    before, days, weeks = (float(np.sqrt(np.mean(span))) for span in spans)
    return before, days, weeks


def _over(
    mechanism: HistoryInformedTree, state: State | None, between: TreeMap, first_step: int, way: str
) -> State | None:
    """The state as a night hands it on: spends from what was charged, and memory carried over, or none."""
    assert state is not None
    charged = [
        replace(spend_from_document(one), level=int(level))
        for level, own in state["levels"].items()
        for one in own["spends"]
    ]
    carried = mechanism.carried_over(state, between, first_step) if way == "carried" else None
    return mechanism.recall(charged, carried)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a line for each change and way."""
    options = parser(__doc__, data=True, seeds=3)
    options.add_argument("--only", default="", help="changes whose name holds this text")
    given = options.parse_args(arguments)
    of = with_parts(loads(given.data, CHANGED - timedelta(days=N_BEFORE), N_BEFORE + N_AFTER))
    regions = sorted(code for code in of if code.isdecimal())
    for name, operations in CHANGES.items():
        if given.only not in name:
            continue
        leaves = [code for code in regions if name != "added" or code != NEW]
        oldest = (("FR", None), *((code, "FR") for code in leaves))
        changed = DatedHierarchy(oldest, (TreeChange(CHANGED, **operations),))
        for way, hierarchy in (
            ("carried", changed),
            ("forgotten", changed),
            ("unchanged", DatedHierarchy(oldest)),
        ):
            found = np.mean([run(hierarchy, of, way, seed) for seed in range(given.seeds)], axis=0)
            figures = ", ".join(f"{figure:.0f}" for figure in found)
            show(
                f"{name}, {way}: nation's RMSE in MW, 14 days before, 3 days after, 14 days after: {figures}"
            )


if __name__ == "__main__":
    command(main)
