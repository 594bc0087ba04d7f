"""The rules of ``call_hi_primitive``: each calls the method of the user's object, in the user's trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.core import tree
from pullback.core.array import typeof
from pullback.core.errors import CustomRuleError
from pullback.core.jaxpr import Eqn
from pullback.core.linear import LinearTrace, LinearTracer, LinearVar
from pullback.core.lists import scatter_where, select
from pullback.core.trace import state
from pullback.core.types import ZERO, MappedAxis, ShapedArray
from pullback.core.user_types import has_tangents
from pullback.core.zeros import Zero, instantiate_zeros
from pullback.primitives.elementwise import add_any
from pullback.primitives.rules import as_inferred, sharding_rule
from pullback.transforms.custom.closed_over import run_rule
from pullback.transforms.custom.hi_primitive import (
    AxisData,
    NullAccum,
    ValAccum,
    VJPHiPrimitive,
    call_hi_primitive_p,
    checked_cotangent,
    expanded,
    leaves_like,
    result_leaves,
)
from pullback.transforms.custom.linear_map import LinearMap, linear_p
from pullback.transforms.programs.jit_primitive import at_bottom
from pullback.transforms.programs.lojax import in_use, lowered
from pullback.transforms.traces.affine import checked_trace, refused_if_affine
from pullback.transforms.traces.backward_logs import log
from pullback.transforms.traces.inlining import write_program
from pullback.transforms.traces.stage import stage_flat

in_use.append(VJPHiPrimitive)
sharding_rule(call_hi_primitive_p)(as_inferred)  # the types of results are the user's
call_hi_primitive_p.abstract_eval(lambda *avals, _prim: _prim.out_avals_flat)
call_hi_primitive_p.impl(at_bottom(lambda args, params: expanded(params["_prim"], args)))
call_hi_primitive_p.decomposition(lambda *args, _prim: expanded(_prim, args))


@call_hi_primitive_p.lowering
def _lowering(hlo: Any, *operands: Any, _prim: VJPHiPrimitive) -> list[Any]:
    closed = stage_flat(_prim, lambda *xs: expanded(_prim, xs), hlo.avals(operands))
    return write_program(hlo, lowered(closed), operands)


# Differentiation ------------------------------------------------------------------------------------------------------


@call_hi_primitive_p.jvp
def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, _prim: VJPHiPrimitive) -> tuple[list[Any], list[Any]]:
    """Return the results and their tangents.

    Forward mode applies ``jvp``. Reverse mode applies the forward rule, and records a linear map that the backward rule
    transposes. A program that is being traced may serve for both modes, so that its linear map has the rules of both.
    """
    reverse = any(type(t) is LinearTracer for t in tangents)
    if not reverse and (state.trace.eager or not (_prim.has("vjp_fwd") or _prim.has("lin"))):
        return run_rule(_prim, by_jvp, _prim, primals, tangents)  # type: ignore[no-any-return]
    perturbed = tuple([t is not ZERO for t in tangents])
    # The residuals are a tuple, with the structured residuals as its second element if there are some.
    by_vjp = _prim.has("vjp_fwd") or not _prim.has("lin")
    outs, residuals, flags = _forward(_prim, primals, perturbed, by_vjp)
    res, res_tree = tree.flatten(residuals)
    more = list(primals) if by_vjp and (_prim.has("jvp") or _prim.has("lin")) else []
    linear_map = HiLinearMap(_prim, perturbed, flags, res_tree, len(res), by_vjp, len(more))
    results = linear_p.bind(*res, *more, *select(tangents, perturbed), linear_map=linear_map)
    return outs, scatter_where(flags, results, ZERO)


def by_jvp(prim: VJPHiPrimitive, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return the results and their tangents by the method ``jvp``; a tangent may be ``ZERO``."""
    pair = prim.jvp(tree.unflatten(prim.in_tree, primals), with_zeros(prim.in_tree, tangents, prim.in_avals_flat))
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise CustomRuleError(f"jvp of {prim!r} must return a pair (result, tangent), but returned {pair!r}")
    outs = result_leaves(prim, pair[0], "jvp")
    return outs, [
        checked_cotangent(t, typeof(x)) for x, t in zip(outs, leaves_like(prim, pair[1], prim.out_tree, "jvp"))
    ]


def with_zeros(treedef: Any, tangents: Sequence[Any], avals: Sequence[Any]) -> Any:
    """Make a tree of tangents or cotangents as users' rules take it: with a ``Zero`` for each ``ZERO``."""
    leaves = [Zero(a.to_tangent_aval()) if t is ZERO else t for t, a in zip(tangents, avals, strict=True)]
    return tree.unflatten(treedef, leaves)


