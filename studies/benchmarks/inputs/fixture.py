"""Makes the streams that benchmarks measure, in a folder: hierarchy, configuration, dumps, published days."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path

import polars as pl

from optstream import AggregationTree, EquallySpaced, Feature, OptStream, PrivacyModel
from optstream.measurement import L1Sampling
from studies.benchmarks.inputs.configuration_text import configuration, equal_shares, leaves_below
from tasks.config import Settings, load_settings
from tasks.config.templates import EXAMPLE
from tasks.ingest.arrivals import EVERY, place_of
from tasks.operate.simulate import FRENCH_REGIONS, simulate

STEPS = 48
"""Half-hours of a day, and of the window, in every benchmark's stream."""
FLAT_UP_TO, LEAVES_A_REGION = 13, 30


def tree_of(n_nodes: int) -> AggregationTree:
    """Return a nation of so many nodes: leaves alone up to 13, beyond them regions of about 30 leaves."""
    parents: dict[str, str | None] = {"nation": None}
    if n_nodes <= FLAT_UP_TO:
        return AggregationTree.from_parents(parents | {f"{n}": "nation" for n in range(n_nodes - 1)})
    n_regions = max(2, round((n_nodes - 1) / (LEAVES_A_REGION + 1)))
    parents |= {f"r{n}": "nation" for n in range(n_regions)}
    leaves = n_nodes - 1 - n_regions
    return AggregationTree.from_parents(parents | {f"l{n}": f"r{n % n_regions}" for n in range(leaves)})


def french_tree() -> AggregationTree:
    """Return the nation and its twelve regions."""
    return AggregationTree.from_parents({"FR": None, **dict.fromkeys(FRENCH_REGIONS, "FR")})


def optstream(
    tree: AggregationTree,
    *,
    epsilon: str = "1",
    alpha: int = 10,
    l1: bool = False,
    lower_bound: float | None = 0,
) -> OptStream:
    """Return the paper's mechanism: ten points of 48, its day parts, equal shares for the levels."""
    return OptStream(
        PrivacyModel(epsilon, STEPS, alpha),
        tree,
        sampling=L1Sampling(10, 1000) if l1 else EquallySpaced(10),
        features=Feature.day_parts(STEPS),
        level_shares=[f"1/{tree.n_levels}"] * tree.n_levels,
        lower_bound=lower_bound,
    )


def stream(
    folder: Path, text: str = EXAMPLE, days: Sequence[date] = (), ledger: str | None = None
) -> Settings:
    """Write a configuration into the folder, and simulated dumps of the days; return the settings.

    text: the configuration, `optstream init`'s unless another is given. ledger: its URL, unless the text's.
    """
    if ledger:
        text = text.replace("sqlite:///trusted/ledger.sqlite", ledger)
    file = folder / "optstream.toml"
    file.write_text(text, encoding="utf-8")
    settings = load_settings(file)
    if days:
        simulate(
            settings.input_folder,
            leaves=settings.tree_of(date.min).leaves,
            calendar=settings.calendar,
            days=days,
        )
    return settings


def hierarchy_file(folder: Path, parents: Mapping[str, str]) -> None:
    """Write hierarchy.csv: each node and the one above it, "" of the root."""
    lines = ["node,parent", *(f"{node},{parent}" for node, parent in parents.items())]
    (folder / "hierarchy.csv").write_text("\n".join(lines), encoding="utf-8")


def dump_of_all(settings: Settings, day: date, parts: Iterable[pl.DataFrame]) -> None:
    """Write the dump of a day that holds all leaves, a file a part."""
    into = settings.folder / "dumps" / place_of(EVERY, day)
    into.mkdir(parents=True)
    for number, part in enumerate(parts):
        part.write_parquet(into / f"part-{number:07d}.parquet")
    (into / "_SUCCESS").touch()


def stamps_of(settings: Settings, day: date) -> pl.Series:
    """Return when each step of a day begins."""
    return pl.Series(settings.calendar.utc_times(day), dtype=pl.Datetime("us", "UTC"))


def metered(dumps: Path, leaves: Iterable[str], time_zone: str = "UTC", day: str = "elapsed") -> str:
    """Return the configuration of metered dumps, kWh a half-hour, its leaves below one town.

    alpha is the whole of a reading, so that presence is protected too.
    """
    return configuration(
        stream={"name": "household-meters", "time_zone": time_zone, "day": day},
        mechanism={"name": "OptStream"},
        privacy={"population": "trial-households", "alpha": "6", "resolution": "0.001", "bounds": ["0", "6"]},
        hierarchy={"parents": leaves_below("town", leaves)},
        budget={"levels": equal_shares(2)},
        sampling={"method": "equally_spaced", "n_samples": 10},
        input={"folder": str(dumps), "schema": "metered", "customer": "customer_id", "value": "energy_kwh"},
    )
