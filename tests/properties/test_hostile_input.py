"""Whatever others write, it is read or refused with an OptStreamError, shows no reading and costs nothing."""

import json
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import PurePosixPath, PureWindowsPath

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from optstream.catalogue import check_files
from optstream.catalogue.measurements import decode_measurements
from optstream.catalogue.standard_errors import decode_old_errors, decode_replicates
from optstream.catalogue.statement import decode
from optstream.errors import ConfigurationError, DumpError, ParameterError, PublicationError
from optstream.stream import Measured
from tasks.config import load_settings
from tasks.config.fields import is_node_name
from tasks.config.templates import EXAMPLE
from tasks.ingest import discover
from tests.properties import footers
from tests.properties.dumps import FIRST_DAY, Delivered, parquet_of, sound
from tests.properties.inputs import INPUTS
from tests.properties.world import World
from tests.properties.written import measured, whole


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("OPTSTREAM_LEDGER_URL", raising=False)
        # Rust would look up the names of its frames at each panic of a library, which takes seconds.
        patch.setenv("RUST_BACKTRACE", "0")
        yield World(tmp_path_factory.mktemp("world"))


EXAMPLES = {"configuration": 50, "hierarchy": 50, "dumps": 2, "catalogue": 30, "measurements": 75}
TIMES = int(os.environ.get("OPTSTREAM_FUZZ_TIMES", "1"))
"""Multiplies the examples and, above 1, draws them by the given seed: `make fuzz`."""


