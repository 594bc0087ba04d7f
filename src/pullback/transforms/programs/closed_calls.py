"""The primitives ``call`` and ``closed_call``, of JAX's API: each evaluates the program that it holds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pullback.core.inlining import inlined
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, eval_jaxpr
from pullback.core.trace import Primitive
from pullback.core.types import MappedAxis, ShapedArray
from pullback.transforms.traces.batch import batch_flat
from pullback.transforms.traces.forward import jvp_flat
from pullback.transforms.traces.inlining import write_program


def register_call_rules(p: Primitive) -> Primitive:
    """Give a primitive of several results the rules of one that runs a program, its parameter ``call_jaxpr``.

    Evaluation, lowering and transformations apply to the equations of the program one by one. Return the primitive.
    """
    vars(p)["call_primitive"] = True  # what interpreters in JAX's spelling ask for

    @p.abstract_eval
    def types(*avals: ShapedArray, call_jaxpr: Jaxpr | ClosedJaxpr, **params: Any) -> list[ShapedArray]:
        return call_jaxpr.out_avals

    @p.decomposition
    def equations(*args: Any, call_jaxpr: Jaxpr | ClosedJaxpr, **params: Any) -> list[Any]:
        if isinstance(call_jaxpr, ClosedJaxpr):
            return eval_jaxpr(call_jaxpr.jaxpr, call_jaxpr.consts, *args)
        return eval_jaxpr(call_jaxpr, [], *args)

    @p.jvp
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        return jvp_flat(p, partial(equations, **params), primals, tangents)

    @p.batch
    def batch(axis: MappedAxis, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        return batch_flat(p, partial(equations, **params), axis, args, dims)

    @inlined(p)
    def program(call_jaxpr: Jaxpr | ClosedJaxpr, **params: Any) -> ClosedJaxpr:
        return call_jaxpr if isinstance(call_jaxpr, ClosedJaxpr) else ClosedJaxpr(call_jaxpr)

    p.lowering(lambda hlo, *operands, call_jaxpr, **params: write_program(hlo, program(call_jaxpr), operands))
    return p


call_p, closed_call_p = (
    register_call_rules(Primitive(name, multiple_results=True, keeps_weak_type=False))
    for name in ("call", "closed_call")
)
