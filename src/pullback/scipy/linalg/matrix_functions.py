"""Functions of square matrices: exponential, logarithm, square root, sign, and any analytic one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, overload

import numpy as np

from pullback.control.fori_loop import fori_loop
from pullback.control.loops import while_loop
from pullback.core import dtypes
from pullback.core.arguments import flag, is_listed
from pullback.core.array import Array, ArrayLike, typeof
from pullback.core.errors import ArgumentError, DtypeError, ShapeError
from pullback.numpy import creation, diagonals
from pullback.numpy import linalg as numpy_linalg
from pullback.numpy.decompositions import eig
from pullback.numpy.promotion import inexact_operand, inexact_operands, known_int
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import shapes
from pullback.primitives.linalg.decompositions import diagonal, on_diagonal
from pullback.primitives.linalg.lapack import adjoint, check_decomposable, product, triangular_solve
from pullback.primitives.linalg.lu import element, inverse, linear_solve
from pullback.primitives.linalg.matrix_equations import schur_factors, sylvester
from pullback.primitives.linalg.matrix_functions import expm_frechet_p, expm_p, largest_norm, logm_p, sqrtm_p
from pullback.primitives.operands import stop_gradient
from pullback.transforms.autodiff.jvp import jvp
from pullback.transforms.autodiff.vmap import vmap
from pullback.transforms.custom.closure import without_tracers
from pullback.transforms.custom.custom_rules import custom_jvp

__all__ = ["expm", "expm_frechet", "funm", "logm", "signm", "sqrtm"]


def _square(name: str, a: Any) -> Any:
    """Convert ``a`` to square matrices of floats or complex numbers; raise unless LAPACK supports their dtype."""
    a = inexact_operand(name, a)
    numpy_linalg.require_square(name, a)
    check_decomposable(name, typeof(a))
    return a


def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """The exponential of square matrices.

    Args:
      A: an array (..., n, n) of numbers; integers become floats.
      upper_triangular: whether to read the upper triangle alone, and take the rest to be zero.
      max_squarings: how often the matrix may be halved before it is approximated.

    Returns:
      An array of the shape of ``A``; NaN where a matrix is not finite, or its 1-norm is greater than
      ``2**max_squarings`` times 4.25, or 3.93 for float32.

    Raises:
      ShapeError: the matrices are not square (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).
      ArgumentError: a negative ``max_squarings`` (a TypeError and a ValueError).

    Source: scaling and squaring of Padé's approximant, whose degree is chosen by the norm; N. J. Higham 2005, "The
    scaling and squaring method for the matrix exponential revisited"; A. H. Al-Mohy and N. J. Higham 2009, "A new
    scaling and squaring algorithm for the matrix exponential". The derivative is :func:`expm_frechet`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> print(linalg.expm(jnp.array([[0.0, 1.0], [0.0, 0.0]])))
    [[1. 1.]
     [0. 1.]]
    """
    upper_triangular = flag("expm", "upper_triangular", upper_triangular)
    a = _square("expm", A)
    squarings = known_int("expm", "max_squarings", max_squarings)
    if squarings < 0:
        raise ArgumentError(f"expm: max_squarings must not be negative, got {squarings}")
    if upper_triangular:
        a = diagonals.triu(a)
    if 0 in a.shape:
        return a
    rank = len(a.shape)
    norm = reductions.reduce_max(reductions.reduce_sum(ops.abs(stop_gradient(a)), (rank - 2,)), (rank - 2,))
    small = norm <= largest_norm(a.dtype) * 2.0 ** min(squarings, 1000)
    return ops.where(small[..., None, None], expm_p.bind(a), np.nan)


@overload
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: Literal[True] = True
) -> tuple[Array, Array]: ...
@overload
def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: Literal[False]) -> Array: ...
@overload
def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True) -> Any: ...
def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True) -> Any:
    """The derivative of the exponential of matrices at A in the direction E.

    Args:
      A: an array (..., n, n) of numbers; integers become floats.
      E: the directions, of the shape of ``A``.
      method: without effect; SciPy's "SPS" and "blockEnlarge" are accepted.
      compute_expm: whether to return the exponential too.

    Returns:
      The derivative, or the exponential and the derivative; arrays of the shape of ``A``.

    Raises:
      ShapeError: the matrices are not square, or not of one shape (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).
      ArgumentError: an unknown ``method`` (a TypeError and a ValueError).

    Source: A. H. Al-Mohy and N. J. Higham 2009, "Computing the Fréchet derivative of the matrix exponential".

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> print(linalg.expm_frechet(jnp.zeros((2, 2)), jnp.array([[1.0, 2.0], [3.0, 4.0]]), compute_expm=False))
    [[1. 2.]
     [3. 4.]]
    """
    compute_expm = flag("expm_frechet", "compute_expm", compute_expm)
    if not is_listed(method, (None, "SPS", "blockEnlarge")):
        raise ArgumentError(f"expm_frechet: method must be None, 'SPS' or 'blockEnlarge', got {method!r}")
    a, e = (_square("expm_frechet", x) for x in inexact_operands("expm_frechet", A, E))
    if a.shape != e.shape:
        raise ShapeError(f"expm_frechet: A and E must have the same shape, got {a.shape} and {e.shape}")
    derivative = expm_frechet_p.bind(a, e)
    return (expm_p.bind(a), derivative) if compute_expm else derivative


def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """The principal square root of square matrices, whose eigenvalues have no negative real part.

    Args:
      A: an array (..., n, n) of numbers.
      blocksize: without effect.

    Returns:
      A complex array of the shape of ``A``. NaN where a matrix is not finite or has no root, as ``[[0, 1], [0, 0]]``.
      Where the root of a real matrix is real, take its real part. The derivative solves X dX + dX X = dA, and is NaN
      where A is singular.

    Raises:
      ShapeError: the matrices are not square (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).

    Source: A. Bjorck and S. Hammarling 1983, "A Schur method for the square root of a matrix".

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> print(linalg.sqrtm(jnp.array([[4.0, 1.0], [0.0, 4.0]])).real)
    [[2.   0.25]
     [0.   2.  ]]
    """
    return sqrtm_p.bind(_complex(_square("sqrtm", A)))


def _complex(a: Any) -> Any:
    return ops.convert_element_type(a, dtypes.to_complex(a.dtype))


def logm(A: ArrayLike) -> Array:
    """The principal logarithm of square matrices, whose eigenvalues have imaginary parts within -pi and pi.

    Args:
      A: an array (..., n, n) of numbers.

    Returns:
      A complex array of the shape of ``A``. NaN where a matrix is not finite, or is singular and so has no logarithm.
      Where A is real and has no negative eigenvalues the imaginary part is zero.

    Raises:
      ShapeError: the matrices are not square (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).

    Source: N. J. Higham 2008, "Functions of Matrices", section 11.5: square roots of the Schur form until it is near
    the identity, then Padé's approximant in partial fractions.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> print(linalg.logm(jnp.array([[1.0, 2.0], [0.0, 1.0]])).real)
    [[0. 2.]
     [0. 0.]]
    """
    return logm_p.bind(_complex(_square("logm", A)))


def signm(A: ArrayLike) -> Array:
    """The sign of square matrices: the same eigenvectors, with eigenvalues 1 and -1 for the right and left half plane.

    Args:
      A: an array (..., n, n) of numbers; integers become floats.

    Returns:
      An array of the shape of ``A``, which is its own inverse. NaN where a matrix is not finite, or has eigenvalues on
      the imaginary axis.

    Raises:
      ShapeError: the matrices are not square (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).

    Source: N. J. Higham 2008, "Functions of Matrices", chapter 5: Newton's iteration, scaled by determinants; with N =
    S A the derivative solves N dS + dS N = dA - S dA S.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> print(linalg.signm(jnp.array([[2.0, 1.0], [0.0, -3.0]])).round(4))
    [[ 1.   0.4]
     [ 0.  -1. ]]
    """
    a = _square("signm", A)
    if 0 in a.shape:
        return a
    if len(a.shape) == 2:
        return _sign_of_one(a)
    return shapes.reshape(vmap(_sign_of_one)(shapes.reshape(a, (math.prod(a.shape[:-2]), *a.shape[-2:]))), a.shape)


@custom_jvp
def _sign_of_one(a: Any) -> Any:
    epsilon = float(np.finfo(dtypes.to_real(a.dtype)).eps)
    n = a.shape[-1]

    def step(state: Any) -> Any:
        x, _, scaling, count = state
        size = numpy_linalg.slogdet(x)[1]
        factor = ops.where(scaling, ops.exp(-size / n), 1).astype(x.dtype)
        new = (x * factor + inverse(x) / factor) / 2
        change = ops.abs(new - x).max() / ops.abs(new).max()
        return new, change, scaling & (change > 1e-2), count + 1

    def going_on(state: Any) -> Any:
        _, change, _, count = state
        return (change > n * epsilon) & (count < 100)

    start = (a, creation.array(np.inf, dtypes.to_real(a.dtype)), creation.array(True), creation.array(0))
    x = while_loop(going_on, step, start)[0]
    error = ops.abs(product(x, x) - creation.eye(n, dtype=a.dtype)).max()
    converged = error <= epsilon**0.5 * (1 + ops.abs(x).max() ** 2)
    return ops.where(converged, x, np.nan)


@_sign_of_one.defjvp
def _sign_jvp(primals: Any, tangents: Any) -> Any:
    (a,), (t,) = primals, tangents
    sign = _sign_of_one(a)
    size = product(sign, a)
    return sign, sylvester(size, size, t - product(sign, product(t, sign)))


@overload
def funm(A: ArrayLike, func: Callable[[Array], ArrayLike], disp: Literal[True] = True) -> Array: ...
@overload
def funm(A: ArrayLike, func: Callable[[Array], ArrayLike], disp: Literal[False]) -> tuple[Array, Array]: ...
@overload
def funm(A: ArrayLike, func: Callable[[Array], ArrayLike], disp: bool = True) -> Any: ...
def funm(A: ArrayLike, func: Callable[[Array], ArrayLike], disp: bool = True) -> Any:
    """A function of a square matrix: ``func`` of its eigenvalues, with the same eigenvectors.

    Args:
      A: a matrix (n, n) of numbers.
      func: an elementwise function of an array of complex numbers, analytic near the eigenvalues. The result is
        differentiable in the arrays that it closes over.
      disp: False to return an estimate of the error too.

    Returns:
      A complex matrix; unless ``disp`` also an estimate of its relative error, a number. Parlett's recurrence divides
      by differences of eigenvalues: close eigenvalues cost digits, as the estimate shows, and equal ones make elements
      infinite or NaN unless the matrix is diagonal. The derivative, computed by eigenvectors, divides by the
      differences too.

    Raises:
      ShapeError: ``A`` is no square matrix (a TypeError and a ValueError).
      DtypeError: floats of 16 bits, or a function whose results have another shape (a TypeError).

    Source: B. N. Parlett 1976, "A recurrence among the elements of functions of triangular matrices"; for the
    derivative Daleckii and Krein (N. J. Higham 2008, "Functions of Matrices", theorem 3.11).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> print(linalg.funm(jnp.array([[0.0, 1.0], [0.0, 1.0]]), jnp.exp).real.round(4))
    [[1.     1.7183]
     [0.     2.7183]]
    """
    disp = flag("funm", "disp", disp)
    a = _complex(_square("funm", A))
    if len(a.shape) != 2:
        raise ShapeError(f"funm: A must be one square matrix, got shape {a.shape}; use vmap for several")
    if not callable(func):
        raise ArgumentError(f"funm: func must be a function of an array, got {func!r}")
    n = a.shape[0]
    by_elements, captured = without_tracers(func, creation.zeros(n, a.dtype))

    @custom_jvp
    def value(a: Any, *captured: Any) -> Any:
        z, t = schur_factors(a)
        values = _values(by_elements, diagonal(t), captured)
        f, smallest = _parlett(t, values)
        return product(z, product(f, adjoint(z))), _estimated_error(t, smallest)

    @value.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        out = value(*primals)
        _, dot = jvp(lambda a, *captured: _by_eigenvectors(by_elements, a, captured), primals, tangents)
        return out, (dot, ops.mul(out[1], 0))

    out, error = value(a, *captured)
    return out if disp else (out, stop_gradient(error))


def _values(by_elements: Any, x: Any, captured: Any) -> Any:
    values = by_elements(x, *captured)
    if values.shape != x.shape:
        raise DtypeError(f"funm: func must return an array of the shape of its argument, {x.shape}, got {values.shape}")
    return ops.convert_element_type(values, x.dtype)


def _parlett(t: Any, values: Any) -> tuple[Any, Any]:
    """Compute a function of an upper triangular matrix ``t`` by Parlett's recurrence.

    ``values`` are the function's values at the diagonal of ``t``. Return the matrix, and the smallest divisor in the
    recurrence, from which the error is estimated.
    """
    n = t.shape[0]
    row, column_number = np.arange(n)[:, None], np.arange(n)[None, :]

    def step(k: Any, state: Any) -> Any:
        # (T - t_kk I) f_k = F t_k - t_k f_kk, above the diagonal.
        f, smallest = state
        column, corner, value = element(t, k, 1), element(element(t, k, 1), k, 0), values[k]
        above = row < k
        right = ops.where(above, product(f, ops.where(above, column, 0)) - column * value, 0)
        shifted = diagonal(t)[:, None] - corner
        left = ops.where(on_diagonal(n), ops.where(above, shifted, 1), t)
        solved = triangular_solve(left, right, left_side=True, lower=False)
        needed = above & (ops.abs(right) > 0)
        smallest = ops.min_p.bind(smallest, ops.where(needed, ops.abs(shifted), np.inf).min())
        # A zero is not divided: functions of diagonal matrices have no quotients.
        solved = ops.where(above & (ops.abs(shifted) == 0) & (ops.abs(right) == 0), 0, solved)
        solved = ops.where(row == k, value, ops.where(above, solved, 0))
        return ops.where(column_number == k, solved, f), smallest

    if n == 0:
        return t, creation.array(np.inf, dtypes.to_real(t.dtype))
    start = (ops.mul(t, 0), creation.array(np.inf, dtypes.to_real(t.dtype)))
    return fori_loop(0, n, step, start)  # type: ignore[no-any-return]


def _estimated_error(t: Any, smallest: Any) -> Any:
    """Return SciPy's estimate of the relative error of Parlett's recurrence for the matrix ``t``.

    ``smallest`` is the smallest divisor in the recurrence.
    """
    epsilon = float(np.finfo(dtypes.to_real(t.dtype)).eps)
    if t.shape[0] == 0:
        return creation.array(epsilon, dtypes.to_real(t.dtype))
    upper = ops.abs(diagonals.triu(t, 1)).sum(0).max()
    smallest = ops.where(smallest == 0, epsilon, ops.min_p.bind(smallest, 1))
    return ops.min_p.bind(1, ops.max_p.bind(epsilon, epsilon / smallest * upper))


def _by_eigenvectors(by_elements: Any, a: Any, captured: Any) -> Any:
    w, v = eig(a)
    return adjoint(linear_solve(adjoint(v), adjoint(v * _values(by_elements, w, captured))))
