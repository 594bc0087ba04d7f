"""Abstract values of sparsity detection: the dependence of a tangent, a known value, or ``UNKNOWN``.

Rules of the kind ``sparsity`` map the abstract operands of an operation to its abstract results. This module has the
rules for operations without one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from pullback.core import dtypes, traits
from pullback.core.array import Array, ArrayImpl, host_value
from pullback.core.errors import PullbackError
from pullback.core.jaxpr import ClosedJaxpr, Eqn
from pullback.core.rule_kinds import RuleKind
from pullback.core.trace import state
from pullback.derivatives.patterns import boolean
from pullback.primitives.rules import axis_kept
from pullback.transforms.traces.interpretation import Interpretation
from pullback.transforms.traces.stage import stage_flat

sparsity = RuleKind(
    "sparsity",
    "by its inner programs, traits and kept axes; otherwise each element of the results depends on each element of the "
    "operands",
)
sparsity.__doc__ = """Declare on which inputs the results of an operation depend, for sparse derivatives.

A rule is ``rule(walk, eqn, operands) -> results``: the abstract results of an operation on abstract operands, at least
one of which is a tangent. An abstract value is the dependence of a tangent (a ``csr_array`` of booleans, with a row for
each element and a column for each input), a known value (a NumPy array), or ``UNKNOWN``, a value without tangents that
is not known. ``walk`` evaluates the programs that the operation holds, and ``eqn`` is its equation. Without a rule,
every element of the results depends on every element of the operands.

Args:
  primitive: the operation, a ``Primitive``.

Returns:
  A decorator that registers a function as the rule of ``primitive``, and returns the function.

>>> import pullback.numpy as jnp
>>> from pullback.derivatives import jacobian_pattern, sparsity
>>> from pullback.extend import Primitive, ShapedArray
>>> double_p = Primitive("double")
>>> _ = double_p.abstract_eval(lambda x: ShapedArray(x.shape, x.dtype))
>>> _ = double_p.jvp(lambda primals, tangents: (double_p.bind(*primals), double_p.bind(*tangents)))
>>> jacobian_pattern(double_p.bind)(jnp.ones(3)).nnz
9
>>> @sparsity(double_p)
... def elementwise(walk, eqn, operands):
...     return operands
>>> jacobian_pattern(double_p.bind)(jnp.ones(3)).nnz
3
"""
__test__ = {"sparsity": sparsity.__doc__}


class Unknown:
    """The class of abstract values of arrays that depend on no input, and whose elements are not known."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNKNOWN" if self is UNKNOWN else "VARIES"


UNKNOWN = Unknown()
VARIES = Unknown()
"""The abstract value of a constant that differs between the steps of a loop, though each is known."""


def is_tangent(x: Any) -> bool:
    """Whether an abstract value is that of a tangent: a matrix that says on which inputs each element depends."""
    return isinstance(x, sp.csr_array)


def join(a: Any, b: Any) -> Any:
    """Return an abstract value that describes an array described by ``a`` or by ``b``: their common generalization.

    It is the union of dependence matrices, or ``UNKNOWN`` for values that differ.
    """
    if a is b:
        return a
    tangents = [x for x in (a, b) if is_tangent(x)]
    if tangents:
        return boolean.union(tangents)
    same = isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.tobytes() == b.tobytes()
    return a if same else UNKNOWN


def value_of(x: Any) -> Any:
    """Return the abstract value of an array that depends on no input: its elements, or ``UNKNOWN`` if it is traced."""
    if isinstance(x, ArrayImpl):
        return np.asarray(host_value(x))
    return UNKNOWN if isinstance(x, Array) else np.asarray(x)


