"""The collectives of a program over several devices, read from the text that the compiler has partitioned."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.core.errors import ArgumentError

KINDS = (
    "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "ragged-all-to-all", "collective-permute",
    "collective-broadcast",
)  # fmt: skip
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\{$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?[\w.\-]+ = ")
_ARRAY = re.compile(r"\b([a-z]+\d*[a-z0-9]*)\[([\d,]*)\]")
_CALLED = re.compile(r"\b(?:calls|to_apply|true_computation|false_computation)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"\bbranch_computations=\{([^}]*)\}")
_LOOP = re.compile(r"\bcondition=%?([\w.\-]+), body=%?([\w.\-]+)")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_LISTED_GROUPS = re.compile(r"\breplica_groups=\{((?:\{[\d,]*\},?)*)\}")
_COUNTED_GROUPS = re.compile(r"\breplica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_NAMED_GROUPS = re.compile(
    r"\breplica_groups=mesh\[([^\]]*)\](?:, device_ids=\((?:\[([\d,]+)\](?:T\(([\d,]+)\))?|([\d,]+))\))? \{([^}]*)\}"
)
_PAIRS = re.compile(r"\bsource_target_pairs=\{((?:\{\d+,\d+\},?)*)\}")


class Collective(NamedTuple):
    """An operation by which devices exchange elements.

    Attributes:
      kind: its name in the compiler's programs, such as ``"all-reduce"``.
      axes: the axes of the mesh along which elements travel.
      devices: the number of devices that exchange elements with one another.
      nbytes: the size of the operands on one device, in bytes.
      times: how often it runs in one call of the program; None in a loop of unknown length.
      line: the line of the user's program, such as ``"model.py:31"``; empty if it is unknown.

    >>> from pullback.analysis import Collective
    >>> sums = Collective("all-reduce", ("data",), 4, 1_000, 1, "model.py:31")
    >>> sums.moved
    1500.0
    """

    kind: str
    axes: tuple[Any, ...]
    devices: int
    nbytes: int
    times: int | None
    line: str

    @property
    def moved(self) -> float:
        """The bytes that each device sends in one run, by the algorithm that sends least (Thakur et al. 2005).

        With n devices and operands of b bytes on each: 2 (n - 1) / n b for a sum over all devices, (n - 1) / n b for a
        sum of which each device keeps a shard and for an exchange of shards, (n - 1) b for a gathering, b for a shift.
        """
        others = self.devices - 1
        if self.kind == "all-gather":
            return float(others * self.nbytes)
        if self.kind in ("collective-permute", "collective-broadcast"):
            return float(self.nbytes if others else 0)
        return (2 if self.kind == "all-reduce" else 1) * others / self.devices * self.nbytes


class _Found(NamedTuple):
    """A collective in a computation: all but how often it runs."""

    kind: str
    groups: np.ndarray
    nbytes: float
    line: str


class _Computation:
    """A computation of a program: its collectives, and the computations that it calls, with how often.

    A branch of a conditional is listed in ``choices``: one of them runs.
    """

    def __init__(self) -> None:
        self.found: list[_Found] = []
        self.calls: list[tuple[str, int | None]] = []
        self.choices: list[list[str]] = []


def collectives(text: str, mesh: Any) -> tuple[Collective, ...]:
    """Return the collectives of a partitioned program, in the order of its text.

    Of the branches of a conditional, the one that moves most counts. A collective over one device is left out.

    Args:
      text: the text of a compiled program, ``jit(f).lower(*args).compile().as_text()``. Those of other libraries for
        XLA are read too.
      mesh: the mesh whose devices run the program, in its order; or the sizes of the mesh by their names.

    Returns:
      A :class:`Collective` for each.

    Raises:
      ArgumentError: the text is no compiled program, or the mesh is none or does not fit its devices (a ValueError).

    >>> import pullback
    >>> from pullback.analysis import collectives
    >>> text = pullback.jit(lambda x: x + 1).lower(1.0).compile().as_text()
    >>> collectives(text, {"data": 1})
    ()
    """
    sizes = _sizes(mesh)
    if not isinstance(text, str):
        raise ArgumentError(
            f"collectives: text must be the text of a compiled program, jit(f).lower(*args).compile().as_text(), got "
            f"{type(text).__name__}"
        )
    count = math.prod(sizes.values())
    computations, entry = _parsed(text, count)
    if entry is None:
        raise ArgumentError(
            f"collectives: expected the text of a compiled program, jit(f).lower(*args).compile().as_text(), got text "
            f"that begins with {text[:40]!r}"
        )
    partitions = _partitions(text)
    if partitions not in (1, count):
        raise ArgumentError(f"collectives: the program runs on {partitions} devices, but the mesh {sizes} has {count}")
    made = (_collective(found, times, sizes) for found, times in _runs(computations, entry, 1, sizes))
    return tuple(each for each in made if each.devices > 1)


def _sizes(mesh: Any) -> dict[Any, int]:
    """Return the sizes of a mesh by their names."""
    shape = mesh if isinstance(mesh, Mapping) else getattr(mesh, "shape", None)
    if not isinstance(shape, Mapping) or not all(isinstance(n, int) and n > 0 for n in shape.values()):
        raise ArgumentError(
            f"collectives: mesh must be a mesh, or the sizes of a mesh by their names, such as {{'data': 8}}, got "
            f"{mesh!r}"
        )
    return dict(shape)


def _partitions(text: str) -> int:
    """Return the number of devices of a program, from its first line."""
    head = text[: text.find("\n")]
    counts = [re.search(rf"\b{name}=(\d+)", head) for name in ("num_partitions", "replica_count")]
    return math.prod(int(found[1]) for found in counts if found)


def _parsed(text: str, devices: int) -> tuple[dict[str, _Computation], str | None]:
    """Return the computations of a program by name, and the name of the first to run."""
    lines = text.splitlines()
    where = _Lines(lines)
    computations: dict[str, _Computation] = {}
    entry, current = None, None
    for line in lines:
        if opening := _COMPUTATION.match(line):
            current = computations[opening[2]] = _Computation()
            entry = opening[2] if opening[1] else entry
        elif current is not None and (start := _INSTRUCTION.match(line)):
            _read(line[start.end() :], current, where, devices)
    return computations, entry


def _read(instruction: str, into: _Computation, where: _Lines, devices: int) -> None:
    """Add what an instruction, such as ``f32[2] all-reduce(%x), ...``, exchanges or calls."""
    end = _end_of_type(instruction)
    kind = instruction[end + 1 : instruction.find("(", end)]
    base = kind.removesuffix("-start")
    if base in KINDS:
        groups = _groups(instruction, devices)
        into.found.append(
            _Found(base, groups, _operand_bytes(kind, instruction[:end], groups.shape[1]), where.of(instruction))
        )
    elif loop := _LOOP.search(instruction):
        trips = _TRIPS.search(instruction)
        into.calls += [(loop[1], int(trips[1]) if trips else None), (loop[2], int(trips[1]) if trips else None)]
    elif branches := _BRANCHES.search(instruction):
        into.choices.append([name.strip().lstrip("%") for name in branches[1].split(",")])
    elif kind in ("async-update", "async-done"):  # they name what the start has called
        return
    elif called := _CALLED.findall(instruction):
        if kind == "conditional":
            into.choices.append(called)
        else:
            into.calls += [(name, 1) for name in called]


def _end_of_type(instruction: str) -> int:
    """Return the position of the blank behind the type with which an instruction begins."""
    if not instruction.startswith("("):
        return instruction.find(" ")
    depth = 0
    for position, letter in enumerate(instruction):
        depth += (letter == "(") - (letter == ")")
        if not depth:
            return position + 1
    return -1


def _operand_bytes(kind: str, result: str, devices: int) -> float:
    """Return the size of the operands on one device, which follows from the type of the result and the group's devices.

    An operation that is started returns its operands beside its results, except for a sum.
    """
    sizes = [_nbytes(dtype, shape) for dtype, shape in _ARRAY.findall(result)]
    if kind.endswith("-start") and kind != "all-reduce-start":
        return sizes[0] if len(sizes) == 2 else sum(sizes[: len(sizes) // 2])
    if kind == "all-gather":
        return sum(sizes) / devices
    return sum(sizes) * (devices if kind == "reduce-scatter" else 1)


def _nbytes(dtype: str, shape: str) -> float:
    """Return the size of an array, such as ``"bf16"`` and ``"8,256"``, in bytes.

    The first number in the name of a type is its bits.
    """
    bits = re.search(r"\d+", dtype)
    width = int(bits[0]) if bits else 8 if dtype == "pred" else 0
    return math.prod(int(size) for size in shape.split(",") if size) * width / 8


def _groups(instruction: str, count: int) -> np.ndarray:
    """Return the devices that exchange elements, a row for each group, or for each pair of a shift.

    They are listed, ``{{0,1},{2,3}}``, or counted, ``[2,2]<=[2,2]T(1,0)``: ``arange(4).reshape(2, 2).T``, in two rows;
    or they are axes of a mesh, ``mesh['a'=2,'b'=2] {'a'}``. An empty list stands for all of the program's devices.

    Raises:
      ArgumentError: they are written in another way, or differ in size (a ValueError).
    """
    if pairs := _PAIRS.search(instruction):
        return np.array([_integers(pair) for pair in re.findall(r"\{([\d,]+)\}", pairs[1])]).reshape(-1, 2)
    if counted := _COUNTED_GROUPS.search(instruction):
        return _counted(counted[2], counted[3]).reshape(_integers(counted[1]))
    if named := _NAMED_GROUPS.search(instruction):
        sizes = {name: int(size) for name, size in re.findall(r"'([^']*)'=(\d+)", named[1])}
        if named[4]:
            devices = np.array(_integers(named[4]))
        else:
            devices = _counted(named[2] or str(math.prod(sizes.values())), named[3])
        return _along(devices.reshape(tuple(sizes.values())), list(sizes), named[5])
    listed = _LISTED_GROUPS.search(instruction)
    rows = [_integers(row) for row in re.findall(r"\{([\d,]+)\}", listed[1])] if listed else []
    if listed is None or len(set(map(len, rows))) > 1:
        written = instruction[instruction.find("replica_groups") :]
        raise ArgumentError(f"collectives: expected groups of equally many devices, got {written[:200]}")
    return np.array(rows) if rows else np.arange(count)[None]


def _counted(shape: str, order: str | None) -> np.ndarray:
    """Return the devices in the order of ``arange(n).reshape(shape).transpose(order)``."""
    devices = np.arange(math.prod(_integers(shape))).reshape(_integers(shape))
    return devices.transpose(_integers(order)) if order else devices


def _along(devices: np.ndarray, names: list[str], axes: str) -> np.ndarray:
    """Return a row for each group of devices that differ along ``axes``, such as ``"'a','b':(2)4"``.

    ``'b':(2)4`` is a factor of 4 of the axis b, whose positions are 2 times 4 times the rest.
    """
    last = []
    for name, before, size in re.findall(r"'([^']*)'(?::\((\d+)\)(\d+))?", axes):
        at = names.index(name)
        if size:
            split = (int(before), int(size), devices.shape[at] // (int(before) * int(size)))
            devices = devices.reshape(*devices.shape[:at], *split, *devices.shape[at + 1 :])
            names = [*names[:at], f"{name} before", f"{name} {before}", name, *names[at + 1 :]]
            name = f"{name} {before}"
        last.append(name)
    order = [i for i, name in enumerate(names) if name not in last] + [names.index(name) for name in last]
    width = math.prod(devices.shape[names.index(name)] for name in last)
    return devices.transpose(order).reshape(-1, width)


def _integers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def _runs(
    computations: Mapping[str, _Computation], name: str, times: int | None, sizes: Mapping[Any, int]
) -> Iterator[tuple[_Found, int | None]]:
    """Return the collectives that run when a computation does, with how often."""
    computation = computations.get(name)
    if computation is None:
        return
    for found in computation.found:
        yield found, times
    for called, trips in computation.calls:
        yield from _runs(computations, called, None if times is None or trips is None else times * trips, sizes)
    for branches in computation.choices:
        runs = [list(_runs(computations, branch, times, sizes)) for branch in branches]
        yield from max(runs, key=lambda run: sum(_collective(found, n, sizes).moved * (n or 1) for found, n in run))


def _collective(found: _Found, times: int | None, sizes: Mapping[Any, int]) -> Collective:
    """Return a collective with the axes of the mesh along which its groups extend."""
    positions = np.unravel_index(found.groups, tuple(sizes.values()))
    axes = tuple(name for name, position in zip(sizes, positions, strict=True) if np.any(position != position[:, :1]))
    devices = math.prod(sizes[name] for name in axes) if found.kind == "collective-permute" else found.groups.shape[1]
    return Collective(found.kind, axes, devices, int(found.nbytes), times, found.line)


class _Lines:
    """The lines of the user's program, from the tables at the head of a compiled program or from an instruction."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._files: dict[str, str] = {}
        self._locations: dict[str, str] = {}
        self._frames: dict[str, str] = {}
        part = ""
        for line in lines:
            if line in ("FileNames", "FunctionNames", "FileLocations", "StackFrames"):
                part = line
            elif line.startswith(("%", "ENTRY")):
                break
            elif row := re.match(r"(\d+) (.*)", line):
                self._add(part, row[1], row[2])

    def _add(self, part: str, number: str, content: str) -> None:
        if part == "FileNames":
            self._files[number] = json.loads(content)
        elif part == "FileLocations" and (found := re.search(r"file_name_id=(\d+).*?\bline=(\d+)", content)):
            self._locations[number] = f"{self._files.get(found[1], '')}:{found[2]}"
        elif part == "StackFrames" and (found := re.search(r"file_location_id=(\d+)", content)):
            self._frames[number] = self._locations.get(found[1], "")

    def of(self, instruction: str) -> str:
        """Return the line to which an instruction belongs; an empty string if that is not said."""
        if frame := re.search(r"stack_frame_id=(\d+)", instruction):
            return self._frames.get(frame[1], "")
        found = re.search(r'source_file="([^"]*)" source_line=(\d+)', instruction)
        return f"{found[1]}:{found[2]}" if found and found[1] != "-" else ""
