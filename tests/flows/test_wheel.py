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


def plainly(*words, cwd, check=True):
    return subprocess.run(words, cwd=cwd, env=PLAIN, capture_output=True, text=True, check=check)


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The interpreter of a new environment with the wheel, and the dependencies of the tests' own."""
    folder = tmp_path_factory.mktemp("wheel")
    build = ["-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(CHECKOUT)]
    subprocess.run([sys.executable, *build], check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "env", with_pip=False)
    site = next((folder / "env/lib").glob("python*")) / "site-packages"
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--ignore-installed"]
    install += [f"--prefix={folder / 'env'}", str(wheel)]
    subprocess.run([sys.executable, *install], check=True, capture_output=True)
    return str(folder / "env/bin/python")


@pytest.fixture(scope="module")
def released(python, tmp_path_factory):
    """A folder in which two days were simulated and released, and what each command said."""
    here = tmp_path_factory.mktemp("stream")
    code = "import sys; from flows.cli.main import main; sys.argv[0] = 'optstream'; main()"
    commands = {
        "init": ["init"],
        "simulate": ["simulate", "--from", "2016-03-26", "--to", "2016-03-27"],
        "run": ["run", "--date", "2016-03-26", "--date", "2016-03-27"],
        "again": ["run", "--date", "2016-03-27", "--json"],
        "status": ["status", "--json"],
    }
    return here, {
        name: plainly(*OFFLINE, python, "-c", code, *words, cwd=here, check=False)
        for name, words in commands.items()
    }


def test_the_wheel_holds_its_own_packages_and_prints_the_schemas_of_its_documents(python, tmp_path):
    code = "import flows, tasks, data_contracts, optstream; print(flows.__file__, tasks.__file__)"
    assert str(CHECKOUT) not in plainly(python, "-c", code, cwd=tmp_path).stdout
    names, schema = (
        plainly(python, "-m", "tasks.schemas", *words, cwd=tmp_path).stdout
        for words in ((), ("optstream.status/3",))
    )
    assert names.split() == list(DOCUMENTS)
    assert json.loads(schema) == schema_of("optstream.status/3")


@pytest.mark.nightly
def test_every_command_succeeds_in_silence_without_a_network(released):
    for name, done in released[1].items():
        assert (name, done.returncode, done.stderr) == (name, 0, "")


@pytest.mark.nightly
def test_the_days_are_published_and_a_second_run_changes_nothing(released):
    here, said = released
    lines = said["run"].stdout.splitlines()
    assert sum("published  revision 0" in line for line in lines) == 2
    again, status = (json.loads(said[name].stdout) for name in ("again", "status"))
    assert again["days"][0]["status"] == "published already"
    assert [day["state"] for day in status["days"]] == ["published", "published"]
    rows = pl.read_parquet(here / "published/data", hive_partitioning=True)
    assert rows.group_by("date").len().sort("date")["len"].to_list() == [13 * 48, 13 * 46]
    assert not list((here / "trusted/prefect").iterdir()), "no server was started where none is configured"
    for page in ("trusted/report/french-load/report.html", "published/index.html"):
        text = (here / page).read_text()
        assert "26 Mar 2016" in text
        assert "27 Mar 2016" in text
