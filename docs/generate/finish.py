"""What the build changes on pages that are read: paths in outputs, descriptions for search engines, measured times."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .contents import ROOT

if TYPE_CHECKING:
    from docutils import nodes

PATHS = (
    (re.compile(r"[^\s\"'(]*ipykernel_\d+[/\\]\d+\.py"), "cell.py"),
    (re.compile(re.escape(f"{ROOT / 'src'}/")), ""),
    (re.compile(re.escape(f"{ROOT}/")), ""),
)
"""Paths of the machine that builds, and what readers see in their place."""
MOST = 160
"""How many characters of a description search engines show."""


# Outputs -------------------------------------------------------------------------------------------------------------


def without_paths(text: str) -> str:
    """Return an output without paths of the machine: the file of a cell is ``cell.py``."""
    for pattern, shown in PATHS:
        text = pattern.sub(shown, text)
    return text


def clean_outputs(doctree: nodes.document) -> None:
    """Remove paths of the machine from the outputs of cells."""
    from docutils import nodes

    for cell in doctree.findall(nodes.container):
        if "cell_output" in cell["classes"]:
            for block in list(cell.findall(nodes.literal_block)):
                text = without_paths(block.astext())
                block.replace_self(nodes.literal_block(text, text, **block.attributes))


# Descriptions --------------------------------------------------------------------------------------------------------


def shortened(text: str, most: int = MOST) -> str:
    """Return as many sentences of a text as have at most ``most`` characters, or words if the first one is longer."""
    text = " ".join(text.split())
    if len(text) <= most:
        return text
    stop = text.rfind(". ", 0, most)
    return text[: stop + 1] if stop > 0 else text[: text.rfind(" ", 0, most - 1)].rstrip(",;:") + "…"


def description(doctree: nodes.document) -> str:
    """Return what a page is about: its first paragraph of several words; a date or a link is none."""
    from docutils import nodes

    for paragraph in doctree.findall(nodes.paragraph):
        text = paragraph.astext()
        if len(text.split()) > 3:
            return shortened(text)
    return ""


# Times ---------------------------------------------------------------------------------------------------------------


def _linked(doctree: nodes.document) -> Iterator[tuple[str, nodes.Element]]:
    """Yield the pages that items of lists and cards lead to, and the paragraph of each that says what is there."""
    from docutils import nodes

    for item in doctree.findall(nodes.Element):
        if not isinstance(item, nodes.list_item) and "sd-card" not in item.get("classes", ()):
            continue
        link = next((n for n in item.findall(nodes.reference) if n.get("refuri")), None)
        paragraphs = [n for n in item.findall(nodes.paragraph) if "sd-card-text" in n["classes"]] or [
            *item.findall(nodes.paragraph)
        ]
        if link is not None and paragraphs and not isinstance(item.parent.parent, nodes.list_item):
            yield link["refuri"].partition("#")[0].removesuffix(".html"), paragraphs[-1]


def show_times(doctree: nodes.document, index: str, seconds: dict[str, float]) -> None:
    """Add to the items of the gallery ``index`` how long their programs take, by the names of their pages."""
    from docutils import nodes

    folder = posixpath.dirname(index)
    for address, paragraph in _linked(doctree):
        page = posixpath.normpath(posixpath.join(folder, address))
        if page in seconds:
            paragraph += [nodes.Text(" "), nodes.emphasis("", f"{seconds[page]:.1f} s", classes=["time"])]


def show_time(doctree: nodes.document, seconds: float) -> None:
    """Say before the first cell of a page how long its cells take."""
    from docutils import nodes

    text = f"The cells took {seconds:.1f} seconds when this site was built."
    for cell in doctree.findall(nodes.container):
        if "cell" in cell["classes"]:
            cell.parent.insert(cell.parent.index(cell), nodes.paragraph("", "", nodes.emphasis("", text)))
            return
