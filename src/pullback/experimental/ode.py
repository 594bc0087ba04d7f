"""``odeint``: solve an ordinary differential equation, with derivatives in both modes, at any order.

Both modes differentiate the steps of the solution: forward mode by the equation of the tangents, in the same steps,
which are selected by the error of the solution only; reverse mode by the adjoint of these steps.

Source: E. Hairer, S. P. Nørsett and G. Wanner, Solving Ordinary Differential Equations I, 2nd ed., section I.14, for
the equation of the tangents; ``dormand_prince_adjoint`` names the source of the adjoint.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import numpy as np

import pullback.numpy as pnp
from pullback.control.common import aval_difference, deduplicated, known, leaf_names, leaves_of, tree_difference
from pullback.core import dtypes, tree
from pullback.core.annotations import PyTree
from pullback.core.arguments import require_function
from pullback.core.array import Array, ArrayLike, typeof
from pullback.core.errors import ArgumentError, ControlFlowError, DtypeError, OperandError
from pullback.core.faces import face
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, jaxpr_as_fun
from pullback.core.lists import select, split_list
from pullback.core.locks import cached_property
from pullback.core.types import ShapedArray
from pullback.core.waiting import waiting
from pullback.experimental.dormand_prince import Problem, first_step, of_type, solve
from pullback.experimental.dormand_prince_adjoint import adjoint
from pullback.numpy.creation import listed
from pullback.primitives.arrays.slicing import concatenate
from pullback.primitives.operands import stop_gradient
from pullback.transforms.autodiff.grad import vjp
from pullback.transforms.autodiff.jvp import jvp
from pullback.transforms.autodiff.vmap import vmap
from pullback.transforms.custom.custom_rules import custom_vjp
from pullback.transforms.custom.rule_adapter import SymbolicZero
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import name_of, out_leaf
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.jaxprs import jvp_jaxpr
from pullback.transforms.traces.lift import reordered
from pullback.transforms.traces.partial_eval import PartialEvaluation, partial_eval_jaxpr
from pullback.transforms.traces.stage import stage_flat

T = TypeVar("T")

__all__ = ["odeint"]
face(globals())


@overload
def odeint(
    func: Callable[..., Any],
    y0: ArrayLike,
    t: ArrayLike,
    *args: PyTree,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = ...,
    hmax: float = ...,
) -> Array: ...
@overload
def odeint(
    func: Callable[..., Any],
    y0: T,
    t: ArrayLike,
    *args: PyTree,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = ...,
    hmax: float = ...,
) -> T: ...
@api_boundary
def odeint(
    func: Callable[..., Any],
    y0: T,
    t: ArrayLike,
    *args: PyTree,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = math.inf,
    hmax: float = math.inf,
) -> T:
    """Solve the differential equation ``dy/dt = func(y, t, *args)`` by Dormand and Prince's method of order 5(4).

    It can be differentiated with respect to ``y0``, ``t``, ``args`` and values that ``func`` closes over, in both
    modes, at any order. The steps are differentiated with their sizes fixed. In reverse mode memory grows with the
    logarithm of their number.

    Args:
      func: returns the derivative of a state, in its tree, shapes and dtypes.
      y0: the state at ``t[0]``, a tree of real or complex arrays.
      t: the times at which the solution is wanted, a vector that does not decrease.
      args: further arguments of ``func``, trees of arrays.
      rtol, atol: the error of a step is at most ``atol + rtol * abs(y)``, as a root mean square. Concrete numbers, as
        the following are.
      mxstep: the maximal number of attempted steps from one time to the next.
      hmax: the largest step.

    Returns:
      The states at all times, stacked along a new leading axis. They are NaN at times that are not reached: if
      ``mxstep`` steps do not suffice, the solution is not finite, or traced times decrease.

    Raises:
      ControlFlowError: ``func`` returns another tree, shape or dtype than that of the state; the message names the leaf
        (a TypeError and ValueError).
      ArgumentError: ``t`` is not an increasing vector, or a tolerance or a limit is not a positive number (a TypeError
        and ValueError).

    Source: E. Hairer, S. P. Nørsett and G. Wanner, Solving Ordinary Differential Equations I, 2nd ed., chapter II.

    >>> import pullback.numpy as jnp
    >>> from pullback import grad
    >>> from pullback.experimental.ode import odeint
    >>> def decay(rate):
    ...     return odeint(lambda y, t, rate: -rate * y, 1.0, jnp.array([0.0, 1.0, 2.0]), rate)
    >>> print(decay(0.5).round(5), grad(lambda rate: decay(rate)[2])(0.5).round(5))
    [1.      0.60653 0.36788] -0.73576
    """
    require_function("odeint", "func", func)
    limits = _limits(rtol=rtol, atol=atol, mxstep=mxstep, hmax=hmax)
    leaves, treedef = leaves_of(y0, "odeint", "y0")
    if not leaves:
        return y0
    state = Packing(treedef, [_as_state(x, name) for x, name in zip(leaves, leaf_names("y0", treedef), strict=True)])
    times = _times(t, state)
    arguments, args_tree = leaves_of(args, "odeint", "args")
    derivatives, parameters = _staged(func, state, times, arguments, args_tree)
    problem = Problem(derivatives, 1, *limits)
    vector = state.pack(state.leaves)
    step = first_step(problem, *map(stop_gradient, ([vector], times[0], parameters)))
    with waiting("odeint"):
        return tree.unflatten(treedef, state.unpack(*_solve(problem, [vector], times, step, parameters)))


# Arguments -----------------------------------------------------------------------------------------------------------


def _limits(**limits: Any) -> Sequence[Any]:
    """Check keyword arguments such as ``rtol`` and ``mxstep``, and return their values as floats, in order."""
    numbers = []
    for name, x in limits.items():
        try:
            number = float(x)
        except (TypeError, ValueError):
            number = math.nan
        tolerance = name in ("rtol", "atol")
        if not (0 <= number < math.inf if tolerance else number > 0):
            wanted = "a finite non-negative number" if tolerance else "a positive number"
            raise ArgumentError(f"odeint: {name} must be {wanted}, a Python number and not traced, got {x!r}")
        numbers.append(number)
    if numbers[:2] == [0, 0]:
        raise ArgumentError("odeint: rtol and atol must not both be zero, because no step is exact")
    return numbers


def _as_state(x: Array, name: str) -> Array:
    """Convert the leaf ``name`` of the initial state to an array of floats or complex numbers, not weakly typed."""
    if not (dtypes.is_inexact(x.dtype) or dtypes.is_integer(x.dtype) or dtypes.is_bool(x.dtype)):
        raise DtypeError(f"odeint: {name} must be an array of numbers, got {typeof(x)}")
    return pnp.asarray(x, dtypes.to_inexact(x.dtype))  # type: ignore[no-any-return]


def _times(t: Any, state: Packing) -> Any:
    """Check that ``t`` is a vector of times that do not decrease; return an array of at least the state's precision."""
    times = listed("odeint", t)
    if times.ndim != 1 or not times.size or dtypes.is_complex(times.dtype) or dtypes.is_bool(times.dtype):
        raise ArgumentError(
            f"odeint: t must be a vector of at least one real number, the times of the solution, beginning with the "
            f"time of y0, but it is {typeof(times)}"
        )
    values = known(times)
    if values is not None:
        wrong = np.flatnonzero(~(values[1:] >= values[:-1]))
        if wrong.size:
            i = int(wrong[0])
            raise ArgumentError(
                f"odeint: the times must not decrease, but t[{i}] is {values[i]} and t[{i + 1}] is {values[i + 1]}. "
                f"To go back in time, solve the equation for -t: the derivative is -func(y, -t)."
            )
    return times.astype(dtypes.common_dtype(dtypes.to_inexact(times.dtype), dtypes.to_real(state.dtype)))


