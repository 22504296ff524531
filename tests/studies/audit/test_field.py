"""The audit's field: nobody adds a mechanism that no attack looks at."""

import pytest

from optstream import mechanisms
from optstream.mechanisms import MECHANISMS, Hierarchical
from studies.audit import MechanismSubject, our_cases


def audited():
    """The classes of all that the audit attacks without being asked for more, and which on a tree."""
    subjects = [case.subject for case in our_cases(days=False) if isinstance(case.subject, MechanismSubject)]
    attacked = [one for subject in subjects for one in subject.mechanisms]
    patterns = {type(one.mechanism) for one in attacked if isinstance(one, Hierarchical)}
    return {type(one) for one in attacked}, patterns


@pytest.mark.slow
def test_every_registered_mechanism_is_audited_alone_and_on_a_tree():
    alone, on_tree = audited()
    registered = {getattr(mechanisms, name) for name in MECHANISMS}
    assert registered <= alone
    assert {one for one in registered if one.tree_class} <= on_tree
