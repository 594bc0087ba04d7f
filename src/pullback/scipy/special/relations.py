"""Functions whose values SciPy computes on the host, and whose derivatives are relations among such functions.

All are one primitive, whose parameter ``function`` is a key of ``RELATIONS``. A compiled program contains the formula
of a function, or, where it has none, a call of the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from pullback.backends.host import parallel
from pullback.core import dtypes
from pullback.core.array import SCALARS, shape_of
from pullback.core.errors import DtypeError, NotDifferentiableError
from pullback.core.interrupts import imported
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.core.types import ZERO, ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.checks import INEXACT, broadcast_shape, check_dtype, same_dtype
from pullback.primitives.declare import batch_broadcasting
from pullback.primitives.special.precision import doubled
from pullback.primitives.sums import add_any
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct
from pullback.transforms.programs.callbacks import pure_callback

Slope = Callable[..., Any]
"""``slope(*operands)`` returns the derivative by an operand, of the broadcast shape."""


class Relation(NamedTuple):
    """A function of the table.

    Attributes:
      host: a function of NumPy arrays of double precision, which returns an array.
      operands: the names of the operands, for errors.
      slopes: for each operand its :data:`Slope`, or None if the function has no derivative by it.
      formula: the same function of arrays of double precision, real or complex; None to call ``host``.
      is_complex: whether operands may be complex numbers. Their function is computed on the host.
    """

    host: Callable[..., Any]
    operands: tuple[str, ...]
    slopes: tuple[Slope | None, ...]
    formula: Callable[..., Any] | None
    is_complex: bool


RELATIONS: dict[str, Relation] = {}


def relation(
    name: str,
    operands: str,
    *slopes: Slope | None,
    host: Callable[..., Any] | None = None,
    result: int | None = None,
    inside: Callable[..., Any] | None = None,
    formula: Callable[..., Any] | None = None,
    is_complex: bool = False,
) -> Callable[..., Any]:
    """Declare a function, and return it as a function of arrays of one inexact dtype.

    Args:
      name: its name in jaxprs and errors; SciPy's, if neither ``host`` nor ``result`` are passed.
      operands: the names of the operands, separated by commas.
      *slopes: for each operand its :data:`Slope`, or None.
      host: a function of NumPy arrays; by default that of ``scipy.special``.
      result: which of several results of ``scipy.special``'s function to return; the part of ``name`` before a dot is
        then the name of that function.
      inside: see :func:`scipys`.
      formula: see :class:`Relation`.
      is_complex: see :class:`Relation`.
    """
    names = tuple(operands.split(", "))
    RELATIONS[name] = Relation(host or _of_scipy(name, result, inside), names, slopes, formula, is_complex)

    def bind(*xs: Any) -> Any:
        return scipy_special_p.bind(*xs, function=name)

    return bind


_SHORT = {"cosm1", "erfi", "j0", "j1", "rgamma", "y0", "y1"}
"""Functions that take SciPy less than 20 ns for an element, so that fewer than 32,768 are not worth a thread."""


def scipys(name: str, inside: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Return SciPy's function of NumPy arrays; NaN outside of a range where it ends soon.

    Args:
      name: the name of the function.
      inside: a function of the operands, which returns a mask of that range; None for all numbers.
    """

    least = 4 * parallel.MANY if name in _SHORT else parallel.MANY

    def call(*xs: Any) -> Any:
        function = getattr(imported("scipy.special"), name)
        large = all(x.size >= least for x in xs)
        many = parallel.in_parallel(function, xs, [xs[0].dtype] * function.nout) if large else None
        if many is None:
            return function(*xs)
        return many[0] if function.nout == 1 else tuple(many)

    def within(*xs: Any) -> Any:
        assert inside is not None
        mask = inside(*xs)
        if np.all(mask):
            return call(*xs)
        found = call(*[np.where(mask, x, 1) for x in xs])
        if isinstance(found, tuple):
            return tuple(np.where(mask, y, np.nan) for y in found)
        return np.where(mask, found, np.nan)

    return call if inside is None else within


def _of_scipy(name: str, result: int | None, inside: Callable[..., Any] | None) -> Callable[..., Any]:
    call = scipys(name.partition(".")[0], inside)
    return call if result is None else lambda *xs: call(*xs)[result]


scipy_special_p = Primitive("scipy_special", keeps_weak_type=False, elementwise=True, cost=Cost.SPECIAL)
scipy_special_p.batch_rule = batch_broadcasting(scipy_special_p)


@scipy_special_p.abstract_eval
def _shape(*avals: ShapedArray, function: str) -> ShapedArray:
    dtype = same_dtype(function, avals) if len(avals) > 1 else avals[0].dtype
    check_dtype(function, INEXACT, dtype)
    if dtypes.is_complex(dtype) and not RELATIONS[function].is_complex:
        raise DtypeError(f"{function} takes real numbers, got {dtypes.short_name(dtype)}")
    return ShapedArray(broadcast_shape(function, [a.shape for a in avals]), dtype)


def wide(x: Any) -> np.ndarray[Any, Any]:
    """Convert an operand of a host rule to an array of double precision."""
    array = np.asarray(x)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64, copy=False)


def _on_host(*operands: Any, function: str) -> Any:
    dtype = next(x.dtype for x in operands if type(x) not in SCALARS)
    return np.asarray(RELATIONS[function].host(*map(wide, operands))).astype(dtype, copy=False)[()]


scipy_special_p.host_rule = _on_host


@scipy_special_p.decomposition
def _compiled(*operands: Any, function: str) -> Any:
    """Evaluate the formula, or call the host."""
    dtype = next(x.dtype for x in operands if type(x) not in SCALARS)
    formula = RELATIONS[function].formula
    shape = broadcast_shape(function, [shape_of(x) for x in operands])
    if formula is not None and not dtypes.is_complex(dtype):
        arrays = [shapes.full((), x, dtype) if type(x) in SCALARS else x for x in operands]
        return doubled(formula)(*[shapes.broadcast_to(x, shape) for x in arrays])

    def call(*xs: Any) -> Any:
        return np.broadcast_to(_on_host(*xs, function=function), shape)

    return pure_callback(call, ShapeDtypeStruct(shape, dtype), *operands, vmap_method="broadcast_all")


@scipy_special_p.jvp
def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, function: str) -> Any:
    found = RELATIONS[function]
    terms = []
    for name, slope, t in zip(found.operands, found.slopes, tangents, strict=True):
        if t is ZERO:
            continue
        if slope is None:
            raise NotDifferentiableError(
                f"{function} has no derivative by {name}, a formula of which is unknown; pass {name} as a constant, or "
                f"as stop_gradient({name})"
            )
        terms.append(ops.mul(t, slope(*primals)))
    return scipy_special_p.bind(*primals, function=function), reduce(add_any, terms)
