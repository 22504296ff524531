"""The trees, the mechanism and the configured stream that several benchmarks measure."""

from pathlib import Path

from optstream import AggregationTree, EquallySpaced, Feature, OptStream, PrivacyModel
from tasks.config import Settings, load_settings
from tasks.config.templates import EXAMPLE

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


def optstream(tree: AggregationTree, epsilon: str = "1") -> OptStream:
    """Return the paper's mechanism at alpha 1: ten points of 48, its day parts, equal shares of levels."""
    return OptStream(
        PrivacyModel(epsilon, STEPS, 1),
        tree,
        sampling=EquallySpaced(10),
        features=Feature.day_parts(STEPS),
        level_shares=[f"1/{tree.n_levels}"] * tree.n_levels,
    )


def stream(folder: Path, text: str = EXAMPLE) -> Settings:
    """Write a configuration, `optstream init`'s unless another is given; return the settings."""
    file = folder / "optstream.toml"
    file.write_text(text, encoding="utf-8")
    return load_settings(file)
