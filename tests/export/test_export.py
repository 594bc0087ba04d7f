"""Exported functions: written as bytes, read in this process and in others, called and transformed there."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import OrderedDict, namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import export, float0, grad, jit, lax, random, tree_util, vmap
from pullback.core.errors import ArgumentError, ExportError, MissingRuleError, UnsupportedExportError
from pullback.core.trace import Primitive
from pullback.export import container
from tests.helpers import ROOT

F = "float32"
X = np.arange(3.0, dtype=F)


def again(exported: Any, vjp_order: int = 0) -> Any:
    """What was exported, by way of bytes."""
    return export.deserialize(exported.serialize(vjp_order))


def sine(vjp_order: int) -> Any:
    return again(export.export(jit(jnp.sin))(1.0), vjp_order).call


def test_the_figures_of_an_exported_function() -> None:
    f = jit(lambda x, y, unused: {"a": x * 2.0 + y["k"], "n": None})
    exported = export.export(f)(1.0, {"k": X}, 3)
    for found in (exported, again(exported)):
        assert found.fun_name == "<lambda>"
        assert found.platforms == (export.default_export_platform(),) == ("cpu",)
        assert [str(a) for a in found.in_avals] == ["float32[]", "float32[3]", "int32[]"]
        assert [a.weak_type for a in found.in_avals] == [True, False, True]
        assert [str(a) for a in found.out_avals] == ["float32[3]"]
        assert found.in_tree == tree_util.tree_structure(((1, {"k": 1}, 1), {}))
        assert found.out_tree == tree_util.tree_structure({"a": 1, "n": None})
        assert found.module_kept_var_idx == (0, 1)
        assert found.nr_devices == 1
        assert not found.uses_global_constants
        assert found.in_shardings_hlo == (None, None, None)
        assert (found.ordered_effects, found.unordered_effects) == ((), ())
        oldest = export.minimum_supported_calling_convention_version
        assert oldest <= found.calling_convention_version <= export.maximum_supported_calling_convention_version
        out = found.call(1.0, {"k": X}, 3)
        np.testing.assert_array_equal(out["a"], X + 2)
        assert out["n"] is None
        assert "stablehlo.multiply" in found.mlir_module()
    assert exported.has_vjp()
    assert not again(exported).has_vjp()


def test_a_call_is_eager_compiled_mapped_and_in_loops() -> None:
    f = sine(0)
    for call in (f, jit(f)):
        np.testing.assert_allclose(call(0.5), np.sin(0.5), rtol=1e-6)
    np.testing.assert_allclose(jit(vmap(f))(X), np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(lax.scan(lambda c, x: (f(c) + f(x), c), 0.0, X)[0], _by_hand(), rtol=1e-6)
    both = again(export.export(jit(lambda x, y: x @ y))(np.eye(2, dtype=F), np.ones(2, F)))
    rows = np.arange(6.0, dtype=F).reshape(2, 3)
    mapped = vmap(both.call, (None, 1), 1)(2 * np.eye(2, dtype=F), rows)
    np.testing.assert_array_equal(mapped, 2 * rows)


def _by_hand() -> float:
    c = 0.0
    for x in X:
        c = np.sin(c) + np.sin(x)
    return c


def test_derivatives_are_those_that_were_written() -> None:
    f = sine(2)
    first, second = grad(f), grad(grad(f))
    for x in (0.3, 2.0):
        np.testing.assert_allclose(first(x), np.cos(x), rtol=1e-6)
        np.testing.assert_allclose(jit(second)(x), -np.sin(x), rtol=1e-6)
    np.testing.assert_allclose(vmap(second)(X), -np.sin(X), rtol=1e-6)
    with pytest.raises(ExportError, match="No VJP is available"):
        grad(second)(1.0)
    with pytest.raises(ValueError, match="has no derivative"):
        grad(sine(0))(1.0)
    with pytest.raises(ExportError, match="No VJP is available"):
        export.deserialize(export.export(jit(jnp.sin))(1.0).serialize()).serialize(vjp_order=1)
    np.testing.assert_allclose(grad(grad(grad(export.export(jit(jnp.sin))(1.0).call)))(1.0), -np.cos(1.0), rtol=1e-6)


def test_derivatives_of_integers_have_dtype_float0() -> None:
    exported = again(export.export(jit(lambda n, x: (n + 1, x * n)))(3, 2.0), 1)
    pull = exported.vjp()
    assert [a.dtype == float0 for a in pull.in_avals] == [False, False, True, False]
    assert [a.dtype == float0 for a in pull.out_avals] == [True, False]
    assert float(pull.call(3, 2.0, np.zeros((), float0), 1.0)[1]) == 3
    assert float(grad(lambda x: exported.call(3, x)[1])(2.0)) == 3


def test_rules_of_the_users_are_exported() -> None:
    @pullback.custom_vjp
    def f(x: Any) -> Any:
        return x * 2

    f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct * 3,))
    assert float(grad(again(export.export(jit(f))(1.0), 1).call)(1.0)) == 3


@pytest.mark.parametrize(
    "x",
    [
        jnp.bfloat16(2), np.array([True, False]), np.arange(3, dtype="uint8"), np.array([1 + 2j], "complex64"),
        jnp.array([1, -2], "int4"), jnp.array([1, 2], "float8_e4m3fn"), np.zeros((0, 2), F), 3, 2.5, True,
    ],
)  # fmt: skip
def test_dtypes_and_weak_types(x: Any) -> None:
    exported = again(export.export(jit(lambda x: (x, x[..., None] if jnp.ndim(x) else x)))(x))
    for out in exported.call(x):
        wanted = jnp.asarray(x)
        assert out.dtype == wanted.dtype
        np.testing.assert_array_equal(
            np.ravel(np.asarray(out).astype(complex)), np.ravel(np.asarray(wanted).astype(complex))
        )
    weak = pullback.typeof(jit(lambda x: x)(x)).weak_type
    assert exported.in_avals[0].weak_type == weak
    assert pullback.typeof(exported.call(x)[0]).weak_type == weak


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_random_keys(impl: str) -> None:
    key = random.key(3, impl=impl)
    exported = again(export.export(jit(lambda k: (random.uniform(k), random.split(k))))(key))
    number, keys = exported.call(key)
    np.testing.assert_array_equal(number, random.uniform(key))
    np.testing.assert_array_equal(random.key_data(keys), random.key_data(random.split(key)))


def test_captured_arrays_of_any_size_are_written() -> None:
    large = {
        "f": jnp.linspace(-1, 1, 1000, dtype=F), "i": jnp.arange(-50, 50), "b": jnp.arange(100) % 3 == 0,
        "c": jnp.arange(70) * (1 - 2j), "h": jnp.arange(80, dtype="bfloat16"), "k": random.split(random.key(0), 90),
    }  # fmt: skip
    found = again(export.export(jit(lambda x: (x, large)))(1.0)).call(1.0)[1]
    for name, array in large.items():
        assert found[name].dtype == array.dtype
        plain = random.key_data if name == "k" else lambda x: x.astype("complex64")
        np.testing.assert_array_equal(plain(found[name]), plain(array))


def test_static_arguments_are_bound_and_methods_are_exported() -> None:
    exported = again(export.export(jit(lambda n, x: x**n, static_argnums=0))(3, 2.0))
    assert float(exported.call(3.0)) == 27

    class Model:
        weight = 2.0

        @jit
        def times(self, x: Any) -> Any:
            return self.weight * x

    tree_util.register_static(Model)
    model = Model()
    method = export.export(model.times)(1.0)
    assert float(method.call(model, 4.0)) == 8
    with pytest.raises(ExportError, match="not registered for export"):
        method.serialize()


def test_exported_functions_call_exported_functions() -> None:
    inner = again(export.export(jit(jnp.sin))(1.0), 1)
    outer = again(export.export(jit(lambda x: inner.call(x) + inner.call(2 * x)))(1.0), 1)
    np.testing.assert_allclose(outer.call(0.7), np.sin(0.7) + np.sin(1.4), rtol=1e-6)
    np.testing.assert_allclose(grad(outer.call)(0.7), np.cos(0.7) + 2 * np.cos(1.4), rtol=1e-6)


# Trees ----------------------------------------------------------------------------------------------------------------

Pair = export.register_namedtuple_serialization(namedtuple("Pair", "left right"), serialized_name="tests.Pair")
Unregistered = namedtuple("Unregistered", "x")


class Labelled:
    def __init__(self, label: str, value: Any) -> None:
        self.label, self.value = label, value


tree_util.register_pytree_node(Labelled, lambda n: ((n.value,), n.label), lambda label, c: Labelled(label, *c))
export.register_pytree_node_serialization(
    Labelled, serialized_name="tests.Labelled", serialize_auxdata=str.encode, deserialize_auxdata=bytes.decode
)

TREES = [
    {"b": 1.0, "a": (2.0, [3.0, None])},
    [],
    (),
    None,
    Pair(1.0, {"x": 2.0}),
    Labelled("blue", [1.0, Labelled("ä", 2.0)]),
    OrderedDict(b=1.0, a=2.0),
]


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: type(tree).__name__)
def test_trees(tree: Any) -> None:
    exported = again(export.export(jit(lambda t, *, u: (u, t)))(tree, u=tree))
    out = exported.call(tree, u=tree)
    assert tree_util.tree_structure(out) == tree_util.tree_structure((tree, tree))
    assert tree_util.tree_leaves(out) == tree_util.tree_leaves((tree, tree))


def test_trees_that_cannot_be_written() -> None:
    for tree in (Unregistered(1.0), {1: 2.0}):
        exported = export.export(jit(lambda t: 0.0))(tree)
        with pytest.raises(ExportError, match=r"not registered|must be strings") as caught:
            exported.serialize()
        assert isinstance(caught.value, (TypeError, ValueError))
        assert float(exported.call(tree)) == 0  # without bytes it works


def test_registrations_are_checked() -> None:
    with pytest.raises(ArgumentError, match=r"already registered for export, as 'tests.Pair'"):
        export.register_namedtuple_serialization(Pair, serialized_name="tests.Other")
    with pytest.raises(ArgumentError, match="is already the name of a class"):
        export.register_namedtuple_serialization(Unregistered, serialized_name="tests.Pair")
    with pytest.raises(ArgumentError, match="not a class of named tuples"):
        export.register_namedtuple_serialization(tuple, serialized_name="tests.tuple")
    with pytest.raises(ArgumentError, match="not registered as a node"):
        export.register_pytree_node_serialization(
            object, serialized_name="o", serialize_auxdata=bytes, deserialize_auxdata=bytes
        )


# Bytes ----------------------------------------------------------------------------------------------------------------


def test_another_process_calls_what_was_written(tmp_path: Any) -> None:
    weights = jnp.linspace(0, 1, 100, dtype=F)

    def loss(p: Any, key: Any) -> Any:
        noise = random.normal(key, (100,))
        return {"loss": (jnp.tanh(weights * p.left + noise) ** 2).sum() + p.right["b"], "none": None}

    point, key = Pair(jnp.float32(0.5), {"b": jnp.float32(2.0)}), random.key(1)
    exported = export.export(jit(loss))(point, key)
    (tmp_path / "loss").write_bytes(exported.serialize(vjp_order=1))
    program = f"""
