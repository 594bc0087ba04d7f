"""``solve_ivp``: initial value problems of ordinary differential equations, with SciPy's interface."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.control.solves import custom_root
from pullback.core import dtypes, tree
from pullback.core.arguments import is_listed
from pullback.core.array import ArrayLike, as_array
from pullback.core.errors import ArgumentError, DtypeError, ShapeError, UnsupportedArgumentError
from pullback.core.trace import Tracer
from pullback.core.waiting import waiting
from pullback.numpy.promotion import known_int, quote
from pullback.primitives import elementwise as ops
from pullback.primitives.operands import stop_gradient
from pullback.scipy.arguments import floats, known, real_floats
from pullback.scipy.integrate import ivp_host
from pullback.scipy.integrate.ivp_adjoint import by_adjoint, by_sensitivities
from pullback.scipy.integrate.ivp_problems import Event, Functions, Problem, System, staged
from pullback.scipy.integrate.ivp_results import OdeResult, OdeSolution
from pullback.scipy.integrate.ivp_solutions import compiled_plan, with_derivative
from pullback.scipy.integrate.ivp_steps import EXHAUSTED, FINISHED, STOPPED, Plan, method_of
from pullback.transforms.autodiff.vmap import vmap

__all__ = ["OdeResult", "OdeSolution", "solve_ivp"]

METHODS = ("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA", "Rodas5P")
_COMPILED = ("RK23", "RK45", "DOP853", "Radau", "BDF", "Rodas5P")
_IMPLICIT = ("Radau", "BDF", "Rodas5P")
_REPEATED = ("RK23", "RK45", "DOP853", "Radau")
"""The methods whose steps on the host are those that a derivative repeats; the others select their own."""


# long: half of it is its documentation
def solve_ivp(
    fun: Callable[..., Any], t_span: Any, y0: ArrayLike, method: str = "RK45", t_eval: ArrayLike | None = None,
    dense_output: bool = False, events: Any = None, vectorized: bool = False, args: Any = None, *,
    first_step: float | None = None, max_step: float = math.inf, rtol: float = 1e-3, atol: Any = 1e-6,
    jac: Any = None, mass_matrix: Any = None, jac_sparsity: Any = None, lband: int | None = None,
    uband: int | None = None, min_step: float = 0.0, max_steps: int = 4096, max_events: int = 16,
    derivative: str = "discrete",
) -> OdeResult:  # fmt: skip
    """Solve ``dy/dt = fun(t, y, *args)`` from an initial state, with steps whose errors are bounded.

    Eagerly SciPy's methods run, with ``fun`` compiled. Under ``jit``, ``vmap`` and derivatives the steps are programs
    of our own with the same tables and the same choice of steps. The derivative is that of the steps taken, with their
    sizes fixed, in both modes and to any order: with respect to ``y0``, ``args``, arrays that ``fun`` closes over,
    both ends of ``t_span``, and ``t_eval``.

    Args:
      fun: ``fun(t, y, *args)`` returns the derivative of the state, a vector like ``y``. It is traced.
      t_span: the first and the last time, two real numbers; the last may be the smaller one.
      y0: the initial state, a vector of n real or complex numbers.
      method: "RK23", "RK45" or "DOP853", explicit; for stiff equations "Radau" or "BDF", or "Rodas5P", a Rosenbrock
        method that only this library has; "LSODA", without derivatives and for concrete arguments.
      t_eval: the times of the results, sorted and within ``t_span``. By default those of all steps; in compiled
        functions both ends, so that ``y[:, -1]`` is the last state.
      dense_output: whether to return the polynomials of the steps, ``sol``.
      events: a function or a list of functions ``event(t, y, *args)``, whose zeros are found. As in SciPy, a function
        may have the attributes ``terminal``, True or the number of zeros that end the solution, and ``direction``.
      vectorized: accepted for compatibility.
      args: further arguments of ``fun``, ``events`` and ``jac``, trees of arrays in a tuple.
      first_step: the size of the first step; by default it is estimated.
      max_step: the largest size of a step.
      rtol, atol: the error of a step is at most ``atol + rtol * abs(y)``, as a root mean square; ``atol`` may be a
        vector.
      jac: the Jacobian ``jac(t, y, *args)`` or a matrix, for methods that use one; by default forward mode finds it.
      mass_matrix: a matrix M, for equations ``M dy/dt = fun(t, y)``. It may be singular: then some equations are
        algebraic, of index 1, and ``y0`` must satisfy them. For "Radau", "BDF" and "Rodas5P".
      jac_sparsity: a matrix, sparse or dense, that is zero where the Jacobian always is. For "Radau" and "BDF" with
        concrete arguments, which then factorise sparse matrices; compiled functions use dense ones.
      lband, uband, min_step: SciPy's options of "LSODA".
      max_steps: the largest number of steps in a compiled function.
      derivative: "discrete", of the steps; or in reverse mode only "forward", which finds the whole Jacobian by forward
        mode, for few parameters, or "adjoint", which solves the adjoint equation with the same method and tolerances.
      max_events: the largest number of zeros of each event in a compiled function, in which ``t_events`` are padded
        with NaN.

    Returns:
      An :class:`OdeResult`. In compiled functions states that are not reached are NaN.

    Raises:
      ShapeError: ``y0`` or the result of ``fun`` is not a vector of n elements (a TypeError and a ValueError).
      DtypeError: ``t_span`` or ``t_eval`` are not real (a TypeError).
      ArgumentError: an unknown method, a tolerance or limit that is not a positive number, or times that are not sorted
        or outside of ``t_span`` (a TypeError and a ValueError).
      UnsupportedArgumentError: an argument that this method does not use (a NotImplementedError).

    Source: E. Hairer, S. P. Nørsett and G. Wanner, Solving Ordinary Differential Equations I, 2nd ed., chapter II;
    E. Hairer and G. Wanner, volume II, sections IV.7 and IV.8; L. F. Shampine and M. W. Reichelt 1997; Steinebach 2023.

    >>> from pullback import grad, jit
    >>> from pullback.scipy.integrate import solve_ivp
    >>> def end(rate):
    ...     return solve_ivp(lambda t, y, rate: -rate * y, (0.0, 2.0), [1.0], args=(rate,), rtol=1e-5).y[0, -1]
    >>> print(end(0.5).round(3), grad(end)(0.5).round(3), jit(grad(end))(0.5).round(3))
    0.368 -0.736 -0.736
    """
    problem_of, operands = _problem(
        fun, t_span, y0, method, t_eval, events, args,
        {"first_step": first_step, "max_step": max_step, "rtol": rtol, "atol": atol, "max_steps": max_steps,
         "max_events": max_events, "jac": jac, "mass": mass_matrix},
    )  # fmt: skip
    if not is_listed(derivative, ("discrete", "forward", "adjoint")):
        raise ArgumentError(
            f"solve_ivp: derivative must be 'discrete', 'forward' or 'adjoint', got {quote(derivative)}"
        )
    host = _host_options(problem_of.problem.method, jac_sparsity, lband, uband, min_step)
    with waiting("solve_ivp"):
        return _solved(problem_of, operands, bool(dense_output), host, derivative)


# Arguments -----------------------------------------------------------------------------------------------------------


class _Operands:
    """The arrays of a problem: the state, both ends, the output times or None, and the parameters."""

    def __init__(self, y: Any, begin: Any, end: Any, times: Any, parameters: list[Any]) -> None:
        self.y, self.begin, self.end, self.times, self.parameters = y, begin, end, times, parameters

    @property
    def every(self) -> list[Any]:
        times = [] if self.times is None else [self.times]
        return [self.y, self.begin, self.end, *times, *self.parameters]

    def stopped(self) -> _Operands:
        """Return the operands without their derivatives."""
        times = None if self.times is None else stop_gradient(self.times)
        y, begin, end, *parameters = map(stop_gradient, (self.y, self.begin, self.end, *self.parameters))
        return _Operands(y, begin, end, times, parameters)


class _Staged:
    """A problem, and whether there are events."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem


