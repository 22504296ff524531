"""The certificate of the bounded program: stated the same on every processor, read back, or refused."""

import json

import pytest

from optstream.catalogue import ReleaseStatement
from optstream.catalogue.statement import rounded
from optstream.errors import PublicationError
from optstream.estimation.estimate import Optimality
from tests.optstream.catalogue.folders import DAY

DONE, STOPPED = Optimality(7.7e-24, 1.9e-12, 8, True), Optimality(0.0123, 0.11, 50, False)


@pytest.mark.parametrize("found", [DONE, STOPPED])
def test_the_document_is_json_and_reads_back(statement, found):
    stated = statement(DAY, optimality=rounded(found))
    document = json.loads(json.dumps(stated.to_document(), allow_nan=False))
    assert ReleaseStatement.from_document(document) == stated
    assert ReleaseStatement.from_document(document).to_document() == document


def test_figures_are_rounded_up_and_last_bits_are_left_out():
    assert rounded(DONE) == rounded(Optimality(1.6e-28, 7e-15, 8, True)) == Optimality(1e-18, 1e-9, 8, True)
    assert rounded(STOPPED) == Optimality(0.02, 0.2, 50, False)
    assert rounded(rounded(STOPPED)) == rounded(STOPPED)


@pytest.mark.parametrize(
    ("field", "value"),
    [("gap", -1.0), ("gap", "much"), ("gap", None), ("residual", float("nan")), ("rounds", 1.5),
     ("rounds", True), ("rounds", -1), ("converged", 1), ("converged", None)],
)  # fmt: skip
def test_another_certificate_is_refused(statement, field, value):
    document = statement(DAY, optimality=rounded(DONE)).to_document()
    document["consistency"][field] = value
    with pytest.raises(PublicationError, match="statement"):
        ReleaseStatement.from_document(document)
    del document["consistency"][field]
    with pytest.raises(PublicationError, match="statement"):
        ReleaseStatement.from_document(document)