import sys
from collections import namedtuple
import pullback, pullback.numpy as jnp
from pullback import export, random
Couple = export.register_namedtuple_serialization(namedtuple("Couple", "left right"), serialized_name="tests.Pair")
f = export.deserialize(open({str(tmp_path / "loss")!r}, "rb").read())
p = Couple(jnp.float32(0.5), {{"b": jnp.float32(2.0)}})
g = pullback.grad(lambda p: f.call(p, random.key(1))["loss"])(p)
print(float(f.call(p, random.key(1))["loss"]), float(g.left), float(g.right["b"]), "jax" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=100)
    value, left, right, has_jax = done.stdout.split()
    slope = grad(lambda p: loss(p, key)["loss"])(point)
    np.testing.assert_allclose(
        [float(value), float(left), float(right)], [loss(point, key)["loss"], slope.left, 1], rtol=1e-5
    )
    assert has_jax == "False"


def test_damaged_bytes_are_refused() -> None:
    good = bytes(export.export(jit(jnp.sin))(1.0).serialize())
    version = len(container.MARK)
    cases = [
        (b"", "not a function exported"),
        (b"something else", "not a function exported"),
        (good[:20], "truncated"),
        (good[: len(good) // 2], "truncated"),
        (good[:-1], "truncated"),
        (good + b"x", "checksum does not match"),
        (good[:-9] + bytes([good[-9] ^ 1]) + good[-8:], "checksum does not match"),
        (good[:version] + b"\x07" + good[version + 1 :], "version 7 of the format"),
        (3, "expected bytes, got int"),
    ]
    for data, message in cases:
        with pytest.raises(ExportError, match=message):
            export.deserialize(data)
    assert float(export.deserialize(memoryview(good)).call(0.0)) == 0


def test_names_that_are_not_registered_where_bytes_are_read(monkeypatch: Any) -> None:
    data = export.export(jit(lambda p: p.left))(Pair(1.0, 2.0)).serialize()
    monkeypatch.delitem(export.structures._by_name, "tests.Pair")
    with pytest.raises(ExportError, match=r"nodes named 'tests.Pair', but no class is registered"):
        export.deserialize(data)
    other = namedtuple("other", "left up")
    monkeypatch.setattr(export.structures, "_by_class", {})
    monkeypatch.setattr(export.structures, "_by_name", {})
    export.register_namedtuple_serialization(other, serialized_name="tests.Pair")
    with pytest.raises(ExportError, match=r"had the fields \(left,right\) when it was exported, but other has"):
        export.deserialize(data)


# Platforms and refusals -----------------------------------------------------------------------------------------------


def test_several_platforms_share_a_program_if_they_can() -> None:
    same = export.export(jit(jnp.sin), platforms=("cpu", "cuda"))(1.0)
    assert same.uses_global_constants
    assert "stablehlo.case" not in same.mlir_module()
    other = export.export(jit(jnp.linalg.cholesky), platforms=["cuda", "cpu"])(np.eye(3, dtype=F))
    text = other.mlir_module()
    assert "stablehlo.case" in text
    assert "lapack_spotrf_ffi" in text
    assert "cusolver_potrf_ffi" in text
    for found in (same, other):
        main = found.mlir_module().split("@main(")[1]
        assert main.startswith("%arg0: tensor<i32>, %arg1")
    np.testing.assert_allclose(again(other, 1).call(4 * np.eye(3, dtype=F)), 2 * np.eye(3))
    dependent = jit(lambda x: lax.platform_dependent(x, cpu=lambda x: x + 1, cuda=lambda x: x - 1))
    exported = again(export.export(dependent, platforms=("cuda", "cpu"))(1.0))
    assert float(exported.call(1.0)) == 2


def test_platforms_are_checked() -> None:
    elsewhere = export.export(jit(jnp.sin), platforms=["cuda"])(1.0)
    with pytest.raises(ValueError, match="exported for cuda, but it is called on cpu"):
        elsewhere.call(1.0)
    off = export.DisabledSafetyCheck.platform()
    anywhere = again(export.export(jit(jnp.sin), platforms=["cuda"], disabled_checks=[off])(1.0))
    np.testing.assert_allclose(anywhere.call(1.0), np.sin(1.0), rtol=1e-6)
    assert anywhere.disabled_safety_checks == (off,)
    for platforms in (["moon"], ["cpu", "cpu"]):
        with pytest.raises(ExportError, match="different names among 'cpu', 'cuda'"):
            export.export(jit(jnp.sin), platforms=platforms)


def test_what_cannot_be_exported() -> None:
    call = jit(lambda x: pullback.pure_callback(np.sin, x, x))
    line = call.__wrapped__.__code__.co_firstlineno
    with pytest.raises(NotImplementedError, match=rf"sin, by pure_callback at \S*test_export.py:{line} \(<lambda>\)"):
        export.export(call)(X)

    def printed(x: Any) -> Any:
        pullback.debug.print("{}", x)
        return lax.fori_loop(0, 3, lambda _, y: pullback.experimental.io_callback(np.cos, y, y), x)

    calls = r"^export: printed .*print, by debug_callback at .*; cos, by io_callback at .*test_export.py"
    with pytest.raises(UnsupportedExportError, match=calls):
        export.export(jit(printed))(X)
    cell = pullback.new_ref(0.0)
    with pytest.raises(UnsupportedExportError, match="export of <lambda>: it uses references"):
        export.export(jit(lambda x: cell[...] + x))(X)
    with pytest.raises(ValueError, match=r"takes a function that jit returned, got .*: write export\(jit\(f\)\)"):
        export.export(lambda x: jnp.sin(x))
    with pytest.raises(ArgumentError, match="disabled_checks must be a list of DisabledSafetyCheck, got 'platform'"):
        export.export(jit(jnp.sin), disabled_checks=["platform"])
    with pytest.raises(ArgumentError, match="vjp_order must be a non-negative int"):
        export.export(jit(jnp.sin))(1.0).serialize(-1)


def test_a_mesh_of_one_device_is_one_device() -> None:
    mesh = pullback.make_mesh((1,), ("i",))
    rows = pullback.NamedSharding(mesh, pullback.P("i"))
    for found in (exported := export.export(jit(jnp.sin, in_shardings=rows))(X), again(exported, 1)):
        assert found.nr_devices == 1
        assert found.in_shardings_jax(mesh) == (rows,)
        assert found.out_shardings_jax(mesh) == (None,)
        np.testing.assert_allclose(found.call(X), np.sin(X), rtol=1e-6)
    with pytest.raises(ExportError, match="need a mesh, got None"):
        exported.in_shardings_jax(None)


DEVICES = """
import numpy as np
import pullback
from pullback import P, export, jit
from pullback.sharding import AbstractMesh, NamedSharding
pullback.config.update("num_cpu_devices", 2)
x = np.arange(4, dtype="float32")
rows = NamedSharding(AbstractMesh((2,), "i"), P("i"))
exported = export.export(jit(lambda x: x * x.sum(), in_shardings=rows, out_shardings=rows))(x)
data = exported.serialize()
found = export.deserialize(data)
mesh = pullback.make_mesh((2,), "j")
out = found.call(pullback.device_put(x, found.in_shardings_jax(mesh)[0]))
assert out.tolist() == [0, 6, 12, 18] and out.sharding.spec == P("j")
try:
    found.call(x)
except ValueError as error:
    print(data[15], found.nr_devices, error)
"""


def test_functions_over_two_devices() -> None:
    """The cases are in ``tests/spmd/cases_export.py``."""
    done = subprocess.run([sys.executable, "-c", DEVICES], capture_output=True, text=True, check=True, timeout=100)
    assert done.stdout.startswith(
        "3 2 the exported <lambda> was exported for 2 devices and is called in a context with 1"
    )


def test_functions_of_the_runtime_have_to_be_known() -> None:
    p = Primitive("foreign")
    p.abstract_eval(lambda x: x)
    p.lowering(lambda hlo, x: hlo.custom_call("my_kernel", [x], [(x.shape, x.dtype)])[0])
    with pytest.raises(UnsupportedExportError, match=r"DisabledSafetyCheck.custom_call\('my_kernel'\)"):
        export.export(jit(p.bind))(X)
    allowed = export.DisabledSafetyCheck.custom_call("my_kernel")
    assert allowed.is_custom_call() == "my_kernel"
    exported = again(export.export(jit(p.bind), disabled_checks=[allowed])(X))
    assert "my_kernel" in exported.mlir_module()


def test_the_page_runs() -> None:
    page = ROOT / "docs" / "export.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert len(blocks) == 4
    exec(compile("\n".join(blocks), str(page), "exec"), {"__name__": "page"})


def test_arguments_are_checked() -> None:
    exported = export.export(jit(lambda x, *, y: x + y["k"]))(1.0, y={"k": X})
    cases = [
        ((1.0,), {"y": {"k": X[:2]}}, r"kwargs\['y'\]\['k'\] must be f32\[3\], but is f32\[2\]"),
        ((1,), {"y": {"k": X}}, r"args\[0\] must be f32\[\], but is i32\[\]"),
        ((1.0,), {"y": {"z": X}}, "takes arguments with the tree"),
        (("a",), {"y": {"k": X}}, r"args\[0\]: expected an array or a number"),
    ]
    for args, kwargs, message in cases:
        for call in (exported.call, jit(exported.call) if args != ("a",) else exported.call):
            with pytest.raises((ExportError, TypeError), match=message):
                call(*args, **kwargs)


def test_forward_mode_is_refused() -> None:
    with pytest.raises((ExportError, MissingRuleError, TypeError)):
        pullback.jvp(sine(1), (1.0,), (1.0,))


@pytest.mark.parametrize("text", ["custom_call", "custom_call:", "foo:bar", "platform:cpu", ""])
def test_checks_that_there_are_not(text: str) -> None:
    with pytest.raises(ArgumentError, match=r"use DisabledSafetyCheck.platform\(\) or .custom_call\(name\)"):
        export.DisabledSafetyCheck(text)


def test_sizes_of_a_file_are_numbers_in_a_process_that_made_none(tmp_path: Path) -> None:
    shape = export.symbolic_shape("b, 2")
    exported = export.export(jit(lambda x: x * 2))(pullback.ShapeDtypeStruct(shape, "float32"))
    (tmp_path / "exported").write_bytes(exported.serialize())
    code = """
import sys
import pullback
from pullback import export
read = export.deserialize(bytearray(open(sys.argv[1], "rb").read()))
print(pullback.eval_shape(lambda x: pullback.numpy.asarray(x.shape[0]) * 2, read.in_avals[0]).shape)
"""
    command = [sys.executable, "-c", code, str(tmp_path / "exported")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "()\n"


@tree_util.register_pytree_node_class
class CheckedLabels:
    """An array with a label for each element, which its class checks."""

    def __init__(self, array, labels):
        assert array.shape == (len(labels),)
        self.array, self.labels = array, labels

    def tree_flatten(self):
        return (self.array,), self.labels

    @classmethod
    def tree_unflatten(cls, labels, children):
        return cls(*children, labels)


export.register_pytree_node_serialization(
    CheckedLabels, serialized_name="CheckedLabels", serialize_auxdata=lambda labels: " ".join(labels).encode(),
    deserialize_auxdata=lambda data: tuple(data.decode().split()),
)  # fmt: skip


def test_no_node_is_made_to_write_or_read_a_structure():
    given = {"k": CheckedLabels(np.arange(3.0, dtype=np.float32), ("a", "b", "c"))}
    exported = export.export(jit(lambda x: (x, [x["k"].array])))(given)
    again = export.deserialize(exported.serialize())
    assert (again.in_tree, again.out_tree) == (exported.in_tree, exported.out_tree)
    result, _ = again.call(given)
    assert result["k"].labels == ("a", "b", "c")
