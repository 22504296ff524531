"""The data users' page for fingers, on paper, and as axe-core judges it."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser import visit
from tests.tasks.reports.conftest import label_has


@pytest.mark.parametrize(
    ("width", "scheme"), [(360, "light"), pytest.param(1440, "dark", marks=pytest.mark.nightly)]
)
def test_axe_finds_no_violation(chromium, served, width, scheme):
    with visit(chromium, allowed=(served,), width=width, scheme=scheme) as seen:
        seen.page.goto(served)
        label_has(seen.page, "France (FR): from")
        for details in seen.page.locator("details").all():
            details.evaluate("e => { e.open = true }")
        seen.page.focus("#find")  # with its list open
        found = Axe().run(seen.page)
    assert found.violations_count == 0, found.generate_report()
