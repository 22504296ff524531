"""The inputs that others write, each with a grammar of cases, a way from bytes, seeds and a reader."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from typing import Any

import polars as pl
from hypothesis import strategies as st

from optstream.catalogue import check_files, read_published
from optstream.catalogue.index import parse_catalogue
from optstream.stream import Measured
from tasks.config import load_settings
from tasks.config.templates import EXAMPLE
from tasks.release.mechanism import mechanism_for
from tasks.release.run import terms_of
from tests.properties import configurations, dumps, written
from tests.properties.damage import CANARY_TEXT
from tests.properties.dumps import FIRST_DAY, Delivered
from tests.properties.world import World, refusal_of

CHANGES = """
[[input.changes]]
valid_from = 2015-07-01
value = "load_kw"
factor = "0.001"
"""


@dataclass(frozen=True)
class Input:
    """cases: by grammar; read(world, case) refuses with an OptStreamError's text, or None.

    from_bytes: a case of the bytes that a fuzzer without grammar makes of `seeds`.
    read_bytes: a quicker reader for such cases, where there is one.
    """

    name: str
    cases: st.SearchStrategy[Any]
    read: Callable[[World, Any], Any]
    from_bytes: Callable[[bytes], Any]
    seeds: Callable[[], Sequence[bytes]]
    read_bytes: Callable[[World, Any], Any] | None = None


def read_configuration(world: World, content: bytes) -> str | None:
    """Load it, and make everything of it that a run makes before it opens the ledger."""
    path = world.put("optstream.toml", content)

    def read() -> None:
        settings = load_settings(path)
        assert all((str(settings), repr(settings.tree_of(date.min)), settings.configuration_hash))
        assert settings.describe_mechanism(date.min)
        terms_of(settings)
        for first, layout in settings.input.layouts:
            assert settings.input_of(first) == layout
            assert "/" not in layout.announcement
            assert layout.timestamp != layout.value
        measurements_file, staged = settings.measurements_of(FIRST_DAY, 0), settings.staging_of(FIRST_DAY, 0)
        for folder in (settings.input_folder, settings.published_folder, measurements_file):
            assert "\0" not in str(folder)
        assert measurements_file.is_relative_to(settings.trusted_folder)
        assert staged.is_relative_to(settings.trusted_folder)
        mechanism_for(settings, FIRST_DAY)

    return refusal_of(read)


def read_hierarchy(world: World, case: tuple[str, bytes]) -> str | None:
    """As a run does: through the configuration that names the file."""
    ending, content = case
    world.put(f"nodes{ending}", content)
    before, after = EXAMPLE.split("[hierarchy.parents]")[0], EXAMPLE.split("[budget]")[1]
    text = f'{before}[hierarchy]\nfile = "nodes{ending}"\n[budget]{after}'
    path = world.put("optstream.toml", text.encode())

    def read() -> None:
        for node in load_settings(path).tree_of(date.min).nodes:
            assert "/" not in node
            assert node not in ("", ".", "..")

    return refusal_of(read)


def read_dumps(world: World, case: tuple[str, Any], how: Callable[..., list[str]] = World.take) -> list[str]:
    schema, days = case
    world.empty()
    world.deliver(days)
    return how(world, schema, [FIRST_DAY + timedelta(days=number) for number in range(len(days))])


def read_folder(world: World, case: dict[str, bytes]) -> list[str | None]:
    world.empty()
    for name, content in case.items():
        world.put(name, content)

    def check() -> None:
        for problem in check_files(world.hostile):
            assert CANARY_TEXT not in problem

    readers = (
        lambda: parse_catalogue(case["catalogue.json"]) if "catalogue.json" in case else None,
        lambda: read_published(world.hostile),
        lambda: read_published(world.hostile, verify=True),
        check,
    )
    return [refusal_of(reader) for reader in readers]


def read_measurements(_world: World, content: bytes) -> str | None:
    return refusal_of(lambda: Measured.from_bytes(content))


def _as_hierarchy(data: bytes) -> tuple[str, bytes]:
    return (".csv", ".parquet")[data[:1] > b"\x7f"], data[1:]


def _as_dump(data: bytes) -> tuple[str, list[list[Delivered]]]:
    """Two days: one that is whole, and one of whose regions somebody else wrote a file."""
    schema = ("aggregated", "metered")[data[:1] > b"\x7f"]
    whole = [dumps.sound(FIRST_DAY + timedelta(days=n), metered=schema == "metered") for n in range(2)]
    sound = [Delivered("region=84", (("part-0.parquet", entry),)) for entry in whole]
    other = Delivered("region=11", (("part-0.parquet", whole[1]),))
    return schema, [[sound[0], Delivered("region=11", (("part-0.parquet", data[1:]),))], [sound[1], other]]


def _as_folder(data: bytes) -> dict[str, bytes]:
    """The first byte says which file of a whole folder the rest stands for."""
    files = dict(written.whole())
    names = sorted(files)
    files[names[int.from_bytes(data[:1], "big") % len(names)]] = data[1:]
    return files


def _hierarchy_seeds() -> list[bytes]:
    frame = pl.DataFrame({"node": ["FR", "84", "11"], "parent": ["", "FR", "FR"]})
    return [b"\0node,parent\nFR,\n84,FR\n11,FR\n", b"\xff" + dumps.parquet_of(frame)]


def _dump_seeds() -> list[bytes]:
    return [b"\0" + dumps.sound(FIRST_DAY, metered=False), b"\xff" + dumps.sound(FIRST_DAY, metered=True)]


def _folder_seeds() -> list[bytes]:
    files = written.whole()
    return [bytes([number]) + files[name] for number, name in enumerate(sorted(files))]


def _configuration_seeds() -> list[bytes]:
    return [text.encode() for text in (EXAMPLE, EXAMPLE + CHANGES, *configurations.SHAPES)]


# five days at once: the contracts' library takes as long for them as for one
DUMPS = st.one_of(
    st.tuples(st.just(schema), dumps.cases(5, metered=schema == "metered"))
    for schema in ("aggregated", "metered")
)
INPUTS = (
    Input("configuration", configurations.tables(), read_configuration, bytes, _configuration_seeds),
    Input("hierarchy", configurations.hierarchies(), read_hierarchy, _as_hierarchy, _hierarchy_seeds),
    Input("dumps", DUMPS, read_dumps, _as_dump, _dump_seeds, partial(read_dumps, how=World.ingest)),
    Input("catalogue", written.folders(), read_folder, _as_folder, _folder_seeds),
    Input("measurements", written.measurements(), read_measurements, bytes, lambda: [written.measured()]),
)
