"""The doctor's findings: folders and files, variables and servers, ledger, published folder and dumps."""

import fcntl
import gc
import os
import shutil
import socket
import tempfile
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from optstream.errors import ConfigurationError, LedgerError
from optstream.noise import simulated_noise
from tasks.operate import doctor as places
from tasks.operate.doctor import examine, listens_beyond_loopback
from tasks.operate.permissions import check_trusted
from tests.failing import raising
from tests.tasks.two_regions import CONFIGURATION, STEPS, Installation

DAY, NEXT = date(2016, 6, 1), date(2016, 6, 2)
NOW = datetime(2016, 7, 1, 12, tzinfo=UTC)


def around(installation, environment=None, ask=lambda url: None, now=NOW):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(places, "ask_server", ask)
        found = examine(installation.settings, environment or {}, now)
    return [(one.severity.value, one.place, f"{one.rule}: {one.remedy}") for one in found]


def the_only(installation, severity, place, *words, **given):
    """Assert that there is one finding, of this place and with these words."""
    ((is_severity, is_place, text),) = around(installation, **given)
    assert is_severity == severity
    assert place is None or is_place == str(place)
    assert [one for one in words if one not in f"{is_place}: {text}"] == []


@pytest.fixture
def opened():
    """Released, private where it must be; raw dumps for their owner alone."""
    before = os.umask(0o022)
    folder = Path(tempfile.mkdtemp(prefix="optstream-doctor-"))
    folder.chmod(0o755)
    try:
        (folder / "optstream.toml").write_text(CONFIGURATION)
        installation = Installation(folder)
        installation.simulate(DAY)
        (folder / "dumps").chmod(0o700)
        installation.released(DAY)
        yield installation
    finally:
        os.umask(before)
        shutil.rmtree(folder)


def test_a_sound_stream_has_no_finding_and_is_left_as_it_was(opened):
    def seen():
        public = (opened.folder / "published").stat().st_mtime_ns
        return public, {path: path.stat().st_mode for path in opened.folder.rglob("*")}

    gc.collect()  # closes the ledgers that the fixture left open
    opened.ledger.close()  # the last connection: SQLite removes its logs
    before = seen()
    assert around(opened) == []
    assert seen() == before


OPEN = [
    *(("trusted", mode, "chmod 700") for mode in (0o040, 0o001, 0o004)),
    *(("trusted/ledger.sqlite", mode, "chmod 600") for mode in (0o040, 0o001, 0o004)),
    *(("trusted/input.key", mode, "chmod 600") for mode in (0o040, 0o001, 0o004)),
    *((place, 0o002, "chmod o-w") for place in ("published", "published/data", "published/.incoming")),
    *((place, 0o002, "chmod o-w") for place in ("published/catalogue.json", ".")),
    *(("second", mode, "chmod 700") for mode in (0o055, 0o020, 0o001)),
]
"""A user who may write to the second witness can undo it, and then restore an older ledger."""


def test_a_place_open_to_others_is_wrong_and_stops_every_run(opened):
    trusted = '[trusted]\nfolder = "trusted"'
    opened.configure(trusted, f'{trusted}\nwitness = "second"')
    (opened.folder / "second").mkdir(mode=0o700)
    check_trusted(opened.settings)
    for place, mode, remedy in OPEN:
        path = opened.folder / place
        path.chmod(path.stat().st_mode | mode)
        the_only(opened, "wrong", path, f"{remedy} {path}")
        rule = "written by everybody" if mode == 0o002 else "open to others"
        with pytest.raises(ConfigurationError, match=f"{rule}.*\n.*{remedy} {path}"):
            check_trusted(opened.settings)
        os.system(f"{remedy} {path}")
        check_trusted(opened.settings)


