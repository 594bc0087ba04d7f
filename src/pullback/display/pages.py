"""Elements of HTML that all displays are made of. Every text is escaped.

Colours come from the page: text has the page's colour, and lines are translucent, so that displays fit light and dark
pages. There is no script in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_STYLE = (
    ".pullback{font-family:var(--jp-code-font-family,ui-monospace,monospace);font-size:13px;line-height:1.45;"
    "overflow-x:auto}"
    ".pullback table{border-collapse:collapse;margin:4px 0;color:inherit;background:none}"
    ".pullback th,.pullback td{padding:1px 10px 1px 0;text-align:left;vertical-align:top;border:0;background:none;"
    "color:inherit;font-size:13px;white-space:pre-wrap}"
    ".pullback th{font-weight:normal;opacity:.7}"
    ".pullback .grid td{border:1px solid rgba(128,128,128,.6);padding:4px 8px;text-align:center;color:inherit}"
    ".pullback .line,.pullback summary{white-space:pre}"
    ".pullback .within{margin-left:2ch;padding-left:1ch;border-left:1px solid rgba(128,128,128,.5)}"
    ".pullback .soft{opacity:.7}"
    ".pullback a{color:inherit;text-decoration:underline dotted}"
    ".pullback :target{background:rgba(255,190,0,.4)}"
    ".pullback summary{cursor:pointer}"
    ".pullback img,.pullback svg{display:block;max-width:100%;margin:4px 0}"
)
_UNITS = ("kB", "MB", "GB", "TB", "PB")


def page(*parts: str) -> str:
    """Return a whole display: its parts, which are HTML, with the style that they share."""
    return f'<style>{_STYLE}</style><div class="pullback">{"".join(parts)}</div>'


def escaped(text: object) -> str:
    """Return the text of an object, such that HTML shows it as it is."""
    return escape(str(text))


def soft(text: object) -> str:
    """Return a text in a fainter tone."""
    return f'<span class="soft">{escaped(text)}</span>'


def bold(text: object) -> str:
    """Return a text in bold."""
    return f"<b>{escaped(text)}</b>"


def line(*parts: str) -> str:
    """Return a line of its own, of parts that are HTML."""
    return f'<div class="line">{"".join(parts)}</div>'


def fold(summary: str, body: str, is_open: bool) -> str:
    """Return a body that can be hidden by a click on its summary; both are HTML."""
    return (
        f'<details{" open" if is_open else ""}><summary>{summary}</summary><div class="within">{body}</div></details>'
    )


def facts(rows: Iterable[tuple[object, object]]) -> str:
    """Return a table of names and what they are, both as text."""
    lines = [f"<tr><th>{escaped(name)}</th><td>{escaped(value)}</td></tr>" for name, value in rows]
    return f"<table>{''.join(lines)}</table>"


def table(heads: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return a table with a line of headings; all cells are text."""
    head = "".join(f"<th>{escaped(h)}</th>" for h in heads)
    lines = ["<tr>" + "".join(f"<td>{escaped(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    return f"<table><tr>{head}</tr>{''.join(lines)}</table>"


def amount(count: float) -> str:
    """Return a number of bytes as text.

    >>> from pullback.display.pages import amount
    >>> amount(999), amount(12_345), amount(3e9)
    ('999 bytes', '12.3 kB', '3 GB')
    """
    if count < 1000:
        return f"{count:.0f} byte{'' if count == 1 else 's'}"
    power = 0
    while count >= 999.5 and power < len(_UNITS):
        count /= 1000
        power += 1
    return f"{count:.3g} {_UNITS[power - 1]}"
