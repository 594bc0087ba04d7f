"""The interpreter that finds patterns: which elements of a tangent depend on which inputs.

It evaluates the program of the *derivative*, from the tangents of the inputs to those of the results, on abstract
values (see ``dependence``). The program is linear in the tangents, so only the few dozen linear operations need a rule
of the kind ``sparsity``, and custom derivative rules are respected. Operations on constants are computed: indices,
masks and matrices are known, and products with their zeros are left out (index sets of Hill and Dalle 2025, *Sparser,
better, faster, stronger*; bit vectors of Walther 2008, *Computing sparse Hessians with automatic differentiation*).

The :class:`Feed` of an operation says how its inner programs are run. A loop whose steps all act alike on tangents is
evaluated by matrix products; a short one is unrolled; for any other, the carry is iterated to a fixed point.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from pullback.core import source
from pullback.core.array import host_value
from pullback.core.errors import PatternError
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Literal
from pullback.derivatives.patterns import boolean
from pullback.derivatives.patterns.dependence import (
    UNKNOWN,
    VARIES,
    evaluated,
    fits,
    is_tangent,
    join,
    numbers,
    otherwise,
    sparsity,
    value_of,
)
from pullback.transforms.traces.inlining import programs_in_step
from pullback.transforms.traces.interpretation import Interpretation, Loop
from pullback.transforms.traces.lift import feed


class PatternRun(Interpretation):
    """An abstract interpreter that finds the inputs on which each element of a program's results may depend.

    It replaces each array by an abstract value. For an array that depends on inputs, this is a dependence matrix of
    booleans, with a row for each element of the array and a column for each element of the inputs. For a constant it is
    the NumPy array, or ``UNKNOWN`` if the elements are not known.

    Attributes:
      width: the number of columns of the matrices: the number of elements of the inputs to differentiate by.
      steps: the number of operations that may still be evaluated in unrolled loops.
      varies: whether a rule combined a dependence matrix with a constant that varies between the steps of a loop.
    """

    def __init__(self, width: int, steps: int = 100_000) -> None:
        self.width = width
        self.steps = steps
        self.varies = False

    def run(self, closed: ClosedJaxpr, operands: Sequence[Any]) -> list[Any]:
        """Evaluate a program on abstract values of its operands; return the abstract values of its results."""
        jaxpr = closed.jaxpr
        known: dict[Any, Any] = dict(zip(jaxpr.constvars, map(value_of, closed.consts), strict=True))
        known.update(zip(jaxpr.invars, operands, strict=True))

        def read(atom: Any) -> Any:
            return np.asarray(host_value(atom.val), atom.aval.dtype) if isinstance(atom, Literal) else known[atom]

        for eqn in jaxpr.eqns:
            known.update(zip(eqn.outvars, self.step(eqn, list(map(read, eqn.invars))), strict=True))
        return list(map(read, jaxpr.outvars))

    def step(self, eqn: Eqn, operands: list[Any]) -> Sequence[Any]:
        """Evaluate an equation on abstract values of its operands; return the abstract values of its results.

        A PatternError names the source line of the equation.
        """
        primitive = eqn.primitive
        if not any(map(is_tangent, operands)) and not programs_in_step(primitive, eqn.params):
            return evaluated(eqn, operands)
        self.varies |= any(x is VARIES for x in operands)
        rule, held = sparsity.of(primitive), feed.of(primitive)
        try:
            if rule is not None:
                return rule(self, eqn, operands)  # type: ignore[no-any-return]
            if held is not None:
                found = held(**eqn.params)
                if found.scope is None or fits(found.programs[0], eqn):
                    return self.enter(found, operands)
            return otherwise(self, eqn, operands)
        except PatternError as error:
            if error.located:
                raise
            where = source.describe(eqn.made_at)
            located = PatternError(f"the operation {primitive.name!r} at {where}: {error}")
            located.located = True
            raise located from None

    def choose(self, programs: Sequence[ClosedJaxpr], which: Any, operands: Sequence[Any]) -> list[Any]:
        if isinstance(which, np.ndarray):
            return self.run(programs[min(max(int(which), 0), len(programs) - 1)], operands)
        return reduce(_joined, [self.run(program, operands) for program in programs])

    def loop(self, loop: Loop) -> list[Any]:
        if loop.length is None:
            return self._tested(loop)
        if loop.length and any(map(is_tangent, [*loop.consts, *loop.carry, *loop.rows])):
            step = _step(self, loop)
            if step.same:
                return _all_steps(self, loop, loop.length, step)
        if self._may_unroll(loop.body, loop.length):
            return self._unrolled(loop, loop.length)
        elements = [_any_step(x, loop.length, n) for x, n in zip(loop.rows, _sizes(loop)[2], strict=True)]
        outs = self._fixed_point(loop, elements)
        count = len(loop.carry)
        return [*outs[:count], *[_each_step(y, loop.length) for y in outs[count:]]]

    def _may_unroll(self, program: ClosedJaxpr, length: int) -> bool:
        """Return whether a loop that runs ``program`` for ``length`` steps may be unrolled.

        If so, deduct the number of operations from the budget ``self.steps``.
        """
        cost = length * max(len(program.eqns), 1)
        if cost > self.steps:
            return False
        self.steps -= cost
        return True

    def _tested(self, loop: Loop) -> list[Any]:
        """Return the abstract values of a while loop's results.

        Evaluate steps as long as the loop's test has a known value. Then find abstract values that are valid after any
        number of further steps.
        """
        assert loop.test is not None
        carry = loop.carry
        while self._may_unroll(loop.body, 1):
            (go_on,) = self.run(loop.test, [*loop.test_consts, *carry])
            if not isinstance(go_on, np.ndarray):
                break
            if not go_on:
                return carry
            carry = self.run(loop.body, [*loop.consts, *carry])
        return self._fixed_point(loop._replace(carry=carry), [])

    def _unrolled(self, loop: Loop, length: int) -> list[Any]:
        """Evaluate the ``length`` steps of a loop one by one; return the abstract values of the loop's results."""
        carry, count = loop.carry, len(loop.carry)
        _, _, sizes, heights = _sizes(loop)
        steps: list[list[Any]] = []
        for i in range(length - 1, -1, -1) if loop.reverse else range(length):
            elements = [_element(x, i, n) for x, n in zip(loop.rows, sizes, strict=True)]
            outs = self.run(loop.body, [*loop.consts, *carry, *elements])
            carry, ys = outs[:count], outs[count:]
            steps.append(ys)
        if loop.reverse:
            steps.reverse()
        return [*carry, *[_stacked(self, [s[k] for s in steps], n) for k, n in enumerate(heights)]]

    def _fixed_point(self, loop: Loop, elements: Sequence[Any]) -> list[Any]:
        """Return abstract values of the carry and of one step's other results that are valid after any number of steps.

        Evaluate the body repeatedly, and take the union of the carry before and after the step, until it no longer
        changes.

        Args:
          loop: the loop.
          elements: an abstract value for each scanned input, valid at every step.
        """
        carry, count = loop.carry, len(loop.carry)
        while True:
            outs = self.run(loop.body, [*loop.consts, *carry, *elements])
            joined = _joined(carry, outs[:count])
            if all(map(_same, carry, joined)):
                return [*joined, *outs[count:]]
            carry = joined


