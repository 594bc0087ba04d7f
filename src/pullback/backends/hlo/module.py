"""StableHLO modules: the functions of a program, its meshes, and the Python functions that it calls."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from pullback.backends.compiler.equal_parts import Kinds
from pullback.backends.devices.devices import DeviceAssignment, Devices, joined
from pullback.backends.devices.memories import DEVICE, MemoryKinds
from pullback.backends.devices.meshes import AbstractMesh, AxisType, Mesh, current_mesh
from pullback.backends.devices.shardings import UNCONSTRAINED, NamedSharding, PartitionSpec, names_in
from pullback.backends.host import own
from pullback.core.array import ArrayImpl, CommittedArray
from pullback.core.errors import ExportError, IncompatibleDevicesError, ShardingError
from pullback.core.source import Location, describe, line_number
from pullback.core.types import Shape

DType = np.dtype[Any]


class Function:
    """A finished function of a module.

    Attributes:
      name: the name of the function in the module.
      lines: the lines of its text.
      results: the shape and dtype of each result.
      captured: the arrays that the function captured, which are its last arguments.
      packed: whether the function takes its arguments as one tuple.
      attributes: the text of the attributes that each call of the function has.
    """

    __slots__ = ("attributes", "captured", "lines", "name", "packed", "results")

    def __init__(
        self, name: str, lines: list[str], results: list[tuple[Shape, DType]], captured: list[ArrayImpl]
    ) -> None:
        self.name = name
        self.lines = lines
        self.results = results
        self.captured = captured
        self.packed = False
        self.attributes = ""


@dataclass(frozen=True)
class Divided:
    """An operation that is divided among devices.

    Attributes:
      text: a module whose function ``main`` works on the shards of a device.
      operands: the sharding and the rank of each operand.
      results: the sharding and the rank of each result.
    """

    text: str
    operands: list[tuple[NamedSharding, int]]
    results: list[tuple[NamedSharding, int]]


Partition = Callable[[Mesh, list[NamedSharding], list[NamedSharding]], Divided]
"""A partition function ``(mesh, operand_shardings, result_shardings) -> Divided``, called with proposed shardings."""


GOES_ON = "pullback_goes_on"
"""The custom-call target by which a loop asks whether it is to go on."""
TAKEN = "pullback_taken"
"""The custom-call target that copies an array and gives its memory back."""


class Module:
    """A StableHLO module: the functions of a program, and the host functions that it calls.

    Attributes:
      functions: the finished functions; the entry is called ``main``.
      inline: ``inline(builder, function, values)`` lowers a Python function of primitives.
      callbacks: the Python functions that the program calls; it refers to each by the index in this list.
      platform: the platform of the program's devices.
      shared: the functions of jaxprs, by the jaxpr, and of outlined regions, by their keys.
      equal_parts: whether equal regions of programs are outlined.
      kinds: the table that numbers equations, to find equal regions.
      portable: whether the module is for other processes, so that captured arrays of any size are written into it.
      devices: the devices on which the program must run; None if none are required.
      memories: the kind of memory of each input and of each result of ``main``; None if all values are in the devices'
        own, and in programs for CPUs.
      meshes: the name in the program of each mesh with devices.
      logical_meshes: the name of each abstract mesh, which runs on the program's devices; in a portable program, of
        all meshes.
      exported: the name of each exported function that the program calls, and the number of devices it needs.
      manual: the mesh of the enclosing ``shard_map``; None outside.
      manual_axes: the axes of that mesh along which values are shards.
      channels: a counter for the channels of collectives.
      inspections: for each value whose sharding is inspected, its rank, and the function that receives the sharding.
      partitions: for each operation with custom partitioning, the function that divides it, see :class:`Divided`.
      assumed_one_device: whether a lowering is valid for one device only: for several, the program is lowered again.
      may_not_end: whether the program has a loop whose number of steps nothing bounds.
      asks: whether such a loop asks after each step whether it is to go on.
      source_locations: by (code, instruction, label), the number of a source location in the text, and the location.
    """

    __slots__ = (
        "asks", "assumed_one_device", "callbacks", "channels", "devices", "equal_parts", "exported", "functions",
        "inline", "inspections", "kinds", "logical_meshes", "manual", "manual_axes", "may_not_end", "memories",
        "meshes", "name", "names", "partitions", "platform", "portable", "shared", "source_locations",
    )  # fmt: skip

    def __init__(self, name: str, platform: str, inline: Callable[..., Any]) -> None:
        self.name = _identifier(name)
        self.inline = inline
        self.functions: list[Function] = []
        self.callbacks: list[Callable[..., Any]] = []
        self.platform = platform
        self.devices: Devices | None = None
        self.memories: MemoryKinds | None = None
        self.meshes: dict[Mesh, str] = {}
        self.logical_meshes: dict[AbstractMesh, str] = {}
        self.exported: list[tuple[str, int]] = []
        self.manual: Mesh | None = None
        self.manual_axes: frozenset[Any] = frozenset()
        self.channels = itertools.count(1)
        self.inspections: list[tuple[int, Callable[[Any], None]]] = []
        self.partitions: list[Partition] = []
        self.assumed_one_device = False
        self.may_not_end = self.asks = False
        self.shared: dict[Any, Any] = {}
        self.equal_parts = False
        self.kinds = Kinds()
        self.portable = False
        self.names: set[str] = {"main"}
        self.source_locations: dict[tuple[int, int, str], tuple[int, Location]] = {}

    def run_on(self, devices: Devices, who: str) -> None:
        """Require the program to run on some devices.

        Args:
          devices: a device, or the devices of a mesh.
          who: names the mesh or array that requires them, for the error message.

        Raises:
          IncompatibleDevicesError: other devices are required already (a RuntimeError and ValueError).
        """
        if self.devices is None:
            if devices.target != self.platform and not self.portable:
                raise IncompatibleDevicesError(
                    f"{who} of the program {self.name} is on {devices}, but the program runs on {self.platform!r}: "
                    "pass the array as an argument, or move it there with device_put"
                )
            self.devices = devices
        else:
            self.devices = joined(self.devices, devices, f"{who} and other operands of the program {self.name}")

    def ask(self) -> bool:
        """Return whether a loop can ask whether it is to go on; if so, note that one does.

        It cannot in other processes and on other platforms, and without the module in C. Loops over several devices
        have to take the same number of steps on each.
        """
        asks = self.platform == "cpu" and not self.portable and self.size == 1 and own.loops is not None
        self.asks |= asks
        self.assumed_one_device |= asks
        return asks

    def whole_arrays(self) -> bool:
        """Return whether the compiler divides no arrays: on one device, and within ``shard_map`` over all axes.

        A lowering may depend on the answer: a program that turns out to need several devices is lowered again.
        """
        if self.manual is not None and len(self.manual_axes) == len(self.manual.axis_names):
            return True
        whole = self.size == 1
        self.assumed_one_device |= whole and not self.portable
        return whole

    def mesh(self, mesh: Any) -> str:
        """Add a mesh to the module, and return its name there, such as ``@mesh``.

        If the mesh has devices, the program must run on these.

        Raises:
          IncompatibleDevicesError: the program must run on other devices (a RuntimeError and ValueError).
        """
        if isinstance(mesh, Mesh):
            self.run_on(mesh.assignment, f"the mesh {mesh!r}")
        if not mesh.are_all_axes_auto:  # the compiler does not know types of axes
            mesh = mesh.update(axis_types=(AxisType.Auto,) * len(mesh.axis_names))
        known: dict[Any, str] = self.meshes
        if self.portable or not isinstance(mesh, Mesh):
            known, mesh = self.logical_meshes, mesh.abstract_mesh
            for other, name in () if self.portable else self.meshes.items():
                if other.shape_tuple == mesh.shape_tuple:  # the mesh of a type, over the devices of the program
                    return name
        found = known.get(mesh)
        if found is None:
            count = len(self.meshes) + len(self.logical_meshes)
            found = known[mesh] = f"@mesh_{count}" if count else "@mesh"
        return found

    @property
    def size(self) -> int:
        """The number of devices that the program runs on."""
        if self.portable:
            return next((mesh.size for mesh in self.logical_meshes), 1)
        return len(self.devices.devices) if isinstance(self.devices, DeviceAssignment) else 1

    def choose_devices(self) -> None:
        """Choose the devices of a program that calls exported functions or names abstract meshes, and check the number.

        If no devices are required yet, they are those of the current mesh.

        Raises:
          ExportError: an exported function needs another number of devices (a ValueError and TypeError).
          ShardingError: an abstract mesh has another size (a ValueError and TypeError).
        """
        found = current_mesh()
        needed = bool(self.exported or self.logical_meshes) and self.devices is None and not self.portable
        if needed and isinstance(found, Mesh):
            self.mesh(found)
        for name, count in self.exported:
            if count != self.size:
                raise ExportError(
                    f"the exported {name} was exported for {count} devices and is called in a context with "
                    f"{self.size} devices, which is not allowed: shard its arguments over a mesh of that size, with "
                    f"device_put, in_shardings of jit, or set_mesh(mesh)"
                )
        for mesh in self.logical_meshes:
            if mesh.size != self.size:
                raise ShardingError(
                    f"the program {self.name} has a sharding over {mesh!r}, which has no devices, and runs on "
                    f"{self.size} devices: shard its arguments over a mesh of {mesh.size} devices, or use a Mesh"
                )

    def sharding(self, sharding: NamedSharding, ndim: int, is_open: bool = False) -> str:
        """The text of a sharding for values of rank ``ndim``, such as ``<@mesh, [{"x"}, {}]>``.

        If it ``is_open``, the compiler may divide each axis further: ``<@mesh, [{"x", ?}, {?}]>``.
        """
        mesh = self.mesh(sharding.mesh)
        names = dict(zip(sharding.mesh.axis_names, axis_names(sharding.mesh), strict=True))
        entries = [
            "{?}" if entry is UNCONSTRAINED
            else f"{{{', '.join([*[names[n] for n in names_in(entry)], *(['?'] if is_open else [])])}}}"
            for entry in sharding.spec.partitions
        ]  # fmt: skip
        entries += ["{?}" if is_open else "{}"] * (ndim - len(entries))
        unreduced = [names[n] for n in sharding.mesh.axis_names if n in sharding.spec.unreduced]
        sums = f", unreduced={{{', '.join(unreduced)}}}" if unreduced else ""
        return f"<{mesh}, [{', '.join(entries)}]{sums}>"

    @staticmethod
    def on_one_device(count: int) -> str:
        """The text of the attribute that makes a call run only on the first device of a program over several devices.

        Args:
          count: the number of results of the call.
        """
        return f"{_PER_VALUE}{', '.join(['<@first, []>'] * max(1, count))}]>"

    def sharding_attribute(self, sharding: NamedSharding, ndim: int) -> str:
        """The text of a sharding as an attribute of an argument or a result of rank ``ndim``."""
        return f"sdy.sharding = #sdy.sharding{self.sharding(sharding, ndim)}"

    def attributes_of_input(self, i: int, sharding: NamedSharding | None, ndim: int) -> list[str]:
        """The attributes of the input ``i`` of ``main``, of rank ``ndim``: its memory, if another, and sharding."""
        kinds = [] if self.memories is None else self.memories[0][i : i + 1]  # captured arrays, the last, have none
        found = [f'mhlo.memory_kind = "{kind}"' for kind in kinds if kind != DEVICE]
        return found if sharding is None else [*found, self.sharding_attribute(sharding, ndim)]

    def attributes_of_result(self, i: int, sharding: NamedSharding | None, ndim: int) -> str:
        """The text of the attributes of the result ``i`` of ``main``, of rank ``ndim``: its memory and its sharding."""
        found = [] if self.memories is None else [f'mhlo.memory_kind = "{self.memories[1][i]}"']
        found += [] if sharding is None else [self.sharding_attribute(sharding, ndim)]
        return f" {{{', '.join(found)}}}" if found else ""

    def _head(self) -> list[str]:
        """The first lines of the module's text, before its functions: the name of the module, and its meshes."""
        meshes: dict[Any, str] = {**self.meshes, **self.logical_meshes}
        if not meshes:
            return [f"module @{self.name} {{"]
        attributes = f"mhlo.num_partitions = {self.size} : i32, mhlo.num_replicas = 1 : i32"
        lines = [f"module @{self.name} attributes {{{attributes}}} {{"]
        for mesh, name in meshes.items():
            axes = ", ".join(f"{n}={size}" for n, size in zip(axis_names(mesh), mesh.axis_sizes, strict=True))
            lines.append(f"sdy.mesh {name} = <[{axes}]>")
        if self.callbacks:
            lines.append("sdy.mesh @first = <[], device_ids=[0]>")
        return lines

    def unique(self, name: str) -> str:
        """Make a name for a function that no other function of the module has: ``name``, with a number if necessary."""
        base = candidate = _identifier(name)
        count = 0
        while candidate in self.names:
            count += 1
            candidate = f"{base}_{count}"
        self.names.add(candidate)
        return candidate

    def source_loc(self, location: Location | None, label: str) -> str:
        """The text that ends the line of an operation: a reference to its source location; empty if this is unknown.

        Args:
          location: the location in the user's program.
          label: the name of the operation with its scope.
        """
        if location is None:
            return ""
        code, instruction = location
        key = (id(code), instruction, label)
        found = self.source_locations.get(key)
        if found is None:
            found = self.source_locations[key] = (len(self.source_locations), location)
        return f" loc(#loc{found[0]})"

    def described(self, reference: str) -> tuple[str, str]:
        """Describe what :meth:`source_loc` wrote: the name of the operation without its scope, and the user's line."""
        for (_, _, label), (number, location) in self.source_locations.items():
            if reference == f" loc(#loc{number})":
                return label.rpartition("/")[2], describe(location)
        return "", ""

    def text(self, locations: bool = False, scopes: bool = False) -> str:
        """The text of the module.

        Args:
          locations: whether to add to each operation its name, scope and source line in the user's program.
          scopes: whether to add only the named scope of each operation.
        """
        lines = self._head()
        for f in reversed(self.functions):  # main, which is finished last, comes first
            lines += f.lines
        lines.append("}\n")
        text = "\n".join(lines)
        if self.callbacks and not self.meshes:
            text = re.sub(_ON_FIRST_DEVICE, "", text)
        if not locations:
            shown = [f' loc("{escaped(n)}")' if scopes and "/" in n else "" for _, _, n in self.source_locations]
            return re.sub(_REFERENCE, (lambda reference: shown[int(reference[1])]) if any(shown) else "", text)
        legend = []
        for (_, _, label), (number, location) in self.source_locations.items():
            file, line = escaped(location[0].co_filename), line_number(location)
            legend.append(f'#loc{number} = loc("{escaped(label)}"("{file}":{line}:0))\n')
        return text + "".join(legend)


