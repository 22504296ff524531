"""What of a configuration shapes a release, as one hash."""

import hashlib
import json
from typing import Any

SHAPES_NOTHING: dict[str, Any] = {
    "hierarchy": True,
    "node_facts": True,
    "ledger": True,
    "trusted": True,
    "watch": True,
    "release": True,
    "schedule": True,
    "contracts": True,
    "folder": True,
    "file": True,
    "ledger_folder": True,
    "input": {"folder", "raw_retention_days", "time_limit"},
    "published": {
        "folder",
        "not_before",
        "errors",
        "measurements",
        "signing_key",
        "public_keys",
        "publisher",
        "licence",
        "about",
    },
    "privacy": {"population_file"},
    "budget": {"shared_with"},
    "covariates": {"given": {"__all__": {"path", "sha256"}}},
}
"""Tables and keys that shape no release, or are in it by another name, as pydantic excludes them."""
CAME_LATER: tuple[tuple[str, str, object], ...] = (
    ("input", "changes", []),
    ("input", "factor", "1"),
    ("input", "supplier_rounding", "0"),
    ("input", "region", None),
    ("input", "margin", None),
    ("published", "rounding", "nearest"),
    ("privacy", "counts", False),
    ("privacy", "budget_alpha", None),
    ("privacy", "delta", None),
    ("privacy", "horizon", None),
    ("budget", "stream_share", "1"),
    ("budget", "margins", {}),
    ("stream", "period", "day"),
    ("stream", "leaves_per_period", None),
    ("mechanism", "noise", None),
)
"""Keys that came later, with the value at which a configuration has the hash that it had before them."""

ALWAYS = {"calibration": "strict", "windows": "sliding"}
"""Keys of [privacy] that an earlier version had, with their only value since: part of the hash as then."""


def hash_of(document: dict[str, Any]) -> str:
    """Return the SHA-256 of what shapes a release, in hexadecimal: the same for a configuration of an older
    version that means the same. document: the tables of `Settings` without `SHAPES_NOTHING`, JSON-ready; keys
    that came later are taken out of it.
    """
    for table, key, absent in CAME_LATER:
        if document[table].get(key) == absent:
            document[table].pop(key, None)
    document["privacy"] |= ALWAYS
    if not document["covariates"]["given"]:
        del document["covariates"]
    text = json.dumps(document, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
