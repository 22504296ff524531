"""What one transaction takes and refuses: the same code on either database, so on PostgreSQL by night."""

import pytest


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.nightly)])
def url(request):
    return request.getfixturevalue(f"{request.param}_url")
