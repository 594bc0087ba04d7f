"""Sparse Jacobians: the pattern from the function's program, and the elements from a few products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

from pullback.core import tree
from pullback.core.jaxpr import ClosedJaxpr
from pullback.core.types import ShapedArray
from pullback.derivatives.patterns.colouring import MODES, Colouring, colour_jacobian
from pullback.derivatives.patterns.derivative import (
    At,
    Choices,
    Options,
    SparseDerivative,
    check_results,
    found_pattern,
)
from pullback.derivatives.patterns.pattern import Pattern
from pullback.transforms.functions.api_boundary import Transformed
from pullback.transforms.functions.arguments import Argnums
from pullback.transforms.functions.flat_function import unflatten_arguments
from pullback.transforms.traces.stage import stage_flat


class SparseJacobian(SparseDerivative):
    """The function that computes the sparse Jacobian of a function; see :func:`sparse_jacobian`."""

    def _program(self, at: At) -> tuple[ClosedJaxpr, Any]:
        closed = stage_flat(self.__wrapped__, at.flat, at.avals)
        check_results(self.__wrapped__, self.options.name, closed.out_avals)
        return closed, at.flat.out_tree

    def _coloured(self, pattern: Pattern, closed: ClosedJaxpr, arguments: Sequence[ShapedArray]) -> Colouring:
        shapes = [a.shape for a in arguments], [a.shape for a in closed.out_avals]
        return colour_jacobian(pattern, self.options.mode, self.options.orders, shapes)

    def _result(self, at: At, out_tree: Any, table: list[list[Any]]) -> Any:
        lines = [unflatten_arguments(self.options.argnums, at.tree, line) for line in table]
        return lines[0] if out_tree is None else tree.unflatten(out_tree, lines)


# long: its docstring describes each option
def sparse_jacobian(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    mode: str = "auto",
    **choices: Unpack[Choices],
) -> SparseJacobian:
    """Return a function that computes the Jacobian of ``fun`` as a sparse matrix, from few products.

    The first call for arguments of some types finds the pattern in the function's program, colours it, and compiles
    the products; later calls run them. Arguments may be traced: the pattern depends only on their types.

    Args:
      fun: takes and returns trees of arrays; its results are real.
      argnums: which positional arguments to differentiate with respect to. Other arguments that are arrays or floats
        may change from call to call without recompilation.
      mode: ``"forward"``: products with columns; ``"reverse"``: with rows; ``"both"``: with columns for some elements
        and with rows for the others; ``"auto"``: whichever needs fewest.
      choices: the options below, which all sparse derivatives take.
      orders: the orders of greedy colouring to try: see :func:`colour_jacobian`; all by default.
      format: ``"bcoo"``, the default, or ``"scipy"`` for a ``csr_array`` of shape (result elements, argument
        elements).
      chunk_size: the number of products to compute at a time, which bounds the memory; all by default.
      local: whether the pattern holds only at the arguments of the call: it omits elements whose factors are zero
        there, and follows the branches that are taken there. It is found anew in each call.
      colouring: a pattern with its colours that ``prepare`` returned, here or in another process.
      pattern: the pattern, as a :class:`Pattern` or an argument of one, if you know it.
      check: whether to compare ``pattern`` with a product of the derivative in the first call with concrete arguments.

    Returns:
      A function of the same arguments. It returns for each leaf of the result a tree like the chosen arguments, of
      ``BCOO`` arrays of shape ``result shape + argument shape``. Its method ``prepare(*args)`` returns the
      :class:`Colouring`.

    Raises:
      NotDifferentiableError: an input or output that is not real (a TypeError).
      PatternError: the pattern does not fit the function, or lacks elements, or the derivative is too dense to be
        sparse; the message names the operation and its line (a ValueError).

    The pattern is found by index sets (Walther 2008; Hill and Dalle 2025, *Sparser, better, faster, stronger: sparsity
    detection for efficient automatic differentiation*), the products by Curtis, Powell and Reid 1974; see
    Gebremedhin, Manne and Pothen 2005, *What color is your Jacobian?*

    >>> import numpy as np
    >>> from pullback.derivatives import sparse_jacobian
    >>> f = lambda x: x[1:] ** 2 - x[:-1]
    >>> jacobian = sparse_jacobian(f)
    >>> x = np.float32([1, 2, 3])
    >>> jacobian.prepare(x)
    Colouring(2 x 3, 4 elements, 2 colours of columns)
    >>> jacobian(x)
    BCOO(float32[2, 3], nse=4)
    >>> print(jacobian(x).todense())
    [[-1.  4.  0.]
     [ 0. -1.  6.]]
    """
    return SparseJacobian(fun, Options(fun, "sparse_jacobian", argnums, mode, MODES, **choices))


def jacobian_pattern(fun: Callable[..., Any], argnums: Argnums = 0, *, local: bool = False) -> Callable[..., Pattern]:
    """Return a function that finds which elements of the Jacobian of ``fun`` may not be zero.

    Args:
      fun: takes and returns trees of arrays; its results are real.
      argnums: which positional arguments to differentiate with respect to.
      local: whether the pattern holds only at the arguments; see :func:`sparse_jacobian`.

    Returns:
      A function of the same arguments that returns the :class:`Pattern`. Shapes and dtypes are enough for arguments,
      unless it is ``local``.

    Raises:
      NotDifferentiableError: an input or output that is not real (a TypeError).

    >>> import numpy as np
    >>> import pullback.numpy as jnp
    >>> from pullback.derivatives import jacobian_pattern
    >>> print(jacobian_pattern(lambda x: jnp.cumsum(x[:2]) * x[2])(np.zeros(3)))
    x.x
    xxx
    >>> print(jacobian_pattern(lambda x: x * x[0], local=True)(np.array([0.0, 1.0])))
    ..
    x.
    """
    options = Options(fun, "jacobian_pattern", argnums, local=local)

    def at_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pattern:
        at = At(fun, options, args, kwargs, described=True)
        closed = stage_flat(fun, at.flat, at.avals)
        check_results(fun, options.name, closed.out_avals)
        return found_pattern(closed, at, options)

    return Transformed(fun, at_arguments, jacobian_pattern, argnums)
