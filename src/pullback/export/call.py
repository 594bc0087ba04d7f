"""The primitive that calls an exported function, whose program becomes part of the caller's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.backends.compiler.portable import call_portable
from pullback.control.scan import map as map_examples
from pullback.core import dtypes
from pullback.core.dims import any_symbolic, evaluated_shape, solve
from pullback.core.errors import ExportError
from pullback.core.lists import merge_lists, partition_list
from pullback.core.trace import Primitive
from pullback.core.types import MappedAxis, ShapedArray
from pullback.export.checks import DisabledSafetyCheck
from pullback.primitives.arrays.shapes import moveaxis
from pullback.primitives.rules import as_inferred, sharding_rule
from pullback.transforms.custom.custom_rules import custom_vjp
from pullback.transforms.functions.arguments import zero_cotangent

Exported = Any
"""A :class:`pullback.export.exported.Exported`; its module imports this one."""

_INDEX = np.dtype(np.int32)
call_exported_p = Primitive("call_exported", multiple_results=True, keeps_weak_type=False)
sharding_rule(call_exported_p)(as_inferred)  # the compiler shards the results


@call_exported_p.abstract_eval
def _abstract_eval(*avals: ShapedArray, exported: Exported) -> list[ShapedArray]:
    who = f"the exported {exported.fun_name}"
    sizes: list[tuple[str, Any]] = []
    actual: list[Any] = []
    for i, (expected, aval) in enumerate(zip(exported.in_avals, avals, strict=True)):
        symbolic = any_symbolic(expected.shape)
        fits = expected.ndim == aval.ndim if symbolic else expected.shape == aval.shape
        if not fits or expected.dtype != aval.dtype:
            raise ExportError(f"{who}: {exported._path(i)} must be {expected}, but is {aval}")
        if symbolic:
            sizes += [(f"{exported._path(i)}.shape[{k}]", n) for k, n in enumerate(expected.shape)]
            actual += aval.shape
    found = solve(sizes, actual, who)
    return [a.update(shape=evaluated_shape(a.shape, found)) for a in exported.out_avals]


@call_exported_p.lowering
def _lowering(hlo: Any, *operands: Any, exported: Exported) -> list[Any]:
    platform = hlo.module.platform
    if platform in exported.platforms:
        entry = exported.entries[exported.platforms.index(platform)]
    elif DisabledSafetyCheck.platform() in exported.disabled_safety_checks:
        entry = exported.entries[0]
    else:
        raise ExportError(
            f"the exported {exported.fun_name} was exported for {', '.join(exported.platforms)}, but it is called on "
            f"{platform}: export it again with platforms=[..., {platform!r}]"
        )
    used = [operands[i] for i in exported.module_kept_var_idx]
    if entry == "main" and len(exported.platforms) > 1:  # in JAX's format, main selects the platform
        used.insert(0, hlo.number(exported.platforms.index(platform) if platform in exported.platforms else 0, _INDEX))
    devices = (exported.fun_name, exported.nr_devices)
    program, trusted = exported.mlir_module_serialized, exported._trusted_targets
    return call_portable(hlo, program, entry, used, hlo.results, exported.out_avals, devices, trusted)


@call_exported_p.batch
def _batch(axis: MappedAxis, args: Sequence[Any], dims: Sequence[int | None], *, exported: Exported) -> Any:
    """Batching rule of a call of an exported program: call the program for each example in turn.

    The program itself cannot be batched, since only its lowered form is known. All results are batched along axis 0.
    """
    mapped = [d is not None for d in dims]
    rows = [moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True) if d is not None]
    fixed = partition_list(args, mapped)[0]
    outs = map_examples(lambda row: call_exported_p.bind(*merge_lists(mapped, fixed, row), exported=exported), rows)
    return outs, [0] * len(outs)


def differentiable(exported: Exported) -> Any:
    """A function of flat arrays that calls an exported function, with the exported derivatives."""
    found = exported.__dict__.get("_differentiable")
    if found is None:
        found = exported.__dict__["_differentiable"] = _with_rule(exported)
    return found


def _with_rule(exported: Exported) -> Any:
    def flat(*arrays: Any) -> list[Any]:
        return call_exported_p.bind(*arrays, exported=exported)  # type: ignore[no-any-return]

    def forward(*arrays: Any) -> tuple[Any, Any]:
        return function(*arrays), arrays  # the function with its rule, for higher derivatives

    def backward(arrays: Any, cts: list[Any]) -> tuple[Any, ...]:
        full = [
            ct if dtypes.is_inexact(a.dtype) else zero_cotangent(a.update(shape=ct.shape))
            for ct, a in zip(cts, exported.out_avals, strict=True)
        ]
        return exported.vjp().call(*arrays, *full)  # type: ignore[no-any-return]

    flat.__name__ = exported.fun_name
    function = custom_vjp(flat)
    function.defvjp(forward, backward)
    return function
