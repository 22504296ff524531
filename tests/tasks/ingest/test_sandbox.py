"""Dumps read in a process of its own: what ends it costs its own day, and no word of it is heard."""

import os
import pickle
import signal
import subprocess
import sys
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import polars as pl
import psutil
import pyarrow.parquet as pq
import pytest

from optstream.errors import DumpError, OptStreamError
from optstream.ledger import Key, open_ledger
from optstream.measurement.sums import open_private_period
from optstream.noise import secure_noise
from tasks.ingest import discover, ingest, sandbox
from tasks.ingest.sandbox import answer, read_apart
from tasks.ingest.sums import read_days
from tasks.release.run import Judged, Requested, Run, Status, enrol
from tests.failing import Death, raising
from tests.tasks.conftest import DAY, NEXT, NOW
from tests.tasks.two_regions import READING

pytestmark = pytest.mark.slow
READ_HERE = """
import sys
from datetime import date
from pathlib import Path
from tasks.config import load_settings
from tasks.ingest import discover
from tasks.ingest.sandbox import read_apart
settings, day = load_settings(Path(sys.argv[1])), date.fromisoformat(sys.argv[2])
read_apart(settings, [discover(settings, [day])[day]])
print("read", flush=True)
sys.stdin.read()
"""
"""A run that has read one day and goes on."""
LIMITED = {
    "while True: pass": -signal.SIGALRM,
    "signal.setitimer(signal.ITIMER_REAL, 0)\nwhile True: pass": -signal.SIGXCPU,
    "bytes(2**32)": "MemoryError",
    "open('x', 'wb', 0).write(b'x')": "File too large",
    "os._exit(len(bytes(2**28)) % 2)": 0,
}
BEGIN = "import os, signal\nfrom tasks.ingest.sandbox import limit\nlimit(1, 2**32)\n"


def dumps_of(stream, *days):
    return list(discover(stream.settings, days).values())


def run_of(stream):
    run = Run(stream.settings, open_ledger(stream.settings.ledger_url), secure_noise(), "owner", lambda: NOW)
    enrol(run)
    return run


def spoil(path):
    """One bit of a page's header: the 48 values of it (96, for a sign's sake) become -49."""
    data = bytearray(path.read_bytes())
    columns = pq.ParquetFile(path).metadata.row_group(0)
    (place,) = (
        columns.column(number).data_page_offset
        for number in range(columns.num_columns)
        if columns.column(number).path_in_schema == "customer_id"
    )
    number_of_values = data.index(b"\x15\x60", place, place + 30) + 1
    data[number_of_values] += 1
    path.write_bytes(data)


@pytest.fixture
def metered(small):
    """Two days of two customers; the file of region 11 on the first is called `part-7.parquet`."""
    stream = small(schema="metered")
    for day in (DAY, NEXT):
        for name in ("84", "11"):
            file = "part-7.parquet" if (name, day) == ("11", DAY) else "part-0.parquet"
            stream.write(name, stream.metered(name, 1.0, day), day, file)
    return stream


def test_what_is_read_apart_is_what_is_read_here(metered):
    metered.write("84", metered.metered("84", 101.0), name="part-1.parquet")
    dumps = dumps_of(metered, DAY, NEXT)
    for found in [read_apart(metered.settings, dumps) for _ in range(2)]:
        for there, here in zip(found, ingest(metered.settings, dumps), strict=True):
            assert (there.day, there.places) == (here.day, here.places)
            assert there.metrics.equals(here.metrics)
            assert np.array_equal(open_private_period(there.period), open_private_period(here.period))


def test_a_file_that_ends_its_reader_costs_its_own_day(metered):
    """Control: without a process of its own, the file ends its reader."""
    spoil(metered.folder("11") / "part-7.parquet")
    alone = "import sys, polars; polars.read_parquet(sys.argv[1])"
    alone = subprocess.run([sys.executable, "-c", alone, metered.folder("11")], capture_output=True)
    assert alone.returncode < 0, "polars ends no process for this any more: look for another fault"
    run = run_of(metered)
    works = [Requested(DAY), Requested(NEXT)]
    for step in READING:
        works = step(replace(run, read=read_apart), works)
    run.ledger.close()
    refused, sound = works
    assert refused.status is Status.REFUSED
    assert "region=11/date=2025-01-15/'part-7.parquet': the process that reads" in refused.message
    assert "SIGABRT" in refused.message
    assert isinstance(sound, Judged)


