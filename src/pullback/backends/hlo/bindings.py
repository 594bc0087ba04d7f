"""Lowering rules that use the Python bindings of MLIR in ``jaxlib``, instead of a ``Builder``.

The rule builds operations in a function of its own, whose text is added to the module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

from pullback.backends.compiler.client import mlir, mlir_context
from pullback.backends.hlo.builder import Builder, Value, tensor_type
from pullback.backends.hlo.module import Function
from pullback.core.errors import CustomRuleError
from pullback.core.source import describe_function
from pullback.core.trace import Primitive
from pullback.core.types import ShapedArray


class LoweringRuleContext:
    """The context that a lowering rule receives: the equation to lower, and the module.

    Args:
      primitive: the primitive of the equation.
      avals_in: the types of the operands, a sequence of ``ShapedArray``.
      avals_out: the types of the results.
      platform: the name of the target platform.
      callbacks: a list, to which rules append the Python functions that the module calls.

    Attributes:
      primitive: the primitive of the equation.
      avals_in: the types of the operands.
      avals_out: the types of the results.
      module_context: has ``platforms``, a tuple of the name of the target platform; ``callbacks``, the Python functions
        that the module calls and keeps alive; and ``add_keepalive``, which has no effect.

    >>> from pullback import core, jit
    >>> from pullback.interpreters import mlir
    >>> same_p = core.Primitive("same")
    >>> same = same_p.def_abstract_eval(lambda x: core.ShapedArray(x.shape, x.dtype))
    >>> def rule(ctx, x):
    ...     print(ctx.primitive, ctx.avals_in, ctx.module_context.platforms)
    ...     return [x]
    >>> mlir.register_lowering(same_p, rule)
    >>> _ = jit(same_p.bind).lower(1.0)
    same (ShapedArray(float32[]),) ('cpu',)
    """

    __slots__ = ("avals_in", "avals_out", "module_context", "primitive")

    def __init__(
        self,
        primitive: Primitive,
        avals_in: Sequence[ShapedArray],
        avals_out: Sequence[ShapedArray],
        platform: str,
        callbacks: list[Callable[..., Any]],
    ) -> None:
        self.primitive = primitive
        self.avals_in = tuple(avals_in)
        self.avals_out = tuple(avals_out)
        self.module_context = SimpleNamespace(
            platforms=(platform,), callbacks=callbacks, add_keepalive=lambda thing: None
        )


def write(
    hlo: Builder, primitive: Primitive, rule: Callable[..., Any], values: Sequence[Value], params: dict[str, Any]
) -> list[Value]:
    """Lower an operation by a rule that builds it with MLIR's bindings, and return the results.

    Args:
      hlo: the builder of the current function.
      primitive: the primitive.
      rule: ``rule(ctx, *operands, **params)`` returns an ``ir.Value`` for each result: one value, or a sequence.
      values: the operands.
      params: the parameters.

    Raises:
      CustomRuleError: the rule returned objects of other types (a TypeError).
    """
    expected = hlo.results
    platform = hlo.module.platform
    avals = [ShapedArray(v.shape, v.dtype) for v in values]
    context = LoweringRuleContext(primitive, avals, expected, platform, hlo.module.callbacks)
    name = hlo.module.unique(primitive.name)
    lines = _function(name, rule, context, [v.type for v in values], params)
    results = [(a.shape, a.dtype) for a in expected]
    function = Function(name, lines, results, [])
    hlo.module.functions.append(function)
    return hlo.call(function, values)


def _function(
    name: str, rule: Callable[..., Any], context: LoweringRuleContext, types: Sequence[str], params: dict[str, Any]
) -> list[str]:
    """Make an MLIR function whose body a lowering rule builds, and return the lines of the function's text.

    Args:
      name: the name of the function.
      rule: the rule.
      context: the context that the rule receives.
      types: the types of the function's parameters, which the rule receives as operands.
      params: the parameters of the primitive.
    """
    ir, func = mlir("ir"), mlir("dialects.func")
    with mlir_context(), ir.Location.unknown():
        operand_types = [ir.Type.parse(t) for t in types]
        owner = ir.Module.create()  # must live as long as the operations in it are used
        with ir.InsertionPoint(owner.body):
            function = func.FuncOp(name, (operand_types, []), visibility="private")
        block = function.add_entry_block()
        with ir.InsertionPoint(block):
            outs = _values(rule(context, *block.arguments, **params))
            _check(rule, context, outs)
            func.ReturnOp(outs)
        full = ir.FunctionType.get(operand_types, [v.type for v in outs])
        function.attributes["function_type"] = ir.TypeAttr.get(full)
        text: str = function.operation.get_asm(enable_debug_info=False)
    return text.splitlines()


def _values(returned: Any) -> list[Any]:
    """Flatten the result of a lowering rule to a list: it is a value, an operation, or a nested sequence of these."""
    if hasattr(returned, "results"):
        return list(returned.results)
    if isinstance(returned, Iterable) and not hasattr(returned, "type"):
        return [value for item in returned for value in _values(item)]
    return [returned]


def _check(rule: Callable[..., Any], context: LoweringRuleContext, outs: Sequence[Any]) -> None:
    expected = [tensor_type(a.shape, a.dtype) for a in context.avals_out]
    came = [str(getattr(v, "type", f"{v!r} of type {type(v).__name__}")) for v in outs]
    if came != expected:
        raise CustomRuleError(
            f"the lowering rule of the primitive {context.primitive.name!r}, {describe_function(rule)}, must return "
            f"values of the types ({', '.join(expected)}), as its abstract evaluation rule says, but returned "
            f"({', '.join(came)})"
        )
