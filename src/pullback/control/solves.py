"""``custom_root`` and ``custom_linear_solve``: solutions of equations, with implicit differentiation.

The derivative of a solution does not depend on the solver: it solves the linear equation that results from
differentiating the equation at the solution. So a solver may be any Python code, and is not differentiated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar, overload

from pullback.core import tree
from pullback.core.annotations import PyTree
from pullback.core.arguments import flag, require_function
from pullback.core.array import Array, ArrayLike, typeof
from pullback.core.errors import ArgumentError, ControlFlowError, NotLinearError
from pullback.core.jaxpr import jaxpr_as_fun
from pullback.core.trace import state
from pullback.primitives.elementwise import neg, sub
from pullback.primitives.operands import stop_gradient
from pullback.transforms.autodiff.grad import linear_transpose
from pullback.transforms.autodiff.jvp import jvp
from pullback.transforms.autodiff.stopped import stopped
from pullback.transforms.custom.closure import without_tracers
from pullback.transforms.custom.custom_linear import LinearCall, bind_linear_call, is_traced_ahead
from pullback.transforms.custom.custom_rules import custom_jvp
from pullback.transforms.custom.rule_adapter import zero_from_primal
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import name_of, split_aux
from pullback.transforms.functions.flat_function import FlatFunction
from pullback.transforms.traces.captured import hoisted
from pullback.transforms.traces.stage import stage_flat

T = TypeVar("T")
S = TypeVar("S")


@overload
def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: T,
    solve: Callable[..., Any],
    transpose_solve: Callable[..., Any] | None = None,
    symmetric: bool = False,
    has_aux: Literal[False] = False,
) -> T: ...
@overload
def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: T,
    solve: Callable[..., tuple[Any, S]],
    transpose_solve: Callable[..., Any] | None = None,
    symmetric: bool = False,
    *,
    has_aux: Literal[True],
) -> tuple[T, S]: ...
@overload
def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: PyTree,
    solve: Callable[..., Any],
    transpose_solve: Callable[..., Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any: ...
@api_boundary
def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: PyTree,
    solve: Callable[..., Any],
    transpose_solve: Callable[..., Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> PyTree:
    """Solve a linear equation by a user's solver, and differentiate the solution implicitly.

    Args:
      matvec: a linear function of trees like ``b``. Derivatives include those with respect to values that it closes
        over.
      b: the right-hand side, a tree of arrays.
      solve: ``solve(matvec, b) -> x`` with ``matvec(x) = b``, or with ``has_aux`` a pair of ``x`` and auxiliary data.
        It is not differentiated, also with respect to values that it closes over, such as a factorisation.
      transpose_solve: ``transpose_solve(vecmat, b) -> x``, the solver for the transpose of ``matvec``, which reverse
        mode needs. By default ``solve`` if ``symmetric``.
      symmetric: whether ``matvec`` is its own transpose.
      has_aux: whether ``solve`` returns auxiliary data.

    Returns:
      The solution, or the pair. Its derivative solves ``matvec(dx) = db - (d matvec)(x)``.

    Raises:
      ControlFlowError: the solution is not of the tree, shapes and dtypes of ``b`` (a TypeError and ValueError).
      NotLinearError: ``matvec`` is not linear, or reverse mode lacks ``transpose_solve`` (a TypeError).

    >>> from pullback import grad, lax
    >>> def f(a, b):
    ...     solve = lambda matvec, b: b / matvec(1.0)
    ...     return lax.custom_linear_solve(lambda x: a * x, b, solve, symmetric=True)
    >>> print(f(2.0, 3.0), *grad(f, (0, 1))(2.0, 3.0))
    1.5 -0.75 0.5
    """
    has_aux = flag("lax.custom_linear_solve", "has_aux", has_aux)
    symmetric = flag("lax.custom_linear_solve", "symmetric", symmetric)
    transposed = solve if transpose_solve is None else transpose_solve
    for function, name in ((matvec, "matvec"), (solve, "solve"), (transposed, "transpose_solve")):
        if not callable(function):
            raise ArgumentError(f"custom_linear_solve: {name} must be a function, got {function!r}")
    converted, captured = without_tracers(matvec, b)

    def apply(captured: Sequence[Any], x: Any) -> Any:
        return converted(x, *captured)

    back = transpose_solve or (solve if symmetric else None)
    solver = Solver.of(matvec, apply, _transposed(apply), solve, back, has_aux)
    context = solver.context(captured, b)
    return solver.with_aux(context, b) if has_aux else solver.solution(context, b)


def _transposed(apply: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return the transpose of ``apply(captured, x)``, which is linear in ``x``.

    The transpose is a function of ``captured`` and the cotangent of the result; it returns the cotangent of ``x``.
    """
    return lambda captured, ct: linear_transpose(functools.partial(apply, captured), ct)(ct)[0]


