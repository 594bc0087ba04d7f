"""Functions that models often need, with derivatives other than those of the values that they compute.

Each is a few lines on ``custom_jvp`` or ``custom_vjp``, and works eager and compiled, in both
modes, at any order, and under ``vmap``. Arguments ``x`` may be trees of arrays; integer leaves pass through.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pullback.numpy as pnp
from pullback.control.solves import NOTHING, Solver
from pullback.core import dtypes, source, tree
from pullback.core.arguments import require_function
from pullback.core.array import as_array, typeof
from pullback.core.errors import ArgumentError, ShapeError
from pullback.core.naming import named
from pullback.core.trace import Tracer
from pullback.primitives.elementwise import complex as make_complex
from pullback.primitives.operands import stop_gradient
from pullback.transforms.autodiff.grad import vjp
from pullback.transforms.autodiff.jvp import jvp
from pullback.transforms.autodiff.vmap import vmap
from pullback.transforms.custom.custom_rules import CustomFunction, custom_jvp, custom_vjp
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import is_float0, name_of

__all__ = [
    "clip_gradient",
    "clip_gradient_norm",
    "implicit_function",
    "reverse_gradient",
    "safe_where",
    "scale_gradient",
    "straight_through",
]


def _map_inexact(function: Callable[[Any], Any], tangents: Any) -> Any:
    """Apply ``function`` to the float and complex leaves of a tree of tangents or cotangents; keep the other leaves."""
    return tree.tree_map(lambda t: t if is_float0(t) else function(t).astype(t.dtype), tangents)


# Branches -----------------------------------------------------------------------------------------------------------


@named
def safe_where(condition: Any, fun: Callable[[Any], Any], x: Any, otherwise: Any = 0.0, safe: Any = 1.0) -> Any:
    """Return ``where(condition, fun(x), otherwise)`` with finite derivatives even if an unused ``fun(x)`` is singular.

    In ``where(x > 0, sqrt(x), 0)`` the derivative of the branch that is not taken is multiplied by zero, which is NaN
    if it is infinite. Here ``fun`` receives ``safe`` instead of the elements whose result is not used.

    Args:
      condition: a boolean array, of a shape that broadcasts against the leaves of ``x`` and of the result.
      fun: takes a tree like ``x`` and returns a tree of arrays; it acts on each element, or row, separately.
      x: an array or a tree of them.
      otherwise: the result where the condition is false: one value, or a tree of them like the result.
      safe: the argument of ``fun`` there, at which it must be smooth: one value, or a tree of them like ``x``.

    Returns:
      The result of ``fun``, with ``otherwise`` where the condition is false.

    Raises:
      ArgumentError: ``fun`` is no function, or ``safe`` or ``otherwise`` is a tree that does not fit (a TypeError and
        a ValueError).
      OperandError: an argument is neither an array nor a number (a TypeError).
      ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import grad
    >>> from pullback.gradient_helpers import safe_where
    >>> print(grad(lambda x: safe_where(x > 0, jnp.sqrt, x))(0.0))
    0.0
    """
    require_function("safe_where", "fun", fun)
    leaves, treedef = tree.flatten(x)
    instead = tree.broadcast_prefix(safe, x)
    given = [pnp.where(condition, leaf, s) for leaf, s in zip(leaves, instead, strict=True)]
    out = fun(tree.unflatten(treedef, given))
    leaves, treedef = tree.flatten(out)
    instead = tree.broadcast_prefix(otherwise, out)
    return tree.unflatten(treedef, [pnp.where(condition, y, o) for y, o in zip(leaves, instead, strict=True)])


# Identities with custom derivatives ----------------------------------------------------------------------------------


def _meant(function: CustomFunction, **expected: bool) -> CustomFunction:
    """Mark a function whose derivative rule differs from its true derivative on purpose; return the function.

    ``expected`` are options of ``check_rule`` that make it accept the differences.
    """
    vars(function)["rule_check"] = expected
    return function


@custom_jvp
def _scaled(x: Any, factor: Any) -> Any:
    return x


@_scaled.defjvp
def _scaled_jvp(primals: tuple[Any, Any], tangents: tuple[Any, Any]) -> tuple[Any, Any]:
    factor = stop_gradient(primals[1])
    return _scaled(*primals), _map_inexact(lambda leaf: leaf * factor, tangents[0])


_meant(_scaled, derivative=False)


@named
def scale_gradient(x: Any, factor: Any) -> Any:
    """Return ``x`` with its derivative multiplied by a factor, in both modes.

    Args:
      x: an array or a tree of them.
      factor: a number, or an array that broadcasts to each leaf; a constant for derivatives.

    Returns:
      ``x``, unchanged.

    Raises:
      OperandError: a leaf of ``x``, or ``factor``, is neither an array nor a number (a TypeError).

    >>> from pullback import grad
    >>> from pullback.gradient_helpers import scale_gradient
    >>> print(grad(lambda x: scale_gradient(x, 0.5) ** 2)(3.0))
    3.0
    """
    return _scaled(x, factor)


@named
def reverse_gradient(x: Any, factor: Any = 1.0) -> Any:
    """Return ``x`` with its derivative multiplied by ``-factor``: the layer of domain-adversarial training.

    Args:
      x: an array or a tree of them.
      factor: a number, or an array that broadcasts to each leaf; a constant for derivatives.

    Returns:
      ``x``, unchanged.

    Raises:
      OperandError: a leaf of ``x``, or ``factor``, is neither an array nor a number (a TypeError).

    Source: Y. Ganin and V. Lempitsky, Unsupervised domain adaptation by backpropagation, ICML 2015.

    >>> from pullback import grad
    >>> from pullback.gradient_helpers import reverse_gradient
    >>> print(grad(lambda x: reverse_gradient(x) ** 2)(3.0))
    -6.0
    """
    return _scaled(x, pnp.negative(factor))


def _clipping(clip: Callable[..., Any]) -> CustomFunction:
    """Make a function that returns its first argument, and clips the cotangent of this argument.

    The clipped cotangent is ``clip(cotangent, *other_arguments)``. In forward mode tangents pass unchanged, since
    clipping is not linear and has no transpose.
    """
    identity = custom_vjp(lambda x, *limits: x)

    def forward(x: Any, *limits: Any) -> tuple[Any, Any]:
        return x, limits

    def backward(limits: Any, ct: Any) -> tuple[Any, ...]:
        return clip(ct, *limits), *[None] * len(limits)

    identity.defvjp(forward, backward)
    identity.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
    return _meant(identity, linear=False)


def _clip_elements(ct: Any, low: Any, high: Any) -> Any:
    return _map_inexact(lambda leaf: pnp.clip(leaf, low, high), ct)


_clipped = _clipping(_clip_elements)


@named
def clip_gradient(x: Any, low: Any, high: Any) -> Any:
    """Return ``x`` with its gradient clipped elementwise.

    Args:
      x: a real array or a tree of them.
      low, high: the least and the greatest gradient of an element, numbers or arrays that broadcast to each leaf; None
        for no limit.

    Returns:
      ``x``. In reverse mode its cotangent is clipped; in forward mode, where there are no gradients to clip, its
      tangent passes unchanged.

    Raises:
      OperandError: a leaf of ``x``, or a limit, is neither an array nor a number (a TypeError).

    >>> from pullback import grad
    >>> from pullback.gradient_helpers import clip_gradient
    >>> print(grad(lambda x: 10.0 * clip_gradient(x, -1.0, 1.0))(3.0))
    1.0
    """
    return _clipped(x, low, high)


def _clip_norm(ct: Any, largest: Any) -> Any:
    squares = [pnp.abs(leaf.astype(_wide(leaf.dtype))) ** 2 for leaf in tree.leaves(ct) if not is_float0(leaf)]
    square = functools.reduce(pnp.add, map(pnp.sum, squares), pnp.zeros(()))
    factor = safe_where(square > largest**2, lambda s: largest / pnp.sqrt(s), square, otherwise=1.0)
    return _map_inexact(lambda leaf: leaf * factor, ct)


def _wide(dtype: Any) -> Any:
    """Return the dtype in which to sum squares of elements: at least float32, otherwise ``dtype`` itself."""
    return dtype if dtypes.is_complex(dtype) or dtype.itemsize > 2 else pnp.float32


_clipped_by_norm = _clipping(_clip_norm)


@named
def clip_gradient_norm(x: Any, largest: Any) -> Any:
    """Return ``x`` with its gradient scaled down to a maximal norm.

    Args:
      x: an array or a tree of them, whose leaves have one norm together, the Euclidean one.
      largest: the maximal norm, a nonnegative number.

    Returns:
      ``x``. In reverse mode its cotangent is clipped, under ``vmap`` separately for each example; in forward mode its
      tangent passes unchanged.

    Raises:
      OperandError: a leaf of ``x``, or ``largest``, is neither an array nor a number (a TypeError).

    Source: R. Pascanu, T. Mikolov and Y. Bengio, On the difficulty of training recurrent neural networks, ICML 2013.

    >>> import pullback.numpy as jnp
    >>> from pullback import grad
    >>> from pullback.gradient_helpers import clip_gradient_norm
    >>> print(grad(lambda x: jnp.dot(clip_gradient_norm(x, 1.0), jnp.array([3.0, 4.0])))(jnp.zeros(2)))
    [0.6 0.8]
    """
    return _clipped_by_norm(x, largest)


@custom_jvp
def _with_derivative_of(x: Any, value: Any) -> Any:
    return value


@_with_derivative_of.defjvp
def _with_derivative_of_jvp(primals: tuple[Any, Any], tangents: tuple[Any, Any]) -> tuple[Any, Any]:
    return _with_derivative_of(*primals), tangents[0]


_meant(_with_derivative_of, derivative=False)


def straight_through(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with the values of ``fun`` and the derivative of the identity, as for rounding.

    Args:
      fun: ``fun(x, *args, **kwargs)`` returns a tree of arrays of the shapes and dtypes of ``x``. It is not
        differentiated, so it may be anything, a call of a foreign function for example.

    Returns:
      A function of the same arguments. Its derivative with respect to the first is the identity, with respect to all
      others it is zero.

    Raises:
      ShapeError: from a call, if the result is not of the tree, shapes and dtypes of ``x`` (a TypeError).

    Source: Y. Bengio, N. Léonard and A. Courville, Estimating or propagating gradients through stochastic neurons for
    conditional computation, arXiv:1308.3432, 2013.

    >>> import pullback.numpy as jnp
    >>> from pullback import value_and_grad
    >>> from pullback.gradient_helpers import straight_through
    >>> @straight_through
    ... def rounded(x):
    ...     return jnp.round(x)
    >>> value, gradient = value_and_grad(lambda x: rounded(x) ** 2)(2.7)
    >>> print(value, gradient)
    9.0 6.0
    """
    require_function("straight_through", "fun", fun)

    @source.named_as(fun)
    @api_boundary
    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        x = tree.tree_map(as_array, x)
        fixed, args, kwargs = tree.tree_map(_constant, (x, args, kwargs))
        value = tree.tree_map(as_array, fun(fixed, *args, **kwargs))
        _check_alike(f"{name_of(fun)} is a straight_through function, so its result", value, "its first argument", x)
        return _with_derivative_of(x, value)

    return call


