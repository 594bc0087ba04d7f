"""Programs that are lowered for another platform, or for a mesh whose devices are named later."""

from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import NamedSharding, P, ShapeDtypeStruct, jit
from pullback.errors import IncompatibleDevicesError
from pullback.sharding import AbstractDevice, AbstractMesh, AxisType, use_abstract_mesh

ONE, TWO = AbstractMesh((1,), ("x",)), AbstractMesh((2,), ("x",))
CPU = AbstractDevice("cpu", 1, "cpu")


def rows(mesh: AbstractMesh, *shape: int) -> Any:
    return ShapeDtypeStruct(shape or (4,), "float32", sharding=NamedSharding(mesh, P("x")))


def test_another_platform() -> None:
    traced = jit(lambda x: jnp.linalg.cholesky(x)).trace(jnp.eye(2))
    lowered = traced.lower(lowering_platforms=("tpu",))
    assert isinstance(lowered, pullback.stages.Lowered)
    assert "lapack" in traced.lower().as_text()
    assert "lapack" not in lowered.as_text()
    assert "stablehlo.cholesky" in lowered.compiler_ir()
    assert lowered.as_text("hlo").startswith("HloModule")
    assert lowered.cost_analysis()["flops"] > 0
    assert lowered.out_info.shape == (2, 2)
    assert "stablehlo.case" in traced.lower(lowering_platforms=("cpu", "tpu")).as_text()
    with pytest.raises(
        IncompatibleDevicesError, match="was lowered for tpu, and its arguments are on another platform"
    ):
        lowered.compile()
    for wrong in ((), ("vulkan",)):
        with pytest.raises(ValueError, match="lowering_platforms must be names among 'cpu', 'cuda', 'rocm', 'tpu'"):
            traced.lower(lowering_platforms=wrong)


def test_a_mesh_without_devices() -> None:
    f = jit(lambda x, y: (jnp.sin(x) * y, x.sum()))
    lowered = f.trace(rows(TWO), np.float32(2)).lower(lowering_platforms=("cpu",))
    assert "num_partitions = 2" in lowered.as_text()
    lowered = f.trace(rows(ONE), np.float32(2)).lower(lowering_platforms=("cpu",))
    compiled = lowered.compile(device_assignment=pullback.devices()[:1])
    x = jnp.arange(4.0)
    for out, expected in zip(compiled(x, np.float32(2)), f(x, np.float32(2)), strict=True):
        np.testing.assert_allclose(out, expected, rtol=1e-6)
    with pytest.raises(ValueError, match="has no devices: say for which platform"):
        f.lower(rows(ONE), 2.0)
    with pytest.raises(IncompatibleDevicesError, match=r"pass device_assignment, 1 devices in its order, got None"):
        lowered.compile()
    with pytest.raises(IncompatibleDevicesError, match=r"2 devices in its order, got \[.*\]"):
        f.trace(rows(TWO), 2.0).lower(lowering_platforms=("cpu",)).compile(device_assignment=pullback.devices()[:1])
    with pytest.raises(IncompatibleDevicesError, match=r"1 devices in its order, got \[.*, .*\]"):
        lowered.compile(device_assignment=2 * pullback.devices()[:1])
    elsewhere = f.trace(rows(ONE), np.float32(2)).lower(lowering_platforms=("tpu",))
    assert elsewhere.compile(device_assignment=pullback.devices()[:1])(x, np.float32(2))[1] == 6
    with pytest.raises(ValueError, match="meshes of several sizes"):
        f.trace(rows(ONE), rows(TWO)).lower(lowering_platforms=("cpu",))


def test_requested_shardings_over_a_mesh_without_devices() -> None:
    sharding = NamedSharding(ONE, P("x"))
    f = jit(lambda x: 2 * x, in_shardings=sharding, out_shardings=sharding)
    lowered = f.trace(rows(ONE)).lower(lowering_platforms=("cpu",))
    for _ in range(2):
        out = lowered.compile(device_assignment=pullback.devices()[:1])(jnp.ones(4))
        assert out.tolist() == [2, 2, 2, 2]
        assert out.sharding.spec == P("x")


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_a_current_mesh_without_devices(kind: Any) -> None:
    mesh = AbstractMesh((1,), ("x",), (kind,), abstract_device=CPU)
    with use_abstract_mesh(mesh):
        lowered = jit(lambda x: 10 * x).trace(ShapeDtypeStruct((4, 8), "float32")).lower()
        numbers = jit(lambda: jnp.arange(3)).trace().lower(lowering_platforms=("tpu",))
    assert lowered.mesh is mesh
    assert numbers.platforms == ["tpu"]
    out = lowered.compile(device_assignment=pullback.devices()[:1])(np.ones((4, 8), np.float32))
    assert out.sharding.mesh.axis_types == (kind,)
    assert out.tolist() == [[10] * 8] * 4


def test_a_program_of_a_reference() -> None:
    ref = pullback.new_ref(jnp.ones(4))

    def count(x: Any) -> None:
        ref[...] += x

    with use_abstract_mesh(AbstractMesh((1,), ("x",), abstract_device=CPU)):
        lowered = jit(count).trace(jnp.float32(2)).lower(lowering_platforms=("cpu",))
    lowered.compile(device_assignment=pullback.devices()[:1])(jnp.float32(2))
    assert ref[...].tolist() == [3, 3, 3, 3]
