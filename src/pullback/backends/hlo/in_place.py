"""A workaround for in-place updates that the compiler gets wrong.

A ``dynamic_update_slice``, or a scatter of one window, reuses the memory of its operand, and is fused with its update
into one loop. The compiler makes sure that the update reads the operand only at the index that it writes. It misses
that the operand may alias another array, as ``a.reshape(...)`` does, which the update reads: then the update reads
elements that are overwritten already, in JAX too. :func:`computed_first` finds these updates in the text of a function.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pullback.core import dtypes

if TYPE_CHECKING:
    from pullback.backends.hlo.builder import Builder, Value

_BOOL = np.dtype(bool)
_NAMES = re.compile(r"%\w+")
_SAME = re.compile(
    r"%\w+(?::\d+)? = "
    r'(?:"stablehlo\.(?:reshape|dynamic_reshape|transpose|bitcast_convert|optimization_barrier)"|func\.call)'
)
"""Operations whose result may share the memory of their operand."""

_EXACT = re.compile(
    r'%\w+ = "?stablehlo\.(?:constant|iota|compare|select|and|or|not|negate|abs|sign|maximum|minimum|clamp|'
    r"broadcast_in_dim|reshape|transpose|slice|reverse)\b"
)
"""Operations that do not round."""
_MOST = 50
"""The most operations that are looked at."""


def computed_first(hlo: Builder, x: Value, update: Value, others: Sequence[Value] = ()) -> Value:
    """Return the update of an in-place operation, in memory that the operation does not overwrite.

    If ``update`` may be computed from the memory of ``x``, it is first written to memory of its own. Otherwise it is
    returned unchanged.

    Args:
      hlo: the builder of the function.
      x: the operand, whose memory the operation overwrites.
      update: the new elements.
      others: further operands of the operation, such as the start indices.
    """
    name = _base(x.name)
    is_argument = name.startswith("%arg")
    if is_argument and not hlo.called:
        return update
    definitions = _definitions(hlo)
    if not is_argument and not _SAME.match(definitions.get(name, "")):
        return update
    same: set[str] = set()
    waiting = [name]
    for name in waiting:
        if name not in same:
            same.add(name)
            if _SAME.match(definitions.get(name, "")):
                waiting += _NAMES.findall(definitions[name])[1:]
    inputs = hlo.called and any(name.startswith("%arg") for name in same)
    visited: set[str] = set()
    waiting = [_base(v.name) for v in (update, *others)]
    for name in waiting:
        if name in visited:
            continue
        visited.add(name)
        if name in same or (inputs and name.startswith("%arg")):
            return materialized(hlo, update)
        waiting += _NAMES.findall(definitions.get(name, ""))[1:]
    return update


def materialized(hlo: Builder, x: Value) -> Value:
    """Write an array to memory of its own before any operation that uses it, and return it.

    The array passes through a loop of zero steps. The compiler cannot know the number of steps, so it neither fuses nor
    removes the loop. It would remove an optimization barrier, or a reduction over an axis of size 1.
    """
    if 0 in x.shape:
        return x
    first = hlo.reshape(hlo.slice(x, (0,) * x.ndim, (1,) * x.ndim), ())
    if not dtypes.is_inexact(x.dtype):  # the compiler knows that an integer equals itself
        first = hlo.convert(first, np.dtype(np.float32))
    never = hlo.elementwise("stablehlo.and", hlo.compare(first, first, "EQ"), hlo.compare(first, first, "NE"))
    other = "stablehlo.not" if x.dtype == _BOOL else "stablehlo.negate"
    kinds = [((), _BOOL), (x.shape, x.dtype)]
    condition = hlo.region(kinds, lambda pending, value: [pending])
    step = hlo.region(kinds, lambda pending, value: [hlo.number(False, _BOOL), hlo.elementwise(other, value)])
    return hlo.multi_result("stablehlo.while", [never, x], kinds, regions=[condition, step])[1]


def is_exact(hlo: Builder, x: Value) -> bool:
    """Whether ``x`` is computed from the program's arguments without rounding: then it is the same in every kernel.

    Arguments of functions that are called do not count, for the compiler may compute them where they are used.
    """
    definitions = _definitions(hlo)
    constants = {line.partition(" ")[0] for line in hlo.head if _EXACT.match(line)}
    visited: set[str] = set()
    waiting = [_base(x.name)]
    for name in waiting:
        if name in visited or name in constants:
            continue
        visited.add(name)
        if len(visited) > _MOST:
            return False
        if name.startswith("%arg"):
            if hlo.called:
                return False
        elif _EXACT.match(definitions.get(name, "")):
            waiting += _NAMES.findall(definitions[name])[1:]
        else:
            return False
    return True


def _base(name: str) -> str:
    """The name of an operation from the name of one of its results: ``%3#1`` -> ``%3``."""
    return name.partition("#")[0]


def _definitions(hlo: Builder) -> dict[str, str]:
    """The line that defines each value of the current function or region, by the value's name.

    The builder caches this dictionary, so that each line is parsed once.
    """
    lines, count, definitions = hlo.index
    if lines is not hlo.lines:
        count, definitions = 0, {}
    for line in hlo.lines[count:]:
        found = _NAMES.match(line)
        if found:
            definitions[found.group()] = line
    hlo.index = hlo.lines, len(hlo.lines), definitions
    return definitions
