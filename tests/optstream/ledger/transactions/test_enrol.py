"""A guarantee does not change under the releases that were made under it."""

from dataclasses import fields, replace
from fractions import Fraction

import pytest

from optstream.errors import LedgerError, ParameterError


def test_terms_come_back_and_an_identical_call_changes_nothing(ledger, kit):
    terms = kit.terms("other", epsilon="1/3", grant="others", document='{"note": 1}')
    assert ledger.terms("other") is None
    ledger.enrol(terms, kit.now)
    assert ledger.terms("other") == terms
    head = ledger.head("other")
    ledger.enrol(terms, kit.now)
    assert ledger.head("other") == head


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"epsilon": "2"}, "epsilon"),
        ({"window_length": 5}, "window_length"),
        ({"hierarchy": "another"}, "hierarchy"),
        ({"calibration": "paper"}, "calibration"),
        ({"grant": "fresh"}, "population"),
    ],
)
def test_a_guarantee_may_change_only_before_the_first_release(ledger, reserve, kit, change, name):
    ledger.enrol(kit.terms(**change), kit.now)
    assert ledger.terms("load") == kit.terms(**change)
    ledger.enrol(kit.terms(), kit.now)
    reserve()
    with pytest.raises(LedgerError, match=f"made under another {name}: "):
        ledger.enrol(kit.terms(**change), kit.now)
    assert ledger.terms("load") == kit.terms()
    assert ledger.verify() == []


ANOTHER = [
    {"epsilon": Fraction(2)},
    {"alpha": Fraction(3)},
    {"window_length": 5},
    {"unit": "roaming", "leaves_per_step": 2},
    {"resolution": Fraction(1, 2)},
    {"delta": Fraction(1, 10**6)},
    {"hierarchy_hash": "another", "trees": ()},
    {"grant": "others"},
    {"calendar": "60 min"},
    {"budget_alpha": Fraction(1), "alpha": Fraction(3)},
]


@pytest.mark.parametrize("change", ANOTHER, ids=lambda change: next(iter(change)))
def test_an_amendment_is_proposed_exactly_where_it_is_taken(ledger, reserve, kit, change):
    """A remedy that another command refuses is no remedy."""
    known, names = kit.terms(), {field.name for field in fields(kit.terms())}
    own = {name: value for name, value in change.items() if name in names}
    model = replace(known.model, **{name: value for name, value in change.items() if name not in names})
    wanted = replace(known, **own, model=model)
    ledger.enrol(known, kit.now)
    reserve()
    with pytest.raises(LedgerError, match="made under another ") as refused:
        ledger.enrol(wanted, kit.now)
    if "`optstream ledger amend`" in str(refused.value):
        ledger.amend(wanted, "another", kit.now)
        ledger.enrol(wanted, kit.now)
    else:
        with pytest.raises(LedgerError, match="cannot be amended"):
            ledger.amend(wanted, "another", kit.now)
    assert ledger.verify() == []


def test_the_document_may_change_at_any_time_and_is_recorded(ledger, reserve, kit):
    reserve()
    head = ledger.head("load")
    ledger.enrol(kit.terms(document='{"code": "2"}'), kit.now)
    assert ledger.terms("load").document == '{"code": "2"}'
    assert ledger.head("load") != head
    assert ledger.verify() == []


def test_terms_are_checked(kit):
    with pytest.raises(ParameterError, match="JSON"):
        kit.terms(document="{")
    with pytest.raises(ParameterError, match="stream of StreamTerms"):
        kit.terms("")


def test_unknown_names_are_refused(ledger):
    with pytest.raises(LedgerError, match="enrol"):
        ledger.head("nobody")
    with pytest.raises(LedgerError, match="enrol"):
        ledger.worst("nobody")
    assert ledger.releases("nobody") == ()
