"""Files of ``jax.export``: recorded ones are read, and what is written has their form.

``tests/export/recorded/record.py`` wrote them, and ``tests/export/recorded/both_ways.py`` has JAX read ours.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import ShapeDtypeStruct, export, grad, jit, random, tree, vmap
from pullback.core.errors import ArgumentError, CompilationError, ExportError
from pullback.export import jax_tables
from pullback.export.structures import _by_name
from tests.export.recorded.both_ways import NARROW, Pair, numbers

HOME = Path(__file__).parent / "recorded"
RELEASES = ["jax_0_10", "jax_0_12"]
ARGUMENTS: dict[str, list[tuple[Any, ...]]] = {
    "derivatives": [(numbers(3), numbers(3))],
    "trees": [({"w": numbers(2, 3), "v": (numbers(3), numbers(2))},)],
    "named_tuples": [(Pair(numbers(2), numbers(3)),)],
    "platforms": [(numbers(2),)],
    "sizes": [(numbers(4, 3), numbers(3)), (numbers(1, 3), numbers(3))],
    "narrow": [NARROW],
    "unused": [(numbers(2), numbers(5), np.int32(4))],
    "linear_algebra": [(numbers(3, 3),)],
    "loop": [(numbers(2),)],
}
KEYWORDS = {"trees": {"scale": np.float32(2.0)}}
NEWER = {"sizes", "linear_algebra"}
"""What of JAX 0.12 has operations that older releases of jaxlib do not know."""


@pytest.fixture(autouse=True)
def _named() -> None:
    if "recorded.Pair" not in _by_name:
        export.register_namedtuple_serialization(Pair, serialized_name="recorded.Pair")


def recorded(release: str, name: str) -> bytes:
    return (HOME / release / f"{name}.bin").read_bytes()


def is_read(release: str, name: str) -> bool:
    import jaxlib

    return release == "jax_0_10" or name not in NEWER or tuple(map(int, jaxlib.__version__.split(".")[:2])) >= (0, 12)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", ARGUMENTS)
def test_recorded_functions_return_what_they_did(release: str, name: str, capfd: Any) -> None:
    exported = export.deserialize(recorded(release, name))
    figures = json.loads((HOME / release / "figures.json").read_text())["figures"][name]
    for args, expected in zip(ARGUMENTS[name], figures, strict=True):
        if not is_read(release, name):
            with pytest.raises(CompilationError, match="If they come from a newer release"):
                exported.call(*args)
            return
        leaves = tree.leaves(exported.call(*args, **KEYWORDS.get(name, {})))
        for x, y in zip(leaves, expected, strict=True):
            np.testing.assert_allclose(np.asarray(x, "float64"), y, rtol=1e-6, atol=1e-7)
    assert [a.dtype for a in exported.out_avals] == [x.dtype for x in leaves]


@pytest.mark.parametrize("release", RELEASES)
def test_recorded_derivatives(release: str) -> None:
    f = export.deserialize(recorded(release, "derivatives")).call
    x, y = numbers(3), numbers(3)
    np.testing.assert_allclose(grad(lambda x: f(x, y).sum())(x), np.cos(x) * y, rtol=1e-6)
    np.testing.assert_allclose(jit(grad(lambda x: f(x, y).sum()))(x), np.cos(x) * y, rtol=1e-6)
    second = grad(lambda x: grad(lambda x: f(x, y).sum())(x).sum())(x)
    np.testing.assert_allclose(second, -np.sin(x) * y, rtol=1e-6)
    np.testing.assert_allclose(vmap(f, (0, None))(np.stack([x, 2 * x]), y), np.sin(np.stack([x, 2 * x])) * y, rtol=1e-6)
    third = lambda x: grad(lambda x: grad(lambda x: f(x, y).sum())(x).sum())(x).sum()
    with pytest.raises(ExportError, match="has no derivative"):
        grad(third)(x)
    by_trees = export.deserialize(recorded(release, "trees")).call
    (args,) = ARGUMENTS["trees"]
    slopes = grad(lambda x: by_trees(x, scale=np.float32(2.0))["q"][1][0].sum())(*args)
    np.testing.assert_allclose(slopes["v"][1], [2.0, 2.0])
    with pytest.raises(ExportError, match="No VJP is available"):
        export.deserialize(recorded(release, "narrow")).vjp()


@pytest.mark.parametrize("release", RELEASES)
def test_what_a_recorded_file_says(release: str) -> None:
    exported = export.deserialize(recorded(release, "sizes"))
    assert list(map(str, exported.in_avals)) == ["float32[b,3]", "float32[3]"]
    assert (exported.platforms, exported.nr_devices, exported.calling_convention_version) == (("cpu",), 1, 10)
    assert export.deserialize(recorded(release, "platforms")).platforms == ("cpu", "cuda")
    assert export.deserialize(recorded(release, "unused")).module_kept_var_idx == (0, 2)
    with pytest.raises(ExportError, match=r"takes or returns random keys.*key_data"):
        export.deserialize(recorded(release, "keys"))
    with pytest.raises(ExportError, match=r"must be f32\[2\], but is f32\[3\]"):
        export.deserialize(recorded(release, "loop")).call(numbers(3))


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", ["trees", "sizes", "unused"])
def test_damaged_files_are_refused_or_say_the_same(release: str, name: str) -> None:
    """There is no checksum: a byte that nobody reads, or of the program, may be another. The rest holds together."""
    data = recorded(release, name)
    rng = np.random.default_rng(0)
    refused = 0
    for i in range(300):
        damaged = bytearray(data)
        if i % 3 == 0:
            damaged = damaged[: rng.integers(0, len(data))]
        else:
            for _ in range(1 + i % 2):
                damaged[rng.integers(0, len(data))] = rng.integers(0, 256)
        try:
            found = export.deserialize(damaged)
        except ExportError:
            refused += 1
            continue
        assert found.in_tree.num_leaves == len(found.in_avals)
        assert found.out_tree.num_leaves == len(found.out_avals)
        assert all(i < len(found.in_avals) for i in found.module_kept_var_idx)
    assert refused > 60


def test_bytes_of_nothing_are_refused() -> None:
    for data in (b"", b"\0" * 64, b"\xff" * 64, b"PK\3\4" * 50, bytes(range(256))):
        with pytest.raises(ExportError, match="deserialize"):
            export.deserialize(data)
    many = jax_tables.write({"name": "f", "in_avals": [], "program": b""})
    with pytest.raises(ExportError, match=r"calling convention.*versions 9 to 10"):
        export.deserialize(many)


def fields_that_are_there(fields: dict[str, Any]) -> set[str]:
    return {name for name, value in fields.items() if value not in (0, "", b"", [], None)}


def test_what_is_written_has_the_form_of_jax() -> None:
    def f(x: Any, y: Any) -> Any:
        return jnp.sin(x) * y

    exported = export.export(jit(f))(numbers(3), numbers(3))
    data = exported.serialize(vjp_order=2, format="jax")
    ours, theirs = jax_tables.read(bytes(data)), jax_tables.read(recorded("jax_0_10", "derivatives"))
    newer = {"unique_avals", "in_aval_numbers", "out_aval_numbers", "in_sharding_numbers", "out_sharding_numbers"}
    assert fields_that_are_there(theirs) - fields_that_are_there(ours) <= newer
    for name in ("in_tree", "in_avals", "out_tree", "out_avals", "platforms", "calling_convention", "kept", "devices"):
        assert ours[name] == theirs[name], name
    assert ours["vjp"]["vjp"]["vjp"] is None
    again = export.deserialize(data)
    np.testing.assert_allclose(again.call(numbers(3), numbers(3)), f(numbers(3), numbers(3)), rtol=1e-6)
    slope = grad(lambda x: grad(lambda x: again.call(x, numbers(3)).sum())(x).sum())(numbers(3))
    np.testing.assert_allclose(slope, -np.sin(numbers(3)) * numbers(3), rtol=1e-6)
    assert export.deserialize(again.serialize(format="pullback")).call(numbers(3), numbers(3)).shape == (3,)


def test_a_file_without_a_number_of_devices_is_for_one() -> None:
    fields = jax_tables.read(bytes(export.export(jit(jnp.sin))(numbers(3)).serialize(format="jax")))
    assert (fields["devices"], fields["devices_short"]) == (1, 1)
    fields.update(devices=0, devices_short=0)
    again = export.deserialize(jax_tables.write(fields))
    assert again.nr_devices == 1
    np.testing.assert_allclose(again.call(numbers(3)), np.sin(numbers(3)), rtol=1e-6)


@pytest.mark.parametrize("name", ["trees", "named_tuples", "narrow", "unused", "platforms"])
def test_functions_go_through_files_of_jax(name: str) -> None:
    (args,) = ARGUMENTS[name]
    f: Any = {
        "trees": lambda x, scale: {"p": jnp.tanh(x["w"] @ x["v"][0]), "q": [None, (scale * x["v"][1], {})]},
        "named_tuples": lambda p: Pair(p.second, p.first * 2),
        "narrow": lambda a, b, c, d: (a * 2, b.astype("float32"), c + 1, ~d),
        "unused": lambda x, u, n: (x * 3, n),
        "platforms": lambda x: pullback.lax.platform_dependent(x, cpu=lambda x: x + 1, cuda=lambda x: x - 1),
    }[name]
    options = {"platforms": ("cpu", "cuda")} if name == "platforms" else {}
    keywords = KEYWORDS.get(name, {})
    exported = export.export(jit(f), **options)(*args, **keywords)
    again = export.deserialize(exported.serialize(format="jax"))
    expected, found = jit(f)(*args, **keywords), again.call(*args, **keywords)
    assert tree.structure(found) == tree.structure(expected)
    for x, y in zip(tree.leaves(found), tree.leaves(expected), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(np.asarray(x, "float32"), np.asarray(y, "float32"), rtol=1e-6)


def test_symbolic_sizes_go_through_files_of_jax() -> None:
    args = export.symbolic_args_specs((np.ones((1, 3), "float32"), np.ones(3, "float32")), ("b, ...", None))
    exported = export.export(jit(lambda x, w: x @ w / x.shape[0]))(*args)
    again = export.deserialize(exported.serialize(vjp_order=1, format="jax"))
    for b in (2, 5):
        np.testing.assert_allclose(again.call(numbers(b, 3), numbers(3)), numbers(b, 3) @ numbers(3) / b, rtol=1e-5)
        assert grad(lambda x: again.call(x, numbers(3)).sum())(numbers(b, 3)).shape == (b, 3)


def test_what_jax_has_no_place_for_is_refused() -> None:
    of_keys = export.export(jit(lambda k: random.bits(k)))(random.key(0))
    with pytest.raises(ExportError, match=r"key<fry>.*key_data"):
        of_keys.serialize(format="jax")
    ordered = export.export(jit(lambda x: OrderedDict(a=x)))(1.0)
    with pytest.raises(ExportError, match="nodes of the kind ordered"):
        ordered.serialize(format="jax")
    with pytest.raises(ArgumentError, match="format must be one of 'pullback', 'jax', got 'onnx'"):
        ordered.serialize(format="onnx")
    assert ShapeDtypeStruct((), "float32").shape == ()


def test_a_program_of_jax_reads_a_file() -> None:
    program = f"""
from jax import export
import numpy as np
exported = export.deserialize(bytearray(open({str(HOME / "jax_0_10" / "loop.bin")!r}, "rb").read()))
print(exported.call(np.zeros(2, "float32")))
"""
    done = subprocess.run(
        [sys.executable, "-m", "pullback", "run", "-c", program], capture_output=True, text=True, timeout=60
    )  # fmt: skip
    figures = [float(x) for x in done.stdout.strip("[]\n").split()]
    np.testing.assert_allclose(figures, [2 + np.cos(1 + np.cos(1.0))] * 2, rtol=1e-5)
    assert done.stderr == ""
