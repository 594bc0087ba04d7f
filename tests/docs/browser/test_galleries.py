"""Galleries show how long their programs take, and no page shows paths of the machine that built it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from docs.generate import finish
from tests.docs.browser import site

needs_outputs = pytest.mark.skipif(not site.BUILT, reason="cells are not executed: make docs docs-test")


def test_times_are_added_to_items() -> None:
    nodes = pytest.importorskip("docutils.nodes", reason="docutils is in the environment of the site: make docs-quick")
    items = []
    for page in ("kalman_filter", "../programs/arma", "unknown"):
        text = nodes.paragraph("", "", nodes.reference("", page, refuri=f"{page}.html#x"), nodes.Text(": a filter."))
        items.append(nodes.list_item("", text))
    tree = nodes.section("", nodes.bullet_list("", *items))
    finish.show_times(tree, "examples/index", {"examples/kalman_filter": 1.26, "programs/arma": 3.0})
    assert [item.astext().partition(": ")[2] for item in items] == ["a filter. 1.3 s", "a filter. 3.0 s", "a filter."]


@needs_outputs
def test_a_gallery_shows_the_times(page: Any, address: str) -> None:
    page.goto(f"{address}/examples/index.html")
    times = page.locator("article .time").all_inner_texts()
    assert len(times) > 20
    assert [time for time in times if not re.fullmatch(r"\d+\.\d s", time)] == []
    page.goto(f"{address}/programs/index.html")
    assert page.locator(".sd-card").count() == page.locator(".sd-card em").count() > 10


@needs_outputs
@pytest.mark.parametrize("name", ["examples/kalman_filter", "programs/arma"])
def test_a_page_says_how_long_its_program_takes(page: Any, address: str, name: str) -> None:
    page.goto(f"{address}/{name}.html")
    assert re.search(r"took \d+\.\d seconds when this site was built", page.locator("article").inner_text())