@pytest.mark.slow
@pytest.mark.parametrize("source", INPUTS, ids=lambda source: source.name)
def test_hostile_input_is_read_or_refused_and_costs_nothing(world, source):
    refused, read = [], []

    @settings(
        max_examples=TIMES * EXAMPLES[source.name],
        deadline=None if TIMES == 1 else timedelta(minutes=1),
        derandomize=TIMES == 1,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(source.cases)
    def run(case):
        refusals = source.read(world, case)
        (refused if refusals and refusals != [None] * 4 else read).append(case)
        assert world.n_spends == 0

    run()
    assert refused, "a grammar that makes nothing hostile tests nothing"
    assert read, "a grammar that makes nothing readable tests only the first check"


@pytest.mark.slow
@pytest.mark.parametrize("source", INPUTS, ids=lambda source: source.name)
def test_seeds_of_the_fuzzer_without_grammar_are_read(world, source):
    """Else it would only ever see the first check."""
    refusals = [source.read(world, source.from_bytes(seed)) for seed in source.seeds()]
    assert not refusals[-1] or refusals[0] in (None, [None] * 4), refusals
    assert world.n_spends == 0


HUGE = 10**12


@pytest.fixture
def refusal(tmp_path):
    def refuse(old: str, new: str) -> str:
        assert old in EXAMPLE
        (tmp_path / "optstream.toml").write_text(EXAMPLE.replace(old, new))
        with pytest.raises(ConfigurationError) as caught:
            load_settings(tmp_path / "optstream.toml")
        return str(caught.value)

    return refuse


def with_file(name: str) -> tuple[str, str]:
    start, stop = EXAMPLE.index("[hierarchy.parents]"), EXAMPLE.index("[budget]")
    return EXAMPLE[start:stop], f'[hierarchy]\nfile = "{name}"\n'


def claiming(file: bytes, change: Callable[[footers.Struct], None]) -> bytes:
    """The file with a footer that says something else."""
    body, footer = footers.split(file)
    change(footer)
    return footers.join(body, footer)


def rows_everywhere(n_rows: int) -> Callable[[footers.Struct], None]:

    def change(footer: footers.Struct) -> None:
        (group,) = footer[footers.ROW_GROUPS][1][1]
        footer[footers.N_ROWS] = (footers.I64, n_rows)
        group[footers.GROUP_ROWS] = (footers.I64, n_rows)
        for column in group[footers.GROUP_COLUMNS][1][1]:
            column[footers.COLUMN_METADATA][1][footers.COLUMN_VALUES] = (footers.I64, n_rows)

    return change


def total_only(footer: footers.Struct) -> None:
    footer[footers.N_ROWS] = (footers.I64, HUGE)


REFUSED = (
    ("[stream]", "a" + ".a" * 1000 + " = 1\n[stream]", "keys of at most 32 dotted parts"),
    ("[stream]", '"a" . ' * 40 + "a = 1\n[stream]", "keys of at most 32 dotted parts"),
    ("window = 48", "window = " + "4" * 5000, "is not TOML: an integer has too many digits"),
    ('epsilon = "1"', "epsilon = 0x" + "f" * 5000, "privacy.epsilon must be a decimal string"),
    ('epsilon = "1"', "epsilon = 0x" + "f" * 300, "privacy.epsilon must be a decimal string"),
    ('name = "OptStream"', "name = 0x" + "f" * 5000, "mechanism.name must be"),
    ('name = "french-load"', "name = " + "[" * 2000 + "]" * 2000, "nested too deeply"),
    ('folder = "published"', 'folder = "a\\u0000b"', "published.folder is no path: it holds a NUL"),
    ('folder = "trusted"', 'folder = "a\\u0000b"', "trusted.folder or published.folder is no path"),
    ('["1/2", "1/2"]         # a share', str(["1/100"] * 65) + " #", "in [0, 1], at most 64, root first"),
    ('"day" = []', "\n".join(f"f{n} = []" for n in range(101)), "features must be at most 100 tables"),
    ('"day" = []', f'"day" = {["07:00"] * 1441}', "features.day must be a list of clock times"),
    (*with_file("a\\u0000.csv"), "does not exist, or is not a file"),
    (*with_file("x" * 5000 + ".csv"), "is no path that can be looked up"),
)


@pytest.mark.parametrize(("old", "new", "refused"), REFUSED, ids=lambda text: f"{text:.30}")
def test_a_configuration_has_bounds(refusal, old, new, refused):
    assert refused in refusal(old, new)


def test_a_hierarchy_file_that_claims_a_trillion_rows_is_refused_unread(refusal, tmp_path, monkeypatch):
    whole_file = parquet_of(pl.DataFrame({"node": ["FR", "84"], "parent": ["", "FR"]}))
    (tmp_path / "tree.parquet").write_bytes(claiming(whole_file, rows_everywhere(HUGE)))
    monkeypatch.setattr(pl, "read_parquet", None)
    assert "must claim at most 4,194,304 rows" in refusal(*with_file("tree.parquet"))


def region(name: int, file: bytes) -> Delivered:
    return Delivered(f"region={name}", (("part-0.parquet", file),))


CLAIMS = {
    rows_everywhere(HUGE): "part-0.parquet: must claim at most 2,147,483,648 rows",
    total_only: "part-0.parquet: must be a readable Parquet file",
    rows_everywhere(-1): "part-0.parquet: must be a readable Parquet file",
}


@pytest.mark.slow
@pytest.mark.parametrize("schema", ["aggregated", "metered"])
def test_a_dump_that_claims_too_much_is_refused_unread(world, schema):
    """A day for each claim."""
    days = [FIRST_DAY + timedelta(days=number) for number in range(len(CLAIMS))]
    files = [sound(day, metered=schema == "metered") for day in days]
    lying = [claiming(file, change) for file, change in zip(files, CLAIMS, strict=True)]
    world.empty()
    world.deliver([[region(84, whole), region(11, other)] for whole, other in zip(files, lying, strict=True)])
    for message, refused in zip(world.take(schema, days), CLAIMS.values(), strict=True):
        assert refused in message
    assert world.n_spends == 0


@pytest.mark.parametrize("name", ["a\nb.parquet", "\x1b[31m.parquet", "a\udcff.parquet", "\u202ea.parquet"])
def test_a_file_of_an_unprintable_name_is_refused_and_shown_escaped(world, name):
    world.deliver_whole_day(name)
    found = discover(world.settings["aggregated"], [FIRST_DAY])[FIRST_DAY]
    assert type(found) is DumpError
    assert "must have a name of printable characters" in str(found)
    assert str(found).isprintable()


def test_a_file_list_that_is_a_pipe_is_not_waited_for(world):
    settings = world.settings["aggregated"]
    source = settings.input.model_copy(update={"file_list": "_FILES"})
    world.deliver_whole_day()
    os.mkfifo(world.hostile / f"region=84/date={FIRST_DAY}/_FILES")
    found = discover(settings.model_copy(update={"input": source}), [FIRST_DAY])[FIRST_DAY]
    assert type(found) is DumpError
    assert f"region=84/date={FIRST_DAY}/'_FILES' must be a file; replace it" in str(found)


MEASURED = json.loads(measured())
EXPONENT = json.loads(measured().replace(b'"scale":"', b'"scale":"1e999999999'))
"""It would take all memory, and hours."""
RELEASE = next(name for name in sorted(whole()) if name.endswith(".parquet"))
MANIFEST = f"manifests/{RELEASE.rsplit('/')[-1].removesuffix('.parquet')}.json"


@pytest.mark.parametrize("link", ["fifo", "loop"])
@pytest.mark.parametrize("name", ["catalogue.json", RELEASE, MANIFEST])
def test_a_published_file_that_is_a_pipe_or_a_loop_is_refused(world, name, link):
    target = "fifo" if link == "fifo" else name.rsplit("/")[-1]
    world.empty()
    for path, content in {**whole(), name: f"link:{target}".encode()}.items():
        world.put(path, content)
    try:
        refused = "; ".join(check_files(world.hostile))
    except PublicationError as error:
        refused = str(error)
    assert refused


WHOLE = whole()[RELEASE]
LISTS = parquet_of(pl.DataFrame({"step": [[1, 2, 3]]}))
NOT_WHOLE = (WHOLE[:-1], b"", b"PAR1" + b"{}" * 100, claiming(WHOLE, total_only), LISTS)
MOST_ROWS = {decode: 2**26, decode_replicates: 2**26, decode_old_errors: 2**26, decode_measurements: 2**28}


@pytest.mark.parametrize(("read", "most"), MOST_ROWS.items())
def test_a_published_file_that_is_none_or_claims_too_much_is_refused_unread(read, most):
    for data in NOT_WHOLE:
        with pytest.raises(PublicationError, match="is not whole Parquet"):
            read(data)
    for n_rows in (most + 1, HUGE):
        with pytest.raises(PublicationError, match=f"may claim at most {most:,} rows"):
            read(claiming(WHOLE, rows_everywhere(n_rows)))


@pytest.mark.parametrize(
    "content",
    [
        *(b"[" * 10**5, b"[]", b"1"),
        *(b'{"format": "optstream.measured/2"}', b'{"format": ' + b"9" * 5000 + b"}"),
        *(json.dumps(one).encode() for one in (MEASURED | {"resolution": "1e999999999"}, EXPONENT)),
    ],
    ids=lambda content: f"{content!r:.30}",
)
def test_what_is_no_measurement_is_refused(content):
    with pytest.raises(ParameterError, match=r"not measurements that OptStream wrote|of format"):
        Measured.from_bytes(content)


@settings(deadline=None, derandomize=True, database=None, max_examples=200)
@given(st.text(max_size=30))
@example("..")
@example("a/../b")
@example("a%2Fb")
@example("a\\b")
@pytest.mark.slow
def test_a_node_name_is_one_plain_part_of_a_path(name):
    if not is_node_name(name):
        return
    for part in (name, f"region={name}"):
        assert PurePosixPath(part).parts == (part,) == PureWindowsPath(part).parts
        assert part not in ("", ".", "..")
        assert part.isprintable()
    assert "%" not in name
