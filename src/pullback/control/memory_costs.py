"""What a program keeps for its backward pass: the values that each operation needs there, and what they cost.

A program is linearised. Each equation of the forward pass and of the linear program is traced back to the equation of
the original that it comes from, by a source location of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from pullback.control.liveness import is_fused, is_light, is_same, reduces
from pullback.core import inlining, traits
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, subjaxprs
from pullback.transforms.checkpoint.checkpoint_primitive import checkpoint_p
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.jaxprs import linearize_jaxpr

_SECONDS = {
    traits.Cost.LIGHT: 0.06e-9,
    traits.Cost.SIMPLE: 1e-9,
    traits.Cost.SPECIAL: 4e-9,
    traits.Cost.PRODUCT: 2e-9,
    traits.Cost.MATRIX: 2e-9,
    traits.Cost.CALL: 0.0,
}
"""The time for each element of the largest operand or result of an operation, in a compiled program."""
_PRODUCT = 0.05e-9
"""The time for each product of two numbers in a product of matrices or a convolution."""
_CALL = 1e-5


class _Inlined:
    """Programs that run once, except checkpointed functions, whose users chose what to keep."""

    def of(self, primitive: Any) -> Any:
        # The transformation's own operation: it runs once, as all that the trait names.
        return None if primitive is checkpoint_p else inlining.runs_once.of(primitive)


@cached_by_jaxpr
def flattened(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Inline the programs that run once, except those of checkpointed functions."""
    return inlining.flattened(closed, _Inlined())  # type: ignore[arg-type]


def seconds(eqn: Eqn) -> float:
    """Predict the time of an operation in a compiled program."""
    inner = list(subjaxprs(eqn))
    if inner:
        each = [sum(map(seconds, program.eqns)) for program in inner]
        total = max(each) if "branches" in eqn.params else sum(each)
        return total * float(eqn.params.get("length", 1))
    price = traits.cost.of(eqn.primitive)
    if price is traits.Cost.CALL:
        return _CALL
    sizes = [_size(a.aval) for a in (*eqn.invars, *eqn.outvars)]
    largest = max(sizes, default=0)
    if "dimension_numbers" in eqn.params and len(eqn.invars) == 2:
        return _PRODUCT * _products(eqn) + _SECONDS[traits.Cost.LIGHT] * sum(sizes)
    if price is traits.Cost.MATRIX:
        a = eqn.invars[0].aval
        return _SECONDS[price] * _size(a) * max(a.shape, default=1)
    if traits.moves.of(eqn.primitive) or is_same(eqn):
        return _SECONDS[traits.Cost.LIGHT] * largest
    return _SECONDS[price] * largest


def _size(aval: Any) -> int:
    shape = getattr(aval, "shape", ())
    return math.prod(shape) if all(isinstance(n, int) for n in shape) else 0


def _products(eqn: Eqn) -> float:
    """Return the number of products of two numbers in a product of matrices or a convolution."""
    x, y = (a.aval for a in eqn.invars)
    numbers = eqn.params["dimension_numbers"]
    if traits.cost.of(eqn.primitive) is traits.Cost.PRODUCT:
        (contracted, _), (batch, _) = numbers
        shared: int = math.prod(x.shape[i] for i in (*contracted, *batch))
        return float(x.size * y.size) / max(shared, 1)
    out = float(eqn.outvars[0].aval.size)
    features = getattr(numbers, "rhs_spec", None)
    return out * float(y.size) / max(y.shape[features[0]] if features else max(y.shape, default=1), 1)


# Residuals -----------------------------------------------------------------------------------------------------------


class Residuals(NamedTuple):
    """What the backward pass of a program needs.

    Attributes:
      program: the program, flat.
      eqns: the equations of the forward pass, which also compute residuals.
      tags: for each of these, the index of the equation of ``program`` that it comes from.
      made: for each variable, the index of the forward equation that makes it.
      needs: for each equation of ``program``, the variables of the forward pass that its backward pass reads from
        memory.
      kept: for each equation of ``program``, the variable of the forward pass that is its result; None if none is.
      reads: for each equation of ``program``, its operands that other equations make.
      in_memory: the variables of both passes that are in memory, since an operation reads them that is not fused with
        the one that makes them.
    """

    program: ClosedJaxpr
    eqns: list[Eqn]
    tags: list[int]
    made: dict[Var, int]
    needs: list[frozenset[Var]]
    kept: list[Var | None]
    reads: list[frozenset[Var]]
    in_memory: frozenset[Var]


