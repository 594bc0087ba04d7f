"""The explanations of the errors: when each is raised, a program that fails, and the same program mended.

They are the files of the folder ``explanations``, one for each class of ``pullback.errors``. The command ``explain``
prints them, and the site has a page for each.
"""

from __future__ import annotations

import builtins
import difflib
import re
import textwrap
from importlib import resources
from typing import NamedTuple

from pullback import errors
from pullback.core import errors as core
from pullback.core.errors import ArgumentError

FENCED = re.compile(r"```python\n(.*?)```\n?", re.DOTALL)


class Explanation(NamedTuple):
    """What the page of an error says.

    Attributes:
      cause: when the error is raised.
      failing: a program that raises it; empty if no short one does.
      cure: what to do about it.
      mended: the program without the error; empty if there is no program.
      more: what else helps; may be empty.
    """

    cause: str
    failing: str
    cure: str
    mended: str
    more: str


def text_of(name: str) -> str:
    """Return the explanation of an error as it is written, in Markdown.

    Args:
      name: the name of a class of ``pullback.errors``.
    """
    return resources.files("pullback").joinpath("explanations", f"{name}.md").read_text(encoding="utf-8")


def explanation(name: str) -> Explanation:
    """Return the explanation of an error in its parts.

    Args:
      name: the name of a class of ``pullback.errors``.

    >>> from pullback.explain import explanation
    >>> explanation("UnboundAxisNameError").cause.split(",")[0]
    'It is raised when a collective'
    """
    parts = [part.strip("\n") for part in FENCED.split(text_of(name))]
    if len(parts) == 1:  # without programs: the cure begins with the second paragraph
        cause, _, cure = parts[0].partition("\n\n")
        return Explanation(cause, "", cure, "", "")
    return Explanation(*parts)


def of_command_line(name: str | None) -> str:
    """Return what the command ``explain`` prints: the explanation of an error, or the tree of all errors.

    Args:
      name: the name of an error, with or without its module, in upper or lower case; None for the tree.

    Raises:
      ArgumentError: there is no such error (a TypeError and a ValueError).

    >>> from pullback.explain import of_command_line
    >>> of_command_line("axiserror").splitlines()[:2]
    ['pullback.errors.AxisError', 'A kind of ShapeError, IndexError, TypeError and ValueError.']
    """
    known = {cls.lower(): cls for cls in vars(errors)["__all__"]} | {"jaxprtypeerror": "JaxprError"}
    if name is None:
        tree = (core.__doc__ or "").partition("\n\n")[2].rpartition("\n\n")[0]
        return f"{tree}\n\nWith the name of an error, such as ShapeError, this command explains it."
    asked = name.rpartition(".")[2].lower()
    if asked not in known:
        kind = next((value for key, value in vars(builtins).items() if key.lower() == asked), None)
        if isinstance(kind, type) and issubclass(kind, BaseException):
            ours = [cls for cls in known.values() if issubclass(getattr(errors, cls), kind) and cls != "PullbackError"]
            advice = f"Errors of Pullback that are of this kind: {', '.join(ours)}." if ours else ""
            raise ArgumentError(f"{kind.__name__} is an error of Python. {advice}".strip())
        near = difflib.get_close_matches(asked, known, 1)
        advice = f"Did you mean {known[near[0]]}?" if near else "Without a name, this command lists them."
        raise ArgumentError(f"there is no error {name!r}. {advice}")
    return _shown(known[asked])


def _shown(name: str) -> str:
    """Return the explanation of an error for a terminal: its kinds, its first sentence, its causes and cures."""
    cls = getattr(errors, name)
    own = [base for base in cls.__mro__ if base.__module__ == cls.__module__]
    kinds = list(dict.fromkeys(base.__name__ for one in own for base in one.__bases__ if base not in _ROOTS))
    also = f"A kind of {' and '.join(filter(None, [', '.join(kinds[:-1]), kinds[-1]]))}.\n" if kinds else ""
    text = FENCED.sub(lambda code: textwrap.indent(code[1], "    "), text_of(name))
    return f"pullback.errors.{name}\n{also}\n{cls.__doc__.splitlines()[0]}\n\n{text}"


_ROOTS = (core.PullbackError, Exception)
"""Kinds that go without saying."""
