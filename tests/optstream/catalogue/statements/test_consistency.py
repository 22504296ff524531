"""The certificate of the bounded program: stated the same on every processor, read back, or refused."""

import json

import pytest

from optstream.catalogue import ReleaseStatement
from optstream.catalogue.statement import Consistency
from optstream.errors import PublicationError
from optstream.estimation.estimate import Optimality
from tests.optstream.catalogue.folders import DAY

DONE, STOPPED = Optimality(7.7e-24, 1.9e-12, 8, True), Optimality(0.0123, 0.11, 50, False)


@pytest.mark.parametrize("found", [DONE, STOPPED])
def test_the_document_is_json_and_reads_back(statement, found):
    stated = statement(DAY, consistency=Consistency.rounded(found))
    document = json.loads(json.dumps(stated.to_json(), allow_nan=False))
    assert ReleaseStatement.read(document) == stated
    assert ReleaseStatement.read(document).to_json() == document


def test_figures_are_rounded_up_and_last_bits_are_left_out():
    rounded = Consistency.rounded
    least = Consistency(gap=1e-18, residual=1e-9, rounds=8, converged=True)
    assert rounded(DONE) == rounded(Optimality(1.6e-28, 7e-15, 8, True)) == least
    found = rounded(STOPPED)
    assert found == Consistency(gap=0.02, residual=0.2, rounds=50, converged=False)
    assert rounded(Optimality(found.gap, found.residual, 50, False)) == found


@pytest.mark.parametrize(
    ("field", "value"),
    [("gap", -1.0), ("gap", "much"), ("gap", None), ("residual", float("nan")), ("rounds", 1.5),
     ("rounds", True), ("rounds", -1), ("converged", 1), ("converged", None)],
)  # fmt: skip
def test_another_certificate_is_refused(statement, field, value):
    document = statement(DAY, consistency=Consistency.rounded(DONE)).to_json()
    document["consistency"][field] = value
    with pytest.raises(PublicationError, match="statement"):
        ReleaseStatement.read(document)
    del document["consistency"][field]
    with pytest.raises(PublicationError, match="statement"):
        ReleaseStatement.read(document)
