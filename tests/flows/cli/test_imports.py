"""Commands that judge nothing do not wait for Great Expectations, which takes seconds to import."""

import json
import os
import subprocess
import sys
from datetime import date, timedelta

import pytest

from tests.tasks.two_regions import CONFIGURATION, Installation

pytestmark = pytest.mark.slow

DAY = date(2016, 6, 1)
PROGRAM = """
import json, sys
from typer.testing import CliRunner
from flows.cli.main import app

config = sys.argv[1]
judging = [name for name in sys.modules if name.split(".")[0] == "great_expectations"]
found = {"import": len(judging)}
for words in json.loads(sys.argv[2]):
    result = CliRunner().invoke(app, [one.replace("CONFIG", config) for one in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), (words, result.exception)
    found[" ".join(words)] = int("great_expectations" in sys.modules)
print(json.dumps(found))
"""
CONFIGURED = ["--config", "CONFIG"]
COMMANDS = [
    ["--help"],
    ["run", "--help"],
    ["status", *CONFIGURED],
    ["report", *CONFIGURED],
    ["ledger", "show", *CONFIGURED],
    ["ledger", "verify", *CONFIGURED],
    ["purge", "--dry-run", *CONFIGURED],
    ["doctor", *CONFIGURED],
    ["run", "--date", str(DAY), *CONFIGURED],
]


def test_commands_that_judge_nothing_do_not_import_it(tmp_path):
    (tmp_path / "optstream.toml").write_text(CONFIGURATION)
    installation = Installation(tmp_path)
    installation.simulate(DAY)
    installation.release(DAY)
    judging = ["run", "--date", str(DAY + timedelta(1)), *CONFIGURED]
    installation.simulate(DAY + timedelta(1))
    arguments = [str(tmp_path / "optstream.toml"), json.dumps([*COMMANDS, judging])]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) == 2 + len(COMMANDS)
    assert found.pop(" ".join(judging)) == 1, "control: what judges imports it"
    assert set(found.values()) == {0}
    memory = tmp_path / "trusted" / "prefect"
    assert memory.is_dir()
    assert list(memory.rglob("*")) == [], "no run has a server of its own, whose database would only grow"
