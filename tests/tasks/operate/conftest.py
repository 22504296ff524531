"""A released stream in a folder others may pass through; texts in the layout of RTE's files, made here."""

import os
import shutil
import tempfile
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from tasks.operate.doctor import examine
from tasks.operate.simulate import FRENCH_REGIONS
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


COLUMNS = [
    "Périmètre", "Nature", "Date", "Heures", "Consommation", "Thermique", "Nucléaire", "Eolien", "Solaire",
    "Hydraulique", "Pompage", "Bioénergies", "Ech. physiques",
]  # fmt: skip
FOOTER = "RTE ne pourra être tenu responsable de rien."


def load_of(region, day, slot):
    """A whole number that tells region, day and slot apart."""
    return 1000 + 7 * sorted(FRENCH_REGIONS).index(region) + 100 * day.timetuple().tm_yday % 9000 + slot


def row_of(perimeter, day, time, load, nature="Données définitives"):
    return "\t".join([perimeter, nature, str(day), time, str(load), *["0"] * 8, ""])


def rte_lines(region="84", first=date(2016, 3, 25), n_days=4, perimeter=None):
    """Header, four rows an hour of which two carry a reading, and the legal line with what follows it."""
    perimeter = perimeter or FRENCH_REGIONS[region].name
    lines = ["\t".join([*COLUMNS, ""])]
    for day in (first + timedelta(days=number) for number in range(n_days)):
        for quarter in range(96):
            time = f"{quarter // 4:02}:{15 * (quarter % 4):02}"
            load = "" if quarter % 2 else load_of(region, day, quarter // 2)
            lines.append(row_of(perimeter, day, time, load))
    return [*lines, FOOTER, "", ""]


@pytest.fixture
def made():
    """The makers above, as `made.rte_lines`, `made.row_of`, `made.load_of`, `made.encoded`."""

    return SimpleNamespace(
        rte_lines=rte_lines,
        row_of=row_of,
        load_of=load_of,
        encoded=lambda lines: "\n".join(lines).encode("latin-1"),
    )
