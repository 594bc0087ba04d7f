"""``auto_axes`` and ``explicit_axes``: functions whose results or arguments have a given sharding.

In JAX these functions change the types of mesh axes within a function. Here types have no shardings, so that the axes
are the same within; only the arguments or the results are constrained.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, overload

from pullback.backends.devices.meshes import get_abstract_mesh
from pullback.core.annotations import Decorator, PyTree
from pullback.core.errors import ArgumentError, MeshContextError
from pullback.transforms.programs.placement import with_sharding_constraint

R = TypeVar("R")


def _checked(who: str, axes: Any) -> None:
    """Raise unless a mesh is set and has the ``axes``, a name, a sequence of names or None.

    ``who`` is the public function, for errors.
    """
    mesh = get_abstract_mesh()
    if mesh.empty:
        raise MeshContextError(f"{who} needs a mesh: set one, with set_mesh(mesh): ...")
    names = (axes,) if isinstance(axes, str) else tuple(axes or ())
    unknown = [name for name in names if name not in mesh.axis_names]
    if unknown:
        raise ArgumentError(f"{who}: the mesh has the axes {mesh.axis_names}, but axes={axes!r} names {unknown[0]!r}")


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
        _checked("auto_axes", axes)
        return with_sharding_constraint(f(*args, **kwargs), wanted)

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
        _checked("explicit_axes", axes)
        return f(*with_sharding_constraint(args, wanted), **kwargs)

    return spread
