"""Electricity and gas of the same people: two streams whose files name the file of their population."""

from pathlib import Path

from tests.tasks.two_regions import CONFIGURATION, Installation

POPULATION = """
streams = ["electricity/optstream.toml", "gas/optstream.toml"]
[privacy]
population = "people"
epsilon = "1"
window = 48
budget_alpha = "1"
[stream]
step = "30min"
time_zone = "Europe/Paris"
[ledger]
url = "sqlite:///ledger/ledger.sqlite"
"""
SAID_THERE = (
    'epsilon = "1"\nwindow = 48\npopulation = "people"\n',
    'step = "30min"\ntime_zone = "Europe/Paris"\n',
    '[ledger]\nurl = "sqlite:///trusted/ledger.sqlite"\n',
)
NAMED = '[privacy]\npopulation_file = "../population.toml"'


def own_text(name: str, share: str = "1/2") -> str:
    """The configuration of a stream, without what its population file says."""
    text = CONFIGURATION.replace("two-regions", name)
    for said in SAID_THERE:
        assert said in text
        text = text.replace(said, "")
    text = text.replace("[privacy]", NAMED).replace("[budget]", f'[budget]\nstream_share = "{share}"')
    return text.replace('alpha = "1"', 'alpha = "3"\nresolution = "1"') if name == "gas" else text


def two_products(folder: Path, share: str = "1/2") -> dict[str, Installation]:
    (folder / "ledger").mkdir(mode=0o700)
    (folder / "population.toml").write_text(POPULATION)
    for name in ("electricity", "gas"):
        (folder / name).mkdir()
        (folder / name / "optstream.toml").write_text(own_text(name, share))
    return {name: Installation(folder / name) for name in ("electricity", "gas")}
