"""Laplacians of functions, in one forward pass."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes, tree
from pullback.core.arguments import require_function
from pullback.core.array import as_array, typeof
from pullback.core.errors import ArgumentError, NotDifferentiableError, TangentMismatchError
from pullback.primitives.arrays.shapes import broadcast_in_dim, moveaxis
from pullback.transforms.autodiff.jacobian import split_axis, standard_basis
from pullback.transforms.functions.api_boundary import Transformed
from pullback.transforms.functions.arguments import Argnums, dense, name_of
from pullback.transforms.functions.flat_function import (
    DerivativeOptions,
    FlatFunction,
    differentiable,
    unflatten_arguments,
)
from pullback.transforms.traces.laplacian import Blocks, Directions, LaplacianTriple, laplacian_flat
from pullback.transforms.traces.laplacian import dense as whole


class ForwardLaplacian(NamedTuple):
    """The results of :func:`forward_laplacian`.

    Attributes:
      value: the output of the function.
      jacobian: for each leaf of the output a tree like the chosen arguments, as ``jacfwd`` returns it.
      laplacian: the Laplacian, a tree like the output.

    >>> import pullback.numpy as jnp
    >>> from pullback.derivatives import forward_laplacian
    >>> found = forward_laplacian(lambda x: jnp.sum(x**3))(jnp.array([1.0, 2.0]))
    >>> print(found.value, found.jacobian, found.laplacian)
    9.0 [ 3. 12.] 18.0
    """

    value: Any
    jacobian: Any
    laplacian: Any


def laplacian(fun: Callable[..., Any], argnums: Argnums = 0, weights: Any = None) -> Callable[..., Any]:
    """Return a function that computes the Laplacian of ``fun``, the sum of its unmixed second derivatives, in one pass.

    The pass propagates the first derivatives along all directions, and the sum of the second derivatives. Its cost for
    each direction is that of a tangent. The trace of the Hessian by Hessian-vector products would cost a gradient and a
    tangent of the gradient for each direction.

    Args:
      fun: takes trees of arrays, and returns a tree of arrays, real or complex.
      argnums: the positions of the arguments to differentiate by, which must be real.
      weights: factors of the second derivatives, such as inverse masses, positive or negative: a tree like the chosen
        arguments, or a prefix of one, whose leaves broadcast to the arguments' leaves. All are 1 by default.

    Returns:
      A function of the same arguments that returns a tree like the output of ``fun``.

    Raises:
      NotDifferentiableError: an input is not real (a TypeError).
      MissingRuleError: an operation has no derivative rule; the message names it and its line (a NotImplementedError).

    Source: R. Li et al., A computational framework for neural network-based variational Monte Carlo with Forward
    Laplacian, Nature Machine Intelligence 6 (2024).

    >>> import pullback.numpy as jnp
    >>> from pullback.derivatives import laplacian
    >>> print(laplacian(lambda x: jnp.sum(x**3))(jnp.array([1.0, 2.0])))
    18.0
    """
    options = DerivativeOptions.checked("laplacian", argnums)
    return _laplacian(fun, options, weights, laplacian)


def forward_laplacian(
    fun: Callable[..., Any], argnums: Argnums = 0, weights: Any = None
) -> Callable[..., ForwardLaplacian]:
    """Return a function that computes the value, the Jacobian and the Laplacian of ``fun`` in one forward pass.

    Args:
      fun: takes trees of arrays, and returns a tree of arrays, real or complex.
      argnums: the positions of the arguments to differentiate by, which must be real.
      weights: as for :func:`laplacian`; the Jacobian is not weighted.

    Returns:
      A function of the same arguments that returns a :class:`ForwardLaplacian`.

    Raises:
      NotDifferentiableError: an input is not real (a TypeError).
      MissingRuleError: an operation has no derivative rule; the message names it and its line (a NotImplementedError).

    Source: see :func:`laplacian`.

    >>> import pullback.numpy as jnp
    >>> from pullback.derivatives import forward_laplacian
    >>> log_psi = lambda x: -jnp.sum(x**2) / 2  # of the ground state of a harmonic oscillator
    >>> x = jnp.array([0.5, 1.0])
    >>> _, gradient, second = forward_laplacian(log_psi)(x)
    >>> print(-(second + gradient @ gradient) / 2 + x @ x / 2)  # its energy
    1.0
    """
    options = DerivativeOptions.checked("forward_laplacian", argnums)
    return _laplacian(fun, options, weights, forward_laplacian)


def _laplacian(fun: Callable[..., Any], options: DerivativeOptions, weights: Any, maker: Any) -> Callable[..., Any]:
    name = options.transformation
    require_function(name, "fun", fun)

    def of_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        flat, primals = differentiable(FlatFunction, fun, options, args, kwargs)
        for x in primals:
            if dtypes.is_complex(x.dtype):
                raise NotDifferentiableError(
                    f"{name} needs real inputs, but {name_of(fun)} was called with one of type {typeof(x)}: pass the "
                    "real and imaginary parts as two arrays"
                )
        count = sum(x.size for x in primals)
        point = unflatten_arguments(options.argnums, flat.in_tree, primals)
        directions = Directions(count, None if weights is None else _weights(name, weights, point, primals))
        if len(primals) == 1 and primals[0].shape and count:
            operands = [LaplacianTriple(primals[0], _identity(primals[0]))]
        else:
            operands = list(map(LaplacianTriple, primals, standard_basis(primals, 0, count)))
        outs = laplacian_flat(fun, flat, operands, directions)
        laplacians = flat.result([dense(x.laplacian, x.value) for x in outs])
        if maker is laplacian:
            return laplacians
        avals = [typeof(x) for x in primals]
        rows = []
        for x in map(whole, outs):
            aval = typeof(x.value).update(shape=(count, *x.value.shape))
            columns = moveaxis(dense(x.jacobian, aval), 0, len(x.value.shape))
            parts = split_axis(columns, avals, x.value.shape, last=True)
            rows.append(unflatten_arguments(options.argnums, flat.in_tree, parts))
        return ForwardLaplacian(flat.result([x.value for x in outs]), flat.result(rows), laplacians)

    return Transformed(fun, of_arguments, maker, options.argnums, weights)


def _identity(x: Any) -> Blocks:
    """Return the Jacobian of an array with respect to itself, the identity matrix, as blocks on the diagonal.

    There is one block for each index along axis 0 of ``x``.
    """
    n, *rest = x.shape
    size = math.prod(rest)
    eye = np.eye(size, dtype=x.dtype).reshape(size, 1, *rest) if rest else np.ones((1, 1), x.dtype)
    return Blocks(broadcast_in_dim(as_array(eye), (size, n, *rest), range(len(rest) + 2)), 0)


def _weights(name: str, weights: Any, point: Any, primals: Any) -> Any:
    """Check the weights of the second derivatives, and return a vector with the weight of each element of ``point``.

    Args:
      name: the public function, for errors.
      weights: a tree of weights, a prefix of the tree ``point``; each weight broadcasts to the leaves at its position.
      point: the tree of the arguments to differentiate by.
      primals: the leaves of ``point``.
    """
    try:
        leaves = tree.broadcast_prefix(weights, point)
    except ValueError as error:
        raise ArgumentError(f"{name}: weights must be a prefix of the chosen arguments: {error}") from None
    parts = []
    for w, x in zip(leaves, primals, strict=True):
        w = pnp.asarray(w)
        fits = w.ndim <= x.ndim and all(n in (1, size) for n, size in zip(w.shape[::-1], x.shape[::-1], strict=False))
        if dtypes.is_complex(w.dtype) or not fits:
            raise TangentMismatchError(
                f"{name}: weights must be real and broadcast to the argument of type {typeof(x)}, got {typeof(w)}"
            )
        parts.append(pnp.ravel(pnp.broadcast_to(w, x.shape)).astype(x.dtype))
    return pnp.concatenate(parts)
