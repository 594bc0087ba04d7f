"""A program as StableHLO text: its functions, the meshes over which it runs, and the Python that it calls."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from pullback.backends.compiler.equal_parts import Kinds
from pullback.backends.devices.devices import DeviceAssignment, Devices, joined
from pullback.backends.devices.meshes import AbstractMesh, Mesh, current_mesh
from pullback.backends.devices.shardings import UNCONSTRAINED, NamedSharding, names_in
from pullback.core.array import ArrayImpl
from pullback.core.errors import ExportError, IncompatibleDevicesError, ShardingError
from pullback.core.source import Location, line_number
from pullback.core.types import Shape

DType = np.dtype[Any]


class Function:
    """A finished function of a module.

    Attributes:
      results: the shape and dtype of each result.
      captured: the arrays that it captured, which are its last arguments.
      packed: whether its arguments are one tuple.
      attributes: of the calls of it, as text.
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
    """What each device does of an operation, and how its operands and results are spread.

    Attributes:
      text: a program on the parts that a device has, whose function is ``main``.
      operands: for each operand its sharding and its rank.
      results: the same for each result.
    """

    text: str
    operands: list[tuple[NamedSharding, int]]
    results: list[tuple[NamedSharding, int]]


Partition = Callable[[Mesh, list[NamedSharding], list[NamedSharding]], Divided]
"""Takes the mesh of a program, and the shardings of operands and results that the compiler would choose."""


