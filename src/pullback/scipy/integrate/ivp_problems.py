"""Initial value problems as programs: the user's functions staged together, and the settings of a solution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.array import typeof
from pullback.core.errors import OperandError, ShapeError
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, jaxpr_as_fun
from pullback.core.types import ShapedArray
from pullback.primitives import elementwise as ops
from pullback.transforms.autodiff.jacobian import jacfwd
from pullback.transforms.programs.jit_primitive import jit_p
from pullback.transforms.traces.dce import dce_closed_jaxpr
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.equal_programs import deduplicated
from pullback.transforms.traces.stage import stage_flat


class Event(NamedTuple):
    """When a function of time and state counts as an event.

    Attributes:
      direction: 1 if only zeros where it increases count, -1 where it decreases, 0 for both.
      terminal: the number of events that end the solution; 0 if none does.
    """

    direction: float
    terminal: int


class Problem(NamedTuple):
    """A problem: its functions as a program, and the settings of the solution, all hashable.

    Attributes:
      program: from a time, a state and the parameters to the slope; then the values of the events, the Jacobian if
        ``has_jac``, and the mass matrix if ``has_mass``.
      method: the name of the method.
      rtol: the bound of the error of a step, relative to the state.
      atol: the absolute bound: a number, or one for each element of the state.
      first_step: the size of the first step, or None to estimate it.
      max_step: the largest size of a step.
      max_steps: the largest number of steps of a compiled solution.
      events: the events.
      max_events: the largest number of zeros of each event in a compiled solution.
      has_jac, has_mass: whether the user passed a Jacobian or a mass matrix.
    """

    program: ClosedJaxpr
    method: str
    rtol: float
    atol: Any
    first_step: float | None
    max_step: float
    max_steps: int
    events: tuple[Event, ...] = ()
    max_events: int = 0
    has_jac: bool = False
    has_mass: bool = False

    def tolerance(self, size: Any) -> Any:
        """Return the bound of the error of a step for a state of absolute values ``size``."""
        return np.asarray(self.atol, size.dtype) + self.rtol * size


@cached_by_jaxpr
def _output(program: ClosedJaxpr, which: int) -> ClosedJaxpr:
    """Return the program of one of the results of a program, which takes all operands."""
    wanted = [i == which for i in range(len(program.jaxpr.outvars))]
    return dce_closed_jaxpr(program, wanted, True)[0]


class System:
    """The functions of a problem at values of the parameters."""

    def __init__(self, problem: Problem, parameters: Sequence[Any]) -> None:
        self.problem = problem
        self.parameters = list(parameters)

    def _call(self, which: int, t: Any, y: Any) -> Any:
        return jaxpr_as_fun(_output(self.problem.program, which))(t, y, *self.parameters)[0]

    def slope(self, t: Any, y: Any) -> Any:
        """Return the right-hand side, a vector."""
        return self._call(0, t, y)

    def event(self, which: int, t: Any, y: Any) -> Any:
        """Return the value of an event, a number."""
        return self._call(1 + which, t, y)

    def jacobian(self, t: Any, y: Any) -> Any:
        """Return the matrix of derivatives of the right-hand side by the state, the user's or our own."""
        if self.problem.has_jac:
            return self._call(1 + len(self.problem.events), t, y)
        return jacfwd(lambda y: self.slope(t, y))(y)

    def mass(self, t: Any, y: Any) -> Any:
        """Return the mass matrix, or None for the identity."""
        if not self.problem.has_mass:
            return None
        return self._call(1 + len(self.problem.events) + self.problem.has_jac, t, y)


class Functions(NamedTuple):
    """The user's functions of time and state, which already have their further arguments.

    Attributes:
      fun: the right-hand side.
      events: the events.
      jac: the Jacobian: a function, a matrix, or None.
      mass: the mass matrix, or None.
    """

    fun: Callable[..., Any]
    events: Sequence[Callable[..., Any]]
    jac: Any
    mass: Any


def staged(functions: Functions, t: Any, y: Any, args: Sequence[Any]) -> tuple[ClosedJaxpr, list[Any]]:
    """Trace the user's functions to one program, and return it with its parameters.

    Args:
      functions: the functions, of ``(t, y, *args)``.
      t: the initial time.
      y: the initial state.
      args: the further arguments of the functions, which are parameters, as are arrays that these close over.
    """

    def run(t: Any, y: Any, *args: Any) -> list[Any]:
        out = [_vector(functions.fun(t, y, *args), y)]
        for event in functions.events:
            out.append(_number(event(t, y, *args), y))
        jac = functions.jac
        if jac is not None:
            out.append(_square(jac(t, y, *args) if callable(jac) else jac, y, "jac"))
        if functions.mass is not None:
            out.append(_square(functions.mass, y, "mass_matrix"))
        return out

    avals = [typeof(t).update(weak_type=False), typeof(y).update(weak_type=False), *map(typeof, args)]
    closed = stage_flat(functions.fun, run, avals, "solve_ivp", literals=False)
    jaxpr = closed.jaxpr
    whole = Jaxpr([], [*jaxpr.invars, *jaxpr.constvars], jaxpr.eqns, jaxpr.outvars)
    return deduplicated(ClosedJaxpr(whole)), [*args, *closed.consts]


def _vector(out: Any, y: Any) -> Any:
    out = _array(out, "fun")
    if out.shape != y.shape:
        raise ShapeError(f"solve_ivp: fun must return an array of the shape of y0, {y.shape}, but it is {out.shape}")
    return _of_dtype(out, y.dtype, "fun")


def _number(out: Any, y: Any) -> Any:
    out = _array(out, "an event")
    if out.size != 1:
        raise ShapeError(f"solve_ivp: an event must return one number, got shape {out.shape}")
    return _of_dtype(out.reshape(()), dtypes.to_real(y.dtype), "an event")


def _square(out: Any, y: Any, what: str) -> Any:
    out = _array(out, what)
    wanted = (*y.shape, *y.shape)
    if out.shape != wanted:
        raise ShapeError(f"solve_ivp: {what} must be a matrix of shape {wanted}, got shape {out.shape}")
    return _of_dtype(out, y.dtype, what)


def _array(out: Any, what: str) -> Any:
    try:
        return pnp.asarray(out)
    except (TypeError, ValueError) as error:
        raise OperandError(f"solve_ivp: {what} must return an array of numbers: {error}") from None


def _of_dtype(out: Any, dtype: Any, what: str) -> Any:
    if dtypes.is_complex(out.dtype) and not dtypes.is_complex(dtype):
        raise OperandError(f"solve_ivp: {what} returned complex numbers; pass a complex y0, such as y0 + 0j")
    return ops.convert_element_type(out, dtype)


# Programs of solutions -----------------------------------------------------------------------------------------------


def run(name: str, function: Callable[..., Any], problem: Problem, operands: Sequence[Any], *settings: Any) -> Any:
    """Return the results of ``function(problem, settings, *operands)``, lists of arrays, run as a cached program."""
    avals = tuple([ShapedArray(x.shape, x.dtype) for x in operands])
    program = _program(problem.program, function, problem[1:], avals, settings)
    return jit_p.bind(*operands, jaxpr=program, name=name)


@cached_by_jaxpr
def _program(
    program: ClosedJaxpr,
    function: Callable[..., Any],
    rest: Any,
    avals: Sequence[ShapedArray],
    settings: Sequence[Any],
) -> ClosedJaxpr:
    problem = Problem(program, *rest)
    return stage_flat(function, lambda *xs: function(problem, settings, *xs), avals, "solve_ivp")
