"""Headless Chromium for the tests: Debian's own, offline; every request and every console error is noted."""

import importlib.util
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

BUT_CONTRAST = {"resultTypes": ["violations"], "rules": {"color-contrast": {"enabled": False}}}
"""For axe-core, where looks.js judges the contrast of every text: axe takes seconds for a long page's."""
NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_chromium() -> str | None:
    """The browser: OPTSTREAM_CHROMIUM, or the first that is on the path; None without one, or playwright."""
    if importlib.util.find_spec("playwright") is None:
        return None
    return os.environ.get("OPTSTREAM_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@dataclass
class Visit:
    """A page: addresses asked for, those not let through, errors, and the origin of a test's server."""

    page: Any
    requests: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    origin: str = ""


@contextmanager
def running_chromium(executable: str) -> Iterator[Any]:
    """A browser of the tests' own, gone when they end. It never uses a profile or a network of anybody's."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # as root, Chromium does not start in its own sandbox; what it opens here is our own
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def visit(
    browser: Any, *, allowed: tuple[str, ...], width: int = 1440, scheme: str = "light"
) -> Iterator[Visit]:
    """A fresh page, 900 high, that may ask for addresses that begin with one of `allowed`, for no other."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    try:
        seen = Visit(context.new_page())

        def decide(route: Any) -> None:
            url = route.request.url
            seen.requests.append(url)
            if url.startswith(allowed):
                route.continue_()
            else:
                seen.refused.append(url)
                route.abort()

        context.route("**/*", decide)
        seen.page.on("console", lambda said: seen.errors.append(said.text) if said.type == "error" else None)
        seen.page.on("pageerror", lambda error: seen.errors.append(str(error)))
        yield seen
    finally:
        context.close()
