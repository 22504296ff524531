"""Whether `[budget] stages` fits what the file says is measured, also where other keys of it are wrong."""

from collections.abc import Iterator, Mapping
from typing import Any

from tasks.config.tables.mechanisms import Mechanism, names_with

MOST_STAGES = 3
METHODS = ("equally_spaced", "l1")


def stage_problems(document: Mapping[str, Any], named: type[Mechanism] | None) -> Iterator[str]:
    """Look at the file's own words, not at validated tables: a mistake elsewhere hides nothing here.
    document: with the default features where they hold. named: None where the file names no known mechanism.
    """
    budget, sampling, features = (document.get(name) for name in ("budget", "sampling", "features"))
    stages = budget.get("stages") if isinstance(budget, dict) else None
    if stages is None:
        return
    if named is not None and "stages" not in named.tables:
        yield f"budget.stages must be left out: it is for mechanism.name {names_with('stages')}"
        return
    method = sampling.get("method") if isinstance(sampling, dict) else None
    if method not in METHODS or not isinstance(features, dict):
        return  # how many there should be is not known
    names = [*(["sampling"] if method == "l1" else []), "samples", *(["features"] if features else [])]
    if isinstance(stages, list) and len(stages) <= MOST_STAGES and len(stages) != len(names):
        shares = "1 share" if len(names) == 1 else f"{len(names)} shares"
        yield f"budget.stages must have {shares} ({', '.join(names)}); got {len(stages)}"
