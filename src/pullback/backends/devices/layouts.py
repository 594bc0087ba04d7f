"""Layouts: the order of the elements of an array in memory. Pullback's arrays are row-major."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pullback.backends.devices.shardings import Sharding
from pullback.core.errors import LayoutError
from pullback.core.naming import quoted


class _Auto:
    """The type of ``Layout.AUTO``, which lets the compiler choose the layout."""

    def __repr__(self) -> str:
        return "AUTO"


@dataclass(frozen=True)
class Layout:
    """The order of the elements of an array in memory.

    Args:
      major_to_minor: the axes, the slowest first.
      tiling: the sizes of tiles, where elements are in tiles; None to leave it open.
      sub_byte_element_size_in_bits: the size of an element that is smaller than a byte, else 0.

    Attributes:
      AUTO: lets the compiler choose the layout.

    >>> from pullback.experimental.layout import Layout
    >>> Layout((0, 1))
    Layout(major_to_minor=(0, 1), tiling=None, sub_byte_element_size_in_bits=0)
    """

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0
    AUTO: ClassVar[Any] = _Auto()

    def __post_init__(self) -> None:
        object.__setattr__(self, "major_to_minor", tuple(self.major_to_minor))


class Format:
    """A layout and a sharding: the order of the elements of an array in memory, and their devices.

    Args:
      layout: a :class:`Layout`, ``Layout.AUTO``, or None to leave it open.
      sharding: a sharding, or None. A layout needs a sharding.

    Raises:
      LayoutError: an argument is of another kind, or there is a layout without a sharding (a ValueError and TypeError).

    >>> import pullback
    >>> pullback.numpy.ones((2, 3)).format.layout.major_to_minor
    (0, 1)
    """

    __slots__ = ("layout", "sharding")

    def __init__(self, layout: Layout | None = None, sharding: Sharding | None = None) -> None:
        if layout is not None and layout is not Layout.AUTO and not isinstance(layout, Layout):
            raise LayoutError(f"Format: expected a Layout, Layout.AUTO or None, got {quoted(layout)}")
        if sharding is not None and not isinstance(sharding, Sharding):
            raise LayoutError(
                f"Format: expected a sharding such as NamedSharding(mesh, P('x')), got {quoted(sharding)}"
            )
        if isinstance(layout, Layout) and sharding is None:
            raise LayoutError(f"Format: {layout} needs a sharding, such as a NamedSharding or a SingleDeviceSharding")
        self.layout = layout
        self.sharding = sharding

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Format) and (self.layout, self.sharding) == (other.layout, other.sharding)

    def __hash__(self) -> int:
        return hash((self.layout, self.sharding))

    def __repr__(self) -> str:
        return f"Format(layout={self.layout!r}, sharding={self.sharding!r})"


def row_major(ndim: int, sharding: Any) -> Format:
    """The row-major format of arrays of rank ``ndim`` that have the given sharding."""
    return Format(Layout(tuple(range(ndim)), ()), sharding)


def check_layout(layout: Any, who: str) -> None:
    """Check that a layout is that of Pullback's arrays: row-major, without tiles.

    Args:
      layout: a ``Layout`` or ``Format``. Any other value passes.
      who: the name of the function that takes the layout, for the error message.

    Raises:
      LayoutError: the layout is another one.
    """
    if isinstance(layout, Format):
        layout = layout.layout
    if isinstance(layout, Layout) and (layout.tiling or not _in_order(layout.major_to_minor)):
        raise LayoutError(
            f"{who}: arrays are stored in row-major order without tiles, but {layout} is another layout. Leave it "
            f"out, or transpose the array; inside compiled functions the compiler chooses the layout."
        )


def _in_order(axes: Sequence[int]) -> bool:
    return list(axes) == list(range(len(axes)))


def without_layout(placement: Any, who: str) -> Any:
    """Return the sharding of a :class:`Format`; return any other placement unchanged.

    Args:
      placement: the format or other placement.
      who: the name of the function that takes it, for the error message.

    Raises:
      LayoutError: the layout of the format is not row-major (a ValueError and NotImplementedError).
    """
    if not isinstance(placement, Format):
        return placement
    check_layout(placement.layout, who)
    return placement.sharding
