"""Updates in place of what they read, which the compiler gets wrong.

A ``dynamic_update_slice``, or a scatter of one window, takes the memory of its operand, and is computed in one loop
with its update. The compiler sees to it that the update does not read the operand elsewhere. It does not see that the
operand is another array in another shape, ``a.reshape(...)``, and that the update reads ``a``: then the update reads
elements that are overwritten already. So does JAX's. :func:`computed_first` finds such updates in the text that is
written.
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
"""Operations whose result may be their operand, in another shape."""


def computed_first(hlo: Builder, x: Value, update: Value, others: Sequence[Value] = ()) -> Value:
    """The update, computed before the operand is changed, if it may read memory that the result takes.

    Args:
      hlo: writes the function.
      x: the operand.
      update: what replaces a part of it.
      others: further operands: where the part is.
    """
    name = _base(x.name)
    is_argument = name.startswith("%arg")
    if is_argument and not hlo.called:
        return update
    makers = _makers(hlo)
    if not is_argument and not _SAME.match(makers.get(name, "")):
        return update
    same: set[str] = set()
    waiting = [name]
    for name in waiting:
        if name not in same:
            same.add(name)
            if _SAME.match(makers.get(name, "")):
                waiting += _NAMES.findall(makers[name])[1:]
    inputs = hlo.called and any(name.startswith("%arg") for name in same)
    seen: set[str] = set()
    waiting = [_base(v.name) for v in (update, *others)]
    for name in waiting:
        if name in seen:
            continue
        seen.add(name)
        if name in same or (inputs and name.startswith("%arg")):
            return materialized(hlo, update)
        waiting += _NAMES.findall(makers.get(name, ""))[1:]
    return update


def materialized(hlo: Builder, x: Value) -> Value:
    """An array that is computed before what uses it, in memory of its own.

    It goes through a loop of no steps, which the compiler neither removes nor fuses, for it cannot know that. An
    optimization barrier is gone before operations are fused, and a reduction over an axis of one is taken out.
    """
    if 0 in x.shape:
        return x
    first = hlo.reshape(hlo.slice(x, (0,) * x.ndim, (1,) * x.ndim), ())
    if not dtypes.is_inexact(x.dtype):  # an integer is known to be equal to itself
        first = hlo.convert(first, np.dtype(np.float32))
    never = hlo.elementwise("stablehlo.and", hlo.compare(first, first, "EQ"), hlo.compare(first, first, "NE"))
    other = "stablehlo.not" if x.dtype == _BOOL else "stablehlo.negate"
    kinds = [((), _BOOL), (x.shape, x.dtype)]
    condition = hlo.region(kinds, lambda pending, value: [pending])
    step = hlo.region(kinds, lambda pending, value: [hlo.number(False, _BOOL), hlo.elementwise(other, value)])
    return hlo.multi_result("stablehlo.while", [never, x], kinds, regions=[condition, step])[1]


def _base(name: str) -> str:
    """The name of an operation, from that of one of its results."""
    return name.partition("#")[0]


def _makers(hlo: Builder) -> dict[str, str]:
    """The lines that make the values of the function or region that is being written, by their names.

    They are kept with the function, so that each line is looked at once.
    """
    lines, count, makers = hlo.index
    if lines is not hlo.lines:
        count, makers = 0, {}
    for line in hlo.lines[count:]:
        found = _NAMES.match(line)
        if found:
            makers[found.group()] = line
    hlo.index = hlo.lines, len(hlo.lines), makers
    return makers
