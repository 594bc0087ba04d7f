"""Sharding rules: which axes of an operation's operands and results are divided alike.

A rule assigns a *factor* to each axis of each array; axes with the same factor are divided alike. The compiler's
partitioner, Shardy, propagates shardings by these rules, the attribute ``#sdy.op_sharding_rule``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from pullback.core.errors import PartitioningError

BATCHING = "…"
"""The entry for all leading axes before the named axes; a number after it distinguishes several groups of them."""


class CompoundFactor(tuple[str, ...]):
    """An axis that is the product of several factors, the slowest first.

    Args:
      factors: their names, two or more.

    Raises:
      PartitioningError: there are fewer, or one is no name (a ValueError and TypeError).

    >>> from pullback.experimental.custom_partitioning import CompoundFactor
    >>> CompoundFactor("heads", "width")
    CompoundFactor('heads', 'width')
    """

    __slots__ = ()

    def __new__(cls, *factors: str) -> CompoundFactor:
        if len(factors) < 2:
            raise PartitioningError(f"CompoundFactor: expected two or more factors, got {factors!r}")
        for factor in factors:
            _check_name(factor)
        return super().__new__(cls, factors)

    def __repr__(self) -> str:
        return f"CompoundFactor({', '.join(map(repr, self))})"


class ArrayMapping(tuple[Any, ...]):
    """The factors of the axes of an array.

    Args:
      dim_mappings: for each axis the name of a factor, or a :class:`CompoundFactor`. The first may be ``BATCHING``.

    Raises:
      PartitioningError: an entry is of another kind (a ValueError and TypeError).

    >>> from pullback.experimental.custom_partitioning import BATCHING, ArrayMapping, CompoundFactor
    >>> ArrayMapping(BATCHING, "i", CompoundFactor("j", "k"))
    ArrayMapping('…', 'i', CompoundFactor('j', 'k'))
    """

    __slots__ = ()

    def __new__(cls, *dim_mappings: Any) -> ArrayMapping:
        for i, entry in enumerate(dim_mappings):
            if isinstance(entry, str) and entry.startswith(BATCHING):
                if i or not re.fullmatch(r"\d*", entry.removeprefix(BATCHING)):
                    raise PartitioningError(
                        f"ArrayMapping: BATCHING, with or without a number after it, must come first, got "
                        f"{dim_mappings!r}"
                    )
            elif not isinstance(entry, CompoundFactor):
                _check_name(entry)
        return super().__new__(cls, dim_mappings)

    def __repr__(self) -> str:
        return f"ArrayMapping({', '.join(map(repr, self))})"


def _check_name(factor: Any) -> None:
    if not isinstance(factor, str) or not factor.isidentifier():
        raise PartitioningError(f"a factor must be a name such as 'i', or a CompoundFactor, got {factor!r}")


class SdyShardingRule:
    """A rule by which the partitioner propagates shardings between the operands and results of an operation.

    Args:
      operand_mappings: for each operand an :class:`ArrayMapping`, or a tuple of its entries.
      result_mappings: the same for each result.
      reduction_factors: factors over which the operation sums, so that the partition sums over devices.
      need_replication_factors: factors along which no array may be divided.
      permutation_factors: factors whose division makes the devices exchange shards.
      factor_sizes: the sizes of factors that occur only in a :class:`CompoundFactor`.

    Raises:
      PartitioningError: a size or a kind is for a factor that does not occur; a factor has two kinds, occurs twice in
        an array, or has no size (a ValueError and TypeError).

    >>> from pullback.experimental.custom_partitioning import SdyShardingRule
    >>> matmul = SdyShardingRule((("i", "k"), ("k", "j")), (("i", "j"),), reduction_factors=("k",))
    >>> matmul.text([(2, 3), (3, 4)], [(2, 4)])
    '#sdy.op_sharding_rule<([i, j], [j, k])->([i, k]) {i=2, j=3, k=4} reduction={j}, custom>'
    """

    def __init__(
        self,
        operand_mappings: Sequence[Any],
        result_mappings: Sequence[Any],
        *,
        reduction_factors: Sequence[str] = (),
        need_replication_factors: Sequence[str] = (),
        permutation_factors: Sequence[str] = (),
        **factor_sizes: int,
    ) -> None:
        self.operand_mappings, self.result_mappings = (
            tuple(m if isinstance(m, ArrayMapping) else ArrayMapping(*m) for m in mappings)
            for mappings in (operand_mappings, result_mappings)
        )
        self.kinds = {
            "reduction": tuple(reduction_factors),
            "need_replication": tuple(need_replication_factors),
            "permutation": tuple(permutation_factors),
        }
        self.factor_sizes = factor_sizes
        self._check()

    def _check(self) -> None:
        mappings = (*self.operand_mappings, *self.result_mappings)
        entries = [entry for mapping in mappings for entry in mapping]
        simple = {entry for entry in entries if isinstance(entry, str)}
        known = simple.union(*[entry for entry in entries if isinstance(entry, CompoundFactor)])
        of_kind: dict[str, str] = {}
        for kind, factors in self.kinds.items():
            for factor in factors:
                if factor not in known:
                    raise PartitioningError(
                        f"the factor {factor!r} in {kind}_factors does not occur in the rule {self}"
                    )
                if of_kind.setdefault(factor, kind) != kind:
                    raise PartitioningError(f"the factor {factor!r} is in {of_kind[factor]}_factors and {kind}_factors")
        for factor, size in self.factor_sizes.items():
            if factor not in known or not isinstance(size, int) or size < 1:
                raise PartitioningError(f"{factor}={size!r} is not a valid size of a factor of the rule {self}")
        unknown = sorted(known - simple - set(self.factor_sizes))
        if unknown:
            raise PartitioningError(
                f"the factors {', '.join(unknown)} occur only within compound axes of the rule {self}, so their "
                f"sizes are unknown: pass {'=..., '.join(unknown)}=..."
            )
        for mapping in mappings:
            flat = [f for entry in mapping for f in ([entry] if isinstance(entry, str) else entry)]
            if len(set(flat)) < len(flat):
                raise PartitioningError(f"a factor occurs twice in one array of the rule {self}: {mapping}")

    def text(self, operands: Sequence[Sequence[int]], results: Sequence[Sequence[int]]) -> str:
        """Return the text of the rule as an attribute, for arrays of some shapes.

        Args:
          operands: the shape of each operand.
          results: the shape of each result.

        Returns:
          The text.

        Raises:
          PartitioningError: the rule does not fit the shapes (a ValueError and TypeError).
        """
        sides = [
            _with_shapes("operand", self.operand_mappings, operands),
            _with_shapes("result", self.result_mappings, results),
        ]
        sizes: dict[Any, int] = {
            factor: n
            for side in sides for _, entries, shape in side for n, factor in zip(shape, entries, strict=True)
            if not isinstance(factor, CompoundFactor)
        } | self.factor_sizes  # fmt: skip
        order: dict[Any, str] = {}
        shown = [", ".join(f"[{', '.join(_named(*array, sizes, order))}]" for array in side) for side in sides]
        details = f" {{{', '.join(f'{name}={sizes[factor]}' for factor, name in order.items())}}}" if order else ""
        for kind, factors in self.kinds.items():
            if factors:
                details += (
                    f" {kind}={{{', '.join(sorted([order[f] for f in factors], key=list(order.values()).index))}}}"
                )
        return f"#sdy.op_sharding_rule<({shown[0]})->({shown[1]}){details}, custom>"

    def __repr__(self) -> str:
        return f"SdyShardingRule({self.operand_mappings}, {self.result_mappings})"

    __str__ = __repr__


_Axes = tuple[str, list[Any], tuple[int, ...]]
"""An array: its name in errors, the factor of each of its axes, and its shape."""


def _with_shapes(what: str, mappings: Sequence[ArrayMapping], shapes: Sequence[Sequence[int]]) -> list[_Axes]:
    """Pair the mappings of operands, or of results, with the shapes of their arrays; raise if they do not fit.

    A leading ``BATCHING`` is replaced by an entry for each leading axis.

    Args:
      what: "operand" or "result", for error messages.
      mappings: the mapping of each array.
      shapes: the shape of each array.

    Returns:
      For each array a tuple: the name of the array in errors, the factor of each axis, and the shape.
    """
    if len(mappings) != len(shapes):
        raise PartitioningError(f"the sharding rule is for {len(mappings)} {what}s, but there are {len(shapes)}")
    found = []
    for i, (mapping, shape) in enumerate(zip(mappings, shapes, strict=True)):
        entries: list[Any] = list(mapping)
        if entries and isinstance(entries[0], str) and entries[0].startswith(BATCHING):
            entries[:1] = [(entries[0], axis) for axis in range(len(shape) - len(entries) + 1)]
        if len(entries) != len(shape):
            raise PartitioningError(
                f"{what} {i}, of shape {tuple(shape)}, has the rank {len(shape)}, but {mapping} in the sharding "
                f"rule has another rank"
            )
        found.append((f"{what} {i}", entries, tuple(shape)))
    return found


def _named(
    where: str, entries: list[Any], shape: tuple[int, ...], sizes: dict[Any, int], order: dict[Any, str]
) -> list[str]:
    """Return the name of each axis of an array in the text of a rule: of a factor "i", of a compound factor "ij".

    Args:
      where: the name of the array, for errors.
      entries: the factor, or the compound factor, of each axis.
      shape: the shape of the array.
      sizes: the size of each factor.
      order: from each factor to its name in the text so far; new factors are added, with the next free name.

    Raises:
      PartitioningError: the size of an axis is not the product of the sizes of its factors.
    """
    names = []
    for n, entry in zip(shape, entries, strict=True):
        factors: Iterable[Any] = entry if isinstance(entry, CompoundFactor) else (entry,)
        if math.prod(sizes[f] for f in factors) != n:
            found = ", ".join(f"{f} = {sizes[f]}" for f in factors)
            raise PartitioningError(
                f"{where}, of shape {shape}, has an axis of size {n}, but other axes of the same factor in the "
                f"sharding rule have other sizes: {found}"
            )
        names.append("".join(order.setdefault(f, _letter(len(order))) for f in factors))
    return names


def _letter(number: int) -> str:
    """Return the name of a factor in the text of a rule: 0 -> "i", 1 -> "j", ..., 17 -> "z", 18 -> "z_1", ..."""
    letters = "ijklmnopqrstuvwxyz"
    return letters[number] if number < len(letters) else f"z_{number - len(letters) + 1}"


def parsed_rule(rule: str, **options: Any) -> SdyShardingRule:
    """Parse a rule from text: arrays between commas, axes between spaces, and ``->`` before the results.

    Args:
      rule: such as ``"... i k, k j -> ... i j"``. ``...`` at the beginning of an array stands for all axes before the
        named ones; parentheses make a compound factor: ``"(h d)"``.
      options: the options of :class:`SdyShardingRule`.

    Raises:
      PartitioningError: the text is no rule (a ValueError and TypeError).
    """
    if not isinstance(rule, str):
        raise PartitioningError(
            f"sharding_rule: expected text such as 'i j -> i j', an SdyShardingRule or a function that returns one, "
            f"got {rule!r} of type {type(rule).__name__}"
        )
    sides = rule.split("->")
    if len(sides) != 2:
        raise PartitioningError(f"sharding_rule: expected one -> between operands and results, got {rule!r}")
    operands, results = ([_parsed(array, rule) for array in side.split(",")] for side in sides)
    return SdyShardingRule(operands, results, **options)


_TOKEN = r"\s*(?:(\.\.\.|…)(\d*)|\(([^()]*)\)|(\w+))"


def _parsed(array: str, rule: str) -> ArrayMapping:
    entries: list[Any] = []
    at, end = 0, len(array.rstrip())
    while at < end:
        found = re.compile(_TOKEN).match(array, at)
        if found is None:
            raise PartitioningError(f"sharding_rule: {array[at:].strip()!r} is not a factor, in {rule!r}")
        at = found.end()
        batching, number, compound, name = found.groups()
        if batching:
            entries.append(f"{BATCHING}{number}")
        elif compound is not None:
            entries.append(CompoundFactor(*compound.split()))
        else:
            entries.append(name)
    return ArrayMapping(*entries)
