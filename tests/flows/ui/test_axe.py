"""axe-core finds no violation on any page of the operators, and finds those of a bad one."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser import visit
from tests.flows.ui.conftest import Shown, opened
from tests.flows.ui.test_in_browser import PAGES


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1440, "dark")])
@pytest.mark.parametrize("path", PAGES)
def test_no_page_has_a_violation(chromium, streams, path, width, scheme):
    with opened(chromium, Shown(*streams), path, width=width, scheme=scheme) as seen:
        found = Axe().run(seen.page)
    assert found.violations_count == 0, found.generate_report()


def test_control_a_bad_page_has_some(chromium, tmp_path):
    bad = tmp_path / "bad.html"
    bad.write_text('<body><img src="data:,"><input><p style="color:#aaa;background:#fff">faint</p>')
    with visit(chromium, allowed=(bad.as_uri(), "data:")) as seen:
        seen.page.goto(bad.as_uri())
        assert Axe().run(seen.page).violations_count >= 4
