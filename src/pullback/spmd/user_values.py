"""``shard_map`` over values of users' types: outside and inside are values, and their arrays cross the boundary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.core import source, tree
from pullback.core.array import typeof
from pullback.core.errors import MissingRuleError, ShardMapError
from pullback.core.user_types import HiPspec, has_user_types
from pullback.transforms.custom.hi_primitive import VJPHiPrimitive
from pullback.transforms.functions.arguments import name_of


class _AtBoundary(VJPHiPrimitive):
    """An operation between values and their arrays. It has no derivative."""

    def __init__(self, in_avals: Any, out_aval: Any, aval: Any) -> None:
        self.in_avals, self.out_aval, self.params = tuple(in_avals), out_aval, {"aval": aval}
        super().__init__()

    def vjp_fwd(self, nzs_in: Any, /, *args: Any) -> Any:
        raise MissingRuleError(
            f"shard_map over values of type {self.params['aval']} cannot be differentiated: differentiate within the "
            "function, or pass arrays"
        )

    jvp = lin = vjp_fwd  # type: ignore[assignment]


class LowerVal(_AtBoundary):
    """From a value to its arrays."""

    def expand(self, x: Any) -> Any:
        return tuple(self.params["aval"].lower_val(x))


class RaiseVal(_AtBoundary):
    """From arrays to the value that consists of them."""

    def expand(self, *arrays: Any) -> Any:
        return self.params["aval"].raise_val(*arrays)


def arrays_of(x: Any) -> tuple[Any, ...]:
    """Return the arrays of a value of a user's type, as the result of an operation."""
    aval = typeof(x)
    return LowerVal((aval,), tuple(aval.lo_ty()), aval)(x)  # type: ignore[no-any-return]


def value_of(aval: Any, arrays: Any) -> Any:
    """Return the value of type ``aval`` of some arrays, as the result of an operation."""
    return RaiseVal(map(typeof, arrays), aval, aval)(*arrays)


def is_user_spec(x: Any) -> bool:
    """Whether an entry of specs is a user's, for values of a type of theirs."""
    return isinstance(x, HiPspec)


def has_user_specs(specs: Any) -> bool:
    """Whether a tree of specs has an entry for values of users' types."""
    return any(map(is_user_spec, tree.leaves(specs, is_leaf=is_user_spec)))


def shard_mapped(
    shard_map: Callable[..., Any], f: Callable[..., Any], mesh: Any, manual: frozenset[Any], in_specs: Any,
    out_specs: Any, check_vma: bool, args: tuple[Any, ...],
) -> Any:  # fmt: skip
    """Return ``shard_map(f, ...)(*args)``, where specs may be for values of users' types.

    Args:
      shard_map: takes a function of arrays, the specs of its arguments and those of its results.
      f: the user's function.
      mesh: the mesh.
      manual: the axes of the mesh over which ``f`` is mapped.
      in_specs, out_specs, check_vma: the options of ``shard_map``.
      args: the arguments.
    """
    specs = tree.broadcast_prefix(in_specs, args, is_leaf=lambda x: x is None or is_user_spec(x))
    leaves, in_tree = tree.flatten(args)
    operands: list[Any] = []
    operand_specs: list[Any] = []
    local: list[Any] = []  # for each leaf the type of its shard; None for an array
    for x, spec in zip(leaves, specs, strict=True):
        aval = typeof(x)
        if has_user_types([aval]) is not is_user_spec(spec):
            raise ShardMapError(
                f"shard_map of {name_of(f)}: the entry of in_specs for a value of type {aval} is {spec!r}: a HiPspec "
                "is for values of users' types, and a PartitionSpec for arrays"
            )
        local.append(aval.shard(mesh, manual, check_vma, spec) if is_user_spec(spec) else None)
        operands.append(arrays_of(x) if is_user_spec(spec) else x)
        operand_specs.append(tuple(spec.to_lo()) if is_user_spec(spec) else spec)
    whole: list[Any] = []  # for each result its type; None for an array
    trees: list[Any] = []

    @source.named_as(f)
    def of_arrays(*shards: Any) -> Any:
        xs = [x if aval is None else value_of(aval, x) for x, aval in zip(shards, local, strict=True)]
        outs, out_tree = tree.flatten(f(*tree.unflatten(in_tree, xs)))
        shape = tree.unflatten(out_tree, [0] * len(outs))
        ends = tree.broadcast_prefix(out_specs, shape, is_leaf=lambda x: x is None or is_user_spec(x))
        trees[:], whole[:] = [out_tree], []
        for y, spec in zip(outs, ends, strict=True):
            whole.append(typeof(y).unshard(mesh, check_vma, spec) if is_user_spec(spec) else None)
        return tree.unflatten(
            out_tree, [y if aval is None else arrays_of(y) for y, aval in zip(outs, whole, strict=True)]
        )

    lo_specs = tree.tree_map(lambda s: tuple(s.to_lo()) if is_user_spec(s) else s, out_specs, is_leaf=is_user_spec)
    out = shard_map(of_arrays, in_specs=tuple(operand_specs), out_specs=lo_specs)(*operands)
    parts = trees[0].flatten_up_to(out)
    return tree.unflatten(
        trees[0], [x if aval is None else value_of(aval, x) for x, aval in zip(parts, whole, strict=True)]
    )
