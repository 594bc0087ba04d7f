"""Compute selected elements of a program's result without the others, for compressed products.

A product has an element for each row and colour; a sparse matrix needs some of them, in another order. The wanted
elements of ``a * b`` are the product of the same elements of ``a`` and of ``b``. So the wanted positions are propagated
through the program, from its result to its inputs, and only these elements are computed. Most inputs are known: seed
vectors, whose elements are read during tracing. No operation is emitted where they are zero: a sum is divided into
slices where one term is zero, or both, or none.

A value with fewer elements than are wanted, such as a factor that is shared by all colours, is computed in full and
then read. A tridiagonal Jacobian becomes its three diagonals, concatenated, without a product.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as pnp
from pullback.core import traits
from pullback.core.array import ArrayImpl, host_value
from pullback.core.jaxpr import Atom, ClosedJaxpr, Eqn, Literal, Var
from pullback.core.trace import Primitive, Rule, RuleKind, Tracer, state
from pullback.derivatives.patterns.dependence import numbers
from pullback.derivatives.patterns.indexed import taken_back
from pullback.primitives import elementwise
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.arrays.scatter import scatter_add_p
from pullback.primitives.sums import add_any_p

Positions = Any
"""Positions of elements of an array, as row-major numbers: integers (wanted,)."""

DEEPEST = 60
"""Beyond this depth of operations, values are computed in full: each level takes five frames of Python's stack."""
MOST_PARTS = 16
"""With more slices than this, the elements of a value are joined to one vector before further operations."""


class ReadSlice(NamedTuple):
    """The values of some of the elements that a caller requested.

    Attributes:
      at: the positions of these elements in the list of requested elements, ascending.
      elements: the values, as a vector.
    """

    at: Any
    elements: Any


def read(closed: ClosedJaxpr, args: Sequence[Any], positions: Positions) -> Any:
    """Return selected elements of the result of a program, without computing the others; the result is a vector.

    Args:
      closed: a program with one result and without effects, in which inner programs that run once are inlined.
      args: the inputs of the program.
      positions: the positions of the elements, in row-major order.

    >>> import numpy as np
    >>> import pullback.numpy as jnp
    >>> from pullback import make_jaxpr
    >>> from pullback.derivatives.patterns.reading import read
    >>> program = make_jaxpr(lambda x: x[None] * jnp.array([[1.0], [0.0]]))(jnp.arange(3.0))
    >>> print(read(program, [jnp.array([5.0, 6.0, 7.0])], np.array([2, 0, 3])))
    [7. 5. 0.]
    """
    return Reader(closed, args).elements(closed.jaxpr.outvars[0], positions)


