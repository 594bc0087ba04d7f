"""The matrix exponential, logarithm and square root, and their Fréchet derivatives.

The derivative of a matrix function at A in the direction E is L(A, E), which is linear in E. It is a block of the
function of a larger matrix, f([[A, E], [0, A]]) = [[f(A), L(A, E)], [0, f(A)]], so that second derivatives are first
derivatives of larger matrices. Source: N. J. Higham 2008, "Functions of Matrices", chapters 3, 6, 10 and 11.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.errors import DtypeError, ShapeError
from pullback.core.interrupts import imported
from pullback.core.linear import LinearVar
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.core.types import ZERO, ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.slicing import concatenate, iota, slice_in_dim
from pullback.primitives.axis_maps import works_on_last
from pullback.primitives.checks import same_dtype
from pullback.primitives.linalg.decompositions import decomposed, diagonal, on_diagonal, one_by_one, upper_left
from pullback.primitives.linalg.lapack import (
    adjoint,
    check_square_matrices,
    host_routine,
    matrix_transpose,
    not_a_number,
    product,
    rows_minus_columns,
    square_type,
    triangular_solve,
)
from pullback.primitives.linalg.lu import element, identity, linear_solve, repeat
from pullback.primitives.linalg.matrix_equations import schur_factors, sylvester

_INT32 = np.dtype(np.int32)
Jet = Sequence[Any]  # a matrix, or a matrix and its derivative: the first row of [[A, E], [0, A]]

# Shared helpers ----------------------------------------------------------------------------------------------------


def _with_derivative(name: str, function: Primitive) -> Primitive:
    """Declare the primitive of the Fréchet derivative of ``function``, and register it as the jvp rule of ``function``.

    The primitive takes a matrix and a direction, in which it is linear.
    """
    derivative = Primitive(f"{name}_frechet", keeps_weak_type=False, cost=Cost.MATRIX)

    @derivative.abstract_eval
    def shape(a: ShapedArray, e: ShapedArray) -> ShapedArray:
        check_square_matrices(f"{name}_frechet", a)
        same_dtype(f"{name}_frechet", [a, e])
        if a.shape != e.shape:
            raise ShapeError(f"{name}_frechet takes matrices of one shape, got {a.shape} and {e.shape}")
        return ShapedArray(a.shape, a.dtype)

    @function.jvp
    def function_jvp(primals: Any, tangents: Any) -> Any:
        (a,), (t,) = primals, tangents
        return function.bind(a), derivative.bind(a, t)

    @derivative.jvp
    def derivative_jvp(primals: Any, tangents: Any) -> Any:
        (a, e), (ta, te) = primals, tangents
        total = ZERO if te is ZERO else derivative.bind(a, te)
        if ta is not ZERO and 0 not in a.shape:
            unit = ops.stop_gradient_p.bind(_largest(e))
            zero = ops.mul(ta, 0)
            moved = ops.mul(_corner(derivative.bind(_blocks(a, ops.div(e, unit)), _blocks(ta, zero))), unit)
            total = moved if total is ZERO else ops.add_any_p.bind(total, moved)
        return derivative.bind(a, e), total

    @partial(derivative.transpose, linear_in=(1,))
    def derivative_transpose(ct: Any, a: Any, e: LinearVar) -> Any:
        return None, derivative.bind(matrix_transpose(a), ct)

    for p in (function, derivative):
        works_on_last(p, 2)
    return derivative


def _blocks(a: Any, e: Any) -> Any:
    """Return the block matrices [[A, E], [0, A]], for A = ``a`` and E = ``e``."""
    rank = len(a.shape)
    upper, lower = concatenate([a, e], rank - 1), concatenate([ops.mul(a, 0), a], rank - 1)
    return concatenate([upper, lower], rank - 2)


def _corner(x: Any) -> Any:
    """The upper right quarter of square matrices."""
    n = x.shape[-1] // 2
    return slice_in_dim(upper_left(x, n, 2 * n), n, 2 * n, len(x.shape) - 1)


def _largest(e: Any) -> Any:
    """Return the largest absolute value in each matrix, in the dtype of ``e`` and with shape (..., 1, 1).

    A value that is zero or not finite is replaced by 1.
    """
    rank = len(e.shape)
    largest = reductions.reduce_max(ops.abs(e), (rank - 2, rank - 1))
    usable = ops.and_p.bind(ops.gt_p.bind(largest, 0), ops.is_finite_p.bind(largest))
    return shapes.expand_dims(ops.convert_element_type(ops.where(usable, largest, 1), e.dtype), (-2, -1))


def _norm(x: Any) -> Any:
    """The 1-norms of matrices, with shape (..., 1, 1)."""
    rank = len(x.shape)
    sums = reductions.reduce_sum(ops.abs(x), (rank - 2,))
    return shapes.expand_dims(reductions.reduce_max(sums, (rank - 2,)), (-2, -1))


def _while(hlo: Any, goes_on: Callable[..., Any], body: Callable[..., Any], values: Sequence[Any]) -> Any:
    """Emit a loop of ``values = body(*values)`` while ``goes_on(*values)`` holds; return the final values."""
    types = [(v.shape, v.dtype) for v in values]
    test = hlo.region(types, lambda *xs: [hlo.inline(goes_on, *xs)])
    return hlo.multi_result("stablehlo.while", values, types, "", [test, hlo.region(types, body)])


# The exponential ---------------------------------------------------------------------------------------------------

expm_p = Primitive("expm", keeps_weak_type=False, cost=Cost.MATRIX)
expm_frechet_p = _with_derivative("expm", expm_p)


expm_p.abstract_eval(partial(square_type, "expm"))


@expm_p.host
def _expm_host(x: Any) -> Any:
    if x.size == 0:
        return x
    return decomposed(lambda x: [imported("scipy.linalg").expm(x).astype(x.dtype, copy=False)], x)[0]


@expm_frechet_p.host
def _expm_frechet_host(a: Any, e: Any) -> Any:
    if a.size == 0:
        return e
    one = lambda a, e: [imported("scipy.linalg").expm_frechet(a, e, compute_expm=False, check_finite=False)]
    finite = (np.isfinite(a) & np.isfinite(e)).all((-2, -1), keepdims=True)
    if finite.all():
        return one_by_one(one, [(e.shape, e.dtype)], a, e)[0]
    out = one_by_one(one, [(e.shape, e.dtype)], np.where(finite, a, 0), np.where(finite, e, 0))[0]
    return np.where(finite, out, e.dtype.type(not_a_number(e.dtype)))


# The norms up to which each degree of the Padé approximant suffices: Higham 2005, "The scaling and squaring method for
# the matrix exponential revisited", table 2.3; the last for double precision from Al-Mohy and Higham 2009, "A new
# scaling and squaring algorithm for the matrix exponential", table 3.1.
_DEGREES = {
    "f": ((3, 4.258730016922831e-1), (5, 1.880152677804762), (7, 3.925724783138660)),
    "d": (
        (3, 1.495585217958292e-2), (5, 2.539398330063230e-1), (7, 9.504178996162932e-1), (9, 2.097847961257068),
        (13, 4.25),
    ),
}  # fmt: skip
_MOST_SQUARINGS = 1100
_FEW_SQUARINGS = 2
"""The most squarings that cost less, in time and accuracy, than the estimate of how many are necessary."""


def largest_norm(dtype: Any) -> float:
    """Return the 1-norm above which the exponential scales matrices of ``dtype`` before the Padé approximant."""
    return _DEGREES[dtypes.to_real(dtype).char][-1][1]


def _times(x: Jet, y: Jet) -> list[Any]:
    """Return the product of two matrices, and its derivative if the jets hold derivatives too.

    A jet is a matrix, or a matrix and its derivative.
    """
    out = [product(x[0], y[0])]
    if len(x) > 1:
        out.append(ops.add(product(x[0], y[1]), product(x[1], y[0])))
    return out


def _sum(terms: Sequence[tuple[float, Jet]], constant: float = 0.0) -> list[Any]:
    """Return a sum of matrices times numbers, plus ``constant`` times the identity, and the derivative if there is one.

    ``terms`` holds pairs of a number and a jet: a matrix, or a matrix and its derivative.
    """
    out = []
    for k in range(len(terms[0][1])):
        x = ops.mul(terms[0][1][k], terms[0][0])
        for factor, term in terms[1:]:
            x = ops.add(x, ops.mul(term[k], factor))
        out.append(x)
    if constant:
        n = out[0].shape[-1]
        out[0] = ops.add(out[0], ops.mul(identity(n, out[0].dtype), constant))
    return out


def _coefficients(m: int) -> list[float]:
    """The coefficients of the numerator of the [m/m] Padé approximant of exp, in ascending order; the first is one."""
    highest = math.factorial(2 * m)
    return [
        math.factorial(2 * m - j) * math.factorial(m) / (highest * math.factorial(j) * math.factorial(m - j))
        for j in range(m + 1)
    ]


def _pade(m: int, x: Jet, powers: Sequence[Jet]) -> tuple[Jet, Jet]:
    """Return the odd and the even part of the numerator of the [m/m] Padé approximant of exp at the matrix X.

    Args:
      m: the degree.
      x: X, followed by its derivative if there is one.
      powers: X², X⁴, ..., each followed by its derivative if there is one.
    """
    c = _coefficients(m)
    if m == 13:
        second, fourth, sixth = powers
        high = [_sum([(c[8 + k], second), (c[10 + k], fourth), (c[12 + k], sixth)]) for k in (0, 1)]
        low = [_sum([(c[2 + k], second), (c[4 + k], fourth), (c[6 + k], sixth)], c[k]) for k in (0, 1)]
        even, odd = (_sum([(1.0, _times(sixth, h)), (1.0, w)]) for h, w in zip(high, low, strict=True))
    else:
        even = _sum([(c[2 * i], p) for i, p in enumerate(powers, 1)], c[0])
        odd = _sum([(c[2 * i + 1], p) for i, p in enumerate(powers, 1)], c[1])
    return _times(x, odd), even


def _powers(second: Jet, count: int) -> list[Jet]:
    powers = [second]
    while len(powers) < count:
        powers.append(_times(powers[-1], second))
    return powers


def _quotient(odd: Jet, even: Jet) -> list[Any]:
    """Return the Padé approximant ``(even - odd)⁻¹ (even + odd)``, and its derivative if the operands have one."""
    above = [ops.add(e, o) for e, o in zip(even, odd, strict=True)]
    below = [ops.sub(e, o) for e, o in zip(even, odd, strict=True)]
    first = linear_solve(below[0], above[0])
    if len(above) == 1:
        return [first]
    return [first, linear_solve(below[0], ops.sub(above[1], product(below[1], first)))]


def _scaled(x: Jet, exponent: Any) -> list[Any]:
    """Multiply a matrix, and its derivative if there is one, by 2**exponent, without rounding errors."""
    factor = ops.exp2_p.bind(exponent)
    return [ops.mul(y, ops.convert_element_type(factor, y.dtype)) for y in x]


def _log2(x: Any) -> Any:
    return ops.div(ops.log_p.bind(x), math.log(2))


def _squarings_of_norm(theta: float, norm: Any) -> Any:
    """Return how often a matrix with norm ``norm`` must be halved until its norm is at most ``theta``.

    The exponential of the halved matrix must be squared as often.
    """
    count = ops.ceil_p.bind(_log2(ops.div(norm, theta)))
    return ops.where(ops.gt_p.bind(count, 0), ops.min_p.bind(count, _MOST_SQUARINGS), 0)


def _too_many(theta: float, fourth: Any, sixth: Any, squarings: Any) -> Any:
    """Return how many squarings the exponential of X can save, because powers of X are smaller than powers of its norm.

    The greater of |X⁴|^(1/4) and |X⁶|^(1/6) may replace the norm (Al-Mohy and Higham 2009, section 5). The rounding
    errors of the approximant may require some of these squarings; :func:`_more_for_rounding` counts them.

    Args:
      theta: the norm up to which the approximant is accurate.
      fourth, sixth: X⁴ and X⁶.
      squarings: the number of squarings that the norm requires; X was halved as often.
    """
    size = ops.max_p.bind(ops.pow_p.bind(_norm(fourth), 0.25), ops.pow_p.bind(_norm(sixth), 1 / 6))
    spare = ops.floor_p.bind(_log2(ops.div(theta, ops.where(ops.gt_p.bind(size, 0), size, 1))))
    spare = ops.where(ops.gt_p.bind(size, 0), spare, squarings)
    return ops.max_p.bind(ops.min_p.bind(spare, squarings), 0)


def _more_for_rounding(m: int, x: Any, column_sums: Any) -> Any:
    """Return how often X must be halved for a small rounding error of the Padé approximant of degree ``m``.

    Args:
      m: the degree.
      x: the absolute values |X|.
      column_sums: the column sums of |X|^(2m + 1); their maximum is the 1-norm of that power.
    """
    dtype = dtypes.to_real(x.dtype)
    norm = _norm(x)
    leading = 1 / (math.comb(2 * m, m) * math.factorial(2 * m + 1))
    largest = shapes.expand_dims(reductions.reduce_max(column_sums, (len(x.shape) - 2, len(x.shape) - 1)), (-2, -1))
    size = ops.div(
        ops.mul(largest, leading / float(np.finfo(dtype).eps) * 2), ops.where(ops.gt_p.bind(norm, 0), norm, 1)
    )
    count = ops.ceil_p.bind(ops.div(_log2(size), 2 * m))
    return ops.where(ops.gt_p.bind(count, 0), ops.min_p.bind(count, _MOST_SQUARINGS), 0)


def _expm_lowering(hlo: Any, *jet: Any) -> Any:
    """Emit the exponential of the first matrix of ``jet``, and its derivative along the second matrix, if any."""
    if 0 in jet[0].shape:
        return jet[-1]
    degrees = _DEGREES[dtypes.to_real(jet[0].dtype).char]
    count = len(jet)

    def start(*jet: Any) -> list[Any]:
        norm = _norm(jet[0])
        squarings = _squarings_of_norm(degrees[-1][1], norm)
        *scaled, norm = _scaled([*jet, norm], ops.neg(squarings))
        norm = reductions.reduce_max(norm, tuple(range(len(norm.shape))))
        which: Any = ops.convert_element_type(ops.gt_p.bind(norm, degrees[0][1]), _INT32)
        for _, theta in degrees[1:-1]:
            which = ops.add(which, ops.convert_element_type(ops.gt_p.bind(norm, theta), _INT32))
        most = reductions.reduce_max(squarings, tuple(range(len(squarings.shape))))
        which = ops.where(ops.gt_p.bind(most, _FEW_SQUARINGS), len(degrees), which)
        return [which, squarings, *scaled, *_times(scaled, scaled)]

    which, squarings, *values = hlo.inline(start, *jet)

    def of_degree(m: int, squarings: Any, *values: Any) -> list[Any]:
        x, second = values[:count], values[count:]
        odd, even = _pade(m, x, _powers(second, 3 if m == 13 else (m - 1) // 2))
        return [squarings, *odd, *even]

    branches: list[Callable[[], Any]] = [
        partial(hlo.inline, partial(of_degree, m), squarings, *values) for m, _ in degrees
    ]
    branches.append(partial(_last_degree, hlo, *degrees[-1], squarings, values))
    types = [(v.shape, v.dtype) for v in (squarings, *jet, *jet)]
    regions = [hlo.region([], branch) for branch in branches]
    squarings, *halves = hlo.multi_result("stablehlo.case", [which], types, "", regions)
    result = hlo.inline(lambda *halves: _quotient(halves[:count], halves[count:]), *halves)

    def square(i: Any, squarings: Any, *jet: Any) -> list[Any]:
        squared = _times(jet, jet)
        if len(jet[0].shape) > 2:
            squared = [ops.where(ops.lt_p.bind(i, squarings), s, x) for s, x in zip(squared, jet, strict=True)]
        return [ops.add(i, 1), squarings, *squared]

    def more(i: Any, squarings: Any, *jet: Any) -> Any:
        return ops.lt_p.bind(i, reductions.reduce_max(squarings, tuple(range(len(squarings.shape)))))

    return _while(hlo, more, partial(hlo.inline, square), [hlo.number(0, squarings.dtype), squarings, *result])[-1]


def _last_degree(hlo: Any, m: int, theta: float, squarings: Any, values: Sequence[Any]) -> Any:
    """Emit the Padé approximant of exp of the highest degree; save squarings where powers of the matrix are small.

    Args:
      hlo: the builder.
      m: the degree.
      theta: the norm up to which the approximant is accurate.
      squarings: the number of squarings that the norm requires.
      values: the matrix X, which was halved as often, and its square, each followed by its derivative if there is one.

    Returns:
      The number of squarings that remain, then the odd and the even part of the numerator of the approximant.
    """
    count = len(values) // 2

    def powers(squarings: Any, *values: Any) -> list[Any]:
        x, second = values[:count], values[count:]
        fourth = _times(second, second)
        sixth = _times(fourth, second)
        spare = _too_many(theta, fourth[0], sixth[0], squarings)
        size = ops.abs(_scaled(x[:1], spare)[0])
        sums = ops.add(ops.mul(slice_in_dim(size, 0, 1, len(size.shape) - 2), 0), 1)
        some = ops.gt_p.bind(reductions.reduce_max(spare, tuple(range(len(spare.shape)))), 0)
        return [ops.mul(ops.convert_element_type(some, _INT32), 2 * m + 1), sums, size, spare, *fourth, *sixth]

    steps, sums, size, spare, *high = hlo.inline(powers, squarings, *values)
    sums = _while(
        hlo,
        lambda left, sums, size: ops.gt_p.bind(left, 0),
        partial(hlo.inline, lambda left, sums, size: [ops.sub(left, 1), product(sums, size), size]),
        [steps, sums, size],
    )[1]

    def finish(squarings: Any, spare: Any, sums: Any, size: Any, *values: Any) -> list[Any]:
        fewer = ops.max_p.bind(ops.sub(spare, _more_for_rounding(m, size, sums)), 0)
        jets = [values[k * count : (k + 1) * count] for k in range(4)]
        x, *powers = (_scaled(p, ops.mul(fewer, k)) for p, k in zip(jets, (1.0, 2.0, 4.0, 6.0), strict=True))
        odd, even = _pade(m, x, powers)
        return [ops.sub(squarings, fewer), *odd, *even]

    return hlo.inline(finish, squarings, spare, sums, size, *values, *high)


expm_p.lowering(_expm_lowering)
expm_frechet_p.lowering(_expm_lowering)

# The square root ---------------------------------------------------------------------------------------------------

# Operands and results are complex matrices.
sqrtm_p = Primitive("sqrtm", keeps_weak_type=False, cost=Cost.MATRIX)
works_on_last(sqrtm_p, 2)


def _complex_type(name: str, x: ShapedArray) -> ShapedArray:
    check_square_matrices(name, x)
    if not dtypes.is_complex(x.dtype):
        raise DtypeError(f"{name} takes complex matrices, got {dtypes.short_name(x.dtype)}; convert them with astype")
    return ShapedArray(x.shape, x.dtype)


def _by_schur_form(function: Callable[[Any], Any], x: Any) -> Any:
    """Apply ``function``, of triangular matrices, to x: decompose x = Z T Z*, and return Z function(T) Z*."""

    def of_one(a: Any) -> list[Any]:
        t, z = imported("scipy.linalg").schur(a, "complex", check_finite=False)
        return [z @ function(t) @ z.conj().T]

    if x.size == 0:
        return x
    return decomposed(lambda x: one_by_one(of_one, [(x.shape, x.dtype)], x), x)[0]


def _root_of_triangular(t: Any) -> Any:
    diagonal = np.diagonal(t)
    if diagonal.all():  # SciPy warns for a zero on the diagonal
        return imported("scipy.linalg").sqrtm(t).astype(t.dtype, copy=False)
    solve = host_routine("lapack", "trtrs", t.dtype)
    x = np.diag(np.sqrt(diagonal))
    for k in range(1, t.shape[0]):
        sums = x[:k, :k] + x[k, k] * np.eye(k, dtype=t.dtype)
        zero = np.diagonal(sums) == 0
        solved = solve(sums + np.diag(zero), t[:k, k])[0]
        x[:k, k] = np.where(zero & (solved != 0), np.nan, solved)
    return x


sqrtm_p.abstract_eval(partial(_complex_type, "sqrtm"))
sqrtm_p.host(partial(_by_schur_form, _root_of_triangular))


@sqrtm_p.lowering
def _sqrtm_lowering(hlo: Any, x: Any) -> Any:
    if 0 in x.shape:
        return x
    z, t = hlo.inline(schur_factors, x)
    return hlo.inline(_turned_back, z, _triangular_root(hlo, t))


def _turned_back(z: Any, t: Any) -> Any:
    return product(z, product(t, adjoint(z)))


def _triangular_root(hlo: Any, t: Any) -> Any:
    return repeat(hlo, t.shape[-1], _root_column, [hlo.splat(0, t.shape, t.dtype), t])[0]


def _root_column(k: Any, x: Any, t: Any) -> list[Any]:
    """Compute column k of the square root X of upper triangular matrices T, as a loop step; return X and T.

    The columns of X are zero until they are computed. Column k solves (X + x_kk I) x_k = t_k above the diagonal: Bjorck
    and Hammarling 1983, "A Schur method for the square root of a matrix". A row with a zero on the diagonal of X + x_kk
    I has a solution only if its right side is zero too; otherwise there is no root, and the column gets NaN.
    """
    last = len(t.shape) - 1
    n = t.shape[-1]
    row = iota(_INT32, (*(1,) * (last - 1), n, 1), last - 1)
    column = element(t, k, last)
    corner = ops.sqrt_p.bind(element(column, k, last - 1))
    left = ops.add(x, ops.where(on_diagonal(n), corner, 0))
    zero = ops.eq_p.bind(shapes.expand_dims(diagonal(left), (-1,)), 0)
    left = ops.where(ops.and_p.bind(on_diagonal(n), zero), 1, left)
    above = ops.where(ops.lt_p.bind(row, k), column, 0)
    solved = triangular_solve(left, above, left_side=True, lower=False)
    solved = ops.where(ops.and_p.bind(zero, ops.ne_p.bind(solved, 0)), not_a_number(t.dtype), solved)
    solved = ops.where(ops.eq_p.bind(row, k), corner, solved)
    here = ops.eq_p.bind(iota(_INT32, (1,) * last + (n,), last), k)
    return [ops.where(here, solved, x), t]


@sqrtm_p.jvp
def _sqrtm_jvp(primals: Any, tangents: Any) -> Any:
    # X dX + dX X = dA.
    (x,), (t,) = primals, tangents
    root = sqrtm_p.bind(x)
    return root, sylvester(root, root, t)


# The logarithm -----------------------------------------------------------------------------------------------------

# Operands and results are complex matrices.
logm_p = Primitive("logm", keeps_weak_type=False, cost=Cost.MATRIX)
logm_frechet_p = _with_derivative("logm", logm_p)
_NEAR_ONE = 0.264  # the largest norm of X = A - I for Padé's approximant of degree 7: Higham 2008, table 11.1
_MOST_ROOTS = 100


def _nodes() -> Any:
    """Return pairs (x, w) of Gauss-Legendre nodes and weights on [0, 1].

    With them log(I + X) is about the sum of w X (I + x X)⁻¹.
    """
    nodes, weights = np.polynomial.legendre.leggauss(7)
    return [(float(x), float(w)) for x, w in zip((nodes + 1) / 2, weights / 2, strict=True)]


def _log_of_triangular(t: Any) -> Any:
    diagonal = np.diagonal(t)
    if not diagonal.all():
        return np.full_like(t, np.nan)
    eye = np.eye(t.shape[0], dtype=t.dtype)
    root, count = t, 0
    while count < _MOST_ROOTS and np.abs(root - eye).sum(0).max() > _NEAR_ONE:
        root, count = _root_of_triangular(root), count + 1
    logs = np.log(diagonal)
    x = np.triu(root, 1) + np.diag(np.expm1(logs * 0.5**count))
    solve = host_routine("lapack", "trtrs", t.dtype)
    terms = [w * solve(eye + node * x, x)[0] for node, w in _nodes()]
    out = np.triu(sum(terms), 1) * 2.0**count + np.diag(logs)
    return out.astype(t.dtype, copy=False)


logm_p.abstract_eval(partial(_complex_type, "logm"))
logm_p.host(partial(_by_schur_form, _log_of_triangular))


@logm_p.lowering
def _logm_lowering(hlo: Any, x: Any) -> Any:
    if 0 in x.shape:
        return x
    z, t = hlo.inline(schur_factors, x)
    real = dtypes.to_real(t.dtype)
    size = (*t.shape[:-2], 1, 1)

    def is_far(root: Any) -> Any:
        return ops.gt_p.bind(_norm(ops.sub(root, identity(root.shape[-1], root.dtype))), _NEAR_ONE)

    def more(i: Any, count: Any, root: Any) -> Any:
        some = reductions.reduce_or(is_far(root), tuple(range(len(root.shape))))
        return ops.and_p.bind(some, ops.lt_p.bind(i, _MOST_ROOTS))

    def step(i: Any, count: Any, root: Any) -> list[Any]:
        return hlo.inline(_where_far, i, count, root, _triangular_root(hlo, root))  # type: ignore[no-any-return]

    def _where_far(i: Any, count: Any, root: Any, next_root: Any) -> list[Any]:
        far = is_far(root)
        return [ops.add(i, 1), ops.add(count, ops.convert_element_type(far, real)), ops.where(far, next_root, root)]

    start = [hlo.number(0, _INT32), hlo.splat(0, size, real), t]
    _, count, root = _while(hlo, more, step, start)
    return hlo.inline(lambda *xs: _turned_back(xs[0], _log_near_one(*xs[1:])), z, t, root, count)


def _log_near_one(t: Any, root: Any, count: Any) -> Any:
    """Return the logarithms of triangular matrices: 2**count times the logarithms of ``root``, by quadrature.

    Args:
      t: the matrices.
      root: ``t`` after ``count`` square roots, which is near the identity.
      count: the number of square roots.
    """
    n = t.shape[-1]
    on, eye = on_diagonal(n), identity(n, t.dtype)
    scale = ops.convert_element_type(ops.exp2_p.bind(count), t.dtype)
    logs = ops.log_p.bind(ops.where(on, t, 1))
    x = ops.where(on, ops.expm1_p.bind(ops.div(logs, scale)), root)
    out: Any = None
    for node, weight in _nodes():
        denominator = ops.add(eye, ops.mul(x, node))
        term = ops.mul(triangular_solve(denominator, x, left_side=True, lower=False), weight)
        out = term if out is None else ops.add(out, term)
    above = ops.gt_p.bind(0, rows_minus_columns(n, n))
    out = ops.where(on, logs, ops.where(above, ops.mul(out, scale), 0))
    singular = reductions.reduce_or(ops.eq_p.bind(diagonal(t), 0), (len(t.shape) - 2,))
    return ops.where(shapes.expand_dims(singular, (-2, -1)), not_a_number(t.dtype), out)


def _logm_derivative(a: Any, e: Any) -> Any:
    unit = ops.div(_largest(e), ops.where(ops.gt_p.bind(ops.abs(_largest(a)), 0), _largest(a), 1))
    return ops.mul(_corner(logm_p.bind(_blocks(a, ops.div(e, unit)))), unit)


logm_frechet_p.decomposition(_logm_derivative)
logm_frechet_p.lowering(lambda hlo, a, e: e if 0 in a.shape else hlo.inline(_logm_derivative, a, e))
