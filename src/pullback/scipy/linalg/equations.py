"""Linear equations for matrices: Sylvester's and Lyapunov's."""

from __future__ import annotations

from typing import Any

from pullback.core.arguments import is_listed
from pullback.core.array import Array, ArrayLike, typeof
from pullback.core.errors import ArgumentError, ShapeError
from pullback.numpy import linalg as numpy_linalg
from pullback.numpy import manipulation
from pullback.numpy.decompositions import eig
from pullback.numpy.promotion import inexact_operands
from pullback.primitives import elementwise as ops
from pullback.primitives.linalg.lapack import adjoint, check_decomposable, product
from pullback.primitives.linalg.lu import linear_solve
from pullback.primitives.linalg.matrix_equations import stein, sylvester

__all__ = ["solve_continuous_lyapunov", "solve_discrete_lyapunov", "solve_sylvester"]


def _matrices(name: str, *xs: Any) -> list[Any]:
    """Convert matrices to one dtype that LAPACK supports, and broadcast their leading axes.

    All except the last must be square. The last is the right side, whose rows and columns must fit the other matrices.
    """
    matrices = inexact_operands(name, *xs)
    for x in matrices[:-1]:
        numpy_linalg.require_square(name, x)
    check_decomposable(name, typeof(matrices[0]))
    rows, columns = matrices[0].shape[-1], matrices[-2].shape[-1]
    right = matrices[-1]
    if right.shape[-2:] != (rows, columns):
        raise ShapeError(
            f"{name}: the right-hand side must have {rows} rows and {columns} columns, for matrices of shapes "
            f"{' and '.join(str(x.shape) for x in matrices[:-1])}; got shape {right.shape}"
        )
    batch = manipulation.broadcast_shapes(*[x.shape[:-2] for x in matrices])
    return [manipulation.broadcast_to(x, (*batch, *x.shape[-2:])) for x in matrices]


def solve_sylvester(A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur", tol: float = 1e-8) -> Array:
    """The solutions X of A X + X B = C.

    Args:
      A: an array (..., m, m) of numbers; integers become floats.
      B: an array (..., n, n).
      C: an array (..., m, n). The leading axes of all broadcast.
      method: "schur", by Schur's decompositions; or "eigen", by eigenvectors, which is less precise where they are
        nearly dependent.
      tol: X is NaN where the sum of an eigenvalue of A and one of B is no larger than this: the equation has then no,
        or more than one, solution.

    Returns:
      An array (..., m, n). Its derivative solves A dX + dX B = dC - dA X - X dB.

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).
      ArgumentError: an unknown ``method`` (a TypeError and a ValueError).

    Source: R. H. Bartels and G. W. Stewart 1972, "Solution of the matrix equation AX + XB = C".

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> a, b = jnp.array([[1.0, 0.0], [0.0, 2.0]]), jnp.array([[1.0]])
    >>> print(linalg.solve_sylvester(a, b, jnp.array([[2.0], [6.0]])))
    [[1.]
     [2.]]
    """
    a, b, c = _matrices("solve_sylvester", A, B, C)
    if method == "schur":
        return sylvester(a, b, c, tol)
    if not is_listed(method, ("eigen",)):
        raise ArgumentError(f"solve_sylvester: method must be 'schur' or 'eigen', got {method!r}")
    left, u = eig(a)
    right, v = eig(b)
    sums = left[..., :, None] + right[..., None, :]
    inner = product(linear_solve(u, ops.convert_element_type(c, u.dtype)), v) / sums
    x = product(u, adjoint(linear_solve(adjoint(v), adjoint(inner))))
    x = ops.convert_element_type(x if x.dtype == c.dtype else ops.real(x), c.dtype)
    regular = (ops.abs(sums) > tol).all((-2, -1), keepdims=True)
    return ops.where(regular, x, float("nan"))


def solve_continuous_lyapunov(a: ArrayLike, q: ArrayLike) -> Array:
    """The solutions X of A X + X A* = Q, where A* is the adjoint.

    Args:
      a: an array (..., n, n) of numbers; integers become floats.
      q: an array (..., n, n). The leading axes of both broadcast.

    Returns:
      An array (..., n, n); NaN where the sum of an eigenvalue of A and a conjugate eigenvalue is zero.

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).

    Source: R. H. Bartels and G. W. Stewart 1972, "Solution of the matrix equation AX + XB = C".

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> print(linalg.solve_continuous_lyapunov(jnp.array([[-1.0, 0.0], [0.0, -2.0]]), -jnp.eye(2)))
    [[0.5  0.  ]
     [0.   0.25]]
    """
    a, q = _matrices("solve_continuous_lyapunov", a, q)
    return sylvester(a, adjoint(a), q)


def solve_discrete_lyapunov(a: ArrayLike, q: ArrayLike, method: str | None = None) -> Array:
    """The solutions X of A X A* - X + Q = 0, where A* is the adjoint.

    Args:
      a: an array (..., n, n) of numbers; integers become floats.
      q: an array (..., n, n). The leading axes of both broadcast.
      method: without effect; SciPy's "direct" and "bilinear" are accepted. Schur's decomposition is used for both.

    Returns:
      An array (..., n, n); NaN where the product of an eigenvalue of A and a conjugate eigenvalue is one.

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      DtypeError: floats of 16 bits (a TypeError).
      ArgumentError: an unknown ``method`` (a TypeError and a ValueError).

    Source: G. Kitagawa 1977, "An algorithm for solving the matrix equation X = F X F' + S".

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import linalg
    >>> print(linalg.solve_discrete_lyapunov(jnp.array([[0.5, 0.0], [0.0, 0.0]]), jnp.eye(2)))
    [[1.3333334 0.       ]
     [0.        1.       ]]
    """
    if not is_listed(method, (None, "direct", "bilinear")):
        raise ArgumentError(f"solve_discrete_lyapunov: method must be None, 'direct' or 'bilinear', got {method!r}")
    a, q = _matrices("solve_discrete_lyapunov", a, q)
    return stein(a, adjoint(a), ops.neg(q))
