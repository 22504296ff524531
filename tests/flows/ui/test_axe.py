"""axe-core finds no violation on any page of the operators, and finds those of a bad one."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from flows.ui.application import application
from tests.browser import visit
from tests.flows.ui.conftest import served
from tests.flows.ui.test_in_browser import PAGES, SECRET, Shown, opened, settings, snapshot, streams
from tests.tasks.ui.conftest import AT

__all__ = ["settings", "snapshot", "streams"]


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1440, "dark")])
@pytest.mark.parametrize("path", PAGES)
def test_no_page_has_a_violation(chromium, streams, path, width, scheme):
    with (
        served(application(Shown(*streams), SECRET, lambda: AT)) as origin,
        visit(chromium, allowed=(origin,), width=width, scheme=scheme) as seen,
    ):
        opened(seen, origin, path)
        found = Axe().run(seen.page)
    assert found.violations_count == 0, found.generate_report()


def test_control_a_bad_page_has_some(chromium, tmp_path):
    bad = tmp_path / "bad.html"
    bad.write_text('<body><img src="data:,"><input><p style="color:#aaa;background:#fff">faint</p>')
    with visit(chromium, allowed=(bad.as_uri(), "data:")) as seen:
        seen.page.goto(bad.as_uri())
        assert Axe().run(seen.page).violations_count >= 4