NOTHING: tuple[list[Any], list[Any]] = ([], [])
"""The second element of a context (see :class:`Solver`) if closed-over values need not be explicit."""


class Solver:
    """A solver of a linear equation: a differentiable function of a context and the right-hand side.

    The context is a pair: a tree of the values that the matrix depends on; and two lists of the values that the solvers
    of the equation and of the transposed equation close over.

    Attributes:
      described: the user's function that multiplies by the matrix, for error messages.
      apply: this function, of the first element of the context and a vector.
      solve: the user's solver, or None.
      run: from the context and the right-hand side to the result of the user's solver.
      has_aux: whether the user's solver returns auxiliary data.
      with_aux: ``run`` with an implicit derivative.
      other: the solver for the transposed matrix.
    """

    other: Solver

    @staticmethod
    def of(
        described: Any, apply: Any, apply_transpose: Any, solve: Any, transpose_solve: Any, has_aux: bool = False
    ) -> Solver:
        """Make the solver of an equation; its attribute ``other`` is the solver of the transposed equation.

        Args:
          described: the user's function that multiplies by the matrix, for error messages.
          apply: multiplies by the matrix: from the context's first element and a vector to a vector.
          apply_transpose: multiplies by the transposed matrix.
          solve, transpose_solve: the user's solvers, or None.
          has_aux: whether the user's solver returns auxiliary data.
        """
        first = Solver(described, apply, solve, has_aux)
        second = Solver(described, apply_transpose, transpose_solve, has_aux)
        first.other, second.other = second, first
        return first

    def context(self, captured: Any, b: Any) -> Any:
        """Return the context for a call: ``captured``, and the values that the user's solvers close over.

        The latter are empty tuples unless an active ``vmap``, staging or checkpoint requires them.

        Args:
          captured: the values that the matrix depends on.
          b: the right-hand side.
        """
        if not is_traced_ahead(state.trace):
            return captured, NOTHING
        return captured, (self._close(0, captured, b), self.other._close(1, captured, b))

    def __init__(self, described: Any, apply: Any, solve: Any, has_aux: bool) -> None:
        self.described = described
        self.apply = apply
        self.solve = solve
        self.has_aux = has_aux
        self.run = self._run
        self.with_aux = custom_jvp(lambda captured, b: self.run(captured, b))
        self.with_aux.defjvp(self._jvp)

    def _run(self, captured: Any, b: Any) -> Any:
        """Call the user's solver, without derivatives, and return its result.

        Raises if the solution has another tree, shape or dtype than the right-hand side ``b``.
        """
        if self.solve is None:
            raise NotLinearError(
                f"custom_linear_solve of {name_of(self.described)}: reverse mode needs the solution of the "
                f"transposed equation; pass transpose_solve or symmetric=True"
            )
        found = stopped(self.solve)(functools.partial(self.apply, captured[0]), b)
        _check_like(b, split_aux(found, self.solve)[0] if self.has_aux else found, self.solve, "the right-hand side")
        return found

    def _close(self, which: int, captured: Any, b: Any) -> list[Any]:
        """Trace the user's solver for ``captured`` and ``b``; return the values that the solver closes over.

        These values may belong to a transformation that ends before differentiation. So ``run`` is replaced by a
        function that reads the values from its context. ``which`` is the index of their list in the context: 0 for the
        solver of the equation, 1 for the solver of the transposed equation.
        """
        if self.solve is None:
            return []
        leaves, in_tree = tree.flatten((captured, b))
        flat = FlatFunction(lambda captured, b: self._run((captured, ()), b), in_tree, described=self.solve)
        closed, constants = hoisted(stage_flat(self.solve, flat, [typeof(x) for x in leaves]))
        program = jaxpr_as_fun(closed)

        def run(captured: Any, b: Any) -> Any:
            own, constants = captured
            return flat.result(program(*tree.leaves((own, b)), *constants[which]))

        self.run = run
        return [stop_gradient(x) for x in constants]

    def _jvp(self, primals: Any, tangents: Any) -> Any:
        """The jvp rule of ``with_aux``: solves ``A dx = db - dA x``."""
        (captured, b), (captured_dot, b_dot) = primals, tangents
        found = self.with_aux(captured, b)
        x = found[0] if self.has_aux else found
        _, moved = jvp(lambda own: self.apply(own, x), (captured[0],), (captured_dot[0],))
        dot = self.solution(captured, tree.tree_map(sub, b_dot, moved), x)
        # The auxiliary data has no derivative.
        return found, (dot, tree.tree_map(zero_from_primal, found[1])) if self.has_aux else dot

    def _plain(self, captured: Any, b: Any) -> Any:
        """Return the solution for the context ``captured`` and the right-hand side ``b``, without auxiliary data."""
        found = self.with_aux(captured, b)
        return found[0] if self.has_aux else found

    def solution(self, captured: Any, b: Any, like: Any = None) -> Any:
        """Return the solution for the right-hand side ``b``, by an operation that is linear in ``b``.

        ``captured`` is the context of the call. The transpose of the operation calls the solver ``other``. ``like`` is
        a tree with the types of the result; if it is None, the solver is traced to find them.
        """
        call = LinearCall("custom_linear_solve", self._plain, self.other._plain, captured, b)
        if like is not None:
            call.result_like(like)
        return bind_linear_call(call, transposable=self.other.solve is not None)