@cached_by_jaxpr
def residuals_of(closed: ClosedJaxpr, active: Sequence[bool]) -> Residuals:
    """Linearise a program with respect to the inputs that ``active`` flags; return what its backward pass needs."""
    flat = flattened(closed)
    marked, tag_of = _marked(flat)
    split = linearize_jaxpr(marked, tuple(active))
    forward, linear = split.primal.jaxpr, split.linear.jaxpr
    values = [*forward.invars, *forward.outvars]
    outer = {v: values[i] for v, i in zip(linear.invars, split.residual_sources, strict=False)}
    tags = _tags(forward.eqns, tag_of)
    made = {v: i for i, eqn in enumerate(forward.eqns) for v in eqn.outvars}
    in_memory = _read_in_memory(forward.eqns, linear.eqns, outer)
    roots = _Roots(forward.eqns, made, in_memory)
    needs: list[set[Var]] = [set() for _ in flat.jaxpr.eqns]
    for eqn, tag in zip(linear.eqns, _tags(linear.eqns, tag_of), strict=True):
        for a in eqn.invars:
            if type(a) is Var and a in outer:
                needs[tag].update(roots.of(cast(Var, outer[a])))
    kept: list[Var | None] = [None] * len(needs)
    for eqn, tag in zip(forward.eqns, tags, strict=True):
        own = flat.jaxpr.eqns[tag]
        same = eqn.primitive is own.primitive and len(eqn.outvars) == 1 and len(own.outvars) == 1
        if same and kept[tag] is None and eqn.outvars[0].aval.shape == own.outvars[0].aval.shape:
            kept[tag] = eqn.outvars[0]
    bound = {v for eqn in flat.jaxpr.eqns for v in eqn.outvars}
    reads = [frozenset(a for a in eqn.invars if type(a) is Var and a in bound) for eqn in flat.jaxpr.eqns]
    return Residuals(flat, forward.eqns, tags, made, [frozenset(n) for n in needs], kept, reads, frozenset(in_memory))


_NOWHERE = compile("", "<no line>", "exec")


def _marked(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, dict[int, tuple[int, Any]]]:
    """Give each equation a source location of its own; return the program, and from ids of locations to indices."""
    eqns: list[Eqn] = []
    tag_of: dict[int, tuple[int, Any]] = {}
    for i, eqn in enumerate(closed.jaxpr.eqns):
        code, at = eqn.made_at or (_NOWHERE, 0)
        location = tuple([code, at])  # noqa: C409  # a new object
        tag_of[id(location)] = i, location
        eqns.append(Eqn(eqn.primitive, eqn.invars, eqn.params, eqn.outvars, location, eqn.scope))  # type: ignore[arg-type]
    jaxpr = closed.jaxpr
    return ClosedJaxpr(Jaxpr(jaxpr.constvars, jaxpr.invars, eqns, jaxpr.outvars), closed.consts), tag_of


def _tags(eqns: Sequence[Eqn], tag_of: dict[int, tuple[int, Any]]) -> list[int]:
    """Return the index of the marked equation that each equation comes from; that of the one before if unknown."""
    tags, last = [], 0
    for eqn in eqns:
        last = tag_of.get(id(eqn.made_at), (last, None))[0]
        tags.append(last)
    return tags


def _read_in_memory(forward: Sequence[Eqn], linear: Sequence[Eqn], outer: dict[Any, Any]) -> set[Any]:
    """Return the variables that an operation reads that is not fused with the operations that make its operands."""
    found: set[Any] = set()
    for eqns in (forward, linear):
        for eqn in eqns:
            if not (is_fused(eqn) or reduces(eqn)):
                found.update(outer.get(a, a) for a in eqn.invars if type(a) is Var)
    return found


class _Roots:
    """From a variable to the variables in memory from which fused operations compute it."""

    def __init__(self, eqns: Sequence[Eqn], made: dict[Var, int], in_memory: set[Any]) -> None:
        self.eqns, self.made, self.in_memory = eqns, made, in_memory
        self.known: dict[Var, frozenset[Var]] = {}

    def of(self, v: Var) -> frozenset[Var]:
        found = self.known.get(v)
        if found is not None:
            return found
        stack = [v]
        while stack:  # operands first, without recursion
            u = stack[-1]
            operands = self._operands(u)
            missing = [a for a in operands if a not in self.known]
            if missing:
                stack += missing
                continue
            stack.pop()
            self.known[u] = frozenset().union(*[self.known[a] for a in operands]) if operands else frozenset([u])
        return self.known[v]

    def _operands(self, v: Var) -> list[Var]:
        """Return the variables from which fused operations compute ``v``; an empty list if it is in memory."""
        i = self.made.get(v)
        if i is None:
            return []
        eqn = self.eqns[i]
        if is_same(eqn) or (v not in self.in_memory and is_fused(eqn) and is_light(eqn)):
            return [a for a in eqn.invars if type(a) is Var]
        return []
