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

from tasks.schemas import schema_of

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


def test_the_wheel_holds_its_own_packages_and_prints_the_schemas_of_its_documents(python, tmp_path):
    code = "import flows, tasks, data_contracts, optstream; print(flows.__file__, tasks.__file__)"
    assert str(CHECKOUT) not in plainly(python, "-c", code, cwd=tmp_path).stdout
    schema = plainly(python, "-m", "tasks.schemas", "optstream.status/3", cwd=tmp_path).stdout
    assert json.loads(schema) == schema_of("optstream.status/3")


@pytest.mark.nightly
def test_without_a_network_days_are_published_in_silence_and_a_second_run_changes_nothing(python, tmp_path):
    code = "import sys; from flows.cli.main import main; sys.argv[0] = 'optstream'; main()"

    def call(*words):
        done = plainly(*OFFLINE, python, "-c", code, *words, cwd=tmp_path, check=False)
        assert (done.returncode, done.stderr) == (0, ""), words
        return done.stdout

    call("init")
    call("simulate", "--from", "2016-03-26", "--to", "2016-03-27")
    lines = call("run", "--date", "2016-03-26", "--date", "2016-03-27").splitlines()
    assert sum("published  revision 0" in line for line in lines) == 2
    again = json.loads(call("run", "--date", "2016-03-27", "--json"))
    assert again["days"][0]["status"] == "published already"
    status = json.loads(call("status", "--json"))
    assert [day["state"] for day in status["days"]] == ["published", "published"]
    rows = pl.read_parquet(tmp_path / "published/data", hive_partitioning=True)
    assert rows.group_by("date").len().sort("date")["len"].to_list() == [13 * 48, 13 * 46]
    assert not list((tmp_path / "trusted/prefect").iterdir()), "no server was started"
    for page in ("trusted/report/french-load/report.html", "published/index.html"):
        text = (tmp_path / page).read_text()
        assert "26 Mar 2016" in text
        assert "27 Mar 2016" in text