def test_a_ledger_outside_the_trusted_folder_is_looked_at_too(opened):
    (opened.folder / "books").mkdir(mode=0o700)
    opened.copy_ledger().rename(opened.folder / "books/ledger.sqlite")
    for path in (opened.folder / "trusted").glob("ledger.sqlite*"):
        path.unlink()
    opened.configure("sqlite:///trusted/", "sqlite:///books/")
    (opened.folder / "books/ledger.sqlite").chmod(0o640)
    the_only(opened, "wrong", opened.folder / "books/ledger.sqlite")


def test_world_readable_raw_data_is_named_if_others_can_come_there(opened):
    (opened.folder / "dumps").chmod(0o755)
    the_only(opened, "warning", None, "raw readings", ".parquet")
    check_trusted(opened.settings)
    opened.folder.chmod(0o700)
    assert around(opened) == []


@pytest.mark.parametrize(("name", "others"), [("trusted", 1), ("dumps", 2)])
def test_a_published_folder_inside_a_private_one_is_wrong(opened, name, others):
    moved = opened.folder / name / "published"
    shutil.copytree(opened.folder / "published", moved)
    opened.configure('folder = "published"', f'folder = "{name}/published"')
    found = around(opened)
    assert len(found) == others
    assert found[0][:2] == ("wrong", str(moved))


def test_under_an_open_umask_a_run_makes_nothing_that_others_may_write(opened):
    before = os.umask(0)
    try:
        for name in ("published", "trusted"):
            shutil.rmtree(opened.folder / name)
        opened.release(DAY)
    finally:
        os.umask(before)
    check_trusted(opened.settings)
    modes = {path: path.stat().st_mode & 0o777 for path in (opened.folder / "published").rglob("*")}
    assert {oct(mode) for mode in modes.values()} == {"0o755", "0o644", "0o700", "0o600"}
    assert (opened.folder / "trusted").stat().st_mode & 0o777 == 0o700


def test_a_password_in_a_configuration_that_others_read_is_reported_and_not_shown(opened):
    path = opened.folder / "optstream.toml"
    opened.configure("sqlite:///trusted/ledger.sqlite", "postgresql://me:Geheim7@127.0.0.1:1/ledger")
    found = around(opened)
    assert ("wrong", str(path)) in [entry[:2] for entry in found]
    assert "Geheim7" not in str(found)
    path.chmod(0o600)
    assert str(path) not in [place for _, place, _ in around(opened)]
    path.chmod(0o602)
    assert str(path) in [place for _, place, _ in around(opened)]


def test_a_file_system_without_links_or_locks_is_wrong_and_the_probe_is_gone(opened, monkeypatch):
    refuse = raising(OSError(95, "Operation not supported"))
    before = sorted(opened.folder.rglob("*"))
    monkeypatch.setattr(places.os, "link", refuse)
    assert {words.split(",")[0] for _, _, words in around(opened)} == {"its file system has no hard links"}
    monkeypatch.setattr(fcntl, "flock", refuse)
    found = around(opened)
    places_found = [Path(place).relative_to(opened.folder) for _, place, _ in found]
    assert places_found == [Path("published"), Path("trusted")]
    assert "no hard links and no locks (flock)" in found[0][2]
    assert sorted(opened.folder.rglob("*")) == before


def test_an_sqlite_ledger_on_a_mount_over_a_network_is_wrong(opened, monkeypatch):
    mounts = [SimpleNamespace(mountpoint=str(opened.folder), fstype="nfs4")]
    monkeypatch.setattr(places.psutil, "disk_partitions", lambda all: mounts)
    the_only(opened, "wrong", opened.folder / "trusted/ledger.sqlite", "nfs4", "move it to a local disk")
    mounts.append(SimpleNamespace(mountpoint=str(opened.folder / "trusted"), fstype="ext4"))
    assert around(opened) == []


