"""What programs for GPUs and TPUs call: the custom calls of each recorded case, without a GPU.

``python -m tests.recorded calls`` records those of JAX in ``calls.json``; ``tests/recorded/test_calls.py`` compares.
A call is a line of text: its target, what the function takes beside arrays, the layouts and types of operands and
results, the results that reuse the memory of operands, and how it is divided over devices.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tests.recorded.cases import FAMILIES, Case, leaves, quantities

PLATFORMS = ("cuda", "rocm", "tpu")
MODES = ("forward", "derivative", "batch")
FILE = Path(__file__).with_name("calls.json")
TARGETS_FILE = Path(__file__).with_name("targets.json")
"""The functions that JAX's plug-in for CUDA registers: ``python -m tests.recorded targets`` with the plug-in."""
MATRICES = ("decompositions", "scipy_linalg")
"""The families of which every kind of operand is taken; of the other families, one case of an operation."""


def stem(case: Case) -> str:
    """The name of a case without the numbers that tell it from others of its kind."""
    return re.sub(r"[\d.]+$|\(.*|\[.*", "", case.name).strip()


def _more() -> Iterator[Case]:
    """Cases of operations on square matrices that no family has."""
    operations: dict[str, Callable[..., Any]] = {
        "lax.cholesky": lambda lib, x: lib.lax.linalg.cholesky(x),
        "lax.lu": lambda lib, x: lib.lax.linalg.lu(x),
        "lax.svd by QR": lambda lib, x: lib.lax.linalg.svd(x, algorithm=lib.lax.linalg.SvdAlgorithm.QR),
        "numpy.cholesky": lambda lib, x: lib.numpy.linalg.cholesky(x),
        "numpy.det": lambda lib, x: lib.numpy.linalg.det(x),
        "numpy.slogdet": lambda lib, x: tuple(lib.numpy.linalg.slogdet(x)),
        "numpy.inv": lambda lib, x: lib.numpy.linalg.inv(x),
        "numpy.solve": lambda lib, x: lib.numpy.linalg.solve(x, x),
        "numpy.matrix_power": lambda lib, x: lib.numpy.linalg.matrix_power(x, -2),
    }
    for name, run in operations.items():
        for dtype in ("float64", "complex128"):
            yield Case(f"{name} {dtype}", run, (np.diag(np.arange(2.0, 6.0)).astype(dtype),), True)
    pivots = np.array([1, 1], np.int32)
    yield Case("lax.lu_pivots_to_permutation", lambda lib, p: lib.lax.linalg.lu_pivots_to_permutation(p, 3), (pivots,))


def selected() -> Iterator[tuple[str, Case]]:
    """The families and the cases whose calls are compared: one of each dtype, and of each rank, for matrices."""
    for case in _more():
        yield MATRICES[0], case
    for family in FAMILIES:
        if family in ("sparse", "stats"):  # JAX asks the plug-in about sparse matrices; the others are compositions
            continue
        seen = set()
        for case in import_module(f"tests.recorded.{family}").CASES:
            first = np.asarray(case.operands[0]) if case.operands else np.zeros(())
            kind = (stem(case), first.dtype.kind, first.ndim > 2) if family in MATRICES else (case.operation,)
            if kind not in seen:
                seen.add(kind)
                yield family, case


def functions(lib: Any, case: Case) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """By mode, a function of arrays to trace, and its arguments: the case, its gradient, and a batch of two."""
    forward = partial(case.run, lib)
    found: dict[str, Any] = {"forward": (forward, case.operands)}
    moving = [i for i, x in enumerate(case.operands) if np.asarray(x).dtype.kind in "fc"]
    if "gradient" in quantities(lib, case):

        def loss(*given: Any) -> Any:
            operands = list(case.operands)
            for i, x in zip(moving, given, strict=True):
                operands[i] = x
            inexact = [x for x in leaves(forward(*operands)) if x.dtype.kind in "fc"]
            return sum((lib.numpy.real(x) + lib.numpy.imag(x)).sum() for x in inexact)

        gradient = lib.grad(loss, tuple(range(len(moving))))
        found["derivative"] = gradient, tuple(case.operands[i] for i in moving)
    if case.operands:
        found["batch"] = lib.vmap(forward), tuple(np.stack([np.asarray(x)] * 2) for x in case.operands)
    return found


# Calls of programs ------------------------------------------------------------------------------------------------


def calls(module: Any) -> list[str]:
    """The custom calls of an MLIR module, sorted; equal ones are one."""
    found = set()

    def visit(operation: Any) -> None:
        if operation.name == "stablehlo.custom_call":
            found.add(_call(operation))
        for region in operation.regions:
            for block in region:
                for inner in block:
                    visit(inner.operation)

    visit(module.operation)
    return sorted(found)


def _call(operation: Any) -> str:
    attributes = {x.name: x.attr for x in operation.attributes} if _are_named(operation) else dict(operation.attributes)
    given = {name: str(value) for name, value in attributes.items()}
    target = given["call_target_name"].strip('"')
    config = given.get("mhlo.backend_config") or given.get("backend_config", "")
    config = "" if config in ('""', "{}") else config
    version = given.get("api_version", "1").split(" ")[0]
    typed = "mhlo.backend_config" in given or version == "4"
    layouts = [_plain(given.get(f"{side}_layouts", "")) for side in ("operand", "result")]
    types = [
        ", ".join(str(x.type).removeprefix("tensor") for x in side) for side in (operation.operands, operation.results)
    ]
    aliases = re.findall(
        r"output_tuple_indices = (\[\d*\]), operand_index = (\d+)", given.get("output_operand_aliases", "")
    )
    parts = [
        target, "typed" if typed else version, config, f"{layouts[0]} -> {layouts[1]}",
        " ".join(f"{operand}:{out}" for out, operand in aliases), given.get("mhlo.frontend_attributes", ""),
        given.get("sdy.sharding_rule", "").removeprefix("#sdy.op_sharding_rule"), f"({types[0]}) -> ({types[1]})",
    ]  # fmt: skip
    return " | ".join(parts)


def _are_named(operation: Any) -> bool:
    """Whether iterating over attributes gives objects with a name, as in older releases of the bindings."""
    return any(hasattr(x, "attr") for x in operation.attributes)


def _plain(layouts: str) -> str:
    return re.sub(r"dense<(.*?)> : tensor<\d+xindex>", r"\1", layouts)


def target_of(call: str) -> str:
    return call.partition(" | ")[0]


# The file ---------------------------------------------------------------------------------------------------------


def name_of(family: str, case: Case, mode: str, platform: str) -> str:
    return f"{family}/{case.name}/{mode}/{platform}"


def written(jax: str, found: dict[str, list[str] | str]) -> str:
    """The text of the file: a list of all calls, and for each program the positions of its calls, or an error."""
    every = sorted({call for value in found.values() if isinstance(value, list) for call in value})
    positions = {call: i for i, call in enumerate(every)}
    programs = {k: v if isinstance(v, str) else [positions[call] for call in v] for k, v in found.items()}
    lines = ",\n".join(json.dumps(call) for call in every)
    rows = ",\n".join(f"{json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in programs.items())
    return f'{{"jax": {json.dumps(jax)},\n"calls": [\n{lines}\n],\n"programs": {{\n{rows}\n}}}}\n'


def known() -> dict[str, list[str] | str]:
    """What JAX calls: for each program the calls, or the name of the error that JAX raised."""
    held = json.loads(FILE.read_text())
    every = held["calls"]
    return {k: v if isinstance(v, str) else [every[i] for i in v] for k, v in held["programs"].items()}
