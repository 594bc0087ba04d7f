"""Functions of polynomials, which are vectors of coefficients from the highest power to the constant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np

from pullback.core import dtypes
from pullback.core.arguments import flag
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, ConcretizationTypeError, ShapeError
from pullback.core.trace import Tracer
from pullback.numpy.contraction import convolve, matmul, outer
from pullback.numpy.creation import arange, listed, vander
from pullback.numpy.decompositions import eigvals, lstsq, pinv
from pullback.numpy.diagonals import diag
from pullback.numpy.indexing import take
from pullback.numpy.linalg import inv
from pullback.numpy.manipulation import matrix_transpose
from pullback.numpy.promotion import another, inexact_operand, inexact_operands, known_int, operand, promote_all
from pullback.numpy.sorting import argsort
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.elementwise import convert_element_type
from pullback.primitives.reductions import reduce_min, reduce_sum

__all__ = ["poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub", "roots"]


def _coefficients(name: str, *xs: Any) -> list[Any]:
    """Convert operands to vectors of coefficients, of one float or complex dtype; a number is a constant polynomial.

    ``name`` is the name of the function, for errors.
    """
    return _vectors(name, inexact_operands(name, *xs))


def _vectors(name: str, arrays: list[Any]) -> list[Any]:
    arrays = [shapes.reshape(x, (1,)) if not x.shape else x for x in arrays]
    for x in arrays:
        if len(x.shape) != 1:
            raise ShapeError(f"{name}: the coefficients of a polynomial must be a vector, got shape {x.shape}")
    return arrays


def _longer(x: Any, length: int) -> Any:
    """Pad a vector with zeros at its beginning, so that it has ``length`` elements."""
    return slicing.pad(x, 0, [(length - x.shape[0], 0, 0)])


def _trimmed(name: str, x: Any) -> Any:
    """Drop the leading zeros of the coefficients ``x``; keep one zero if all coefficients are zero.

    ``name`` is the name of the function, for errors.
    """
    first = _nonzero_positions(name, x, "trim_leading_zeros", "False, which is the default")
    start = int(first[0]) if first.size else max(x.shape[0] - 1, 0)
    return slicing.slice_in_dim(x, start, x.shape[0], 0)


def _nonzero_positions(name: str, x: Any, option: str, instead: str) -> np.ndarray[Any, Any]:
    """Return the positions of the nonzero elements of a vector; raise if the vector is traced.

    Args:
      name: the name of the function.
      x: the vector.
      option, instead: the error advises to pass ``option=instead``.
    """
    value = x.concrete() if isinstance(x, Tracer) else x
    if value is None:
        raise ConcretizationTypeError(
            f"{name}: with {option}=True the length of the result depends on the elements, which are unknown "
            f"because {x.aval} is traced; pass {option}={instead}"
        )
    return np.flatnonzero(np.asarray(value))


def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The sum of two polynomials.

    Args:
      a1, a2: coefficients, vectors of n and m elements, or a number.

    Returns:
      The coefficients of the sum, max(n, m) of them.

    Raises:
      ShapeError: an operand has more than one axis (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.polyadd(jnp.array([1.0, 2.0]), jnp.array([1.0, 2.0, 3.0])))
    [1. 3. 5.]
    """
    a, b = _vectors("polyadd", promote_all("polyadd", (a1, a2)))
    n = max(a.shape[0], b.shape[0])
    return ops.add(_longer(a, n), _longer(b, n))