API, NEAR = "PREFECT_API_URL", "http://127.0.0.1:1/api"
VARIABLES = [
    ({"PREFECT_SERVER_ANALYTICS_ENABLED": "true"}, "wrong", "PREFECT_SERVER_ANALYTICS_ENABLED"),
    ({"GX_ANALYTICS_ENABLED": "True"}, "wrong", "GX_ANALYTICS_ENABLED"),
    ({"PREFECT_RESULTS_PERSIST_BY_DEFAULT": "y"}, "warning", "PREFECT_RESULTS_PERSIST_BY_DEFAULT"),
    ({"DO_NOT_TRACK": "0"}, "wrong", "DO_NOT_TRACK"),
    ({"PREFECT_SERVER_API_HOST": "0.0.0.0"}, "wrong", "PREFECT_SERVER_API_HOST"),
    ({"PREFECT_SERVER_API_HOST": "::"}, "wrong", "PREFECT_SERVER_API_HOST"),
    ({API: "https://api.prefect.cloud/api/accounts/1"}, "wrong", API),
    ({API: "https://API.Prefect.Cloud./api/accounts/1"}, "wrong", API),
    ({API: "http://prefect.example/api"}, "wrong", API),
    ({"OPTSTREAM_LEDGER_URL": "sqlite:///trusted/ledger.sqlite"}, "note", "OPTSTREAM_LEDGER_URL"),
    ({"PREFECT_SERVER_ANALYTICS_ENABLED": "false", "GX_ANALYTICS_ENABLED": "0"}, None, None),
    ({"DO_NOT_TRACK": "1"}, None, None),
    ({"PREFECT_SERVER_API_HOST": "127.0.0.1"}, None, None),
    ({"PREFECT_SERVER_API_HOST": "0.0.0.0", "PREFECT_SERVER_API_AUTH_STRING": "a:b"}, None, None),
    ({API: "https://prefect.example/api"}, None, None),
    ({API: "http://127.0.0.1:4200/api"}, None, None),
]


def test_variables_that_open_something_are_named(opened):
    for variables, severity, place in VARIABLES:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            found = around(opened, variables)
        assert [entry[:2] for entry in found] == [(severity, place)] * (severity is not None), variables


@pytest.mark.parametrize(
    ("url", "telemetry", "wanted"),
    [
        ("https://prefect.example/api", False, {"wrong": "answers anybody on the network"}),
        (NEAR, False, {"note": "it has no password"}),
        (NEAR, True, {"wrong": "sends telemetry", "note": "it has no password"}),
    ],
)
def test_what_a_server_tells_to_anybody_is_a_finding(opened, url, telemetry, wanted):
    found = around(opened, {API: url}, lambda _: {"server": {"analytics_enabled": telemetry}})
    assert [(severity, place) for severity, place, _ in found] == [(one, API) for one in wanted]
    assert all(words in text for words, (_, _, text) in zip(wanted.values(), found, strict=True))


