"""``jet`` and ``taylor``: all derivatives of a function along a curve, up to an order, in one pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pullback.core import dtypes, tree
from pullback.core.annotations import PyTree
from pullback.core.arguments import flag, require_function
from pullback.core.array import SCALARS, host_value, is_on_host, typeof
from pullback.core.errors import ArgumentError
from pullback.core.types import ZERO
from pullback.primitives.arrays.shapes import full
from pullback.primitives.elementwise import mul
from pullback.primitives.special import zeta_series  # noqa: F401 (rules for Taylor mode)
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import (
    argument_name,
    check_differentiable,
    dense,
    name_of,
    to_arrays,
    to_tangent,
)
from pullback.transforms.functions.flat_function import FlatFunction
from pullback.transforms.traces.taylor import taylor_flat


@api_boundary
def jet(
    fun: Callable[..., Any], primals: Sequence[PyTree], series: Sequence[Any], factorial_scaled: bool = True
) -> tuple[PyTree, PyTree]:
    """Return the value of a function at the start of a curve, and its derivatives along the curve.

    The curve h(t) starts at the primals, h(0). It is defined by its first n derivatives h', h'', ... at t = 0, for any
    n. The results are fun(h(0)) and the first n derivatives of fun(h(t)) at t = 0. They cost O(n²) times as much as
    ``fun``; n nested :func:`pullback.jvp` would cost 2ⁿ times as much.

    Args:
      fun: takes and returns trees of arrays.
      primals: a tuple or list of the arguments.
      series: a tuple or list with an entry for each argument: a tree like the argument, with a sequence of n
        derivatives in place of each leaf. The derivatives are arrays or numbers of the leaf's shape and dtype.
      factorial_scaled: whether ``series`` and the result are derivatives; otherwise they are Taylor coefficients, which
        are the derivatives of order k divided by k!.

    Returns:
      ``(out, series)``: the value of ``fun``, and a tree like ``out`` with a list of n arrays in place of each leaf.

    Raises:
      ArgumentError: primals and series do not fit each other, or are of different lengths (a TypeError and ValueError).
      TangentMismatchError: a derivative has another shape or dtype than its primal value (a TypeError and ValueError).
      MissingRuleError: an operation has no derivative; the message names it and the line (a NotImplementedError).

    Source: A. Griewank and A. Walther, Evaluating Derivatives, 2nd ed., chapter 13.

    >>> import pullback.numpy as jnp
    >>> from pullback.derivatives import jet
    >>> out, (first, second) = jet(jnp.sin, (0.0,), ((1.0, 0.0),))
    >>> print(out, first, second)
    0.0 1.0 -0.0
    >>> out, derivatives = jet(lambda x, y: x * y, (2.0, 3.0), ((1.0, 0.0), (1.0, 0.0)))
    >>> print(out, *derivatives)
    6.0 5.0 2.0
    """
    require_function("jet", "fun", fun)
    factorial_scaled = flag("jet", "factorial_scaled", factorial_scaled)
    leaves, in_tree, terms = _arguments(fun, primals, series)
    order = len(terms[0]) if terms else 0
    if any(len(cs) != order for cs in terms):
        raise ArgumentError(
            f"jet of {name_of(fun)}: all series must be of one length, got {', '.join(str(len(cs)) for cs in terms)}; "
            "pad the shorter ones with zeros"
        )
    scales = [math.factorial(k) if factorial_scaled else 1 for k in range(1, order + 1)]
    arrays = to_arrays(leaves, "jet", fun, primals)
    given = []
    for i, (x, cs) in enumerate(zip(arrays, terms, strict=True)):
        position = partial(_leaf_name, "jet", i, fun, primals)
        given.append([scaled(_coefficient(c, x, position), 1 / scale) for c, scale in zip(cs, scales, strict=True)])
    flat, outs, coefficients = _along(fun, arrays, in_tree, given, order)
    derivatives = [
        [scaled(dense(c, x), scale) for c, scale in zip(cs, scales, strict=True)]
        for x, cs in zip(outs, coefficients, strict=True)
    ]
    return flat.result(outs), tree.unflatten(flat.out_structure, derivatives)


@api_boundary
def taylor(fun: Callable[..., Any], x: Any, order: int, direction: Any = None) -> list[Any]:
    """Return the Taylor coefficients of a function at a point, along a direction.

    Args:
      fun: takes one argument, a tree of real or complex arrays, and returns such a tree.
      x: the point, a tree of real or complex arrays.
      order: the order of the last coefficient: an integer from 0 on.
      direction: a tree of arrays like ``x``. The coefficients are those of ``fun(x + t * direction)`` as a power
        series in t. By default, all elements are 1: for an elementwise function, these are the coefficients at each
        element.

    Returns:
      A list of ``order + 1`` trees like the result of ``fun``: tree k has the derivatives of order k by t, divided by
      k!.

    Raises:
      ArgumentError: ``order`` is no integer from 0 on; or ``direction`` is not a tree like ``x`` (a TypeError and
        ValueError).
      TangentMismatchError: an array of ``direction`` has another shape or dtype than that of ``x`` (a TypeError and
        ValueError).
      NotDifferentiableError: ``x`` has integers or booleans (a TypeError).

    Source: A. Griewank and A. Walther, Evaluating Derivatives, 2nd ed., chapter 13.

    >>> import pullback.numpy as jnp
    >>> from pullback.derivatives import taylor
    >>> print(*taylor(lambda x: 1 / (1 - x), 0.0, 4))
    1.0 1.0 1.0 1.0 1.0
    >>> print(*taylor(lambda x: x[0] * x[1] ** 2, jnp.array([1.0, 2.0]), 3, jnp.array([1.0, 0.0])))
    4.0 4.0 0.0 0.0
    """
    require_function("taylor", "fun", fun)
    check_order(order, "taylor")
    leaves, in_tree = tree.flatten((x,))
    arrays = to_arrays(leaves, "taylor", fun, (x,))
    for i, a in enumerate(arrays):
        check_differentiable(typeof(a), "taylor", fun, False, False, partial(argument_name, i, fun, (x,)))
    if direction is None:
        moving = [full(a.shape, 1, a.dtype) for a in arrays]
    else:
        given, given_tree = tree.flatten((direction,))
        if given_tree != in_tree:
            raise ArgumentError(
                f"taylor of {name_of(fun)}: the direction must have the tree of the point, {in_tree}, but has "
                f"{given_tree}"
            )
        moving = [
            to_tangent(t, typeof(a), "direction", partial(_leaf_name, "taylor", i, fun, (x,)))
            for i, (t, a) in enumerate(zip(given, arrays, strict=True))
        ]
    first = [[t, *[ZERO] * (order - 1)][:order] for t in moving]
    flat, outs, coefficients = _along(fun, arrays, in_tree, first, order)
    columns = zip(*[[x, *[dense(c, x) for c in cs]] for x, cs in zip(outs, coefficients, strict=True)], strict=True)
    return [flat.result(column) for column in columns] if outs else [flat.result(())] * (order + 1)


def check_order(order: Any, what: str) -> None:
    """Raise an error unless ``order`` is an integer from 0 on; the message begins with ``what``."""
    if not isinstance(order, int) or isinstance(order, bool) or order < 0:
        raise ArgumentError(f"{what}: order must be a non-negative integer, got {order!r}")


def scaled(c: Any, scale: float) -> Any:
    """Return ``c * scale`` for a derivative ``c``; return ``c`` unchanged if it is ``ZERO`` or of an integer dtype."""
    return c if c is ZERO or scale == 1 or not dtypes.is_inexact(c.dtype) else mul(c, scale)


def _along(
    fun: Any, arrays: Sequence[Any], in_tree: Any, series: Sequence[Sequence[Any]], order: int
) -> tuple[FlatFunction, list[Any], list[list[Any]]]:
    """Evaluate a function and its derivatives along a curve.

    Args:
      fun: the function.
      arrays: the leaves of the arguments, at which the curve starts.
      in_tree: the structure of the arguments.
      series: for each leaf the Taylor coefficients of the curve, from order 1 on.
      order: the highest order of the coefficients to compute.

    Returns:
      The flattened function, which knows the structure of the result; the leaves of the result at the start; and for
      each leaf the list of its Taylor coefficients of the orders 1 to ``order``.
    """
    flat = FlatFunction(fun, in_tree)
    outs, coefficients = taylor_flat(fun, flat, arrays, series, order)
    return flat, outs, coefficients


def _arguments(fun: Any, primals: Any, series: Any) -> tuple[list[Any], Any, list[Sequence[Any]]]:
    """Check and flatten the arguments of ``jet``.

    Return the leaves of ``primals``, the structure of ``primals``, and for each leaf the sequence of its derivatives.
    """
    for what, given in (("primals", primals), ("series", series)):
        if not isinstance(given, (tuple, list)):
            raise ArgumentError(
                f"jet takes {what} as a tuple or list, one entry for each argument of {name_of(fun)}, got {given!r} of "
                f"type {type(given).__name__}"
            )
    if len(primals) != len(series):
        raise ArgumentError(
            f"jet of {name_of(fun)} got {len(primals)} primals and {len(series)} series: pass one series for each "
            f"argument"
        )
    terms: list[Sequence[Any]] = []
    for i, (x, of_x) in enumerate(zip(primals, series, strict=True)):
        try:
            found: Any = tree.structure(x).flatten_up_to(of_x)
        except ValueError:
            found = [None]
        for cs in found:
            if not isinstance(cs, (tuple, list)):
                raise ArgumentError(
                    f"jet of {name_of(fun)}: the series of argument {i} must be a tree like the argument, with a "
                    f"sequence of derivatives instead of each array, got {of_x!r}"
                )
        terms.extend(found)
    leaves, in_tree = tree.flatten(tuple(primals))
    return leaves, in_tree, terms


def _coefficient(c: Any, x: Any, position: Callable[[], str]) -> Any:
    """Convert ``c``, a derivative of the argument ``x`` along a curve, to an array of the tangent type of ``x``.

    Return ``ZERO`` if all elements of ``c`` are known to be 0, or if ``x`` is not of an inexact dtype. ``position()``
    returns the name of the argument, for errors.
    """
    if not dtypes.is_inexact(x.dtype) or (type(c) in SCALARS and c == 0):
        return ZERO
    if type(c) in SCALARS and not x.shape:
        c = full((), c, x.dtype)
    c = to_tangent(c, typeof(x), "derivative", position)
    return ZERO if is_on_host(c) and not host_value(c).any() else c


def _leaf_name(what: str, i: int, fun: Any, args: Any) -> str:
    return f"{what} of {name_of(fun)}, {argument_name(i, fun, args)}"