class Module:
    """A program: its functions, and the host functions that it calls.

    Attributes:
      functions: finished functions; the one that is run is called ``main``.
      inline: ``inline(builder, function, values)`` writes what a function of primitives does.
      callbacks: functions of Python that the program calls by their position here.
      platform: of the devices that it is for.
      shared: functions that were made from a jaxpr, by the jaxpr, and those of equal parts, by their keys.
      equal_parts: whether equal parts of programs become functions.
      kinds: the kinds of equations that were seen, for equal parts.
      portable: whether it is for other processes: arrays that it captures are written into it, however large.
      devices: where the program has to run, as far as somebody asked; None if nobody did.
      meshes: the meshes whose axes it names, with their names in the program.
      logical_meshes: the same for meshes without devices, whose devices are those of the program: an ``AbstractMesh``;
        in a portable program all.
      exported: names of exported functions that it calls, and the number of devices that each needs.
      manual: the mesh on whose devices the function runs that is being written, each on its part; None elsewhere.
      manual_axes: the axes of that mesh along which there are parts.
      channels: numbers for collectives.
      inspections: for each value whose sharding is asked for its rank, and the function that is to be told.
      partitions: for each operation that the users' own functions divide what divides it, see :class:`Divided`.
      whole: whether an operation was written that could have been divided, had it been known that there are several
        devices.
    """

    __slots__ = (
        "callbacks", "channels", "devices", "equal_parts", "exported", "functions", "inline", "inspections", "kinds",
        "logical_meshes", "manual", "manual_axes", "meshes", "name", "names", "partitions", "places", "platform",
        "portable", "shared", "whole",
    )  # fmt: skip

    def __init__(self, name: str, platform: str, inline: Callable[..., Any]) -> None:
        self.name = _identifier(name)
        self.inline = inline
        self.functions: list[Function] = []
        self.callbacks: list[Callable[..., Any]] = []
        self.platform = platform
        self.devices: Devices | None = None
        self.meshes: dict[Mesh, str] = {}
        self.logical_meshes: dict[AbstractMesh, str] = {}
        self.exported: list[tuple[str, int]] = []
        self.manual: Mesh | None = None
        self.manual_axes: frozenset[Any] = frozenset()
        self.channels = itertools.count(1)
        self.inspections: list[tuple[int, Callable[[Any], None]]] = []
        self.partitions: list[Partition] = []
        self.whole = False
        self.shared: dict[Any, Any] = {}
        self.equal_parts = False
        self.kinds = Kinds()
        self.portable = False
        self.names: set[str] = {"main"}
        self.places: dict[tuple[int, int, str], tuple[int, Location]] = {}

    def run_on(self, devices: Devices, who: str) -> None:
        """Ask for the devices of the program.

        Args:
          devices: a device, or those of a mesh.
          who: what asks for them, for the error.

        Raises:
          IncompatibleDevicesError: others were asked for (a RuntimeError and ValueError).
        """
        if self.devices is None:
            if devices.platform != self.platform and not self.portable:
                raise IncompatibleDevicesError(
                    f"{who} of the program {self.name} is on {devices}, but the program runs on {self.platform!r}: "
                    "pass the array as an argument, or put it there with device_put"
                )
            self.devices = devices
        else:
            self.devices = joined(self.devices, devices, f"{who} and other operands of the program {self.name}")

    def mesh(self, mesh: Any) -> str:
        """The name of a mesh in the program, such as ``@mesh``, which runs on its devices from now on, if it has any.

        Raises:
          IncompatibleDevicesError: the program runs on other devices (a RuntimeError and ValueError).
        """
        if isinstance(mesh, Mesh):
            self.run_on(mesh.assignment, f"the mesh {mesh!r}")
        known: dict[Any, str] = self.meshes
        if self.portable or not isinstance(mesh, Mesh):
            known, mesh = self.logical_meshes, mesh.abstract_mesh
        found = known.get(mesh)
        if found is None:
            count = len(self.meshes) + len(self.logical_meshes)
            found = known[mesh] = f"@mesh_{count}" if count else "@mesh"
        return found

    @property
    def size(self) -> int:
        """The number of devices of the program; of a portable one, for how many it is."""
        if self.portable:
            return next((mesh.size for mesh in self.logical_meshes), 1)
        return len(self.devices.devices) if isinstance(self.devices, DeviceAssignment) else 1

    def choose_devices(self) -> None:
        """Run on the mesh that was set, if exported functions or meshes without devices need one and nobody asked for
        devices; and refuse a number of devices that these cannot run on.

        Raises:
          ExportError: an exported function is for another number of devices (a ValueError and TypeError).
          ShardingError: a mesh without devices is of another size (a ValueError and TypeError).
        """
        found = current_mesh()
        needed = bool(self.exported or self.logical_meshes) and self.devices is None and not self.portable
        if needed and isinstance(found, Mesh):
            self.mesh(found)
        for name, count in self.exported:
            if count != self.size:
                raise ExportError(
                    f"the exported {name} was exported for {count} devices and is called in a context with {self.size} "
                    "devices, which is not allowed: spread its arguments over a mesh of that size, by device_put, by "
                    "in_shardings of jit or with set_mesh(mesh)"
                )
        for mesh in self.logical_meshes:
            if mesh.size != self.size:
                raise ShardingError(
                    f"the program {self.name} has a sharding over {mesh!r}, which has no devices of its own, and runs "
                    f"on {self.size} devices: spread its arguments over a mesh of {mesh.size} devices, or give a Mesh"
                )

    def sharding(self, sharding: NamedSharding, ndim: int) -> str:
        """A sharding of values of a rank in the program, such as ``<@mesh, [{"x"}, {}]>``."""
        mesh = self.mesh(sharding.mesh)
        names = dict(zip(sharding.mesh.axis_names, axis_names(sharding.mesh), strict=True))
        entries = [
            "{?}" if entry is UNCONSTRAINED else f"{{{', '.join(names[n] for n in names_in(entry))}}}"
            for entry in sharding.spec.partitions
        ]
        entries += ["{}"] * (ndim - len(entries))
        return f"<{mesh}, [{', '.join(entries)}]>"

    @staticmethod
    def on_one_device(count: int) -> str:
        """An attribute of a call that is made once in a program over several devices, on the first of them.

        Args:
          count: the number of results.
        """
        return f"{_ALONE}{', '.join(['<@first, []>'] * max(1, count))}]>"

    def sharding_attribute(self, sharding: NamedSharding, ndim: int) -> str:
        """A sharding as an attribute of an argument or a result."""
        return f"sdy.sharding = #sdy.sharding{self.sharding(sharding, ndim)}"

    def _head(self) -> list[str]:
        """The lines before the functions."""
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
        """A name for a function that no other of the module has."""
        base = candidate = _identifier(name)
        count = 0
        while candidate in self.names:
            count += 1
            candidate = f"{base}_{count}"
        self.names.add(candidate)
        return candidate

    def source_loc(self, location: Location | None, label: str) -> str:
        """The text that ends the lines of an operation that was written at a location, with its name and scope."""
        if location is None:
            return ""
        code, instruction = location
        key = (id(code), instruction, label)
        found = self.places.get(key)
        if found is None:
            found = self.places[key] = (len(self.places), location)
        return f" loc(#loc{found[0]})"

    def text(self, locations: bool = False, scopes: bool = False) -> str:
        """The program.

        Args:
          locations: whether to tell the name, scope and line of each operation in the user's program.
          scopes: whether to tell the named scope of each operation that is in one, and nothing else.
        """
        parts = self._head()
        for f in reversed(self.functions):  # main, which is finished last, comes first
            parts += f.lines
        parts.append("}\n")
        text = "\n".join(parts)
        if self.callbacks and not self.meshes:
            text = re.sub(_ALONE_ATTRIBUTE, "", text)
        if not locations:
            shown = [f' loc("{_escape(n)}")' if scopes and "/" in n else "" for _, _, n in self.places]
            return re.sub(_PLACE, (lambda place: shown[int(place[1])]) if any(shown) else "", text)
        legend = []
        for (_, _, label), (number, location) in self.places.items():
            file, line = _escape(location[0].co_filename), line_number(location)
            legend.append(f'#loc{number} = loc("{_escape(label)}"("{file}":{line}:0))\n')
        return text + "".join(legend)


@lru_cache(maxsize=64)
def axis_names(mesh: Mesh | AbstractMesh) -> tuple[str, ...]:
    """The names of the axes of a mesh in programs, in quotes; a name that is no string is numbered."""
    return tuple(f'"{_escape(n if isinstance(n, str) else f"{n!r} ({i})")}"' for i, n in enumerate(mesh.axis_names))


_ALONE = "sdy.sharding = #sdy.sharding_per_value<["
_ALONE_ATTRIBUTE = r", sdy\.sharding = #sdy\.sharding_per_value<\[(<@first, \[\]>(, )?)+\]>"

_PLACE = r"(?m) loc\(#loc(\d+)\)$"


def _identifier(name: str) -> str:
    text = re.sub(r"[^0-9A-Za-z_]", "_", name)
    return text if text and not text[0].isdigit() else "_" + text


@lru_cache(maxsize=1024)
def _escape(text: str) -> str:
    """A text within a program; what UTF-8 does not have, as in names of files that are not UTF-8, as its number."""
    text = text.encode("utf-8", "backslashreplace").decode()
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\0A")
