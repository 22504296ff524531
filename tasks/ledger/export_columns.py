"""The columns of an exported ledger. Exact amounts are text ("2/3"), with a float beside them for reading."""

import pyarrow as pa

COLUMNS: dict[str, dict[str, tuple[pa.DataType, str]]] = {
    "streams": {
        "stream": (pa.string(), "the stream's name"),
        "grant": (pa.string(), "the source and population whose budget it spends"),
        "epsilon": (
            pa.string(),
            "exact: the most that any window of the privacy budget may lose, at delta where there is one",
        ),
        "epsilon_float": (pa.float64(), "the same, rounded"),
        "delta": (pa.string(), "exact: beside epsilon, for budgets of zero-concentrated privacy; else null"),
        "rho": (pa.string(), "exact: the most of it that any window may be charged; null likewise"),
        "window_length": (pa.int64(), "steps of a window"),
        "windows": (pa.string(), "sliding or aligned"),
        "alpha": (pa.string(), "exact: changes of a reading up to this are protected"),
        "resolution": (pa.string(), "exact: the unit in which readings are counted"),
        "unit": (pa.string(), "customer or roaming"),
        "leaves_per_step": (pa.int64(), "leaves that a roaming customer may be in at a step"),
        "hierarchy_hash": (pa.string(), "SHA-256 of the tree"),
        "calibration": (pa.string(), "strict or paper"),
        "calendar": (pa.string(), "how steps are counted"),
        "document": (pa.string(), "whatever else was recorded of the terms, JSON"),
        "n_events": (pa.int64(), "events of the stream"),
        "head": (pa.string(), "hash of its last event"),
    },
    "releases": {
        "stream": (pa.string(), "the stream's name"),
        "period": (pa.string(), "the day, YYYY-MM-DD"),
        "revision": (pa.int64(), "from 0; each is charged"),
        "state": (pa.string(), "RESERVED, DRAWN, PUBLISHED or VOID, charged all the same"),
        "owner": (pa.string(), "the run that has or had it"),
        "lease_until": (pa.string(), "until when that run holds it, UTC"),
        "fencing_token": (pa.int64(), "grows with every owner"),
        "drawing": (pa.bool_(), "its draw was begun and not recorded"),
        "redraws": (pa.int64(), "how often a dead run's draw was repeated"),
        "first_step": (pa.int64(), "running index of its first step"),
        "n_steps": (pa.int64(), "its steps"),
        "generation": (pa.int64(), "which of its spends are in force"),
        "spends_hash": (pa.string(), "SHA-256 of those"),
        "measurements_hash": (pa.string(), "SHA-256 of its measurements; null before they are drawn"),
        "staged_hash": (pa.string(), "SHA-256 of the bytes to publish; null before"),
        "published_name": (pa.string(), "name of the published file; null before"),
        "reason": (pa.string(), "why it is VOID; null otherwise"),
        "compromised": (
            pa.string(),
            "why others know its noise: each window that it charges is lost, in all streams; else null",
        ),
    },
    "spends": {
        "stream": (pa.string(), "the stream's name"),
        "grant": (pa.string(), "whose budget is spent"),
        "period": (pa.string(), "the release's day"),
        "revision": (pa.int64(), "the release's revision"),
        "generation": (pa.int64(), "1: the plan that was reserved; more: what took its place"),
        "in_force": (pa.bool_(), "whether this is what the release is charged"),
        "position": (pa.int64(), "its place in the generation, from 0"),
        "first_step": (pa.int64(), "running index of its first step"),
        "n_steps": (pa.int64(), "its steps"),
        "kind": (pa.string(), "step, period, capped, joint or gaussian"),
        "level": (pa.int64(), "depth in the tree, root 0"),
        "stage": (pa.string(), "what was measured"),
        "epsilon": (
            pa.string(),
            "exact: the most that this spend alone charges any window; null where it is charged in rho",
        ),
        "epsilon_float": (pa.float64(), "the same, rounded"),
        "rho": (
            pa.string(),
            "exact: likewise, of zero-concentrated privacy; null where it is charged in epsilon",
        ),
        "rho_float": (pa.float64(), "the same, rounded"),
        "document": (pa.string(), "the spend whole, JSON, from which every window can be priced"),
    },
    "events": {
        "stream": (pa.string(), "the stream's name"),
        "number": (pa.int64(), "from 0, without gaps"),
        "at": (pa.string(), "when, UTC, ISO 8601"),
        "kind": (pa.string(), "what happened"),
        "period": (pa.string(), "the release's day; null for the stream's own events"),
        "revision": (pa.int64(), "the release's revision; null likewise"),
        "body": (pa.string(), "what changed, JSON"),
        "previous": (pa.string(), "hash of the event before"),
        "hash": (pa.string(), "SHA-256 of the stream's name and the columns above"),
    },
}

SCHEMAS = {
    table: pa.schema(
        [pa.field(name, kind, metadata={"description": says}) for name, (kind, says) in columns.items()]
    )
    for table, columns in COLUMNS.items()
}