def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The difference of two polynomials; see :func:`polyadd`.

    Args:
      a1, a2: the coefficients of the polynomials, from the highest power to the constant: vectors.

    Returns:
      A vector: the coefficients of the difference.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      ShapeError: an argument has more than one axis (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.polysub(jnp.array([1.0, 2.0]), jnp.array([1.0, 2.0, 3.0])))
    [-1. -1. -1.]
    """
    a, b = _vectors("polysub", promote_all("polysub", (a1, a2)))
    n = max(a.shape[0], b.shape[0])
    return ops.sub(_longer(a, n), _longer(b, n))


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials.

    Args:
      a1, a2: coefficients, vectors of n and m elements, or a number.
      trim_leading_zeros: whether to drop leading zeros first, as NumPy does. The elements must then be concrete.

    Returns:
      The coefficients of the product, n + m - 1 of them if none is trimmed.

    Raises:
      ShapeError: an operand has more than one axis, or none has an element (a TypeError and a ValueError).
      ConcretizationTypeError: ``trim_leading_zeros`` is true and an operand is traced (a TypeError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.polymul(jnp.array([1.0, 2.0]), jnp.array([1.0, -2.0])))
    [ 1.  0. -4.]
    """
    trim_leading_zeros = flag("polymul", "trim_leading_zeros", trim_leading_zeros)
    a, b = _coefficients("polymul", a1, a2)
    if trim_leading_zeros:
        a, b = _trimmed("polymul", a), _trimmed("polymul", b)
    zero = shapes.full((1,), 0, a.dtype)
    a, b = (x if x.shape[0] else zero for x in (a, b))
    return convolve(a, b)


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """The quotient and the remainder of two polynomials.

    Args:
      u: the coefficients of the dividend, n of them.
      v: the coefficients of the divisor, m of them; the first is not zero.
      trim_leading_zeros: whether to drop leading zeros of the remainder, as NumPy does. The elements must then be
        concrete.

    Returns:
      The quotient, of max(n - m + 1, 1) coefficients, and the remainder, of n.

    Raises:
      ShapeError: an operand has more than one axis, or no element (a TypeError and a ValueError).
      ConcretizationTypeError: ``trim_leading_zeros`` is true and an operand is traced (a TypeError).

    >>> import pullback.numpy as jnp
    >>> quotient, rest = jnp.polydiv(jnp.array([1.0, 0.0, -3.0]), jnp.array([1.0, 2.0]))
    >>> print(quotient, rest)
    [ 1. -2.] [0. 0. 1.]
    """
    trim_leading_zeros = flag("polydiv", "trim_leading_zeros", trim_leading_zeros)
    rest, divisor = _coefficients("polydiv", u, v)
    n, m = rest.shape[0], divisor.shape[0]
    if not n or not m:
        raise ShapeError(f"polydiv: a polynomial must have at least one coefficient, got shapes {rest.shape}, {(m,)}")
    first = slicing.slice_in_dim(divisor, 0, 1, 0)
    quotient = []
    for k in range(n - m + 1):  # coefficient by coefficient, as on paper
        window = slicing.slice_in_dim(rest, k, k + m, 0)
        q = ops.div(slicing.slice_in_dim(window, 0, 1, 0), first)
        left = ops.sub(window, ops.mul(q, divisor))
        pieces = [slicing.slice_in_dim(rest, 0, k, 0), left, slicing.slice_in_dim(rest, k + m, n, 0)]
        rest = slicing.concatenate(pieces, 0)
        quotient.append(q)
    result = slicing.concatenate(quotient, 0) if quotient else shapes.full((1,), 0, rest.dtype)
    return result, _trimmed("polydiv", rest) if trim_leading_zeros else rest


def _order(name: str, m: Any) -> int:
    order = known_int(name, "m", m)
    if order < 0:
        raise ArgumentError(f"{name}: the order m must not be negative, got {order}")
    return order


def _falling(powers: np.ndarray[Any, Any], m: int) -> np.ndarray[Any, Any]:
    """Return the falling factorial ``p * (p - 1) * ... * (p - m + 1)`` of each power p."""
    return np.prod(powers[:, None] - np.arange(m), axis=1, dtype=np.float64)


def polyder(p: ArrayLike, m: int = 1) -> Array:
    """The derivative of a polynomial.

    Args:
      p: its coefficients, a vector of n.
      m: the order of the derivative.

    Returns:
      The coefficients of the derivative, max(n - m, 0) of them; floats, even of integers.

    Raises:
      ArgumentError: ``m`` is negative (a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.polyder(jnp.array([1.0, 2.0, 3.0])))
    [2. 2.]
    """
    (x,) = _coefficients("polyder", p)
    m = _order("polyder", m)
    if m == 0:
        return another(x)
    n = x.shape[0]
    leading = slicing.slice_in_dim(x, 0, max(n - m, 0), 0)
    factors = _falling(np.arange(n - 1, m - 1, -1), m) if n > m else np.zeros(0)
    return ops.mul(leading, factors.astype(x.dtype))


