"""This version verifies and continues what version 0.2 released; see tests/fixtures/make.py of e9dfb518."""

import hashlib
import re
import sqlite3
import tarfile
from pathlib import Path

import polars as pl
import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from optstream.catalogue import read_published
from tests.by_night import few
from tests.flows.command import invoke

FIRST, NEXT = "2016-03-14", "2016-04-07"
"""The first day that was released, and the last dump."""
KEPT = Path(__file__).parents[1] / "fixtures" / "version-0.2.tar.xz"
ROWS = {
    "load": "1b94af8e8d306d20b05b7c146469ecde6f222e501f5bb3641b0059602aa1865b",
    "visits": "e77a1c8fb07028b123df7ae63216bad6ea55e1eadfe53462cfb8d0c12c1dd309",
}
"""The SHA-256 of the published rows, as CSV, by stream."""
MANIFESTS = {
    "load": "07428577a2c7957a1a9a3de01e9668b925fabf9e828158dfa8d1602e381a666d",
    "visits": "e10aa456d8683e0bba7e0f8bab03bdcecdfe49e7c21ba69fc3636013ecf9cc63",
}
"""The SHA-256 of all manifests, in the order of their names."""
DRAWN = (
    "SELECT streams.name, period, revision, measurements_hash FROM releases "
    "JOIN streams ON streams.id = stream_id ORDER BY 1, 2, 3"
)


def draws(root: Path) -> set[tuple[str, str, int, str]]:
    connection = sqlite3.connect(root / "ledger" / "ledger.sqlite")
    try:
        return set(connection.execute(DRAWN))
    finally:
        connection.close()


@pytest.mark.slow
@pytest.mark.parametrize("case", few([("load", True), ("visits", False), ("visits", True)], 2))
def test_what_an_old_version_released_is_verified_and_continued(tmp_path, case):
    stream, is_continued = case
    with tarfile.open(KEPT) as kept:
        kept.extractall(tmp_path, filter="tar")
    home = tmp_path / stream
    published, configuration = home / "published", str(home / "optstream.toml")
    # what went after 0.2: a configuration gives it up; a published folder may have answers to [questions]
    text = (home / "optstream.toml").read_text(encoding="utf-8")
    start = text.index("[questions.")
    text = text[:start] + text[text.index("[ledger]", start) :]
    text = re.sub(r"^(calibration|windows|weights|stages) = .*\n", "", text, flags=re.MULTILINE)
    (home / "optstream.toml").write_text(text, encoding="utf-8")
    key = str(home / "trusted" / "signing.pub")
    manifests = sorted((published / "manifests").iterdir())
    before = draws(tmp_path)

    def verify() -> pl.DataFrame:
        for words in (
            ("ledger", "verify", "--config", configuration),
            ("verify-published", str(published), "--public-key", key),
        ):
            done = invoke(*words)
            assert done.exit_code == 0, done.output
        stated = hashlib.sha256(b"".join(path.read_bytes() for path in manifests)).hexdigest()
        assert stated == MANIFESTS[stream]
        return read_published(published, verify=True)

    rows = verify()
    assert hashlib.sha256(rows.write_csv().encode()).hexdigest() == ROWS[stream]
    if not is_continued:
        return
    with temporary_settings({PREFECT_API_URL: None}):
        done = invoke("backfill", "--from", FIRST, "--to", NEXT, "--config", configuration)
    assert done.exit_code == 0, done.output
    after = draws(tmp_path)
    assert before <= after
    assert len(after - before) == 5
    assert len({row[:3] for row in after}) == len(after)
    assert verify()["date"].n_unique() == rows["date"].n_unique() + 5 == 24
