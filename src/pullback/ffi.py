"""Calls of compiled functions in C, C++ or CUDA, by the typed interface of XLA.

A function is compiled against the headers in :func:`include_dir`, registered by :func:`register_ffi_target`, and called
by :func:`ffi_call`. Derivatives are those of ``custom_jvp`` or ``custom_vjp`` around the call. In rules for
``interpreters.mlir``, :func:`ffi_lowering` makes one that calls a function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pullback.backends.compiler import client
from pullback.backends.hlo import foreign
from pullback.backends.hlo.builder import tensor_type
from pullback.control.foreign_calls import (
    ffi_call,
    include_dir,
    pycapsule,
    register_ffi_target,
    register_ffi_target_as_batch_partitionable,
    register_ffi_type,
    register_ffi_type_id,
)
from pullback.core.errors import ForeignCallError
from pullback.core.faces import face
from pullback.lax.tokens import AbstractToken

abstract_token = AbstractToken()
"""The type of a token among the operands and results of foreign functions in JAX; :func:`ffi_call` takes none."""

__all__ = [
    "abstract_token", "build_ffi_lowering_function", "ffi_call", "ffi_lowering", "include_dir", "pycapsule",
    "register_ffi_target", "register_ffi_target_as_batch_partitionable", "register_ffi_type", "register_ffi_type_id",
]  # fmt: skip
face(globals())


def _orders(given: Sequence[Any] | None, avals: Sequence[Any], what: str, *, fastest_first: bool) -> Any:
    """Return the order of the axes of each array, the slowest first; ``given`` may list the fastest first."""
    entries = [None] * len(avals) if given is None else list(given)
    turned = [e[::-1] if fastest_first and e is not None else e for e in entries]
    return [foreign.major_to_minor(e, len(a.shape), what) for e, a in zip(turned, avals, strict=True)]


def _attributes(ir: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the values of attributes that are not of MLIR to such ones."""
    return {
        name: value if isinstance(value, ir.Attribute) else ir.Attribute.parse(foreign.Attribute(name, value).text)
        for name, value in values.items()
    }


def build_ffi_lowering_function(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., Any]:
    """Return a function that emits a call of a compiled function, for rules of ``interpreters.mlir``.

    Args:
      call_target_name: the name of the function.
      operand_layouts, result_layouts: for each operand or result the order of its axes, the slowest first.
      backend_config: attributes of every call, of MLIR or as :func:`ffi_call` takes them.
      skip_ffi_layout_processing: whether layouts list the fastest axis first.
      lowering_args: ``has_side_effect``, and ``operand_output_aliases``, a dictionary from operands to results.

    Returns:
      ``write(ctx, *operands, **attributes)``, which returns an operation of MLIR.

    Raises:
      ForeignCallError: another argument, or a text as ``backend_config`` (a TypeError and ValueError).

    >>> from pullback import core, ffi, jit
    >>> from pullback.interpreters import mlir
    >>> far_p = core.Primitive("far")
    >>> far = far_p.def_abstract_eval(lambda x: core.ShapedArray(x.shape, x.dtype))
    >>> write = ffi.build_ffi_lowering_function("far_away", backend_config={"scale": 2.0})
    >>> mlir.register_lowering(far_p, lambda ctx, x: write(ctx, x).results)
    >>> "backend_config = {scale = 2.000000e+00 : f64}" in jit(far_p.bind).lower(1.0).as_text()
    True
    """
    unknown = lowering_args.keys() - {"has_side_effect", "operand_output_aliases"}
    if unknown:
        raise ForeignCallError(f"build_ffi_lowering_function: unknown argument {', '.join(sorted(unknown))}")
    if isinstance(backend_config, str):
        raise ForeignCallError("build_ffi_lowering_function: backend_config must be a dictionary of attributes")

    orders = partial(_orders, fastest_first=skip_ffi_layout_processing)

    def write(ctx: Any, *operands: Any, **params: Any) -> Any:
        ir = client.mlir("ir")
        foreign.prepare(call_target_name)
        aliases = sorted(lowering_args.get("operand_output_aliases", {}).items())
        texts = {
            "api_version": "1 : i32",
            "has_side_effect": str(bool(lowering_args.get("has_side_effect", False))).lower(),
            "operand_layouts": f"[{foreign.layouts(orders(operand_layouts, ctx.avals_in, 'an operand'))}]",
            "result_layouts": f"[{foreign.layouts(orders(result_layouts, ctx.avals_out, 'a result'))}]",
        }
        if aliases:
            texts["output_operand_aliases"] = foreign.aliasing(aliases, len(ctx.avals_out)).partition(" = ")[2]
        attributes = {name: ir.Attribute.parse(text) for name, text in texts.items()}
        attributes["call_target_name"] = ir.StringAttr.get(call_target_name)
        attributes[foreign.CONFIG] = ir.DictAttr.get(_attributes(ir, {**(backend_config or {}), **params}))
        types = [ir.Type.parse(tensor_type(a.shape, a.dtype)) for a in ctx.avals_out]
        return ir.Operation.create("stablehlo.custom_call", types, list(operands), attributes)

    return write


def ffi_lowering(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., Any]:
    """Return a rule for ``interpreters.mlir.register_lowering`` that calls a compiled function.

    The parameters of the operation are its attributes.

    Args:
      call_target_name: the name of the function.
      operand_layouts, result_layouts: for each operand or result the order of its axes, the slowest first.
      backend_config: attributes of every call, of MLIR or as :func:`ffi_call` takes them.
      skip_ffi_layout_processing: whether layouts list the fastest axis first.
      lowering_args: ``has_side_effect``, and ``operand_output_aliases``, a dictionary from operands to results.

    Returns:
      A rule ``rule(ctx, *operands, **attributes)``, which returns a list of the results.

    Raises:
      ForeignCallError: another argument, or a text as ``backend_config`` (a TypeError and a ValueError).

    >>> from pullback import core, ffi, jit
    >>> from pullback.interpreters import mlir
    >>> far_p = core.Primitive("far")
    >>> far = far_p.def_abstract_eval(lambda x: core.ShapedArray(x.shape, x.dtype))
    >>> mlir.register_lowering(far_p, ffi.ffi_lowering("far_away"))
    >>> "@far_away(%arg0)" in jit(far_p.bind).lower(1.0).as_text()
    True
    """
    write = build_ffi_lowering_function(
        call_target_name,
        operand_layouts=operand_layouts,
        result_layouts=result_layouts,
        backend_config=backend_config,
        skip_ffi_layout_processing=skip_ffi_layout_processing,
        **lowering_args,
    )

    def rule(ctx: Any, *operands: Any, **params: Any) -> Any:
        return list(write(ctx, *operands, **params).results)

    return rule
