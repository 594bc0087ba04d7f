"""Gates: the backward pass of a checkpoint as a part of the program, whose recomputation waits for the cotangents.

The backward pass first computes values again from residuals. A compiler that sees that merges it with the first
computation, and keeps the values after all. Here, operands of the recomputation pass a gate: a selection between the
operand and zeros, which always selects the operand. The condition depends on elements of the cotangents, and of a
result of the backward pass before, in a form that the compiler does not simplify before it has fused operations. So
the recomputation is not merged, and does not begin before these are known.

In contrast to a branch, which has the same effect, the operations are fused with the rest of the program.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from pullback.core import dtypes, inlining, traits
from pullback.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Var
from pullback.core.types import ShapedArray
from pullback.primitives import discrete, elementwise
from pullback.primitives.arrays import shapes, slicing, sorting
from pullback.transforms.checkpoint.barriers import optimization_barrier_p
from pullback.transforms.checkpoint.checkpoint_policies import name_p
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.stage import stage_flat

COTANGENT = "cotangent of a checkpoint"
"""The name of the cotangents in the transposed program of a checkpoint."""
TURN = np.dtype(np.uint32)
"""The dtype of a turn, an array of one element, which makes one backward pass wait for another."""
_READ = 2
"""How many cotangents, the largest, are read."""
_FEW = 16
"""The most elements in a sum that a compiler computes where it is read."""
_POSITIONS = (0.34, 0.67)
"""Where elements are read: cotangents of slices of an array have zeros at its begin or its end."""


@cached_by_jaxpr
def with_named_cotangents(back: ClosedJaxpr, count: int) -> ClosedJaxpr:
    """Return the transposed program of a checkpoint; its last ``count`` inputs, the cotangents, get a name."""
    jaxpr = back.jaxpr
    named: dict[Any, Var] = {v: Var(v.aval) for v in jaxpr.invars[len(jaxpr.invars) - count :] if _is_readable(v.aval)}
    eqns = [Eqn(name_p, [v], {"name": COTANGENT}, [own]) for v, own in named.items()]
    eqns += [eqn.like([named.get(a, a) for a in eqn.invars], eqn.outvars) for eqn in jaxpr.eqns]
    outvars = [named.get(a, a) for a in jaxpr.outvars]
    return ClosedJaxpr(Jaxpr(jaxpr.constvars, jaxpr.invars, eqns, outvars), back.consts)


@cached_by_jaxpr
def gated(back: ClosedJaxpr) -> ClosedJaxpr | None:
    """Return the backward pass of a checkpoint with gates before its recomputation.

    Its last input is the turn that the pass waits for, and its last result the turn for the next. None is returned if
    no cotangent has a name; if values that cannot pass a gate are read, such as random keys; if anything but
    elementwise operations, moves of elements and short sums is computed again: other sums, products, gathers and loops
    are not fused, and a branch needs less memory for them, and no more time; and if a cotangent is passed on by such
    operations alone, as by residual connections, and also read by others: a compiler would compute it again for each of
    its readers, in this pass and in all that follow.
    """
    flat = inlining.flattened(back, inlining.inlined)
    if flat.jaxpr.effect:
        return None
    return _Gates(flat).program()


class _Gates:
    """The gates of one program.

    Attributes:
      late: the values that depend on cotangents.
      again: the values that are computed again, behind gates.
      passed: for each operand that passes a gate, the value behind it.
      eqns: the equations of the program with gates.
    """

    def __init__(self, closed: ClosedJaxpr) -> None:
        self.closed = closed
        self.late: dict[Any, None] = {}
        self.again: set[Any] = set()
        self.passed: dict[Var, Var] = {}
        self.eqns: list[Eqn] = []
        self.turn = Var(ShapedArray((1,), TURN))
        self.condition: Var | None = None

    def program(self) -> ClosedJaxpr | None:
        jaxpr = self.closed.jaxpr
        for eqn in jaxpr.eqns:
            if _is_name(eqn):
                self.eqns.append(eqn)
                self.late.update(dict.fromkeys(eqn.outvars))
        read = sorted(self.late, key=lambda v: -v.aval.size)[:_READ]
        if not read or _passes_on(jaxpr, self.late):
            return None
        for eqn in jaxpr.eqns:
            if not _is_name(eqn) and not self._add(eqn, read):
                return None
        last = [v for v in self.late if v in set(jaxpr.outvars) and _is_readable(v.aval)][-1:]
        turn = self._staged(_turn, last, self.eqns[-1]) if last else self.turn
        invars, outvars = [*jaxpr.invars, self.turn], [*jaxpr.outvars, turn]
        return ClosedJaxpr(Jaxpr(jaxpr.constvars, invars, self.eqns, outvars), self.closed.consts)

    def _add(self, eqn: Eqn, read: Sequence[Var]) -> bool:
        """Add an equation, behind a gate if it computes again; return False if it should be in a branch."""
        operands = [a for a in eqn.invars if type(a) is Var]
        if any(a in self.late for a in operands):
            self.late.update(dict.fromkeys(eqn.outvars))
        elif any(a in self.again for a in operands):
            self.again.update(eqn.outvars)
            if not _is_fused(eqn):
                return False
        elif (operand := _entry(eqn, operands)) is not None:
            self.again.update(eqn.outvars)
            if not _is_fused(eqn) or not all(_is_plain(v.aval) for v in (*operands, *eqn.outvars)):
                return False
            behind = self._behind_gate(operand, read, eqn)
            eqn = eqn.like([behind if a is operand else a for a in eqn.invars], eqn.outvars)
        self.eqns.append(eqn)
        return True

    def _behind_gate(self, operand: Var, read: Sequence[Var], reader: Eqn) -> Var:
        if self.condition is None:
            self.condition = self._staged(_condition, [self.turn, *read], reader)
        if operand not in self.passed:
            self.passed[operand] = self._staged(_gate, [self.condition, operand], reader)
        return self.passed[operand]

    def _staged(self, function: Any, operands: Sequence[Var], at: Eqn) -> Var:
        """Add the equations of a function, with the source location of ``at``; return its result."""
        found = stage_flat(function, lambda *xs: [function(*xs)], [a.aval for a in operands]).jaxpr
        names: dict[Any, Atom] = dict(zip(found.invars, operands, strict=True))
        for eqn in found.eqns:
            outvars = [Var(v.aval) for v in eqn.outvars]
            invars = [names.get(a, a) if type(a) is Var else a for a in eqn.invars]
            names.update(zip(eqn.outvars, outvars, strict=True))
            self.eqns.append(Eqn(eqn.primitive, invars, eqn.params, outvars, at.made_at, at.scope))
        [out] = found.outvars
        return names[out]  # type: ignore[return-value]


def _passes_on(jaxpr: Jaxpr, cotangents: Container[Any]) -> bool:
    """Whether a pass computes a result from cotangents by fused operations alone, as for residual connections.

    That matters if other operations read cotangents or such values, too: a compiler computes the values again for each
    reader, in this pass and in all that follow.
    """
    flowing: set[Any] = set()
    is_read = False
    for eqn in jaxpr.eqns:
        if _is_name(eqn) or not any(a in flowing or a in cotangents for a in eqn.invars):
            continue
        if _is_fused(eqn):
            flowing.update(eqn.outvars)
        else:
            is_read = True
    return is_read and not flowing.isdisjoint(jaxpr.outvars)


def _is_name(eqn: Eqn) -> bool:
    return eqn.params.get("name") == COTANGENT


def _is_fused(eqn: Eqn) -> bool:
    """Whether a compiler computes an operation where its result is read."""
    p = eqn.primitive
    moves = traits.moves.of(p) and traits.cost.of(p) is traits.Cost.LIGHT
    return bool(traits.elementwise.of(p) or traits.keeps_elements.of(p) or moves) or _is_short_sum(eqn)


def _is_short_sum(eqn: Eqn) -> bool:
    """Whether an operation reduces few elements each, such as the coordinates of points."""
    axes = eqn.params.get("axes")
    if axes is None or traits.cost.of(eqn.primitive) is not traits.Cost.SIMPLE:
        return False
    return all(_is_plain(a.aval) for a in eqn.invars) and math.prod([eqn.invars[0].aval.shape[i] for i in axes]) <= _FEW


def _is_readable(aval: Any) -> bool:
    """Whether elements can be read as bits: those of floats and of complex numbers."""
    return (
        _is_plain(aval) and dtypes.is_inexact(aval.dtype) and dtypes.to_real(aval.dtype).itemsize > 1 and aval.size > 0
    )


def _is_plain(aval: Any) -> bool:
    """Whether a value is an array of numbers, of known size, whose sharding is not a part of its type."""
    return (
        isinstance(aval, ShapedArray)
        and aval.explicit is None
        and isinstance(aval.dtype, np.dtype)
        and all(isinstance(n, int) for n in aval.shape)
    )


def _entry(eqn: Eqn, operands: Sequence[Var]) -> Var | None:
    """Return the operand of an operation that passes a gate: the smallest array. None if none does."""
    if traits.keeps_elements.of(eqn.primitive) or not operands:
        return None
    return min(operands, key=lambda a: (not a.aval.shape, _bytes([a])))


def _bytes(values: Sequence[Var]) -> int:
    """Return the bytes of some values, without those that cannot pass a gate."""
    return sum([v.aval.size * v.aval.dtype.itemsize for v in values if _is_plain(v.aval)])


# Functions that are staged -------------------------------------------------------------------------------------------


def _condition(turn: Any, *cotangents: Any) -> Any:
    """Return true, in a form that depends on the turn and the cotangents.

    The elements are sorted because the compiler does not fuse a sort with its readers: an operation that reads elements
    of an array at fixed positions cannot write its result over this array.
    """
    elements = [element for ct in cotangents for element in _elements(ct)]
    bits = optimization_barrier_p.bind(slicing.concatenate([*elements, turn], 0))
    [ordered] = sorting.sort(bits, 0)
    first = shapes.reshape(slicing.slice(ordered, [0], [1]), ())
    return discrete.ne_p.bind(discrete.or_p.bind(first, TURN.type(1)), TURN.type(0))


def _gate(condition: Any, x: Any) -> Any:
    return elementwise.where(condition, x, np.zeros((), x.dtype))


def _turn(x: Any) -> Any:
    return _elements(x)[0]


def _elements(x: Any) -> list[Any]:
    """Return the bits of elements of an array, each in an array of one element."""
    positions = dict.fromkeys(tuple([int(n * share) for n in x.shape]) for share in _POSITIONS)
    return [_bits(x, at) for at in positions]


def _bits(x: Any, at: Sequence[int]) -> Any:
    element = shapes.reshape(slicing.slice(x, at, [i + 1 for i in at]) if at else x, (1,))
    if dtypes.is_complex(x.dtype):
        element = elementwise.real_part(element)
    bits = np.dtype(f"uint{8 * element.dtype.itemsize}")
    return elementwise.convert_element_type(discrete.bitcast_convert_type(element, bits), TURN)
