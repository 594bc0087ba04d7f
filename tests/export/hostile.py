"""Programs that somebody forged, in files that are right otherwise. Run as a program, it reads and calls each.

It prints the name of each attack before it is made, and what came of it afterwards.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

from pullback import export, jit
from pullback.backends.compiler import client
from pullback.backends.compiler.backend import backend
from pullback.export import container

X = np.ones(3, "float32")
T = "tensor<3xf32>"
KIND = f"({T}) -> {T}"
END = f"return %r : {T}"


def main(*lines: str) -> str:
    return f"module {{ func.func public @main(%x: {T}) -> {T} {{\n" + "\n".join(lines) + "\n} }"


def foreign(target: str, config: str = "api_version = 4 : i32, backend_config = {index = 99999 : ui64}") -> str:
    return main(f"%r = stablehlo.custom_call @{target}(%x) {{{config}}} : ({T}) -> {T}", END)


def with_functions(last: str, *functions: str) -> str:
    call = [f"%r = call @{last}(%x) : ({T}) -> {T}", END]
    return "module {\n" + "\n".join(functions) + "\n" + main(*call).removeprefix("module {")


def function(name: str, *lines: str) -> str:
    return f"func.func private @{name}(%x: {T}) -> {T} {{\n" + "\n".join(lines) + "\n}"


def chain(count: int, calls: int) -> str:
    """Functions each of which calls the one before it, ``calls`` times."""
    found = [function("f0", f"%r = stablehlo.sine %x : {T}", END)]
    for i in range(1, count):
        names = ["%x", *(f"%r{k}" for k in range(calls))]
        lines = [f"{names[k + 1]} = call @f{i - 1}({names[k]}) : ({T}) -> {T}" for k in range(calls)]
        found.append(function(f"f{i}", *lines, f"return {names[-1]} : {T}"))
    return with_functions(f"f{count - 1}", *found)


def nested(depth: int) -> bytes:
    """A portable program with as many ``case`` operations within each other."""
    ir = client.mlir("ir")
    top = main(
        "%s = stablehlo.slice %x [0:1] : (tensor<3xf32>) -> tensor<1xf32>",
        "%q = stablehlo.reshape %s : (tensor<1xf32>) -> tensor<f32>",
        "%i = stablehlo.convert %q : (tensor<f32>) -> tensor<i32>",
        "%c = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>",
        f"%r = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> {T}",
        END,
    )
    with client.mlir_context(), ir.Location.unknown():
        module = ir.Module.parse(top)
        operations = list(module.body.operations[0].regions[0].blocks[0].operations)
        index, user = operations[2].results[0], operations[3].operation
        for _ in range(depth):
            case = ir.Operation.create("stablehlo.case", [index.type], [index], regions=1, ip=ir.InsertionPoint(user))
            user.operands[0] = case.results[0]
            block = case.regions[0].blocks.append()
            user = ir.Operation.create("stablehlo.return", [], [index], ip=ir.InsertionPoint(block))
        return client.library().jax.mlir.serialize_portable_artifact(module, "1.9.0")  # type: ignore[no-any-return]


TOKEN = "%t = stablehlo.create_token : !stablehlo.token"
LARGE = "tensor<4611686018427387904xi8>"
SMALL = [f"%r = stablehlo.convert %1 : (tensor<3xi8>) -> {T}", END]
ATTACKS: dict[str, tuple[Any, str]] = {
    "callback": (foreign("xla_ffi_python_cpu_callback"), "interprets a number in the program as a Python function"),
    "partitioned callback": (foreign("xla_ffi_partitioned_python_cpu_callback"), "as a Python function"),
    "inspection": (foreign("InspectSharding", "api_version = 1 : i32"), "as a Python function"),
    "partitioning": (foreign("CustomSPMDPartitioning", "api_version = 1 : i32"), "as a Python function"),
    "a function of the C library": (
        foreign("system", "api_version = 1 : i32"),
        "'system', which exported programs do not call",
    ),
    "a function of ours": (foreign("pullback_taken"), "'pullback_taken', which exported programs do not call"),
    "LAPACK on other shapes": (
        main(
            "%a = stablehlo.constant dense<1.0> : tensor<1000x1000xf32>",
            "%c:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a) {api_version = 4 : i32, backend_config = "
            "{uplo = 76 : ui8}} : (tensor<1000x1000xf32>) -> (tensor<1x1xf32>, tensor<i32>)",
            "%s = stablehlo.reshape %c#0 : (tensor<1x1xf32>) -> tensor<f32>",
            f"%r = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> {T}",
            END,
        ),
        "types that do not match",
    ),
    "infeed": (
        main(
            TOKEN,
            f'%r:2 = "stablehlo.infeed"(%t) {{infeed_config = ""}} : (!stablehlo.token) -> ({T}, !stablehlo.token)',
            f"return %r#0 : {T}",
        ),
        "operation stablehlo.infeed",
    ),
    "outfeed": (
        main(
            TOKEN,
            f'%r = "stablehlo.outfeed"(%x, %t) {{outfeed_config = ""}} : ({T}, !stablehlo.token) -> !stablehlo.token',
            f"return %x : {T}",
        ),
        "operation stablehlo.outfeed",
    ),
    "recv": (
        main(
            TOKEN,
            '%r:2 = "stablehlo.recv"(%t) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>, '
            f"is_host_transfer = true}} : (!stablehlo.token) -> ({T}, !stablehlo.token)",
            f"return %r#0 : {T}",
        ),
        "operation stablehlo.recv",
    ),
    "recursion": (
        with_functions("f", function("f", f"%r = call @f(%x) : ({T}) -> {T}", END)),
        "'f' of its program calls itself",
    ),
    "recursion by a composite": (
        with_functions("f", function("f", f'%r = stablehlo.composite "a.b" %x {{decomposition = @f}} : {KIND}', END)),
        "'f' of its program calls itself",
    ),
    "calls that double": (chain(60, 2), "too large or too deep"),
    "a long chain of calls": (chain(5_000, 1), "too large or too deep"),
    "deep regions": (lambda: nested(1_000), "too large or too deep"),
    "a large array": (
        main(
            f"%0 = stablehlo.iota dim = 0 : {LARGE}",
            f"%1 = stablehlo.slice %0 [0:3] : ({LARGE}) -> tensor<3xi8>",
            *SMALL,
        ),
        "bytes of memory",
    ),
    "a large array of a size that is computed": (
        main(
            "%n = stablehlo.constant dense<4611686018427387904> : tensor<1xi64>",
            "%0 = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi64>) -> tensor<?xi8>",
            "%1 = stablehlo.slice %0 [0:3] : (tensor<?xi8>) -> tensor<3xi8>",
            *SMALL,
        ),
        "bytes of memory",
    ),
    "a permutation over absent devices": (
        main(
            '%r = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 9], [7, 0]]> : '
            f"tensor<2x2xi64>}}> : ({T}) -> {T}",
            END,
        ),
        "a compiled program failed",
    ),
}
"""By name: the program as text, or a function that makes it portable; and what the error has to say."""


def forged(program: bytes, **changes: Any) -> bytes:
    """A file with another program, and with changes in the description; its checksum is right."""
    (description,) = json.loads(json.dumps([container._describe(export.export(jit(lambda x: x * 2))(X))]))
    text = json.dumps([{**description, "entries": ["main"], "length": len(program), **changes}]).encode()
    return container.sealed(len(text).to_bytes(8, "little") + text + program)


def portable(program: Any) -> bytes:
    return program() if callable(program) else backend().to_portable(program)  # type: ignore[no-any-return]


if __name__ == "__main__":
    for name in sys.argv[1:] or ATTACKS:
        print(name, end=": ", flush=True)
        data = forged(portable(ATTACKS[name][0]))
        try:
            print("returned", export.deserialize(data).call(X), flush=True)
        except Exception as error:
            print(type(error).__name__, str(error).replace("\n", " "), flush=True)
