"""Lowering branches and loops to StableHLO.

A region may read the values of the enclosing function, so that consts need not be carried. Besides the user's carry, a
loop carries the number of the step, and, if its body has effects, a token, the result of the last effect, by which the
compiler keeps their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.core.jaxpr import ClosedJaxpr
from pullback.core.lists import split_list
from pullback.transforms.traces.inlining import on_terms, write_program

_BOOL = np.dtype(bool)
_TOKEN = ((), _BOOL)
"""The type of the token that orders effects."""

Value = Any
Body = Callable[[list[Value]], Sequence[Value]]


def _token(hlo: Any) -> Value:
    """Return the token that orders effects in the module ``hlo`` under construction; if there is none, make a token."""
    return hlo.number(False, _BOOL) if hlo.order is None else hlo.order


# Branches ------------------------------------------------------------------------------------------------------------


def write_cond(hlo: Any, index: Value, *operands: Value, branches: Sequence[ClosedJaxpr]) -> list[Value]:
    """The lowering rule of ``cond``; the index is in range."""
    known = hlo.known_integers(index)
    if known is not None:
        return write_program(hlo, branches[min(max(int(known), 0), len(branches) - 1)], operands)
    effect = any(b.jaxpr.effect for b in branches)
    types = [(a.shape, a.dtype) for a in branches[0].out_avals] + [_TOKEN] * effect
    token = _token(hlo) if effect else None

    def region(branch: ClosedJaxpr) -> str:
        def body() -> list[Value]:
            if not effect:
                return write_program(hlo, branch, operands)
            hlo.order = token
            return [*write_program(hlo, branch, operands), hlo.order]

        return hlo.region([], body)  # type: ignore[no-any-return]

    if not types:
        return []
    outs = hlo.multi_result("stablehlo.case", [index], types, "", [region(b) for b in branches])
    if effect:
        *outs, hlo.order = outs
    return outs  # type: ignore[no-any-return]


# Loops ---------------------------------------------------------------------------------------------------------------


def write_while(hlo: Any, init: Sequence[Value], goes_on: Body, body: Body, effect: bool) -> list[Value]:
    """Emit a while loop; return its final carry.

    Args:
      hlo: the builder.
      init: the initial carry.
      goes_on: writes the condition: from the carry to a list of one boolean; it has no effects.
      body: writes a step: from the carry to the next carry.
      effect: whether a step has effects.
    """
    init = [*init, _token(hlo)] if effect else list(init)
    types = [(v.shape, v.dtype) for v in init]

    def step(*carried: Value) -> list[Value]:
        if not effect:
            return list(body(list(carried)))
        *values, hlo.order = carried
        return [*body(values), hlo.order]

    def test(*carried: Value) -> list[Value]:
        return list(goes_on(list(carried[: len(carried) - effect])))

    outs = hlo.multi_result("stablehlo.while", init, types, "", [hlo.region(types, test), hlo.region(types, step)])
    if effect:
        *outs, hlo.order = outs
    return outs  # type: ignore[no-any-return]


def write_scan(
    hlo: Any,
    *operands: Value,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    length: int,
    reverse: bool,
    unroll: int,
) -> list[Value]:
    """The lowering rule of ``scan``."""
    consts, init, xs = split_list(operands, num_consts, num_carry)
    of_xs, of_ys = jaxpr.in_avals[num_consts + num_carry :], jaxpr.out_avals[num_carry:]
    if length <= unroll:
        return _straight(hlo, jaxpr, range(length)[:: -1 if reverse else 1], consts, init, xs)
    index = np.dtype(np.int32 if length < 2**31 - 1 else np.int64)

    def step(values: Sequence[Value], i: Value) -> list[Value]:
        """Emit the step for element ``i``.

        ``values`` are the carry, and the stacked results so far. Return their values after the step.
        """
        rows = [on_terms(hlo, a, [x], [i], a.shape, _row) for a, x in zip(of_xs, xs, strict=True)]
        outs = write_program(hlo, jaxpr, [*consts, *values[:num_carry], *rows])
        stacked = zip(of_ys, values[num_carry:], outs[num_carry:], strict=True)
        ys = [on_terms(hlo, a, [y, row], [i], y.shape, _with_row) for a, y, row in stacked]
        return [*outs[:num_carry], *ys]

    def body(carried: list[Value]) -> list[Value]:
        k, *values = carried
        for ahead in range(unroll):
            if reverse:
                i = hlo.elementwise("stablehlo.subtract", hlo.number(length - 1 - ahead, index), k)
            else:
                i = hlo.elementwise("stablehlo.add", k, hlo.number(ahead, index)) if ahead else k
            values = step(values, i)
        return [hlo.elementwise("stablehlo.add", k, hlo.number(unroll, index)), *values]

    rounds = length // unroll * unroll
    begin = [hlo.splat(0, (length, *a.shape), a.dtype) for a in jaxpr.out_avals[num_carry:]]
    values = write_while(
        hlo,
        [hlo.number(0, index), *init, *begin],
        lambda carried: [hlo.compare(carried[0], hlo.number(rounds, index), "LT")],
        body,
        jaxpr.jaxpr.effect,
    )[1:]
    for k in range(rounds, length):  # the steps that do not fill a round
        values = step(values, hlo.number(length - 1 - k if reverse else k, index))
    return values


def _straight(
    hlo: Any, jaxpr: ClosedJaxpr, order: range, consts: Sequence[Value], init: Sequence[Value], xs: Sequence[Value]
) -> list[Value]:
    """Emit a scan without a loop: emit ``jaxpr`` for each index of an element in ``order``, one after the other.

    Returns the final carry, followed by the stacked results.
    """
    count, carry = len(init), list(init)
    ys: list[Any] = [None] * len(order)
    for i in order:
        rows = [
            on_terms(hlo, a, [x], [], a.shape, partial(_fixed_row, i=i, count=len(order)))
            for a, x in zip(jaxpr.in_avals[len(consts) + count :], xs, strict=True)
        ]
        outs = write_program(hlo, jaxpr, [*consts, *carry, *rows])
        carry, ys[i] = outs[:count], outs[count:]
    of_ys = jaxpr.out_avals[count:]
    if not ys:
        return [*carry, *(hlo.splat(0, (0, *a.shape), a.dtype) for a in of_ys)]
    columns = zip(of_ys, zip(*ys, strict=True), strict=True)
    return [*carry, *(on_terms(hlo, a, column, [], (len(ys), *a.shape), _joined) for a, column in columns)]


def _fixed_row(hlo: Any, x: Value, i: int, count: int) -> Value:
    """Emit the element ``i`` of the ``count`` elements along the first axis."""
    starts, limits = [i, *[0] * (x.ndim - 1)], [i + 1, *x.shape[1:]]
    return hlo.reshape(x if count == 1 else hlo.slice(x, starts, limits), x.shape[1:])


def _joined(hlo: Any, *rows: Value) -> Value:
    """Emit the rows stacked along a new first axis."""
    stacked = [hlo.reshape(y, (1, *y.shape)) for y in rows]
    return stacked[0] if len(stacked) == 1 else hlo.concatenate(stacked, 0)


def _row(hlo: Any, x: Value, i: Value) -> Value:
    """Emit the element ``i`` along the first axis."""
    sizes = (1, *x.shape[1:])
    starts = [i, *[hlo.number(0, i.dtype)] * (x.ndim - 1)]
    out = hlo.op("stablehlo.dynamic_slice", [x, *starts], sizes, x.dtype, f"slice_sizes = {hlo.integers(sizes)}")
    return hlo.reshape(out, x.shape[1:])


def _with_row(hlo: Any, x: Value, row: Value, i: Value) -> Value:
    """Emit ``x`` with its element ``i`` along the first axis replaced by ``row``."""
    starts = [i, *[hlo.number(0, i.dtype)] * (x.ndim - 1)]
    update = hlo.reshape(row, (1, *row.shape))
    return hlo.op("stablehlo.dynamic_update_slice", [x, update, *starts], x.shape, x.dtype)