def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | Sequence[ArrayLike] | None = None) -> Array:
    """The integral of a polynomial.

    Args:
      p: its coefficients, a vector of n.
      m: the number of integrations.
      k: the constants of integration, the first integral's first: a vector of ``m``, or a number for all; zero by
        default.

    Returns:
      The coefficients of the integral, n + m of them; floats, even of integers.

    Raises:
      ArgumentError: ``m`` is negative (a ValueError).
      ShapeError: there are not ``m`` constants (a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.polyint(jnp.array([2.0, 2.0]), k=3.0))
    [1. 2. 3.]
    """
    m = _order("polyint", m)
    constants = 0 if k is None else listed("polyint", k)
    x, c = inexact_operands("polyint", p, constants)
    (x,) = _coefficients("polyint", x)
    if c.shape not in ((), (1,), (m,)):
        raise ShapeError(f"polyint: k must be a number or a vector of {m}, one for each integral, got shape {c.shape}")
    if m == 0:
        return another(x)
    c = shapes.broadcast_to(shapes.reshape(c, ()) if c.size == 1 else c, (m,))
    n = x.shape[0]
    # The constant of the j-th integral is integrated m - 1 - j times.
    every = slicing.concatenate([x, c], 0)
    divisors = np.concatenate([_falling(np.arange(n + m - 1, m - 1, -1), m), *_factorials(m)])
    return ops.div(every, divisors.astype(x.dtype))


def _factorials(m: int) -> list[np.ndarray[Any, Any]]:
    return [np.cumprod(np.maximum(np.arange(m), 1), dtype=np.float64)[::-1]]


def poly(seq_of_zeros: ArrayLike) -> Array:
    """The polynomial with certain roots, and with first coefficient 1.

    Args:
      seq_of_zeros: the roots, a vector of n; or a square matrix, whose characteristic polynomial is returned.

    Returns:
      n + 1 coefficients, complex for complex roots and for a matrix.

    Raises:
      ShapeError: not a vector, or a square matrix with an element (a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.poly(jnp.array([1.0, 2.0])))
    [ 1. -3.  2.]
    """
    zeros = inexact_operand("poly", seq_of_zeros)
    if len(zeros.shape) == 2 and zeros.shape[0] == zeros.shape[1] != 0:
        zeros = eigvals(zeros)
    if len(zeros.shape) > 1:
        raise ShapeError(f"poly takes a vector of roots or a non-empty square matrix, got shape {zeros.shape}")
    zeros = shapes.reshape(zeros, (zeros.size,))
    n = zeros.shape[0]
    if n == 0:
        return shapes.full((), 1, zeros.dtype)
    one = shapes.full((1,), 1, zeros.dtype)
    out = one
    for i in range(n):
        zero = slicing.slice_in_dim(zeros, i, i + 1, 0)
        shifted = slicing.concatenate([shapes.full((1,), 0, zeros.dtype), ops.mul(out, zero)], 0)
        out = ops.sub(_at_end(out), shifted)
    return out


def _at_end(x: Any) -> Any:
    return slicing.pad(x, 0, [(0, 1, 0)])


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """The roots of a polynomial: the eigenvalues of its companion matrix.

    Args:
      p: its coefficients, a vector of n.
      strip_zeros: whether to drop leading zeros, which lower the degree. The elements must then be concrete. If False,
        the result has n - 1 elements, with NaN for missing roots.

    Returns:
      Complex numbers.

    Raises:
      ShapeError: ``p`` is not a vector (a ValueError).
      ConcretizationTypeError: ``strip_zeros`` is true and ``p`` is traced (a TypeError).

    Method: Horn and Johnson, *Matrix Analysis*, 2nd edition, section 3.3.

    >>> import pullback.numpy as jnp
    >>> print(jnp.sort(jnp.roots(jnp.array([1.0, 0.0, -4.0])).real).round(4))
    [-2.  2.]
    """
    strip_zeros = flag("roots", "strip_zeros", strip_zeros)
    x = inexact_operand("roots", p)
    x = x if x.shape else shapes.reshape(x, (1,))
    if len(x.shape) != 1:
        raise ShapeError(f"roots: the coefficients of a polynomial must be a vector, got shape {x.shape}")
    wide = dtypes.to_complex(x.dtype)
    n = x.shape[0]
    if n < 2:
        return shapes.full((0,), 0, wide)
    if not strip_zeros:
        return _padded_roots(x, wide)
    positions = _nonzero_positions("roots", x, "strip_zeros", "False")
    if not positions.size:
        return shapes.full((0,), 0, wide)
    first, last = int(positions[0]), int(positions[-1])
    trimmed = slicing.slice_in_dim(x, first, last + 1, 0)
    found = convert_element_type(_eigenvalues(trimmed), wide) if last > first else shapes.full((0,), 0, wide)
    return slicing.concatenate([found, shapes.full((n - 1 - last,), 0, wide)], 0)


