"""The matrix equations of Sylvester and Stein, solved by Schur decompositions of their coefficients.

Sylvester's equation is A X + X B = C, Stein's is A X B - X = C; in Lyapunov's equations B is the adjoint of A. With A =
U R U* and B = V S V*, Y = U* X V solves the same equation with the triangular R and S, whose columns are triangular
systems, solved in order (Bartels and Stewart 1972, "Solution of the matrix equation AX + XB = C"; Kitagawa 1977 for
Stein's).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.errors import ShapeError
from pullback.core.linear import LinearVar
from pullback.core.taylor_rules import Coefficient, Series, taylor
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.core.types import ZERO, ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.slicing import iota
from pullback.primitives.axis_maps import works_on_last
from pullback.primitives.checks import same_dtype
from pullback.primitives.linalg.decompositions import diagonal, on_diagonal, one_by_one
from pullback.primitives.linalg.lapack import (
    adjoint,
    check_square_matrices,
    host_routine,
    not_a_number,
    product,
    triangular_solve,
)
from pullback.primitives.linalg.lu import element, repeat
from pullback.primitives.linalg.schur import schur_p
from pullback.primitives.power_series import convolution, total

_ADJOINT = {"transpose_a": True, "conjugate_a": True}


def schur_factors(x: Any) -> list[Any]:
    """Return the Schur factors of ``x``: a unitary Z and an upper triangular T with x = Z T Z*.

    Both are complex, and have no derivatives.
    """
    x = ops.stop_gradient_p.bind(x)
    t, z = schur_p.bind(ops.convert_element_type(x, dtypes.to_complex(x.dtype)), vectors=True)
    return [z, t]


def sylvester(a: Any, b: Any, c: Any, tolerance: float = 0.0) -> Any:
    """Solve A X + X B = C for X.

    Args:
      a: the matrices A (..., m, m).
      b: the matrices B (..., n, n), with the leading axes and dtype of A.
      c: the matrices C (..., m, n), with the leading axes and dtype of A.
      tolerance: X is NaN if the sum of an eigenvalue of A and an eigenvalue of B is at most this in modulus.
    """
    first = schur_factors(a)
    second = first if a is b else schur_factors(b)
    return _equation(a, b, *first, *second, c, stein=False, conjugated=False, tolerance=float(tolerance))


def stein(a: Any, b: Any, c: Any) -> Any:
    """Solve A X B - X = C for X; X is NaN if an eigenvalue of A times an eigenvalue of B is one."""
    return _equation(a, b, *schur_factors(a), *schur_factors(b), c, stein=True, conjugated=False, tolerance=0.0)


# Operands: A and B, the factors U, R, V and S of both, and C. It is differentiated with respect to A, B and C; the
# derivatives with respect to A and B account for the change of the factors. With `conjugated` the equation has the
# adjoints of A and B instead.
matrix_equation_p = Primitive("matrix_equation", keeps_weak_type=False, cost=Cost.MATRIX)
works_on_last(matrix_equation_p, 2)
_equation = matrix_equation_p.bind


def _is_regular(r: Any, s: Any, is_stein: bool, tolerance: float) -> Any:
    """Return, for each matrix of a batch, whether the equation R Y + Y S = F has a unique solution Y.

    If ``is_stein``, the equation is R Y S - Y = F. R and S are triangular, with eigenvalues r_i and s_j. The solution
    is unique if all sums r_i + s_j (for a Stein equation, all r_i s_j - 1) exceed ``tolerance`` in modulus.
    """
    left, right = shapes.expand_dims(diagonal(r), (-1,)), shapes.expand_dims(diagonal(s), (-2,))
    distance = ops.sub(ops.mul(left, right), 1) if is_stein else ops.add(left, right)
    rank = len(r.shape)
    return reductions.reduce_and(ops.gt_p.bind(ops.abs(distance), tolerance), (rank - 2, rank - 1))


@matrix_equation_p.host
def _equation_host(
    a: Any, b: Any, u: Any, r: Any, v: Any, s: Any, c: Any, *, stein: bool, conjugated: bool, tolerance: float
) -> Any:
    if c.size == 0:
        return c
    left, right = np.diagonal(r, 0, -2, -1)[..., :, None], np.diagonal(s, 0, -2, -1)[..., None, :]
    distance = np.abs(left * right - 1 if stein else left + right)
    regular = (distance > tolerance).all((-2, -1))
    f = u.conj().swapaxes(-1, -2) @ c @ v
    solve = partial(_stein_of_one if stein else _sylvester_of_one, conjugated)
    (y,) = one_by_one(lambda *xs: [solve(*xs)], [(f.shape, f.dtype)], r, s, f)
    x = u @ y @ v.conj().swapaxes(-1, -2)
    x = np.where(regular[..., None, None], x if dtypes.is_complex(c.dtype) else x.real, not_a_number(c.dtype))
    return x.astype(c.dtype, copy=False)


def _sylvester_of_one(conjugated: bool, r: Any, s: Any, f: Any) -> Any:
    letter = "C" if conjugated else "N"
    y, scale, _ = host_routine("lapack", "trsyl", f.dtype)(r, s, f, trana=letter, tranb=letter)
    return y / scale


def _stein_of_one(conjugated: bool, r: Any, s: Any, f: Any) -> Any:
    """Solve one Stein equation R Y S - Y = F with upper triangular R and S for Y, by NumPy and LAPACK.

    Column k of Y solves (s_kk R - I) y_k = f_k - R Y s_k, where Y has zeros in the columns that are not solved yet.
    With ``conjugated`` the equation has the adjoints of R and S instead of R and S.
    """
    solve = host_routine("lapack", "trtrs", f.dtype)
    size = s.shape[0]
    y = np.zeros_like(f)
    eye = np.eye(r.shape[0], dtype=f.dtype)
    turned = r.conj().T if conjugated else r
    for k in range(size)[:: -1 if conjugated else 1]:
        column = s[k].conj() if conjugated else s[:, k]
        right = f[:, k] - turned @ (y @ column)
        y[:, k] = solve(s[k, k] * r - eye, right, lower=0, trans=2 if conjugated else 0)[0]
    return y


@matrix_equation_p.abstract_eval
def _equation_abstract_eval(
    a: ShapedArray, b: ShapedArray, u: ShapedArray, r: ShapedArray, v: ShapedArray, s: ShapedArray, c: ShapedArray,
    **params: Any,
) -> ShapedArray:  # fmt: skip
    for x in (a, b):
        check_square_matrices("matrix_equation", x)
    same_dtype("matrix_equation", [a, b, c])
    same_dtype("matrix_equation", [u, r, v, s])
    batch, m, n = a.shape[:-2], a.shape[-1], b.shape[-1]
    if b.shape[:-2] != batch or c.shape != (*batch, m, n) or (u.shape, v.shape) != (a.shape, b.shape):
        raise ShapeError(
            f"matrix_equation of matrices of shapes {a.shape} and {b.shape} takes their factors, and a right side of "
            f"shape {(*batch, m, n)}, got factors of shapes {u.shape} and {v.shape}, and shape {c.shape}"
        )
    return ShapedArray(c.shape, c.dtype)


@matrix_equation_p.jvp
def _equation_jvp(primals: Any, tangents: Any, *, stein: bool, conjugated: bool, tolerance: float) -> Any:
    # A dX + dX B = dC - dA X - X dB, and A dX B - dX = dC - dA X B - A X dB.
    *fixed, c = primals
    ta, tb, *_, tc = tangents
    solve = partial(_equation, *fixed, stein=stein, conjugated=conjugated, tolerance=tolerance)
    x = solve(c)
    if 0 in c.shape:
        return x, ZERO
    turned = adjoint if conjugated else lambda x: x
    total = tc
    for t, left in ((ta, True), (tb, False)):
        if t is ZERO:
            continue
        moved = product(turned(t), x) if left else product(x, turned(t))
        if stein:
            moved = product(moved, turned(fixed[1])) if left else product(turned(fixed[0]), moved)
        moved = ops.neg(moved)
        total = moved if total is ZERO else ops.add_any_p.bind(total, moved)
    return x, ZERO if total is ZERO else solve(total)


@taylor(matrix_equation_p)
def _equation_taylor(
    ans: Series, a: Series, b: Series, u: Series, r: Series, v: Series, s: Series, c: Series, *, stein: bool,
    conjugated: bool, tolerance: float,
) -> Coefficient | None:  # fmt: skip
    """Return the function that computes the Taylor coefficients of the solution X of A X + X B = C; None if X is empty.

    If ``stein``, the equation is A X B - X = C.

    Args:
      ans: the series of X.
      a, b: the series of A and B.
      u, r, v, s: the series of the Schur factors: A = U R U* and B = V S V*.
      c: the series of C.
      stein: whether the equation is A X B - X = C.
      conjugated: whether the equation has the adjoints of A and B instead of A and B.
      tolerance: X is NaN if a sum of eigenvalues of A and B (``stein``: a product minus 1) is at most this in modulus.
    """
    if 0 in c[0].shape:
        return None
    fixed = [x[0] for x in (a, b, u, r, v, s)]
    turned = adjoint if conjugated else lambda x: x

    def from_left(m: Any, x: Any) -> Any:
        return product(turned(m), x)

    def from_right(m: Any, x: Any) -> Any:
        return product(x, turned(m))

    moved = Series([from_left(a[0], ans[0])]) if stein else ans  # A X, which is multiplied by B

    def coefficient(k: int) -> Any:
        if stein and k > 1:
            moved.known.append(convolution(from_left, a, ans, k - 1))
        left = convolution(from_left, a, ans, k, first=1)
        if stein and left is not ZERO:
            left = from_right(b[0], left)
        rest = ops.difference(c[k], total([left, convolution(from_right, b, moved, k, first=1)]))
        if rest is ZERO:
            return rest
        return _equation(*fixed, rest, stein=stein, conjugated=conjugated, tolerance=tolerance)

    return coefficient


@partial(matrix_equation_p.transpose, linear_in=(6,))
def _equation_transpose(
    ct: Any, a: Any, b: Any, u: Any, r: Any, v: Any, s: Any, c: LinearVar,
    *, stein: bool, conjugated: bool, tolerance: float,
) -> Any:  # fmt: skip
    # The pairing is bilinear: the transpose solves with the transposes of A and B, which are conjugates of adjoints.
    solved = _equation(
        a, b, u, r, v, s, ops.conj(ct), stein=stein, conjugated=not conjugated, tolerance=tolerance
    )  # fmt: skip
    return *[None] * 6, ops.conj(solved)


@matrix_equation_p.lowering
def _equation_lowering(
    hlo: Any, a: Any, b: Any, u: Any, r: Any, v: Any, s: Any, c: Any,
    *, stein: bool, conjugated: bool, tolerance: float,
) -> Any:  # fmt: skip
    if 0 in c.shape:
        return c
    dtype = r.dtype
    f = hlo.inline(lambda u, v, c: product(product(adjoint(u), ops.convert_element_type(c, dtype)), v), u, v, c)
    step = partial(_column, s.shape[-1], stein, conjugated)
    y = repeat(hlo, s.shape[-1], step, [hlo.splat(0, f.shape, dtype), r, s, f])[0]

    def finish(u: Any, r: Any, v: Any, s: Any, y: Any) -> Any:
        x = product(product(u, y), adjoint(v))
        x = x if dtypes.is_complex(c.dtype) else ops.real(x)
        regular = shapes.expand_dims(_is_regular(r, s, stein, tolerance), (-2, -1))
        return ops.where(regular, x, not_a_number(c.dtype))

    return hlo.inline(finish, u, r, v, s, y)


def _column(size: int, is_stein: bool, conjugated: bool, i: Any, y: Any, r: Any, s: Any, f: Any) -> list[Any]:
    """Compute one column of the solution Y of R Y + Y S = F, or R Y S - Y = F, with triangular R and S, as a loop step.

    Args:
      size: the number of columns.
      is_stein: whether the equation is R Y S - Y = F.
      conjugated: whether the equation has the adjoints of R and S instead of R and S. The steps then go from the last
        column to the first.
      i: the number of the step.
      y: Y, whose columns are zero until they are computed.
      r, s, f: the matrices R, S and F.

    Returns:
      The loop's next values: Y with one more column, R, S and F.
    """
    last = len(r.shape) - 1
    k = ops.sub(size - 1, i) if conjugated else i
    corner = element(element(s, k, last - 1), k, last)
    column = adjoint(element(s, k, last - 1)) if conjugated else element(s, k, last)
    known = product(y, column)
    eye = on_diagonal(r.shape[-1])
    if is_stein:
        known = product(adjoint(r) if conjugated else r, known)
        matrix = ops.sub(ops.mul(corner, r), ops.convert_element_type(eye, r.dtype))
    else:
        matrix = ops.add(r, ops.where(eye, corner, 0))
    right = ops.sub(element(f, k, last), known)
    solved = triangular_solve(matrix, right, left_side=True, lower=False, **(_ADJOINT if conjugated else {}))
    here = ops.eq_p.bind(iota(np.dtype(np.int32), (1,) * last + (size,), last), k)
    return [ops.where(here, solved, y), r, s, f]
