"""``custom_root`` and ``custom_linear_solve``: solutions of equations, differentiated implicitly.

The derivative of a solution does not depend on how it was found: it solves the linear equation that one gets by
differentiating the equation at the solution. So a solver may be any Python, compiled or not; it is not differentiated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar, overload

from pullback.core import tree
from pullback.core.annotations import PyTree
from pullback.core.array import Array, ArrayLike, typeof
from pullback.core.errors import ArgumentError, ControlFlowError, NotLinearError
from pullback.core.jaxpr import jaxpr_as_fun
from pullback.core.trace import state
from pullback.primitives.elementwise import neg, sub
from pullback.primitives.operands import stop_gradient
from pullback.transforms.autodiff.grad import linear_transpose
from pullback.transforms.autodiff.jvp import jvp
from pullback.transforms.autodiff.stopped import stopped
from pullback.transforms.custom.closure import closure_convert
from pullback.transforms.custom.custom_linear import LinearCall, bind_linear_call, is_traced_ahead
from pullback.transforms.custom.custom_rules import custom_jvp
from pullback.transforms.custom.rule_adapter import zero_from_primal
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import check_callable, name_of, split_aux
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
    """Solve a linear equation by a function of the user's, with derivatives that do not look into it.

    Args:
      matvec: a linear function of trees like ``b``; what it closes over is differentiated with respect to.
      b: the right-hand side, a tree of arrays.
      solve: ``solve(matvec, b) -> x`` with ``matvec(x) = b``, or with ``has_aux`` a pair of ``x`` and anything else. It
        is not differentiated, nor what it closes over: a factorisation of the matrix may be made outside.
      transpose_solve: ``transpose_solve(vecmat, b) -> x``, the same for the transpose of ``matvec``, which reverse mode
        needs. By default ``solve`` if ``symmetric``.
      symmetric: whether ``matvec`` is its own transpose.
      has_aux: whether ``solve`` returns more than the solution.

    Returns:
      The solution, or the pair. Its derivative solves ``matvec(dx) = db - (d matvec)(x)``.

    Raises:
      ControlFlowError: the solution is not of the tree, shapes and dtypes of ``b`` (a TypeError and ValueError).
      NotLinearError: ``matvec`` is not linear, or reverse mode lacks ``transpose_solve`` (a TypeError).

    >>> import pullback.numpy as pnp
    >>> from pullback import grad
    >>> def f(a, b):
    ...     solve = lambda matvec, b: b / matvec(1.0)
    ...     return custom_linear_solve(lambda x: a * x, b, solve, symmetric=True)
    >>> print(f(2.0, 3.0), *grad(f, (0, 1))(2.0, 3.0))
    1.5 -0.75 0.5
    """
    for function, name in ((matvec, "matvec"), (solve, "solve"), (transpose_solve or solve, "transpose_solve")):
        if not callable(function):
            raise ArgumentError(f"custom_linear_solve: {name} must be a function, got {function!r}")
    converted, captured = closure_convert(matvec, b)

    def apply(captured: Sequence[Any], x: Any) -> Any:
        return converted(x, *captured)

    back = transpose_solve or (solve if symmetric else None)
    solver = Solver.of(matvec, apply, _transposed(apply), solve, back, has_aux)
    given = solver.given(captured, b)
    return solver.with_aux(given, b) if has_aux else solver.solution(given, b)


def _transposed(apply: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The transpose of a function that is linear in its second argument."""
    return lambda captured, ct: linear_transpose(functools.partial(apply, captured), ct)(ct)[0]


NOTHING: tuple[list[Any], list[Any]] = ([], [])
"""The values that solvers close over, where these need not be known."""