def _problem(
    fun: Any, t_span: Any, y0: Any, method: Any, t_eval: Any, events: Any, args: Any, settings: dict[str, Any]
) -> tuple[_Staged, _Operands]:
    """Check the arguments; return the problem and its operands."""
    if not callable(fun):
        raise ArgumentError(f"solve_ivp: fun must be a function, got {quote(fun)}")
    if not is_listed(method, METHODS):
        raise ArgumentError(f"solve_ivp: method must be one of {', '.join(METHODS)}, got {quote(method)}")
    y = floats("solve_ivp", pnp.asarray(y0) if isinstance(y0, (list, tuple)) else y0)
    if len(y.shape) != 1 or not y.shape[0]:
        raise ShapeError(f"solve_ivp: y0 must be a vector of at least one element, got shape {y.shape}")
    begin, end, times = _times(t_span, t_eval, dtypes.to_real(y.dtype))
    args = () if args is None else args
    if not isinstance(args, (tuple, list)):
        raise ArgumentError(f"solve_ivp: args must be a tuple of further arguments of fun, got {quote(args)}")
    leaves, outline = tree.flatten(tuple(args))
    leaves = [as_array(x) for x in leaves]
    watched = [] if events is None else [events] if callable(events) else list(events)
    chosen = tuple(map(_event, watched))

    def with_args(function: Any) -> Any:
        return lambda t, y, *flat: function(t, y, *tree.unflatten(outline, flat))

    jac, mass = settings["jac"], settings["mass"]
    for name, value in (("jac", jac), ("mass_matrix", mass)):
        if value is not None and method not in (_IMPLICIT if name == "mass_matrix" else (*_IMPLICIT, "LSODA")):
            raise UnsupportedArgumentError(
                f"solve_ivp: the method {method} has no option {name}; use one of {', '.join(_IMPLICIT)}"
            )
    if method in _IMPLICIT and dtypes.is_complex(y.dtype):
        raise DtypeError(f"solve_ivp: {method} takes a real y0, got {y.dtype}; pass real and imaginary parts")
    functions = Functions(
        with_args(fun), [with_args(e) for e in watched], with_args(jac) if callable(jac) else jac, mass
    )
    program, parameters = staged(functions, begin, y, leaves)
    eps = float(np.finfo(y.dtype).eps)
    problem = Problem(
        program, method, max(_positive("rtol", settings["rtol"], True), 100 * eps), _atol(settings["atol"], y.shape[0]),
        None if settings["first_step"] is None else _positive("first_step", settings["first_step"]),
        _positive("max_step", settings["max_step"]), _count("max_steps", settings["max_steps"]),
        chosen, _count("max_events", settings["max_events"]) if watched else 0, jac is not None,
        mass is not None,
    )  # fmt: skip
    return _Staged(problem), _Operands(y, begin, end, times, parameters)