def test_a_process_serves_one_request_after_the_other_but_never_two(metered, monkeypatch):
    monkeypatch.setattr(sandbox, "IDLE", [])
    dumps, real, asked = dumps_of(metered, DAY), sandbox._Process.ask, []

    def ask(self, *given, **named):
        if not asked:  # another request, while this one is answered
            asked.append(self)
            read_apart(metered.settings, dumps)
        asked.append(self)
        return real(self, *given, **named)

    monkeypatch.setattr(sandbox._Process, "ask", ask)
    read_apart(metered.settings, dumps)
    first, second, _ = asked
    assert first is not second
    assert [second, first] == sandbox.IDLE
    read_apart(metered.settings, dumps)
    assert [second, first] == sandbox.IDLE
    first.end()
    read_apart(metered.settings, dumps)
    assert [second] == sandbox.IDLE, "one that died while it waited is asked no more"
    monkeypatch.setattr(sandbox, "answered", raising(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        read_apart(metered.settings, dumps)
    assert sandbox.IDLE == [], "nor one whose answer nobody took"


@pytest.mark.nightly
def test_who_is_stopped_while_it_waits_leaves_no_answer_to_the_next(metered, monkeypatch):
    """Its days would be taken for the next one's, and released as those."""
    monkeypatch.setattr(sandbox, "IDLE", [])
    dumps = dumps_of(metered, DAY, NEXT)
    # as Prefect or a person stops a run: from outside, anywhere
    before = signal.signal(signal.SIGALRM, raising(Death))
    try:
        read_apart(metered.settings, dumps[:1])
        signal.setitimer(signal.ITIMER_REAL, 0.002)
        for _ in range(10_000):
            read_apart(metered.settings, dumps[:1])
    except Death:
        pass
    finally:
        signal.signal(signal.SIGALRM, before)
    for dump in (dumps[1], dumps[0], dumps[1]):
        (day,) = read_apart(metered.settings, [dump])
        assert day.day == dump.day


def test_a_reader_that_cannot_begin_is_reported_each_time(metered, monkeypatch):
    monkeypatch.setattr(sandbox, "IDLE", [])
    monkeypatch.setattr(sandbox.sys, "executable", "/bin/false")
    for _ in range(2):
        with pytest.raises(DumpError, match=r"exit code 1"):
            read_apart(metered.settings, dumps_of(metered, DAY, NEXT))


def test_what_a_library_raises_there_is_not_heard_here(metered, capfd):
    """A day without regions is none that `discover` gives: nothing was planned for it."""
    (dump,) = dumps_of(metered, DAY)
    with pytest.raises(OptStreamError, match=r"unexpected .* its text is withheld"):
        read_apart(metered.settings, [replace(dump, files=((Path("71234"),),) * 3)])
    assert len(read_apart(metered.settings, [dump])) == 1, "the process lives on"
    assert capfd.readouterr() == ("", "")


@pytest.mark.nightly
def test_the_process_ends_with_who_asked(metered):
    """Also if that one was killed: the sockets say so, and nothing else is needed."""
    command = [sys.executable, "-c", READ_HERE, str(metered.settings.file), str(DAY)]
    asker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert asker.stdout.readline() == b"read\n"
    (child,) = psutil.Process(asker.pid).children()
    asker.kill()
    asker.communicate()
    child.wait(timeout=60)


def test_the_kernel_limits_a_reader(tmp_path):
    more = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}}
    more |= {"stderr": subprocess.PIPE, "text": True}
    begun = [subprocess.Popen([sys.executable, "-c", BEGIN + act], **more) for act in LIMITED]
    for (act, expected), one in zip(LIMITED.items(), begun, strict=True):
        _, said = one.communicate(timeout=120)
        assert one.returncode == expected if isinstance(expected, int) else expected in said, act


