"""What of a configuration shapes a release, as one hash."""

import hashlib
import json
from typing import Any

PLACES = {
    "hierarchy",
    "node_facts",
    "ledger",
    "trusted",
    "watch",
    "release",
    "schedule",
    "contracts",
    "questions",
    "folder",
    "file",
}
"""What shapes no release, or is in it by another name."""


def hash_of(document: dict[str, Any]) -> str:
    """Return the SHA-256 of what shapes a release, in hexadecimal: the same for a configuration of an older
    version that means the same. document: the tables of `Settings` without `PLACES`, JSON-ready; what shapes
    nothing is taken out of it.
    """
    for key in ("folder", "raw_retention_days", "time_limit"):
        del document["input"][key]
    for key in ("folder", "not_before", "errors", "measurements", "signing_key", "public_keys"):
        del document["published"][key]
    for key in ("publisher", "licence", "about"):
        del document["published"][key]
    # Keys that came later change no hash of a configuration without them.
    for key, absent in (
        ("changes", []),
        ("factor", "1"),
        ("supplier_rounding", "0"),
        ("region", None),
        ("margin", None),
    ):
        if document["input"][key] == absent:
            del document["input"][key]
    for one in document["covariates"]["given"]:
        del one["path"]
    if not document["covariates"]["given"]:
        del document["covariates"]
    if document["published"]["rounding"] == "nearest":
        del document["published"]["rounding"]
    if not document["privacy"]["counts"]:
        del document["privacy"]["counts"]
    if document["budget"]["stream_share"] == "1":
        del document["budget"]["stream_share"]
    if not document["budget"]["margins"]:
        del document["budget"]["margins"]
    del document["budget"]["shared_with"]
    del document["privacy"]["population_file"]
    if document["stream"]["period"] == "day":
        del document["stream"]["period"]
    absent_keys = [("stream", "leaves_per_period"), ("mechanism", "noise")]
    absent_keys += [("privacy", "budget_alpha"), ("privacy", "delta"), ("privacy", "horizon")]
    for table, key in absent_keys:
        if document[table].get(key) is None:
            document[table].pop(key, None)
    text = json.dumps(document, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