class Solver:
    """The solution of a linear equation as a function of what it depends on, and of the right-hand side.

    What it depends on is a pair: what the matrix depends on, a tree; and two lists of the values that the solver of the
    equation, and that of the transposed one, close over.

    Attributes:
      described: the function that multiplies by the matrix, for error messages.
      apply: the same as a function of what it depends on, a tree, and of a vector.
      solve: the user's solver, if there is one.
      run: the solution, and what else the solver tells, as a function of what it depends on and the right-hand side.
      has_aux: whether it tells more than the solution.
      with_aux: ``run`` with a derivative that does not look into it.
      other: the same for the transposed matrix.
    """

    other: Solver

    @staticmethod
    def of(
        described: Any, apply: Any, apply_transpose: Any, solve: Any, transpose_solve: Any, has_aux: bool = False
    ) -> Solver:
        """The solver of an equation, and as its ``other`` that of the transposed one."""
        first = Solver(described, apply, solve, has_aux)
        second = Solver(described, apply_transpose, transpose_solve, has_aux)
        first.other, second.other = second, first
        return first

    def given(self, captured: Any, b: Any) -> Any:
        """What the solution depends on: ``captured``, as the matrix does, and what this call's solvers close over."""
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
        if self.solve is None:
            raise NotLinearError(
                f"custom_linear_solve of {name_of(self.described)}: reverse mode needs the solution of the transposed "
                "equation; give transpose_solve, or symmetric=True"
            )
        found = stopped(self.solve)(functools.partial(self.apply, captured[0]), b)
        _check_like(b, split_aux(found, self.solve)[0] if self.has_aux else found, self.solve, "the right-hand side")
        return found

    def _close(self, which: int, captured: Any, b: Any) -> list[Any]:
        """Make ``run`` a program that closes over nothing, and return the values that the solver did close over.

        They may be mapped or staged, by a transformation that ends before a derivative is asked for. Of the two lists
        of such values that ``run`` is given, they are the one at position ``which``.
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
        (captured, b), (captured_dot, b_dot) = primals, tangents
        found = self.with_aux(captured, b)
        x = found[0] if self.has_aux else found
        _, moved = jvp(lambda own: self.apply(own, x), (captured[0],), (captured_dot[0],))
        dot = self.solution(captured, tree.tree_map(sub, b_dot, moved), x)
        # What a solver tells of its work has no derivative.
        return found, (dot, tree.tree_map(zero_from_primal, found[1])) if self.has_aux else dot

    def _plain(self, captured: Any, b: Any) -> Any:
        found = self.with_aux(captured, b)
        return found[0] if self.has_aux else found

    def solution(self, captured: Any, b: Any, like: Any = None) -> Any:
        """The solution as an operation that is linear in ``b``, whose transpose is the other solution."""
        call = LinearCall("custom_linear_solve", self._plain, self.other._plain, captured, b)
        if like is not None:
            call.result_like(like)
        return bind_linear_call(call, transposable=self.other.solve is not None)


def _check_like(expected: Any, found: Any, function: Any, what: str) -> None:
    leaves, treedef = tree.flatten(expected)
    others, other = tree.flatten(found)
    if treedef != other:
        raise ControlFlowError(
            f"{name_of(function)} must return a solution of the tree of {what}, {treedef}, but it returned {other}"
        )
    for i, (x, y) in enumerate(zip(leaves, others, strict=True)):
        a, b = typeof(x), typeof(y)
        if a.shape != b.shape or a.dtype != b.dtype:
            raise ControlFlowError(
                f"{name_of(function)} must return a solution of the types of {what}, but leaf {i} of that is {a}, and "
                f"of the solution {b}"
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
    """Find a root by a function of the user's, and differentiate it by the implicit function theorem.

    Args:
      f: a function of trees like ``initial_guess``, whose root is wanted; what it closes over is differentiated with
        respect to.
      initial_guess: where to begin, a tree of arrays. It has no influence on the derivative.
      solve: ``solve(f, initial_guess) -> root``, or with ``has_aux`` a pair of the root and anything else.
      tangent_solve: ``tangent_solve(g, y) -> x`` with ``g(x) = y``, for linear functions ``g``: ``f`` linearised at the
        root, and in reverse mode the transpose of that.
      has_aux: whether ``solve`` returns more than the root.

    Returns:
      The root, or the pair.

    Raises:
      ControlFlowError: the root, or what ``f`` returns there, is not of the tree, shapes and dtypes of
        ``initial_guess`` (a TypeError and ValueError).

    Source: the implicit function theorem; A. Griewank and A. Walther, Evaluating Derivatives, 2nd ed., chapter 15.

    >>> from pullback import grad
    >>> def square_root(a):
    ...     def newton(f, x):
    ...         for _ in range(10):
    ...             x = x - f(x) / (2 * x)
    ...         return x
    ...     return custom_root(lambda x: x**2 - a, 1.0, newton, lambda g, y: y / g(1.0))
    >>> print(square_root(4.0), grad(square_root)(4.0), grad(grad(square_root))(4.0))
    2.0 0.25 -0.03125
    """
    for function in (f, solve, tangent_solve):
        check_callable(function, "custom_root")
    guess = tree.tree_map(stop_gradient, initial_guess)
    converted, captured = closure_convert(f, guess)

    # The solver runs under the current trace, so that it may close over anything; its way is then cut off, and the
    # derivative is attached to where it ended.
    fixed = [stop_gradient(x) for x in captured]
    found = tree.tree_map(stop_gradient, solve(lambda x: converted(x, *fixed), guess))
    root, aux = split_aux(found, solve) if has_aux else (found, None)
    _check_like(guess, root, solve, "initial_guess")
    result = _attached(f, converted, tangent_solve, captured, root)
    return (result, aux) if has_aux else result


def _attached(
    f: Any, converted: Callable[..., Any], tangent_solve: Callable[..., Any], captured: Sequence[Any], root: Any
) -> Any:
    """A root, with the derivative of a root by what ``f`` captured."""

    def apply(at: Any, t: Any) -> Any:
        captured, x = at
        return jvp(lambda x: converted(x, *captured), (x,), (t,))[1]

    solver = Solver.of(f, apply, _transposed(apply), tangent_solve, tangent_solve)
    _, constants = solver.given((captured, root), root)
    ending = custom_jvp(lambda captured, constants, root: root)

    @ending.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (captured, constants, x), (captured_dot, _, _) = primals, tangents
        x = ending(captured, constants, x)  # which has derivatives too, if more are wanted
        at_root, moved = jvp(lambda *values: converted(x, *values), tuple(captured), tuple(captured_dot))
        _check_like(x, at_root, f, "the root")
        return x, solver.solution(((captured, x), constants), tree.tree_map(neg, moved))

    return ending(captured, constants, root)