def _eigenvalues(x: Any) -> Any:
    """Return the roots of a polynomial with coefficients ``x``, as eigenvalues of its companion matrix.

    The first coefficient must not be zero.
    """
    n = x.shape[0]
    rest = ops.neg(ops.div(slicing.slice_in_dim(x, 1, n, 0), slicing.slice_in_dim(x, 0, 1, 0)))
    below = diag(shapes.full((n - 2,), 1, x.dtype), -1)
    row = shapes.reshape(rest, (1, n - 1))
    return eigvals(slicing.concatenate([row, slicing.slice_in_dim(below, 1, n - 1, 0)], 0))


def _padded_roots(x: Any, wide: Any) -> Any:
    """Return the roots of a polynomial whose first coefficients may be zero, in a vector of static length.

    For n coefficients the vector has n - 1 elements, of the dtype ``wide``: roots that are not zero, roots that are
    zero, and NaN for each leading zero of the coefficients.
    """
    n = x.shape[0]
    nonzero = ops.ne_p.bind(x, 0)
    leading, trailing = _first(nonzero, n), _first(slicing.rev(nonzero, (0,)), n)
    rolled = take(x, ops.rem_p.bind(ops.add(arange(n), leading), n))
    first = slicing.slice_in_dim(rolled, 0, 1, 0)
    first = ops.where(ops.eq(first, 0), 1, first)  # if all coefficients are zero
    found = convert_element_type(
        _eigenvalues(slicing.concatenate([first, slicing.slice_in_dim(rolled, 1, n, 0)], 0)), wide
    )
    # The zeros at the end of ``rolled`` make the smallest roots. These move to the end: first the zero roots of the
    # polynomial, which are exact, then the elements without a root.
    rank = argsort(argsort(ops.abs(found)))
    small = ops.lt(rank, ops.add(leading, trailing))
    ordered = take(found, argsort(convert_element_type(small, np.dtype(np.int32)), stable=True))
    degree, position = ops.sub(ops.sub(n, leading), 1), arange(n - 1)
    exact = ops.where(ops.ge_p.bind(position, ops.sub(degree, trailing)), 0, ordered)
    return ops.where(ops.ge_p.bind(position, degree), complex(np.nan, np.nan), exact)


def _first(mask: Any, n: int) -> Any:
    """Return the position of the first true element of a mask of ``n`` elements; ``n`` if there is none."""
    return reduce_min(ops.where(mask, arange(n), n), (0,))


# Fits ---------------------------------------------------------------------------------------------------------------


