"""Docstrings as reStructuredText that is always well-formed: what is no markup of theirs is escaped.

The docstrings are in Google's style: paragraphs, ``Args:`` and its like, lists, examples that begin with ``>>>``.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Resolve = Callable[[str], "str | None"]
"""Returns the full public name that a word in a docstring stands for, or None."""

SECTION = re.compile(r"([A-Z][A-Za-z ]{2,24}):$")
ENTRY = re.compile(r"(\*{0,2}[\w.]+(?:, \*{0,2}[\w.]+)*):(?:\s+(.*))?$")
BULLET = re.compile(r"(?:[*-]|\d+\.) +(?=\S)")
TITLES = {"Args": "Arguments", "Kwargs": "Keyword arguments", "Example": "Examples"}
OF_ENTRIES = ("Args", "Attributes", "Raises", "Warns", "Kwargs", "Keyword Args", "Methods", "Classes", "Functions")
OF_ERRORS = ("Raises:", "Warns:")
INLINE = re.compile(
    r"``(?P<literal>[^`](?:.*?[^`])?)``"
    r"|:(?P<role>[a-z]+(?::[a-z]+)?):`(?P<text>[^`]+)`"
    r"|`(?P<link>[^`<]+?) <(?P<url>https?://[^>`\s]+)>`_{1,2}"
    r"|`(?P<plain>[^`]+)`"
)
BLOCK = re.compile(r"(?:[-+*•|]|\w{1,5}[.)]|\(\w+\)|\.\.|__|>>>)(?:\s|$)|:[^:]+:|[^\w\s]{3,}|\|")
"""What would begin another block than a paragraph."""


def indented(lines: list[str], by: int = 4) -> list[str]:
    """Return the lines moved to the right."""
    return [" " * by + line if line.strip() else "" for line in lines]


def escaped(text: str) -> str:
    """Return text in which nothing is markup."""
    text = re.sub(r"([\\*`|])", r"\\\1", text)
    return re.sub(r"_+(?=\W|$)", lambda run: r"\_" * len(run[0]), text)


def _literal(text: str) -> str:
    if not text.strip() or text != text.strip() or "`" in text:
        return escaped(text)
    return rf"\ ``{text}``\ "


def reference(text: str, full: str) -> str:
    """Return a link to a public name."""
    shown = re.sub(r"([\\`<>*_])", r"\\\1", text)
    return rf"\ :py:obj:`{shown} <{full}>`\ "


def trimmed(text: str) -> str:
    """Return text without the escaped spaces at its ends, which separate markup from words."""
    text = text.strip().removeprefix("\\ ")
    return text[:-1] if text.endswith("`\\") else text


def inline(text: str, resolve: Resolve) -> str:
    """Return a paragraph's text: literals and roles stay, names of the library are links, the rest is escaped."""
    parts: list[str] = []
    end = 0
    for found in INLINE.finditer(text):
        parts.append(escaped(text[end : found.start()]))
        end = found.end()
        if found["url"]:
            parts.append(rf"\ `{escaped(found['link'])} <{found['url']}>`__\ ")
            continue
        word = (found["literal"] or found["plain"] or found["text"]).strip()
        if found["role"] == "math":
            parts.append(rf"\ :math:`{word}`\ ")
            continue
        shown, target = word.lstrip("~!"), word.lstrip("~!")
        if found["role"] and (titled := re.fullmatch(r"(.+?) <([\w.]+)>", word)):
            shown, target = titled[1], titled[2]
        full = resolve(target.removesuffix("()"))
        parts.append(reference(shown, full) if full else _literal(shown))
    return trimmed("".join([*parts, escaped(text[end:])]))


def paragraph(lines: list[str], resolve: Resolve) -> str:
    """Return the lines of a paragraph as one."""
    text = " ".join(line.strip() for line in lines)
    text = text[:-1] if text.endswith("::") else text
    shown = inline(text, resolve)
    return "\\ " + shown if BLOCK.match(shown) else shown


def code(lines: list[str], language: str) -> list[str]:
    """Return a block of code."""
    return [f".. code-block:: {language}", "   :force:", "", *indented(lines, 3), ""]


def _margin(lines: list[str]) -> int:
    return min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)


def _dedented(lines: list[str]) -> list[str]:
    margin = _margin(lines)
    return [line[margin:] for line in lines]


def _below(lines: list[str], start: int) -> int:
    """Return where the indented lines from ``start`` on end."""
    end = start
    while end < len(lines) and (not lines[end].strip() or lines[end][0] == " "):
        end += 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    return end


