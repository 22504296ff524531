"""What OptStream wrote, with one thing changed by others or a disk: published folders, measurements."""

import json
from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import strategies as st

from optstream.measurement import EquallySpaced
from optstream.mechanisms import BudgetDistribution, Hierarchical, OptStream, PeGaSus
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree
from tests.optstream.catalogue.conftest import put_days
from tests.properties import footers
from tests.properties.damage import changed, damaged
from tests.properties.footers import lying

PERIODS = (date(2025, 1, 15), date(2025, 1, 16))
TARGETS = ("/dev/zero", "/etc/passwd", "/", "fifo")
Folder = Mapping[str, bytes]


@cache
def whole() -> Folder:
    """A folder of two releases, as OptStream publishes it."""
    with TemporaryDirectory() as folder:
        put_days(folder, *PERIODS)
        found = [path for path in Path(folder).rglob("*") if path.is_file() and path.name != ".lock"]
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


@st.composite
def folders(draw: st.DrawFn) -> Folder:
    """The whole folder with one file (now and then two) changed."""
    files = dict(whole())
    for _ in range(draw(st.sampled_from([1, 1, 2]))):
        name = draw(st.sampled_from(["catalogue.json", *sorted(files)]))
        if files.get(name) != whole()[name]:
            continue
        deed = draw(st.sampled_from(["change", "change", "change", "damage", "remove", "link"]))
        if deed == "remove":
            del files[name]
        elif deed == "damage":
            files[name] = draw(damaged(st.just(files[name])))
        elif deed == "link":
            files[name] = f"link:{draw(st.sampled_from([*TARGETS, name.rsplit('/')[-1]]))}".encode()
        elif name.endswith(".json"):
            files[name] = json.dumps(changed(draw, json.loads(files[name]))).encode()
        else:
            files[name] = draw(st.one_of(lying(st.just(files[name])), _other_statement(files[name])))
    return files


@st.composite
def _other_statement(draw: st.DrawFn, file: bytes) -> bytes:
    """The release with other words in its footer, and pages as they were."""
    body, footer = footers.split(file)
    for pair in footer[footers.KEY_VALUES][1][1]:
        if pair[1][1] == b"optstream.statement":
            pair[2] = (footers.BINARY, json.dumps(changed(draw, json.loads(pair[2][1]))).encode())
    return footers.join(body, footer)


TREE = AggregationTree.from_parents({"FR": None, "84": "FR", "11": "FR"})


@cache
def _documents() -> tuple[bytes, ...]:
    model, shares = PrivacyModel(epsilon="1", window_length=4, alpha=10), ("1/2", "1/2")
    made = (
        OptStream(model, TREE, sampling=EquallySpaced(2), features=[], level_shares=shares),
        Hierarchical(BudgetDistribution(model), TREE, shares),
        Hierarchical(PeGaSus(model), TREE, shares),
    )
    return tuple(one.measure([[1.0] * 4, [2.0] * 4], noise=simulated_noise(1)).to_bytes() for one in made)


def measured() -> bytes:
    """One that was measured level by level."""
    return _documents()[1]


@st.composite
def measurements(draw: st.DrawFn) -> bytes:
    """Documents with other entries, and hurt bytes."""
    data = draw(st.sampled_from(_documents()))
    if draw(st.booleans()):
        return draw(damaged(st.just(data)))
    return json.dumps(changed(draw, json.loads(data))).encode()
