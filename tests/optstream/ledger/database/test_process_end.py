"""What is still open when a program ends: the interpreter's own cleaning up must not write to the ledger."""

import subprocess
import sys

import pytest

WRITTEN_OVER_THEN_END = """
import sys
from datetime import UTC, datetime
from pathlib import Path

from optstream.errors import LedgerError
from optstream.ledger import StreamTerms, open_ledger
from optstream.privacy import PrivacyModel

file = Path(sys.argv[1])
ledger = open_ledger(f"sqlite:///{file}")
backup = file.read_bytes()
terms = StreamTerms("load", "people", PrivacyModel("1", 4, "1", "1"), "tree", "30 min")
ledger.enrol(terms, datetime(2026, 3, 1, tzinfo=UTC))
for end in ("-wal", "-shm"):
    file.with_name(file.name + end).unlink()
file.write_bytes(backup)
file.with_name("backup").write_bytes(backup)
try:
    ledger.find("load", "day 0")
except LedgerError as error:
    assert "written over" in str(error)
else:
    raise AssertionError
"""


@pytest.mark.slow
def test_a_program_that_ends_writes_nothing_into_a_file_that_was_written_over(tmp_path):
    """SQLite copies the log that it holds into the file when a connection is closed, at the end as well."""
    file = tmp_path / "ledger.db"
    subprocess.run([sys.executable, "-c", WRITTEN_OVER_THEN_END, str(file)], check=True, timeout=120)
    assert file.read_bytes() == (tmp_path / "backup").read_bytes()
