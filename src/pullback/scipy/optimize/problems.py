"""Shared by the methods: results, checks of arguments, the main loop, and dense solutions for derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from pullback.control.loops import while_loop
from pullback.control.progress import Bar, check_progress
from pullback.core import dtypes
from pullback.core.array import Array, scalar_array
from pullback.core.errors import ArgumentError, DtypeError
from pullback.core.waiting import waiting
from pullback.numpy.promotion import inexact_operand, known_int, operand, quote
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import shapes
from pullback.primitives.linalg.lapack import matrix_transpose, product
from pullback.primitives.linalg.lu import identity, linear_solve
from pullback.transforms.autodiff.vmap import vmap

Function = Callable[..., Any]


class OptimizeResults(NamedTuple):
    """The result of :func:`minimize` and :func:`root`.

    Attributes:
      x: the solution, of the shape of ``x0``.
      success: whether ``x`` is a solution.
      status: int32, why the method ended; the function's docstring says what each number means.
      fun: the function at ``x``.
      jac: for :func:`minimize` the gradient at ``x``, which has no derivative; for :func:`root` None.
      hess_inv: for BFGS the approximation of the inverse Hessian, without a derivative; otherwise None.
      nfev: how often the function was evaluated.
      njev: how often its derivative was evaluated.
      nit: how many iterations there were.
      constr, multipliers, bound_multipliers, degeneracy: of :func:`minimize` with bounds or constraints, otherwise
        None: the constrained values, as a vector; the derivatives of ``fun`` by the limits of these values, and of
        the unknowns, zero where none is reached; and int32, why the solution has no derivative, or 0.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.optimize import minimize
    >>> found = minimize(lambda x: jnp.sum((x - 1.0) ** 2), jnp.zeros(2), method="BFGS")
    >>> print(found.x.round(3), found.success, found.jac.shape)
    [1. 1.] True (2,)
    """

    x: Array
    success: Array
    status: Array
    fun: Array
    jac: Any
    hess_inv: Any
    nfev: Array
    njev: Array
    nit: Array
    constr: Array | None = None
    multipliers: Array | None = None
    bound_multipliers: Array | None = None
    degeneracy: Array | None = None


def integer(value: int) -> Any:
    return scalar_array(np.int32(value))


def largest(x: Any) -> Any:
    """The largest absolute value of a vector."""
    return reductions.reduce_max(ops.abs(x), (0,)) if x.shape[0] else scalar_array(x.dtype.type(0))


def dot(x: Any, y: Any) -> Any:
    return reductions.reduce_sum(ops.mul(x, y), (0,))


def times(a: Any, x: Any) -> Any:
    return product(a, x[:, None])[:, 0]


def all_finite(x: Any) -> Any:
    return reductions.reduce_and(ops.is_finite_p.bind(x), tuple(range(len(x.shape))))


def start_of(name: str, fun: Any, x0: Any, args: Any, complex_too: bool = False) -> Array:
    """Return ``x0`` as an array of floats, or complex numbers if ``complex_too``; check ``fun`` and ``args``."""
    if not callable(fun):
        raise ArgumentError(f"{name}: fun must be a function, got {quote(fun)}")
    if not isinstance(args, tuple):
        raise ArgumentError(f"{name}: args must be a tuple of further arguments of fun, got {quote(args)}")
    x0 = inexact_operand(name, x0)
    if dtypes.is_complex(x0.dtype) and not complex_too:
        raise DtypeError(f"{name}: x0 must be real, got {dtypes.short_name(x0.dtype)}; pass real and imaginary parts")
    return ops.convert_element_type(x0, x0.dtype)


def is_real(x: Any) -> bool:
    """Whether ``x``, the type of a result, is an array of floats."""
    return hasattr(x, "dtype") and dtypes.is_inexact(x.dtype) and not dtypes.is_complex(x.dtype)


def flat(fun: Function, x0: Any, args: Any) -> tuple[Any, Function]:
    """Return ``x0`` as a vector, and ``fun`` as a function of vectors."""
    vector = shapes.reshape(x0, (x0.size,))
    return vector, lambda x: fun(shapes.reshape(x, x0.shape), *args)


def options_of(name: str, options: Any, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the defaults, updated by the options of the user; raise if an option is unknown."""
    if options is None:
        options = {}
    if not isinstance(options, Mapping):
        raise ArgumentError(f"{name}: options must be a mapping of names to values, got {quote(options)}")
    unknown = sorted(set(options) - set(defaults))
    if unknown:
        raise ArgumentError(
            f"{name}: this method has no option {unknown[0]!r}; the options are {', '.join(sorted(defaults))}"
        )
    return {**defaults, **{key: value for key, value in options.items() if value is not None}}


def count_of(name: str, what: str, value: Any) -> int:
    number = known_int(name, what, value)
    if number < 0:
        raise ArgumentError(f"{name}: {what} must not be negative, got {number}")
    return number


def tolerance_of(name: str, value: Any, dtype: Any) -> Any:
    return ops.convert_element_type(operand(name, value), dtype)


def run(name: str, step: Function, start: dict[str, Any], maxiter: int, progress: bool | str) -> dict[str, Any]:
    """Apply ``step`` to a state while its ``status`` is negative, at most ``maxiter`` times; return the final state.

    The state holds ``status`` and ``nit``, the number of iterations; the status becomes 1 if ``maxiter`` is reached.
    """
    check_progress(name, progress)
    bar, total = (Bar(progress), integer(maxiter)) if progress else (None, None)
    if bar is not None:
        bar.start(total)

    def body(state: Any) -> Any:
        new = step(state)
        new["nit"] = state["nit"] + 1
        if bar is not None:
            bar.tick(new["nit"], total)
        return new

    with nullcontext() if progress else waiting(name):
        end = while_loop(lambda s: (s["status"] < 0) & (s["nit"] < maxiter), body, start)
    if bar is not None:
        bar.tick(total, total)
    return {**end, "status": ops.where(end["status"] < 0, 1, end["status"])}


def dense_solution(matvec: Function, y: Any) -> Any:
    """Solve ``matvec(x) = y`` by forming the matrix, for derivatives."""
    n = y.shape[0]
    if n == 0:
        return y
    matrix = matrix_transpose(vmap(matvec)(identity(n, y.dtype)))
    return linear_solve(matrix, y[:, None])[:, 0]
