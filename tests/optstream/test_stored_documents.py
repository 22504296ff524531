"""The bytes of stored documents are what they always were: hashes of them are recorded and published."""

import json
from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from optstream.catalogue.index import Catalogue, Entry, parse_catalogue
from optstream.catalogue.statement import LongSpan, Manifest, ReleaseStatement
from optstream.privacy import CappedSpend, JointSpend, PeriodSpend, StepSpend
from optstream.stream import Measured
from tests.optstream.catalogue.conftest import make_statement

STORED = json.loads(Path(__file__).with_name("stored_documents.json").read_text(encoding="utf-8"))
"""As they were on 2026-11-22, and joint noise on 2026-11-23."""
DAY = date(2016, 2, 1)
HASHES = {"file_hash": "a" * 64, "rows_hash": "b" * 64, "ledger_head": "c" * 64}
ENTRY = Entry(period=DAY, revision=0, vintage=1, **HASHES)
CATALOGUE = Catalogue(
    stream="load",
    value_column="load_mw",
    ledger_head="d" * 64,
    periods=(ENTRY, ENTRY.changed(period=date(2016, 2, 2), withdrawn=True)),
)
SPENDS = (
    StepSpend(0, "samples", 96, (0, Fraction(1, 3), 1), Fraction(400_000), 10_000, 2),
    PeriodSpend(1, "features/day", 96, (Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(1))),
    CappedSpend(1, "samples", 96, 3, Fraction(3, 2), (90, 95), Fraction(1, 7), 10, 1, (1, Fraction(1, 2))),
)
SPANS = (LongSpan.rounded(30, 4.5, Fraction(1, 10**6), Fraction(30), "draws"),)
STATEMENTS = {
    "manifest": make_statement(DAY, standard_errors=None),
    "manifest with what was added since": make_statement(
        DAY, 2, 3, supplier_rounding=Fraction(1), long_spans=SPANS, calibration="paper"
    ),
}
CATALOGUES = {"catalogue": CATALOGUE, "signed catalogue": CATALOGUE.changed(sequence=7)}
PLAIN = Measured.from_public(
    np.array([[1.0, 2.5, 0.1], [3.0, 0.0, 7.0]]), [np.array([[1.0], [2.0]])], [2.0, np.inf], [0, 2]
)
GROUPS = ((range(0, 1), range(1, 2)), (range(2, 4), range(5, 6)))
MEASURED = {
    "measurements with joint noise": replace(
        PLAIN, spends=(JointSpend(1, "blocks", 96, 7, GROUPS, Fraction(1, 7), 10, 1, 2),)
    ),
    "measurements": PLAIN,
    "measurements of levels": replace(
        PLAIN, first_step=96, spends=SPENDS, state={"of": "Fast", "spent": ["1/3"]}, parts=(PLAIN,)
    ),
}


def test_every_document_is_stored_as_ever():
    named = {"file": ENTRY.file, "file_hash": ENTRY.file_hash, "rows_hash": ENTRY.rows_hash}
    found = {name: Manifest(statement=one.to_json(), **named).to_bytes() for name, one in STATEMENTS.items()}
    found |= {name: one.to_bytes() for name, one in (CATALOGUES | MEASURED).items()}
    assert {name: data.decode() for name, data in found.items()} == STORED


@pytest.mark.parametrize("layout", [{"indent": 4}, {"separators": (",", ":")}])
@pytest.mark.parametrize("name", CATALOGUES)
def test_the_bytes_of_a_catalogue_of_any_layout_are_kept_until_it_changes(name, layout):
    """What is signed, and what pages state the hash of, is what lies there."""
    data = json.dumps(json.loads(STORED[name]), **layout).encode()
    found = parse_catalogue(data)
    assert found == CATALOGUES[name]
    assert found.to_bytes() == data
    assert found.changed().to_bytes() == STORED[name].encode()


def test_statements_and_measurements_are_read_back():
    for name, one in STATEMENTS.items():
        assert ReleaseStatement.read(json.loads(STORED[name])["statement"]) == one, name
    for name in MEASURED:
        assert Measured.from_bytes(STORED[name].encode()).to_bytes() == STORED[name].encode(), name
