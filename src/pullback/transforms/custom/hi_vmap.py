"""A batch of applications of a user's operation, mapped rule by rule as its method ``batch_dim_rule`` says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import tree
from pullback.core.lists import scatter_where, select
from pullback.core.trace import state
from pullback.core.types import ZERO
from pullback.core.user_types import unmapped
from pullback.core.zeros import Zero, instantiate_zeros
from pullback.transforms.custom.hi_primitive import (
    GradAccum,
    ValAccum,
    VJPHiPrimitive,
    expanded,
    result_leaves,
)
from pullback.transforms.custom.hi_rules import (
    accumulators,
    by_jvp,
    linearized,
    out_dims,
    with_zeros,
)
from pullback.transforms.custom.linear_map import summed, with_batch_axis
from pullback.transforms.traces.batch import BatchTrace


@tree.register_static
class Mapped:
    """The tree of residuals, and the position of the mapped axis in each."""

    def __init__(self, treedef: Any, dims: Sequence[Any]) -> None:
        self.treedef, self.dims = treedef, tuple(dims)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapped) and (self.treedef, self.dims) == (other.treedef, other.dims)

    def __hash__(self) -> int:
        return hash((self.treedef, self.dims))


class VmapOf(VJPHiPrimitive):
    """A batch of applications of an operation.

    Attributes:
      prim: the operation on one example.
      axis_data: the mapped axis.
      in_dims, out_dim: the position of the mapped axis in each leaf of the arguments and of the results, or None.
    """

    prim: VJPHiPrimitive
    axis_data: Any
    in_dims: tuple[Any, ...]
    out_dim: tuple[Any, ...]

    def __init__(self, prim: VJPHiPrimitive, axis_data: Any, in_dims: Any, out_dim: Any) -> None:
        size = axis_data.size
        shape = tree.unflatten(prim.in_tree, [0] * prim.in_tree.num_leaves)
        dims_in = tuple(tree.broadcast_prefix(in_dims, shape, is_leaf=lambda x: x is None))
        dims_out = tuple(out_dims(prim, out_dim))
        avals = [unmapped(a, size, d) for a, d in zip(prim.in_avals_flat, dims_in, strict=True)]
        self.in_avals = tree.unflatten(prim.in_tree, avals)
        avals = [unmapped(a, size, d) for a, d in zip(prim.out_avals_flat, dims_out, strict=True)]
        self.out_aval = tree.unflatten(prim.out_tree, avals)
        self.params = {"prim": prim, "axis_data": axis_data, "in_dims": dims_in, "out_dim": dims_out}
        self.vjp_bwd_retval_logs = prim.vjp_bwd_retval_logs
        super().__init__()

    def has(self, method: str) -> bool:
        return self.prim.has(method)

    def _run(self, function: Callable[..., Any], args: Sequence[Any], dims: Sequence[Any]) -> tuple[BatchTrace, Any]:
        """Run a function of one example on a batch; return the trace, and the results with tracers of it."""
        trace = BatchTrace(state.trace, self.axis_data.mapped(), self.prim)
        return trace, trace.run(function, args, dims)

    def _results(self, trace: BatchTrace, xs: Sequence[Any]) -> Any:
        """Return a tree of the results, or their tangents, of a batch from those of an example."""
        return tree.unflatten(
            self.out_tree, [with_batch_axis(trace, x, d) for x, d in zip(xs, self.out_dim, strict=True)]
        )

    def _moving(self, tangents: Sequence[Any], dims: Sequence[Any]) -> tuple[list[bool], list[Any], list[Any]]:
        """Return which tangents (or cotangents) are not zero, these, and the mapped axis of each."""
        nonzero = [not isinstance(t, Zero) for t in tangents]
        return nonzero, select(tangents, nonzero), select(dims, nonzero)

    def expand(self, *args: Any) -> Any:
        return self._results(*self._run(lambda *xs: expanded(self.prim, xs), tree.leaves(args), self.in_dims))

    def jvp(self, primals: Any, tangents: Any) -> Any:
        xs, ts = tree.leaves(primals), tree.leaves(tangents, is_leaf=_is_zero)
        nonzero, moving, dims = self._moving(ts, self.in_dims)

        def example(*values: Any) -> Any:
            outs, out_ts = by_jvp(self.prim, values[: len(xs)], scatter_where(nonzero, values[len(xs) :], ZERO))
            return outs, self._dense(out_ts)

        trace, (outs, out_ts) = self._run(example, [*xs, *moving], [*self.in_dims, *dims])
        return self._results(trace, outs), self._results(trace, out_ts)

    def _dense(self, tangents: Sequence[Any]) -> list[Any]:
        """Replace ``ZERO`` among the tangents of the results of an example by zeros."""
        avals = self.prim.out_avals_flat
        return [
            instantiate_zeros(Zero(a.to_tangent_aval())) if t is ZERO else t
            for t, a in zip(tangents, avals, strict=True)
        ]

    def _forward(self, rule: Callable[..., Any], nzs_in: Any, args: Any) -> Any:
        """Apply a forward rule, ``vjp_fwd`` or ``lin``, of the operation on an example."""
        trees: list[Any] = []
        more: list[Any] = []

        def example(*xs: Any) -> Any:
            out, res, *rest = rule(nzs_in, *tree.unflatten(self.prim.in_tree, xs))
            more[:] = rest[:1]
            residuals, treedef = tree.flatten((res, *rest[1:]))
            trees[:] = [treedef]
            return result_leaves(self.prim, out, rule.__name__), residuals

        trace, (outs, residuals) = self._run(example, tree.leaves(args), self.in_dims)
        pairs = [trace.value_of(x) for x in residuals]
        return self._results(trace, outs), ([x for x, _ in pairs], Mapped(trees[0], [d for _, d in pairs])), *more

    def vjp_fwd(self, nzs_in: Any, /, *args: Any) -> Any:
        return self._forward(self.prim.vjp_fwd, nzs_in, args)

    def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: Any) -> Any:
        residuals, mapped = res
        accums = tree.leaves(arg_accums, is_leaf=lambda x: isinstance(x, GradAccum))
        wanted = [isinstance(a, ValAccum) for a in accums]
        nonzero, moving, dims = self._moving(tree.leaves(outgrad, is_leaf=_is_zero), self.out_dim)
        count = len(residuals)

        def example(*values: Any) -> Any:
            own = accumulators(self.prim, wanted)
            cts = scatter_where(nonzero, values[count:], ZERO)
            ct = with_zeros(self.prim.out_tree, cts, self.prim.out_avals_flat)
            resid = tree.unflatten(mapped.treedef, values[:count])
            logs = self.prim.vjp_bwd(*resid, ct, *tree.unflatten(self.prim.in_tree, own))
            return [a.value if isinstance(a, ValAccum) else ZERO for a in own], logs

        trace, (cts, logs) = self._run(example, [*residuals, *moving], [*mapped.dims, *dims])
        for accum, ct, d in zip(accums, cts, self.in_dims, strict=True):
            total = summed(trace, ct, d)
            if total is not ZERO:
                accum.accum(total)
        return None if logs is None else tree.tree_map(lambda x: with_batch_axis(trace, x, 0), logs)

    def lin(self, nzs_in: Any, *primals: Any) -> Any:
        return self._forward(self.prim.lin, nzs_in, primals)

    def linearized(self, residuals: Any, *tangents: Any) -> Any:
        values, mapped = residuals
        nonzero, moving, dims = self._moving(tree.leaves(tangents, is_leaf=_is_zero), self.in_dims)
        count = len(values)

        def example(*xs: Any) -> Any:
            res = tree.unflatten(mapped.treedef, xs[:count])
            return self._dense(linearized(self.prim, res, scatter_where(nonzero, xs[count:], ZERO)))

        return self._results(*self._run(example, [*values, *moving], [*mapped.dims, *dims]))

    def transpose(self, out_ct: Any, *maybe_accums: Any) -> None:
        args = tree.leaves(maybe_accums, is_leaf=lambda x: isinstance(x, GradAccum))
        linear = [isinstance(x, GradAccum) for x in args]
        fixed, fixed_dims = (select(xs, [not n for n in linear]) for xs in (args, self.in_dims))
        nonzero, moving, dims = self._moving(tree.leaves(out_ct, is_leaf=_is_zero), self.out_dim)
        count = len(fixed)

        def example(*values: Any) -> Any:
            rest = iter(values[:count])
            own = [ValAccum(a) if n else next(rest) for a, n in zip(self.prim.in_avals_flat, linear, strict=True)]
            cts = scatter_where(nonzero, values[count:], ZERO)
            ct = with_zeros(self.prim.out_tree, cts, self.prim.out_avals_flat)
            self.prim.transpose(ct, *tree.unflatten(self.prim.in_tree, own))
            return [a.value if n else ZERO for a, n in zip(own, linear, strict=True)]

        trace, cts = self._run(example, [*fixed, *moving], [*fixed_dims, *dims])
        for accum, ct, d, n in zip(args, cts, self.in_dims, linear, strict=True):
            total = summed(trace, ct, d)
            if n and total is not ZERO:
                accum.accum(total)

    def batch_dim_rule(self, axis_data: Any, dims: Any, /) -> Any:
        shape = tree.unflatten(self.in_tree, [0] * self.in_tree.num_leaves)
        flat = tree.broadcast_prefix(dims, shape, is_leaf=lambda x: x is None)
        inner = [d if d is None or e is None else d - (e < d) for d, e in zip(flat, self.in_dims, strict=True)]
        found = out_dims(self.prim, self.prim.batch_dim_rule(axis_data, tree.unflatten(self.prim.in_tree, inner)))
        outer = [d if d is None or e is None else d + (e <= d) for d, e in zip(found, self.out_dim, strict=True)]
        return tree.unflatten(self.out_tree, outer)


VJPHiPrimitive.vmap_of = VmapOf


def _is_zero(x: Any) -> bool:
    return isinstance(x, Zero)
