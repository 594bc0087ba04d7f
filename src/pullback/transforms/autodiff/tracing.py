"""``make_jaxpr`` and ``eval_shape``: the program of a function, and the types of its results; ``typeof``."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, overload

from pullback.backends.devices.layouts import Format, Layout, without_layout
from pullback.backends.devices.shardings import OutSharding, PartitionSpec, Sharding
from pullback.core import array, dtypes, tree
from pullback.core.annotations import DTypeLike, HasShapeAndDtype, PyTree
from pullback.core.arguments import flag, is_listed, quote, require_function
from pullback.core.array import ArrayLike, CommittedArray
from pullback.core.axes import new_axis
from pullback.core.errors import ArgumentError, LayoutError, OperandError, ShardingError, UnsupportedArgumentError
from pullback.core.jaxpr import ClosedJaxpr, Var
from pullback.core.refs import AbstractRef, RefCell
from pullback.core.trace import state
from pullback.core.types import MappedAxis, Shape, ShapedArray
from pullback.core.user_types import HiType, mutable_type, types_of_values
from pullback.transforms.functions.api_boundary import Transformed, api_boundary
from pullback.transforms.functions.arguments import (
    abstractify,
    argument_name,
    check_argnums,
    name_of,
)
from pullback.transforms.functions.flat_function import FlatFunction
from pullback.transforms.functions.mutable_values import OnStates, with_states
from pullback.transforms.traces.mutable_cells import as_seen
from pullback.transforms.traces.refs import Scope, WithRefs, check_aliases
from pullback.transforms.traces.stage import stage_flat


class ShapeDtypeStruct:
    """A shape and a dtype: the description of an array that need not exist.

    Args:
      shape: the size of each axis.
      dtype: the type of an element.
      weak_type: whether the dtype is weak, and gives way to the dtypes of other operands.
      sharding: how the array is sharded over devices, for programs that are lowered for it; or a ``Format``, whose
        sharding becomes the attribute ``sharding``, and with its layout the attribute ``format``.
      manual_axis_type: must have its default value.
      is_ref: whether it describes a reference to such an array, for functions that are traced or lowered.

    Raises:
      ArgumentError: no dtype, or a shape that is no sequence or has None (a TypeError and ValueError).
      ShardingError: the sharding is for arrays of more axes (a TypeError and ValueError).
      LayoutError: a layout other than the row-major one (a TypeError and ValueError).
      UnsupportedArgumentError: a ``manual_axis_type`` (a NotImplementedError).

    >>> from pullback import ShapeDtypeStruct
    >>> ShapeDtypeStruct((2, 3), "float32").size
    6
    """

    __slots__ = ("_layout", "dtype", "is_ref", "shape", "sharding", "weak_type")
    manual_axis_type = None

    def __init__(
        self,
        shape: Sequence[int],
        dtype: DTypeLike,
        *,
        weak_type: bool = False,
        sharding: OutSharding = None,
        manual_axis_type: None = None,
        is_ref: bool = False,
    ) -> None:
        if manual_axis_type is not None:
            raise UnsupportedArgumentError(
                f"ShapeDtypeStruct: manual_axis_type={manual_axis_type!r} is not supported: it describes an array "
                f"outside of shard_map; leave the argument out"
            )
        self.is_ref = flag("ShapeDtypeStruct", "is_ref", is_ref)
        if dtype is None:
            raise ArgumentError("ShapeDtypeStruct: pass a dtype, got None, which NumPy interprets as float64")
        self._layout: Layout | None = None
        if isinstance(sharding, Format):
            if sharding.layout is Layout.AUTO:
                raise LayoutError("ShapeDtypeStruct: Layout.AUTO cannot be used instead of a layout: leave it out")
            self._layout, sharding = sharding.layout, without_layout(sharding, "ShapeDtypeStruct")
        self.sharding = sharding
        if not isinstance(shape, Iterable):
            raise ArgumentError(f"ShapeDtypeStruct: shape must be a sequence of ints, got {quote(shape)}")
        self.shape: Shape = tuple(shape)
        if any(n is None for n in self.shape):
            raise ArgumentError(
                f"ShapeDtypeStruct: the shape cannot have None, got {self.shape}: a size is an int, or one of "
                f"export.symbolic_shape"
            )
        spec = getattr(sharding, "spec", sharding)
        if isinstance(spec, PartitionSpec) and len(spec) > len(self.shape):
            raise ShardingError(
                f"ShapeDtypeStruct: the sharding {spec!r} is only valid for values of rank at least {len(spec)}, but "
                f"was applied to a value of rank {len(self.shape)}"
            )
        self.dtype = dtypes.canonicalize_dtype(dtype)
        self.weak_type = flag("ShapeDtypeStruct", "weak_type", weak_type)

    @classmethod
    def like(cls, x: ArrayLike | HasShapeAndDtype) -> ShapeDtypeStruct:
        """Return the description of an array, a number, or an object with a shape and a dtype.

        The description includes the sharding of an array that is committed to its devices.

        Raises:
          OperandError: an object without shape or dtype (a TypeError).

        >>> from pullback import ShapeDtypeStruct
        >>> ShapeDtypeStruct.like(2.0)
        ShapeDtypeStruct(shape=(), dtype=float32, weak_type=True)
        """
        aval = abstractify(x)
        sharding: Any = x.sharding if isinstance(x, (ShapeDtypeStruct, CommittedArray)) else aval.explicit
        return cls(aval.shape, aval.dtype, weak_type=aval.weak_type, sharding=sharding)

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """Return a copy with ``shape``, ``dtype``, ``weak_type``, ``sharding`` or ``is_ref`` replaced.

        >>> from pullback import ShapeDtypeStruct
        >>> ShapeDtypeStruct((2,), "float32").update(shape=(3,))
        ShapeDtypeStruct(shape=(3,), dtype=float32)
        """
        names = "dtype", "shape", "sharding", "weak_type", "is_ref"
        unknown = sorted(changes.keys() - set(names))
        if unknown:
            raise ArgumentError(
                f"ShapeDtypeStruct.update: no attribute {', '.join(unknown)}; there are {', '.join(names)}"
            )
        fields = {name: changes.get(name, getattr(self, name)) for name in names}
        if "sharding" not in changes and self._layout is not None:
            fields["sharding"] = self.format
        return ShapeDtypeStruct(**fields)

    @property
    def format(self) -> Format:
        """The layout and the sharding; None for each of them that was not given, or is a specification only."""
        return Format(self._layout, self.sharding if isinstance(self.sharding, Sharding) else None)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return ShapedArray(self.shape, self.dtype).size

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a scalar ShapeDtypeStruct has no length")
        return self.shape[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak_type))

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        where = "" if self.sharding is None else f", sharding={self.sharding!r}"
        kind = ", is_ref=True" if self.is_ref else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={dtypes.dtype_name(self.dtype)}{weak}{where}{kind})"


def described_ref(x: Any) -> Any:
    """Return a reference that holds a description, if ``x`` is the description of a reference, and otherwise ``x``.

    It can be traced with, and is never read or written.
    """
    if not (isinstance(x, ShapeDtypeStruct) and x.is_ref):
        return x
    content = x.update(is_ref=False)
    return RefCell(content, None, inner=abstractify(content))


def typeof(x: ArrayLike | ShapeDtypeStruct | RefCell) -> ShapedArray | AbstractRef:
    """Return the type of an array, a number, a reference or a ``ShapeDtypeStruct``.

    Args:
      x: the value, concrete or traced.

    Returns:
      The type, which includes ``weak_type``; for a reference an ``AbstractRef``.

    Raises:
      OperandError: any other object (a TypeError).

    >>> from pullback import ShapeDtypeStruct, typeof
    >>> typeof(2.0)
    ShapedArray(float32[], weak_type=True)
    >>> typeof(ShapeDtypeStruct((2, 3), "int32"))
    ShapedArray(int32[2,3])
    """
    if isinstance(x, ShapeDtypeStruct):
        return AbstractRef(abstractify(x)) if x.is_ref else abstractify(x)
    return AbstractRef(x.inner) if isinstance(x, RefCell) else array.typeof(x)


@overload
def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: Literal[False] = False,
) -> Callable[..., ClosedJaxpr]: ...
@overload
def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    *,
    return_shape: Literal[True],
) -> Callable[..., tuple[ClosedJaxpr, PyTree]]: ...
@overload
def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
) -> Any: ...
def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """Make a function that traces ``fun``, and returns its jaxpr.

    Args:
      fun: takes and returns trees of arrays; a ``ShapeDtypeStruct`` among the results is a constant of the program.
      static_argnums: the positions of arguments that are passed to ``fun`` without tracing them.
      axis_env: the names and sizes of mapped axes that ``fun`` may refer to, as pairs.
      return_shape: whether to return the types of the results, too.

    Returns:
      A function of the same arguments (arrays, numbers, or objects with ``shape`` and ``dtype``). It returns a
      ``ClosedJaxpr``; with ``return_shape`` it returns a pair: the ``ClosedJaxpr``, and a tree of ``ShapeDtypeStruct``.
      A program holds no references. Its last inputs are the initial contents of references that ``fun`` closes over;
      its last results are the final contents of references that ``fun`` receives or writes.

    Raises:
      ArgumentError: ``static_argnums`` does not fit the arguments (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import make_jaxpr
    >>> make_jaxpr(lambda x: jnp.sin(x) * 2.0)(1.0)
    { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b 2.0:f32[] in (c,) }
    """
    require_function("make_jaxpr", "fun", fun)
    return_shape = flag("make_jaxpr", "return_shape", return_shape)
    axes = _named_axes(axis_env) if not is_listed(axis_env, (None, ())) else {}
    argnums = () if is_listed(static_argnums, (None, ())) else static_argnums
    nums = () if is_listed(argnums, ((),)) else check_argnums(argnums, "make_jaxpr", "static_argnums")
    static = (nums,) if isinstance(nums, int) else nums

    def jaxpr_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for i in static:
            if not -len(args) <= i < len(args):
                raise ArgumentError(
                    f"make_jaxpr: static_argnums={static_argnums} does not fit the {len(args)} positional arguments "
                    f"given to {name_of(fun)}"
                )
        fixed = {i % len(args) for i in static}
        where = [i for i in range(len(args)) if i not in fixed] if fixed else None
        outer = state.axes
        state.axes = {**outer, **axes}
        try:
            described: dict[int, ShapeDtypeStruct] = {}
            closed, out_tree = stage_tree(fun, "make_jaxpr", args, kwargs, where, described)
        finally:
            state.axes = outer
        if described:
            closed = _with_descriptions(closed, described)
        if not return_shape:
            return closed
        return closed, _structs(out_tree, closed, described)

    return Transformed(fun, jaxpr_of, make_jaxpr, static_argnums, return_shape)


def _named_axes(axis_env: Any) -> dict[Any, MappedAxis]:
    """Return a dict from the name of each axis to the mapped axis; raise if ``axis_env`` is invalid.

    ``axis_env`` is a list of pairs of a name and a size.
    """
    try:
        pairs = [(name, size) for name, size in axis_env or ()]
        sizes = {name: operator.index(size) for name, size in pairs}
    except (TypeError, ValueError):
        pairs, sizes = [], {None: -1}
    if any(size < 0 for size in sizes.values()) or len(sizes) < len(pairs):
        raise ArgumentError(
            "make_jaxpr: axis_env must be a list of pairs of different names and sizes, such as [('i', 4)], got "
            f"{axis_env!r}"
        )
    return {name: new_axis(name, size, "axis_env") for name, size in sizes.items()}


@api_boundary
def eval_shape(fun: Callable[..., Any], *args: PyTree, **kwargs: PyTree) -> PyTree:
    """Return the types of a function's results, without computing them.

    Args:
      fun: takes and returns trees of arrays. A result may be a ``ShapeDtypeStruct``, for example of another
        ``eval_shape``, which is returned unchanged.
      args, kwargs: trees of arrays, numbers, or objects with ``shape`` and ``dtype``.

    Returns:
      A tree of ``ShapeDtypeStruct``, like the result of ``fun``.

    Raises:
      ArgumentError: ``fun`` is not a function (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import ShapeDtypeStruct, eval_shape
    >>> eval_shape(jnp.matmul, ShapeDtypeStruct((2, 3), "float32"), ShapeDtypeStruct((3, 4), "float32")).shape
    (2, 4)
    """
    require_function("eval_shape", "fun", fun)
    if types_of_values and any(mutable_type(x) is not None for x in tree.leaves((args, kwargs))):
        with as_seen(tree.leaves((args, kwargs))):
            args, kwargs, _ = with_states(args, kwargs)
        return eval_shape(OnStates(fun), *args, **kwargs)[0]
    described: dict[int, ShapeDtypeStruct] = {}
    closed, out_tree = stage_tree(fun, "eval_shape", args, kwargs, described=described)
    return _structs(out_tree, closed, described)


def _structs(
    out_tree: Any, closed: ClosedJaxpr, described: Mapping[int, ShapeDtypeStruct] = MappingProxyType({})
) -> Any:
    """Return the types of the results of a traced function, as a tree of ``ShapeDtypeStruct``.

    Args:
      out_tree: the tree of the results.
      closed: the program, which returns the results, followed by the contents of references.
      described: the results that the function itself returned as a ``ShapeDtypeStruct``, by index.
    """
    avals = closed.out_avals[: out_tree.num_leaves]
    return tree.unflatten(out_tree, [described[i] if i in described else struct_of(a) for i, a in enumerate(avals)])


def struct_of(aval: Any) -> Any:
    """Return the ``ShapeDtypeStruct`` of the type of an array; the type of a user's values stays as it is."""
    return aval if isinstance(aval, HiType) else ShapeDtypeStruct.like(aval)


def _with_descriptions(closed: ClosedJaxpr, described: Mapping[int, ShapeDtypeStruct]) -> ClosedJaxpr:
    """Return the program with some of its results replaced by constants, which are ``ShapeDtypeStruct`` objects.

    ``described`` maps the index of a result to its replacement.
    """
    distinct = {id(x): x for x in described.values()}
    variables = {key: Var(ShapedArray(x.shape, x.dtype, x.weak_type)) for key, x in distinct.items()}
    outvars = list(closed.jaxpr.outvars)
    for i, x in described.items():
        outvars[i] = variables[id(x)]
    jaxpr = closed.jaxpr.replace(constvars=[*closed.jaxpr.constvars, *variables.values()], outvars=outvars)
    return ClosedJaxpr(jaxpr, [*closed.consts, *distinct.values()])


class _DescribedFunction(FlatFunction):
    """A flat function whose results may include ``ShapeDtypeStruct`` objects.

    A call stores these objects in ``results``, by their index among the leaves, and returns zeros instead of them.
    """

    __slots__ = ("results",)

    results: dict[int, ShapeDtypeStruct]

    def result_leaves(self, out: Any) -> list[Any]:
        leaves, out_tree = tree.flatten(out)
        self.results.update((i, x) for i, x in enumerate(leaves) if isinstance(x, ShapeDtypeStruct))
        if not self.results:
            return super().result_leaves(out)
        return super().result_leaves(
            tree.unflatten(out_tree, [0 if i in self.results else x for i, x in enumerate(leaves)])
        )


def stage_tree(
    fun: Any,
    transformation: str,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    where: Sequence[int] | None = None,
    described: dict[int, ShapeDtypeStruct] | None = None,
) -> tuple[ClosedJaxpr, Any]:
    """Trace a function that takes and returns trees; return the jaxpr, and the tree of the result.

    Args:
      fun: the function.
      transformation: the name of the transformation, for error messages.
      args, kwargs: the arguments.
      where: the positions of the positional arguments that are traced; None for all.
      described: a dict that receives the results that are ``ShapeDtypeStruct`` objects, by index; None to refuse them.
    """
    traced = list(args) if where is None else [args[i] for i in where]
    leaves, in_tree = tree.flatten((traced, kwargs))
    leaves = list(map(described_ref, leaves))
    avals = []
    for i, x in enumerate(leaves):
        try:
            avals.append(abstractify(x))
        except OperandError as error:
            name = argument_name(i, fun, args, where, kwargs)
            hint = " static_argnums passes it unchanged." if transformation == "make_jaxpr" else ""
            raise type(error)(f"{transformation} of {name_of(fun)}, {name}: {error}{hint}") from None
    if described is None:
        flat = FlatFunction(fun, in_tree, args, where, keywords=True)
    else:
        flat = _DescribedFunction(fun, in_tree, args, where, keywords=True)
        flat.results = described
    name_input = partial(argument_name, fun=fun, args=args, where=where, kwargs=kwargs)
    refs = [i for i, x in enumerate(leaves) if isinstance(x, RefCell)]
    check_aliases([leaves[i] for i in refs], f"{transformation} of {name_of(fun)}")
    run = WithRefs(flat, refs) if refs else flat
    closed = stage_flat(fun, run, avals, name_input=name_input, outside=Scope())
    return closed, flat.out_structure