def evaluated(eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    """Evaluate an equation whose operands depend on no input, and return the abstract values of its results.

    These are NumPy arrays. They are unknown values if an operand is not known, the equation has an effect, or the
    evaluation fails.
    """
    primitive = eqn.primitive
    nothing: list[Any] = [VARIES if any(x is VARIES for x in operands) else UNKNOWN] * len(eqn.outvars)
    if eqn.effect or not all(isinstance(x, np.ndarray) for x in operands):
        return nothing
    try:
        if primitive.host_rule is not None:
            outs = primitive.host_rule(*[x[()] for x in operands], **eqn.params)
        else:
            outs = state.bottom.process(primitive, tuple(ArrayImpl(x) for x in operands), eqn.params)
    except (PullbackError, NotImplementedError):
        return nothing
    return [value_of(x) for x in (outs if primitive.multiple_results else [outs])]


def otherwise(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> Sequence[Any]:
    """Return the abstract results of an equation whose primitive has no ``sparsity`` rule.

    Use the first of these that applies: the rule of elementwise operations; the rule of operations that only move
    elements; the program that computes the results, which ``walk`` interprets; the axes along which the operation acts
    independently. Otherwise, let each element of a result depend on all inputs of all operands.
    """
    if traits.elementwise.of(eqn.primitive):
        return union(walk, eqn, operands)
    if traits.moves.of(eqn.primitive) and eqn.primitive.host_rule is not None and _all_move(eqn):
        return moved(walk, eqn, operands)
    program = program_of(eqn)
    if program is not None:
        return walk.run(program, operands)
    if axis_kept.of(eqn.primitive) is not None:
        return by_kept_axes(eqn, operands)
    return conservative(eqn, operands)


# Elements, and moves ------------------------------------------------------------------------------------------------


def numbers(shape: Sequence[int]) -> Any:
    """Return an array of this shape with the numbers 0, 1, 2, ... in row-major order."""
    return np.arange(math.prod(shape)).reshape(shape)


def spread(rows: Any, shape: Sequence[int], to: Sequence[int]) -> Any:
    """Return the dependence matrix of an array broadcast to the shape ``to``.

    Args:
      rows: the dependence matrix of the array, with a row for each element.
      shape: the shape of the array.
      to: the shape after broadcasting.
    """
    return rows if tuple(shape) == tuple(to) else boolean.select(rows, np.broadcast_to(numbers(shape), to))


def union(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    """Return the dependence of the result of an elementwise operation.

    An element of the result depends on the inputs on which the operands' elements at the same index depend.
    """
    to = eqn.outvars[0].aval.shape
    pairs = zip(operands, eqn.invars, strict=True)
    return [boolean.union([spread(x, v.aval.shape, to) for x, v in pairs if is_tangent(x)])]


def number_operands(eqn: Eqn, operands: Sequence[Any]) -> tuple[list[Any], Any]:
    """Number the elements of all operands that depend on inputs, from 1 on; elements of other operands get 0.

    Returns:
      For each operand an array of its shape with the numbers of its elements; and a matrix whose row k has the
      dependence of the element with number k + 1.
    """
    numbered: list[Any] = []
    tangents: list[Any] = []
    count = 1
    for x, v in zip(operands, eqn.invars, strict=True):
        if is_tangent(x):
            numbered.append(numbers(v.aval.shape) + count)
            count += x.shape[0]
            tangents.append(x)
        else:
            numbered.append(np.zeros(v.aval.shape, np.int64))
    return numbered, boolean.stacked(tangents)


def _all_move(eqn: Eqn) -> bool:
    """Whether all operands have inexact dtypes. Otherwise one may hold indices, which select elements of another."""
    return all(dtypes.is_inexact(v.aval.dtype) for v in eqn.invars)


def moved(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    """Return the dependence of the results of an operation that only moves elements.

    The elements of the operands are numbered, and the operation is applied to the arrays of numbers. Each number in a
    result tells which element was moved there, and so on which inputs the result's element depends.
    """
    numbered, rows = number_operands(eqn, operands)
    assert eqn.primitive.host_rule is not None
    outs = eqn.primitive.host_rule(*numbered, **eqn.params)
    return [boolean.select(rows, x - 1) for x in (outs if eqn.primitive.multiple_results else [outs])]


# Programs ------------------------------------------------------------------------------------------------------------


def program_of(eqn: Eqn) -> ClosedJaxpr | None:
    """Return a program that computes the results of an equation from its operands, or None if there is none.

    Use a program or a linear map among the parameters of the equation if its operands and results fit; otherwise trace
    the primitive's decomposition rule.
    """
    avals = [v.aval for v in eqn.invars]
    for value in eqn.params.values():
        if isinstance(value, ClosedJaxpr) and fits(value, eqn):
            return value
    linear_map = eqn.params.get("linear_map")
    if linear_map is not None:
        count = linear_map.count
        run = lambda *args: linear_map.apply(args[:count], args[count:])
    elif eqn.primitive.decomposition_rule is not None:
        rule, many = eqn.primitive.decomposition_rule, eqn.primitive.multiple_results
        run = lambda *args: rule(*args, **eqn.params) if many else [rule(*args, **eqn.params)]
    else:
        return None
    try:
        return stage_flat(eqn.primitive, run, avals)
    except (PullbackError, NotImplementedError):  # it has no decomposition
        return None


def fits(closed: ClosedJaxpr, eqn: Eqn) -> bool:
    """Whether a program's inputs and results have the same shapes as the equation's operands and results."""
    inputs, results = closed.in_avals, closed.out_avals
    return [a.shape for a in inputs] == [v.aval.shape for v in eqn.invars] and [a.shape for a in results] == [
        v.aval.shape for v in eqn.outvars
    ]


def conservative(eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    """Return the dependence of an equation's results if each element depends on all inputs of all operands."""
    tangents = [x for x in operands if is_tangent(x)]
    return [boolean.everything(tangents, math.prod(v.aval.shape)) for v in eqn.outvars]


def by_kept_axes(eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    """Return the dependence of the results of an operation that treats indices along some axes independently.

    The primitive's trait ``axis_kept`` tells which axis of an operand is which axis of the results. An element of a
    result depends on the elements of the operands that have the same indices along these axes.
    """
    rule: Any = axis_kept.of(eqn.primitive)
    given = [v.aval.shape for v in eqn.invars]
    parts: list[list[Any]] = [[] for _ in eqn.outvars]
    for i, (rows, shape) in enumerate(zip(operands, given, strict=True)):
        if not is_tangent(rows):
            continue
        to_result = [rule(axis, i, *given, **eqn.params) for axis in range(len(shape))]
        once = [1 if to is None else n for n, to in zip(shape, to_result, strict=True)]
        merged = boolean.merge(rows, np.broadcast_to(numbers(once), shape), math.prod(once))
        axes = [axis for axis, to in enumerate(to_result) if to is not None]
        order = sorted(axes, key=to_result.__getitem__)
        for v, found in zip(eqn.outvars, parts, strict=True):
            kept = {to_result[axis] for axis in axes}
            aligned = [n if k in kept else 1 for k, n in enumerate(v.aval.shape)]
            at = numbers(once).reshape([shape[a] for a in axes]).transpose([axes.index(a) for a in order])
            found.append(boolean.select(merged, np.broadcast_to(at.reshape(aligned), v.aval.shape)))
    return [boolean.union(found) for found in parts]