def _staged(
    func: Any, state: Packing, times: Any, arguments: Sequence[Any], args_tree: Any
) -> tuple[ClosedJaxpr, list[Any]]:
    """Trace the user's function to a program that returns the derivative, as one vector.

    The inputs of the program are the state as one vector, the time, and parameters. Operations that depend on neither
    state nor time are not part of the program: they are evaluated here, and their results are parameters.

    Args:
      func: the user's function.
      state: the initial state.
      times: the times of the results.
      arguments: the leaves of the other arguments of ``func``.
      args_tree: the tree of these arguments.

    Returns:
      The program, and the values of the parameters.
    """

    def run(vector: Any, time: Any, *values: Any) -> list[Any]:
        out = func(tree.unflatten(state.treedef, state.unpack(vector)), time, *tree.unflatten(args_tree, values))
        return [state.pack(_checked(func, state, out))]

    avals = [ShapedArray((state.size,), state.dtype), typeof(times).update(shape=()), *map(typeof, arguments)]

    def name_input(i: int) -> str:
        return ["y", "t", *leaf_names("args", args_tree)][i]

    # A closed-over number becomes an operand, so that another number needs no new program.
    closed = stage_flat(func, run, avals, "odeint", name_input, literals=False)
    jaxpr = closed.jaxpr
    invars = [*jaxpr.invars[:2], *jaxpr.constvars, *jaxpr.invars[2:]]
    whole = deduplicated(ClosedJaxpr(Jaxpr([], invars, jaxpr.eqns, jaxpr.outvars)))
    given = [*closed.consts, *arguments]
    if jaxpr.effect:  # an effect must happen as often as the function is called
        return whole, given
    parts, derivatives = _divided(whole)
    return derivatives, parts.residuals(given, jaxpr_as_fun(parts.known)(*given))