def _check_like(expected: Any, found: Any, function: Any, what: str) -> None:
    """Raise unless the solution ``found`` has the tree, shapes and dtypes of ``expected``.

    ``function`` is the user's function, and ``what`` the name of ``expected``, for the message.
    """
    leaves, treedef = tree.flatten(expected)
    others, other = tree.flatten(found)
    if treedef != other:
        raise ControlFlowError(
            f"{name_of(function)} must return a solution with the tree of {what}, {treedef}, but returned {other}"
        )
    for i, (x, y) in enumerate(zip(leaves, others, strict=True)):
        a, b = typeof(x), typeof(y)
        if a.shape != b.shape or a.dtype != b.dtype:
            raise ControlFlowError(
                f"{name_of(function)} must return a solution with the types of {what}, but leaf {i} of {what} is "
                f"{a} and leaf {i} of the solution is {b}"
            )


@overload
def custom_root(
    f: Callable[[Any], Any],
    initial_guess: ArrayLike,
    solve: Callable[..., Any],
    tangent_solve: Callable[..., Any],
    has_aux: Literal[False] = False,
) -> Array: ...
@overload
def custom_root(
    f: Callable[[Any], Any],
    initial_guess: T,
    solve: Callable[..., Any],
    tangent_solve: Callable[..., Any],
    has_aux: Literal[False] = False,
) -> T: ...
@overload
def custom_root(
    f: Callable[[Any], Any],
    initial_guess: T,
    solve: Callable[..., tuple[Any, S]],
    tangent_solve: Callable[..., Any],
    has_aux: Literal[True],
) -> tuple[T, S]: ...
@overload
def custom_root(
    f: Callable[[Any], Any],
    initial_guess: PyTree,
    solve: Callable[..., Any],
    tangent_solve: Callable[..., Any],
    has_aux: bool,
) -> Any: ...
@api_boundary
def custom_root(
    f: Callable[[Any], Any],
    initial_guess: PyTree,
    solve: Callable[..., Any],
    tangent_solve: Callable[..., Any],
    has_aux: bool = False,
) -> PyTree:
    """Find a root by a user's solver, and differentiate it by the implicit function theorem.

    Args:
      f: a function of trees like ``initial_guess``, whose root is computed. Derivatives are with respect to values that
        it closes over.
      initial_guess: the starting point, a tree of arrays. It has no influence on the derivative.
      solve: ``solve(f, initial_guess) -> root``, or with ``has_aux`` a pair of the root and auxiliary data.
      tangent_solve: ``tangent_solve(g, y) -> x`` with ``g(x) = y``, for linear functions ``g``: ``f`` linearised at the
        root, and in reverse mode the transpose of that.
      has_aux: whether ``solve`` returns auxiliary data.

    Returns:
      The root, or the pair.

    Raises:
      ControlFlowError: the root, or the value of ``f`` at the root, has another tree, shapes or dtypes than
        ``initial_guess`` (a TypeError and ValueError).

    Source: the implicit function theorem; A. Griewank and A. Walther, Evaluating Derivatives, 2nd ed., chapter 15.

    >>> from pullback import grad, lax
    >>> def square_root(a):
    ...     def newton(f, x):
    ...         for _ in range(10):
    ...             x = x - f(x) / (2 * x)
    ...         return x
    ...     return lax.custom_root(lambda x: x**2 - a, 1.0, newton, lambda g, y: y / g(1.0))
    >>> print(square_root(4.0), grad(square_root)(4.0), grad(grad(square_root))(4.0))
    2.0 0.25 -0.03125
    """
    has_aux = flag("lax.custom_root", "has_aux", has_aux)
    for name, function in (("f", f), ("solve", solve), ("tangent_solve", tangent_solve)):
        require_function("custom_root", name, function)
    guess = tree.tree_map(stop_gradient, initial_guess)
    converted, captured = without_tracers(f, guess)

    # The solver runs under the current trace, so that it may close over any values; the derivative of its computation
    # is then removed, and the implicit derivative attached to the root.
    fixed = [stop_gradient(x) for x in captured]
    found = tree.tree_map(stop_gradient, solve(lambda x: converted(x, *fixed), guess))
    root, aux = split_aux(found, solve) if has_aux else (found, None)
    _check_like(guess, root, solve, "initial_guess")
    result = _attached(f, converted, tangent_solve, captured, root)
    return (result, aux) if has_aux else result


def _attached(
    f: Any, converted: Callable[..., Any], tangent_solve: Callable[..., Any], captured: Sequence[Any], root: Any
) -> Any:
    """Return ``root``, with its implicit derivative with respect to the values that ``f`` captured.

    Args:
      f: the user's function, for error messages.
      converted: ``f`` as a function of ``x`` and the captured values.
      tangent_solve: the user's solver of linear equations.
      captured: the captured values.
      root: the root.
    """

    def apply(at: Any, t: Any) -> Any:
        captured, x = at
        return jvp(lambda x: converted(x, *captured), (x,), (t,))[1]

    solver = Solver.of(f, apply, _transposed(apply), tangent_solve, tangent_solve)
    _, constants = solver.context((captured, root), root)
    ending = custom_jvp(lambda captured, constants, root: root)

    @ending.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (captured, constants, x), (captured_dot, _, _) = primals, tangents
        x = ending(captured, constants, x)  # with the derivative attached again, for higher orders
        at_root, moved = jvp(lambda *values: converted(x, *values), tuple(captured), tuple(captured_dot))
        _check_like(x, at_root, f, "the root")
        return x, solver.solution(((captured, x), constants), tree.tree_map(neg, moved))

    return ending(captured, constants, root)
