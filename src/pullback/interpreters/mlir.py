"""Lowering rules in JAX's older spelling: ``jax.interpreters.mlir``.

A rule is made by :func:`lower_fun`, or builds operations with the Python bindings of MLIR that come with ``jaxlib``:
``ir`` and ``hlo`` here are its modules for the structure of programs and for StableHLO.

>>> from pullback import core, jit
>>> from pullback.interpreters import mlir
>>> double_p = core.Primitive("double")
>>> double = double_p.def_abstract_eval(lambda x: core.ShapedArray(x.shape, x.dtype))
>>> mlir.register_lowering(double_p, mlir.lower_fun(lambda x: x + x, multiple_results=False))
>>> print(jit(double_p.bind)(2.0))
4.0
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.backends.compiler import client
from pullback.backends.hlo import bindings, foreign
from pullback.backends.hlo.bindings import LoweringRuleContext as LoweringRuleContext
from pullback.backends.hlo.builder import _nested, element_type, tensor_type
from pullback.backends.host.calls import target_on
from pullback.core import dtypes, rules
from pullback.core.errors import ArgumentError, CallbackError, CustomRuleError, MissingRuleError
from pullback.core.faces import face
from pullback.core.source import describe_function
from pullback.core.trace import Primitive, Rule
from pullback.core.types import ShapedArray

if TYPE_CHECKING:
    hlo: Any
    ir: Any


class LoweredFunction:
    """A lowering rule made from a function of other operations; see :func:`lower_fun`.

    Args:
      fun: ``fun(*operands, **params)``, of arrays, by operations of Pullback; returns a list of arrays, or one.
      multiple_results: whether it returns a list.

    >>> from pullback.interpreters.mlir import LoweredFunction
    >>> LoweredFunction(lambda x: x + x, multiple_results=False).multiple_results
    False
    """

    __slots__ = ("__wrapped__", "multiple_results")

    def __init__(self, fun: Callable[..., Any], multiple_results: bool) -> None:
        self.__wrapped__ = fun
        self.multiple_results = multiple_results

    def __call__(self, *args: Any, **params: Any) -> Any:
        raise CustomRuleError(
            f"the rule that lower_fun made of {describe_function(self.__wrapped__)} was called, but it can only be "
            f"registered with register_lowering. To build other operations too, write a rule with @p.lowering and "
            f"call hlo.inline(function, *operands) in it."
        )

    def write(self, hlo: Any, values: Any, params: dict[str, Any]) -> list[Any]:
        """Emit the operations of the function, and return its results."""
        out = hlo.inline(functools.partial(self.__wrapped__, **params), *values)
        if self.multiple_results and not isinstance(out, list):
            raise CustomRuleError(
                f"{describe_function(self.__wrapped__)} was passed to lower_fun with multiple_results=True, so it "
                f"must return a list of arrays, but returned one of type {ShapedArray(out.shape, out.dtype)}"
            )
        return out if isinstance(out, list) else [out]


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> LoweredFunction:
    """Make a rule for :func:`register_lowering` from a function of other operations.

    Args:
      fun: ``fun(*operands, **params)``, of arrays, by operations of Pullback; returns a list of arrays, or one.
      multiple_results: whether it returns a list.

    Returns:
      A rule, which :func:`register_lowering` takes.

    Raises:
      CustomRuleError: in use, if the function returns something else; or if the rule itself is called (a TypeError).

    >>> from pullback.interpreters import mlir
    >>> mlir.lower_fun(lambda x: x + x, multiple_results=False).multiple_results
    False
    """
    return LoweredFunction(fun, multiple_results)


_FAMILIES = {"gpu": ("cuda", "rocm")}


class _ByPlatform:
    """A lowering rule that calls the rule of the target platform; if there is none, the rule for all platforms."""

    __slots__ = ("primitive", "rules")

    def __init__(self, primitive: Primitive) -> None:
        self.primitive = primitive
        self.rules: dict[str | None, Rule] = {} if primitive.lowering_rule is None else {None: primitive.lowering_rule}

    def __call__(self, hlo: Any, *values: Any, **params: Any) -> Any:
        platform = hlo.module.platform
        rule = self.rules.get(platform) or self.rules.get(None)
        if rule is None:
            known = ", ".join(map(repr, self.rules))
            raise MissingRuleError(
                f"the primitive {self.primitive.name!r} has no lowering rule for {platform!r}, only for {known}; "
                "register one with mlir.register_lowering, without a platform for all others"
            )
        return rule(hlo, *values, **params)


def register_lowering(
    prim: Primitive, rule: Callable[..., Any], platform: str | None = None, inline: bool = True, cacheable: bool = True
) -> None:
    """Register the lowering rule of an operation.

    Args:
      prim: the operation.
      rule: from :func:`lower_fun`, or ``rule(ctx, *operands, **params)``, which takes ``ir.Value`` and returns one
        for each result, in a sequence.
      platform: the platform of the rule, ``"cpu"``, ``"cuda"``, ...; None for all platforms without their own rule.
      inline: is ignored, since the compiler decides about inlining; JAX has it.
      cacheable: is ignored; JAX has it.

    Raises:
      ArgumentError: the rule is not a function (a TypeError).
      CustomRuleError: in use, if the rule returns a wrong result (a TypeError).

    >>> from pullback import core, jit
    >>> from pullback.interpreters import mlir
    >>> double_p = core.Primitive("double")
    >>> double = double_p.def_abstract_eval(lambda x: core.ShapedArray(x.shape, x.dtype))
    >>> mlir.register_lowering(double_p, lambda ctx, x: [mlir.hlo.AddOp(x, x).result], platform="cpu")
    >>> print(jit(double_p.bind)(2.0))
    4.0
    """
    if not callable(rule):
        raise ArgumentError(f"register_lowering takes a function as the rule of {prim.name!r}, got {rule!r}")
    if not isinstance(prim.lowering_rule, _ByPlatform):
        prim.lowering_rule = _ByPlatform(prim)
    for name in _FAMILIES.get(platform or "", (platform,)):
        prim.lowering_rule.rules[name] = _as_ours(prim, rule)


def _as_ours(primitive: Primitive, rule: Callable[..., Any]) -> Rule:
    @functools.wraps(rule)
    def xla(hlo: Any, *values: Any, **params: Any) -> Any:
        if isinstance(rule, LoweredFunction):
            outs = rule.write(hlo, values, params)
        else:
            outs = bindings.write(hlo, primitive, rule, values, params)
        return outs if primitive.multiple_results or len(outs) != 1 else outs[0]

    return rules.checked_lowering(primitive, xla)


# Helpers for rules ----------------------------------------------------------------------------------------------------


def dtype_to_ir_type(dtype: Any) -> Any:
    """Return the ``ir.Type`` of an element, within a rule.

    Args:
      dtype: a dtype of arrays.

    Returns:
      An ``ir.Type``, such as ``f32``.

    Raises:
      DtypeError: arrays have no such dtype (a TypeError).
      RuntimeError: outside a rule, where there is no context of MLIR.

    >>> from pullback import core, jit
    >>> from pullback.interpreters import mlir
    >>> same_p = core.Primitive("same")
    >>> same = same_p.def_abstract_eval(lambda x: core.ShapedArray(x.shape, x.dtype))
    >>> def rule(ctx, x):
    ...     print(mlir.dtype_to_ir_type(ctx.avals_in[0].dtype))
    ...     return [x]
    >>> mlir.register_lowering(same_p, rule)
    >>> _ = jit(same_p.bind).lower(1.0)
    f32
    """
    return client.mlir("ir").Type.parse(element_type(dtypes.canonicalize_dtype(dtype)))


def aval_to_ir_type(aval: ShapedArray) -> Any:
    """Return the ``ir.Type`` of an array, within a rule.

    Args:
      aval: the type of an array, a ``ShapedArray``.

    Returns:
      An ``ir.Type``, such as ``tensor<2xf32>``.

    Raises:
      RuntimeError: outside a rule, where there is no context of MLIR.

    >>> from pullback import core, jit
    >>> from pullback.interpreters import mlir
    >>> same_p = core.Primitive("same")
    >>> same = same_p.def_abstract_eval(lambda x: core.ShapedArray(x.shape, x.dtype))
    >>> def rule(ctx, x):
    ...     print(mlir.aval_to_ir_type(ctx.avals_in[0]))
    ...     return [x]
    >>> mlir.register_lowering(same_p, rule)
    >>> _ = jit(same_p.bind).lower(1.0)
    tensor<f32>
    """
    return client.mlir("ir").Type.parse(tensor_type(aval.shape, aval.dtype))


def ir_constant(value: Any) -> Any:
    """Emit a NumPy array or a number as a constant ``ir.Value``, within a rule.

    Args:
      value: a NumPy array or a number.

    Returns:
      An ``ir.Value``.

    Raises:
      OperandError: ``value`` is neither an array nor a number (a TypeError).
      RuntimeError: outside a rule, where there is no context of MLIR.

    >>> from pullback import core, jit
    >>> from pullback.interpreters import mlir
    >>> five_p = core.Primitive("five")
    >>> five = five_p.def_abstract_eval(lambda: core.get_aval(5))
    >>> mlir.register_lowering(five_p, lambda ctx: [mlir.ir_constant(5)])
    >>> print(jit(five_p.bind)())
    5
    """
    (x,) = rules.as_operands([value])
    text = _nested(np.asarray(x)) if x.size else ""
    attribute = client.mlir("ir").Attribute.parse(f"dense<{text}> : {tensor_type(x.shape, x.dtype)}")
    return client.mlir("dialects.stablehlo").ConstantOp(attribute).result


def custom_call(
    call_target_name: str,
    *,
    result_types: Sequence[Any],
    operands: Sequence[Any],
    backend_config: str | bytes | dict[str, Any] = "",
    has_side_effect: bool = False,
    api_version: int = 2,
    extra_attributes: dict[str, Any] | None = None,
) -> Any:
    """Emit a call of a function that is registered with the runtime, within a rule.

    Args:
      call_target_name: the name of the function, as passed to ``ffi.register_ffi_target``.
      result_types: the ``ir.Type`` of each result.
      operands: the ``ir.Value`` of each operand.
      backend_config: further data for the function: a text, or for the typed interface a dictionary of
        ``ir.Attribute``.
      has_side_effect: whether the function has a side effect.
      api_version: the version of the calling convention, if ``backend_config`` is a text.
      extra_attributes: further attributes of the operation.

    Returns:
      The operation; its ``results`` are the values.

    Raises:
      RuntimeError: outside a rule, where there is no context of MLIR.

    >>> from pullback import core, jit
    >>> from pullback.interpreters import mlir
    >>> far_p = core.Primitive("far")
    >>> far = far_p.def_abstract_eval(lambda x: core.ShapedArray(x.shape, x.dtype))
    >>> mlir.register_lowering(
    ...     far_p, lambda ctx, x: mlir.custom_call("far_away", result_types=[x.type], operands=[x]).results
    ... )
    >>> "@far_away(%arg0)" in jit(far_p.bind).lower(1.0).as_text()
    True
    """
    ir = client.mlir("ir")
    if isinstance(backend_config, dict):
        config, api_version = {foreign.CONFIG: ir.DictAttr.get(backend_config)}, 1
    else:
        text = backend_config.decode() if isinstance(backend_config, bytes) else backend_config
        config = {"backend_config": ir.StringAttr.get(text)}
    attributes = {
        "call_target_name": ir.StringAttr.get(call_target_name),
        "has_side_effect": ir.BoolAttr.get(has_side_effect),
        "api_version": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), api_version),
        **config,
        **(extra_attributes or {}),
    }
    return ir.Operation.create(
        "stablehlo.custom_call", results=list(result_types), operands=list(operands), attributes=attributes
    )


def dense_int_array(values: Any) -> Any:
    """Return an attribute that is a list of integers, within a rule.

    Args:
      values: a sequence of integers.

    Returns:
      An ``ir.Attribute``.

    Raises:
      RuntimeError: outside a rule, where there is no context of MLIR.

    >>> from pullback import core, jit
    >>> from pullback.interpreters import mlir
    >>> same_p = core.Primitive("same")
    >>> same = same_p.def_abstract_eval(lambda x: core.ShapedArray(x.shape, x.dtype))
    >>> def rule(ctx, x):
    ...     print(mlir.dense_int_array([1, 2]))
    ...     return [x]
    >>> mlir.register_lowering(same_p, rule)
    >>> _ = jit(same_p.bind).lower(1.0)
    array<i64: 1, 2>
    """
    return client.mlir("ir").DenseI64ArrayAttr.get([int(n) for n in values])


def _host_function(callback: Callable[..., Any], kinds: Sequence[Any], types: Sequence[ShapedArray]) -> Any:
    """Wrap a Python callback so that compiled programs can call it.

    The callback gets copies of its operands, since the operands are views of memory that is freed after the call.
    """

    def call(*given: Any) -> tuple[Any, ...]:
        outs = [np.asarray(x) for x in callback(*(np.array(x).view(k) for x, k in zip(given, kinds, strict=True)))]
        found = [ShapedArray(x.shape, x.dtype) for x in outs]
        if [(a.shape, a.dtype) for a in found] != [(a.shape, a.dtype) for a in types]:
            raise CallbackError(
                f"the function {describe_function(callback)}, passed to emit_python_callback, must return "
                f"{', '.join(map(format, types))}, but returned {', '.join(map(format, found))}"
            )
        return tuple(outs)

    return call


def emit_python_callback(
    ctx: LoweringRuleContext,
    callback: Callable[..., Any],
    token: Any,
    operands: Sequence[Any],
    operand_avals: Sequence[ShapedArray],
    result_avals: Sequence[ShapedArray],
    *,
    has_side_effect: bool,
    returns_token: bool = True,
    partitioned: bool = False,
    sharding: Any = None,
) -> tuple[Sequence[Any], Any, Any]:
    """Emit a call of a Python function, within a rule. Equinox uses it for separately compiled functions.

    Args:
      ctx: the context of the rule.
      callback: takes an array of NumPy's for each operand, and returns a sequence of arrays.
      token: is returned unchanged; there are no tokens.
      operands: the ``ir.Value`` of each operand.
      operand_avals: their types.
      result_avals: the types of the results.
      has_side_effect: whether the function has a side effect.
      returns_token: is ignored, as the following are; JAX has them.
      partitioned: see above.
      sharding: see above.

    Returns:
      An ``ir.Value`` for each result; the token; None.

    Raises:
      RuntimeError: outside a rule, where there is no context of MLIR.

    >>> import numpy as np
    >>> from pullback import core, jit
    >>> from pullback.interpreters import mlir
    >>> sine_p = core.Primitive("sine")
    >>> sine = sine_p.def_abstract_eval(lambda x: core.ShapedArray(x.shape, x.dtype))
    >>> def rule(ctx, x):
    ...     return mlir.emit_python_callback(
    ...         ctx, lambda x: [np.sin(x)], None, [x], ctx.avals_in, ctx.avals_out, has_side_effect=False)[0]
    >>> mlir.register_lowering(sine_p, rule)
    >>> print(jit(sine_p.bind)(0.0))
    0.0
    """
    ir, calls = client.mlir("ir"), ctx.module_context.callbacks
    index = ir.IntegerAttr.get(ir.IntegerType.get_unsigned(64), len(calls))
    calls.append(_host_function(callback, [a.dtype for a in operand_avals], result_avals))
    out = client.mlir("dialects.stablehlo").CustomCallOp(
        [aval_to_ir_type(a) for a in result_avals],
        list(operands),
        call_target_name=target_on(ctx.module_context.platforms[0]),
        has_side_effect=has_side_effect,
        api_version=ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 4),
        backend_config=ir.DictAttr.get({"index": index}),
    )
    return list(out.results), token, None


__all__ = [
    "LoweredFunction", "LoweringRuleContext", "aval_to_ir_type", "custom_call", "dense_int_array", "dtype_to_ir_type",
    "emit_python_callback", "hlo", "ir", "ir_constant", "lower_fun", "register_lowering",
]  # fmt: skip
face(globals(), made={"hlo": lambda: client.mlir("dialects.stablehlo"), "ir": lambda: client.mlir("ir")})
