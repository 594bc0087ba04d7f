"""Running elementwise programs on large arrays by NumPy.

Intermediate results are not wrapped in arrays of the library, and a result reuses the memory of an operand that no
later operation reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pullback.core.array import ArrayImpl, as_array, host_value
from pullback.core.jaxpr import ClosedJaxpr, Var
from pullback.core.trace import Primitive
from pullback.core.types import ShapedArray
from pullback.primitives.elementwise import add_any_p, add_p, div_p, mul_p, neg_p, sub_p
from pullback.transforms.preaccumulation.ordering import last_uses
from pullback.transforms.traces.derived import cached_by_jaxpr

LARGE = 2**14
"""The least average number of elements of a result for which NumPy runs a program.

Processor time in ms of the gradient through twelve of Newton's steps, by NumPy and compiled (without the time for
compiling, 0.3 s); two cores, NumPy 2.4, jaxlib 0.10.2:

| function, dtype | 1,000 points | 10,000 | 30,000 | 100,000 |
|---|---|---|---|---|
| sine, float32 | 1.8, 1.9 | 2.5, 3.7 | 3.9, 7.9 | 8.5, 22 |
| sine, float64 | 2.2, 2.4 | 5.2, 8.0 | 11, 20 | 33, 61 |
| exponential, float32 | 1.3, 1.2 | 1.8, 1.9 | 2.6, 2.5 | 6.7, 6.8 |
| exponential, float64 | 1.2, 1.3 | 2.3, 2.2 | 4.5, 4.7 | 13, 28 |
| cubic polynomial, float32 | 1.8, 1.7 | 2.1, 1.9 | 3.1, 3.6 | 7.9, 7.2 |
| cubic polynomial, float64 | 1.5, 1.4 | 2.5, 2.4 | 5.3, 4.4 | 14, 27 |
"""

_INTO: dict[Primitive, Any] = {
    add_any_p: np.add,
    add_p: np.add,
    div_p: np.divide,
    mul_p: np.multiply,
    neg_p: np.negative,
    sub_p: np.subtract,
}
"""Operations on real numbers whose result may be written into the memory of an operand, and their ufuncs."""


class HostStep(NamedTuple):
    """An equation that NumPy computes.

    The attributes refer to values by their numbers in the :class:`HostProgram`.

    Attributes:
      rule: the host rule, with the parameters.
      operands: the operands.
      result: the result.
      into: an operand whose memory the result takes, since no later equation reads it; or None.
      dead: the values that no later equation reads.
    """

    rule: Callable[..., Any]
    operands: list[int]
    result: int
    into: int | None
    dead: list[int]


class HostProgram(NamedTuple):
    """A program that NumPy computes. Its values are numbered: inputs, then known values, then results of equations.

    Attributes:
      known: the constants and literals.
      steps: the equations.
      results: for each result its number, and whether it is weakly typed.
    """

    known: list[Any]
    steps: list[HostStep]
    results: list[tuple[int, bool]]

    def run(self, args: Sequence[Any]) -> list[Any]:
        """Return the results for concrete arguments; the caller turns NumPy's warnings off."""
        values = [*[host_value(as_array(x)) for x in args], *self.known, *[None] * len(self.steps)]
        for rule, operands, result, into, dead in self.steps:
            if into is not None:
                values[result] = rule(*[values[i] for i in operands], out=values[into])
            else:
                values[result] = rule(*[values[i] for i in operands])
            for i in dead:
                values[i] = None
        return [ArrayImpl(values[i], weak) for i, weak in self.results]


@cached_by_jaxpr
def host_program(closed: ClosedJaxpr) -> HostProgram | None:
    """Prepare a program for evaluation by NumPy.

    Return None if arrays are so small that this is not faster, or an operation has no host rule.
    """
    jaxpr = closed.jaxpr
    if any(eqn.primitive.host_rule is None or eqn.primitive.multiple_results for eqn in jaxpr.eqns):
        return None
    if sum(eqn.outvars[0].aval.size for eqn in jaxpr.eqns) < LARGE * len(jaxpr.eqns):
        return None
    atoms = [*(a for eqn in jaxpr.eqns for a in eqn.invars), *jaxpr.outvars]
    known: dict[Any, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    known.update((a, a.val) for a in atoms if not isinstance(a, Var))
    order = [*jaxpr.invars, *known, *[eqn.outvars[0] for eqn in jaxpr.eqns]]
    numbers = {a: i for i, a in enumerate(order)}
    own: dict[Any, ShapedArray] = {}  # results that no other value shares memory with
    steps: list[HostStep] = []
    for eqn, dead in zip(jaxpr.eqns, last_uses(jaxpr.eqns, jaxpr.outvars), strict=True):
        v = eqn.outvars[0]
        rule: Any = _INTO.get(eqn.primitive) if v.aval.dtype.char in "fd" else None
        into = None
        if rule is not None:
            into = next((numbers[a] for a in dead if own.get(a) == v.aval), None)
            if v.aval.shape:  # NumPy returns a scalar otherwise
                own[v] = v.aval
        else:
            rule = partial(eqn.primitive.host_rule, **eqn.params) if eqn.params else eqn.primitive.host_rule  # type: ignore
            for a in eqn.invars:  # the result may be a view of it
                own.pop(a, None)
        steps.append(HostStep(rule, [numbers[a] for a in eqn.invars], numbers[v], into, [numbers[a] for a in dead]))
    results = [(numbers[a], a.aval.weak_type) for a in jaxpr.outvars]
    return HostProgram([host_value(as_array(x)) for x in known.values()], steps, results)