def _times(t_span: Any, t_eval: Any, dtype: Any) -> tuple[Any, Any, Any]:
    """Return both ends of ``t_span`` and the output times, or None, in one dtype at least as precise as ``dtype``."""
    try:
        ends = list(t_span)
    except TypeError:
        ends = []
    if len(ends) != 2:
        raise ArgumentError(f"solve_ivp: t_span must be two numbers, the first and the last time, got {quote(t_span)}")
    arrays = [real_floats("solve_ivp", x, "t_span") for x in ends]
    if any(x.shape for x in arrays):
        raise ShapeError(f"solve_ivp: t_span must be two numbers, got shapes {arrays[0].shape} and {arrays[1].shape}")
    if t_eval is not None:
        arrays.append(real_floats("solve_ivp", t_eval, "t_eval"))
        if len(arrays[2].shape) != 1:
            raise ShapeError(f"solve_ivp: t_eval must be a vector, got shape {arrays[2].shape}")
    common = dtypes.common_dtype(dtype, *[x.dtype for x in arrays if not getattr(x, "weak_type", False)])
    begin, end, *times = (ops.convert_element_type(x, common) for x in arrays)
    first, last = known(begin), known(end)
    if first is not None and last is not None and not (np.isfinite(first) and np.isfinite(last)):
        raise ArgumentError(f"solve_ivp: t_span must be finite, got {first} and {last}")
    values = known(times[0]) if times else None
    if values is not None and first is not None and last is not None and len(values):
        sign = 1 if last >= first else -1
        if not (np.diff(values) * sign > 0).all():
            raise ArgumentError("solve_ivp: t_eval must be sorted from the first to the last time, without repetition")
        if min(values[0] * sign, values[-1] * sign) < first * sign or max(values * sign) > last * sign:
            raise ArgumentError(f"solve_ivp: t_eval must be within t_span, from {first} to {last}")
    return begin, end, times[0] if times else None


