"""``custom_partitioning``: functions with a user's rule for the program that each device runs on its shards."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pullback.backends.devices.meshes import Mesh
from pullback.backends.devices.shardings import NamedSharding, PartitionSpec, Sharding
from pullback.backends.hlo.module import Divided, Module
from pullback.core import source, tree
from pullback.core.arguments import require_function
from pullback.core.errors import PartitioningError
from pullback.core.jaxpr import ClosedJaxpr, eval_jaxpr
from pullback.core.naming import quoted
from pullback.core.trace import Primitive, state
from pullback.core.types import MappedAxis, Shape, ShapedArray
from pullback.spmd.shard_map_primitive import axes_of
from pullback.spmd.sharding_rules import SdyShardingRule, parsed_rule
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import name_of, to_arrays
from pullback.transforms.functions.flat_function import FlatFunction
from pullback.transforms.traces.batch import batch_flat
from pullback.transforms.traces.captured import hoisted
from pullback.transforms.traces.forward import jvp_flat
from pullback.transforms.traces.inlining import write_program
from pullback.transforms.traces.stage import stage_flat

custom_partitioning_p = Primitive("custom_partitioning", multiple_results=True, keeps_weak_type=False)


@dataclass(frozen=True, eq=False)
class _Partitioning:
    """A user's function with its partitioning, for arguments of one structure.

    Attributes:
      name: the name of the function.
      partition: the user's partition function.
      rule: the sharding rule: an ``SdyShardingRule``, a function that returns a rule or its text, or None.
      options: the kinds and sizes of the rule's factors, for a rule that is a text.
      static: the static arguments.
      in_tree, out_tree: the trees of the other arguments, and of the results.
    """

    name: str
    partition: Callable[..., Any]
    rule: Any
    options: dict[str, Any]
    static: tuple[Any, ...]
    in_tree: Any
    out_tree: Any

    def __repr__(self) -> str:
        return self.name


class custom_partitioning:
    """A function with a custom partition over devices, in compiled programs over several devices.

    Without partition it runs eagerly, on one device, in ``shard_map`` and in exported functions. ``vmap`` and
    differentiation ignore the partition. Wrap it in a ``custom_vjp`` function to partition the backward pass too.

    Args:
      fun: the function of trees of arrays.
      static_argnums: the positions of static arguments, a number or a tuple of numbers. These arguments come first in
        calls of ``partition`` and of a ``sharding_rule`` that is a function.

    Raises:
      PartitioningError: it is called before :meth:`def_partition` (a ValueError and TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import P, device_put, jit, make_mesh
    >>> from pullback.experimental.custom_partitioning import custom_partitioning
    >>> from pullback.sharding import NamedSharding
    >>> @custom_partitioning
    ... def normalized(x):
    ...     return x / jnp.abs(x).max(-1, keepdims=True)
    >>> def partition(mesh, arg_shapes, result_shape):  # rows are not divided
    ...     rows = NamedSharding(mesh, P(*arg_shapes[0].sharding.spec[:1]))
    ...     return mesh, normalized.fun, rows, (rows,)
    >>> normalized.def_partition(partition, sharding_rule="... i -> ... i")
    >>> mesh = make_mesh((1,), ("i",))
    >>> print(jit(normalized)(device_put(jnp.array([[2.0, 4.0]]), NamedSharding(mesh, P("i")))))
    [[0.5 1. ]]
    """

    def __init__(self, fun: Callable[..., Any], static_argnums: int | Sequence[int] = ()) -> None:
        require_function("custom_partitioning", "fun", fun)
        self.fun = fun
        self.static_argnums = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
        self.partition: Callable[..., Any] | None = None
        self._rule: Any = None
        self._options: dict[str, Any] = {}
        functools.update_wrapper(self, fun)

    def def_partition(
        self,
        partition: Callable[..., Any],
        infer_sharding_from_operands: Callable[..., Any] | None = None,
        propagate_user_sharding: Callable[..., Any] | None = None,
        decode_shardings: bool = True,
        sharding_rule: str | SdyShardingRule | Callable[..., Any] | None = None,
        *,
        reduction_factors: Sequence[str] = (),
        need_replication_factors: Sequence[str] = (),
        permutation_factors: Sequence[str] = (),
        **factor_sizes: int,
    ) -> None:
        """Define the partition of the function.

        Args:
          partition: ``partition(mesh, arg_shapes, result_shape)`` receives trees of ``ShapeDtypeStruct``, whose
            ``sharding`` is the compiler's proposal. It returns a mesh, whose axes are in scope for collectives; a
            function from a device's shards of the arguments to its shards of the results; and trees of the shardings of
            results and of arguments that this function needs.
          infer_sharding_from_operands, propagate_user_sharding, decode_shardings: for XLA's older partitioner, which is
            not used.
          sharding_rule: the rule by which the compiler chooses shardings: an ``SdyShardingRule``, text such as
            ``"i k, k j -> i j"``, or a function ``rule(mesh, arg_types, result_types)`` that returns either. Without a
            rule the compiler divides no axis.
          reduction_factors, need_replication_factors, permutation_factors, factor_sizes: options of a rule as text; see
            ``SdyShardingRule``.

        Raises:
          PartitioningError: the rule is invalid (a ValueError and TypeError).
        """
        require_function("def_partition", "partition", partition)
        self._options = {
            "reduction_factors": reduction_factors, "need_replication_factors": need_replication_factors,
            "permutation_factors": permutation_factors, **factor_sizes,
        }  # fmt: skip
        rule: Any = sharding_rule
        known = rule is None or isinstance(rule, SdyShardingRule) or callable(rule)
        self._rule = rule if known else parsed_rule(rule, **self._options)
        self.partition = partition

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.partition is None:
            raise PartitioningError(f"custom_partitioning of {name_of(self.fun)}: call def_partition first")
        if state.trace.eager:
            return self.fun(*args, **kwargs)
        static, dynamic, call = self._split_arguments(args, kwargs)
        leaves, in_tree = tree.flatten(tuple(dynamic))
        arrays = to_arrays(leaves, "custom_partitioning", self.fun, dynamic)
        flat = FlatFunction(call, in_tree, described=self.fun)
        avals = [x.aval for x in arrays]
        closed, captured = hoisted(stage_flat(self.fun, flat, avals, "custom_partitioning"))
        if captured:
            raise PartitioningError(
                f"custom_partitioning of {name_of(self.fun)}: it closes over {captured[0]}, a traced value: pass it "
                f"as an argument"
            )
        partitioning = _Partitioning(
            name_of(self.fun), self.partition, self._rule, self._options, static, in_tree, flat.out_structure
        )
        return flat.result(custom_partitioning_p.bind(*arrays, call_jaxpr=closed, partitioning=partitioning))

    def _split_arguments(self, args: Any, kwargs: Any) -> tuple[tuple[Any, ...], list[Any], Callable[..., Any]]:
        """Return the static arguments, the other arguments, and a function of the other arguments alone.

        This function calls the user's function with both. ``args`` and ``kwargs`` are the arguments of a call.
        """
        bound = source.signature(self.fun).bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise PartitioningError(
                f"custom_partitioning of {name_of(self.fun)}: pass all arguments by position, got by keyword: "
                f"{', '.join(bound.kwargs)}"
            )
        positional = list(bound.args)
        fixed = {
            i % len(positional): positional[i] for i in self.static_argnums if -len(positional) <= i < len(positional)
        }

        def call(*rest: Any) -> Any:
            others = iter(rest)
            return self.fun(*[fixed[i] if i in fixed else next(others) for i in range(len(positional))])

        return tuple(fixed.values()), [x for i, x in enumerate(positional) if i not in fixed], call


# The operation -------------------------------------------------------------------------------------------------------


@custom_partitioning_p.abstract_eval
def _abstract_eval(*avals: ShapedArray, call_jaxpr: ClosedJaxpr, partitioning: _Partitioning) -> list[ShapedArray]:
    return call_jaxpr.out_avals


@custom_partitioning_p.decomposition
def _undivided(*args: Any, call_jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
    return eval_jaxpr(call_jaxpr.jaxpr, call_jaxpr.consts, *args)


@custom_partitioning_p.jvp
def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    return jvp_flat(custom_partitioning_p, functools.partial(_undivided, **params), primals, tangents)


@custom_partitioning_p.batch
def _batch(axis: MappedAxis, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
    return batch_flat(custom_partitioning_p, functools.partial(_undivided, **params), axis, args, dims)


@custom_partitioning_p.lowering
def _lowering(hlo: Any, *operands: Any, call_jaxpr: ClosedJaxpr, partitioning: _Partitioning) -> list[Any]:
    module = hlo.module
    if module.manual is None and not module.portable and module.size > 1:
        types = list(hlo.avals(operands)), list(hlo.results)
        rule = _rule_text(partitioning, next(iter(module.meshes), None), *types)
        divide = functools.partial(_divide, partitioning, module.platform, module.channels, *types)
        results = [(a.shape, a.dtype) for a in hlo.results]
        return hlo.partitioned(operands, results, rule, divide)  # type: ignore[no-any-return]
    module.assumed_one_device |= module.manual is None and not module.portable
    return write_program(hlo, call_jaxpr, operands)


# What each device does -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ArrayType:
    """The type of an array, which functions that return sharding rules receive.

    Attributes:
      shape: its shape.
      element_type: its dtype.
    """

    shape: Shape
    element_type: Any

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)


def _rule_text(
    partitioning: _Partitioning, mesh: Mesh | None, operands: Sequence[ShapedArray], results: Sequence[ShapedArray]
) -> str:
    """Return the text of the sharding rule as an MLIR attribute; empty if there is no rule.

    ``operands`` and ``results`` are the types of the global arrays.
    """
    rule = partitioning.rule
    if rule is None:
        return ""
    try:
        if callable(rule):
            types = ([ArrayType(a.shape, a.dtype) for a in avals] for avals in (operands, results))
            rule = rule(*partitioning.static, None if mesh is None else mesh.abstract_mesh, *types)
            if not isinstance(rule, SdyShardingRule):
                rule = parsed_rule(rule, **partitioning.options)
        return rule.text([a.shape for a in operands], [a.shape for a in results])  # type: ignore[no-any-return]
    except PartitioningError as error:
        raise PartitioningError(f"custom_partitioning of {partitioning.name}: {error}") from None


def _divide(
    partitioning: _Partitioning,
    platform: str,
    channels: Any,
    operands: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
    mesh: Mesh,
    proposed: list[NamedSharding],
    expected: list[NamedSharding],
) -> Divided:
    """Call the user's ``partition``, and lower the function that it returns for the shards on a device.

    Args:
      partitioning: the partitioning.
      platform: the platform of the program.
      channels: the counter of channels for collectives of the program.
      operands, results: the types of the global arrays.
      mesh: the devices.
      proposed, expected: the compiler's proposed shardings of the operands and of the results.

    Returns:
      The text of a device's program, with the shardings that ``partition`` returned.
    """
    who = f"custom_partitioning of {partitioning.name}, partition"
    arg_shapes = tree.unflatten(partitioning.in_tree, list(map(_struct, operands, proposed)))
    result_shape = tree.unflatten(partitioning.out_tree, list(map(_struct, results, expected)))
    returned = partitioning.partition(*partitioning.static, mesh, arg_shapes, result_shape)
    if not (isinstance(returned, (tuple, list)) and len(returned) == 4):
        raise PartitioningError(
            f"{who}: expected a mesh, a function, the shardings of the results and those of the arguments, got "
            f"{quoted(returned)}"
        )
    scope, fun, out_shardings, in_shardings = returned
    if not isinstance(scope, Mesh) or scope.assignment is not mesh.assignment:
        raise PartitioningError(f"{who}: expected a mesh of the same devices as {mesh!r}, got {quoted(scope)}")
    ins = _shardings(in_shardings, len(operands), mesh, f"{who}, shardings of the arguments")
    outs = _shardings(out_shardings, len(results), mesh, f"{who}, shardings of the results")
    shards = [a.update(shape=s.shard_shape(a.shape)) for a, s in zip(operands, ins, strict=True)]
    flat = FlatFunction(fun, partitioning.in_tree)
    with axes_of(scope, frozenset(scope.axis_names), False, "custom_partitioning"):
        closed = stage_flat(fun, flat, shards, "custom_partitioning")
        expected_shards = [a.update(shape=s.shard_shape(a.shape)) for a, s in zip(results, outs, strict=True)]
        _check_results(closed, expected_shards, who)
        text = _program(closed, platform, channels, scope, who)
    ranks_in, ranks_out = ([a.ndim for a in avals] for avals in (operands, results))
    return Divided(text, list(zip(ins, ranks_in, strict=True)), list(zip(outs, ranks_out, strict=True)))


def _struct(aval: ShapedArray, sharding: NamedSharding) -> ShapeDtypeStruct:
    """Return a ``ShapeDtypeStruct`` of the shape and dtype of ``aval`` with the sharding.

    The sharding's partition specification is extended to one entry for each axis.
    """
    entries = sharding.spec.partitions
    full = PartitionSpec(*entries, *[None] * (aval.ndim - len(entries)))
    return ShapeDtypeStruct(aval.shape, aval.dtype, sharding=NamedSharding(sharding.mesh, full))


def _shardings(shardings: Any, count: int, mesh: Mesh, who: str) -> list[NamedSharding]:
    """Return the leaves of a tree of shardings.

    Raise unless these are ``count`` NamedShardings over the devices of ``mesh``. ``who`` begins the message.
    """
    leaves = tree.leaves(shardings, is_leaf=lambda x: isinstance(x, Sharding))
    for leaf in leaves:
        if not isinstance(leaf, NamedSharding) or leaf.runs_on is not mesh.assignment:
            raise PartitioningError(f"{who}: expected a NamedSharding over the devices of {mesh!r}, got {quoted(leaf)}")
    if len(leaves) != count:
        raise PartitioningError(f"{who}: expected {count}, one for each array, got {len(leaves)}: {quoted(shardings)}")
    return leaves


def _check_results(closed: ClosedJaxpr, expected: Sequence[ShapedArray], who: str) -> None:
    """Raise PartitioningError unless the program ``closed`` of a device returns shards of the types ``expected``.

    ``who`` begins the message.
    """
    found = [(a.shape, a.dtype) for a in closed.out_avals]
    if found != [(a.shape, a.dtype) for a in expected]:
        wanted, came = (", ".join(map(format, avals)) for avals in (expected, closed.out_avals))
        raise PartitioningError(
            f"{who}: with the returned shardings a device has the shards ({wanted}) of the results, but the "
            f"returned function has the results ({came})"
        )


def _program(closed: ClosedJaxpr, platform: str, channels: Any, scope: Mesh, who: str) -> str:
    """Return the StableHLO text of ``closed``, the program that each device runs on its shards.

    The collectives of the program are over the mesh ``scope``, with numbers from the counter ``channels``. ``who``
    begins the messages of errors.
    """
    from pullback.backends.hlo.builder import Builder
    from pullback.backends.hlo.emit import emit_jaxpr, inline

    module = Module("part", platform, inline)
    module.portable = True  # captured arrays are written into the text
    module.channels = channels  # collectives of one program need different numbers
    module.manual, module.manual_axes = scope, frozenset(scope.axis_names)
    hlo = Builder(module)
    args = [hlo.argument(a.shape, a.dtype) for a in closed.in_avals]
    hlo.finish("main", emit_jaxpr(hlo, closed.jaxpr, closed.consts, args), "public")
    if module.callbacks:
        raise PartitioningError(
            f"{who}: the function for one device must not call Python functions (pure_callback, debug.print)"
        )
    return module.text()