@cached_by_jaxpr
def _divided(closed: ClosedJaxpr) -> tuple[PartialEvaluation, ClosedJaxpr]:
    """Split the program of a derivative in two: operations that depend on the state or the time, and all others.

    Return the split; and the program of the operations that depend on these. This program takes the state, the time,
    and the results of the other operations that it needs.
    """
    parts = partial_eval_jaxpr(closed, [i < 2 for i in range(len(closed.in_avals))], True)
    count = len(parts.residual_avals)
    return parts, reordered(parts.unknown, [count, count + 1, *range(count)], [0])


def _checked(func: Any, state: Packing, out: Any) -> list[Any]:
    """Return the leaves of ``out``, which the user's function ``func`` returned as the derivative of the state.

    Raise ControlFlowError unless their tree, shapes and dtypes fit those of the state.
    """
    out = _with_arrays_for_lists(state, out)
    leaves, treedef = tree.flatten(out)
    where = "in y0", "in what it returned"
    if treedef != state.treedef:
        raise ControlFlowError(
            f"odeint: {name_of(func)} must return the derivative of y, a tree like y0, but "
            f"{tree_difference('y', state.treedef, treedef, where)}"
        )
    found = [out_leaf(x, func) for x in leaves]
    for i, (x, like) in enumerate(zip(found, state.leaves, strict=True)):
        given, wanted = typeof(x), typeof(like)
        fits = given.shape == wanted.shape and (
            given.dtype == wanted.dtype or dtypes.common_dtype(x, wanted.dtype) == wanted.dtype
        )
        if not fits:
            name = leaf_names("y", treedef)[i]
            raise ControlFlowError(
                f"odeint: {name_of(func)} must return the derivative of y, of the shapes and dtypes of y0, but {name} "
                f"is {wanted} {where[0]} and {given} {where[1]}: {aval_difference(wanted, given)}"
            )
    return found


def _with_arrays_for_lists(state: Packing, out: Any) -> Any:
    """Convert lists and tuples in the derivative ``out`` to arrays where the state has an array in their position."""

    def part(_: Any, x: Any) -> Any:
        return pnp.asarray(x) if isinstance(x, (list, tuple)) else x

    try:
        return tree.tree_map(part, tree.unflatten(state.treedef, state.leaves), out)
    except (OperandError, TypeError, ValueError):
        return out  # of another tree: _checked raises the error


class Packing:
    """The conversion between arrays and one vector.

    Attributes:
      treedef: the structure of the arrays' tree.
      leaves: arrays of their shapes and dtypes.
    """

    def __init__(self, treedef: Any, leaves: Sequence[Any]) -> None:
        self.treedef = treedef
        self.leaves = leaves

    @cached_property
    def dtype(self) -> Any:
        return dtypes.common_dtype(*[x.dtype for x in self.leaves])

    @cached_property
    def size(self) -> int:
        return sum(math.prod(x.shape) for x in self.leaves)

    def pack(self, leaves: Sequence[Any]) -> Any:
        """Concatenate leaves to a vector."""
        vectors = [x.astype(self.dtype).reshape(-1) for x in leaves]
        return vectors[0] if len(vectors) == 1 else concatenate(vectors, 0)

    def unpack(self, vector: Any) -> list[Any]:
        """Split a vector, or vectors along the last axis, into leaves."""
        leaves, start = [], 0
        for like in self.leaves:
            stop = start + math.prod(like.shape)
            x = vector if stop - start == self.size else vector[..., start:stop]
            x = x.reshape(*vector.shape[:-1], *like.shape)
            if dtypes.is_complex(x.dtype) and not dtypes.is_complex(like.dtype):
                x = x.real
            leaves.append(x.astype(like.dtype))
            start = stop
        return leaves


# The solution and its rules ------------------------------------------------------------------------------------------

_solve = custom_vjp(solve, nondiff_argnums=(0,))
"""Solve the equation; the first step's size, an operand, has no derivative."""


