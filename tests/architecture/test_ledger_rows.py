"""A row of the ledger is typed by its table: nothing that decides about budgets takes it as `Any`."""

from pathlib import Path

LEDGER = Path(__file__).parents[2] / "optstream/ledger"
UNTYPED = {"database.py", "schema.py", "ledger.py"}
"""What talks to drivers, whose objects have no types, and what hands on columns of any kind."""


def test_no_record_of_the_ledger_is_any():
    files = {str(file.relative_to(LEDGER)): file.read_text(encoding="utf-8") for file in LEDGER.rglob("*.py")}
    own = {name for name, text in files.items() if "Any" in text}
    assert own == UNTYPED
