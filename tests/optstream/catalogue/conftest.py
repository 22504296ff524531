"""A small released day: a root, two leaves, four steps of which one does not exist."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any

import polars as pl
import pytest

from optstream.catalogue import NoiseScale, Publication, ReleaseStatement, StandardErrors, publish, stage
from optstream.catalogue.publication import withdraw
from optstream.catalogue.read import read_published
from optstream.catalogue.rows import schema
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree
from tests.optstream.catalogue.folders import DAY, STREAM, Folder, make_folder

N_STEPS = 4
FILE_BY_NIGHT, S3_BY_NIGHT = (pytest.param(kind, marks=pytest.mark.nightly) for kind in ("file", "s3"))
NODES = {"FR": (None, 0), "84": ("FR", 1), "Île & ../x": ("FR", 1)}


def frame_of(
    period: date,
    nodes: Mapping[str, tuple[str | None, int]],
    values: Any,
    revision: int = 0,
    vintage: int = 0,
) -> pl.DataFrame:
    """The rows of a release of half-hours without errors, whose values are (n_nodes, n_steps)."""
    midnight = datetime(period.year, period.month, period.day, tzinfo=UTC)
    rows = [
        (period, step, midnight + timedelta(minutes=30 * step), node, *above, value, None, None)
        for (node, above), own in zip(nodes.items(), values, strict=True)
        for step, value in enumerate(own)
    ]
    columns = [*schema("load_mw")]
    floats = dict.fromkeys(columns[6:9], pl.Float64())
    kinds = {"timestamp": pl.Datetime("us", "UTC"), "parent": pl.String(), **floats}
    frame = pl.DataFrame(rows, schema=columns[:-2], schema_overrides=kinds, orient="row")
    return frame.with_columns(revision=pl.lit(revision), vintage=pl.lit(vintage))


def tree_frame(period: date, tree: AggregationTree, values: Any) -> pl.DataFrame:
    levels = zip(tree.parents_by_name(), tree.depths.tolist(), strict=True)
    return frame_of(period, {node: (parent, level) for (node, parent), level in levels}, values)


def make_rows(period: date, revision: int = 1, vintage: int = 1, shift: float = 0.0) -> pl.DataFrame:
    values = [[shift + 10.0 * step + level for step in range(N_STEPS)] for _, level in NODES.values()]
    return frame_of(period, NODES, values, revision, vintage).with_columns(
        timestamp=pl.when(pl.col("step") != 2).then("timestamp"),
        load_mw_noise_se=pl.when(pl.col("step") != 3).then(1.5 + pl.col("level")),
    )


def make_statement(period: date, revision: int = 1, vintage: int = 1, **changes: Any) -> ReleaseStatement:
    facts: dict[str, Any] = {
        "stream": STREAM,
        "model": PrivacyModel(epsilon="1", window_length=48, alpha=10),
        "mechanism": {"name": "Sample", "threshold": "1/3"},
        "calibration": "strict",
        "epsilon_plan": Fraction(1),
        "epsilon_own": Fraction(2, 3),
        "noise": (
            NoiseScale(level=0, stage="samples", scale=Fraction(400), scale_units=Fraction(400_000)),
            NoiseScale(level=1, stage="sparse vector", scale=None, scale_units=None),
        ),
        "simulated": False,
        "code_version": "0.1.0",
        "configuration_hash": "c" * 64,
        "value_column": "load_mw",
        "step_minutes": 30,
        "time_zone": "Europe/Paris",
        "day": "fixed",
        "standard_errors": StandardErrors(noise="some", posterior="none"),
    }
    return ReleaseStatement(period=period, revision=revision, vintage=vintage, **{**facts, **changes})


def put_days(
    folder: Any,
    *periods: date,
    revision: int = 1,
    vintage: int = 1,
    shift: float = 0.0,
    head: Any = "h1",
    signer: Any = None,
    **changes: Any,
) -> Any:
    stated = [make_statement(period, revision, vintage, **changes) for period in periods]
    staged = [stage(make_rows(one.period, revision, vintage, shift), one) for one in stated]
    head_after = head if callable(head) else lambda _: head
    return publish(folder, staged, head_after, signer)


def put(folder: Any, period: date, revision: int = 1, vintage: int = 1, **more: Any) -> Any:
    (publication,) = put_days(folder, period, revision=revision, vintage=vintage, **more)
    return publication


def take_back(name: Any, day: date = DAY, head: str = "h2", **more: Any) -> Publication:
    return withdraw(name, day, lambda *_: head, stream=STREAM, value_column="load_mw", **more)


def days_in(name: Any, **more: Any) -> list[date]:
    return read_published(name, verify=True, **more)["date"].unique().sort().to_list()


@pytest.fixture(params=["path", FILE_BY_NIGHT, "memory", S3_BY_NIGHT])
def published(request: pytest.FixtureRequest) -> Folder:
    """An empty published folder in every kind of place; a path as a URL and a server by night."""
    return make_folder(request.param, request)


@pytest.fixture(params=["memory", S3_BY_NIGHT])
def in_store(request: pytest.FixtureRequest) -> Folder:
    return make_folder(request.param, request)
