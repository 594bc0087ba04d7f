"""Products with the exponential of a sparse matrix: ``expm_multiply``."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from pullback.control.fori_loop import fori_loop
from pullback.control.scan import scan
from pullback.core import dtypes
from pullback.core.array import Array, ArrayLike, host_value, is_on_host
from pullback.core.errors import ArgumentError
from pullback.numpy import creation
from pullback.numpy.joining import concatenate
from pullback.numpy.promotion import inexact_operand, known_int
from pullback.primitives import elementwise as ops
from pullback.primitives.operands import stop_gradient
from pullback.primitives.reductions import reduce_max, reduce_sum
from pullback.scipy.sparse.linalg.direct import right_side
from pullback.scipy.sparse.linalg.entries import Entries, entries_of
from pullback.scipy.sparse.linalg.systems import Matrix

_MOST_NORM = 4
"""The largest norm of the matrix in a step: in its series, no term is more than 11 times as large as the vector."""


# long: half of it is its documentation
def expm_multiply(
    A: Matrix,
    B: ArrayLike,
    start: ArrayLike | None = None,
    stop: ArrayLike | None = None,
    num: int | None = None,
    endpoint: bool | None = None,
    traceA: ArrayLike | None = None,
) -> Array:
    """Multiply by the exponential of a sparse matrix, which is not formed: exp(A) B, or exp(t A) B at several times t.

    Its operations are products of sparse and dense arrays, so it has derivatives in both modes and to any order, by the
    elements of ``A``, by ``B``, and by the times.

    Args:
      A: a sparse matrix (n, n) of ``experimental.sparse`` or SciPy.
      B: a vector (n,), or a matrix (n, k).
      start, stop: the first and the last time; with them the result has an axis of times in front.
      num: the number of times, 50 by default.
      endpoint: whether ``stop`` is among them, by default True.
      traceA: the trace of A, if it is known; any number makes the result right, and the trace makes it fast.

    Returns:
      exp(A) B, of the shape of ``B``; or an array (num, n) or (num, n, k).

    Raises:
      ShapeError: the matrix is not square, or the shapes do not fit (a TypeError and a ValueError).
      OperandError: ``A`` is no sparse matrix (a TypeError).
      ArgumentError: only some of ``start`` and ``stop`` are given, or ``num`` is below 1 (a TypeError and
        ValueError).

    Source: the shifted and scaled Taylor series of A. H. Al-Mohy and N. J. Higham 2011, "Computing the action of the
    matrix exponential, with an application to exponential integrators", with a bound of the norm of each step that
    keeps the terms small.

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental.sparse import BCOO
    >>> from pullback.scipy.sparse.linalg import expm_multiply
    >>> turn = BCOO.fromdense(jnp.array([[0.0, -1.0], [1.0, 0.0]]))
    >>> print(expm_multiply(turn, jnp.array([1.0, 0.0]), 0.0, jnp.pi, 3).round(4) + 0.0)
    [[ 1.  0.]
     [ 0.  1.]
     [-1.  0.]]
    """
    name = "expm_multiply"
    if (start is None) != (stop is None) or (start is None and num is not None):
        raise ArgumentError(f"{name}: pass both start and stop, or neither and no num")
    a, x = right_side(name, entries_of(name, A), B)
    if a.shape[0] == 0:
        return x  # type: ignore[no-any-return]
    exponential = _Exponential(a, traceA)
    if start is None:
        return exponential(1, x)  # type: ignore[no-any-return]
    count = 50 if num is None else known_int(name, "num", num)
    if count < 1:
        raise ArgumentError(f"{name}: num must be at least 1, got {count}")
    real = dtypes.to_real(x.dtype)
    first, last = (ops.convert_element_type(inexact_operand(name, t), real) for t in (start, stop))
    intervals = count - 1 if endpoint is None or endpoint else count
    step = (last - first) / max(intervals, 1)
    x = exponential(first, x)
    forward = exponential.over(step)

    def next_time(x: Any, _: Any) -> tuple[Any, Any]:
        x = forward(x)
        return x, x

    _, rest = scan(next_time, x, None, length=count - 1)
    return concatenate([x[None], rest])  # type: ignore[no-any-return]


class _Exponential:
    """The exponential of t A, which multiplies arrays.

    Attributes:
      a: the entries of A.
      shift: a number near the trace of A divided by n; the series is that of A - shift.
      norm: a bound of the 1-norm of A - shift.
      eps: the precision of the dtype.
    """

    def __init__(self, a: Entries, trace: Any) -> None:
        n = a.shape[0]
        dtype = a.data.dtype
        self.a = a
        ones = creation.ones(n, dtype)
        fixed = stop_gradient(a.data)
        diagonal = a.indices[:, 0] == a.indices[:, 1]
        on_diagonal = a._replace(data=ops.where(diagonal, fixed, 0)).times(ones)
        trace = reduce_sum(on_diagonal, (0,)) if trace is None else inexact_operand("expm_multiply", trace)
        self.shift = ops.convert_element_type(stop_gradient(trace), dtype) / n
        others = a._replace(data=ops.where(diagonal, 0, ops.abs(fixed)))
        columns = others.times(creation.ones(n, others.data.dtype), transposed=True)
        self.norm = reduce_max(columns + ops.abs(on_diagonal - self.shift), (0,))
        self.eps = float(np.finfo(dtypes.to_real(dtype)).eps)

    def __call__(self, t: Any, x: Any) -> Any:
        return self.over(t)(x)

    def over(self, t: Any) -> Any:
        """Return the function that multiplies by exp(t A)."""
        norm = self.norm * ops.abs(stop_gradient(t))
        size = ops.ceil_p.bind(norm / _MOST_NORM)
        steps = ops.max_p.bind(ops.where(ops.is_finite_p.bind(size), size, 1), 1)
        terms = _terms(float(host_value(norm / steps)) if is_on_host(steps) else _MOST_NORM, self.eps)
        count: Any = (
            int(host_value(steps)) if is_on_host(steps) else ops.convert_element_type(steps, np.dtype(np.int32))
        )
        scale = ops.convert_element_type(t / steps, self.a.data.dtype)
        ending = ops.exp(scale * self.shift)

        def step(loop: Any, _: Any, x: Any) -> Any:
            def term(k: Any, state: Any) -> Any:
                total, last = state
                length = scale / (k if isinstance(k, int) else ops.convert_element_type(k, scale.dtype))
                last = length * self.a.times(last) - length * self.shift * last
                return total + last, last

            return ending * loop(1, terms + 1, term, (x, x))[0]

        def apply(x: Any) -> Any:
            known = isinstance(count, int) and all(map(is_on_host, (x, scale, self.a.data, self.a.indices)))
            loop = _in_python if known else fori_loop
            return loop(0, count, partial(step, loop), x)

        return apply


def _in_python(first: int, end: int, step: Any, x: Any) -> Any:
    """Loop over known arrays: the host multiplies sparse matrices faster than compiled loops do."""
    for i in range(first, end):
        x = step(i, x)
    return x


def _terms(norm: float, eps: float) -> int:
    """Return how many terms of the exponential's series leave a remainder below the precision ``eps``, with a margin.

    The margin is for derivatives, whose series converge as fast, one or two terms later.
    """
    norm = norm if norm < _MOST_NORM else _MOST_NORM  # also of NaN
    return next(k for k in range(1, 200) if norm**k / math.factorial(k) < eps / 2) + 3
