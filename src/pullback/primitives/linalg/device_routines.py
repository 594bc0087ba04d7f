"""Calls of the linear algebra of other platforms than CPUs: cuSOLVER and cuSPARSE, their counterparts of ROCm, TPUs.

GPUs call functions that the plug-ins of the platforms register under the names that programs of JAX have, so that a
program means the same in both libraries. TPUs have functions of the compiler. An operation for which a platform has
no function is refused by :func:`refuse`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Never

import numpy as np

from pullback.core.dims import any_symbolic
from pullback.core.errors import MissingRuleError
from pullback.core.types import Shape

_LIBRARIES = {
    "cuda": {"solver": "cusolver", "sparse": "cusparse", "hybrid": "cuhybrid", "kernel": "cu"},
    "rocm": {"solver": "hipsolver", "sparse": "hipsparse", "hybrid": "hiphybrid", "kernel": "hip"},
}
"""By the platform, what the names of the functions begin with."""


def is_gpu(hlo: Any) -> bool:
    """Whether a program is for GPUs."""
    return hlo.module.platform in _LIBRARIES


def gpu_routine(
    hlo: Any,
    name: str,
    operands: Sequence[Any],
    results: Sequence[tuple[Shape, np.dtype[Any]]],
    aliases: Mapping[int, int] | None = None,
    *,
    batch: int,
    by_columns: bool = True,
    **options: bool | int | str,
) -> list[Any]:
    """Emit a call of a function that the plug-in of a GPU registers; return its results.

    Args:
      hlo: the builder.
      name: the name with the library in braces, such as ``{solver}_potrf_ffi``.
      operands: the operands; the function reads the sizes of matrices from their shapes.
      results: the shape and dtype of each result.
      aliases: the results that reuse the memory of operands: the index of the result by the index of the operand.
      batch: the number of leading axes that are batch axes, along which a program over several devices is divided.
      by_columns: whether arrays of as many axes as the widest operand hold matrices by columns.
      **options: what the function takes beside arrays; a number is one byte.
    """
    widest = max(len(x.shape) for x in operands) if by_columns else -1
    shapes = [[x.shape for x in operands], [shape for shape, _ in results]]
    layouts = [", ".join(_layout(len(shape), widest) for shape in side) for side in shapes]
    fields = [_aliases(aliases or {}, len(results)), f"operand_layouts = [{layouts[0]}]"]
    fields.append(f"result_layouts = [{layouts[1]}]")
    fields += division(shapes, batch)
    config = ", ".join(f"{option} = {_attribute(value)}" for option, value in sorted(options.items()))
    target = name.format_map(_LIBRARIES[hlo.module.platform])
    called: list[Any] = hlo.custom_call(target, operands, results, config, ", ".join(filter(None, fields)))
    return called


def _attribute(value: bool | int | str) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    return str(value).lower() if isinstance(value, bool) else f"{value} : ui8"


def _layout(rank: int, matrices: int) -> str:
    """Return the layout of an array of ``rank`` axes: by columns if it has ``matrices`` axes, and by rows otherwise."""
    order = list(range(rank))[::-1]
    if rank == matrices:
        order[:2] = order[1::-1]
    return f"dense<{order or ''}> : tensor<{rank}xindex>"


def _aliases(aliases: Mapping[int, int], results: int) -> str:
    rows = [
        f"#stablehlo.output_operand_alias<output_tuple_indices = {[out] if results > 1 else []}, "
        f"operand_index = {operand}, operand_tuple_indices = []>"
        for operand, out in aliases.items()
    ]
    return f"output_operand_aliases = [{', '.join(rows)}]" if rows else ""


def division(shapes: Sequence[Sequence[Shape]], batch: int) -> list[str]:
    """Return the attributes by which a call is divided among devices along its leading axes, without communication.

    Args:
      shapes: the shapes of the operands, and those of the results.
      batch: the number of leading axes that are batch axes. The function must be registered as divisible along them.

    Returns:
      The texts of two attributes; none for symbolic shapes.
    """
    if any(any_symbolic(shape) for shape in itertools.chain(*shapes)):
        return []
    rule = _sharding_rule(shapes, batch)
    return [f'mhlo.frontend_attributes = {{num_batch_dims = "{batch}"}}', f"sdy.sharding_rule = {rule}"]


def _sharding_rule(shapes: Sequence[Sequence[Shape]], batch: int) -> str:
    """Return the rule by which Shardy divides a call: along the batch axes, which all arrays share, and no others.

    Of one matrix of 4 by 3 in a batch of 2, and the vectors of its results: ``([i, j, k])->([i, l]) {i=2, ...}``.
    """
    names = _names()
    shared = list(itertools.islice(names, batch))
    sizes: dict[str, int] = {}
    sides = []
    for side in shapes:
        arrays = []
        for shape in side:
            factors = [*shared[: len(shape)], *itertools.islice(names, max(0, len(shape) - batch))]
            sizes.update(zip(factors, shape, strict=True))
            arrays.append(f"[{', '.join(factors)}]")
        sides.append(f"({', '.join(arrays)})")
    known = ", ".join(f"{factor}={size}" for factor, size in sizes.items())
    return f"#sdy.op_sharding_rule<{'->'.join(sides)} {{{known}}}, custom>"


def _names() -> Iterator[str]:
    """The names of factors in Shardy's text: i to z, then z_1, z_2 and so on."""
    yield from "ijklmnopqrstuvwxyz"
    yield from (f"z_{i}" for i in itertools.count(1))


# Functions of the compiler for TPUs ---------------------------------------------------------------------------------


def tpu_function(
    hlo: Any, target: str, operands: Sequence[Any], results: Sequence[tuple[Shape, np.dtype[Any]]], config: str = "",
    version: int = 1,
) -> list[Any]:  # fmt: skip
    """Emit a call of a function of the compiler for TPUs, such as ``Qr``.

    Args:
      hlo: the builder.
      target: the name of the function.
      operands: the operands.
      results: the shape and dtype of each result.
      config: the text that the function takes.
      version: the version of the interface by which the function is called.
    """
    attributes = f'call_target_name = "{target}", backend_config = "{config}", api_version = {version} : i32'
    called: list[Any] = hlo.multi_result("stablehlo.custom_call", operands, results, attributes)
    return called


# What a platform lacks ----------------------------------------------------------------------------------------------


def refuse(hlo: Any, operation: str, routine: str) -> Never:
    """Raise for an operation that a platform has no function for.

    Args:
      hlo: the builder.
      operation: the name of the operation.
      routine: the name of the routine of LAPACK that computes it on CPUs.

    Raises:
      MissingRuleError: always (a NotImplementedError).
    """
    equation, where = hlo.module.described(hlo.source_loc)
    user = "" if equation in ("", operation) else f", in {equation}"
    raise MissingRuleError(
        f"{operation}{user}{f' at {where}' if where else ''}: programs for {hlo.module.platform!r} cannot compute it, "
        f"since no library there has a routine like LAPACK's {routine}. Compute it on the CPU, in a program of its "
        f"own: f(device_put(x, 'cpu')) runs there, and its result can be moved back."
    )