def _opens_section(lines: list[str], i: int) -> bool:
    return SECTION.match(lines[i]) is not None and i + 1 < len(lines) and lines[i + 1][:1] == " "


def _doctest(lines: list[str], start: int) -> int:
    """Return where the example that begins at ``start`` ends: blank lines between two prompts belong to it."""
    end = start
    while end < len(lines):
        if not lines[end].strip():
            later = next((line for line in lines[end:] if line.strip()), "")
            if not later.startswith(">>>"):
                break
        end += 1
    return end


def _text(lines: list[str], start: int) -> int:
    """Return where the paragraph that begins at ``start`` ends."""
    end = start + 1
    while end < len(lines) and lines[end].strip():
        if lines[end].startswith((">>>", "```")) or _opens_section(lines, end):
            break
        if re.match(r"[*-] \S", lines[end]):
            break
        end += 1
    return end


def entries(lines: list[str]) -> list[tuple[str, list[str]]] | None:
    """Return the entries ``name: text`` of a section, whose lines are given; None if it has no such entries."""
    found: list[tuple[str, list[str]]] = []
    for line in _dedented(lines):
        entry = ENTRY.match(line)
        if entry:
            found.append((entry[1], [entry[2] or ""]))
        elif line[:1].strip() or not found:
            return None
        else:
            found[-1][1].append(line)
    return [(name, [first, *_dedented(rest)]) for name, (first, *rest) in found] or None


def _section(title: str, lines: list[str], resolve: Resolve) -> list[str]:
    out = [f".. rubric:: {TITLES.get(title, title)}", ""]
    listed = entries(lines) if title in OF_ENTRIES else None
    if listed is None:
        return [*out, *blocks(_dedented(lines), resolve)]
    for names, text in listed:
        terms = []
        for name in names.split(", "):
            full = resolve(name) if title in ("Raises", "Warns") else None
            terms.append(reference(name, full) if full else _literal(name))
        body = blocks(text, resolve)
        out += [", ".join(map(trimmed, terms)), *indented(body or [r"\ "])]
        out += [""] if out[-1] else []
    return out


def blocks(lines: list[str], resolve: Resolve) -> list[str]:
    """Return lines of a docstring as lines of reStructuredText; the last one is empty."""
    out: list[str] = []
    i = 0
    while i < len(lines):
        line = lines[i]
        if not line.strip():
            i += 1
        elif _opens_section(lines, i):
            end = _below(lines, i + 1)
            out += _section(line[:-1], lines[i + 1 : end], resolve)
            i = end
        elif line.startswith(">>>"):
            end = _doctest(lines, i)
            out += code(lines[i:end], "pycon")
            i = end
        elif line[0] == " ":
            end = _below(lines, i)
            out += code(_dedented(lines[i:end]), "text")
            i = end
        elif line.startswith("```"):
            end = next((j for j in range(i + 1, len(lines)) if lines[j].startswith("```")), len(lines))
            out += code(lines[i + 1 : end], "python")
            i = end + 1
        elif marker := BULLET.match(line):
            end = _below(lines, i + 1)
            body = blocks([line[marker.end() :], *_dedented(lines[i + 1 : end])], resolve)
            out += ["* " + body[0], *indented(body[1:], 2)]
            i = end
        else:
            end = _text(lines, i)
            out += [paragraph(lines[i:end], resolve), ""]
            i = end
    return out


def formatted(doc: str, resolve: Resolve) -> list[str]:
    """Return a docstring as lines of reStructuredText."""
    return blocks(doc.expandtabs().splitlines(), resolve)


def sections(doc: str) -> dict[str, list[str]]:
    """Return the titled sections of a docstring, such as ``Args``, with their lines."""
    lines = doc.splitlines()
    opening = [i for i in range(len(lines)) if _opens_section(lines, i)]
    return {lines[i][:-1]: lines[i + 1 : _below(lines, i + 1)] for i in opening}


def section(doc: str, title: str) -> list[str]:
    """Return the lines below a title of a docstring, such as ``Args:``; none if there is no such section."""
    lines = doc.splitlines()
    if title not in lines:
        return []
    start = lines.index(title) + 1
    return lines[start : _below(lines, start)]


def raised(doc: str) -> list[tuple[str, str]]:
    """Return the errors and warnings that a docstring lists, and when each is raised or issued."""
    listed = [entry for title in OF_ERRORS for entry in entries(section(doc, title)) or []]
    return [(name, " ".join(" ".join(text).split())) for names, text in listed for name in names.split(", ")]
