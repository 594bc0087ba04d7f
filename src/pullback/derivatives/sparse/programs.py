"""Patterns of operations that hold programs: what runs once, branches, and loops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from pullback.control.conditional import cond_p
from pullback.control.guard import guard_p
from pullback.control.loops import while_p
from pullback.control.scan_primitive import scan_p
from pullback.core.jaxpr import ClosedJaxpr, Eqn
from pullback.core.lists import split_list
from pullback.derivatives.sparse import boolean
from pullback.derivatives.sparse.dependence import UNKNOWN, Walk, is_tangent, join, sparsity


@sparsity(guard_p)
def _guard(walk: Walk, eqn: Eqn, operands: Sequence[Any]) -> Sequence[Any]:
    return operands[1:]


@sparsity(cond_p)
def _cond(walk: Walk, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    which, *args = operands
    branches = eqn.params["branches"]
    if isinstance(which, np.ndarray):
        return walk.run(branches[min(max(int(which), 0), len(branches) - 1)], args)
    return reduce(_joined, [walk.run(branch, args) for branch in branches])


def _joined(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    return [join(a, b) for a, b in zip(first, second, strict=True)]


# Loops ---------------------------------------------------------------------------------------------------------------


def _may_unroll(walk: Walk, program: ClosedJaxpr, length: int) -> bool:
    """Whether a loop is gone through step by step, which is exact."""
    cost = length * max(len(program.eqns), 1)
    if cost > walk.steps:
        return False
    walk.steps -= cost
    return True


@sparsity(scan_p)
def _scan(walk: Walk, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    jaxpr, length = eqn.params["jaxpr"], eqn.params["length"]
    consts, carry, xs = split_list(operands, eqn.params["num_consts"], eqn.params["num_carry"])
    count = len(carry)
    sizes = [math.prod(a.shape) for a in jaxpr.in_avals[len(consts) + count :]]
    y_avals = jaxpr.out_avals[count:]
    if not _may_unroll(walk, jaxpr, length):
        elements = [_any_step(x, length, size) for x, size in zip(xs, sizes, strict=True)]
        carry = _fixed_point(walk, jaxpr, consts, carry, elements)
        ys = walk.run(jaxpr, [*consts, *carry, *elements])[count:]
        return [*carry, *[_each_step(y, length) for y in ys]]
    steps: list[list[Any]] = []
    for i in range(length - 1, -1, -1) if eqn.params["reverse"] else range(length):
        outs = walk.run(jaxpr, [*consts, *carry, *[_element(x, i, s) for x, s in zip(xs, sizes, strict=True)]])
        carry, ys = outs[:count], outs[count:]
        steps.append(ys)
    if eqn.params["reverse"]:
        steps.reverse()
    return [*carry, *[_stacked(walk, [s[k] for s in steps], a) for k, a in enumerate(y_avals)]]


def _element(x: Any, i: int, size: int) -> Any:
    """What is known of an element of the leading axis."""
    if is_tangent(x):
        return boolean.select(x, np.arange(i * size, (i + 1) * size))
    return x[i] if isinstance(x, np.ndarray) else UNKNOWN


def _stacked(walk: Walk, parts: Sequence[Any], aval: Any) -> Any:
    """What is known of the stacked results of all steps."""
    if any(map(is_tangent, parts)):
        size = math.prod(aval.shape)
        return boolean.stacked([x if is_tangent(x) else boolean.empty(size, walk.width) for x in parts])
    known = parts and all(isinstance(x, np.ndarray) for x in parts)
    return np.stack(parts) if known else UNKNOWN


def _any_step(x: Any, length: int, size: int) -> Any:
    """What is known of the elements of all steps."""
    return boolean.merge(x, np.tile(np.arange(size), length), size) if is_tangent(x) else UNKNOWN


def _each_step(y: Any, length: int) -> Any:
    return boolean.select(y, np.tile(np.arange(y.shape[0]), length)) if is_tangent(y) else UNKNOWN


def _fixed_point(walk: Walk, jaxpr: ClosedJaxpr, consts: Any, carry: Sequence[Any], rest: Sequence[Any]) -> list[Any]:
    """What is known of the carry at the beginning of any step, and at the end: the union of all."""
    carry = list(carry)
    while True:
        outs = walk.run(jaxpr, [*consts, *carry, *rest])[: len(carry)]
        joined = _joined(carry, outs)
        if all(_same(a, b) for a, b in zip(carry, joined, strict=True)):
            return joined
        carry = joined


def _same(a: Any, b: Any) -> bool:
    if is_tangent(a) and is_tangent(b):
        return bool(a.nnz == b.nnz)  # patterns only grow
    return a is b


@sparsity(while_p)
def _while(walk: Walk, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    test, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    of_test, of_body, carry = split_list(operands, eqn.params["cond_nconsts"], eqn.params["body_nconsts"])
    while _may_unroll(walk, body, 1):
        (go_on,) = walk.run(test, [*of_test, *carry])
        if not isinstance(go_on, np.ndarray):
            break
        if not go_on:
            return carry
        carry = walk.run(body, [*of_body, *carry])
    return _fixed_point(walk, body, of_body, carry, [])