class Reader:
    """Computes selected elements of the values of a program. A value is identified by its variable.

    Attributes:
      values: the values that are known or have been computed in full.
      nonzero: for each value with known zeros, a mask of the elements that may not be zero, in row-major order.
      eqns: for each value the position of the equation that computes it.
      asked: for each value how many elements have been requested so far. Elements of a value without known zeros count
        twice: half of these elements cost as much as the whole value.
      kept: for some values that are read several times, the positions of the elements that may not be zero, and these
        elements.
      uses: for each value how many times it is an operand.
    """

    def __init__(self, closed: ClosedJaxpr, args: Sequence[Any]) -> None:
        jaxpr = self.jaxpr = closed.jaxpr
        self.values: dict[Any, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
        self.nonzero: dict[Any, Any] = {v: _nonzero_elements(x) for v, x in self.values.items()}
        self.values.update(zip(jaxpr.invars, args, strict=True))
        self.eqns = {v: i for i, eqn in enumerate(jaxpr.eqns) for v in eqn.outvars}
        self.asked: dict[Var, int] = {}
        self.kept: dict[Var, tuple[Any, Any]] = {}
        self.uses = Counter(a for eqn in jaxpr.eqns for a in eqn.invars if isinstance(a, Var))
        for eqn in jaxpr.eqns:
            rule = nonzero.of(eqn.primitive)
            if rule is not None and any(self.nonzero.get(a) is not None for a in eqn.invars if isinstance(a, Var)):
                self.nonzero[eqn.outvars[0]] = rule(self, eqn, [self._mask(a) for a in eqn.invars])

    def _mask(self, atom: Atom) -> Any:
        return _nonzero_elements(atom.val) if isinstance(atom, Literal) else self.nonzero.get(atom)

    def _targets(self, eqn: Eqn) -> Any:
        """Return for each element of a scatter's updates the position in the result to which the update is added.

        The position is -1 for an update that is dropped. Return None if the indices are not known.
        """
        indices = self.values.get(eqn.invars[1])
        if not isinstance(indices, ArrayImpl):
            return None
        shape, updates_shape = eqn.invars[0].aval.shape, eqn.invars[2].aval.shape
        return np.ravel(taken_back(shape, host_value(indices), updates_shape, eqn.params)) - 1

    def elements(self, atom: Atom, positions: Positions | None, depth: int = 0) -> Any:
        """Return selected elements of a value of the program, as a vector.

        Args:
          atom: the variable or literal.
          positions: the positions of the elements; None for the whole value.
          depth: the depth of the recursion through operations.
        """
        if positions is None or isinstance(atom, Literal):
            return atom.val if isinstance(atom, Literal) else self.whole(atom)
        return _together(self.parts(atom, positions, depth), len(positions), atom.aval.dtype)

    def parts(self, atom: Atom, positions: Positions, depth: int) -> list[ReadSlice]:
        """Return selected elements of a value of the program, as slices; selected elements in no slice are zero.

        Args:
          atom: the variable or literal.
          positions: the positions of the elements.
          depth: the depth of the recursion through operations.
        """
        if isinstance(atom, Literal):
            return [ReadSlice(np.arange(len(positions)), ArrayImpl(np.full(len(positions), atom.val, atom.aval.dtype)))]
        mask = self.nonzero.get(atom)
        at = np.arange(len(positions)) if mask is None else np.flatnonzero(mask[positions])
        if len(at) < len(positions):
            return [ReadSlice(at[p.at], p.elements) for p in self.parts(atom, positions[at], depth)] if len(at) else []
        if mask is not None and self.uses[atom] > 1 and atom not in self.values:
            return [ReadSlice(at, self._kept_elements(atom, mask, positions, depth))]
        size = math.prod(atom.aval.shape)
        asked = self.asked[atom] = self.asked.get(atom, 0) + len(positions) * (2 if mask is None else 1)
        eqn = self.jaxpr.eqns[self.eqns[atom]] if atom in self.eqns else None
        rule = _rule_of(eqn.primitive) if eqn is not None else None
        enough = atom in self.values or self.uses[atom] > 1 or asked > size or depth > DEEPEST
        if eqn is None or rule is None or enough:
            return [ReadSlice(at, taken(self.whole(atom), positions))]
        return self._by_rule(eqn, rule, positions, depth)

    def _kept_elements(self, atom: Var, mask: Any, positions: Positions, depth: int) -> Any:
        """Return selected elements of a value that several equations use.

        The first call computes all elements that may not be zero, and stores them for later calls.

        Args:
          atom: the variable.
          mask: for each element of the value whether the element may be nonzero.
          positions: the positions of the selected elements, which must be True in ``mask``.
          depth: the depth of the recursion through operations.
        """
        found = self.kept.get(atom)
        if found is None:
            at = np.flatnonzero(mask)
            eqn = self.jaxpr.eqns[self.eqns[atom]]
            rule = _rule_of(eqn.primitive)
            if rule is None or depth > DEEPEST or 2 * len(at) > len(mask):
                return taken(self.whole(atom), positions)
            parts = self._by_rule(eqn, rule, at, depth)
            found = self.kept[atom] = at, _together(parts, len(at), atom.aval.dtype)
        at, elements = found
        return taken(elements, np.searchsorted(at, positions))

    def _by_rule(self, eqn: Eqn, rule: Any, positions: Positions, depth: int) -> list[ReadSlice]:
        """Return selected elements of an equation's result, as slices, by the reading rule of its primitive.

        Args:
          eqn: the equation.
          rule: the reading rule.
          positions: the positions of the elements.
          depth: the depth of the recursion through operations.
        """
        outer = state.source_loc
        state.source_loc = eqn.made_at or outer
        try:
            found = rule(self, eqn, positions, depth + 1)
        finally:
            state.source_loc = outer
        if len(found) > MOST_PARTS:
            found = [ReadSlice(np.arange(len(positions)), _together(found, len(positions), eqn.outvars[0].aval.dtype))]
        return found

    def whole(self, var: Var) -> Any:
        """Compute the whole value of a variable, and all values that this value depends on; return the value."""
        needed: set[int] = set()
        missing = [var]
        while missing:
            v = missing.pop()
            if v not in self.values and self.eqns[v] not in needed:
                needed.add(self.eqns[v])
                missing += [a for a in self.jaxpr.eqns[self.eqns[v]].invars if isinstance(a, Var)]
        outer = state.source_loc
        for i in sorted(needed):
            eqn = self.jaxpr.eqns[i]
            state.source_loc = eqn.made_at or outer
            operands = [a.val if isinstance(a, Literal) else self.values[a] for a in eqn.invars]
            out = eqn.primitive.bind(*operands, **eqn.params)
            self.values.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True))
        state.source_loc = outer
        return self.values[var]


