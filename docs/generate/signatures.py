"""Signatures of functions and classes as text, with their types."""

from __future__ import annotations

import ast
import enum
import inspect
import re
from typing import Any

LONGEST_DEFAULT = 60
UNKNOWN = "(*args, **kwargs)"


def annotation(value: Any) -> str:
    """Return an annotation as it is written."""
    if isinstance(value, str):
        return value
    if isinstance(value, type) and not hasattr(value, "__args__"):
        return value.__qualname__
    return re.sub(r"\b(typing|collections\.abc)\.", "", str(value))


def default(value: Any) -> str:
    """Return a default as it is written, and dots for one that has no short form."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, type) or inspect.isroutine(value):
        return str(value.__name__)
    text = repr(value)
    return "..." if len(text) > LONGEST_DEFAULT or "<" in text or "\n" in text else text


def _parameter(parameter: inspect.Parameter, types: bool) -> str:
    stars = (
        "*" if parameter.kind is parameter.VAR_POSITIONAL else "**" if parameter.kind is parameter.VAR_KEYWORD else ""
    )
    typed = types and parameter.annotation is not parameter.empty
    text = stars + parameter.name + (f": {annotation(parameter.annotation)}" if typed else "")
    if parameter.default is parameter.empty:
        return text
    return f"{text} = {default(parameter.default)}" if typed else f"{text}={default(parameter.default)}"


def written(signature: inspect.Signature, types: bool = True) -> str:
    """Return a signature as it is written in a ``def`` statement, with or without its types."""
    parts: list[str] = []
    previous: Any = None
    starred = False
    for parameter in signature.parameters.values():
        if previous is parameter.POSITIONAL_ONLY and parameter.kind is not previous:
            parts.append("/")
        starred = starred or parameter.kind is parameter.VAR_POSITIONAL
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        parts.append(_parameter(parameter, types))
        previous = parameter.kind
    if previous is inspect.Parameter.POSITIONAL_ONLY:
        parts.append("/")
    returned = signature.return_annotation
    arrow = f" -> {annotation(returned)}" if types and returned is not signature.empty else ""
    return f"({', '.join(parts)}){arrow}"


def signature_of(value: Any, *, method: bool = False) -> str:
    """Return the signature of a function or class as text that Python parses; ``method`` leaves out the first one.

    Types that do not parse are left out; what has no signature takes ``(*args, **kwargs)``.
    """
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return UNKNOWN
    if method:
        signature = signature.replace(parameters=list(signature.parameters.values())[1:])
    if inspect.isclass(value):
        signature = signature.replace(return_annotation=inspect.Signature.empty)
    for types in (True, False):
        text = written(signature, types)
        try:
            ast.parse(f"def f{text}: ...")
        except SyntaxError:
            continue
        return " ".join(text.split())
    return UNKNOWN
