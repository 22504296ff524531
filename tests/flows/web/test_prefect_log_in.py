"""Prefect's pages with a page to log in before them; test_serve.py has them in a browser."""

import pytest
from prefect import __ui_static_path__

from flows.orchestration.serve import LOG_IN, add_log_in

TAG = '<script type="module" crossorigin src="/assets/index-1.js"></script>'


@pytest.mark.parametrize("times", [1, 2])
def test_prefect_s_script_loads_after_the_log_in_alone(tmp_path, times):
    first = tmp_path / "index.html"
    first.write_text(f"<head>{TAG}</head>")
    for _ in range(times):
        assert add_log_in(tmp_path)
    own = '<script src="/log-in-first.js" data-loads="/assets/index-1.js"></script>'
    assert first.read_text() == f"<head>{own}</head>"
    assert {path.name for path in tmp_path.iterdir()} == {"index.html", *LOG_IN}


@pytest.mark.parametrize("text", [None, "<p>of another version</p>", TAG.replace("/assets", "/base/assets")])
def test_other_pages_stay_as_they_are(tmp_path, text):
    if text is not None:
        (tmp_path / "index.html").write_text(text)
    assert not add_log_in(tmp_path)
    assert [path.read_text() for path in tmp_path.iterdir()] == ([] if text is None else [text])


def test_the_installed_prefect_s_pages_are_as_expected(tmp_path):
    text = (__ui_static_path__ / "index.html").read_text()
    (tmp_path / "index.html").write_text(text.replace("/PREFECT_UI_SERVE_BASE_REPLACE_PLACEHOLDER", ""))
    assert add_log_in(tmp_path)