def _positive(name: str, value: Any, or_zero: bool = False) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (number >= 0 if or_zero else number > 0):
        raise ArgumentError(f"solve_ivp: {name} must be a positive number that is not traced, got {quote(value)}")
    return number


def _atol(value: Any, n: int) -> Any:
    found = known(value)
    if found is None or found.dtype.kind not in "fiu" or not (found >= 0).all():
        raise ArgumentError(f"solve_ivp: atol must be positive numbers that are not traced, got {quote(value)}")
    if found.shape not in ((), (n,)):
        raise ShapeError(f"solve_ivp: atol must be a number or a vector of {n} elements, got shape {found.shape}")
    return float(found) if found.shape == () else tuple(map(float, found))


def _count(name: str, value: Any) -> int:
    number = known_int("solve_ivp", name, value)
    if number < 1:
        raise ArgumentError(f"solve_ivp: {name} must be at least 1, got {number}")
    return number


def _event(function: Any) -> Event:
    if not callable(function):
        raise ArgumentError(f"solve_ivp: events must be functions, got {quote(function)}")
    return Event(float(getattr(function, "direction", 0.0)), int(getattr(function, "terminal", 0) or 0))


def _host_options(method: str, jac_sparsity: Any, lband: Any, uband: Any, min_step: Any) -> dict[str, Any]:
    """Return the options that only SciPy's methods on the host use."""
    given = {"jac_sparsity": jac_sparsity, "lband": lband, "uband": uband, "min_step": min_step or None}
    used = {"Radau": ("jac_sparsity",), "BDF": ("jac_sparsity",), "LSODA": ("lband", "uband", "min_step")}
    for name, value in given.items():
        if value is not None and name not in used.get(method, ()):
            raise UnsupportedArgumentError(f"solve_ivp: the method {method} has no option {name}; leave it out")
    return {name: value for name, value in given.items() if value is not None}


# Solutions -----------------------------------------------------------------------------------------------------------


def _solved(staged: _Staged, operands: _Operands, dense: bool, host: dict[str, Any], derivative: str) -> OdeResult:
    problem = staged.problem
    own = problem.has_mass or problem.method == "Rodas5P"
    if not own and not any(isinstance(x, Tracer) for x in operands.every):
        return _on_host(problem, operands, dense, host)
    if problem.method not in _COMPILED:
        raise UnsupportedArgumentError(
            f"solve_ivp: the method {problem.method} has no derivatives and cannot be compiled; use "
            f"{', '.join(_COMPILED)}"
        )
    record = dense or bool(problem.events)
    if derivative == "adjoint" and (record or problem.has_mass or dtypes.is_complex(operands.y.dtype)):
        raise UnsupportedArgumentError(
            "solve_ivp: derivative='adjoint' is for real states at times, without dense_output, events and "
            "mass_matrix; use derivative='discrete'"
        )
    fixed = operands.stopped()
    concrete = not any(isinstance(x, Tracer) for x in fixed.every)
    if host and not (concrete and problem.method == "Radau" and not own):
        raise UnsupportedArgumentError(
            f"solve_ivp: {', '.join(host)} is for concrete arguments; compiled functions and mass matrices use dense "
            f"Jacobians"
        )
    record = record or derivative == "adjoint" or (concrete and operands.times is None)
    kind = "pieces" if record else "end" if operands.times is None else "states"
    if concrete and problem.method in _REPEATED and not own:
        plan, counts = _host_plan(problem, fixed, kind, host)
    else:
        plan = _own_plan(problem, fixed, kind, concrete)
        counts = plan.calls, None, None
    if derivative == "adjoint":
        return _by_adjoint(problem, operands, plan, counts)
    return _result(problem, operands, plan, kind, dense, concrete, counts, derivative)


