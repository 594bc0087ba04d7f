"""Programs that are lowered without their devices: for another platform, or for a mesh that has none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.backends.compiler import portable
from pullback.backends.compiler.backend import backend
from pullback.backends.devices.devices import Device, default_device
from pullback.backends.devices.meshes import AbstractMesh, Mesh, current_mesh, use_mesh
from pullback.backends.devices.shardings import NamedSharding, PartitionSpec
from pullback.core.array import signature, signature_of
from pullback.core.errors import ArgumentError, IncompatibleDevicesError, ShardingError
from pullback.transforms.jit.placements import out_placements
from pullback.transforms.jit.stages import Compiled, Lowered
from pullback.transforms.programs.lojax import is_high, lowered

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


def lowered_elsewhere(traced: Any, wanted: Sequence[str] | None) -> LoweredElsewhere | None:
    """Lower a traced function for a mesh without devices; return None if it has no such mesh.

    The mesh is that of a sharding of the arguments or results, if none is over devices, or else the current one.

    Args:
      traced: the traced function, a ``Traced``.
      wanted: the platforms, or None for the platform that the mesh names.

    Raises:
      ArgumentError: there is no name of a platform, or an unknown one (a TypeError and ValueError).
      ShardingError: the meshes are of several sizes (a TypeError and ValueError).
    """
    current = current_mesh()
    placements = [*traced.argument_placements(), *out_placements(traced.call, traced)]
    if isinstance(current, Mesh):
        return None
    meshes = [p.mesh for p in placements if isinstance(p, NamedSharding)]
    if current is not None and (wanted is not None or current.abstract_device is not None):
        meshes.append(current)
    mesh = next((m for m in meshes if isinstance(m, AbstractMesh)), None)
    if mesh is None:
        return None
    if len({m.size for m in meshes}) > 1:
        raise ShardingError(
            f"lower: the shardings of {traced.fun_name}, or the current mesh, are over meshes of several sizes: "
            f"{', '.join(map(str, dict.fromkeys(meshes)))}"
        )
    if not all(p is None or _is_abstract(p) for p in placements):
        return None
    device = mesh.abstract_device
    if wanted is None and device is not None:
        wanted = [device.platform]
    if wanted is None:
        raise ArgumentError(
            f"lower: {traced.fun_name} has shardings over {mesh!r}, which has no devices: say for which platform to "
            "lower it, by lowering_platforms=('cpu',), or by the abstract_device of the mesh"
        )
    return LoweredElsewhere(traced, wanted, mesh)


def _is_abstract(placement: Any) -> bool:
    return isinstance(placement, NamedSharding) and isinstance(placement.mesh, AbstractMesh)


class LoweredElsewhere(Lowered):
    """A function lowered for devices that are named when it is compiled, or for those of another machine.

    Attributes:
      platforms: the platforms for which the text is.
      mesh: the mesh without devices; None if the arguments are on devices of another platform.
      text: the module. If there are several platforms, its function ``main`` first takes the index of one.

    Raises:
      ArgumentError: an unknown platform (a TypeError and ValueError).
      UnsupportedExportError: the program calls Python functions (a ValueError and NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback import NamedSharding, P, ShapeDtypeStruct, devices, jit
    >>> from pullback.sharding import AbstractMesh
    >>> x = ShapeDtypeStruct((4,), "float32", sharding=NamedSharding(AbstractMesh((1,), ("x",)), P("x")))
    >>> lowered = jit(lambda x: 2 * x).trace(x).lower(lowering_platforms=("cpu",))
    >>> print(lowered.compile(device_assignment=devices()[:1])(jnp.ones(4)))
    [2. 2. 2. 2.]
    """

    __slots__ = ("mesh", "platforms", "text")

    def __init__(self, traced: Any, platforms: Sequence[str], mesh: AbstractMesh | None) -> None:
        self.traced, self.high, self.mesh = traced, None, mesh
        self.platforms = ["cuda" if name == "gpu" else name for name in platforms]
        if not self.platforms or not set(PLATFORMS).issuperset(self.platforms):
            raise ArgumentError(
                f"lower: lowering_platforms must be names among {', '.join(map(repr, PLATFORMS))}, got {platforms!r}"
            )
        closed = lowered(traced.jaxpr) if is_high(traced.jaxpr) else traced.jaxpr
        inputs, results = traced.argument_placements(), out_placements(traced.call, traced)
        self.text = portable.portable(
            closed, f"jit_{traced.fun_name}", self.platforms,
            self._shardings(inputs, len(closed.in_avals)), self._shardings(results, len(closed.out_avals)),
        ).text  # fmt: skip

    def _shardings(self, placements: Sequence[Any], count: int) -> list[NamedSharding | None]:
        """Return the sharding of each of ``count`` inputs or results; one that has none is on all devices."""
        whole = None if self.mesh is None else NamedSharding(self.mesh, PartitionSpec())
        found = [p if isinstance(p, NamedSharding) else whole for p in placements]
        return found + [whole] * (count - len(found))

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The program as text.

        Args:
          dialect: ``"stablehlo"`` (the default), or ``"hlo"`` for the compiler's own language.
          debug_info: without effect; the text has no locations.

        Raises:
          ArgumentError: ``dialect`` is unknown (a ValueError).
        """
        return self._in_dialect(self.text, dialect)

    def cost_analysis(self) -> dict[str, float]:
        """Return the compiler's estimate of operations and memory traffic, for the program before optimisation."""
        return backend().cost_analysis(self.text, default_device())

    def compile(
        self, compiler_options: dict[str, Any] | None = None, *, device_assignment: Sequence[Device] | None = None
    ) -> Compiled:
        """Compile the program.

        Args:
          compiler_options: options of XLA by name.
          device_assignment: the devices, as many as the mesh has, in its order. The program is lowered again for
            their platform.

        Raises:
          IncompatibleDevicesError: there are no devices, too many or too few (a RuntimeError and ValueError).
          CompilationError: the compiler rejects the program or an option (a RuntimeError).
        """
        name, members = self.traced.fun_name, list(device_assignment or ())
        if self.mesh is None:
            raise IncompatibleDevicesError(
                f"compile: {name} was lowered for {', '.join(self.platforms)}, and its arguments are on another "
                "platform; lower it for arguments that are on a device of the platform, or with shardings over an "
                "AbstractMesh"
            )
        if len(members) != self.mesh.size:
            raise IncompatibleDevicesError(
                f"compile: {name} was lowered for {self.mesh!r}, which has no devices: pass device_assignment, "
                f"{self.mesh.size} devices in its order, got {device_assignment!r}"
            )
        mesh = Mesh(np.array(members).reshape(self.mesh.axis_sizes), self.mesh.axis_names, self.mesh.axis_types)
        traced, whole = self.traced, NamedSharding(mesh, PartitionSpec())
        with use_mesh(mesh):
            leaves = zip(traced.in_avals, traced.argument_placements(), strict=True)
            signatures = [signature(a.shape, a.dtype, a.weak_type, whole if p is None else p) for a, p in leaves]
            if traced.refs is not None:
                signatures += map(signature_of, traced.refs.contents())
            return Lowered(traced, traced.call, signatures).compile(compiler_options)