def test_prefect_s_own_folder_open_to_others_is_wrong(opened):
    home = opened.folder / "prefect home"
    home.mkdir(mode=0o755)
    the_only(opened, "wrong", home, f"chmod 700 '{home}'", environment={"PREFECT_HOME": str(home)})
    home.chmod(0o700)
    assert around(opened, {"PREFECT_HOME": str(home)}) == []


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::1", "::"])
def test_the_kernel_knows_who_listens_beyond_loopback(address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as listener:
        try:
            listener.bind((address, 0))
        except OSError:
            assert family == socket.AF_INET6  # a machine without it has no such server either
            return
        listener.listen()
        assert listens_beyond_loopback(listener.getsockname()[1]) is ("1" not in address)


def test_a_distant_ledger_without_encryption_is_reported(opened, monkeypatch):
    def first(url):
        opened.configure(*url)
        return [place for _, place, words in around(opened) if "encrypted" in words]

    (opened.folder / "optstream.toml").chmod(0o600)
    monkeypatch.setattr("tasks.operate.doctor.find_ledger", raising(LedgerError("does not answer")))
    assert first(("sqlite:///trusted/ledger.sqlite", "postgresql://db.example/ledger")) == ["ledger.url"]
    assert first(("db.example/ledger", "db.example/ledger?sslmode=verify-full")) == []
    assert first(("db.example/ledger?sslmode=verify-full", "localhost/ledger")) == []


def test_seeded_noise_in_a_production_stream_is_wrong(opened):
    opened.simulate(NEXT)
    opened.release(NEXT, steps=STEPS[:6])
    assert around(opened) == []
    third = date(2016, 6, 3)
    opened.simulate(third)
    opened.release(third, steps=STEPS[:6], noise=simulated_noise(7))
    the_only(opened, "wrong", None, f"{third}-r0: ", "seeded noise, which protects nobody")


def test_a_ledger_that_is_gone_or_another_is_wrong(opened):
    away = opened.folder / "trusted/ledger.sqlite"
    away.rename(away.with_suffix(".kept"))
    the_only(opened, "wrong", away, "restore it from a backup")
    assert not away.exists()
    opened.ledger.close()
    found = around(opened)
    assert {severity for severity, _, _ in found} == {"wrong"}
    named = [place.removeprefix(f"{opened.folder}/") for _, place, _ in found]
    assert named == ["published", "ledger.url", f"trusted/measurements/two-regions/{DAY}-r0"]
    assert all("another" in words for _, _, words in found)


@pytest.mark.parametrize(
    ("place", "act", "said"),
    [
        ("_delta_log", Path.mkdir, f"refuses {NEXT} and 1 more: '_delta_log' is the log of a table"),
        ("region=84/x.csv", Path.touch, "'x.csv' does not fit input.path, 'region={region}/date="),
        (f"region=84/date={DAY}/x.csv", Path.touch, None),
        (f"region=84/date={NEXT}/x.txt", Path.touch, f"refuses {NEXT}: region=84/date={NEXT}/'x.txt'"),
    ],
)
def test_what_the_next_run_refuses_is_reported(opened, place, act, said):
    opened.simulate(NEXT)
    assert around(opened) == []
    act(opened.folder / "dumps" / place)
    found = around(opened)
    assert [entry[0] for entry in found] == ["warning"] * (said is not None)
    assert said is None or said in found[0][2]


def test_a_broken_catalogue_and_a_ledger_that_does_not_answer_are_findings(opened):
    (opened.folder / "trusted/ledger.sqlite").write_bytes(b"not a database, but long enough to be one")
    (opened.folder / "trusted/ledger.sqlite-wal").unlink(missing_ok=True)
    assert [entry[:2] for entry in around(opened)] == [("wrong", "ledger.url")]
    (opened.folder / "published/catalogue.json").write_text("{")
    assert [entry[:2] for entry in around(opened)] == [("wrong", str(opened.folder / "published"))]


def test_leases_that_no_run_can_have_days_left_a_clock_behind_and_files_from_the_future_are_reported(opened):
    opened.simulate(NEXT)
    opened.release(NEXT, steps=STEPS[:6])
    until = opened.ledger.latest("two-regions", NEXT.isoformat()).lease_until
    for now, said in (
        (until - timedelta(days=1), None),
        (until - timedelta(days=3650), "release-lease 2016-06-02"),
        (until + timedelta(days=1), None),
        (until + timedelta(days=1, seconds=1), "run --date 2016-06-02"),
    ):
        found = [words for _, place, words in around(opened, now=now) if str(NEXT) in place]
        assert (len(found), said is None or said in found[0]) == (said is not None, True)
    last = opened.ledger.last_event_at("two-regions")
    assert around(opened, now=last - timedelta(minutes=5)) == []
    behind = last - timedelta(minutes=6)
    the_only(opened, "wrong", "the clock of this machine", f"{last:%Y-%m-%d %H:%M}", now=behind)
    ahead = opened.folder / "trusted/staging/two-regions"
    os.utime(ahead, (time.time() + 10**8, time.time() + 10**8))
    the_only(opened, "warning", ahead, "lies ahead", now=until)
