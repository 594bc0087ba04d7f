"""Running a program operation by operation instead of compiling it; and a cost model for that."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from pullback.backends.host.blas_threads import one_blas_thread
from pullback.core import traits
from pullback.core.array import ArrayImpl, as_array
from pullback.core.config import override
from pullback.core.inlining import runs_once
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, subjaxprs
from pullback.core.trace import Primitive, state
from pullback.transforms.programs.callbacks import as_compiled
from pullback.transforms.traces.inlining import flattened, programs_in_step


class Instruction(NamedTuple):
    """An equation of a program, whose variables are indices into a list of values.

    Attributes:
      rule: the host rule of the primitive; None if the current trace has to evaluate the equation.
      params: the parameters.
      operands, results: the indices of operands and results.
      ends: the indices of values that are not used afterwards.
      several: whether the rule returns a list of results.
      eqn: the equation.
    """

    rule: Callable[..., Any] | None
    params: dict[str, Any]
    operands: list[int]
    results: list[int]
    ends: list[int]
    several: bool
    eqn: Eqn


class EagerProgram:
    """A program that runs operation by operation on the host, and frees values after their last use.

    Each callback is called once, in program order, and raises the errors that it raises in a compiled program. Loops
    run step by step.

    Args:
      closed: the program.
    """

    __slots__ = ("_consts", "_count", "_literals", "_results", "_steps", "_types")

    def __init__(self, closed: ClosedJaxpr) -> None:
        flat = flattened(closed)
        jaxpr = flat.jaxpr
        self._consts = flat.consts
        index: dict[Any, int] = {v: i for i, v in enumerate([*jaxpr.invars, *jaxpr.constvars])}
        read = [*(a for eqn in jaxpr.eqns for a in eqn.invars), *jaxpr.outvars]
        literals = list(dict.fromkeys(a for a in read if isinstance(a, Literal)))
        self._literals = [np.asarray(a.val, a.aval.dtype)[()] for a in literals]
        for v in (*literals, *(v for eqn in jaxpr.eqns for v in eqn.outvars)):
            index[v] = len(index)
        self._count = len(index)
        self._results = [index[a] for a in jaxpr.outvars]
        self._types = jaxpr.out_avals
        # The last equation that reads or computes each value, after which the value is freed.
        last = {index[a]: k for k, eqn in enumerate(jaxpr.eqns) for a in (*eqn.outvars, *eqn.invars)}
        ends: list[list[int]] = [[] for _ in jaxpr.eqns]
        for i, k in last.items():
            ends[k].append(i)
        results = set(self._results)
        self._steps = [
            Instruction(
                eqn.primitive.host_rule, eqn.params, [index[a] for a in eqn.invars], [index[v] for v in eqn.outvars],
                [i for i in end if i not in results], eqn.primitive.multiple_results, eqn,
            )
            for eqn, end in zip(jaxpr.eqns, ends, strict=True)
        ]  # fmt: skip

    def __call__(self, args: Sequence[Any]) -> list[ArrayImpl]:
        """Run the program on arrays, and return the results as new arrays, even for an argument that is returned."""
        values = [*[x._value for x in (*args, *self._consts)], *self._literals]
        values += [None] * (self._count - len(values))
        steps = self._steps
        outer = state.trace, state.source_loc
        state.trace = state.bottom
        try:
            with _without_compiler(), as_compiled(), one_blas_thread():
                k = _run(steps, values, 0)
                while k < len(steps):
                    state.source_loc = steps[k].eqn.made_at or outer[1]
                    _bind(steps[k], values)
                    k = _run(steps, values, k + 1)
        finally:
            state.trace, state.source_loc = outer
        return [ArrayImpl(values[i], a.weak_type) for i, a in zip(self._results, self._types, strict=True)]


def _run(steps: list[Instruction], values: list[Any], start: int) -> int:
    """Run steps of a program by their host rules, without a trace, as far as possible.

    Stop at a step that has no host rule, or whose rule raises. For small operations, a rule takes half as long as
    evaluation by a trace.

    Args:
      steps: the steps of the program.
      values: the values of all variables, updated in place.
      start: the index of the first step to run.

    Returns:
      The index of the step that did not run; the number of steps if all ran.
    """
    try:
        return state.silently(_run_host_rules, steps, values, start)  # type: ignore[no-any-return]
    except RuntimeError:  # within another host rule, where NumPy's warnings are off already
        return _run_host_rules(steps, values, start)


def _run_host_rules(steps: list[Instruction], values: list[Any], start: int) -> int:
    """Run steps by their host rules, from index ``start`` on, and update ``values``, the values of all variables.

    Stop at a step that has no host rule, or whose rule raises; return its index, or the number of steps if all ran.
    """
    for k in range(start, len(steps)):
        rule, params, operands, results, ends, several, _ = steps[k]
        if rule is None:
            return k
        try:
            found = rule(*[values[i] for i in operands], **params)
        except Exception:  # the trace evaluates the step again, and raises an error that explains
            return k
        if several:
            for i, value in zip(results, found, strict=True):
                values[i] = value
        else:
            values[results[0]] = found
        for i in ends:
            values[i] = None
    return len(steps)


def _bind(step: Instruction, values: list[Any]) -> None:
    """Evaluate a step under the current trace; take its operands from ``values``, and put its results there."""
    eqn = step.eqn
    operands = [ArrayImpl(values[i], bool(a.aval.weak_type)) for i, a in zip(step.operands, eqn.invars, strict=True)]
    found = eqn.primitive.bind(*operands, **eqn.params)
    for i, x in zip(step.results, found if step.several else [found], strict=True):
        values[i] = as_array(x)._value  # type: ignore[attr-defined]
    for i in step.ends:
        values[i] = None


@contextmanager
def _without_compiler() -> Iterator[None]:
    """Return a context manager in which no operation is compiled."""
    with override("disable_jit", True), override("compile_large_operations", False):
        yield


# Cost model ----------------------------------------------------------------------------------------------------------

CALL = 8e-6
"""The overhead of an operation in seconds: 3 to 20 us; 8 us in the gradient of a transformer."""
PRODUCT = 3e-10
"""The seconds for a product in a contraction: 0.05 ns in large matrices, up to 0.3 ns in many small matrices."""
ELEMENT = 3e-9
"""The seconds for an element of the largest operand or result of a simple operation: 0.3 to 40 ns."""
SLOW_ELEMENT = 3e-7
"""The seconds for an element of a special function: 40 to 1,000 ns."""
MATRIX_ELEMENT = 5e-9
"""The seconds of a decomposition for each element of its matrices, times the number of rows: 1 to 20 ns."""
MOST_ELEMENTS = 10_000_000
"""The largest array for which a time is predicted: the compiler may avoid larger ones, which may exceed memory."""
UNKNOWN = math.inf


def expected_seconds(jaxpr: Jaxpr) -> float:
    """Predict the time of a program that runs operation by operation on the host, in seconds; infinity if unknown.

    The time is unknown for loops of unknown length, very large arrays, and operations without a host rule.
    """
    return sum(map(_seconds, jaxpr.eqns))


def _seconds(eqn: Eqn) -> float:
    """Predict the time of an equation on the host, in seconds; infinity if unknown."""
    primitive = eqn.primitive
    inner = list(subjaxprs(eqn))
    if inner:
        if not _runs_known_steps(primitive, eqn.params):
            return UNKNOWN
        each = [expected_seconds(program) for program in inner]
        total = max(each) if "branches" in eqn.params else sum(each)
        return CALL + total * float(eqn.params.get("length", 1))
    price = traits.cost.of(primitive)
    if price is traits.Cost.CALL:
        return CALL
    if primitive.host_rule is None:
        return UNKNOWN
    avals = [a.aval for a in eqn.invars]
    largest = max([a.size for a in avals] + [v.aval.size for v in eqn.outvars], default=0)
    if largest > MOST_ELEMENTS:
        return UNKNOWN
    if price is traits.Cost.PRODUCT and "dimension_numbers" in eqn.params:
        x, y = avals
        (contracted, _), (batch, _) = eqn.params["dimension_numbers"]
        shared: int = math.prod(x.shape[i] for i in (*contracted, *batch))
        return CALL + ELEMENT * largest + PRODUCT * x.size * y.size / max(shared, 1)
    if price is traits.Cost.MATRIX:
        return CALL + MATRIX_ELEMENT * sum(a.size * max(a.shape, default=1) for a in avals)
    return CALL + (SLOW_ELEMENT if price is traits.Cost.SPECIAL else ELEMENT) * largest


def _runs_known_steps(primitive: Primitive, params: dict[str, Any]) -> bool:
    """Whether it is known how often an operation runs the programs in ``params``: for a scan, but not for a while."""
    if programs_in_step(primitive, params):
        return "length" in params or "branches" in params
    return runs_once.of(primitive) is not None or primitive.decomposition_rule is not None
