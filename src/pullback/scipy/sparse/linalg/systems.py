"""Shared by the iterative methods: checks of operands, and the implicit derivatives of solutions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from pullback.control.solves import custom_linear_solve
from pullback.core import dtypes, tree
from pullback.core.arguments import typed
from pullback.core.array import ArrayLike, typeof
from pullback.core.errors import ArgumentError, DtypeError, OperandError, ShapeError
from pullback.numpy.promotion import inexact_operand, operand, quote
from pullback.primitives import elementwise as ops
from pullback.primitives.linalg.lapack import product
from pullback.primitives.reductions import reduce_sum
from pullback.scipy.sparse.linalg.entries import Constant, Entries, entries_of, is_scipy_sparse
from pullback.scipy.vectors import Vectors
from pullback.transforms.autodiff.grad import linear_transpose
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct, eval_shape
from pullback.transforms.functions.arguments import as_weak

Function = Callable[[Any], Any]


class Matrix(Protocol):
    """An object with a shape that multiplies by ``@``, such as a sparse matrix."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __matmul__(self, other: Any, /) -> Any: ...


Operator = ArrayLike | Matrix | Function
"""A matrix, or a function that multiplies by it."""
Method = Callable[[Function, Any, Any, Function, Any], tuple[Any, Any]]


def dot(x: Any, y: Any) -> Any:
    """The inner product of two vectors, where the first is conjugated."""
    return product(ops.conj(x)[None], y[:, None])[0, 0]


def squared_norm(x: Any) -> Any:
    if dtypes.is_complex(x.dtype):
        return reduce_sum(ops.add(ops.mul(ops.real(x), ops.real(x)), ops.mul(ops.imag(x), ops.imag(x))), (0,))
    return dot(x, x)


def norm(x: Any) -> Any:
    return ops.sqrt(squared_norm(x))


def operator(name: str, what: str, a: Any) -> tuple[Function, Any]:
    """Return a function that multiplies by ``a``, and ``a`` as a matrix, or None if it is a function."""
    if callable(a):
        return a, None
    if is_scipy_sparse(a) or isinstance(a, Constant):
        entries = a.entries if isinstance(a, Constant) else entries_of(name, a, what, square=False)
        return partial(_times, entries), ShapeDtypeStruct(entries.shape, entries.data.dtype)
    if hasattr(type(a), "__matmul__") and not any(hasattr(a, n) for n in ("dtype", "__array__", "__jax_array__")):
        return lambda x: a @ x, None
    is_array = isinstance(getattr(a, "shape", None), tuple)
    if not is_array or not hasattr(a, "indices"):  # sparse arrays are not made dense
        if not is_array:
            raise OperandError(
                f"{name}: {what} must be a matrix, or a function that multiplies by a matrix, got {typed(a)}"
            )
        a = inexact_operand(name, a)
    if len(a.shape) != 2:
        raise ShapeError(f"{name}: {what} must be a matrix, got shape {a.shape}")
    return lambda x: a @ x, a


def _times(a: Entries, x: Any) -> Any:
    dtype = dtypes.result_type(a.data.dtype, x.dtype)
    return a.of(dtype).times(ops.convert_element_type(x, dtype))