def _own_plan(problem: Problem, fixed: _Operands, kind: str, concrete: bool) -> Plan:
    """Return the plan by a compiled program; with concrete operands there is room for all steps."""
    times = fixed.begin[None] if fixed.times is None else fixed.times
    inner = fixed.y, fixed.begin, fixed.end, times, fixed.parameters
    room = problem.max_steps
    plan = compiled_plan(problem, kind, room, *inner)
    while concrete and int(plan.status) == EXHAUSTED:
        room *= 4
        plan = compiled_plan(problem, kind, room, *inner)
    return plan


def _by_adjoint(problem: Problem, operands: _Operands, plan: Plan, counts: Any) -> OdeResult:
    """Return the states at the output times, or at both ends, with the derivatives of the adjoint equation."""
    y, begin, end = operands.y, operands.begin, operands.end
    nfev, njev, nlu = counts
    times = end[None] if operands.times is None else operands.times
    last = begin + pnp.sum(plan.sizes)
    last = ops.where(ops.eq(plan.status, FINISHED), end, last)
    states = by_adjoint(problem, plan, (y, begin, end, times), list(operands.parameters))
    sign = pnp.where(end >= begin, 1, -1)
    states = ops.where((sign * (times - stop_gradient(last)) <= 0)[:, None], states, pnp.nan)
    if operands.times is None:
        times, states = pnp.stack([begin, end]), pnp.concatenate([y[None], states])
    return OdeResult(times, states.T, None, None, None, nfev, njev, nlu, plan.status)


def _on_host(problem: Problem, operands: _Operands, dense: bool, host: dict[str, Any]) -> OdeResult:
    """Return the result of SciPy's method."""
    found = _scipy(problem, operands, dense, host)
    y, time = operands.y.dtype, operands.begin.dtype
    sol = None
    if dense:
        system = System(problem, operands.parameters)
        sol = _dense(found.sol.interpolants, _degree(problem, system), time, y)
    hits = found.t_events is not None and problem.events
    return OdeResult(
        as_array(found.t.astype(time)),
        as_array(found.y.astype(y)),
        sol,
        [as_array(t.astype(time)) for t in found.t_events] if hits else None,
        [as_array(v.reshape(-1, len(found.y)).astype(y)) for v in found.y_events] if hits else None,
        *(as_array(np.int32(n)) for n in (found.nfev, found.njev, found.nlu, found.status)),
    )


def _degree(problem: Problem, system: System) -> int:
    degrees = {"Radau": 3, "BDF": 5, "LSODA": 12}
    return degrees[problem.method] if problem.method in degrees else method_of(system).degree


def _dense(interpolants: Sequence[Any], degree: int, time: Any, dtype: Any) -> OdeSolution:
    if not interpolants:
        raise ShapeError("solve_ivp: there is no step in t_span; both ends are equal, leave dense_output out")
    ts = np.array([interpolants[0].t_old, *(p.t for p in interpolants)])
    pieces = ivp_host.polynomials(interpolants, degree)
    arrays = ts.astype(time), np.diff(ts).astype(time), pieces.astype(dtype), np.int32(len(interpolants))
    return OdeSolution(*map(as_array, arrays))


