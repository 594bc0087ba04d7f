"""Each page, on wide and narrow screens, light and dark: pictures show, nothing is cut off, the browser is content."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.docs.browser import site
from tests.docs.browser.conftest import NARROW

BROKEN = """async () => {
    const broken = [];
    for (const image of document.images) {
        image.loading = "eager";
        try { await image.decode(); } catch { broken.push(image.currentSrc || image.src); }
        if (!image.hasAttribute("alt")) broken.push(`${image.src} has no description`);
    }
    return broken;
}"""
TOO_WIDE = """() => {
    const scrolls = (element) => {  // within the article, which must not scroll as a whole
        for (let e = element; e && !e.matches("article, body"); e = e.parentElement)
            if (["auto", "scroll"].includes(getComputedStyle(e).overflowX)) return true;
        return false;
    };
    const end = (element) => {  // of its box, and of its own text, which may leave the box
        const ends = [element.getBoundingClientRect().right];
        for (const text of element.childNodes)
            if (text.nodeType === Node.TEXT_NODE && text.data.trim()) {
                const range = document.createRange();
                range.selectNode(text);
                ends.push(range.getBoundingClientRect().right);
            }
        return Math.max(...ends);
    };
    const wide = [];
    for (const element of document.querySelectorAll("main *, header *, footer *")) {
        const right = end(element);
        if (right > innerWidth + 1 && element.clientWidth !== 1 && element.checkVisibility() && !scrolls(element))
            wide.push(`${element.outerHTML.slice(0, 100)} ends at ${Math.round(right)}`);
    }
    const all = document.documentElement.scrollWidth;
    if (all > innerWidth) wide.push(`the page ends at ${all}`);
    return wide;
}"""
"""What ends to the right of the screen, unless it scrolls in itself."""
COLOURS = """() => {
    const brightness = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).reduce((sum, c) => sum + Number(c), 0) / 765;
    const style = getComputedStyle(document.body);
    return [brightness(style.backgroundColor), brightness(style.color)];
}"""
"""How bright background and text are, between 0 and 1."""


def test_pages_are_found() -> None:
    if site.BUILT:
        assert len(site.every()) > 1_500
    assert set(site.of_kinds()) <= set(site.every())


@pytest.mark.parametrize("name", site.every())
def test_a_page_shows(page: Any, address: str, name: str) -> None:
    page.goto(f"{address}/{name}.html")
    assert page.evaluate(BROKEN) == []
    assert not re.search(rf"ipykernel_|{re.escape(str(site.ROOT))}", page.locator("main").text_content())
    page.set_viewport_size(NARROW)
    assert page.evaluate(TOO_WIDE) == []
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function("scheme => document.documentElement.dataset.theme === scheme", arg=scheme)
        background, text = page.evaluate(COLOURS)
        assert text - background > 0.5 if scheme == "dark" else background - text > 0.5


@pytest.mark.parametrize("name", site.of_kinds())
def test_a_page_has_a_title_a_description_and_an_icon(page: Any, address: str, name: str) -> None:
    page.goto(f"{address}/{name}.html")
    heading = page.locator("h1").first.inner_text().removesuffix("#").strip()
    title = page.title()
    assert "Pullback" in title
    assert name == "index" or title.startswith(heading)
    if name not in ("search", "404"):
        words = page.locator("meta[name=description]").get_attribute("content").split()
        assert len(words) >= 4
        assert len(" ".join(words)) <= 160
    icon = page.locator("link[rel=icon]").evaluate("link => link.href")
    assert page.request.get(icon).ok


def test_a_missing_address_has_a_page_with_working_links(context: Any, address: str) -> None:
    page = context.new_page()
    for missing in ("nothing.html", "reference/deep/nothing.html"):
        assert page.goto(f"{address}/{missing}").status == 404
        assert page.locator("h1").inner_text() == "Page not found"
        links = page.locator("article a, link[rel=stylesheet], link[rel=icon]").evaluate_all(
            "all => all.map(a => a.href)"
        )
        assert len(links) > 8
        assert [link for link in links if not page.request.get(link).ok] == []
    page.close()


FOCUSED = """() => {
    const element = document.activeElement;
    const marked = element.matches(".sd-stretched-link") ? element.closest(".sd-card") : element;
    const {outlineStyle, outlineWidth} = getComputedStyle(marked);
    return [element.outerHTML.slice(0, 80), outlineStyle !== "none" && parseFloat(outlineWidth) >= 2];
}"""
"""What the keyboard is on, and whether a line around it, or around its card, shows that."""


@pytest.mark.parametrize("name", ["index", "learn/state", "reference/pullback.grad"])
def test_one_sees_where_the_keyboard_is(page: Any, address: str, name: str) -> None:
    page.goto(f"{address}/{name}.html")
    seen = []
    for _ in range(12):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(FOCUSED))
    seen = [(element, visible) for element, visible in seen if not element.startswith("<body")]  # where it is nowhere
    assert len({element for element, _ in seen}) > 5
    assert [element for element, visible in seen if not visible] == []