@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: Literal[False] = False,
    w: ArrayLike | None = None,
    cov: Literal[False] = False,
) -> Array: ...
@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: Literal[False] = False,
    w: ArrayLike | None = None,
    *,
    cov: Literal[True] | str,
) -> tuple[Array, Array]: ...
@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    *,
    full: Literal[True],
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> tuple[Array, Array, Array, Array, Array]: ...
@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Any: ...
# long: half of it is its documentation
def polyfit(
    x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None, full: bool = False, w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Any:  # fmt: skip
    """The polynomial of degree ``deg`` that fits points best, in the sense of least squares.

    Args:
      x: the abscissas, a vector of n.
      y: the ordinates, a vector of n, or a matrix (n, k) of k data sets.
      deg: the degree.
      rcond: singular values up to this fraction of the largest count as zero; by default n times the precision of the
        dtype.
      full: whether to return the other results of :func:`pullback.numpy.linalg.lstsq`, too.
      w: weights of the points, a vector of n: the residuals are multiplied by them.
      cov: whether to return the covariances of the coefficients, too; ``"unscaled"`` if the weights are the inverse
        standard deviations of the ordinates, so that the covariances are not scaled by the residuals.

    Returns:
      The coefficients, of shape (deg + 1) or (deg + 1, k). With ``full`` a tuple of these, the squared residuals, the
      rank, the singular values of the scaled matrix, and ``rcond``. With ``cov`` a pair of these and the covariances,
      of shape (deg + 1, deg + 1) or (deg + 1, deg + 1, k).

    Raises:
      ShapeError: the operands do not fit together (a TypeError and a ValueError).
      ArgumentError: the degree is negative, or there are too few points for covariances (a ValueError).

    Method: least squares by the singular values of the Vandermonde matrix, its columns scaled to norm 1.

    >>> import pullback.numpy as jnp
    >>> x = jnp.array([0.0, 1.0, 2.0, 3.0])
    >>> print(jnp.polyfit(x, 2 * x + 1, 1).round(3))
    [2. 1.]
    """
    full = flag("polyfit", "full", full)
    order = known_int("polyfit", "deg", deg) + 1
    if order < 1:
        raise ArgumentError(f"polyfit: the degree must not be negative, got {deg}")
    operands = (x, y) if w is None else (x, y, w)
    abscissas, ordinates, *rest = inexact_operands("polyfit", *operands)
    _check_points(abscissas, ordinates, rest)
    matrix = vander(abscissas, order)
    if rest:
        matrix = ops.mul(matrix, shapes.expand_dims(rest[0], (1,)))
        ordinates = ops.mul(ordinates, rest[0] if len(ordinates.shape) == 1 else shapes.expand_dims(rest[0], (1,)))
    n = abscissas.shape[0]
    if rcond is None:
        rcond = n * float(dtypes.finfo(matrix.dtype).eps)
    size = ops.abs(matrix) if dtypes.is_complex(matrix.dtype) else matrix
    squares = reduce_sum(ops.mul(size, size), (0,))
    scale = ops.sqrt(ops.where(ops.eq(squares, 0), 1, squares))
    scaled = ops.div(matrix, convert_element_type(scale, matrix.dtype))
    if full or cov:
        found, residuals, rank, values = lstsq(scaled, ordinates, rcond)
    else:
        found = matmul(pinv(scaled, rcond), ordinates)  # lstsq computes singular values for its other results
    by_row = scale if len(found.shape) == 1 else shapes.expand_dims(scale, (1,))
    found = ops.div(found, convert_element_type(by_row, found.dtype))
    if full:
        return found, residuals, rank, values, operand("polyfit", rcond)
    if not cov:
        return found
    return found, _covariances(scaled, scale, residuals, n, cov, len(ordinates.shape) == 2)


def _covariances(scaled: Any, scale: Any, residuals: Any, n: int, cov: bool | str, several: bool) -> Any:
    """Return the matrix of covariances of the coefficients of a polynomial fit.

    Args:
      scaled: the Vandermonde matrix, whose columns are divided by ``scale``.
      scale: the norms of the columns.
      residuals: the sum of squared residuals of each fit.
      n: the number of points.
      cov: "unscaled" to leave out the factor ``residuals / (n - number of coefficients)``.
      several: whether there are several fits; then the result has a new last axis of fits.
    """
    inverse = inv(matmul(ops.conj(matrix_transpose(scaled)), scaled))
    inverse = ops.div(inverse, convert_element_type(outer(scale, scale), inverse.dtype))
    order = scaled.shape[1]
    if cov == "unscaled":
        factor = shapes.full((), 1, inverse.dtype)
    elif n <= order:
        raise ArgumentError(
            f"polyfit: scaled covariances need more points than coefficients, got {n} and {order}; add "
            "points, or pass cov='unscaled'"
        )
    else:
        factor = convert_element_type(ops.div(residuals, n - order), inverse.dtype)
    return ops.mul(shapes.expand_dims(inverse, (2,)) if several else inverse, factor)


def _check_points(x: Any, y: Any, w: list[Any]) -> None:
    if len(x.shape) != 1 or not x.shape[0]:
        raise ShapeError(f"polyfit: x must be a non-empty vector, got shape {x.shape}")
    if len(y.shape) not in (1, 2) or y.shape[0] != x.shape[0]:
        raise ShapeError(
            f"polyfit: y must be a vector of {x.shape[0]}, as x, or a matrix with as many rows; got shape {y.shape}"
        )
    if w and w[0].shape != x.shape:
        raise ShapeError(f"polyfit: w must be a vector of {x.shape[0]}, as x, got shape {w[0].shape}")