def _derivatives_at(problem: Problem, states: Sequence[Any], times: Any, parameters: Sequence[Any]) -> list[Any]:
    """Return the derivatives of the state vectors at several times.

    Args:
      problem: holds the program of the derivatives.
      states: the state vectors, each with a leading axis of times.
      times: the times.
      parameters: the parameters of the program.
    """
    derive = jaxpr_as_fun(problem.derivatives)
    return list(vmap(lambda vectors, time: derive(*vectors, time, *parameters))(states, times))


@cached_by_jaxpr
def _with_tangents(derivatives: ClosedJaxpr, vectors: int, moving: Sequence[bool]) -> ClosedJaxpr:
    """Extend the program of a derivative to also compute its Jacobian-vector product.

    The extended program takes the state vectors, their tangents, the time, the parameters, and tangents of some
    parameters. It returns the derivatives of the state vectors, and the derivatives of their tangents.

    Args:
      derivatives: the program.
      vectors: the number of state vectors.
      moving: for each parameter whether it has a tangent.
    """
    both, _ = jvp_jaxpr(derivatives, [*[True] * vectors, False, *moving], True)
    first = vectors + 1 + len(moving)
    states, tangents, others = range(vectors), range(first, first + vectors), range(vectors, first)
    order = [*states, *tangents, *others, *range(first + vectors, first + vectors + sum(moving))]
    return reordered(both, order, range(2 * vectors))


def _jvp(problem: Problem, primals: Any, tangents: Any) -> Any:
    (state, times, step, parameters), (seeds, times_dot, _, parameters_dot) = primals, tangents
    moving = tuple(not isinstance(t, SymbolicZero) for t in parameters_dot)
    seeds = [_dense(t, y) for y, t in zip(state, seeds, strict=True)]
    in_time = not isinstance(times_dot, SymbolicZero)
    if in_time:  # to start later from a state is to start earlier from the state before
        slopes = jaxpr_as_fun(problem.derivatives)(*state, times[0], *parameters)
        seeds = [t - of_type(times_dot[0], t) * k for t, k in zip(seeds, slopes, strict=True)]
    derivatives = _with_tangents(problem.derivatives, problem.vectors, moving)
    both = _solve(
        problem._replace(derivatives=derivatives, vectors=2 * problem.vectors),
        [*state, *seeds],
        times,
        stop_gradient(step),
        [*parameters, *select(parameters_dot, moving)],
    )
    results, dots = split_list(both, problem.vectors)
    if in_time:
        slopes = _derivatives_at(problem, results, times, parameters)
        dots = [t + of_type(times_dot, t)[:, None] * k for t, k in zip(dots, slopes, strict=True)]
    return results, dots


def _forward(problem: Problem, state: Any, times: Any, step: Any, parameters: Any) -> Any:
    values = [y.value for y in state], times.value, step.value, [x.value for x in parameters]
    results = _solve(problem, *values)
    return results, (results, values, times.perturbed, tuple(x.perturbed for x in parameters))


def _backward(problem: Problem, residuals: Any, cts: Any) -> Any:
    results, (state, times, step, parameters), in_time, moving = residuals
    seeds = [_dense(ct, ys) for ys, ct in zip(results, cts, strict=True)]
    # A time with a cotangent was not reached: there is no derivative, and no step to transpose.
    pairs = zip(results, seeds, strict=True)
    lost = functools.reduce(operator.or_, [pnp.any(pnp.isnan(ys) & (ct != 0)) for ys, ct in pairs])
    seeds = [pnp.where(lost, 0, ct) for ct in seeds]
    of_state, of_moving = _pull(problem, moving, state, times, step, parameters, seeds)
    of_times: Any = None
    if in_time:
        slopes = _derivatives_at(problem, results, times, parameters)
        pairs = zip(seeds, slopes, strict=True)
        of_times = sum(pnp.sum((ct * k).real, 1).astype(times.dtype) for ct, k in pairs)
        begin: Any = sum(pnp.sum((ct * k[0]).real).astype(times.dtype) for ct, k in zip(of_state, slopes, strict=True))
        of_times = of_times.at[0].add(-begin)
    found = tree.tree_map(lambda x: pnp.where(lost, pnp.nan, x), (of_state, of_times, of_moving))
    of_state, of_times, of_moving = found
    given = iter(of_moving)
    return of_state, of_times, None, [next(given) if m else None for m in moving]


_solve.defjvp(_jvp, symbolic_zeros=True)
_solve.defvjp(_forward, _backward, symbolic_zeros=True)