def _forward(
    prim: VJPHiPrimitive, primals: Sequence[Any], perturbed: Sequence[bool], by_vjp: bool
) -> tuple[list[Any], Any, tuple[bool, ...]]:
    """Apply the forward rule: ``vjp_fwd`` if ``by_vjp``, else ``lin``.

    Return the results, the residuals, and flags of the results that have tangents. The current trace may be a tape.
    """
    rules = state.trace
    if isinstance(rules, LinearTrace):  # the rule has no tangents: skip the tape
        state.trace = rules.parent
    try:
        rule = prim.vjp_fwd if by_vjp else prim.lin
        returned = run_rule(prim, rule, tree.unflatten(prim.in_tree, perturbed), *tree.unflatten(prim.in_tree, primals))
    finally:
        state.trace = rules
    if not isinstance(returned, (tuple, list)) or len(returned) not in (2, 3, 4):
        raise CustomRuleError(f"{rule.__name__} of {prim!r} must return (result, residuals), but returned {returned!r}")
    if len(returned) == 4 and by_vjp and not prim.has("vjp_bwd"):
        raise CustomRuleError(
            f"vjp_fwd of {prim!r} returns structured residuals, its fourth result: its backward rule must be vjp_bwd, "
            "which takes them after the residuals, and not vjp_bwd_retval"
        )
    flags = tuple(map(has_tangents, prim.out_avals_flat))
    if len(returned) > 2 and returned[2] is not None:
        wanted = leaves_like(prim, returned[2], prim.out_tree, rule.__name__)
        flags = tuple([f and bool(w) for f, w in zip(flags, wanted, strict=True)])
    return result_leaves(prim, returned[0], rule.__name__), (returned[1], *returned[3:]), flags


