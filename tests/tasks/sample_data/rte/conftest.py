"""Texts in the layout of RTE's regional files, made here: no data of RTE's."""

from datetime import date, timedelta
from types import SimpleNamespace

import pytest

from tasks.operate.simulate import FRENCH_REGIONS

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
