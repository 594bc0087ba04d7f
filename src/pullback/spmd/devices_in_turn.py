"""``shard_map`` under ``disable_jit``: the devices run the function in Python, in turn, for debuggers.

Each device has a thread, and one thread runs at a time: the first until it reaches a collective, then the second, and
so on. When all have reached it, the collective is computed from their values, as under ``vmap``, and the first device
continues.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any

import numpy as np

from pullback.backends.devices.meshes import Mesh
from pullback.backends.devices.shardings import NamedSharding, PartitionSpec, names_in
from pullback.core.array import CommittedArray, as_array, typeof
from pullback.core.errors import ShardMapError, UnsupportedArgumentError
from pullback.core.jaxpr import free_axes, infer
from pullback.core.trace import Primitive, Trace, Tracer, state
from pullback.core.types import ShapedArray
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.slicing import concatenate, stack
from pullback.primitives.arrays.slicing import slice as slice_of
from pullback.primitives.explicit_shardings import to_auto
from pullback.spmd.shard_map_primitive import AnyMesh, axes_of, shard_shape, sums_of
from pullback.transforms.programs.transfer import device_put
from pullback.transforms.traces.batch import batch_flat


class _ThreadTurns:
    """The synchronisation of threads that run in turn, one thread for each device.

    A thread runs until it reaches a collective. There it waits until all threads have reached the collective.
    """

    def __init__(self, mesh: AnyMesh, manual: frozenset[Any]) -> None:
        self.names = [name for name in mesh.axis_names if name in manual]
        self.sizes = [mesh.shape[name] for name in self.names]
        self.count = int(np.prod(self.sizes))
        self.turn = 0
        self.changed = threading.Condition()
        self.brought: list[Any] = []
        self.results: list[Any] = []
        self.ended = 0
        self.failure: BaseException | None = None

    def wait_for_turn(self, device: int) -> None:
        with self.changed:
            self.changed.wait_for(lambda: self.turn == device or self.failure is not None)
            if self.failure is not None:
                raise _StoppedError

    def pass_on(self) -> None:
        with self.changed:
            self.turn = (self.turn + 1) % self.count
            self.changed.notify_all()

    def meet(self, device: int, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Wait until all devices have reached a collective, and return the result of the collective for this device.

        Args:
          device: the index of this device.
          primitive: the collective.
          args: the operands of this device.
          params: the parameters of the collective.

        Raises:
          ShardMapError: if another device has ended before it reached the collective.
        """
        if self.ended:
            raise ShardMapError(
                f"shard_map: device {device} is at {primitive.name}, but another one finished without it: all "
                f"devices must call the same collectives in the same order"
            )
        self.brought.append((primitive, args, params))
        if device < self.count - 1:
            self.pass_on()
            self.wait_for_turn(device)
        else:
            self.results = self._computed()
            self.brought = []
            if self.count > 1:
                self.pass_on()
                self.wait_for_turn(device)
        return self.results[device]

    def _computed(self) -> list[Any]:
        """Compute the collective that all devices have reached; return the list of the devices' results."""
        primitive, args, params = self.brought[0]
        for device, (other, _, others) in enumerate(self.brought):
            if other is not primitive or others != params:
                raise ShardMapError(
                    f"shard_map: device 0 is at {primitive.name} {params}, but device {device} at {other.name} "
                    f"{others}: all devices must call the same collectives in the same order"
                )

        def along(level: int, operands: Sequence[Any]) -> list[Any]:
            if level == len(self.names):
                out = primitive.bind(*operands, **params)
                return list(out) if primitive.multiple_results else [out]
            axis = state.axes[self.names[level]]
            outs, dims = batch_flat(None, lambda *xs: along(level + 1, xs), axis, operands, [0] * len(operands))
            return [
                shapes.broadcast_in_dim(x, (axis.size, *x.shape), range(1, len(x.shape) + 1)) if d is None
                else shapes.moveaxis(x, d, 0)
                for x, d in zip(outs, dims, strict=True)
            ]  # fmt: skip

        outer, state.trace = state.trace, state.bottom
        try:
            stacked = [stack([as_array(operands[i]) for _, operands, _ in self.brought], 0) for i in range(len(args))]
            grid = [shapes.reshape(x, (*self.sizes, *x.shape[1:])) for x in stacked]
            outs = along(0, grid)
        finally:
            state.trace = outer
        rows = [np.asarray(x).reshape(self.count, *x.shape[len(self.sizes) :]) for x in outs]
        found = [[as_array(column[device]) for column in rows] for device in range(self.count)]
        return found if primitive.multiple_results else [row[0] for row in found]


