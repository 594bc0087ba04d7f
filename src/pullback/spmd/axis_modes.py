"""``auto_axes`` and ``explicit_axes``: functions within which axes of the mesh have another type.

Along an axis of the type ``Auto`` the compiler divides arrays, along one of the type ``Explicit`` their types say how.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, overload

from pullback.backends.devices.meshes import AxisType, current_mesh, use_mesh
from pullback.backends.devices.shardings import NamedSharding
from pullback.core import tree
from pullback.core.annotations import Decorator, PyTree
from pullback.core.array import Array
from pullback.core.errors import ArgumentError, MeshContextError
from pullback.primitives.explicit_shardings import to_auto
from pullback.transforms.programs.placement import is_placement, placements_of
from pullback.transforms.programs.resharding import reshard

R = TypeVar("R")


def _context(who: str, axes: Any, shardings: Any, kind: AxisType) -> tuple[Any, tuple[Any, ...]]:
    """Return the mesh that is to be set within a function, and those of its axes whose type is changed.

    Args:
      who: the public function, for errors.
      axes: the axes that the user named: a name, a sequence of names, or None for all.
      shardings: a tree of shardings, whose mesh serves if none is set.
      kind: the type of these axes within.

    Raises:
      MeshContextError: there is no mesh (a RuntimeError and ValueError).
      ArgumentError: the mesh lacks an axis, or has it as ``Manual`` (a TypeError and ValueError).
    """
    mesh = current_mesh()
    if mesh is None:
        found = [s.mesh for s in tree.leaves(shardings, is_leaf=is_placement) if isinstance(s, NamedSharding)]
        if not found:
            raise MeshContextError(f"{who} needs a mesh: set one, with set_mesh(mesh): ...")
        mesh = found[0]
    names = mesh.axis_names if axes is None else (axes,) if isinstance(axes, str) else tuple(axes)
    unknown = [name for name in names if name not in mesh.axis_names]
    if unknown:
        raise ArgumentError(f"{who}: the mesh has the axes {mesh.axis_names}, but axes={axes!r} names {unknown[0]!r}")
    manual = [name for name in names if name in mesh.manual_axes]
    if manual and axes is not None:
        raise ArgumentError(f"{who}: the axis {manual[0]!r} is Manual, within shard_map, and stays so")
    names = tuple(name for name in names if name not in manual)
    return mesh.update_axis_types(dict.fromkeys(names, kind)), names


def _resharded(values: Any, shardings: Any) -> Any:
    """Return a tree of arrays with a prefix tree of shardings, in which None leaves an array as it is."""
    leaves, treedef, placements = placements_of(values, shardings, "reshard")
    pairs = zip(leaves, placements, strict=True)
    return tree.unflatten(treedef, [x if s is None else reshard(x, s) for x, s in pairs])


def _auto(values: Any, axes: Any) -> Any:
    """Return a tree of values with types in which the compiler decides along ``axes`` of the mesh."""
    leaves, treedef = tree.flatten(values)
    return tree.unflatten(treedef, [to_auto(x, axes) if isinstance(x, Array) else x for x in leaves])


@overload
def auto_axes(
    f: Callable[..., R], /, *, axes: str | tuple[str, ...] | None = None, out_sharding: PyTree = None
) -> Callable[..., R]: ...
@overload
def auto_axes(
    f: None = None, /, *, axes: str | tuple[str, ...] | None = None, out_sharding: PyTree = None
) -> Decorator: ...
def auto_axes(
    f: Callable[..., Any] | None = None, /, *, axes: str | tuple[str, ...] | None = None, out_sharding: PyTree = None
) -> Any:
    """Make a function whose results have a given sharding; the compiler decides the shardings within.

    Args:
      f: the function; without it, a decorator is returned.
      axes: the axes of the mesh to which this applies; None for all. The compiler decides along the others too.
      out_sharding: the sharding of the results, or a tree of shardings. Without it, calls must pass it by keyword.

    Returns:
      The function, for calls where a mesh is set.

    Raises:
      MeshContextError: no mesh is set (a RuntimeError and ValueError).
      ArgumentError: the mesh lacks an axis, or ``out_sharding`` is missing (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import P, make_mesh, set_mesh
    >>> from pullback.sharding import auto_axes
    >>> with set_mesh(make_mesh((1,), ("i",))):
    ...     print(auto_axes(jnp.sin, out_sharding=P("i"))(jnp.zeros(2)))
    [0. 0.]
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)

    @functools.wraps(f)
    def spread(*args: Any, **kwargs: Any) -> Any:
        wanted = kwargs.pop("out_sharding", None) if out_sharding is None else out_sharding
        if wanted is None:
            raise ArgumentError("auto_axes: pass out_sharding= there or in the call")
        mesh, names = _context("auto_axes", axes, wanted, AxisType.Auto)
        with use_mesh(mesh):
            out = f(*_auto(args, names), **_auto(kwargs, names))
        return _resharded(out, wanted)

    return spread


@overload
def explicit_axes(
    f: Callable[..., R], /, *, axes: str | tuple[str, ...] | None = None, in_sharding: PyTree = None
) -> Callable[..., R]: ...
@overload
def explicit_axes(
    f: None = None, /, *, axes: str | tuple[str, ...] | None = None, in_sharding: PyTree = None
) -> Decorator: ...
def explicit_axes(
    f: Callable[..., Any] | None = None, /, *, axes: str | tuple[str, ...] | None = None, in_sharding: PyTree = None
) -> Any:
    """Make a function whose arguments have a given sharding.

    Args:
      f: the function; without it, a decorator is returned.
      axes: the axes of the mesh to which this applies; None for all.
      in_sharding: the sharding of the positional arguments, or a tuple with a sharding for each. Without it, calls must
        pass it by keyword.

    Returns:
      The function, for calls where a mesh is set.

    Raises:
      MeshContextError: no mesh is set (a RuntimeError and ValueError).
      ArgumentError: the mesh lacks an axis, or ``in_sharding`` is missing (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import P, make_mesh, set_mesh
    >>> from pullback.sharding import explicit_axes
    >>> with set_mesh(make_mesh((1,), ("i",))):
    ...     print(explicit_axes(jnp.sin, in_sharding=P("i"))(jnp.zeros(2)))
    [0. 0.]
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)

    @functools.wraps(f)
    def spread(*args: Any, **kwargs: Any) -> Any:
        wanted = kwargs.pop("in_sharding", None) if in_sharding is None else in_sharding
        if wanted is None:
            raise ArgumentError("explicit_axes: pass in_sharding= there or in the call")
        mesh, names = _context("explicit_axes", axes, wanted, AxisType.Explicit)
        outside = current_mesh()
        with use_mesh(mesh):
            out = f(*_resharded(args, wanted), **kwargs)
        return _auto(out, [n for n in names if outside is None or n in outside.auto_axes])

    return spread
