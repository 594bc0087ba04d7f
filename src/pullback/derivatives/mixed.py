"""``derivative_tensor``: all partial derivatives of an order, from derivatives along straight lines."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core.arguments import require_function
from pullback.core.dtypes import float0
from pullback.core.errors import ArgumentError, NotDifferentiableError
from pullback.derivatives.jets import check_order, taylor
from pullback.transforms.autodiff.vmap import vmap
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import name_of

Index = tuple[int, ...]
"""A multi-index, the order in each variable: ``(2, 1)`` is twice by the first variable, and once by the second."""


@api_boundary
def derivative_tensor(fun: Callable[[Any], Any], x: Any, order: int, chunk_size: int | None = None) -> Any:
    """Return all partial derivatives of one order: the Jacobian for order 1, the Hessian for order 2, and so on.

    A partial derivative is interpolated: it is a weighted sum of derivatives of the same order along straight lines.
    For n variables there are ``binomial(n + order - 1, order)`` lines, as many as there are different partial
    derivatives. Each line costs O(``order``²) evaluations, whereas nested Jacobians cost n to the power ``order``
    evaluations. Terms of the sums cancel: small elements have absolute errors of a few roundings of the largest
    element.

    Args:
      fun: takes a real or complex array, and returns one.
      x: the point, of any shape.
      order: the order of the derivatives, an integer from 0 on.
      chunk_size: the number of lines to compute at a time, which bounds the memory; all by default.

    Returns:
      An array. Its shape is the shape of the result, followed by the shape of ``x`` repeated ``order`` times. The array
      is symmetric in these repetitions.

    Raises:
      ArgumentError: ``order`` is no integer from 0 on, or ``fun`` does not return an array (a TypeError and
        ValueError).
      NotDifferentiableError: ``x`` or the result has integers or booleans (a TypeError).

    Source: A. Griewank, J. Utke and A. Walther, Evaluating higher derivative tensors by forward propagation of
    univariate Taylor series, Mathematics of Computation 69 (2000).

    >>> import pullback.numpy as jnp
    >>> from pullback.derivatives import derivative_tensor
    >>> print(derivative_tensor(lambda x: x[0] ** 2 * x[1], jnp.array([2.0, 3.0]), 2))
    [[6. 4.]
     [4. 0.]]
    """
    require_function("derivative_tensor", "fun", fun)
    check_order(order, "derivative_tensor")
    x = pnp.asarray(x)
    if order == 0 or not x.size:
        out = fun(x)
        return out if order == 0 else pnp.zeros((*out.shape, *x.shape * order), out.dtype)
    lines, weights, positions = _interpolation(x.size, order)

    def along(line: Any) -> Any:
        out = taylor(fun, x, order, line.reshape(x.shape).astype(x.dtype))[order]
        if not hasattr(out, "shape"):
            raise ArgumentError(
                f"derivative_tensor: {name_of(fun)} must return an array, got a {type(out).__name__}"
            )  # fmt: skip
        if out.dtype == float0:
            raise NotDifferentiableError(
                f"derivative_tensor needs real or complex outputs, but {name_of(fun)} has an output of integers or "
                "booleans. Convert it to a float."
            )
        return out

    derivatives = vmap(along, chunk_size=chunk_size)(lines)
    partial = pnp.tensordot(weights.astype(derivatives.dtype), derivatives, 1)
    tensor = pnp.moveaxis(partial[positions], [*range(order)], [*range(-order, 0)])
    return tensor.reshape(*derivatives.shape[1:], *x.shape * order)


@functools.lru_cache(64)
def _interpolation(n: int, order: int) -> tuple[Any, Any, Any]:
    """Return how all partial derivatives of one order in ``n`` variables follow from Taylor coefficients along lines.

    Returns:
      ``(directions, weights, positions)``. ``directions`` (lines, n) has the direction of each line. ``weights``
      (partial derivatives, lines) has the factors of the lines' Taylor coefficients in each partial derivative.
      ``positions``, of shape ``(n,) * order``, has for each element of the tensor the index of its row in ``weights``.
    """
    indices = [
        tuple(chosen.count(i) for i in range(n)) for chosen in itertools.combinations_with_replacement(range(n), order)
    ]  # fmt: skip
    weights = np.array([[float(_weight(i, j)) for j in indices] for i in indices])
    numbers = {index: number for number, index in enumerate(indices)}
    positions = np.empty((n,) * order, np.int32)
    for position in itertools.product(range(n), repeat=order):
        positions[position] = numbers[tuple(position.count(i) for i in range(n))]
    return np.array(indices, float), weights, positions


def _weight(i: Index, j: Index) -> Fraction:
    """Return the factor of the Taylor coefficient along the direction ``j`` in the partial derivative ``i``.

    Both are multi-indices: ``i[k]`` says how often the function is differentiated by variable k.

    Source: equation (13.14) of Griewank and Walther.
    """
    order = sum(i)
    total = Fraction(0)
    for k in itertools.product(*[range(m + 1) for m in i]):
        size = sum(k)
        if size:
            sign = (-1) ** (order - size)
            ways = math.prod(math.comb(a, b) for a, b in zip(i, k, strict=True))
            share = math.prod(
                (_binomial(Fraction(order * a, size), b) for a, b in zip(k, j, strict=True)), start=Fraction(1)
            )
            total += sign * ways * share * Fraction(size, order) ** order
    return total


def _binomial(a: Fraction, b: int) -> Fraction:
    """Return the generalised binomial coefficient "a over b": ``a (a - 1) ... (a - b + 1) / b!``."""
    return math.prod(((a - m) / (m + 1) for m in range(b)), start=Fraction(1))