class _StoppedError(BaseException):
    """The exception that ends the threads of the other devices when the thread of a device has failed."""


class ShardTracer(Tracer):
    """A tracer of one device's shard of an array, whose value Python may read."""

    __slots__ = ("_varying", "value")

    def __init__(self, trace: Trace, value: Any, varying: frozenset[Any], made_at: Any = None) -> None:
        self._trace = trace
        self.value = value
        self._varying = varying
        self.made_at = made_at

    @property
    def aval(self) -> ShapedArray:
        aval = typeof(self.value)
        return aval.update(varying=aval.varying | self._varying)

    def concrete(self) -> Any:
        return self.value.concrete() if isinstance(self.value, Tracer) else self.value

    def differentiated(self) -> Tracer | None:
        return self.value.differentiated() if isinstance(self.value, Tracer) else None

    def __repr__(self) -> str:
        return f"ShardTracer({self.value!r})"


class _DeviceTrace(Trace):
    """A trace that evaluates a function for one device; at a collective it waits for the other devices."""

    __slots__ = ("device", "turns")
    transformation = "shard_map"

    def __init__(self, parent: Trace, function: Any, turns: _ThreadTurns, device: int) -> None:
        super().__init__(parent, function)
        self.quick = False
        self.turns = turns
        self.device = device

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        values, varying = [], frozenset[Any]()
        for x in args:
            if type(x) is ShardTracer and x._trace is self:
                values.append(x.value)
                varying |= x._varying
            else:
                values.append(x)
        collective = primitive.axes_rule is not None
        if collective and not free_axes(primitive, params).isdisjoint(self.turns.names):
            varying = infer(primitive, [typeof(x) for x in args], params).varying
            out = self.turns.meet(self.device, primitive, tuple(values), params)
        elif not collective and primitive.decomposition_rule is not None and primitive.host_rule is None:
            outer, state.trace = state.trace, self
            try:
                return primitive.decomposition_rule(*args, **params)
            finally:
                state.trace = outer
        else:
            out = self.parent.process(primitive, tuple(values), params)
        if primitive.multiple_results:
            return [ShardTracer(self, x, varying) for x in out]
        return ShardTracer(self, out, varying)


