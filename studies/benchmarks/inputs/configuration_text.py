"""Writes the configurations of the streams that benchmarks measure: what differs, over what they all have."""

from collections.abc import Iterable, Mapping

import tomlkit

COMMON: dict[str, dict[str, object]] = {
    "stream": {"name": "load", "step": "30min", "time_zone": "Europe/Paris", "day": "elapsed"},
    "mechanism": {"name": "Laplace"},
    "privacy": {
        "epsilon": "1",
        "window": 48,
        "population": "people",
        "alpha": "1",
        "bounds": ["0", "20000"],
    },
    "input": {"folder": "dumps", "schema": "aggregated", "value": "load_mw"},
    "published": {"folder": "published"},
    "trusted": {"folder": "trusted"},
    "ledger": {"url": "sqlite:///trusted/ledger.sqlite"},
}


def configuration(**tables: Mapping[str, object]) -> str:
    """Return the text of a configuration.

    tables: keys over those of `COMMON`, and tables that it has not: at least `hierarchy` and `budget`. The
    published column is called as the dumps' is, unless it is given.
    """
    merged = {name: COMMON.get(name, {}) | dict(tables.get(name, {})) for name in (*COMMON, *tables)}
    merged["published"].setdefault("value", merged["input"]["value"])
    return tomlkit.dumps(merged)


def equal_shares(n_levels: int) -> list[str]:
    """Return the levels' shares of epsilon, all alike."""
    return [f"1/{n_levels}"] * n_levels


def leaves_below(root: str, leaves: Iterable[str]) -> dict[str, str]:
    """Return the parents of a tree of one root and its leaves."""
    return {root: "", **dict.fromkeys(leaves, root)}
