"""A browser, the site that it visits, and what it complains of there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docs.browser import site

WIDE, NARROW = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
LIMIT = 60_000
"""After how many milliseconds the browser gives up."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """The system's Chromium, driven by Playwright."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is in the environment of the site: make docs-quick"
    )
    program = site.chromium()
    if not program:
        pytest.skip("Chromium is neither on the PATH nor named by the variable CHROMIUM")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=program)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def folder(browser: Any) -> Path:
    """The folder of the site."""
    return site.ROOT / site.BUILT if site.BUILT else site.build_quickly()


@pytest.fixture(scope="session")
def address(folder: Path) -> Iterator[str]:
    """Where the site is served."""
    with site.served(folder) as address:
        yield address


@pytest.fixture(scope="session")
def context(browser: Any, address: str) -> Iterator[Any]:
    """A profile of the browser, which keeps styles and scripts from page to page, and may read what is copied."""
    context = browser.new_context(viewport=WIDE)
    context.set_default_timeout(LIMIT)
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
    yield context
    context.close()


@pytest.fixture(scope="session")
def tab(context: Any) -> Any:
    """The tab in which all pages are shown, one after another: a new one takes longer to open than a page to load."""
    return context.new_page()


@pytest.fixture
def page(tab: Any) -> Iterator[Any]:
    """The tab, in light colours on a wide screen. The test fails if the browser complains of what a page does."""
    complaints: list[str] = []
    listeners: dict[str, Callable[[Any], None]] = {
        "console": lambda said: complaints.append(said.text) if said.type == "error" else None,
        "pageerror": lambda error: complaints.append(str(error)),
        "requestfailed": lambda request: complaints.append(f"{request.url} failed: {request.failure}"),
        "response": lambda got: complaints.append(f"{got.url}: {got.status}") if got.status >= 400 else None,
    }
    for event, listener in listeners.items():
        tab.on(event, listener)
    tab.emulate_media(color_scheme="light")
    tab.set_viewport_size(WIDE)
    yield tab
    for event, listener in listeners.items():
        tab.remove_listener(event, listener)
    assert complaints == []