def _scipy(problem: Problem, operands: _Operands, dense: bool, host: dict[str, Any]) -> Any:
    more = dict(host)
    sparsity = more.pop("jac_sparsity", None)
    y, begin, end = (np.asarray(x) for x in (operands.y, operands.begin, operands.end))
    times = None if operands.times is None else np.asarray(operands.times)
    jacobian = "lband" not in more and "uband" not in more
    return ivp_host.solution(problem, y, begin, end, times, operands.parameters, dense, sparsity, jacobian, more)


def _host_plan(problem: Problem, fixed: _Operands, kind: str, host: dict[str, Any]) -> tuple[Plan, Any]:
    """Return the plan with the steps that SciPy's method selects, and the counts of evaluations."""
    record = kind == "pieces"
    free = _Operands(fixed.y, fixed.begin, fixed.end, None, fixed.parameters)
    found = _scipy(problem, free, True, host)
    pieces = found.sol.interpolants if len(found.t) > 1 else []
    time, count = np.asarray(fixed.begin).dtype, len(pieces)
    room = max(16, 1 << (count - 1).bit_length()) if count else 16
    sizes = np.zeros(room, time)
    sizes[:count] = [p.t - p.t_old for p in pieces]
    last = float(found.t[-1])
    dtype = np.asarray(fixed.y).dtype
    if record:
        degree = _degree(problem, System(problem, fixed.parameters))
        values = np.zeros((room, degree + 1, len(fixed.y)), dtype)
        if count:
            values[:count] = ivp_host.polynomials(pieces, degree)
        stops = np.minimum(np.arange(1, room + 1), count)
    else:
        times = np.asarray(fixed.times, np.float64)
        sign = 1 if float(fixed.end) >= float(fixed.begin) else -1
        stops = np.searchsorted(sign * found.t, sign * times)
        stops = np.where(sign * times <= sign * last, np.minimum(stops, count), -1)
        still = np.broadcast_to(np.asarray(fixed.y), (len(times), len(fixed.y)))
        states = found.sol(times).T if count and len(times) else still
        values = np.where((stops >= 0)[:, None], states, np.nan).astype(dtype)
    hits = list(found.t_events or []) if problem.events else []
    most = max([len(t) for t in hits], default=0)
    event_times = np.full((len(hits), most), np.nan, time)
    event_steps = np.zeros((len(hits), most), np.int32)
    starts = np.array([p.t_old for p in pieces])
    for k, t in enumerate(hits):
        event_times[k, : len(t)] = t
        sign = 1 if count and pieces[0].t >= pieces[0].t_old else -1
        event_steps[k, : len(t)] = np.maximum(np.searchsorted(sign * starts, sign * t) - 1, 0)
    arrays = (
        sizes, np.zeros(room, np.int32), np.int32(count), np.int32(found.status), np.int32(found.nfev),
        stops.astype(np.int32), values, event_times, event_steps,
    )  # fmt: skip
    counts = [as_array(np.int32(n)) for n in (found.nfev, found.njev, found.nlu)]
    return Plan(*map(as_array, arrays)), counts


# Results -------------------------------------------------------------------------------------------------------------


def _result(
    problem: Problem, operands: _Operands, plan: Plan, kind: str, dense: bool, concrete: bool, counts: Any,
    derivative: str,
) -> OdeResult:  # fmt: skip
    """Return the result of a plan, with derivatives."""
    y, begin, end = operands.y, operands.begin, operands.end
    nfev, njev, nlu = counts
    times = begin[None] if operands.times is None else operands.times
    attach = by_sensitivities if derivative == "forward" else with_derivative
    values = attach(problem, kind, plan, (y, begin, end, times), list(operands.parameters))
    if kind == "states":
        return OdeResult(times, values.T, None, None, None, nfev, njev, nlu, plan.status)
    if kind == "end":
        return OdeResult(
            pnp.stack([begin, end]), pnp.stack([y, values[0]]).T, None, None, None, nfev, njev, nlu, plan.status
        )
    sizes, count = plan.sizes, plan.count
    if concrete:
        steps = int(count)
        values, sizes = values[:steps], sizes[:steps]
    ts = begin + pnp.concatenate([pnp.zeros(1, begin.dtype), pnp.cumsum(sizes)])
    closed = ops.eq(plan.status, FINISHED)
    steps_before = pnp.arange(ts.shape[0]) < count
    ts = ops.where(~steps_before & closed, end, ts)
    widths = ops.where(steps_before[:-1], ts[1:] - ts[:-1], 0)
    sol = OdeSolution(ts, widths, values, count)
    t_events, y_events = _events(problem, operands, plan, sol, concrete)
    last = _last_time(problem, plan, sol, t_events)
    t, states = _outputs(operands, plan, sol, last, concrete)
    return OdeResult(
        t, states, sol if dense else None, t_events if problem.events else None,
        y_events if problem.events else None, nfev, njev, nlu, plan.status,
    )  # fmt: skip


