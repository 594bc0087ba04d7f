"""A page of each kind has no serious fault of accessibility, light and dark, wide and narrow."""

from __future__ import annotations

from itertools import cycle, product
from typing import Any

import pytest

from tests.docs.browser import site
from tests.docs.browser.conftest import NARROW, WIDE

GRAVE = ("serious", "critical")


def faults(page: Any) -> list[str]:
    """What axe-core finds, without what it calls minor or moderate."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page.evaluate("() => Promise.allSettled(document.getAnimations().map(change => change.finished))")  # of colours
    found = axe.run(page, options={"resultTypes": ["violations"], "preload": False}).response["violations"]
    grave = [fault for fault in found if fault["impact"] in GRAVE]
    places = [(fault["id"], node) for fault in grave for node in fault["nodes"][:3]]
    return [f"{fault}: {node['html'][:200]}: {node['failureSummary']}" for fault, node in places]


def shown() -> list[tuple[str, str, dict[str, int]]]:
    """Pages, colours and screens: all of them on a built site, and else half of the pages in each of two ways."""
    if site.BUILT:
        return [*product(site.of_kinds(), ("light", "dark"), (WIDE, NARROW))]
    ways = cycle((("light", WIDE), ("dark", NARROW)))
    return [(name, *way) for name, way in zip(site.of_kinds(), ways) if name not in site.LARGE]


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
