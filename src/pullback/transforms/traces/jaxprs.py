"""Transformations from jaxprs to jaxprs, for operations that hold programs.

Each evaluates a jaxpr under the interpreter of the transformation, and stages the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pullback.core.array import typeof
from pullback.core.jaxpr import ClosedJaxpr, eval_jaxpr, jaxpr_as_fun
from pullback.core.linear import LinearTrace
from pullback.core.trace import state
from pullback.core.types import ZERO, MappedAxis, ShapedArray
from pullback.core.user_types import MappingSpec
from pullback.core.zeros import zeros_of
from pullback.primitives.arrays.shapes import broadcast_in_dim, moveaxis
from pullback.primitives.elementwise import sum_of_two
from pullback.transforms.traces.batch import batch_flat
from pullback.transforms.traces.dce import flags
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.forward import Direction, jvp_flat
from pullback.transforms.traces.partial_eval import partial_eval_jaxpr
from pullback.transforms.traces.stage import stage_flat
from pullback.transforms.traces.transpose import transpose_flat


@cached_by_jaxpr
def jvp_jaxpr(
    closed: ClosedJaxpr,
    nonzero_tangents: Sequence[bool],
    instantiate: Sequence[bool] | bool = False,
    directional: Direction = Direction.LINEAR,
) -> tuple[ClosedJaxpr, list[bool]]:
    """Differentiate a jaxpr in forward mode.

    Args:
      closed: the program.
      nonzero_tangents: for each input, whether it has a tangent.
      instantiate: which results get a tangent even if it is zero: a flag for all, or a flag for each.
      directional: whether there are several tangents for a primal; see :class:`Direction`.

    Returns:
      A jaxpr: takes the inputs, then their nonzero tangents; returns the results, then their nonzero tangents;
      and for each result whether it has a tangent.

    >>> from pullback import lax, make_jaxpr
    >>> from pullback.transforms.traces.jaxprs import jvp_jaxpr
    >>> jvp_jaxpr(make_jaxpr(lax.sin)(1.0), [True])
    ({ lambda ; a:f32[] b:f32[]. let
        c:f32[] = sin a
        d:f32[] = cos a
        e:f32[] = mul b d
      in (c, e) }, [True])
    """
    nonzero = flags(nonzero_tangents, len(closed.in_avals), "inputs")
    forced = flags(instantiate, len(closed.out_avals), "results")
    tangents = [tangent_aval(a) for a, n in zip(closed.in_avals, nonzero, strict=True) if n]
    nonzero_out: list[bool] = []

    def run(*values: Any) -> list[Any]:
        primals, nonzero_ts = values[: len(nonzero)], iter(values[len(nonzero) :])
        ts = [next(nonzero_ts) if n else ZERO for n in nonzero]
        outs, out_ts = jvp_flat(closed, jaxpr_as_fun(closed), primals, ts, directional)
        nonzero_out[:] = [f or t is not ZERO for f, t in zip(forced, out_ts, strict=True)]
        return outs + [
            zeros_of(tangent_aval(typeof(x))) if t is ZERO else t
            for x, t, n in zip(outs, out_ts, nonzero_out, strict=True) if n
        ]  # fmt: skip

    return stage_flat(closed, run, closed.in_avals + tangents), nonzero_out


def tangent_aval(aval: ShapedArray) -> ShapedArray:
    """Return the type of tangents of values of type ``aval``."""
    return aval.to_tangent_aval()


@cached_by_jaxpr
def batch_jaxpr(
    closed: ClosedJaxpr,
    axis: MappedAxis,
    in_dims: Sequence[int | None],
    instantiate: Sequence[bool] | bool = False,
) -> tuple[ClosedJaxpr, list[int | None]]:
    """Map a jaxpr over an axis.

    Args:
      closed: the program.
      axis: the axis.
      in_dims: for each input the position of the mapped axis, or None.
      instantiate: which results get the mapped axis even if they are constant along it.

    Returns:
      A jaxpr of the batched inputs; and for each result the position of the mapped axis: 0, or None.

    >>> from pullback import lax, make_jaxpr
    >>> from pullback.extend import MappedAxis
    >>> from pullback.transforms.traces.jaxprs import batch_jaxpr
    >>> batch_jaxpr(make_jaxpr(lax.sin)(1.0), MappedAxis(None, 3), [0])
    ({ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }, [0])
    """
    avals = [a.batched(axis, d) for a, d in zip(closed.in_avals, in_dims, strict=True)]
    forced = flags(instantiate, len(closed.out_avals), "results")
    out_dims: list[int | None] = []

    def run(*values: Any) -> list[Any]:
        outs, dims = batch_flat(closed, jaxpr_as_fun(closed), axis, values, in_dims)
        out_dims[:] = [0 if isinstance(d, int) or (f and d is None) else d for f, d in zip(forced, dims, strict=True)]
        return [_at_front(x, d, f, axis.size) for x, d, f in zip(outs, dims, forced, strict=True)]

    return stage_flat(closed, run, avals), out_dims


def _at_front(x: Any, dim: int | None, forced: bool, size: int) -> Any:
    """Move the mapped axis ``dim`` of ``x`` to the front; if ``dim`` is None, add a mapped axis only if ``forced``."""
    if dim is not None:
        return x if isinstance(dim, MappingSpec) else moveaxis(x, dim, 0)
    return broadcast_in_dim(x, (size, *x.shape), range(1, len(x.shape) + 1)) if forced else x


class LinearizedJaxpr(NamedTuple):
    """A program that also returns residuals, and its derivative as a program that is linear in the tangents.

    Attributes:
      primal: takes the inputs; returns the results, followed by the residuals that are neither inputs nor results.
      linear: takes the residuals, then the nonzero tangents of the inputs; returns the nonzero tangents of the results.
      nonzero_tangents: for each result, whether it has a tangent.
      residual_sources: the index of each residual in the list of the inputs followed by the results of ``primal``.
    """

    primal: ClosedJaxpr
    linear: ClosedJaxpr
    nonzero_tangents: list[bool]
    residual_sources: list[int]


@cached_by_jaxpr
def linearize_jaxpr(
    closed: ClosedJaxpr, nonzero_tangents: Sequence[bool], instantiate: Sequence[bool] | bool = False
) -> LinearizedJaxpr:
    """Linearise a jaxpr: split its derivative into a primal program with residuals, and a linear one of tangents.

    Args:
      closed: the program.
      nonzero_tangents: for each input, whether it has a tangent.
      instantiate: which results get a tangent even if it is zero.

    Returns:
      Both programs, which results have tangents, and where the residuals are.

    >>> from pullback import lax, make_jaxpr
    >>> from pullback.transforms.traces.jaxprs import linearize_jaxpr
    >>> linearize_jaxpr(make_jaxpr(lax.sin)(1.0), [True]).linear
    { lambda ; a:f32[] b:f32[]. let c:f32[] = mul b a in (c,) }
    """
    both, nonzero_out = jvp_jaxpr(closed, nonzero_tangents, instantiate)
    primals, results = len(closed.in_avals), len(closed.out_avals)
    unknown = [i >= primals for i in range(len(both.in_avals))]
    # Tangents count as unknown even where they do not depend on the unknown inputs: the linear program returns them.
    forced = [i >= results for i in range(len(both.out_avals))]
    split = partial_eval_jaxpr(both, unknown, forced)
    return LinearizedJaxpr(split.known, split.unknown, nonzero_out, split.residual_sources)


@cached_by_jaxpr
def transpose_jaxpr(closed: ClosedJaxpr, linear_inputs: Sequence[bool]) -> ClosedJaxpr:
    """Transpose a jaxpr that is linear in some of its inputs.

    Args:
      closed: the program.
      linear_inputs: for each input, whether it is linear; the program is linear in all of these jointly.

    Returns:
      A jaxpr from the other inputs, followed by the cotangents of the results, to the cotangents of the linear inputs.

    Raises:
      NotLinearError: the program is not linear in these inputs; the message names the operation (a TypeError).

    >>> from pullback import lax, make_jaxpr
    >>> from pullback.transforms.traces.jaxprs import transpose_jaxpr
    >>> transpose_jaxpr(make_jaxpr(lax.mul)(1.0, 2.0), [False, True])
    { lambda ; a:f32[] b:f32[]. let c:f32[] = mul a b in (c,) }
    """
    linear = flags(linear_inputs, len(closed.in_avals), "inputs")
    fixed_avals = [a for a, n in zip(closed.in_avals, linear, strict=True) if not n]
    ct_avals = [a.to_ct_aval() for a in closed.out_avals]

    linear_avals = [a for a, n in zip(closed.in_avals, linear, strict=True) if n]

    def run(*values: Any) -> list[Any]:
        fixed, cts = values[: len(fixed_avals)], values[len(fixed_avals) :]

        def merged(*inputs: Any) -> list[Any]:
            variables, others = iter(inputs), iter(fixed)
            return eval_jaxpr(closed.jaxpr, closed.consts, *[next(variables if n else others) for n in linear])

        back = transpose_flat(LinearTrace(state.trace, closed), merged, linear_avals, cts, sum_of_two)
        return [zeros_of(a.to_ct_aval()) if ct is ZERO else ct for ct, a in zip(back, linear_avals, strict=True)]

    return stage_flat(closed, run, fixed_avals + ct_avals)