def _constant(x: Any) -> Any:
    return stop_gradient(x) if isinstance(x, Tracer) else x


def _check_alike(what: str, value: Any, other: str, example: Any) -> None:
    """Raise an error unless two trees have the same structure and leaves of the same types.

    Args:
      what, value: the name of the tree to check, for the error; and this tree.
      other, example: the name of the expected tree; and this tree.
    """
    pairs = []
    for x in (value, example):
        leaves, treedef = tree.flatten(x)
        pairs.append((treedef, [typeof(leaf).update(weak_type=False) for leaf in leaves]))
    if pairs[0] != pairs[1]:
        shown = [str(tree.unflatten(treedef, avals)) for treedef, avals in pairs]
        raise ShapeError(
            f"{what} must have the tree, shapes and dtypes of {other}, which is {shown[1]}, but it is {shown[0]}"
        )


# Implicit functions --------------------------------------------------------------------------------------------------

LinearSolve = Callable[[Callable[[Any], Any], Any], Any]


def implicit_function(
    residual: Callable[..., Any], solver: Callable[..., Any], linear_solve: LinearSolve | None = None
) -> Callable[..., Any]:
    """Return a function that solves an equation, with derivatives by the implicit function theorem.

    If ``residual(z, *params) = 0``, the derivative of ``z`` with respect to the parameters solves a linear system,
    however ``z`` was computed: the solver is not differentiated, and may be a loop that stops by its values.

    Args:
      residual: ``residual(z, *params)``, a tree of real or complex arrays of the shapes and dtypes of ``z``; for a
        fixed point of ``g`` it is ``g(z, *params) - z``. Its derivative with respect to ``z`` must be invertible at
        the solution.
      solver: ``solver(*params) -> z``. It must solve the equation as precisely as derivatives are wanted. Neither
        function may close over a value with respect to which is differentiated: pass it as one of the parameters.
      linear_solve: ``linear_solve(matvec, b) -> x``, with ``matvec(x) = b``, where ``matvec`` is linear, and ``x`` and
        ``b`` are trees like ``z``; it is used for the transposed system too. By default the matrix is computed, and
        solved densely.

    Returns:
      A function ``solve(*params) -> z``, differentiable in both modes and to any order.

    Raises:
      ShapeError: the residual is not a tree like ``z``, or not of real or complex numbers (a TypeError).

    Source: A. Griewank and A. Walther, Evaluating Derivatives, 2nd ed., SIAM 2008, chapter 15.

    >>> from pullback import grad
    >>> from pullback.gradient_helpers import implicit_function
    >>> def newton(a):
    ...     z = a
    ...     for _ in range(20):
    ...         z = 0.5 * (z + a / z)
    ...     return z
    >>> square_root = implicit_function(lambda z, a: z**2 - a, newton)
    >>> print(square_root(4.0), grad(square_root)(4.0), grad(grad(square_root))(4.0))
    2.0 0.25 -0.03125
    """
    require_function("implicit_function", "residual", residual)
    require_function("implicit_function", "solver", solver)
    if linear_solve is not None:
        require_function("implicit_function", "linear_solve", linear_solve)
    inverse = _inverse(residual, linear_solve or _dense_solve)
    solve = custom_jvp(solver)

    @solve.defjvp
    def solve_jvp(params: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        z = tree.tree_map(as_array, solve(*params))
        value, moved = jvp(lambda *given: residual(z, *given), params, tangents)
        _check_alike(f"implicit_function: the residual {name_of(residual)}", value, "the solution", z)
        for x in tree.leaves(z):
            if not dtypes.is_inexact(x.dtype):
                raise ArgumentError(
                    f"implicit_function: the solution that {name_of(solver)} returns must be real or complex to be "
                    f"differentiated, but it has a leaf {typeof(x)}. Let it return the solution of the equation only."
                )
        return z, inverse.solution(((z, params), NOTHING), tree.tree_map(pnp.negative, moved), z)

    return solve


def _inverse(residual: Callable[..., Any], tangent_solve: LinearSolve) -> Solver:
    """Return a solver of linear systems whose matrix is the Jacobian of ``residual(z, *params)`` by the state ``z``.

    ``tangent_solve(matvec, b)`` solves one system; ``matvec`` multiplies a vector by the matrix.
    """

    def matvec(point: Any, t: Any) -> Any:
        z, params = point
        return jvp(lambda z: residual(z, *params), (z,), (t,))[1]

    def vecmat(point: Any, ct: Any) -> Any:
        z, params = point
        return vjp(lambda z: residual(z, *params), z)[1](ct)[0]

    return Solver.of(residual, matvec, vecmat, tangent_solve, tangent_solve)


def _dense_solve(matvec: Callable[[Any], Any], b: Any) -> Any:
    """Solve the linear system ``matvec(x) = b`` by its dense matrix.

    Complex numbers are solved for as pairs of real coordinates, since ``matvec`` may be linear over real numbers only.
    """
    flat, build = _coordinates(b)
    columns = vmap(lambda e: _coordinates(matvec(build(e)))[0])(pnp.eye(flat.size, dtype=flat.dtype))
    return build(pnp.linalg.solve(columns.T, flat))


def _coordinates(x: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return the real and imaginary parts of a tree as one vector, and the function that rebuilds the tree."""
    leaves, treedef = tree.flatten(x)
    parts: list[Any] = []
    for leaf in leaves:
        parts += [leaf.real, leaf.imag] if dtypes.is_complex(leaf.dtype) else [leaf]
    dtype = dtypes.result_type(*[part.dtype for part in parts]) if parts else None
    flat = pnp.concatenate([pnp.ravel(part).astype(dtype) for part in parts]) if parts else pnp.zeros(0)

    def build(vector: Any) -> Any:
        built = []
        start = 0
        for leaf in leaves:
            whole = [vector[start : start + leaf.size]]
            start += leaf.size
            if dtypes.is_complex(leaf.dtype):
                whole.append(vector[start : start + leaf.size])
                start += leaf.size
            shaped = [pnp.reshape(part, leaf.shape) for part in whole]
            built.append((shaped[0] if len(shaped) == 1 else make_complex(*shaped)).astype(leaf.dtype))
        return tree.unflatten(treedef, built)

    return flat, build