def taken(x: Any, positions: Positions) -> Any:
    """Return the elements of an array at the given row-major positions, as a vector."""
    if isinstance(x, ArrayImpl):
        return ArrayImpl(np.ravel(host_value(x))[positions])
    flat = shapes.reshape(x, (x.size,))
    step = int(positions[1] - positions[0]) if len(positions) > 1 else 1
    if step > 0 and bool((np.diff(positions) == step).all()):
        return flat[int(positions[0]) : int(positions[-1]) + 1 : step]
    return flat[positions.astype(np.int32) if x.size < 2**31 else positions]


def _together(parts: Sequence[ReadSlice], count: int, dtype: Any) -> Any:
    """Join slices to one vector of ``count`` elements of type ``dtype``; elements in no slice are zero."""
    parts = [p for p in parts if len(p.at)]
    if not parts:
        return ArrayImpl(np.zeros(count, dtype))
    if len(parts) == 1 and len(parts[0].at) == count:
        return parts[0].elements
    parts = sorted(parts, key=lambda p: int(p.at[0]))
    covered = sum(len(p.at) for p in parts) == count
    step = len(parts)
    regular = covered and count % step == 0
    if regular and all(np.array_equal(p.at, np.arange(i, count, step)) for i, p in enumerate(parts)):
        return shapes.reshape(pnp.stack([p.elements for p in parts], axis=1), (count,))
    base = np.zeros(count, dtype)
    unknown = []
    for p in parts:
        if isinstance(p.elements, ArrayImpl):
            base[p.at] = host_value(p.elements)
        else:
            unknown.append(p)
    if not unknown:
        return ArrayImpl(base)
    at = np.concatenate([p.at for p in unknown])
    found = unknown[0].elements if len(unknown) == 1 else pnp.concatenate([p.elements for p in unknown])
    if len(at) == count:
        return taken(found, np.argsort(at))
    at = at.astype(np.int32) if count < 2**31 else at
    return pnp.asarray(base).at[at].set(found, unique_indices=True, mode="promise_in_bounds")


# Rules: elements of a result from elements of the operands -----------------------------------------------------------

reads = RuleKind("reads", "elementwise operations: by their trait; others: the whole result is computed")
"""``rule(reader, eqn, positions, depth) -> slices``: the elements of a result at the given positions."""
nonzero = RuleKind("nonzero", "all elements may be nonzero")
"""``rule(reader, eqn, masks) -> mask``: the elements of a result that may not be zero, given the operands' masks."""


def _rule_of(primitive: Primitive) -> Rule | None:
    return reads.of(primitive) or (_on_elements if traits.elementwise.of(primitive) else None)


def _positions_of(atom: Atom, to: Sequence[int], positions: Positions) -> Positions | None:
    """Return the positions in an operand whose elements go to the given positions in an elementwise result.

    Args:
      atom: the operand, which broadcasts to the result.
      to: the shape of the result.
      positions: the positions in the result.

    Returns:
      The positions in the operand; None if the operand is a scalar.
    """
    shape = atom.aval.shape
    if shape == tuple(to):
        return positions
    return np.broadcast_to(numbers(shape), to).ravel()[positions] if shape else None


def _on_elements(reader: Reader, eqn: Eqn, positions: Positions, depth: int) -> list[ReadSlice]:
    to = eqn.outvars[0].aval.shape
    operands = [reader.elements(a, _positions_of(a, to, positions), depth) for a in eqn.invars]
    found = eqn.primitive.bind(*operands, **eqn.params)
    return [ReadSlice(np.arange(len(positions)), found if found.shape else pnp.full(len(positions), found))]


