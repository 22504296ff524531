"""A configured stream of two regions in a folder of its own, for audits that begin before the mechanism."""

from datetime import date, timedelta
from pathlib import Path

from tasks.config import Settings, load_settings

N_DAYS = 3
DAYS = tuple(date(2016, 6, 1) + timedelta(days=number) for number in range(N_DAYS))
LEAVES = ("A", "B")
CONFIGURATION = """
[stream]
name = "audit"
step = "{step}"
time_zone = "UTC"
unit = "{unit}"
leaves_per_step = {leaves_per_step}
[mechanism]
{mechanism}
[privacy]
epsilon = "{epsilon}"
window = {window}
population = "audit"
alpha = "1"
resolution = "0.01"
bounds = {bounds}
[hierarchy.parents]
all = ""
{leaves}
[budget]
levels = ["0", "1"]
restatement_share = "0"
[input]
folder = "dumps"
schema = "{schema}"
value = "reading"
[published]
folder = "published"
value = "reading"
[trusted]
folder = "trusted"
[ledger]
url = "sqlite:///trusted/ledger.sqlite"
"""
"""Alpha 1, and all of epsilon at the leaves, where a bound comes nearest to it."""

USUAL = {
    "step": "6h",
    "leaves": 'A = "all"\nB = "all"',
    "unit": "customer",
    "leaves_per_step": "1",
    "mechanism": 'name = "Laplace"',
    "epsilon": "1",
    "window": "2",
    "bounds": '["0", "1"]',
    "schema": "metered",
}


def made_up_stream(folder: Path, **changes: str) -> Settings:
    """Write the configuration, with changes by the names of `USUAL`, and load it as a night does."""
    file = folder / "optstream.toml"
    file.write_text(CONFIGURATION.format(**{**USUAL, **changes}), encoding="utf-8")
    return load_settings(file)
