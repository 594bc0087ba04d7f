"""``pmap``: a function mapped over the leading axis of its arguments, each index on a device of its own."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import MethodType
from typing import Any, TypeVar

import numpy as np

from pullback.backends.devices.buffers import from_buffer
from pullback.backends.devices.devices import Device, default_device
from pullback.backends.devices.devices import devices as all_devices
from pullback.backends.devices.meshes import Mesh
from pullback.backends.devices.shardings import NamedSharding, PartitionSpec
from pullback.backends.devices.shards import local_shards
from pullback.core import source, tree
from pullback.core.annotations import AxisName, PyTree
from pullback.core.arguments import quote, require_function
from pullback.core.array import CommittedArray, shared, signature, typeof
from pullback.core.config import config
from pullback.core.errors import ArgumentError, BatchAxisError, BatchSizeError
from pullback.core.registry import OwnsPrograms
from pullback.core.trace import state
from pullback.primitives.arrays import shapes
from pullback.spmd.shard_map import bind_mapped
from pullback.spmd.shard_map_primitive import shard_aval
from pullback.transforms.autodiff.vmap import vmap
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import argument_name, name_of, to_arrays
from pullback.transforms.functions.flat_function import FlatFunction
from pullback.transforms.jit.jit import jit
from pullback.transforms.programs.transfer import device_put

R = TypeVar("R")


class _Unnamed:
    """The axis name that ``pmap`` uses if the user passes no ``axis_name``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "pmap"


