"""Two more derivatives of solutions: by the continuous adjoint equation, and by forward sensitivities in reverse mode.

Source: Y. Cao, S. Li, L. Petzold and R. Serban 2003, "Adjoint sensitivity analysis for differential-algebraic
equations: the adjoint DAE system and its numerical solution".
"""

from __future__ import annotations

import math
from typing import Any

import pullback.numpy as pnp
from pullback.control.scan import scan
from pullback.core import dtypes
from pullback.primitives import elementwise as ops
from pullback.primitives.operands import stop_gradient
from pullback.scipy.integrate.ivp_problems import Functions, Problem, System, staged
from pullback.scipy.integrate.ivp_results import OdeSolution
from pullback.scipy.integrate.ivp_solutions import compiled_plan, with_derivative
from pullback.transforms.autodiff.grad import vjp
from pullback.transforms.autodiff.jacobian import jacfwd
from pullback.transforms.autodiff.vmap import vmap
from pullback.transforms.custom.custom_rules import custom_vjp


def _moving(parameters: Any) -> list[int]:
    return [i for i, x in enumerate(parameters) if dtypes.is_inexact(x.dtype)]


def _with(parameters: Any, moving: list[int], active: Any) -> list[Any]:
    every = list(parameters)
    for i, x in zip(moving, active, strict=True):
        every[i] = x
    return every


# Forward sensitivities -----------------------------------------------------------------------------------------------


def _values(problem: Problem, kind: str, plan: Any, operands: Any, parameters: Any) -> Any:
    return with_derivative(problem, kind, plan, operands, parameters)


by_sensitivities = custom_vjp(_values, nondiff_argnums=(0, 1))
"""The values of a plan, whose cotangents are products with the whole Jacobian, which forward mode finds."""


def _sensitivities_fwd(problem: Problem, kind: str, plan: Any, operands: Any, parameters: Any) -> Any:
    moving = _moving(parameters)

    def values(operands: Any, active: Any) -> Any:
        return with_derivative(problem, kind, plan, operands, _with(parameters, moving, active))

    active = [parameters[i] for i in moving]
    jacobians = jacfwd(values, (0, 1))(tuple(operands), active)
    return values(operands, active), (jacobians, [x if i not in moving else None for i, x in enumerate(parameters)])


def _sensitivities_bwd(problem: Problem, kind: str, residuals: Any, ct: Any) -> Any:
    (of_operands, of_active), still = residuals

    def pulled(jacobian: Any) -> Any:
        return pnp.tensordot(ct, jacobian, len(ct.shape))

    given = iter([pulled(j) for j in of_active])
    of_parameters = [next(given) if x is None else None for x in still]
    return None, tuple(pulled(j) for j in of_operands), of_parameters


by_sensitivities.defvjp(_sensitivities_fwd, _sensitivities_bwd)


# The adjoint equation ------------------------------------------------------------------------------------------------


def _at_times(problem: Problem, plan: Any, operands: Any, parameters: Any) -> Any:
    """Return the states at the output times, (times, n), by the polynomials of a plan."""
    return _solution(problem, plan, operands, parameters)(operands[3]).T


by_adjoint = custom_vjp(_at_times, nondiff_argnums=(0,))
"""The states at the output times, whose cotangents solve the adjoint equation backwards in time."""


def _solution(problem: Problem, plan: Any, operands: Any, parameters: Any) -> OdeSolution:
    begin, end = operands[1], operands[2]
    pieces = with_derivative(problem, "pieces", plan, tuple(operands), list(parameters))
    pieces = ops.where(pnp.isfinite(pieces), pieces, 0)
    ts = begin + pnp.concatenate([pnp.zeros(1, begin.dtype), pnp.cumsum(plan.sizes)])
    ts = ops.where(pnp.arange(ts.shape[0]) < plan.count, ts, end)
    return OdeSolution(ts, ts[1:] - ts[:-1], pieces, plan.count)


def _adjoint_fwd(problem: Problem, plan: Any, operands: Any, parameters: Any) -> Any:
    sol = _solution(problem, plan, operands, parameters)
    states = sol(operands[3]).T
    return states, (sol, states, tuple(operands), list(parameters))


def _adjoint_bwd(problem: Problem, residuals: Any, ct: Any) -> Any:
    sol, states, (y, begin, end, times), parameters = residuals
    moving = _moving(parameters)
    n, sizes = y.shape[0], [parameters[i].size for i in moving]
    scale = stop_gradient(pnp.max(abs(ct), initial=0.0))
    scale = ops.where(ops.eq(scale, 0), 1, scale)
    ct = ct / scale
    seed = pnp.zeros(n + sum(sizes), y.dtype)

    def backwards(t: Any, z: Any, *given: Any) -> Any:
        every, along = given[: len(parameters)], OdeSolution(*given[len(parameters) :])
        state = along(t)

        def slope(y: Any, active: Any) -> Any:
            return System(problem, _with(every, moving, active)).slope(t, y)

        _, pull = vjp(slope, state, [every[i] for i in moving])
        of_state, of_active = pull(-z[:n])
        return pnp.concatenate([of_state, *(ops.convert_element_type(g, y.dtype).reshape(-1) for g in of_active)])

    arrays = [*parameters, sol.ts, sol.widths, sol.pieces, sol.count]
    program, inner = staged(Functions(backwards, (), None, None), begin, seed, arrays)
    atol = min(problem.atol) if isinstance(problem.atol, tuple) else problem.atol
    adjoint = Problem(program, problem.method, problem.rtol, atol, None, math.inf, problem.max_steps)

    def back(z: Any, x: Any) -> tuple[Any, None]:
        ct, start, stop = x
        z = z.at[:n].add(ct)
        plan = compiled_plan(adjoint, "end", problem.max_steps, z, start, stop, start[None], inner)
        return with_derivative(adjoint, "end", plan, (z, start, stop, start[None]), inner)[0], None

    before = pnp.concatenate([begin[None], times[:-1]])
    z, _ = scan(back, seed, (ct, times, before), reverse=True)
    system = System(problem, parameters)
    slopes = vmap(system.slope)(times, states)
    of_times = scale * pnp.sum(ct * slopes, axis=1)
    of_begin = -scale * pnp.sum(z[:n] * system.slope(begin, y))
    cotangents, start = [], n
    for i, size in zip(moving, sizes, strict=True):
        x = parameters[i]
        cotangents.append(ops.convert_element_type(scale * z[start : start + size], x.dtype).reshape(x.shape))
        start += size
    given = iter(cotangents)
    flags = [i in moving for i in range(len(parameters))]
    of_parameters = [next(given) if m else None for m in flags]
    return None, (scale * z[:n], of_begin, end * 0, of_times), of_parameters


by_adjoint.defvjp(_adjoint_fwd, _adjoint_bwd)