def test_a_reader_ends_itself_at_the_limit(small, monkeypatch):
    """Its asker's clock does not run: so it is where that is stopped."""
    stream = small(marker='file_list = "_FILES"')
    for region in ("84", "11"):
        path = stream.write(region, stream.rows(1.0))
        (path.parent / "_FILES").write_text(f"{'0' * 64}  {path.name}\n")
    os.truncate(path, 2**36)  # a minute of hashing, or several
    monkeypatch.setattr(sandbox, "Timer", lambda *_: Mock())
    monkeypatch.setattr(sandbox, "IDLE", [])
    popen, act = subprocess.Popen, f"import sys, {sandbox.__name__} as reader; "
    act += "reader.seconds_of = lambda settings: 0; reader._serve_until_alone(reader.End(int(sys.argv[1])))"

    def in_a_hurry(command, **more):
        return popen([sys.executable, "-c", act, command[-1]], **more)

    monkeypatch.setattr(sandbox.subprocess, "Popen", in_a_hurry)
    with pytest.raises(DumpError, match=r"took longer than input\.time_limit"):
        read_apart(stream.settings, dumps_of(stream, DAY, NEXT)[:1] * 2)


@pytest.mark.nightly
def test_five_million_sound_rows_are_read_within_the_limits(small):
    stream = small(schema="metered")
    many = pl.DataFrame({"customer_id": pl.int_range(105_000, eager=True).cast(pl.String)})
    for name in ("84", "11"):
        rows = stream.metered("x", 1.0)
        stream.write(name, rows.drop("customer_id").join(many, how="cross") if name == "84" else rows)
    (day,) = read_apart(stream.settings, dumps_of(stream, DAY))
    units = open_private_period(day.period)
    assert (units[0] == 105_000 * units[1]).all()
    assert units[1].all()


def test_a_dump_that_takes_too_long_costs_its_own_day_and_nothing_is_spent(metered, monkeypatch):
    path = metered.folder("84") / "part-0.parquet"
    dumps = dumps_of(metered, DAY, NEXT)
    os.truncate(path, 2**36)  # a minute of hashing, or several
    slow = replace(dumps[0], hashes={path: "0" * 64})
    ledger = run_of(metered).ledger
    read_apart(metered.settings, dumps[1:])
    monkeypatch.setattr(sandbox, "seconds_of", lambda settings: 0.5)
    with pytest.raises(DumpError) as refused:
        read_apart(metered.settings, [slow])
    monkeypatch.setattr(sandbox, "seconds_of", lambda settings: 60.0)
    path.unlink()
    os.mkfifo(path)  # a pipe that came since is not waited for
    assert read_apart(metered.settings, dumps[:1])[0].metrics["file_fault"][0] == "unreadable"
    assert ledger.find(Key("small", DAY.isoformat())) is None
    assert len(read_apart(metered.settings, dumps[1:])) == 1
    ledger.close()
    message = str(refused.value)
    assert message.startswith("region=84/date=2025-01-15/'part-0.parquet': reading the dump took longer than")
    assert "input.time_limit, 6h, and was ended" in message
    assert "set a longer limit" in message


def test_what_the_process_says_is_data(metered, monkeypatch, tmp_path):
    """A file has taken it over. Before, its answer was unpickled: this one would have run a command."""
    path = tmp_path / "touched"

    def read(messages):
        def ask(self, settings, dumps, seconds, footers):
            return sandbox.answered(iter(messages), settings, dumps)

        monkeypatch.setattr(sandbox, "IDLE", [])
        monkeypatch.setattr(sandbox._Process, "ask", ask)
        return read_apart(metered.settings, dumps)

    class Command:
        def __reduce__(self):
            return os.system, (f"touch {path}",)

    dumps = dumps_of(metered, DAY)
    good = head, metrics, units = [*answer(read_days(metered.settings, dumps))]
    wrong = BytesIO()
    pl.DataFrame({"units": [1, 2, 3]}).write_ipc_stream(wrong)
    damaged = units[:40] + bytes(20) + units[60:]
    heads = (pickle.dumps(Command()), b"", b"[]", b"{}", b'{"days": 1}', b"[" * 100_000, metrics)
    others = ([metrics], [units, units], [metrics, wrong.getvalue()], [metrics, damaged])
    for messages in (*([one, metrics, units] for one in heads), *([head, *one] for one in others)):
        with pytest.raises(OptStreamError, match="gave no answer"):
            read(messages)
    assert not path.exists()
    pickle.loads(pickle.dumps(Command()))  # noqa: S301 - our own
    assert path.exists(), "the control"
    (day,) = read(good)
    assert np.array_equal(open_private_period(day.period), metered.units())
