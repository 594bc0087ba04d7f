"""The search finds names: the first result is the page that describes the name."""

from __future__ import annotations

import re
import zlib
from pathlib import Path
from typing import Any

import pytest

NAMES = {
    "grad": "pullback.grad",
    "pullback.grad": "pullback.grad",
    "custom_vjp": "pullback.custom_vjp",
    "sin": "pullback.numpy.sin",
    "NotDifferentiableError": "pullback.errors.NotDifferentiableError",
    "TracerIntegerConversionError": "pullback.errors.TracerIntegerConversionError",
}
"""For what one types, the name whose description comes first."""
FIRST = "#search-results ul.search li:first-child a"


@pytest.fixture(scope="session")
def described(folder: Path) -> dict[str, str]:
    """Where each name is described, as the site's inventory says, which other sites link by."""
    data = (folder / "objects.inv").read_bytes().split(b"\n", 4)[4]
    lines = re.findall(r"^(\S+) py:\w+ -?\d+ (\S+) ", zlib.decompress(data).decode(), re.MULTILINE)
    return {name: address.replace("$", name) for name, address in lines}


@pytest.mark.parametrize("word", NAMES)
def test_a_name_leads_to_its_page(page: Any, address: str, described: dict[str, str], word: str) -> None:
    target = described[NAMES[word]]
    page.goto(f"{address}/search.html?q={word}")
    page.get_by_text("Search finished").wait_for()
    first = page.locator(FIRST).first
    assert first.get_attribute("href") == target
    first.click()
    file, _, anchor = target.partition("#")
    page.wait_for_url(f"{address}/{file}*")
    assert page.locator(f"[id='{anchor}']").count() == 1


def test_the_field_of_each_page_searches(page: Any, address: str, described: dict[str, str]) -> None:
    page.goto(f"{address}/learn/state.html")
    page.keyboard.press("Control+k")
    page.locator("#pst-search-dialog input[name=q]").fill("custom_vjp")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=custom_vjp*")
    page.locator(FIRST).first.wait_for()
    page.get_by_text("Search finished").wait_for()
    assert page.locator(FIRST).first.get_attribute("href") == described["pullback.custom_vjp"]


def test_what_is_nowhere_is_said_to_be(page: Any, address: str) -> None:
    page.goto(f"{address}/search.html?q=xylophone")
    page.get_by_text("did not match any documents").wait_for()
    assert page.locator(FIRST).count() == 0