def _joined(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    return [join(a, b) for a, b in zip(first, second, strict=True)]


def _same(a: Any, b: Any) -> bool:
    if is_tangent(a) and is_tangent(b):
        return bool(a.nnz == b.nnz)  # patterns only grow
    return a is b


def _sizes(loop: Loop) -> list[list[int]]:
    """Return four lists of sizes: of a loop's constants, its carries, and one step's scanned inputs and results."""
    return [[math.prod(a.shape) for a in avals] for avals in loop.avals()]


def dependence(closed: ClosedJaxpr, operands: Sequence[Any], width: int) -> list[Any]:
    """Return a dependence matrix of booleans for each result of a program, with a row for each element of the result.

    Args:
      closed: a program that is linear in the inputs that depend on variables.
      operands: the abstract value of each input: its dependence matrix, a NumPy array for a known constant, or
        ``UNKNOWN``.
      width: the number of columns of the matrices, one for each element of the inputs to differentiate by.
    """
    with np.errstate(all="ignore"):
        outs = PatternRun(width).run(closed, operands)
    return [
        x if is_tangent(x) else boolean.empty(math.prod(a.shape), width)
        for x, a in zip(outs, closed.out_avals, strict=True)
    ]


# Loops with steps that act alike -------------------------------------------------------------------------------------


class PatternStep(NamedTuple):
    """The dependence of the results of one loop step on the operands of the step.

    An operand that depends on inputs to differentiate by is called a tangent. A dependence matrix has a row for each
    element of a result, and a column for each element of the tangents.

    Attributes:
      tangents: for each constant, carry and scanned input whether it is a tangent.
      carry: the dependence matrix of the next carry.
      ys: for each stacked result its dependence matrix, or if it depends on no tangent, its abstract value.
      same: whether these matrices are known to be the same for all steps.
    """

    tangents: list[bool]
    carry: Any
    ys: list[Any]
    same: bool


def _step(walk: PatternRun, loop: Loop) -> PatternStep:
    """Find the operands on which the results of a loop's body depend, by abstract evaluation of the body.

    Args:
      walk: the interpreter that evaluates the loop; operations evaluated here count in its budget.
      loop: the loop.
    """
    operands = [*loop.consts, *loop.carry, *loop.rows]
    sizes = list(itertools.chain(*_sizes(loop)[:3]))
    consts, carry = len(loop.consts), len(loop.carry)
    tangents = list(map(is_tangent, operands))
    while True:
        width = sum(n for n, t in zip(sizes, tangents, strict=True) if t)
        inner = PatternRun(width, walk.steps)
        given: list[Any] = []
        first = 0
        for i, (x, size, tangent) in enumerate(zip(operands, sizes, tangents, strict=True)):
            if tangent:
                given.append(boolean.identity(size, width, first))
                first += size
            else:
                given.append(VARIES if i >= consts and isinstance(x, np.ndarray) else x)
        outs = inner.run(loop.body, given)
        grown = [t or is_tangent(y) for t, y in zip(tangents[consts:], outs[:carry], strict=False)]
        if grown == tangents[consts : consts + carry]:
            break
        tangents[consts : consts + carry] = grown
    walk.steps = inner.steps
    next_carry = [
        y if is_tangent(y) else boolean.empty(size, width)
        for y, size, t in zip(outs, sizes[consts:], grown, strict=False) if t
    ]  # fmt: skip
    stacked = boolean.stacked(next_carry) if next_carry else boolean.empty(0, width)
    return PatternStep(tangents, stacked, outs[carry:], not inner.varies)


LARGE_STATE, LONG = 64, 10_000
"""A loop with this many tangents in its carry, and fewer than this many steps, is evaluated step by step, to store one
state instead of all."""


# long: one formula and its many named terms
def _all_steps(walk: PatternRun, loop: Loop, length: int, step: PatternStep) -> list[Any]:
    """Compute the dependence of a loop's results by matrix products; each step must have the same dependence matrices.

    The dependence of the carry before step t is ``P[t]``, with ``P[t + 1] = A P[t] + R[t]``, where R is the dependence
    on constants and scanned inputs. All P together are ``(1 + S) (1 + S^2) (1 + S^4) ...`` times R, where S applies A
    and moves to the next step. This is fastest, but stores P for all steps. So large carries are computed step by step.

    Args:
      walk: the interpreter that evaluates the loop.
      loop: the loop.
      length: the number of steps.
      step: the dependence of one step's results on its operands.

    Returns:
      The abstract values of the last carry and of the stacked results.
    """
    operands = [*loop.consts, *loop.carry, *loop.rows]
    consts, count = len(loop.consts), len(loop.carry)
    *given, heights = _sizes(loop)
    sizes = list(itertools.chain(*given))
    order = np.arange(length)[::-1] if loop.reverse else np.arange(length)

    def inputs(start: int, stop: int) -> list[int]:
        return [i for i in range(start, stop) if step.tangents[i]]

    fixed = [_rows(walk, operands[i], sizes[i]) for i in inputs(0, consts)]
    carried = inputs(consts, consts + count)
    init = [_rows(walk, operands[i], sizes[i]) for i in carried]
    moving = inputs(consts + count, len(sizes))
    # The scanned inputs of each step, in the order of the steps.
    positions = [order[:, None] * sizes[i] + np.arange(sizes[i]) for i in moving]
    elements = [boolean.select(operands[i], at) for i, at in zip(moving, positions, strict=True)]
    widths = sum(sizes[i] for i in inputs(0, consts)), sum(sizes[i] for i in carried)
    by_const, again, by_element = _parts(step.carry, widths)
    size = widths[1]

    def each(which: Any, by_const: Any, start: int = 0, stop: int = length) -> Any:
        """Return the dependence of one result of several steps on the inputs, except the dependence through the carry.

        Args:
          which: the dependence of the result on the scanned inputs of its step.
          by_const: the dependence of the result on the constants of the loop.
          start, stop: the range of steps; the results of these steps are stacked.
        """
        parts = []
        count = stop - start
        first = 0
        for rows, i in zip(elements, moving, strict=True):
            block = boolean.columns(which, first, first + sizes[i])
            first += sizes[i]
            if len(block.indices):
                theirs = boolean.select(rows, np.arange(start * sizes[i], stop * sizes[i]))
                parts.append(boolean.times(boolean.kron([boolean.identity(count, count), block]), theirs))
        if len(by_const.indices):
            once = boolean.times(by_const, boolean.stacked(fixed))
            parts.append(boolean.select(once, np.tile(np.arange(which.shape[0]), count)))
        return boolean.union(parts) if parts else boolean.empty(count * which.shape[0], walk.width)

    if not moving and not any(map(is_tangent, step.ys)):
        added = boolean.times(by_const, boolean.stacked(fixed)) if fixed else boolean.empty(size, walk.width)
        end = _last_state(again, added, boolean.stacked(init), length) if size else boolean.empty(0, walk.width)
        return [*_split(end, 0, sizes[consts : consts + count], step.tangents[consts:]), *[UNKNOWN] * len(step.ys)]
    of_ys = [_parts(y, widths) if is_tangent(y) else None for y in step.ys]
    back = np.argsort(order)
    if size >= LARGE_STATE and length < LONG:
        state = boolean.stacked(init)
        found: list[list[Any]] = [[] for _ in of_ys]
        for t in range(length):
            for rows, parts in zip(found, of_ys, strict=True):
                if parts is not None:
                    of_const, block, of_element = parts
                    rows.append(boolean.union([boolean.times(block, state), each(of_element, of_const, t, t + 1)]))
            state = boolean.union([boolean.times(again, state), each(by_element, by_const, t, t + 1)])
        ys = [
            boolean.select(boolean.stacked(rows), numbers((length, n))[back]) if rows else UNKNOWN
            for rows, n in zip(found, heights, strict=True)
        ]
        return [*_split(state, 0, sizes[consts : consts + count], step.tangents[consts:]), *ys]
    states = boolean.stacked([*init, each(by_element, by_const)]) if size else boolean.empty(0, walk.width)
    jump = 1
    while len(again.indices) and jump <= length:
        later = boolean.shift(length + 1, jump)
        states = boolean.union([states, boolean.times(boolean.kron([later, again]), states)])
        again, jump = boolean.times(again, again), 2 * jump
    before = boolean.select(states, np.arange(length * size))
    ys = []
    for parts, n in zip(of_ys, heights, strict=True):
        if parts is None:
            ys.append(UNKNOWN)
            continue
        of_const, block, of_element = parts
        rows = each(of_element, of_const)
        if len(block.indices):
            of_carry = boolean.times(boolean.kron([boolean.identity(length, length), block]), before)
            rows = boolean.union([rows, of_carry])
        ys.append(boolean.select(rows, numbers((length, n))[back]))
    return [*_split(states, length * size, sizes[consts : consts + count], step.tangents[consts:]), *ys]


def _last_state(again: Any, added: Any, state: Any, length: int) -> Any:
    """Apply the step ``P -> A P + R`` to a boolean matrix ``length`` times, by repeated squaring; return the last P.

    Args:
      again: the matrix A.
      added: the matrix R.
      state: the first P.
      length: the number of steps, at least 1.
    """
    while True:
        if length & 1:
            state = boolean.union([boolean.times(again, state), added])
        length >>= 1
        if not length:
            return state
        added = boolean.union([boolean.times(again, added), added])
        again = boolean.times(again, again)


def _rows(walk: PatternRun, x: Any, size: int) -> Any:
    """Return the dependence matrix of ``size`` elements with the abstract value ``x``; it is empty for a constant."""
    return x if is_tangent(x) else boolean.empty(size, walk.width)


def _parts(rows: Any, widths: tuple[int, int]) -> tuple[Any, Any, Any]:
    """Split the columns of a dependence matrix into those for a loop's constants, for the carry and for scanned inputs.

    Args:
      rows: the dependence matrix of a result of a loop step.
      widths: the numbers of columns for constants and for the carry.
    """
    ends = [0, widths[0], sum(widths), rows.shape[1]]
    first, second, third = (boolean.columns(rows, a, b) for a, b in itertools.pairwise(ends))
    return first, second, third


def _split(rows: Any, start: int, sizes: Sequence[int], tangents: Sequence[bool]) -> list[Any]:
    """Split a dependence matrix into the abstract values of a loop's carries, whose rows are stacked in it.

    Args:
      rows: the matrix.
      start: the row at which the first carry begins.
      sizes: the number of elements of each carry.
      tangents: for each carry whether it depends on inputs. A carry without dependence has no rows in the matrix, and
        becomes ``UNKNOWN``.
    """
    ends = np.cumsum([start, *(n if t else 0 for n, t in zip(sizes, tangents, strict=False))]).tolist()
    parts = [boolean.select(rows, np.arange(a, b)) for a, b in itertools.pairwise(ends)]
    return [part if t else UNKNOWN for part, t in zip(parts, tangents, strict=False)]


def _element(x: Any, i: int, size: int) -> Any:
    """Return the abstract value of slice ``x[i]`` of an array.

    Args:
      x: the abstract value of the array.
      i: the index of the slice.
      size: the number of elements of a slice.
    """
    if is_tangent(x):
        return boolean.select(x, np.arange(i * size, (i + 1) * size))
    return np.asarray(x[i]) if isinstance(x, np.ndarray) else UNKNOWN


def _stacked(walk: PatternRun, parts: Sequence[Any], size: int) -> Any:
    """Return the abstract value of a loop's stacked result.

    Args:
      walk: the interpreter that evaluates the loop.
      parts: the abstract value of the result at each step.
      size: the number of elements of the result at one step.
    """
    if any(map(is_tangent, parts)):
        return boolean.stacked([x if is_tangent(x) else boolean.empty(size, walk.width) for x in parts])
    known = parts and all(isinstance(x, np.ndarray) for x in parts)
    return np.stack(parts) if known else UNKNOWN


def _any_step(x: Any, length: int, size: int) -> Any:
    """Return an abstract value that is valid for every slice ``x[i]`` of an array.

    Args:
      x: the abstract value of the array.
      length: the number of slices.
      size: the number of elements of a slice.
    """
    return boolean.merge(x, np.tile(np.arange(size), length), size) if is_tangent(x) else UNKNOWN


def _each_step(y: Any, length: int) -> Any:
    return boolean.select(y, np.tile(np.arange(y.shape[0]), length)) if is_tangent(y) else UNKNOWN
