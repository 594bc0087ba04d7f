"""The option ``memory`` of ``checkpoint`` and of the derivatives: a budget for the memory of the whole step."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from pullback.control.memory_plans import Plan, planner
from pullback.core import dtypes
from pullback.core.errors import ArgumentError
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr
from pullback.core.trace import Tracer
from pullback.transforms.functions.arguments import name_of
from pullback.transforms.preaccumulation.primitive import run_freeing, stage_arrays
from pullback.transforms.traces.equal_programs import deduplicated

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
_TEXT = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-z%]*)\s*")


def bytes_of(what: str, memory: Any, usual: int) -> int:
    """Return a budget in bytes.

    Args:
      what: the transformation, for errors.
      memory: a number of bytes; a text such as ``"2GB"`` or ``"50%"``; or a float, the share of the usual peak.
      usual: the peak without recomputation.

    Raises:
      ArgumentError: ``memory`` is no budget (a TypeError and ValueError).

    >>> from pullback.control.memory_budgets import bytes_of
    >>> bytes_of("grad", "2GB", 0), bytes_of("grad", 0.5, 1000), bytes_of("grad", 12345, 0)
    (2000000000, 500, 12345)
    """
    if isinstance(memory, str) and (found := _TEXT.fullmatch(memory)):
        number, unit = float(found[1]), found[2].upper()
        if unit == "%" and 0 < number <= 100:
            return int(usual * number / 100)
        if unit in _UNITS and number > 0:
            return int(number * _UNITS[unit])
    elif isinstance(memory, float) and 0 < memory <= 1:
        return int(usual * memory)
    elif isinstance(memory, int) and not isinstance(memory, bool) and memory > 0:
        return memory
    raise ArgumentError(
        f"{what}: memory must be a positive number of bytes, a text such as '500MB', '2GB' or '50%', or a float up to "
        f"1.0, the share of the usual peak; got {memory!r}"
    )


def within_memory(fun: Any, run: Callable[..., Sequence[Any]], primals: Sequence[Any], what: str, memory: Any) -> Any:
    """Trace a function that is to be differentiated, and return one with the same results that keeps to a budget.

    Args:
      fun: the user's function, for error messages.
      run: the function to trace; it takes and returns flat sequences of arrays; auxiliary results may be any objects.
      primals: the point, as arrays.
      what: the name of the transformation, for error messages.
      memory: the budget; see :func:`bytes_of`.
    """
    closed, as_returned = stage_arrays(fun, run, primals, f"{what} with memory={memory!r}")
    program, consts = inputs_only(closed)
    active = [
        *[isinstance(x, Tracer) and x.differentiated() is not None for x in consts],
        *[dtypes.is_inexact(a.dtype) for a in closed.in_avals],
    ]
    plan = planned(program, tuple(active), f"{what} of {name_of(fun)}", memory)
    return lambda *args: as_returned(run_freeing(plan.result, [*consts, *args]))


def inputs_only(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """Return an equal program whose first inputs are the constants, and their values, so that calls share its plans."""
    jaxpr = closed.jaxpr
    program = ClosedJaxpr(Jaxpr([], [*jaxpr.constvars, *jaxpr.invars], jaxpr.eqns, jaxpr.outvars))
    return deduplicated(program), closed.consts


def planned(program: ClosedJaxpr, active: Sequence[bool], what: str, memory: Any) -> Plan:
    """Return the plan of a program for a budget; see :func:`bytes_of`. ``what`` begins the messages of errors."""
    plans = planner(program, tuple(active))
    return plans.within(bytes_of(what, memory, plans.usual.peak), what)
