"""Parsing of shapes with symbolic sizes."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

from pullback.core import tree
from pullback.core.annotations import PyTree
from pullback.core.dims import Size, SymbolicScope, bounds, is_symbolic, parse_size
from pullback.core.errors import ArgumentError, DtypeError
from pullback.primitives import sizes as sizes  # registers the conversion of sizes to arrays
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct
from pullback.transforms.functions.arguments import abstractify


def is_symbolic_dim(p: object) -> bool:
    """Whether a size is symbolic.

    Args:
      p: a size.

    Returns:
      True for a symbolic size, False for a number and for any other object.

    >>> from pullback import export
    >>> export.is_symbolic_dim(export.symbolic_shape("b, 3")[0]), export.is_symbolic_dim(3)
    (True, False)
    """
    return is_symbolic(p)


def symbolic_dim_bounds(dimension: Size) -> tuple[float, float]:
    """Return bounds of a size: numbers between which all its values lie, these numbers included.

    The bounds follow from those of the names, from 1 to 2**31 - 1 (programs compute with sizes in 32 bits), and from
    the constraints of their scope. Closer ones may hold.

    Args:
      dimension: an integer, or a size of :func:`symbolic_shape`.

    Returns:
      The lower and the upper bound: ints, or infinite floats where none is known. JAX has no upper bound of a name, and
      returns ``inf`` for it.

    Raises:
      DtypeError: ``dimension`` is no size (a TypeError).

    >>> from pullback import export
    >>> n, m = export.symbolic_shape("2*b + 1, min(b, 7)", constraints=["b <= 100"])
    >>> export.symbolic_dim_bounds(n), export.symbolic_dim_bounds(m)
    ((3, 201), (1, 7))
    """
    if not is_symbolic(dimension):
        try:
            dimension = operator.index(dimension)
        except TypeError as error:
            raise DtypeError(f"symbolic_dim_bounds takes an integer or a symbolic size, got {dimension!r}") from error
    low, high = (int(x) if math.isfinite(x) else x for x in bounds(dimension))
    return low, high


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> tuple[Size, ...]:
    """Parse a shape with symbolic sizes.

    Args:
      shape_spec: sizes between commas. A size is a number, a name, or an expression of these with ``+``, ``-``, ``*``,
        ``^``, ``floordiv``, ``mod``, ``max`` and ``min``; ``_`` stands for the size at that position in ``like``, and
        ``...`` at the end for all remaining sizes. None is the same as ``"..."``.
      constraints: conditions on the names, such as ``"b >= 4"`` or ``"mod(b, 8) == 0"``. A name is at least 1.
      scope: the scope of the names, instead of ``constraints``; by default a new one.
      like: a shape.

    Returns:
      A tuple of sizes, for use in ``ShapeDtypeStruct`` and :func:`export`.

    Raises:
      ArgumentError: the text is no shape, or does not fit ``like`` (a TypeError and ValueError).

    >>> from pullback import export
    >>> export.symbolic_shape("a, 2*b + 1, _", like=(None, None, 5))
    (a, 2*b + 1, 5)
    """
    if scope is not None and constraints:
        raise ArgumentError("symbolic_shape: pass either constraints or a scope, which already has constraints")
    if scope is None:
        scope = SymbolicScope(constraints)
    text = "..." if shape_spec is None else shape_spec
    if not isinstance(text, str):
        raise ArgumentError(f"symbolic_shape: a shape must be a string such as 'b, 3' or None, got {shape_spec!r}")
    out: list[Size] = []
    entries = _entries(text)
    for i, entry in enumerate(entries):
        if entry == "...":
            if i != len(entries) - 1:
                raise ArgumentError(f"symbolic_shape: ... must come last in {text!r}")
            out += [_placeholder(text, like, k) for k in range(i, len(like) if like is not None else i + 1)]
        elif entry == "_":
            out.append(_placeholder(text, like, i))
        else:
            size = parse_size(entry, scope)
            known = None if like is None or i >= len(like) else like[i]
            if known is not None and not is_symbolic(size) and size != known:
                raise ArgumentError(f"symbolic_shape: size {i} of {text!r} is {size}, but {known} in like={like!r}")
            out.append(size)
    if like is not None and len(out) != len(like):
        raise ArgumentError(f"symbolic_shape: {text!r} has {len(out)} sizes, but like={like!r} has {len(like)}")
    return tuple(out)


def _entries(text: str) -> list[str]:
    """Split the text of a shape at commas that are not inside parentheses of an entry."""
    inner = text.strip()
    if inner.startswith("(") and inner.endswith(")") and _closes(inner) == len(inner) - 1:
        inner = inner[1:-1].strip()
    entries, depth = [""], 0
    for c in inner:
        depth += (c == "(") - (c == ")")
        if c == "," and not depth:
            entries.append("")
        else:
            entries[-1] += c
    entries = [entry.strip() for entry in entries]
    return entries[:-1] if not entries[-1] else entries


def _closes(text: str) -> int:
    """Return the index of the parenthesis that closes an open parenthesis at the start of ``text``; -1 if none does."""
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if not depth:
            return i
    return -1


def _placeholder(text: str, like: Sequence[int | None] | None, i: int) -> Size:
    if like is None:
        raise ArgumentError(f"symbolic_shape: {text!r} leaves sizes open by _ or ..., which needs like=")
    if i >= len(like) or like[i] is None:
        raise ArgumentError(f"symbolic_shape: {text!r} leaves size {i} open, which like={like!r} does not have")
    return like[i]


def symbolic_args_specs(
    args: PyTree, shapes_specs: PyTree, constraints: Sequence[str] = (), scope: SymbolicScope | None = None
) -> PyTree:
    """Make specifications of arguments with symbolic sizes, for :func:`export`.

    Args:
      args: a tree of arrays, or of objects with their shapes and dtypes.
      shapes_specs: a shape in the form of :func:`symbolic_shape` for each leaf, as a prefix of the tree; a string or
        None applies to all leaves below it.
      constraints: conditions on the names, as of :func:`symbolic_shape`.
      scope: the scope of the names, instead of ``constraints``.

    Returns:
      A tree of ``ShapeDtypeStruct`` of the structure of ``args``.

    Raises:
      ArgumentError: a shape does not fit its array, or ``shapes_specs`` is no prefix (a TypeError and ValueError).

    >>> import numpy as np
    >>> from pullback import export
    >>> export.symbolic_args_specs((np.ones((3, 4)), np.ones(4)), ("b, ...", None))
    (ShapeDtypeStruct(shape=(b, 4), dtype=float32), ShapeDtypeStruct(shape=(4,), dtype=float32))
    """
    if scope is not None and constraints:
        raise ArgumentError("symbolic_args_specs: pass either constraints or a scope, which already has constraints")
    if scope is None:
        scope = SymbolicScope(constraints)
    leaves, treedef = tree.flatten(args)
    specs = tree.broadcast_prefix(shapes_specs, args, is_leaf=lambda x: x is None)
    out = []
    for leaf, spec in zip(leaves, specs, strict=True):
        aval = abstractify(leaf)
        shape = symbolic_shape(spec, like=aval.shape, scope=scope)
        out.append(ShapeDtypeStruct(shape, aval.dtype, weak_type=aval.weak_type))
    return tree.unflatten(treedef, out)
