"""Frontend attributes: names with texts that operations of a program have, which the compiler reads or hands on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pullback.backends.hlo.builder import Builder, Constant, Value
from pullback.backends.hlo.module import escaped

_NAME = "mhlo.frontend_attributes = {"
_STRING = r'"(?:[^"\\]|\\.)*"'
_PAIR = re.compile(rf"([A-Za-z_]\w*|{_STRING}) = ({_STRING})")
_DICTIONARY = re.compile(rf'{re.escape(_NAME)}((?:[^"}}]|{_STRING})*)}}')


def attributes(metadata: Sequence[tuple[str, Any]]) -> str:
    """Return names and values as they are written among frontend attributes: ``stage = "loss", level = "3"``."""
    return ", ".join([f'{_name(name)} = "{escaped(_text(value))}"' for name, value in metadata])


def _name(name: str) -> str:
    """Return the name of an attribute, in quotes unless it is an identifier of ASCII letters."""
    return name if name.isascii() and name.isidentifier() else f'"{escaped(name)}"'


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def mark(hlo: Builder, values: Sequence[Value], metadata: Sequence[tuple[str, Any]]) -> None:
    """Add frontend attributes to the operations of the current function or region that define values.

    Arguments and constants are defined by no operation. Of attributes of one name, those that are there already stay.
    """
    text = attributes(metadata)
    names = {value.name.partition("#")[0] for value in values if not isinstance(value, Constant)}
    for i in range(len(hlo.lines) - 1, -1, -1):
        if not names:
            return
        name = hlo.lines[i].partition(" ")[0].partition(":")[0]
        if name in names:
            names.remove(name)
            hlo.lines[i] = _with(hlo.lines[i], text)


def _with(line: str, text: str) -> str:
    """Add frontend attributes, as :func:`attributes` returns them, to the line of an operation."""
    end = line.rfind(" : ")
    head, types = line[:end], line[end:]
    if not head.endswith("}"):
        return f"{head} {{{_NAME}{text}}}}}{types}"
    found = _DICTIONARY.search(head, _opening(head))
    if found is None:  # the operation has other attributes
        return f"{head[:-1]}, {_NAME}{text}}}}}{types}"
    pairs = {**dict(_PAIR.findall(text)), **dict(_PAIR.findall(found[1]))}
    inside = ", ".join([f"{name} = {value}" for name, value in pairs.items()])
    return f"{head[: found.start(1)]}{inside}{head[found.end(1) :]}{types}"


def _opening(text: str) -> int:
    """Return the index of the brace that the last character of ``text`` closes; braces in strings do not count."""
    depth, inside = 0, False
    for i in range(len(text) - 1, -1, -1):
        c = text[i]
        if c == '"' and text[i - 1] != "\\":
            inside = not inside
        elif not inside and c in "{}":
            depth += 1 if c == "}" else -1
            if depth == 0:
                return i
    raise AssertionError(text)
