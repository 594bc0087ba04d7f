"""Inspecting shardings: as a picture, and from within compiled functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.backends.devices.devices import Device
from pullback.backends.devices.shardings import Sharding, as_sharding
from pullback.core import tree
from pullback.core.annotations import PyTree
from pullback.core.arguments import require_function
from pullback.core.array import ArrayLike, as_array
from pullback.core.errors import ShardingError
from pullback.core.naming import quoted
from pullback.core.trace import Primitive, Tracer
from pullback.primitives.rules import as_inferred, jvp_zero, sharding_rule
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.programs.sharded_arrays import sharding_of

LEAST_WIDTH = 8
"""The least width of a cell of a picture, in characters."""


@api_boundary
def visualize_array_sharding(arr: ArrayLike, **kwargs: Any) -> None:
    """Print a picture of the devices that have each shard of an array.

    In a compiled function it is printed when the program is compiled, which decides.

    Args:
      arr: an array of one or two axes.
      kwargs: see :func:`visualize_sharding`.

    Raises:
      ShardingError: the array has another number of axes (a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import debug
    >>> debug.visualize_array_sharding(jnp.ones(4))
    ┌────────┐
    │ CPU 0  │
    └────────┘
    """
    array = as_array(arr)

    def show(sharding: Sharding) -> None:
        visualize_sharding(array.shape, sharding, **kwargs)

    if isinstance(array, Tracer):
        inspect_array_sharding(array, callback=show)
    else:
        show(sharding_of(array))


@api_boundary
def visualize_sharding(
    shape: Sequence[int],
    sharding: Sharding,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = LEAST_WIDTH,
    max_width: int = 80,
    color_map: Callable[..., Any] | str | None = None,
) -> None:
    """Print a picture of the devices that have each shard of arrays of a shape.

    Args:
      shape: the shape, of one or two axes.
      sharding: the sharding.
      use_color, color_map: accepted for compatibility: pictures have no colours.
      scale: the factor by which cells are larger than necessary.
      min_width: the least width of a cell, in characters.
      max_width: the largest width of the picture, for which names of devices are truncated.

    Raises:
      ShardingError: the shape has another number of axes, or the sharding does not fit it (a ValueError).

    >>> from pullback import NamedSharding, P, debug, make_mesh
    >>> mesh = make_mesh((1, 1), ("x", "y"))
    >>> debug.visualize_sharding((4, 4), NamedSharding(mesh, P("x", "y")))
    ┌────────┐
    │ CPU 0  │
    └────────┘
    """
    if not isinstance(sharding, Sharding):
        raise ShardingError(f"visualize_sharding: expected a sharding, got {quoted(sharding)}")
    sizes = tuple(shape)
    if len(sizes) not in (1, 2):
        raise ShardingError(f"visualize_sharding: only arrays with 1 or 2 axes can be drawn, got shape {sizes}")
    cells: dict[tuple[int, ...], list[Device]] = {}
    for device, index in sharding.devices_indices_map(sizes).items():
        start = tuple(i.indices(n)[0] for i, n in zip(index, sizes, strict=True))
        cells.setdefault(start if len(start) == 2 else (0, *start), []).append(device)
    rows, columns = (sorted({start[axis] for start in cells}) for axis in range(2))
    names = {at: f"{d[0].platform.upper()} {','.join(str(x.id) for x in d)}" for at, d in cells.items()}
    widest = max(max(map(len, names.values())) + 2, int(min_width * scale))
    width = max(3, min(widest, max_width // len(columns) - 1))
    print(_picture([[names[r, c] for c in columns] for r in rows], width, max(1, round(scale))))


def _picture(cells: Sequence[Sequence[str]], width: int, height: int) -> str:
    """Return a picture of rows of boxes, each with a text in its centre; ``width`` and ``height`` are of one box."""

    def rule(left: str, middle: str, right: str) -> str:
        return left + middle.join(["─" * width] * len(cells[0])) + right

    lines = [rule("┌", "┬", "┐")]
    for i, row in enumerate(cells):
        if i:
            lines.append(rule("├", "┼", "┤"))
        for k in range(height):
            texts = [_fitted(text, width) if k == height // 2 else " " * width for text in row]
            lines.append("│" + "│".join(texts) + "│")
    lines.append(rule("└", "┴", "┘"))
    return "\n".join(lines)


def _fitted(text: str, width: int) -> str:
    """Centre a text in a line of ``width`` characters, or truncate it if it is longer."""
    return text.center(width) if len(text) <= width else text[: width - 1] + "…"


# Within compiled functions --------------------------------------------------------------------------------------------

inspect_sharding_p = Primitive("inspect_sharding", multiple_results=True, effect=True)
inspect_sharding_p.abstract_eval(lambda x, *, callback: [])
sharding_rule(inspect_sharding_p)(as_inferred)
inspect_sharding_p.jvp_rule = jvp_zero(inspect_sharding_p)


@inspect_sharding_p.impl
def _inspect(args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    params["callback"](sharding_of(args[0]))
    return []


@inspect_sharding_p.batch
def _inspect_batch(axis: Any, args: Sequence[Any], dims: Sequence[Any], *, callback: Any) -> Any:
    return inspect_sharding_p.bind(*args, callback=callback), []


@inspect_sharding_p.lowering
def _inspect_lowering(hlo: Any, x: Any, *, callback: Any) -> list[Any]:
    hlo.inspected(x, lambda placement: callback(as_sharding(placement)))
    return []


@api_boundary
def inspect_array_sharding(value: PyTree, *, callback: Callable[[Sharding], None]) -> None:
    """Call a function with the sharding of each array of a tree, also within compiled functions.

    In a compiled function the compiler chooses shardings, and calls the function at compile time.

    Args:
      value: a tree of arrays.
      callback: takes a sharding; it is called for each array.

    Raises:
      ArgumentError: ``callback`` is not a function (a TypeError and a ValueError).
      OperandError: a leaf is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import debug
    >>> debug.inspect_array_sharding(jnp.ones(2), callback=print)
    SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)
    """
    require_function("inspect_array_sharding", "callback", callback)
    for leaf in tree.leaves(value):
        inspect_sharding_p.bind(as_array(leaf), callback=callback)
