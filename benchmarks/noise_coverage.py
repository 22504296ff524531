"""How often a noise-only band holds the truth, on simulated load: the table that report pages show.

    make coverage   # python -m benchmarks.noise_coverage --into tasks/pages/coverage.json

The example's mechanism releases simulated days with simulated noise. The band is 1.96 published standard
deviations of the noise (`load_mw_noise_se`) on each side: one that left nothing out would hold 95 % of the
steps.
"""

import argparse
import json
import tempfile
from datetime import date, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from optstream.noise import simulated_noise
from tasks.example import EXAMPLE
from tasks.load_shapes import daily_load, region_of
from tasks.mechanism import mechanism_for
from tasks.settings import Settings, load_settings

EPSILONS = ("1", "0.1", "0.01")
FIRST, EVERY_DAYS, N_DAYS = date(2016, 1, 6), 12, 30
"""Days of every season and weekday."""
Z = 1.96
COMMAND = "make coverage"


def settings_with(epsilon: str, folder: Path) -> Settings:
    """The example's, with another epsilon."""
    file = folder / f"{epsilon}.toml"
    file.write_text(EXAMPLE.replace('epsilon = "1" ', f'epsilon = "{epsilon}" ', 1), encoding="utf-8")
    settings = load_settings(file)
    assert str(float(settings.privacy.epsilon)) == str(float(epsilon))
    return settings


def coverage_of(settings: Settings) -> tuple[int, NDArray[np.float64]]:
    """How many days, and the share of steps that the band held, (n_nodes,)."""
    tree, calendar, held = settings.tree, settings.calendar, []
    for number in range(N_DAYS):
        day = FIRST + timedelta(days=number * EVERY_DAYS)
        truth = tree.add_up(
            np.array([daily_load(region_of(leaf, None), leaf, day, calendar, 0) for leaf in tree.leaves])
        )
        noise, first_step = simulated_noise(10_000 + number), calendar.first_step(day)
        leaves = truth[tree.leaf_indices]
        release = mechanism_for(settings, day).release(leaves, noise=noise, first_step=first_step)
        deviations = release.noise_standard_errors
        assert deviations is not None
        held.append(np.abs(release.values - truth) <= Z * deviations)
    return len(held), np.mean(np.concatenate(held, axis=1), axis=1)


def main() -> None:
    """Measure, and write what was found."""
    parser = argparse.ArgumentParser(description="Coverage of noise-only bands on simulated load.")
    parser.add_argument("--into", type=Path, required=True, metavar="FILE")
    chosen = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for epsilon in EPSILONS:
            settings = settings_with(epsilon, Path(folder))
            n_days, by_node = coverage_of(settings)
            by_level = [
                round(float(by_node[settings.tree.depths == level].mean()), 3)
                for level in range(len(settings.tree.levels))
            ]
            rows.append(
                {"epsilon": epsilon, "held": round(float(by_node.mean()), 3), "held_by_level": by_level}
            )
            print(rows[-1], flush=True)
    document = {
        "nominal": 0.95,
        "measured_on": f"simulated load of 12 regions and their nation, {n_days} days of 2016, each released "
        "once under the configuration that `optstream init` writes, at three epsilons",
        "mechanism": "OptStream",
        "command": COMMAND,
        "rows": rows,
    }
    chosen.into.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
