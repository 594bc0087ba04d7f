"""Split linear programs into their residuals and a hashable structure, and join these again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.core.array import SCALARS
from pullback.core.linear import LinearProgram, LinearVar
from pullback.core.types import ZERO

ProgramStructure = tuple[Any, ...]
"""A linear program without its residuals: hashable."""


def split(program: LinearProgram) -> tuple[list[Any], ProgramStructure]:
    """Return the residuals of a program, and its structure: all the rest, which is hashable.

    The residuals are the constant operands of the operations, except Python numbers.
    """
    residuals: list[Any] = []
    nodes = []
    for node in program.nodes:
        operands: list[Any] = []
        for x in node.args:
            if type(x) is LinearVar:
                operands.append((x.index,))
            elif type(x) in SCALARS:
                operands.append(x)
            else:
                operands.append(None)
                residuals.append(x)
        results = (node,) if node.results is None else tuple(node.results)
        nodes.append((
            node.primitive, tuple(operands), tuple(sorted(node.params.items())),
            tuple((v.index, v.aval) for v in results), node.results is not None, node.provenance,
        ))  # fmt: skip
    inputs = tuple((v.index, v.aval) for v in program.inputs)
    outputs = tuple(ZERO if v is ZERO else v.index for v in program.outputs)
    return residuals, (tuple(nodes), inputs, outputs, program.count)


def join(structure: ProgramStructure, residuals: Sequence[Any]) -> LinearProgram:
    """Return the program that has this structure and these residuals: the inverse of :func:`split`."""
    nodes, inputs, outputs, count = structure
    values = iter(residuals)
    variables: dict[int, LinearVar] = {i: LinearVar(i, None, (), {}, aval) for i, aval in inputs}
    built = []
    for primitive, operands, params, results, many, provenance in nodes:
        args = tuple(variables[x[0]] if type(x) is tuple else next(values) if x is None else x for x in operands)
        if many:
            outs = [LinearVar(i, None, (), {}, aval) for i, aval in results]
            built.append(LinearVar(-1, primitive, args, dict(params), None, outs))
        else:
            outs = [LinearVar(results[0][0], primitive, args, dict(params), results[0][1])]
            built.append(outs[0])
        built[-1].provenance = provenance
        variables.update((v.index, v) for v in outs)
    ends = [ZERO if i is ZERO else variables[i] for i in outputs]
    return LinearProgram(built, [variables[i] for i, _ in inputs], ends, count)
