"""Counts how often bands hold the truth, on simulated load, for the table of report pages.

The example's mechanism releases simulated days with simulated noise. Bands are 1.96 published standard errors
on each side, of the whole error (`load_mw_se`) and of the noise alone (`load_mw_noise_se`): one that left
nothing out would hold 95 % of the steps.
"""

import json
import tempfile
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from optstream.noise import simulated_noise
from studies.benchmarks.measure import show, stream
from tasks.config import Settings
from tasks.config.templates import EXAMPLE
from tasks.operate.simulate import daily_load, region_of
from tasks.release.mechanism import mechanism_for

EPSILONS = ("1", "0.1", "0.01")
FIRST, EVERY_DAYS, N_DAYS = date(2016, 1, 6), 12, 30
"""Days of every season and weekday."""
Z = 1.96
COMMAND = "make coverage"


def settings_with(epsilon: str, folder: Path) -> Settings:
    """Return the example's, with another epsilon."""
    settings = stream(folder, EXAMPLE.replace('epsilon = "1" ', f'epsilon = "{epsilon}" ', 1))
    assert str(float(settings.privacy.epsilon)) == str(float(epsilon))
    return settings


def coverage_of(settings: Settings, n_days: int) -> NDArray[np.float64]:
    """Return the share of steps that bands of the whole error and of the noise held, (2, n_nodes)."""
    tree, calendar, held = settings.tree_of(date.min), settings.calendar, []
    for number in range(n_days):
        day = FIRST + timedelta(days=number * EVERY_DAYS)
        truth = tree.add_up(
            np.array([daily_load(region_of(leaf), leaf, day, calendar, 0) for leaf in tree.leaves])
        )
        noise, first_step = simulated_noise(10_000 + number), calendar.first_step(day)
        leaves = truth[tree.leaf_indices]
        release = mechanism_for(settings, day).release(leaves, noise=noise, first_step=first_step)
        assert release.standard_errors is not None
        assert release.noise_standard_errors is not None
        deviations = np.stack([release.standard_errors, release.noise_standard_errors])
        held.append(np.abs(release.values - truth) <= Z * deviations)
    return np.asarray(np.mean(np.concatenate(held, axis=2), axis=2))


def main(into: Annotated[Path, typer.Option(metavar="FILE")], days: int = N_DAYS) -> None:
    """Measure, and write the results."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for epsilon in EPSILONS:
            settings = settings_with(epsilon, Path(folder))
            tree = settings.tree_of(date.min)
            found: dict[str, object] = {"epsilon": epsilon}
            of_both = coverage_of(settings, days)
            for name, by_node in zip(("held", "held_by_noise_alone"), of_both, strict=True):
                levels = [by_node[tree.depths == level] for level in range(tree.n_levels)]
                found[name] = [round(float(each.mean()), 3) for each in (by_node, *levels)]
            rows.append(found)
            show(f"{rows[-1]}")
    document = {
        "nominal": 0.95,
        "measured_on": f"simulated load of 12 regions and their nation, {days} days of 2016, each "
        "released once under the configuration that `optstream init` writes, at three epsilons",
        "mechanism": "OptStream",
        "command": COMMAND,
        "rows": rows,
    }
    into.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
