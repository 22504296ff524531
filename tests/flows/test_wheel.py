"""The wheel, in an environment of its own and without network: init, simulate, run, run again, status."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import polars as pl
import pytest

from tasks.schemas import DOCUMENTS, schema_of

CHECKOUT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow

OFFLINE = ["unshare", "-n" if os.geteuid() == 0 else "-rn", "sh", "-c", 'ip link set lo up; exec "$@"', "sh"]
PLAIN = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}


@pytest.fixture(scope="module")
def optstream(tmp_path_factory):
    """The installed command, with the dependencies of the environment that runs the tests."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(folder),
        str(CHECKOUT),
    ]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "env", with_pip=False)
    site = next((folder / "env/lib").glob("python*")) / "site-packages"
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", f"--prefix={folder / 'env'}"]
    subprocess.run(
        [sys.executable, *install, "--ignore-installed", str(wheel)], check=True, capture_output=True
    )
    code = "import sys; from flows.cli.main import main; sys.argv[0] = 'optstream'; main()"
    return [str(folder / "env/bin/python"), "-c", code]


@pytest.fixture(scope="module")
def released(optstream, tmp_path_factory):
    """A folder in which two days were simulated and released, and what each command said."""
    here = tmp_path_factory.mktemp("stream")
    said = {}
    for name, words in {
        "init": ["init"],
        "simulate": ["simulate", "--from", "2016-03-26", "--to", "2016-03-27"],
        "run": ["run", "--date", "2016-03-26", "--date", "2016-03-27"],
        "again": ["run", "--date", "2016-03-27", "--json"],
        "status": ["status", "--json"],
    }.items():
        said[name] = subprocess.run(
            [*OFFLINE, *optstream, *words], cwd=here, env=PLAIN, capture_output=True, text=True, check=False
        )
    return here, said


def test_the_wheel_holds_its_own_packages(optstream, tmp_path):
    code = "import flows, tasks, data_contracts, optstream; print(flows.__file__, tasks.__file__)"
    shown = subprocess.run(
        [optstream[0], "-c", code], cwd=tmp_path, env=PLAIN, capture_output=True, text=True, check=True
    )
    assert str(CHECKOUT) not in shown.stdout


def test_the_wheel_prints_the_schemas_of_its_documents(optstream, tmp_path):
    def printed(*words):
        command = [optstream[0], "-m", "tasks.schemas", *words]
        return subprocess.run(
            command, cwd=tmp_path, env=PLAIN, capture_output=True, text=True, check=True
        ).stdout

    assert printed().split() == list(DOCUMENTS)
    assert json.loads(printed("optstream.status/3")) == schema_of("optstream.status/3")


@pytest.mark.nightly
def test_every_command_succeeds_in_silence_without_a_network(released):
    _, said = released
    for name, done in said.items():
        assert (name, done.returncode, done.stderr) == (name, 0, "")


@pytest.mark.nightly
def test_the_days_are_published_and_a_second_run_changes_nothing(released):
    here, said = released
    lines = said["run"].stdout.splitlines()
    assert sum("published  revision 0" in line for line in lines) == 2
    again = json.loads(said["again"].stdout)
    assert again["days"][0]["status"] == "published already"
    status = json.loads(said["status"].stdout)
    assert [day["state"] for day in status["days"]] == ["published", "published"]
    rows = pl.read_parquet(here / "published/data", hive_partitioning=True)
    assert rows.group_by("date").len().sort("date")["len"].to_list() == [13 * 48, 13 * 46]


@pytest.mark.nightly
def test_no_server_was_started_where_none_is_configured(released):
    here, _ = released
    assert not list((here / "trusted/prefect").iterdir())


@pytest.mark.nightly
def test_the_report_names_both_days(released):
    here, _ = released
    for page in ("trusted/report/french-load/report.html", "published/index.html"):
        text = (here / page).read_text()
        assert "26 Mar 2016" in text
        assert "27 Mar 2016" in text
