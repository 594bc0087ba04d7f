"""Explaining why ``jit`` traces a function again: which argument changed, and how."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from pullback.core import source
from pullback.core.types import ShapedArray

_logger = logging.getLogger("pullback")


def explain(function: Any, call: Any, key: Any, known: Sequence[Any]) -> None:
    """Log why ``jit`` traces a function: how the cache key of a call differs from the most similar earlier key.

    Args:
      function: the function.
      call: the call, which names the leaves of its arguments.
      key: the cache key of the call.
      known: the keys of earlier calls.
    """
    where = source.format_location(source.here())
    name = source.describe_function(function._fun)
    if not known:
        _logger.warning("jit traces %s for the first time, called here:\n%s", name, where)
        return
    reasons = min((_differences(key, other, call) for other in known), key=len)
    _logger.warning(
        "jit traces %s again, called here:\n%s\nthe nearest of %d known kinds of arguments differs in:\n%s",
        name, where, len(known), "\n".join(f"  * {r}" for r in reasons),
    )  # fmt: skip


def _differences(key: Any, other: Any, call: Any) -> list[str]:
    """Describe the differences of two cache keys, as a list with a text for each.

    Args:
      key: the key of the current call.
      other: the key of an earlier call.
      call: the current call, which names the leaves of its arguments.
    """
    (context, treedef, avals, axes), (old_context, old_treedef, old_avals, old_axes) = key, other
    out = []
    if context is not old_context:
        pairs = zip(repr(context).split(", "), repr(old_context).split(", "), strict=True)
        changed = [f"{a}, it was {b}" for a, b in pairs if a != b]
        out.append(f"the configuration: {'; '.join(changed)}")
    if axes != old_axes:
        out.append(f"the named axes: {dict(axes)}, they were {dict(old_axes)}")
    static = {k: v for k, _, v in treedef[1]} if isinstance(treedef, tuple) else {}
    old_static = {k: v for k, _, v in old_treedef[1]} if isinstance(old_treedef, tuple) else {}
    for k in static.keys() | old_static.keys():
        if k not in static or k not in old_static or static[k] != old_static[k]:
            out.append(f"the static argument {k}: {static.get(k)!r}, it was {old_static.get(k)!r}")
    shape = treedef[0] if isinstance(treedef, tuple) else treedef
    old_shape = old_treedef[0] if isinstance(old_treedef, tuple) else old_treedef
    if shape != old_shape or len(avals) != len(old_avals):
        # Twice, so that a key with another tree counts as farther than one with a single other difference.
        out += [f"the tree of the arguments: {_tree(shape)}, it was {_tree(old_shape)}"] * 2
        return out
    for i, (a, b) in enumerate(zip(avals, old_avals, strict=True)):
        if a != b:
            out.append(f"{call.arg_name(i)}: {_kind(a, b)}, it was {_kind(b, a)}")
    return out or ["no visible difference: the known program has been dropped"]


def _tree(treedef: Any) -> str:
    """Format the tree of the arguments; an int instead of a tree stands for that many arguments, all of them arrays."""
    return f"{treedef} array{'s' * (treedef != 1)}" if isinstance(treedef, int) else str(treedef)


def _kind(aval: ShapedArray, other: ShapedArray) -> str:
    """Format the type ``aval``; if only weak typing distinguishes ``other``, say whether ``aval`` is weakly typed."""
    if (aval.shape, aval.dtype) == (other.shape, other.dtype) and aval.weak_type != other.weak_type:
        return f"{aval}, {'weakly' if aval.weak_type else 'strongly'} typed"
    return format(aval)
