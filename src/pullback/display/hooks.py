"""What notebooks find on the classes of the library: a method that imports the display of an object when it is asked.

Classes of other floors have a method ``_repr_html_`` of their own, which calls ``runtime.html_of``. The methods of
programs are set here, since the core's modules of programs know nothing of displays.
"""

from __future__ import annotations

import sys
from typing import Any

from pullback.core.jaxpr import ClosedJaxpr, Jaxpr
from pullback.core.runtime import provides

__all__: list[str] = []


@provides
def html_of(x: Any) -> str | None:
    """Return an object as HTML, or None if there is no other display of it than its text."""
    from pullback.display.shown import html_of as display

    return display(x)


def _repr_html_(self: Any) -> str | None:
    """Return the program as HTML for a notebook."""
    return html_of(self)


def install() -> None:
    """Give programs their display, and tell IPython how trees are displayed, if it runs."""
    for kind in (Jaxpr, ClosedJaxpr):
        kind._repr_html_ = _repr_html_  # type: ignore[union-attr]
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    formatter = getattr(shell, "display_formatter", None)
    if formatter is not None:  # optree, with the class of trees, is imported on first use
        formatter.formatters["text/html"].for_type_by_name("optree", "PyTreeSpec", html_of)
