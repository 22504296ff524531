"""A released stream in a folder that others may pass through, as on a real machine."""

import os
import shutil
import tempfile
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from tasks.operate.doctor import examine
from tests.tasks.two_regions import CONFIGURATION, Installation

DAY = date(2016, 6, 1)
NOW = datetime(2016, 7, 1, 12, tzinfo=UTC)


@pytest.fixture
def around():
    """Look around a stream: findings as (severity, place, rule and remedy)."""

    def look(installation, environment=None, ask=lambda url: None, now=NOW):
        found = examine(installation.settings, environment or {}, now, ask)
        return [(one.severity.value, one.place, f"{one.rule}: {one.remedy}") for one in found]

    return look


@pytest.fixture
def open_installation():
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