def _events(
    problem: Problem, operands: _Operands, plan: Plan, sol: OdeSolution, concrete: bool
) -> tuple[list[Any], list[Any]]:
    """Return the times of each event, and the states then, with derivatives by the implicit function theorem."""
    system = System(problem, operands.parameters)
    all_times, all_states = [], []
    for k in range(len(problem.events)):
        given, steps = plan.event_times[k], plan.event_steps[k]
        there = pnp.isfinite(given)
        if concrete:
            amount = int(pnp.sum(there))
            given, steps, there = given[:amount], steps[:amount], there[:amount]
        safe = ops.where(there, given, stop_gradient(operands.begin))

        def equation(t: Any, k: int = k, steps: Any = steps, there: Any = there, safe: Any = safe) -> Any:
            values = vmap(lambda t, y: system.event(k, t, y))(t, sol._within(steps, t))
            return ops.where(there, ops.convert_element_type(values, t.dtype), t - safe)

        def solve(_: Any, x: Any) -> Any:
            return x

        def tangent(matvec: Any, b: Any) -> Any:
            return b / matvec(pnp.ones_like(b))

        times = custom_root(equation, safe, solve, tangent) if given.shape[0] else given
        all_times.append(ops.where(there, times, pnp.nan))
        all_states.append(ops.where(there[:, None], sol._within(steps, times), pnp.nan))
    return all_times, all_states


def _last_time(problem: Problem, plan: Plan, sol: OdeSolution, t_events: list[Any]) -> Any:
    """Return the time at which the solution ends: that of the terminal event, or the end of the last step."""
    last = sol.ts[plan.count]
    ends = []
    for event, times in zip(problem.events, t_events, strict=True):
        if event.terminal and times.shape[0]:
            sign = pnp.where(sol.ts[-1] >= sol.ts[0], 1, -1)
            latest = pnp.nanargmax(ops.where(pnp.isnan(times), -np.inf, sign * times))
            reached = pnp.sum(pnp.isfinite(times)) >= event.terminal
            ends.append((reached, times[latest]))
    stopped = ops.eq(plan.status, STOPPED)
    for reached, time in ends:
        last = ops.where(stopped & reached, time, last)
    return last


def _outputs(operands: _Operands, plan: Plan, sol: OdeSolution, last: Any, concrete: bool) -> tuple[Any, Any]:
    """Return the output times and the states then, (n, times)."""
    sign = pnp.where(operands.end >= operands.begin, 1, -1)
    if operands.times is not None:
        t = operands.times
        reached = sign * (t - last) <= 0
        if concrete:
            t = t[: int(pnp.sum(reached))]
            return t, sol(t) if int(plan.count) else pnp.broadcast_to(
                operands.y[:, None], (operands.y.shape[0], t.shape[0])
            )
        return t, ops.where(reached[None], sol(t), pnp.nan)
    if not concrete:
        state = ops.where(plan.status == EXHAUSTED, pnp.nan, sol(last))
        return pnp.stack([operands.begin, last]), pnp.stack([operands.y, state]).T
    if not int(plan.count):
        return sol.ts, operands.y[:, None]
    t = sol.ts.at[-1].set(last)
    return t, pnp.concatenate([operands.y[:, None], sol(t[1:])], axis=1)
