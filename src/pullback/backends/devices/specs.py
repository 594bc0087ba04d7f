"""Specifications: which axes of a mesh divide the axes of an array."""

from __future__ import annotations

import enum
from collections.abc import Collection, Sequence
from typing import Any

from pullback.core.errors import ShardingError
from pullback.core.naming import quoted


class _Unconstrained:
    """The type of ``UNCONSTRAINED``: as the entry of an array axis, it lets the compiler choose the axis's division."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "UNCONSTRAINED"


UNCONSTRAINED = _Unconstrained()


class UnreducedKind(enum.Enum):
    """How the shards of an array that is unreduced over axes of a mesh make its elements: their sum, or an extremum.

    >>> from pullback import P
    >>> P("x", unreduced={"y"}).unreduced_kind
    <UnreducedKind.sum: 1>
    """

    sum = enum.auto()
    max = enum.auto()
    min = enum.auto()


class PartitionSpec:
    """How the axes of an array are divided among the axes of a mesh.

    Args:
      partitions: for each axis of the array the name of an axis of the mesh, or a tuple of names, the slowest first, or
        None if it is not divided, or ``PartitionSpec.UNCONSTRAINED`` if the compiler decides. Further axes of the array
        are not divided.
      unreduced: axes of the mesh over which the array is still to be summed: its elements are sums over the devices.
      reduced: axes of the mesh over which the cotangents of the array are still to be summed.
      unreduced_kind: an :class:`UnreducedKind`; by default the sum, if there are unreduced axes.

    Raises:
      ShardingError: an entry is of another kind, or an axis has two of these parts (a ValueError and TypeError).

    >>> from pullback.sharding import PartitionSpec
    >>> PartitionSpec("data", None, ("x", "y"))
    P('data', None, ('x', 'y'))
    """

    __slots__ = ("partitions", "reduced", "unreduced", "unreduced_kind")
    UNCONSTRAINED = UNCONSTRAINED

    def __init__(
        self,
        *partitions: Any,
        unreduced: Collection[Any] = (),
        reduced: Collection[Any] = (),
        unreduced_kind: UnreducedKind | None = None,
    ) -> None:
        self.partitions = tuple(map(_entry, partitions))
        self.unreduced: frozenset[Any] = _NO_AXES
        self.reduced: frozenset[Any] = _NO_AXES
        self.unreduced_kind: UnreducedKind | None = None
        if unreduced or reduced or unreduced_kind is not None:
            self._set_reductions(unreduced, reduced, unreduced_kind)

    def _set_reductions(self, unreduced: Any, reduced: Any, kind: Any) -> None:
        self.unreduced, self.reduced = _axis_set(unreduced, "unreduced"), _axis_set(reduced, "reduced")
        if kind is not None and (not isinstance(kind, UnreducedKind) or not self.unreduced):
            raise ShardingError(
                f"PartitionSpec: unreduced_kind is an UnreducedKind, for a specification with unreduced axes; got "
                f"unreduced_kind={kind!r} and unreduced={set(self.unreduced)!r}"
            )
        self.unreduced_kind = UnreducedKind.sum if kind is None and self.unreduced else kind
        if self.unreduced & self.reduced:
            raise ShardingError(
                f"PartitionSpec: unreduced and reduced cannot overlap, got unreduced={set(self.unreduced)!r} and "
                f"reduced={set(self.reduced)!r}"
            )
        for entry in self.partitions:
            for what, axes in ("unreduced", self.unreduced), ("reduced", self.reduced):
                if not axes.isdisjoint(names_in(entry)):
                    raise ShardingError(
                        f"PartitionSpec: partitions cannot overlap with {what} axes, got the partitions "
                        f"{self.partitions} and {what}={set(axes)!r}"
                    )

    def update(
        self,
        partitions: Sequence[Any] | None = None,
        unreduced: Collection[Any] | None = None,
        reduced: Collection[Any] | None = None,
        *,
        unreduced_kind: UnreducedKind | None = None,
    ) -> PartitionSpec:
        """Return a specification with other parts; None keeps what the specification has.

        Args:
          partitions: the entries, a sequence.
          unreduced: axes over which the array is still to be summed, a set.
          reduced: axes over which its cotangents are still to be summed, a set.
          unreduced_kind: how it is unreduced.

        Returns:
          A :class:`PartitionSpec`.

        >>> from pullback.sharding import PartitionSpec
        >>> PartitionSpec("x").update(["y", None])
        P('y', None)
        """
        axes = self.unreduced if unreduced is None else unreduced
        return PartitionSpec(
            *(self.partitions if partitions is None else partitions),
            unreduced=axes,
            reduced=self.reduced if reduced is None else reduced,
            unreduced_kind=(unreduced_kind or self.unreduced_kind) if axes else None,
        )

    def __len__(self) -> int:
        return len(self.partitions)

    def __getitem__(self, i: Any) -> Any:
        return self.partitions[i]

    def __iter__(self) -> Any:
        return iter(self.partitions)

    def index(self, entry: str | Sequence[Any] | None) -> int:
        """Return the index of the first entry that equals another.

        Args:
          entry: None, the name of an axis, or a tuple of names.

        Returns:
          An integer.

        >>> from pullback.sharding import PartitionSpec
        >>> PartitionSpec("x", "y").index("y")
        1
        """
        return self.partitions.index(_entry(entry))

    def count(self, entry: str | Sequence[Any] | None) -> int:
        """Return the number of times that an entry occurs.

        Args:
          entry: None, the name of an axis, or a tuple of names.

        Returns:
          An integer.

        >>> from pullback.sharding import PartitionSpec
        >>> PartitionSpec("x", None, None).count(None)
        2
        """
        return self.partitions.count(_entry(entry))

    def __add__(self, other: Any) -> PartitionSpec:
        if isinstance(other, PartitionSpec):
            if self.unreduced and other.unreduced and self.unreduced_kind is not other.unreduced_kind:
                raise ShardingError(
                    f"PartitionSpec: {self} and {other} cannot be joined, for their unreduced_kind differs"
                )
            return PartitionSpec(
                *self.partitions, *other.partitions, unreduced=self.unreduced | other.unreduced,
                reduced=self.reduced | other.reduced, unreduced_kind=self.unreduced_kind or other.unreduced_kind,
            )  # fmt: skip
        return self.update((*self.partitions, *other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other: Any) -> PartitionSpec:
        return self.update((*other, *self.partitions)) if isinstance(other, tuple) else NotImplemented

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is PartitionSpec
            and self.partitions == other.partitions
            and self.unreduced == other.unreduced
            and self.reduced == other.reduced
            and self.unreduced_kind is other.unreduced_kind
        )

    def __hash__(self) -> int:
        return hash((PartitionSpec, self.partitions, self.unreduced, self.reduced))

    def __repr__(self) -> str:
        if not self.unreduced and not self.reduced:
            return f"P{self.partitions!r}"
        shown = [
            *map(repr, self.partitions),
            *([f"unreduced={set(self.unreduced)!r}"] if self.unreduced else []),
            *([f"reduced={set(self.reduced)!r}"] if self.reduced else []),
            *([f"unreduced_kind={self.unreduced_kind.name}"] if self.unreduced_kind else []),
        ]
        return f"P({', '.join(shown)})"

    def __reduce__(self) -> Any:
        if not self.unreduced and not self.reduced:
            return PartitionSpec, self.partitions
        return _spec, (self.partitions, self.unreduced, self.reduced, self.unreduced_kind)


_NO_AXES: frozenset[Any] = frozenset()


def _spec(partitions: Any, unreduced: Any, reduced: Any, kind: Any) -> PartitionSpec:
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced, unreduced_kind=kind)


def _axis_set(axes: Any, what: str) -> frozenset[Any]:
    """Return the axes of the option ``what`` of a specification as a set; raise unless they are names in a set."""
    if not isinstance(axes, (set, frozenset)) and axes != ():
        raise ShardingError(
            f"PartitionSpec: {what} must be a set of names of axes of a mesh, got {quoted(axes)} of type "
            f"{type(axes).__name__}"
        )
    if None in axes:
        raise ShardingError(f"PartitionSpec: {what} cannot contain None, but names of axes of a mesh; got {axes!r}")
    return frozenset(axes)


P = PartitionSpec


def _entry(entry: Any) -> Any:
    if entry is None or entry is UNCONSTRAINED:
        return entry
    if isinstance(entry, (tuple, list)):
        names = tuple(entry)
        if any(n is None or n is UNCONSTRAINED or isinstance(n, (tuple, list)) for n in names):
            raise ShardingError(f"PartitionSpec: an entry that is a tuple must have names of axes, got {entry!r}")
        entry = names if len(names) > 1 else names[0] if names else None
    try:
        hash(entry)
    except TypeError:
        raise ShardingError(
            f"PartitionSpec: an entry must be the name of an axis of a mesh, a tuple of names or None, got "
            f"{quoted(entry)} of type {type(entry).__name__}"
        ) from None
    return entry


def names_in(entry: Any) -> tuple[Any, ...]:
    """The names of mesh axes in an entry of a specification, as a tuple."""
    if entry is None or entry is UNCONSTRAINED:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)