def _in_parts_of(choose: Callable[[Reader, Eqn], int]) -> Callable[..., list[ReadSlice]]:
    """Make a reading rule for elementwise operations that are linear in one operand.

    The rule reads this operand as slices, without its known zeros, and applies the operation to each slice.

    Args:
      choose: returns the position of the operand, from the reader and the equation.
    """

    def rule(reader: Reader, eqn: Eqn, positions: Positions, depth: int) -> list[ReadSlice]:
        to = eqn.outvars[0].aval.shape
        position = choose(reader, eqn)
        x = eqn.invars[position]
        there = _positions_of(x, to, positions)
        if there is None or isinstance(x, Literal):
            return _on_elements(reader, eqn, positions, depth)
        found = []
        for at, elements in reader.parts(x, there, depth):
            operands = [
                elements if i == position else reader.elements(a, _positions_of(a, to, positions[at]), depth)
                for i, a in enumerate(eqn.invars)
            ]
            found.append(ReadSlice(at, eqn.primitive.bind(*operands, **eqn.params)))
        return found

    return rule


def _sparser(reader: Reader, eqn: Eqn) -> int:
    """Return the position, 0 or 1, of the factor of a product to read as slices.

    This is the factor with known zeros; if both or none have these, the larger factor.
    """
    masks = [reader._mask(a) for a in eqn.invars]
    sizes = [math.prod(a.aval.shape) for a in eqn.invars]
    return max(range(len(masks)), key=lambda i: (masks[i] is not None, sizes[i]))


def _sum(reader: Reader, eqn: Eqn, positions: Positions, depth: int) -> list[ReadSlice]:
    """Read selected elements of a sum or difference, as slices.

    Where one term is known to be zero, read only the other term.
    """
    to = eqn.outvars[0].aval.shape
    masks = [reader._mask(a) for a in eqn.invars]
    if all(m is None for m in masks) or any(a.aval.shape != to for a in eqn.invars):
        return _on_elements(reader, eqn, positions, depth)
    first, second = (np.ones(len(positions), bool) if m is None else m[positions] for m in masks)
    found = []
    for which, atom in enumerate(eqn.invars):
        alone = np.flatnonzero(first & ~second if which == 0 else second & ~first)
        if len(alone):
            of_it = reader.parts(atom, positions[alone], depth)
            if traits.signs.of(eqn.primitive)[which] < 0:
                of_it = [ReadSlice(p.at, elementwise.neg_p.bind(p.elements)) for p in of_it]
            found += [ReadSlice(alone[p.at], p.elements) for p in of_it]
    both = np.flatnonzero(first & second)
    if len(both):
        found += [ReadSlice(both[p.at], p.elements) for p in _on_elements(reader, eqn, positions[both], depth)]
    return found


def _in_order(reader: Reader, eqn: Eqn, positions: Positions, depth: int) -> list[ReadSlice]:
    return reader.parts(eqn.invars[0], positions, depth)


def _moved(reader: Reader, eqn: Eqn, positions: Positions, depth: int) -> list[ReadSlice]:
    return reader.parts(eqn.invars[0], _moves(eqn)[positions], depth)


def _moves(eqn: Eqn) -> Any:
    """Return for each element of an equation's result the number of the operands' element that moves there.

    The elements of all operands are numbered consecutively from 0 on, each operand in row-major order. The equation's
    operation only moves elements.
    """
    assert eqn.primitive.host_rule is not None
    parts = []
    first = 0
    for a in eqn.invars:
        parts.append(numbers(a.aval.shape) + first)
        first += parts[-1].size
    return np.ravel(eqn.primitive.host_rule(*parts, **eqn.params))


def _joined(reader: Reader, eqn: Eqn, positions: Positions, depth: int) -> list[ReadSlice]:
    """Read selected elements of a concatenation or padding, as slices.

    Each operand is read only at those of its elements that are selected.
    """
    starts = np.cumsum([0, *(math.prod(a.aval.shape) for a in eqn.invars)])
    number = _moves(eqn)[positions]
    which = np.searchsorted(starts, number, side="right") - 1
    found = []
    for k in np.unique(which).tolist():
        position = np.flatnonzero(which == k)
        atom = eqn.invars[k]
        found += [
            ReadSlice(position[p.at], p.elements) for p in reader.parts(atom, number[position] - starts[k], depth)
        ]
    return found


