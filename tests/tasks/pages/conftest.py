"""Published folders of a few simulated days."""

from datetime import date, timedelta
from pathlib import Path

import pytest

from optstream.catalogue import read_catalogue, withdraw
from optstream.catalogue.backends import open_storage
from tasks.pages.published import NO_SUMMARIES, PublicFacts, public_facts
from tests.tasks.pages.published_days import lay_out_published
from tests.tasks.pages.snapshots import settings, snapshot

__all__ = ["settings", "snapshot"]

FIRST = date(2016, 1, 1)
N_DAYS = 32
GONE = FIRST + timedelta(days=30)


@pytest.fixture(scope="session")
def many_days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published folder of N_DAYS with the noise column, one of them withdrawn. Not to be changed."""
    folder = tmp_path_factory.mktemp("many") / "published"
    lay_out_published(folder, FIRST, N_DAYS)
    withdraw(folder, GONE, lambda _entry, _known: "withdrawn", stream="simulated-load")
    return folder


@pytest.fixture(scope="session")
def without_noise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three days without the noise column."""
    folder = tmp_path_factory.mktemp("plain") / "published"
    lay_out_published(folder, FIRST, 3, with_noise_column=False)
    return folder


def facts_of(folder: Path) -> PublicFacts:
    place = open_storage(folder)
    return public_facts(place, read_catalogue(place), NO_SUMMARIES)[0]