class System:
    """The equation A x = b with checked operands, which the iterative methods solve.

    Attributes:
      name: the name of the public function, for errors.
      matvec: multiplies a tree like ``b`` by A.
      b: the right side.
      x0: the starting point, a tree like ``b``, or None for zeros.
      preconditioner: multiplies by an approximate inverse of A.
      vectors: converts trees like ``b`` to vectors and back.
    """

    def __init__(self, name: str, a: Any, b: Any, x0: Any, m: Any) -> None:
        self.name = name
        self.matvec, matrix = operator(name, "A", a)
        b = tree.tree_map(lambda x: inexact_operand(name, x), b)
        if not tree.leaves(b):
            raise ArgumentError(f"{name}: b must contain at least one array, got {b!r}")
        if matrix is not None:
            b = self._promoted(matrix, b)
        b, self._products = self._of_products(b)
        self.b = b
        self.x0 = None if x0 is None else self._start(x0)
        self.preconditioner = (lambda x: x) if m is None else self._approximate_inverse(m)
        self.vectors = Vectors(b)

    def _promoted(self, matrix: Any, b: Any) -> Any:
        m, n = matrix.shape
        if m != n:
            raise ShapeError(f"{self.name}: A must be a square matrix, got shape {matrix.shape}")
        if len(tree.leaves(b)) != 1 or not hasattr(b, "shape"):
            raise OperandError(f"{self.name}: b must be an array if A is a matrix, got {tree.structure(b)}")
        if b.shape[:1] != (n,):
            raise ShapeError(
                f"{self.name}: the first axis of b must have {n} elements, the number of rows of A, got shape {b.shape}"
            )
        return ops.convert_element_type(b, dtypes.result_type(matrix.dtype, b.dtype))

    def _of_products(self, b: Any) -> tuple[Any, Any]:
        """Return ``b`` promoted to the dtypes of A b, and the types of A b.

        Raise unless A b has the tree and shapes of ``b``.
        """
        for _ in range(2):
            out = eval_shape(self.matvec, b)
            leaves, treedef = tree.flatten(b)
            found, other = tree.flatten(out)
            if treedef != other or any(x.shape != y.shape for x, y in zip(leaves, found, strict=False)):
                raise ShapeError(
                    f"{self.name}: A must map a tree like b, {_outline(b)}, to another one, but returned "
                    f"{_outline(out)}"
                )
            wider = [dtypes.result_type(x.dtype, y.dtype) for x, y in zip(leaves, found, strict=True)]
            if all(x.dtype == d for x, d in zip(leaves, wider, strict=True)):
                break
            b = tree.unflatten(
                treedef, [ops.convert_element_type(x, d) for x, d in zip(leaves, wider, strict=True)]
            )  # fmt: skip
        else:
            raise DtypeError(f"{self.name}: A widens the dtype of b with each application, to {_outline(out)}")
        return b, out

    def _start(self, x0: Any) -> Any:
        leaves, treedef = tree.flatten(tree.tree_map(lambda x: operand(self.name, x), x0))
        expected, other = tree.flatten(self.b)
        if treedef != other or any(x.shape != y.shape for x, y in zip(leaves, expected, strict=True)):
            raise ShapeError(
                f"{self.name}: x0 must have the tree and shapes of b, {_outline(self.b)}, got {_outline(x0)}"
            )
        arrays = [ops.convert_element_type(x, y.dtype) for x, y in zip(leaves, expected, strict=True)]
        return tree.unflatten(treedef, arrays)

    def _approximate_inverse(self, m: Any) -> Function:
        function, _ = operator(self.name, "M", m)
        out = eval_shape(function, self.b)
        same = tree.structure(out) == tree.structure(self.b)
        if not same or [x.shape for x in tree.leaves(out)] != [x.shape for x in tree.leaves(self.b)]:
            raise ShapeError(
                f"{self.name}: M must map a tree like b, {_outline(self.b)}, to another one, but returned "
                f"{_outline(out)}"
            )
        return function

    def solved(self, method: Any, maxiter: int, symmetric: bool) -> tuple[Any, Any]:
        """Return the solution that a method finds, and its ``info``, with the implicit derivative.

        Args:
          method: ``method(a, b, x, r, m, maxiter) -> (x, info)``, for vectors and functions of vectors; r is b - A x.
          maxiter: the largest number of iterations.
          symmetric: whether A and M are their own adjoints.
        """
        vectors = self.vectors

        def run(matvec: Function, b: Any, x0: Any, m: Function) -> Any:
            flat = vectors.ravel(b)
            a = lambda x: vectors.ravel(matvec(vectors.tree(x)))
            start, residual = begin(a, flat, None if x0 is None else vectors.ravel(x0))
            inverse = lambda x: vectors.ravel(m(vectors.tree(x)))
            x, info = method(a, flat, start, residual, inverse, maxiter)
            return vectors.tree(x), info

        def solve(matvec: Function, b: Any) -> Any:
            return run(matvec, b, self.x0, self.preconditioner)

        def transpose_solve(vecmat: Function, b: Any) -> Any:
            turned = (
                (lambda x: tree.tree_map(ops.conj, self.preconditioner(tree.tree_map(ops.conj, x))))
                if symmetric
                else (lambda x: linear_transpose(self.preconditioner, self.b)(x)[0])
            )
            return run(vecmat, b, None, turned)

        x, info = custom_linear_solve(self.matvec, self.b, solve, transpose_solve, has_aux=True)
        return self._as_weak(x), info

    def _as_weak(self, x: Any) -> Any:
        """Return a solution with the weak types that A b, b and x0 have in common."""
        found, treedef = tree.flatten(x)
        given = map(tree.leaves, (self._products, self.b, self.b if self.x0 is None else self.x0))
        weak = [all(y.weak_type for y in ys) for ys in zip(*given, strict=True)]
        leaves = [x if x.weak_type == w else as_weak(x, w) for x, w in zip(found, weak, strict=True)]
        return tree.unflatten(treedef, leaves)


def begin(a: Function, b: Any, x0: Any) -> tuple[Any, Any]:
    """Return the starting point and its residual: ``x0``, or zero if ``x0`` is None or has a larger residual than zero.

    The equations of derivatives, which this function begins too, have other solutions, to which ``x0`` may not be near.
    """
    zero = ops.mul(b, 0)
    if x0 is None:
        return zero, b
    residual = ops.sub(b, a(x0))
    better = squared_norm(residual) < squared_norm(b)
    return ops.where(better, x0, zero), ops.where(better, residual, b)


def _outline(x: Any) -> str:
    shown = tree.tree_map(lambda y: format(typeof(y)) if not hasattr(y, "dtype") else f"{y.dtype}{list(y.shape)}", x)
    return str(shown)


def tolerance(name: str, b: Any, tol: Any, atol: Any) -> Any:
    """Return the norm of the residual at which a method stops: the greater of ``tol`` times norm(b) and ``atol``."""
    real = dtypes.to_real(b.dtype)
    convert = lambda x: ops.convert_element_type(operand(name, x), real)
    return ops.max_p.bind(ops.mul(convert(tol), norm(b)), convert(atol))


def most_iterations(name: str, maxiter: Any, default: int) -> Any:
    """Return the largest number of iterations, a Python integer or an array."""
    if maxiter is None:
        return default
    x = operand(name, maxiter)
    if x.shape != () or not dtypes.is_integer(x.dtype):
        raise ArgumentError(f"{name}: maxiter must be an integer, got {quote(maxiter)}")
    return x
