"""The loops of ``loops``, the module in C, on whole arrays of some thousand elements, for host rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from pullback.backends.host.parallel import cores

try:
    from pullback.backends.host import loops
except ImportError:  # it was installed without a compiler
    loops = None  # type: ignore[assignment]

MANY = 2048
"""The least elements of arrays for which host rules call a loop of the module: the call takes 3 us.

On fewer elements NumPy's functions take as long as that."""
MANY_PAIRS = 768
"""The same number for functions of two operands, of which NumPy computes one result after the other.

On an AMD EPYC 1000 arc tangents take NumPy 15.5 us and the loop 9.1; 512 take both 8."""


_SINGLE = np.dtype(np.float32)
_ELEMENTARY = (
    np.exp, np.expm1, np.log, np.log1p, np.sinh, np.cosh, np.tan, np.arcsin, np.arccos, np.arctan, np.arcsinh,
    np.arccosh, np.arctanh, np.cbrt, np.arctan2, np.power,
)  # fmt: skip


def _with_wide_vectors() -> set[str]:
    """Return the names of those that NumPy computes by vectors of 512 bits on this processor, in single precision."""
    try:
        from numpy.lib.introspect import opt_func_info
    except ImportError:  # older releases
        return set()
    names = "|".join(f.__name__ for f in _ELEMENTARY)
    found = opt_func_info(func_name=f"^({names})$", signature="^f+$")
    current = {name: [of_types["current"] for of_types in kinds.values()] for name, kinds in found.items()}
    return {name for name, targets in current.items() if any("AVX512" in t or "X86_V4" in t for t in targets)}


_WIDE = _with_wide_vectors()
REPLACED = frozenset(f for f in _ELEMENTARY if loops is not None and f.__name__ not in _WIDE)
"""The functions of NumPy's that a loop of the module computes for many numbers in single precision.

Without vectors of 512 bits most of NumPy's compute one number after another, and take five to twenty times as long."""


@lru_cache(maxsize=1024)
def loop(name: str) -> tuple[int, int] | None:
    """Return the loop of the module that has a name; None if there is none."""
    return loops.own(name)


def apply(name: str, dtype: np.dtype[Any], *operands: Any, helpers: int = 0) -> Any:
    """Apply a loop of the module to arrays and numbers, by this thread and others.

    Args:
      name: the loop.
      dtype: that of the result.
      operands: arrays of one shape whose elements are side by side in row-major order, and arrays without axes.
      helpers: how many threads may help.

    Returns:
      A new array; None if there is no module, no such loop, or operands of other shapes.
    """
    found = None if loops is None else loop(name)
    if found is None:
        return None
    shape = max([x.shape for x in operands], key=len)
    values: list[Any] = []
    for x in operands:
        if x.shape and (x.shape != shape or not x.flags.c_contiguous):
            return None
        values.append(x.reshape(1, -1))
    out = np.empty(shape, dtype)
    loops.run((1, out.size), [*values, out.reshape(1, -1)], [(found, tuple(range(len(values) + 1)))], _BLOCK, helpers)
    return out


def of_many(ufunc: np.ufunc) -> Callable[..., Any]:
    """Return the function that computes a ufunc of many numbers: in single precision by a loop of the module."""
    if ufunc not in REPLACED:
        return ufunc

    def of_arrays(*operands: Any) -> Any:
        if any(getattr(x, "dtype", _SINGLE) != _SINGLE for x in operands):
            return ufunc(*operands)
        name, arrays = f"{ufunc.__name__} f", [np.asarray(x, _SINGLE) for x in operands]
        done = apply(name, _SINGLE, *arrays, helpers=min(cores() - 1, max([x.size for x in arrays]) // _SHARE))
        if done is not None:  # mostly: what is below takes 15 us
            return done
        arrays = list(np.broadcast_arrays(*arrays))
        out = np.empty_like(arrays[0]) if len({x.strides for x in arrays}) == 1 else np.empty(arrays[0].shape, _SINGLE)
        order = sorted(range(out.ndim), key=out.strides.__getitem__, reverse=True)
        arrays = [np.ascontiguousarray(x.transpose(order)) for x in arrays]
        done = apply(name, _SINGLE, *arrays, helpers=min(cores() - 1, out.size // _SHARE))
        return ufunc(*operands) if done is None else done.transpose(np.argsort(order))

    return of_arrays


_SHARE = 1 << 14  # The elements that are worth a thread.
_BLOCK = 1 << 16  # The bytes of a block, of which some operands and a result fit into a core's own cache.
