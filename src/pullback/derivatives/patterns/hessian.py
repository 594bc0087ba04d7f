"""Sparse Hessians: Jacobians of the gradient, which are symmetric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

from pullback.core.errors import NotDifferentiableError
from pullback.core.jaxpr import ClosedJaxpr
from pullback.core.types import ShapedArray
from pullback.derivatives.patterns import boolean
from pullback.derivatives.patterns.colouring import METHODS, Colouring, colour_hessian
from pullback.derivatives.patterns.derivative import (
    At,
    Choices,
    Options,
    SparseDerivative,
    check_results,
    found_pattern,
)
from pullback.derivatives.patterns.pattern import Pattern, pattern_of
from pullback.transforms.autodiff.grad import grad
from pullback.transforms.functions.api_boundary import Transformed
from pullback.transforms.functions.arguments import Argnums, name_of
from pullback.transforms.functions.flat_function import unflatten_arguments
from pullback.transforms.traces.stage import stage_flat


class SparseHessian(SparseDerivative):
    """The function that computes the sparse Hessian of a function; see :func:`sparse_hessian`."""

    def _program(self, at: At) -> tuple[ClosedJaxpr, Any]:
        return _gradient(self.__wrapped__, at, self.options), None

    def _coloured(self, pattern: Pattern, closed: ClosedJaxpr, arguments: Sequence[ShapedArray]) -> Colouring:
        return colour_hessian(pattern, self.options.mode, self.options.orders, [a.shape for a in arguments])

    def _result(self, at: At, out_tree: Any, table: list[list[Any]]) -> Any:
        argnums = self.options.argnums
        return unflatten_arguments(argnums, at.tree, [unflatten_arguments(argnums, at.tree, line) for line in table])


def _gradient(fun: Any, at: At, options: Options) -> ClosedJaxpr:
    """Trace the gradient of ``fun`` with respect to the active leaves of ``at``, and return its program.

    Raise NotDifferentiableError unless ``fun`` returns one real number.
    """

    def scalar(*leaves: Any) -> Any:
        outs = at.flat(*leaves)
        avals = [x.aval if hasattr(x, "aval") else x for x in outs]
        if len(outs) != 1 or outs[0].shape != ():
            raise NotDifferentiableError(
                f"{options.name} takes a function with a single scalar result, but {name_of(fun)} returned "
                f"{', '.join(map(format, avals)) or 'nothing'}"
            )
        check_results(fun, options.name, avals)
        return outs[0]

    return stage_flat(fun, lambda *leaves: grad(scalar, tuple(at.active))(*leaves), at.avals)


def sparse_hessian(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    method: str = "auto",
    **choices: Unpack[Choices],
) -> SparseHessian:
    """Return a function that computes the Hessian of ``fun`` as a sparse matrix, from few Hessian-vector products.

    The pattern is that of the gradient's Jacobian, found in the gradient's program, where terms that are linear in the
    arguments have become constants.

    Args:
      fun: takes trees of arrays, and returns a real number.
      argnums: which positional arguments to differentiate with respect to.
      method: ``"star"``, ``"acyclic"``, ``"columns"`` or ``"auto"``; see :func:`colour_hessian`.
      choices: ``orders``, ``format`` and the other options of :func:`sparse_jacobian`.

    Returns:
      A function of the same arguments that returns a tree of trees like the chosen arguments, of ``BCOO`` arrays of
      shape ``argument shape + argument shape``. Its method ``prepare(*args)`` returns the :class:`Colouring`.

    Raises:
      NotDifferentiableError: an input that is not real, or a result that is not a real number (a TypeError).
      PatternError: as for :func:`sparse_jacobian` (a ValueError).

    >>> import numpy as np
    >>> import pullback.numpy as jnp
    >>> from pullback.derivatives import sparse_hessian
    >>> f = lambda x: jnp.sum((x[1:] - x[:-1] ** 2) ** 2) + x[0]
    >>> print(sparse_hessian(f)(np.float32([1, 2, 3])).todense())
    [[ 4. -4.  0.]
     [-4. 38. -8.]
     [ 0. -8.  2.]]
    """
    return SparseHessian(fun, Options(fun, "sparse_hessian", argnums, method, METHODS, **choices))


def hessian_pattern(fun: Callable[..., Any], argnums: Argnums = 0, *, local: bool = False) -> Callable[..., Pattern]:
    """Return a function that finds which elements of the Hessian of ``fun`` may not be zero.

    Args:
      fun: takes trees of arrays, and returns a real number.
      argnums: which positional arguments to differentiate with respect to.
      local: whether the pattern holds only at the arguments; see :func:`sparse_jacobian`.

    Returns:
      A function of the same arguments that returns the :class:`Pattern`, which is symmetric.

    Raises:
      NotDifferentiableError: an input that is not real, or a result that is not a real number (a TypeError).

    >>> import numpy as np
    >>> from pullback.derivatives import hessian_pattern
    >>> print(hessian_pattern(lambda x: x[0] * x[1] + x[2] ** 2 + 3 * x[3])(np.zeros(4)))
    .x..
    x...
    ..x.
    ....
    """
    options = Options(fun, "hessian_pattern", argnums, local=local)

    def at_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pattern:
        at = At(fun, options, args, kwargs, described=True)
        found = found_pattern(_gradient(fun, at, options), at, options).to_scipy()
        return pattern_of(boolean.union([found, found.T.tocsr()]))

    return Transformed(fun, at_arguments, hessian_pattern, argnums)