def _dense(tangent: Any, like: Any) -> Any:
    return pnp.zeros_like(like) if isinstance(tangent, SymbolicZero) else tangent


# The adjoint and its rules -------------------------------------------------------------------------------------------

# With F the solution as a function of x = (state, times, parameters), the adjoint is A(x, ct) = F'(x)ᵀ ct. Its
# derivatives are those of tangents of F, in reverse mode: along (v, u), the cotangent of x ↦ (F(x), F'(x) v) for
# (u, ct), since second derivatives are symmetric; and backwards, those of <w, A(x, ct)> = <F'(x) w, ct>.

_pull = custom_vjp(adjoint, nondiff_argnums=(0, 1))
"""Return the cotangents of the state, and of the moving parameters."""


class _Point:
    """The arguments of a solve, at which the solution is differentiated."""

    def __init__(self, problem: Problem, step: Any, arguments: Any) -> None:
        self.problem = problem
        self.step = stop_gradient(step)
        self.leaves, self.treedef = tree.flatten(arguments)

    def tangents(self, which: Sequence[bool], along: Sequence[Any], values: Sequence[Any]) -> tuple[Any, Any]:
        """Return the solution and its tangent.

        Args:
          which: for each leaf of the arguments whether to differentiate by it.
          along: the tangents of these leaves.
          values: the values of all leaves.
        """

        def solution(*active: Any) -> Any:
            given = iter(active)
            leaves = [next(given) if w else x for x, w in zip(values, which, strict=True)]
            state, times, parameters = tree.unflatten(self.treedef, leaves)
            return _solve(self.problem, state, times, self.step, parameters)

        return jvp(solution, tuple(select(values, which)), tuple(along))

    def merged(self, which: Sequence[bool], active: Sequence[Any]) -> list[Any]:
        given = iter(active)
        return [next(given) if w else x for x, w in zip(self.leaves, which, strict=True)]


def _flags(moving: Sequence[bool], vectors: int) -> list[bool]:
    """Return a list of booleans: for each state vector, the times and each parameter whether it gets a cotangent.

    All state vectors get cotangents, and ``vectors`` is their number. The times get none. ``moving`` says for each
    parameter whether it gets a cotangent.
    """
    return [*[True] * vectors, False, *moving]


def _pull_jvp(problem: Problem, moving: Sequence[bool], primals: Any, tangents: Any) -> Any:
    state, times, step, parameters, cts = primals
    state_dot, times_dot, _, parameters_dot, cts_dot = tangents
    found = _pull(problem, moving, *primals)
    point = _Point(problem, step, (state, times, parameters))
    dots = tree.leaves((state_dot, times_dot, parameters_dot))
    which = [not isinstance(t, SymbolicZero) for t in dots]
    cts_dot = [_dense(t, ct) for t, ct in zip(cts_dot, cts, strict=True)]
    if not any(which):
        return found, _pull(problem, moving, state, times, step, parameters, cts_dot)
    wanted = _flags(moving, problem.vectors)

    def function(*active: Any) -> Any:
        return point.tangents(which, select(dots, which), point.merged(wanted, active))

    _, pull = vjp(function, *select(point.leaves, wanted))
    return found, tuple(split_list(pull((cts_dot, cts)), problem.vectors))


def _pull_forward(problem: Problem, moving: Sequence[bool], *args: Any) -> Any:
    flags = tuple(x.perturbed for x in tree.leaves(args[:2]) + tree.leaves(args[3]))
    values = tree.tree_map(lambda x: x.value, args)
    return _pull(problem, moving, *values), (values, flags)


def _pull_backward(problem: Problem, moving: Sequence[bool], residuals: Any, cts: Any) -> Any:
    (state, times, step, parameters, seeds), which = residuals
    point = _Point(problem, step, (state, times, parameters))
    dots = tree.leaves(cts)
    wanted = _flags(moving, problem.vectors)
    along = [_dense(t, x) for t, x in zip(dots, select(point.leaves, wanted), strict=True)]

    def function(*active: Any) -> Any:
        return point.tangents(wanted, along, point.merged(which, active))[1]

    of_seeds, pull = vjp(function, *select(point.leaves, which))
    given = iter(pull(seeds))
    leaves = [next(given) if w else None for w in which]
    of_state, (of_times,), of_parameters = split_list(leaves, problem.vectors, 1)
    return of_state, of_times, None, of_parameters, of_seeds


_pull.defjvp(_pull_jvp, symbolic_zeros=True)
_pull.defvjp(_pull_forward, _pull_backward, symbolic_zeros=True)
