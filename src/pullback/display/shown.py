"""``debug.show``: a value with what is known of it, and a picture, in a notebook or a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from pullback.backends.devices.meshes import AbstractMesh, Mesh
from pullback.backends.devices.shardings import Sharding
from pullback.core.array import Array
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr
from pullback.core.tree_nodes import optree
from pullback.display import arrays, devices, pages, programs, trees
from pullback.transforms.jit.stages import Compiled

__all__ = ["Shown", "html_of", "show"]


def _compiled_html(x: Compiled) -> str:
    return pages.facts(programs.compiled_facts(x))


def _compiled_text(x: Compiled) -> str:
    return "\n".join(f"{name}: {value}" for name, value in programs.compiled_facts(x))


_HTML: tuple[tuple[type | tuple[type, ...], Callable[[Any], str]], ...] = (
    (Array, arrays.html),
    ((ClosedJaxpr, Jaxpr), programs.html),
    (Compiled, _compiled_html),
    ((Mesh, AbstractMesh), devices.mesh_html),
    (Sharding, devices.sharding_html),
)
"""The displays as HTML, by class."""


def _is_sparse(x: Any) -> bool:
    formats = sys.modules.get("pullback.experimental.sparse.formats")  # without it there is no sparse array
    return formats is not None and isinstance(x, formats.JAXSparse)


def _body(x: Any) -> str | None:
    """Return an object as HTML without the style; None if it is a tree or a leaf that has no display of its own."""
    for kind, display in _HTML:
        if isinstance(x, kind):
            return display(x)
    if _is_sparse(x):
        return arrays.sparse_html(x)
    return trees.structure_html(x) if isinstance(x, optree().PyTreeSpec) else None


def html_of(x: Any) -> str | None:
    """Return an object as HTML with its style, or None if there is no other display of it than its text."""
    body = _body(x)
    return None if body is None else pages.page(body)


class Shown:
    """A value with a display: notebooks draw it, and ``print`` writes it.

    Attributes:
      value: the value.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def html(self) -> str:
        """Return the display as HTML, which needs no other file."""
        known = html_of(self.value)
        if known is not None:
            return known
        own = getattr(self.value, "_repr_html_", None) or getattr(self.value, "_repr_svg_", None)
        return (own() if own is not None else None) or pages.page(trees.html(self.value))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Return the display for a notebook, as texts by MIME type; Jupyter passes the other arguments."""
        return {"text/html": self.html(), "text/plain": repr(self)}

    def __repr__(self) -> str:
        x = self.value
        if isinstance(x, Array):
            return arrays.text(x)
        if isinstance(x, ClosedJaxpr):
            return programs.box(x, "program")
        if isinstance(x, Compiled):
            return _compiled_text(x)
        return repr(x) if _body(x) is not None or trees.is_leaf(x) else trees.text(x)


def show(value: Any) -> Shown:
    """Show what is known of a value, and a picture of it: drawn in a notebook, in characters in a terminal.

    An array has its shape, dtype, memory and device, and a line or heat map if it has at most 65,536 elements; the
    elements of larger arrays are neither computed nor copied. ``config.update("rich_arrays", True)`` lets notebooks
    show all arrays so. A tree has the types of its leaves, a compiled function the compiler's estimates of cost and
    memory, a sharding the grid of devices, and a program its equations.

    Args:
      value: an array or a tree of arrays, also traced ones; a jaxpr, the structure of a tree, a mesh or sharding, a
        sparse array, or a compiled function.

    Returns:
      An object that notebooks and ``print`` show, with the method ``html()``.

    >>> import pullback.numpy as jnp
    >>> from pullback import debug
    >>> debug.show(jnp.arange(8.0))
    shape (8,); dtype float32; memory 32 bytes, 8 elements; device CpuDevice(id=0)
    ▁▂▃▄▅▆▇█
    from 0 to 7
    """
    return Shown(value)
