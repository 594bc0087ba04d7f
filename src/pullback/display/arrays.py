"""Arrays: their type, where they are, and a picture of small ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.backends.devices.devices import Device
from pullback.backends.devices.shardings import NamedSharding
from pullback.core import dtypes
from pullback.core.array import Absent, Array, ArrayImpl, DeletedArray
from pullback.display import pages, pictures
from pullback.transforms.programs.transfer import device_of

MOST = 1 << 16
"""The most elements of an array that is drawn. Larger arrays are neither computed nor copied for a display."""


def facts(x: Array) -> list[tuple[str, str]]:
    """Return what is known of an array without its elements: names, and what they are."""
    aval = x.aval
    weak = ", weakly typed: takes the dtype of the other operand" if aval.weak_type else ""
    rows = [("shape", str(aval.shape)), ("dtype", f"{dtypes.dtype_name(aval.dtype)}{weak}")]
    if not isinstance(x, ArrayImpl):
        return [*rows, ("elements", "none: the array is traced, and stands for values of later calls")]
    rows.append(("memory", f"{pages.amount(x.size * aval.dtype.itemsize)}, {x.size:,} elements"))
    if isinstance(x, DeletedArray):
        return [*rows, ("elements", "none: the array was donated to a compiled function, or deleted")]
    rows.append(("sharding" if isinstance(device_of(x), NamedSharding) else "device", placement(x)))
    if _is_pending(x):
        rows.append(("elements", "pending: they are computed when they are read"))
    return rows


def placement(x: ArrayImpl) -> str:
    """Return the device of an array, or its sharding, as text."""
    found = device_of(x)
    if isinstance(found, NamedSharding):
        sizes = ", ".join(f"{name!r}: {size}" for name, size in found.mesh.shape.items())
        return f"{found.spec} over the mesh {{{sizes}}}"
    return str(found) if isinstance(found, Device) else repr(found)


def picture(x: Array, as_text: bool = False) -> str:
    """Return a picture of the elements, as HTML or as text; if there is none, a line that says why, or nothing.

    The elements of arrays of up to 65,536 elements are read for it.
    """
    written = (lambda words: words) if as_text else (lambda words: pages.line(pages.soft(words)))
    if not isinstance(x, ArrayImpl) or isinstance(x, DeletedArray) or x.size == 0 or dtypes.is_key(x.dtype):
        return ""
    if x.size > MOST:
        return written(f"Not drawn: it has more than {MOST:,} elements. Show a region of it, such as x[:100].")
    if not x.is_fully_addressable:
        return written("Not drawn: some of its shards are on devices of other processes.")
    values, what = _as_floats(np.asarray(x))
    if values is None:
        return ""
    if values.ndim == 0:
        return written(str(np.asarray(x)))
    drawn = values if values.ndim < 3 else values[(0,) * (values.ndim - 2)]
    if drawn.ndim == 1:
        image = (pictures.text_curve if as_text else pictures.curve)(drawn)
    else:
        image = (pictures.text_map if as_text else pictures.heat_map)(drawn)
    low, high, others = pictures.limits(drawn)
    notes = [f"{what}from {low:.6g} to {high:.6g}"] if others < drawn.size else []
    notes += [f"{others:,} not finite"] if others else []
    notes += [f"the first of {values.size // drawn.size:,} matrices"] if values.ndim > 2 else []
    return "".join([image, "\n" if as_text else "", written("; ".join(notes))])


def _as_floats(values: np.ndarray[Any, Any]) -> tuple[pictures.Values | None, str]:
    """Return elements in double precision, None if they are no numbers; and what of them it is, for a caption."""
    if values.dtype.kind == "c":
        return np.abs(values).astype(np.float64), "absolute values "
    if values.dtype.kind in "biuf" or dtypes.is_float(values.dtype) or dtypes.is_integer(values.dtype):
        return values.astype(np.float64), ""
    return None, ""


def _is_pending(x: ArrayImpl) -> bool:
    """Return whether elements were not computed yet, without computing them."""
    held = getattr(x, "_host_value", None)
    return type(held) is Absent and held.pending is not None and held.pending.known is None


def html(x: Array) -> str:
    """Return an array as HTML: a table of facts, and a picture."""
    return pages.facts(facts(x)) + picture(x)


def text(x: Array) -> str:
    """Return an array as text: a line of facts, and a picture in blocks."""
    known = "; ".join(f"{name} {value}" for name, value in facts(x))
    drawn = picture(x, as_text=True)
    return f"{known}\n{drawn}" if drawn else known


def sparse_html(x: Any) -> str:
    """Return a sparse array as HTML: a table of facts and, of a small matrix, a picture of the stored elements."""
    stored = x.data.size
    rows = [("shape", x.shape), ("dtype", dtypes.dtype_name(x.dtype)), ("format", type(x).__name__)]
    dense = f", {stored / x.size:.3g} of all" if x.size else ""
    rows.append(("stored", f"{stored:,} elements{dense}"))
    return pages.facts(rows) + _sparse_picture(x, stored)


def _sparse_picture(x: Any, stored: int) -> str:
    from pullback.derivatives.patterns.pattern import Pattern

    leaves = x.tree_flatten()[0]
    known = all(isinstance(leaf, ArrayImpl) and not isinstance(leaf, DeletedArray) for leaf in leaves)
    if not known or stored > MOST or x.ndim != 2 or getattr(x, "n_batch", 0) or getattr(x, "n_dense", 0):
        return ""
    pattern = Pattern(x if hasattr(x, "n_sparse") and not hasattr(x, "indptr") else x.to_scipy_sparse())
    return pattern._repr_svg_()