class PmapFunction(OwnsPrograms):
    """A function that ``pmap`` made, which is called like the original function.

    ``trace`` and ``lower`` inspect it, like those of ``jit``.
    """

    def __init__(
        self, fun: Callable[..., Any], name: Any, in_axes: Any, out_axes: Any, static: tuple[int, ...],
        donated: tuple[int, ...], devices: tuple[Device, ...] | None, axis_size: int | None, backend: str | None,
    ) -> None:  # fmt: skip
        source.named_as(fun)(self)
        self._fun = fun
        self._name = name
        self._in_axes = in_axes
        self._out_axes = out_axes
        self._static = static
        self._donated = donated
        self._devices = devices
        self._axis_size = axis_size
        self._backend = backend
        self._programs: dict[Any, tuple[Any, FlatFunction]] = {}

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        fun = self._fun
        fixed = self._fixed(args)
        where = [i for i in range(len(args)) if i not in fixed]
        leaves, in_tree = tree.flatten(([args[i] for i in where], kwargs))
        arrays = to_arrays(leaves, "pmap", fun, args, where)
        axes = self._leaf_axes(args, where, kwargs, len(arrays))
        size = self._size(arrays, axes, args, where, kwargs)
        if any(axis.mapped_by == "pmap" for axis in state.axes.values()):
            return self._within(args, kwargs, fixed)  # an enclosing pmap has chosen the device
        mesh = self._mesh(size)
        key = (in_tree, tuple(axes), mesh, tuple(sorted(fixed.items())), len(args))
        try:
            found = self._programs.get(key)
        except TypeError:
            raise ArgumentError(f"pmap of {name_of(fun)}: static arguments must be hashable, got {fixed!r}") from None
        if found is None:
            found = self._programs[key] = self._program(in_tree, axes, mesh, fixed, len(args), where)
        program, flat = found
        arrays = [_on_mesh(x, mesh, axis) for x, axis in zip(arrays, axes, strict=True)]
        outs = program(*arrays)
        if size == 1 and mesh.assignment.devices[0] is default_device():
            outs = list(map(_on_no_mesh, outs))
        return flat.result(outs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Make the function a method: an instance is passed as its first argument."""
        return self if instance is None else MethodType(self, instance)

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """Trace the function for arguments (arrays, or objects with ``shape`` and ``dtype``), without running it."""
        return self._jitted().trace(*args, **kwargs)

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """Lower the function for some arguments to text for the compiler."""
        return self._jitted().lower(*args, **kwargs)

    def clear_cache(self) -> None:
        """Clear the traced and compiled programs of this function."""
        self._programs.clear()

    def _jitted(self) -> Any:
        @source.named_as(self._fun, attributes=False)
        def call(*args: Any, **kwargs: Any) -> Any:
            return self(*args, **kwargs)

        return jit(call, static_argnums=self._static, donate_argnums=self._donated)

    def _fixed(self, args: Sequence[Any]) -> dict[int, Any]:
        beyond = [i for i in self._static if not -len(args) <= i < len(args)]
        if beyond:
            raise ArgumentError(
                f"pmap of {name_of(self._fun)}: static_broadcasted_argnums has {beyond[0]}, but it was called with "
                f"{len(args)} positional arguments"
            )
        return {i % len(args): args[i] for i in self._static}

    def _leaf_axes(self, args: Sequence[Any], where: Sequence[int], kwargs: Any, count: int) -> list[int | None]:
        """Return the mapped axis, or None, of each leaf of the dynamic (not static) arguments.

        Positional arguments follow ``in_axes``; leaves of keyword arguments are mapped over axis 0.

        Args:
          args, kwargs: the arguments of the call.
          where: the positions of the dynamic arguments in ``args``.
          count: the number of leaves of all dynamic arguments, with the keyword arguments.
        """
        dynamic = [args[i] for i in where]
        in_axes = self._in_axes
        if isinstance(in_axes, (tuple, list)):
            if len(in_axes) not in (len(args), len(dynamic)):
                raise BatchAxisError(
                    f"pmap of {name_of(self._fun)}: in_axes has {len(in_axes)} entries, {in_axes!r}, but it was called "
                    f"with {len(args)} positional arguments; pass one for each"
                )
            in_axes = [in_axes[i] for i in where] if len(in_axes) == len(args) else list(in_axes)
        try:
            axes = tree.broadcast_prefix(in_axes, dynamic, is_leaf=lambda x: x is None)
        except ValueError as error:
            raise BatchAxisError(
                f"pmap of {name_of(self._fun)}: in_axes={self._in_axes!r} must be a prefix of the arguments: {error}"
            ) from None
        for axis in axes:
            if axis is not None and (isinstance(axis, bool) or not isinstance(axis, int)):
                raise BatchAxisError(
                    f"pmap of {name_of(self._fun)}: in_axes must contain ints and None only, got {axis!r}"
                )
        return axes + [0] * (count - len(axes))

    def _size(self, arrays: Sequence[Any], axes: list[int | None], args: Any, where: Sequence[int], kwargs: Any) -> int:
        """Return the common size of the mapped axes; make negative entries of ``axes`` nonnegative, in place.

        Args:
          arrays: the leaves of the dynamic (not static) arguments.
          axes: the mapped axis, or None, of each leaf.
          args, kwargs: the arguments of the call, for error messages.
          where: the positions of the dynamic arguments in ``args``, for error messages.
        """
        size = self._axis_size
        for i, (x, axis) in enumerate(zip(arrays, axes, strict=True)):
            if axis is None:
                continue
            rank = len(x.shape)
            name = partial(argument_name, i, self._fun, args, where, kwargs)
            if not -rank <= axis < rank:
                raise BatchAxisError(
                    f"pmap of {name_of(self._fun)} was asked to map over axis {axis} of {name()}, which has shape "
                    f"{x.shape}"
                )
            axes[i] = axis % rank
            n = x.shape[axis]
            if size is not None and n != size:
                raise BatchSizeError(
                    f"pmap of {name_of(self._fun)}: the mapped axes must have one size, but {name()} of shape "
                    f"{x.shape} has {n} along axis {axis}, and others, or axis_size, {size}"
                )
            size = n
        if size is None:
            raise BatchSizeError(
                f"pmap of {name_of(self._fun)}: nothing is mapped, so the size of the axis is unknown; map over an "
                f"argument, or pass axis_size"
            )
        return size

    def _mesh(self, size: int) -> Mesh:
        available = self._devices if self._devices is not None else tuple(all_devices(self._backend))
        if self._devices is not None and len(available) != size:
            raise BatchSizeError(
                f"pmap of {name_of(self._fun)}: the mapped axis has size {size}, but {len(available)} devices were "
                f"passed"
            )
        if size > len(available):
            raise BatchSizeError(
                f"pmap of {name_of(self._fun)}: the mapped axis has size {size}, which needs as many devices, but "
                f"there are {len(available)}: map over a shorter axis, or use vmap. On CPUs "
                f'pullback.config.update("num_cpu_devices", {size}) at the start makes more devices.'
            )
        return Mesh(np.array(available[:size], dtype=object), (self._name,))

    def _program(
        self, in_tree: Any, axes: Sequence[int | None], mesh: Mesh, fixed: dict[int, Any], count: int,
        where: Sequence[int],
    ) -> tuple[Any, FlatFunction]:  # fmt: skip
        template = [fixed.get(i) for i in range(count)]
        flat = FlatFunction(self._fun, in_tree, template, where, keywords=True)
        name = self._name

        specs = [PartitionSpec() if d is None else PartitionSpec(*(None,) * d, name) for d in axes]
        ends: list[int | None] = []

        def on_device(*shards: Any) -> list[Any]:
            outs = flat(*[x if d is None else shapes.squeeze(x, (d,)) for x, d in zip(shards, axes, strict=True)])
            ends[:] = self._ends(flat, outs)
            return [x if e is None else shapes.expand_dims(x, (e,)) for x, e in zip(outs, ends, strict=True)]

        def out_specs_of(avals: Any) -> list[PartitionSpec]:
            return [PartitionSpec() if e is None else PartitionSpec(*(None,) * e, name) for e in ends]

        def run(*arrays: Any) -> list[Any]:
            manual = frozenset([name])
            avals = [shard_aval(typeof(x), mesh, spec, manual) for x, spec in zip(arrays, specs, strict=True)]
            return bind_mapped(self._fun, on_device, arrays, avals, specs, out_specs_of, mesh, manual, False, "pmap")

        donated = [k for k, i in enumerate(where) if i in self._donated]
        found = source.attribute(self._fun, "__name__")
        run.__name__ = found if isinstance(found, str) else "pmap"
        return jit(run, donate_argnums=_leaf_numbers(in_tree, donated)), flat

    def _ends(self, flat: FlatFunction, outs: Sequence[Any]) -> list[int | None]:
        """Return the position of the mapped axis in each result, from ``out_axes``.

        The entry is None for a result that all devices share.

        Args:
          flat: the flat version of the function.
          outs: the leaves of the results that ``flat`` returned on a device, without the mapped axis.
        """
        try:
            ends = tree.broadcast_prefix(self._out_axes, flat.result(outs), is_leaf=lambda x: x is None)
        except ValueError as error:
            raise BatchAxisError(
                f"pmap of {name_of(self._fun)}: out_axes={self._out_axes!r} must be a prefix of the results: {error}"
            ) from None
        found: list[int | None] = []
        for x, end in zip(outs, ends, strict=True):
            rank = len(x.shape) + 1
            if end is None:
                found.append(None)
                continue
            if isinstance(end, bool) or not isinstance(end, int) or not -rank <= end < rank:
                raise BatchAxisError(
                    f"pmap of {name_of(self._fun)}: out_axes must be an axis of each result, of {rank} axes with the "
                    f"mapped one, or None for one copy, got {end!r}"
                )
            found.append(end % rank)
        return found

    def _within(self, args: Any, kwargs: Any, fixed: dict[int, Any]) -> Any:
        """Call the function within another ``pmap``: map it by ``vmap``, on the single device that runs this call.

        Args:
          args, kwargs: the arguments of the call.
          fixed: from the position of each static argument to its value.
        """
        fun = self._fun

        def run(*dynamic: Any, **named: Any) -> Any:
            values = iter(dynamic)
            return fun(*[fixed[i] if i in fixed else next(values) for i in range(len(args))], **named)

        in_axes = self._in_axes
        if isinstance(in_axes, (tuple, list)) and len(in_axes) == len(args):
            in_axes = tuple([a for i, a in enumerate(in_axes) if i not in fixed])
        moving = [x for i, x in enumerate(args) if i not in fixed]
        inner = vmap(run, in_axes, self._out_axes, axis_name=self._name, axis_size=self._axis_size)
        return inner(*moving, **kwargs)

    def __repr__(self) -> str:
        return f"<pmap of {name_of(self._fun)}>"


tree.register_leaf_type(PmapFunction)


def _leaf_numbers(in_tree: Any, arguments: Iterable[int]) -> tuple[int, ...]:
    """Return the indices, among all leaves of ``in_tree``, of the leaves of the positional arguments ``arguments``."""
    trees = tree.treedef_children(tree.treedef_children(in_tree)[0])
    starts = np.cumsum([0, *[t.num_leaves for t in trees]])
    return tuple([int(k) for i in arguments for k in range(starts[i], starts[i + 1])])


def _on_mesh(x: Any, mesh: Mesh, axis: int | None) -> Any:
    """Move an argument that is on other devices than those of ``mesh`` there, divided along ``axis``."""
    if not isinstance(x, CommittedArray) or x._signature.placement.runs_on is mesh.assignment:
        return x
    (name,) = mesh.axis_names
    return device_put(x, NamedSharding(mesh, PartitionSpec() if axis is None else PartitionSpec(*(None,) * axis, name)))


def _on_no_mesh(x: Any) -> Any:
    """Return a result on the default device as an array of the class of all others there; a tracer stays as it is.

    Libraries compare the classes of arrays: Equinox's ``tree_equal`` with ``typematch=True``, for one.
    """
    if type(x) is not CommittedArray:
        return x
    ((*_, buffer),) = local_shards(x)
    return from_buffer(shared(buffer), signature(x.shape, x.dtype, bool(x.weak_type)))


def _numbers(argnums: Any, name: str) -> tuple[int, ...]:
    try:
        return (operator.index(argnums),) if not isinstance(argnums, Iterable) else tuple(map(operator.index, argnums))
    except TypeError:
        raise ArgumentError(f"pmap: {name} must be an int or a sequence of ints, got {argnums!r}") from None


def pmap(
    fun: Callable[..., R],
    axis_name: AxisName | None = None,
    *,
    in_axes: PyTree = 0,
    out_axes: PyTree = 0,
    static_broadcasted_argnums: int | Iterable[int] = (),
    devices: Sequence[Device] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Iterable[int] = (),
) -> Callable[..., R]:
    """Map a function over an axis of its arguments, each index on a device of its own.

    It is compiled once for each kind of arguments. The shards of the results stay on the devices that computed them;
    over the default device alone, the results are as those of ``jit``: they are not committed to it.
    ``shard_map`` is newer, and works with arrays that are not stacked by device.

    Args:
      fun: takes and returns trees of arrays.
      axis_name: a name for the axis, for collectives.
      in_axes: as of ``vmap``: an int, None, or a tuple with an entry, or a tree, for each argument.
      out_axes: the position of the mapped axis in each result: an int, or a tree of ints; None to return one copy of a
        result that is the same on all devices, such as a sum over them. This is not checked.
      static_broadcasted_argnums: the positions of static arguments, which must be hashable.
      devices: the devices, as many as the mapped axis has indices; by default the first ones of ``devices()``.
      backend: the platform of the devices, without ``devices``.
      axis_size: the size of the mapped axis, which is necessary only if no argument is mapped.
      donate_argnums: positional arguments whose memory the results may reuse.

    Returns:
      A function of the same arguments, of stacked arrays.

    Raises:
      BatchSizeError: sizes disagree, or there are more indices than devices (a ValueError).
      BatchAxisError: ``in_axes`` or ``out_axes`` do not fit (a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax, pmap
    >>> print(pmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(jnp.array([4.0])))
    [1.]
    """
    require_function("pmap", "fun", fun)
    if devices is not None and backend is not None:
        raise ArgumentError(f"pmap: pass either devices or backend; got {devices!r} and {backend!r}")
    if devices is not None and not isinstance(devices, Iterable):
        raise ArgumentError(f"pmap: devices must be a sequence of devices, got {quote(devices)}")
    selected = None if devices is None else tuple(devices)
    if selected == ():
        raise ArgumentError("pmap: devices must contain a device for each index of the mapped axis, got no devices")
    if config.disable_jit:
        return vmap(fun, in_axes, out_axes, axis_name=axis_name, axis_size=axis_size)
    return PmapFunction(
        fun, _Unnamed() if axis_name is None else axis_name, in_axes, out_axes,
        _numbers(static_broadcasted_argnums, "static_broadcasted_argnums"), _numbers(donate_argnums, "donate_argnums"),
        selected, axis_size, backend,
    )  # fmt: skip