def emulate_spmd(
    fun: Any, run: Callable[..., Any], arrays: Sequence[Any], avals: Sequence[ShapedArray],
    in_specs: Sequence[PartitionSpec], out_specs_of: Callable[[list[ShapedArray]], Sequence[PartitionSpec]],
    mesh: AnyMesh, manual: frozenset[Any], check_vma: bool,
) -> list[Any]:  # fmt: skip
    """Run ``run`` on the shards of each device of a mesh in Python, in turn; return the global results.

    Args:
      fun: the user's function, for errors.
      run: takes and returns flat sequences of shards.
      arrays, avals, in_specs: the global operands, the types of their shards, and their specifications.
      out_specs_of: the specifications of the results, from the types of their shards.
      mesh, manual: the devices, and the axes of the mesh that are in scope in ``run``.
      check_vma: whether types record the axes along which a value varies.
    """
    turns = _ThreadTurns(mesh, manual)
    indices = list(np.ndindex(*turns.sizes))
    outer_trace, axes, whole = state.trace, state.axes, list(map(_not_sharded, arrays))
    finished: list[Any] = [None] * turns.count

    def on_device(device: int) -> None:
        coordinates = dict(zip(turns.names, indices[device], strict=True))
        trace = _DeviceTrace(outer_trace, fun, turns, device)
        try:
            turns.wait_for_turn(device)
            state.trace, state.axes = outer_trace, axes
            shards = [_shard(x, mesh, spec, coordinates) for x, spec in zip(whole, in_specs, strict=True)]
            state.trace = trace
            with axes_of(mesh, manual, check_vma, "shard_map"):
                outs = run(*[ShardTracer(trace, x, aval.varying) for x, aval in zip(shards, avals, strict=True)])
                finished[device] = [
                    (x.value, x.aval) if type(x) is ShardTracer and x._trace is trace else (x, typeof(x)) for x in outs
                ]
                turns.ended += 1
                if turns.brought:
                    raise ShardMapError(
                        f"shard_map: device {device} has ended, but another is at {turns.brought[0][0].name}: all "
                        "devices must call the same collectives in the same order"
                    )
                turns.pass_on()
        except _StoppedError:
            pass
        except BaseException as error:
            with turns.changed:
                turns.failure = turns.failure or error
                turns.changed.notify_all()
        finally:
            trace.live = False

    threads = [
        threading.Thread(target=copy_context().run, args=(on_device, i), daemon=True) for i in range(turns.count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if turns.failure is not None:
        raise turns.failure
    specs = out_specs_of([aval for _, aval in finished[0]])
    return [_assembled([outs[i][0] for outs in finished], mesh, spec, turns, indices) for i, spec in enumerate(specs)]


def _not_sharded(x: Any) -> Any:
    """Return an operand as an array whose slices have no sharding in their types; a concrete one is on the host."""
    return as_array(np.asarray(x)) if type(x) is CommittedArray else to_auto(x)


def _check_spec(spec: PartitionSpec) -> None:
    """Raise if a specification is unreduced or reduced, which the shards of devices that run in turn do not record."""
    if sums_of(spec):
        raise UnsupportedArgumentError(
            f"shard_map under disable_jit: {spec} has unreduced or reduced axes, which compiled programs have only"
        )


def _shard(x: Any, mesh: AnyMesh, spec: PartitionSpec, coordinates: dict[Any, int]) -> Any:
    """Return the shard of an array ``x`` on the device with these ``coordinates`` in the mesh.

    ``coordinates`` maps each mesh axis to an index along it.
    """
    _check_spec(spec)
    shape = shard_shape(x.shape, mesh, spec)
    starts = [0] * len(shape)
    for i, entry in enumerate(spec.partitions):
        number = 0
        for name in names_in(entry):
            number = number * mesh.shape[name] + coordinates[name]
        starts[i] = number * shape[i]
    return slice_of(x, starts, [a + n for a, n in zip(starts, shape, strict=True)])


def _assembled(
    shards: Sequence[Any], mesh: AnyMesh, spec: PartitionSpec, turns: _ThreadTurns, indices: Sequence[Any]
) -> Any:
    """Concatenate the shards of a result, one for each device, to the global array, sharded over the mesh.

    ``spec`` is the partition specification of the result. ``indices`` holds for each device its indices along the mesh
    axes ``turns.names``, over which the function is mapped.
    """
    _check_spec(spec)
    grid = {index: as_array(x) for index, x in zip(indices, shards, strict=True)}

    def along(i: int, fixed: dict[Any, int]) -> Any:
        if i == len(spec):
            return grid[tuple([fixed.get(name, 0) for name in turns.names])]
        names = names_in(spec[i])
        if not names:
            return along(i + 1, fixed)
        sizes = [mesh.shape[name] for name in names]
        return concatenate(
            [along(i + 1, {**fixed, **dict(zip(names, at, strict=True))}) for at in np.ndindex(*sizes)], i
        )

    out = along(0, {})
    return device_put(out, NamedSharding(mesh, spec)) if isinstance(mesh, Mesh) else out