@lru_cache(maxsize=64)
def axis_names(mesh: Mesh | AbstractMesh) -> tuple[str, ...]:
    """The quoted names of a mesh's axes in a program. A name that is no string gets its index appended: ``"3 (0)"``."""
    return tuple(f'"{escaped(n if isinstance(n, str) else f"{n!r} ({i})")}"' for i, n in enumerate(mesh.axis_names))


_PER_VALUE = "sdy.sharding = #sdy.sharding_per_value<["
_ON_FIRST_DEVICE = r", sdy\.sharding = #sdy\.sharding_per_value<\[(<@first, \[\]>(, )?)+\]>"

_REFERENCE = r"(?m) loc\(#loc(\d+)\)$"


def _identifier(name: str) -> str:
    text = re.sub(r"[^0-9A-Za-z_]", "_", name)
    return text if text and not text[0].isdigit() else "_" + text


@lru_cache(maxsize=1024)
def escaped(text: str) -> str:
    """Escape a string for a program. A character that UTF-8 cannot encode, as in some file names, becomes its code."""
    text = text.encode("utf-8", "backslashreplace").decode()
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\0A")


def captured_shardings(arrays: Sequence[ArrayImpl], mesh: Mesh) -> list[NamedSharding]:
    """The sharding of each captured array in a program over several devices.

    It is the array's own sharding; an array without one is replicated over ``mesh``.
    """
    placements = [x._signature.placement if isinstance(x, CommittedArray) else None for x in arrays]
    replicated = NamedSharding(mesh, PartitionSpec())
    return [p if isinstance(p, NamedSharding) else replicated for p in placements]