class HiLinearMap(LinearMap):
    """The derivative of an application at a point, from the tangents of the perturbed operands.

    The residuals are those of the forward rule, followed by the primals if forward mode has a rule of its own.

    Attributes:
      prim: the operation.
      perturbed: whether each operand has a tangent.
      flags: whether each result has a tangent.
      res_tree, res_count: the tree and the number of the residuals of the forward rule.
      by_vjp: whether this rule was ``vjp_fwd``; otherwise it was ``lin``.
    """

    def __init__(
        self, prim: VJPHiPrimitive, perturbed: tuple[bool, ...], flags: tuple[bool, ...], res_tree: Any, res_count: int,
        by_vjp: bool, more: int,
    ) -> None:  # fmt: skip
        self.function = self.prim = prim
        self.is_high = True
        self.perturbed, self.flags, self.by_vjp = perturbed, flags, by_vjp
        self.res_tree, self.res_count, self.count = res_tree, res_count, res_count + more
        self.out_avals = [a.to_tangent_aval() for a in select(prim.out_avals_flat, flags)]

    @property
    def key(self) -> Any:
        return (self.prim, self.perturbed, self.flags, self.res_tree, self.by_vjp, self.count)

    @property
    def __name__(self) -> str:
        return type(self.prim).__name__

    def apply(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        prim, res = self.prim, tree.unflatten(self.res_tree, residuals[: self.res_count])
        primals = residuals[self.res_count :]
        spread = scatter_where(self.perturbed, tangents, ZERO)
        if self.by_vjp and prim.has("jvp"):
            return self._dense(by_jvp(prim, primals, spread)[1])
        if self.by_vjp:
            if not prim.has("lin"):
                prim.jvp((), ())  # which raises
            res = _forward(prim, primals, self.perturbed, False)[1]
        return self._dense(linearized(prim, res, spread))

    def _dense(self, tangents: Sequence[Any]) -> list[Any]:
        """Select the tangents of results that have some, and replace ``ZERO`` by zeros."""
        chosen = select(tangents, self.flags)
        return [instantiate_zeros(Zero(a)) if t is ZERO else t for t, a in zip(chosen, self.out_avals, strict=True)]

    def transpose(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        prim, res = self.prim, tree.unflatten(self.res_tree, residuals[: self.res_count])
        if not self.by_vjp:
            return transposed(prim, res, self.perturbed, cts, self.flags)
        accums = accumulators(prim, self.perturbed)
        outgrad = with_zeros(prim.out_tree, scatter_where(self.flags, cts, ZERO), prim.out_avals_flat)
        log(prim.vjp_bwd(*res, outgrad, *tree.unflatten(prim.in_tree, accums)), f"vjp_bwd of {prim!r}")
        return [a.value for a in accums if isinstance(a, ValAccum)]


def accumulators(prim: VJPHiPrimitive, perturbed: Sequence[bool]) -> list[Any]:
    """Return an accumulator for each operand, which ignores what is added unless the operand is perturbed."""
    return [ValAccum(a) if p else NullAccum(a) for a, p in zip(prim.in_avals_flat, perturbed, strict=True)]


def linearized(prim: VJPHiPrimitive, res: tuple[Any, ...], tangents: Sequence[Any]) -> list[Any]:
    """Return the tangents of the results by the method ``linearized``; a tangent may be ``ZERO``."""
    out = prim.linearized(*res, *with_zeros(prim.in_tree, tangents, prim.in_avals_flat))
    leaves = leaves_like(prim, out, prim.out_tree, "linearized")
    return [checked_cotangent(t, a) for t, a in zip(leaves, prim.out_avals_flat, strict=True)]


def transposed(
    prim: VJPHiPrimitive, res: tuple[Any, ...], perturbed: Sequence[bool], cts: Sequence[Any], flags: Sequence[bool]
) -> list[Any]:
    """Return the cotangents of the perturbed operands, by the transpose of ``linearized``.

    ``cts`` are the cotangents of the results that ``flags`` marks; they may be ``ZERO``.
    """

    def run(*tangents: Any) -> list[Any]:
        return select(linearized(prim, res, scatter_where(perturbed, tangents, ZERO)), flags)

    avals = [a.to_tangent_aval() for a in select(prim.in_avals_flat, perturbed)]
    _, program = refused_if_affine(checked_trace(prim), run, avals)
    return program.transpose(cts, add_any)


# Transposition of operations that are linear themselves ---------------------------------------------------------------


@call_hi_primitive_p.transpose
def _transpose(cts: Sequence[Any], *args: Any, _prim: VJPHiPrimitive) -> list[Any]:
    accums = [ValAccum(x.aval) if type(x) is LinearVar else x for x in args]
    out_ct = with_zeros(_prim.out_tree, cts, _prim.out_avals_flat)
    run_rule(_prim, _prim.transpose, out_ct, *tree.unflatten(_prim.in_tree, accums))
    return [a.value if isinstance(a, ValAccum) else None for a in accums]


@call_hi_primitive_p.record
def _record(trace: LinearTrace, args: Sequence[Any], params: dict[str, Any]) -> list[Any] | None:
    """Record an application on a tape: as a whole if it has a rule for transposition, otherwise what it consists of."""
    prim: VJPHiPrimitive = params["_prim"]
    avals = [*prim.in_avals_flat, *prim.out_avals_flat]
    if prim.has("transpose") or not all(isinstance(a, ShapedArray) for a in avals):
        return None
    return expanded(prim, args)


# Batching, and dead code ----------------------------------------------------------------------------------------------


@call_hi_primitive_p.batch
def _batch(
    axis: MappedAxis, args: Sequence[Any], dims: Sequence[Any], *, _prim: VJPHiPrimitive
) -> tuple[list[Any], list[Any]]:
    data = AxisData(axis.name, axis.size, axis.spmd_name)
    trees = [tree.unflatten(_prim.in_tree, x) for x in (args, dims)]
    pair = run_rule(_prim, _prim.batch, data, *trees)
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise CustomRuleError(f"batch of {_prim!r} must return a pair (result, mapped axes), but returned {pair!r}")
    outs, out_tree = tree.flatten(pair[0])
    if out_tree != _prim.out_tree:
        raise CustomRuleError(f"batch of {_prim!r} must return a result of the tree {_prim.out_tree}, not {out_tree}")
    return outs, out_dims(_prim, pair[1])


def out_dims(prim: VJPHiPrimitive, dims: Any) -> list[Any]:
    """Return how each result is mapped, from a tree, or a prefix of it, of positions, specs and None."""
    shape = tree.unflatten(prim.out_tree, [0] * prim.out_tree.num_leaves)
    return tree.broadcast_prefix(dims, shape, is_leaf=lambda x: x is None)


@call_hi_primitive_p.dce
def _dce(used: list[bool], eqn: Eqn) -> Eqn | None:
    """The rule for dead-code elimination: apply the operation that the method ``dce`` returns for the used results."""
    prim: VJPHiPrimitive = eqn.params["_prim"]
    if not prim.has("dce"):
        return eqn if any(used) else None
    used_in, kept, smaller = prim.dce(tree.unflatten(prim.out_tree, used))
    if smaller is None:
        return None
    inputs = tree.broadcast_prefix(used_in, tree.unflatten(prim.in_tree, [0] * prim.in_tree.num_leaves))
    results = tree.broadcast_prefix(kept, tree.unflatten(prim.out_tree, [0] * prim.out_tree.num_leaves))
    return eqn.like(select(eqn.invars, inputs), select(eqn.outvars, results), _prim=smaller)