def _scattered(reader: Reader, eqn: Eqn, positions: Positions, depth: int) -> list[ReadSlice]:
    """Read selected elements of the result of a scatter-add, as slices.

    If the indices are known, read the operand at the selected positions, and only those updates that are added there.
    Otherwise compute the whole result.
    """
    x, _, updates = eqn.invars
    targets = reader._targets(eqn)
    at = np.arange(len(positions))
    order = np.argsort(positions, kind="stable")
    if targets is None or (np.diff(positions[order]) == 0).any():
        return [ReadSlice(at, taken(reader.whole(eqn.outvars[0]), positions))]
    found = order[np.searchsorted(positions, targets, sorter=order).clip(max=len(positions) - 1)]
    mask = reader._mask(updates)
    these = np.flatnonzero((positions[found] == targets) & (True if mask is None else mask))
    before = reader.parts(x, positions, depth)
    if not len(these):
        return before
    found = found[these]
    added = reader.elements(updates, these, depth)
    if not before and len(np.unique(found)) == len(found):
        back = np.argsort(found)
        return [ReadSlice(found[back], taken(added, back))]
    total = pnp.asarray(_together(before, len(positions), x.aval.dtype))
    return [ReadSlice(at, total.at[found.astype(np.int32)].add(added, mode="promise_in_bounds"))]


_MOVES = shapes.transpose_p, shapes.broadcast_in_dim_p, slicing.slice_p, slicing.rev_p, slicing.roll_p
_JOINS = slicing.concatenate_p, slicing.stack_p, slicing.pad_p
_SUMS = elementwise.add_p, elementwise.sub_p, add_any_p
_LINEAR = elementwise.neg_p, elementwise.convert_element_type_p, elementwise.copy_p

for _p in (shapes.reshape_p, shapes.squeeze_p):
    reads(_p)(_in_order)
for _p in _MOVES:
    reads(_p)(_moved)
for _p in _JOINS:
    reads(_p)(_joined)
for _p in _SUMS:
    reads(_p)(_sum)
for _p in (*_LINEAR, elementwise.div_p):
    reads(_p)(_in_parts_of(lambda reader, eqn: 0))
reads(scatter_add_p)(_scattered)
reads(elementwise.mul_p)(_in_parts_of(_sparser))

# Nonzero masks -------------------------------------------------------------------------------------------------------


def _nonzero_elements(x: Any) -> Any:
    """Return a mask of the nonzero elements of an array, as a vector; None if no element is known to be zero."""
    if isinstance(x, Tracer):
        return None
    found = np.ravel(host_value(x) if isinstance(x, ArrayImpl) else np.asarray(x)) != 0
    return None if found.all() else found


def _mask_of(eqn: Eqn, i: int, mask: Any) -> Any:
    shape, to = eqn.invars[i].aval.shape, eqn.outvars[0].aval.shape
    full = np.ones(math.prod(shape), bool) if mask is None else mask
    return full if shape == to else np.broadcast_to(full.reshape(shape), to).ravel()


def _of_all(combine: Any, operands: slice, reader: Reader, eqn: Eqn, masks: Sequence[Any]) -> Any:
    return combine.reduce([_mask_of(eqn, i, masks[i]) for i in range(len(masks))[operands]])


def _mask_moved(reader: Reader, eqn: Eqn, masks: Sequence[Any]) -> Any:
    parts = [np.ones(math.prod(a.aval.shape), bool) if m is None else m for a, m in zip(eqn.invars, masks, strict=True)]
    return np.concatenate(parts)[_moves(eqn)]


def _mask_scattered(reader: Reader, eqn: Eqn, masks: Sequence[Any]) -> Any:
    targets = reader._targets(eqn)
    if targets is None:
        return None
    found = _mask_of(eqn, 0, masks[0]).copy()
    there = targets >= 0
    found[targets[there if masks[2] is None else there & masks[2]]] = True
    return found


nonzero(scatter_add_p)(_mask_scattered)
nonzero(elementwise.mul_p)(partial(_of_all, np.logical_and, slice(None)))
nonzero(elementwise.div_p)(partial(_of_all, np.logical_and, slice(0, 1)))
nonzero(elementwise.select_n_p)(partial(_of_all, np.logical_or, slice(1, None)))
for _p in _SUMS:
    nonzero(_p)(partial(_of_all, np.logical_or, slice(None)))
for _p in (*_LINEAR, shapes.reshape_p, shapes.squeeze_p):
    nonzero(_p)(lambda reader, eqn, masks: masks[0])
for _p in (*_MOVES, *_JOINS):
    nonzero(_p)(_mask_moved)
