"""Solutions with derivatives: the values of a plan, whose tangents are those of the same steps made again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.primitives import elementwise as ops
from pullback.primitives.operands import stop_gradient
from pullback.scipy.integrate.ivp_problems import Problem, run
from pullback.scipy.integrate.ivp_steps import FINISHED, Plan, planned, repeated
from pullback.transforms.autodiff.jvp import jvp
from pullback.transforms.custom.custom_rules import custom_jvp


def compiled_plan(
    problem: Problem, kind: str, room: int, y: Any, begin: Any, end: Any, times: Any, parameters: Sequence[Any]
) -> Plan:
    """Return the plan of a solution by a compiled program; see :func:`ivp_steps.planned`."""
    operands = [stop_gradient(x) for x in (y, begin, end, times, *parameters)]
    return Plan(*run("solve_ivp", planned, problem, operands, kind, room))


def _values(problem: Problem, kind: str, plan: Plan, operands: Any, parameters: Any) -> Any:
    """Return the values of a plan, as a function of ``(y, begin, end, times)`` and the parameters."""
    return plan.values


with_derivative = custom_jvp(_values, nondiff_argnums=(0, 1))


@with_derivative.defjvp
def _jvp(problem: Problem, kind: str, primals: Any, tangents: Any) -> Any:
    plan, operands, parameters = primals
    values = with_derivative(problem, kind, plan, operands, parameters)
    moving = [i for i, x in enumerate(parameters) if dtypes.is_inexact(x.dtype)]

    def again(y: Any, begin: Any, end: Any, times: Any, *active: Any) -> Any:
        every = list(parameters)
        for i, x in zip(moving, active, strict=True):
            every[i] = x
        closed = ops.eq(plan.status, FINISHED)
        inner = [y, begin, end, times, plan.sizes, plan.notes, plan.count, closed, plan.stops, *every]
        return run("solve_ivp_derivative", repeated, problem, inner, kind)[0]

    along = [*tangents[1], *(tangents[2][i] for i in moving)]
    dots = jvp(again, (*operands, *(parameters[i] for i in moving)), tuple(along))[1]
    return values, ops.where(pnp.isfinite(values), dots, pnp.nan)
