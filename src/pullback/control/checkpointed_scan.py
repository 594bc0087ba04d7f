"""Checkpointed scans: reverse mode saves few states, those that minimise the number of recomputed steps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from pullback.control.checkpointing import Snapshots, element, integer, reverse, run_saving_best, with_element
from pullback.control.common import without_effects
from pullback.control.scan_primitive import Flags, Loop
from pullback.control.scan_primitive import bind as bind_scan
from pullback.core.array import typeof
from pullback.core.dtypes import is_inexact
from pullback.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from pullback.core.lists import select, split_list
from pullback.core.zeros import densify, zeros_of
from pullback.primitives.arrays.indexing import zeros
from pullback.primitives.elementwise import add, sub
from pullback.transforms.custom.closed_over import explained
from pullback.transforms.custom.custom_calls import DerivativeCall, call_p, equation
from pullback.transforms.custom.linear_map import LinearMap
from pullback.transforms.traces.dce import dce_closed_jaxpr
from pullback.transforms.traces.forward import jvp_flat
from pullback.transforms.traces.jaxprs import linearize_jaxpr, transpose_jaxpr

checkpointed_scan_p = equation("checkpointed_scan")


def checkpointed(
    jaxpr: ClosedJaxpr,
    loop: Loop,
    consts: Sequence[Any],
    init: Sequence[Any],
    xs: Sequence[Any],
    slots: int,
    function: Any,
) -> tuple[list[Any], list[Any]]:
    """Run a scan that saves at most ``slots`` states for reverse mode; return the final carry and stacked results."""
    scan = _Scan(jaxpr, loop, len(consts), len(init), min(slots, max(loop.length, 1)), function)
    jvp = partial(jvp_flat, function, scan.run)  # forward mode saves no states
    call = DerivativeCall(checkpointed_scan_p, function, scan.run, jvp, scan.forward)
    outs = explained(call.function, call_p.bind, *consts, *init, *xs, call=call)
    return outs[: len(init)], outs[len(init) :]


class _Scan(NamedTuple):
    """A scan, and its derivatives.

    Attributes:
      jaxpr: the step, from consts, carry and an element of each ``xs`` to the carry and the results to stack.
      loop: the parameters of the scan.
      num_consts: the number of consts.
      num_carry: the number of carried values.
      slots: the largest number of saved states.
      function: the user's function, for error messages.
    """

    jaxpr: ClosedJaxpr
    loop: Loop
    num_consts: int
    num_carry: int
    slots: int
    function: Any

    def split(self, operands: Sequence[Any]) -> list[list[Any]]:
        """Split operands into consts, carry and xs."""
        return split_list(operands, self.num_consts, self.num_carry)

    def position(self, i: Any) -> Any:
        """The index of the element that step ``i`` takes; a reverse scan begins with the last element."""
        return sub(integer(self.loop.length - 1), i) if self.loop.reverse else i

    def run(self, *operands: Any) -> list[Any]:
        """Run the scan on consts, carry and xs; return the final carry, followed by the stacked results."""
        carry, ys = bind_scan(self.jaxpr, self.loop, *self.split(operands))
        return [*carry, *ys]

    def forward(self, primals: Sequence[Any], perturbed: Flags) -> tuple[list[Any], list[Any], LinearMap]:
        """Run the scan on ``primals``, and save up to ``slots`` carries.

        Returns:
          The results; the residuals; and the linear map to tangents of the results.
          The map takes tangents of the operands that ``perturbed`` flags.
        """
        consts, init, xs = self.split(primals)
        y_avals = self.jaxpr.out_avals[self.num_carry :]
        length = self.loop.length

        def step(i: Any, state: Sequence[Any], ys: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            at = self.position(i)
            outs = jaxpr_as_fun(self.jaxpr)(*consts, *state, *[element(x, at) for x in xs])
            carry, row = split_list(outs, self.num_carry)
            return carry, [with_element(y, value, at) for y, value in zip(ys, row, strict=True)]

        stacked = [zeros((length, *a.shape), a.dtype) for a in y_avals]
        carry, ys, saved = run_saving_best(step, init, stacked, length, self.slots)
        outs = [*carry, *ys]
        residuals = [*consts, *xs, saved.depth, saved.steps, saved.order, *saved.slots]
        return outs, residuals, _ScanLinearMap(self, perturbed, outs, len(residuals))


class _ScanLinearMap(LinearMap):
    """The linear map of a scan's tangents; its transpose is the backward pass, from the saved carries."""

    def __init__(self, scan: _Scan, perturbed: Flags, outs: Sequence[Any], count: int) -> None:
        self.scan = scan
        self.function = scan.function
        self.perturbed = tuple(perturbed)
        self.count = count
        self.out_avals = [typeof(x) for x in outs if is_inexact(x.dtype)]

    def transpose(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        scan = self.scan
        length = scan.loop.length
        avals = scan.jaxpr.in_avals
        consts, xs, (depth, steps, order), slots = split_list(
            residuals, scan.num_consts, len(avals) - scan.num_consts - scan.num_carry, 3
        )
        const_flags, init_flags, x_flags = scan.split(self.perturbed)
        const_avals, carry_avals, x_avals = scan.split(avals)
        inexact = [is_inexact(a.dtype) for a in carry_avals]
        forced = [is_inexact(a.dtype) for a in scan.jaxpr.out_avals]
        # Effects of the recomputed steps have happened in the forward pass.
        quiet = without_effects(scan.jaxpr)
        primal, linear, _, residual_sources = linearize_jaxpr(quiet, (*const_flags, *inexact, *x_flags), tuple(forced))
        back = transpose_jaxpr(linear, tuple([i >= len(residual_sources) for i in range(len(linear.in_avals))]))
        advance, used = dce_closed_jaxpr(quiet, [i < scan.num_carry for i in range(len(scan.jaxpr.out_avals))])
        dense = densify(cts, self.out_avals)
        last, stacked = split_list(dense, inexact.count(True))
        sizes = const_flags.count(True), x_flags.count(True)

        def operands(i: Any, state: Sequence[Any]) -> list[Any]:
            at = scan.position(i)
            return [*consts, *state, *[element(x, at) for x in xs]]

        def step(i: Any, state: Sequence[Any]) -> list[Any]:
            return jaxpr_as_fun(advance)(*select(operands(i, state), used))

        def adjoint(i: Any, state: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            sums, rows, after = split_list(cts, *sizes)
            at = scan.position(i)
            inputs = operands(i, state)
            values = [*inputs, *jaxpr_as_fun(primal)(*inputs)]
            found = jaxpr_as_fun(back)(
                *[values[k] for k in residual_sources], *after, *[element(y, at) for y in stacked]
            )
            by_consts, before, by_xs = split_list(found, sizes[0], len(after))
            rows = [with_element(x, value, at) for x, value in zip(rows, by_xs, strict=True)]
            return [*map(add, sums, by_consts), *rows, *before]

        start = [
            *[zeros_of(a) for a in select(const_avals, const_flags)],
            *[zeros((length, *a.shape), a.dtype) for a in select(x_avals, x_flags)],
            *last,
        ]
        found = reverse(step, adjoint, integer(length), Snapshots(depth, steps, order, slots), start)
        by_consts, by_xs, by_carry = split_list(found, *sizes)
        return [*by_consts, *select(by_carry, select(init_flags, inexact)), *by_xs]
