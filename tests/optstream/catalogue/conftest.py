"""A small released day: a root, two leaves, four steps of which one does not exist."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any

import polars as pl
import pytest

from optstream.catalogue import NoiseScale, ReleaseStatement, StandardErrors, publish, stage
from optstream.privacy import PrivacyModel
from tests.optstream.catalogue.folders import STREAM, Folder, make_folder

N_STEPS = 4
FILE_BY_NIGHT, S3_BY_NIGHT = (pytest.param(kind, marks=pytest.mark.nightly) for kind in ("file", "s3"))
NODES = {"FR": (None, 0), "84": ("FR", 1), "Île & ../x": ("FR", 1)}


def make_rows(period: date, revision: int = 1, vintage: int = 1, shift: float = 0.0) -> pl.DataFrame:
    midnight = datetime(period.year, period.month, period.day, tzinfo=UTC)
    rows = [
        {
            "date": period,
            "step": step,
            "timestamp": None if step == 2 else midnight + timedelta(minutes=30 * step),
            "node": node,
            "parent": parent,
            "level": level,
            "load_mw": shift + 10.0 * step + level,
            "load_mw_noise_se": None if step == 3 else 1.5 + level,
            "load_mw_se": None,
            "revision": revision,
            "vintage": vintage,
        }
        for node, (parent, level) in NODES.items()
        for step in range(N_STEPS)
    ]
    kinds = {"timestamp": pl.Datetime("us", "UTC"), "load_mw_se": pl.Float64()}
    return pl.DataFrame(rows, schema_overrides=kinds)


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


@pytest.fixture
def rows() -> Callable[..., pl.DataFrame]:
    return make_rows


@pytest.fixture
def statement() -> Callable[..., ReleaseStatement]:
    return make_statement


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
    """Stage small days and publish them at once; returns the Publications."""
    stated = [make_statement(period, revision, vintage, **changes) for period in periods]
    staged = [stage(make_rows(one.period, revision, vintage, shift), one) for one in stated]
    head_after = head if callable(head) else lambda _: head
    return publish(folder, staged, head_after, signer)


@pytest.fixture
def put_all() -> Callable[..., Any]:
    return put_days


@pytest.fixture
def put() -> Callable[..., Any]:
    def put(folder: Any, period: date, revision: int = 1, vintage: int = 1, **more: Any) -> Any:
        (publication,) = put_days(folder, period, revision=revision, vintage=vintage, **more)
        return publication

    return put


@pytest.fixture(params=["path", FILE_BY_NIGHT, "memory", S3_BY_NIGHT])
def published(request: pytest.FixtureRequest) -> Folder:
    """An empty published folder in every kind of place; a path as a URL and a server by night."""
    return make_folder(request.param, request)


@pytest.fixture(params=["memory", S3_BY_NIGHT])
def in_store(request: pytest.FixtureRequest) -> Folder:
    return make_folder(request.param, request)
