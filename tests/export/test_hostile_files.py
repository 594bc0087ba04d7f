"""Files that are damaged or forged: reading them raises ExportError, and their programs are checked when called."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
import pullback.scipy.linalg as jsl
from pullback import export, grad, jit, lax, tree_util
from pullback.backends.compiler.foreign_programs import ForeignCall, Operation, check
from pullback.backends.hlo import foreign
from pullback.core.errors import CompilationError, ExportError, PullbackError
from pullback.export import container
from tests.export import hostile
from tests.export.hostile import ATTACKS, X, forged
from tests.helpers import ROOT


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str]:
    """What came of each attack, in a process of its own, which some of them used to end."""
    command = [sys.executable, "-m", "tests.export.hostile"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    lines = (line.partition(": ") for line in done.stdout.splitlines())
    return {name: found or f"the process ended with {done.returncode}" for name, _, found in lines}


@pytest.mark.parametrize("name", ATTACKS)
def test_forged_programs_are_refused(outcomes: dict[str, str], name: str) -> None:
    found = outcomes.get(name, "an attack before this one ended the process")
    assert found.startswith(("ExportError", "ExecutionError")), found
    assert ATTACKS[name][1] in found


def description() -> Any:
    exported = export.export(jit(lambda x, *, y: {"a": x * y["k"], "b": [x, None]}))(X, y={"k": 2.0})
    rest = bytes(exported.serialize())[container._HEAD :]
    end = 8 + int.from_bytes(rest[:8], "little")
    return json.loads(rest[8:end]), rest[end:]


def written(entries: Any, programs: bytes) -> bytes:
    text = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    return container.sealed(len(text).to_bytes(8, "little") + text + programs)


VALUES: list[Any] = [..., None, True, -1, 2**80, 1.5, "", "x", [], {}, ["x"], [[]], [-1], [None]]


@pytest.mark.parametrize("key", description()[0][0])
@pytest.mark.parametrize(
    "value", [..., None, True, -1, 2**80, 1.5, "", "x", [], {}, ["x"], [[]], [-1], [None]], ids=repr
)
def test_damaged_descriptions_are_refused(key: str, value: Any) -> None:
    (entry,), program = description()
    if value is ...:
        del entry[key]
    else:
        entry[key] = value
    accepted = (key == "name" and isinstance(value, str)) or (value == [] and key in ("disabled_checks", "constraints"))
    accepted |= (key == "platforms" and value == ["x"]) or (key == "entries" and value == ["x"])
    try:
        read = export.deserialize(written([entry], program))
    except ExportError:
        assert not accepted
        return
    assert accepted or (key, value) == ("kept", [])
    if key in ("platforms", "entries", "kept"):
        with pytest.raises((ExportError, CompilationError)):
            read.call(X, y={"k": 2.0})


@pytest.mark.parametrize(
    "entries",
    [
        b"", b"\xff\xfe", b"[", b"{}", b"[1]", b"null", b"[{}]", b"[" * 100_000, b"[" * 500 + b"]" * 500, b"9" * 5000,
    ],
    ids=lambda x: repr(x[:8]),
)  # fmt: skip
def test_what_is_no_description_is_refused(entries: bytes) -> None:
    with pytest.raises(ExportError, match="deserialize"):
        export.deserialize(written(entries, description()[1]))


def test_parts_that_do_not_fit_together_are_refused() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"in_avals": [["float32", [3], False]]}, "their types and their shardings do not fit"),
        ({"in_avals": [["object", [3], False], ["float32", [], True]]}, "dtype 'object' is unknown"),
        ({"in_avals": [["float32", [-3], False], ["float32", [], True]]}, "a size of <lambda> is -3"),
        ({"in_avals": [["float32", ["b^999999999"], False], ["float32", [], True]]}, "a power from 0 to 64"),
        ({"in_avals": [["float32", ["(a+b+c+d+e)^64"], False], ["float32", [], True]]}, "too large"),
        ({"in_tree": ["tuple", [["leaf"], ["leaf"]]]}, "takes no arguments and keywords"),
        ({"in_tree": ["dict", ["a", "a"], [["leaf"], ["leaf"]]]}, "not as many keys as values"),
        ({"in_tree": ["tree", []]}, "a node of the kind 'tree'"),
        ({"platforms": ["cpu", "cpu"], "entries": ["main", "main"]}, "the platforms"),
        ({"kept": [1, 0]}, "or not in order"),
        ({"kept": [7]}, "none of its arguments"),
        ({"calling_convention": 8}, "version 8 of the calling convention"),
        ({"constraints": ["b >= "]}, "damaged"),
        ({"disabled_checks": ["foo"]}, "damaged"),
        ({"length": 10**9}, "the length of a program"),
        ({"length": 0}, "belong to no function"),
        ({"devices": 0}, "the number of devices"),
        ({"in_shardings": [[[["i", 4]], [["i"]]], None], "out_shardings": [None, None]}, "does not fit its array"),
    ]
    for changes, message in cases:
        (entry,), program = description()
        with pytest.raises(ExportError, match=message):
            export.deserialize(written([{**entry, **changes}], program))
    deep: Any = ["leaf"]
    for _ in range(3000):
        deep = ["tuple", [deep]]
    (entry,), program = description()
    text = json.dumps([{**entry, "in_tree": "deep"}]).replace('"deep"', '["tuple", [' * 3000 + '["leaf"]' + "]]" * 3000)
    with pytest.raises(ExportError, match="RecursionError"):
        export.deserialize(written(text.encode(), program))


def test_a_derivative_has_the_types_of_its_function() -> None:
    rest = bytes(export.export(jit(jnp.sin))(1.0).serialize(1))[container._HEAD :]
    end = 8 + int.from_bytes(rest[:8], "little")
    first, second = json.loads(rest[8:end])
    assert float(grad(export.deserialize(written([first, second], rest[end:])).call)(0.0)) == 1
    second["in_avals"][1] = ["float32", [2], False]
    with pytest.raises(ExportError, match="the derivative of sin is not of its types"):
        export.deserialize(written([first, second], rest[end:]))


def test_functions_of_users_nodes_may_fail() -> None:
    class Node:
        pass

    def fails(_: bytes) -> Any:
        raise OSError("no such thing")

    tree_util.register_pytree_node(Node, lambda _: ((), None), lambda *_: Node())
    export.register_pytree_node_serialization(
        Node, serialized_name="tests.failing", serialize_auxdata=lambda _: b"", deserialize_auxdata=fails
    )
    data = export.export(jit(lambda node: 1.0))(Node()).serialize()
    with pytest.raises(ExportError, match=r"a node 'tests.failing' cannot be built: OSError: no such thing"):
        export.deserialize(data)


def test_the_version_is_under_the_checksum_and_older_versions_are_read() -> None:
    good = bytes(export.export(jit(jnp.sin))(1.0).serialize())
    at = len(container.MARK)
    assert good[at] == 3
    for version in range(256):
        if version != 3:
            with pytest.raises(ExportError, match=r"checksum does not match|this release reads versions 1 to 3"):
                export.deserialize(good[:at] + bytes([version]) + good[at + 1 :])
    for version in (1, 2):  # whose checksum was that of the rest
        old = container.sealed(good[container._HEAD :], version)
        assert float(export.deserialize(old).call(0.0)) == 0
        damaged = old[:-1] + bytes([old[-1] ^ 1])
        with pytest.raises(ExportError, match="checksum does not match"):
            export.deserialize(damaged)


def test_the_entry_is_the_name_of_a_function() -> None:
    program = hostile.portable(hostile.main(f"return %x : {hostile.T}"))
    for entry in ("nothing", "main() : () -> ()\n", '"main"', ""):
        with pytest.raises(CompilationError, match="the program has no function"):
            export.deserialize(forged(program, entries=[entry])).call(X)
    two = hostile.portable(hostile.main(f"return %x : {hostile.T}").replace("main(%x", f"main(%y: {hostile.T}, %x"))
    with pytest.raises(CompilationError, match="takes 2 arrays, but is called with 1"):
        export.deserialize(forged(two)).call(X)


def test_functions_of_the_runtime_that_this_process_registered_are_called(monkeypatch: Any) -> None:
    """What the bytes say of disabled checks does not count: whoever reads them has not disabled any."""
    program = hostile.portable(hostile.foreign("my_kernel"))
    data = forged(program, disabled_checks=["custom_call:my_kernel"])
    with pytest.raises(ExportError, match=r"register it first with ffi.register_ffi_target\('my_kernel', ...\)"):
        export.deserialize(data).call(X)
    monkeypatch.setattr(foreign, "registered", {"my_kernel"})
    with pytest.raises(CompilationError, match="my_kernel"):  # which is not there
        export.deserialize(data).call(X)


def test_programs_in_files_of_the_format_of_jax_are_checked_too() -> None:
    forged_here = export.deserialize(forged(hostile.portable(ATTACKS["recursion"][0])))
    with pytest.raises(ExportError, match="'f' of its program calls itself"):
        export.deserialize(forged_here.serialize(format="jax")).call(X)


DECOMPOSITIONS = {
    "cholesky": jnp.linalg.cholesky, "inv": jnp.linalg.inv, "eigvals": jnp.linalg.eigvals, "fft2": jnp.fft.fft2,
    "eigh": lambda x: tuple(jnp.linalg.eigh(x)), "svdvals": jnp.linalg.svdvals, "qr": lambda x: tuple(jnp.linalg.qr(x)),
    "svd": lambda x: tuple(jnp.linalg.svd(x[..., :2], full_matrices=False)),
    "full svd": lambda x: tuple(jnp.linalg.svd(x[..., :2])),
    "complete qr": lambda x: jnp.linalg.qr(x[..., :1], "complete")[0],
    "pivots": lambda x: jsl.qr(x, pivoting=True), "hessenberg": jsl.hessenberg, "schur": jsl.schur,
    "solve": lambda x: jsl.solve_triangular(x, x[..., 0]), "right": lambda x: jsl.cho_solve((x, True), x),
    "tridiagonal": lambda x: lax.linalg.tridiagonal_solve(x[..., 0], x[..., 0] + 2, x[..., 0], x),
    "householder": lambda x: lax.linalg.householder_product(x, x[..., 0]),
}  # fmt: skip


@pytest.mark.parametrize("name", DECOMPOSITIONS)
def test_programs_with_functions_of_the_runtime_are_read(name: str) -> None:
    f = DECOMPOSITIONS[name]
    for shape, dtype in (((3, 3), "float32"), ((2, 2, 2), "complex64")):
        x = np.broadcast_to(np.eye(shape[-1], dtype=dtype), shape)
        try:
            exported = export.export(jit(f))(x)
        except (PullbackError, TypeError, ValueError):  # functions of one matrix only, or of real ones
            assert len(shape) == 3
            continue
        found, expected = (tree_util.tree_leaves(g(x)) for g in (export.deserialize(exported.serialize()).call, jit(f)))
        for got, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(got, wanted, atol=1e-6)


def test_sizes_are_bounded_by_the_memory_of_this_machine(monkeypatch: Any) -> None:
    monkeypatch.setattr("pullback.backends.compiler.foreign_programs.memory", lambda: 1000)
    for kind in ("tensor<16000xi8>", "tensor<?x2000xf64>", "tensor<0x5xf32>", "tensor<f32>", "!stablehlo.token"):
        check({"f": [Operation("stablehlo.add", 0, (kind,))]}, "f", ())
    for kind in ("tensor<16001xi8>", "tensor<?x2001xf64>", "tensor<1001x2xcomplex<f32>>", f"tensor<{'1x' * 1001}f32>"):
        with pytest.raises(ExportError, match=r"this machine has 1e.03 bytes of memory"):
            check({"f": [Operation("stablehlo.add", 0, (kind,))]}, "f", ())


def test_calls_that_are_allowed_pass() -> None:
    call = ForeignCall("my_kernel", ("tensor<f32>",), {})
    functions = {
        "": [Operation("sdy.mesh", 0, ())],
        "f": [Operation("func.call", 0, (), ("g",)), Operation("func.call", 0, (), ("g",))],
        "g": [Operation("stablehlo.custom_call", 0, ("tensor<f32>",), (), call)],
    }
    check(functions, "f", {"my_kernel"})
    with pytest.raises(ExportError, match="which exported programs do not call"):
        check(functions, "f", ())
