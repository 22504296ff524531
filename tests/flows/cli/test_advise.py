"""`optstream advise` from the command line: public facts alone, tables, a configuration."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from flows.cli.main import app
from optstream.errors import ConfigurationError
from tasks.config import load_settings
from tests.tasks.two_regions import CONFIGURATION

HOURLY = CONFIGURATION.replace('step = "30min"', 'step = "1h"').replace("window = 48", "window = 24")
COARSE = HOURLY.replace('alpha = "1"', 'alpha = "100"  # kW of the largest customer')

WATCHED = """
import sys
from pathlib import Path
places = [str(Path.cwd() / name) for name in ("dumps", "trusted", "published")]

def look(event, arguments):
    if event in ("open", "os.listdir", "os.scandir", "os.mkdir", "sqlite3.connect"):
        if any(str(arguments[0]).startswith(place) for place in places):
            raise AssertionError(f"{event} {arguments[0]}")

sys.addaudithook(look)
from flows.cli.main import app
app(["advise", "--config", str(Path.cwd() / "optstream.toml"), "--scale", "5000"], standalone_mode=False)
try:
    open(Path.cwd() / "dumps" / "region=84")
except AssertionError:
    print("the watch works")
"""


def run(*arguments: object):
    return CliRunner().invoke(app, ["advise", *map(str, arguments)])


@pytest.mark.slow
@pytest.mark.parametrize("there", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_no_folder_is_opened_and_no_ledger(tmp_path, there):
    """With dumps that nobody may open, and with none at all; the same is said."""
    if there:
        (tmp_path / "dumps" / "region=84").mkdir(parents=True)
        (tmp_path / "trusted").mkdir()
    (tmp_path / "optstream.toml").write_text(COARSE)
    ended = subprocess.run(
        [sys.executable, "-c", WATCHED], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert "least expected error first" in ended.stdout
    assert "the watch works" in ended.stdout
    assert sorted(one.name for one in (tmp_path / "trusted").glob("*")) == []


@pytest.mark.slow
def test_a_proposal_is_written_and_accepted(tmp_path):
    file, proposed = tmp_path / "optstream.toml", tmp_path / "proposed.toml"
    file.write_text(COARSE)
    result = run("--config", file, "--scale", 5000, "--write", proposed)
    assert result.exit_code == 0, result.output
    assert "best" in result.stdout
    assert "as configured" in result.stdout
    assert "is expected to err" in result.stdout
    text = proposed.read_text()
    assert "# kW of the largest customer" in text
    assert load_settings(proposed).mechanism.name == "HistoryInformed"
    priced = CliRunner().invoke(app, ["run", "--dry-run", "--date", "2025-01-15", "--config", str(proposed)])
    assert priced.exit_code == 0, priced.output
    # and of the proposal itself nothing better is proposed
    again = run("--config", proposed, "--json")
    (stream,) = json.loads(again.stdout)["streams"]
    assert stream["keys"] == {}
    with pytest.raises(ConfigurationError, match="exists already"):
        raise run("--config", file, "--scale", 5000, "--write", proposed).exception


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--scale", "0"], "--scale must be a finite number greater than 0"),
        (["--scale", "1", "--scale", "2"], "--scale is given once"),
        (["--scale", "5", "--write", "a.toml", "--write", "b.toml"], "--write is given once for each of 1"),
        ([], "--scale, from public knowledge"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_compared(tmp_path, options, message):
    (tmp_path / "optstream.toml").write_text(COARSE)
    result = run("--config", tmp_path / "optstream.toml", *options)
    assert result.exit_code != 0
    assert message in " ".join(result.output.split()) + str(result.exception)
