"""A page of each kind has no serious fault of accessibility, light and dark, wide and narrow."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from tests.docs.browser import site
from tests.docs.browser.conftest import NARROW, WIDE

GRAVE = ("serious", "critical")


def faults(page: Any) -> list[str]:
    """What axe-core finds, without what it calls minor or moderate."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(page, options={"resultTypes": ["violations"], "preload": False}).response["violations"]
    grave = [fault for fault in found if fault["impact"] in GRAVE]
    places = [(fault["id"], node) for fault in grave for node in fault["nodes"][:3]]
    return [f"{fault}: {node['html'][:200]}: {node['failureSummary']}" for fault, node in places]


def shown() -> list[tuple[str, str, dict[str, int]]]:
    """Pages, colours and screens: all of them on a built site, and else each page in the colours of one screen."""
    combined = product(("light", "dark"), (WIDE, NARROW)) if site.BUILT else (("light", WIDE), ("dark", NARROW))
    names = [name for name in site.of_kinds() if site.BUILT or name not in site.LARGE]
    return [(name, *how) for name, how in product(names, [*combined])]


@pytest.mark.parametrize(
    ("name", "scheme", "screen"), shown(), ids=lambda value: str(value["width"]) if isinstance(value, dict) else value
)
def test_a_page_has_no_serious_fault(page: Any, address: str, name: str, scheme: str, screen: dict[str, int]) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size(screen)
    page.goto(f"{address}/{name}.html")
    assert faults(page) == []


def test_faults_are_found(page: Any, address: str) -> None:
    page.goto(f"{address}/index.html")
    page.evaluate("""() => {
        document.querySelector("article").insertAdjacentHTML("afterbegin",
            '<img src="_static/pullback.svg"><p style="color: #999; background: #aaa">Hard to read</p>');
    }""")
    assert {fault.partition(":")[0] for fault in faults(page)} == {"image-alt", "color-contrast"}
