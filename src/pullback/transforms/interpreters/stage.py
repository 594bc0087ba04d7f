"""Staging: a function becomes a jaxpr, without being run."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pullback.core import dtypes, source, tree
from pullback.core.array import SCALARS, Array, ArrayImpl, as_array, number_dtype, refuse_masked, typeof
from pullback.core.config import config
from pullback.core.errors import ArgumentError, DtypeError, OperandError
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var, check_jaxpr, infer, is_literal
from pullback.core.trace import Primitive, Trace, Tracer, leaked, missing_rule, recorders, state
from pullback.core.types import Shape, ShapedArray
from pullback.transforms.functions.arguments import (
    api_boundary,
    argument_name,
    check_argnums,
    check_callable,
    name_of,
    out_leaf,
    transformed,
)


class StageTracer(Tracer):
    """A variable of a jaxpr under construction."""

    __slots__ = ("var",)

    def __init__(self, trace: Trace, var: Var, made_at: source.Location | None) -> None:
        self._trace = trace
        self.var = var
        self.made_at = made_at

    @property
    def aval(self) -> ShapedArray:
        return self.var.aval

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The size of each axis."""
        return self.var.aval.shape

    @property
    def dtype(self) -> Any:  # type: ignore[override]
        """The type of an element."""
        return self.var.aval.dtype

    @property
    def weak_type(self) -> bool:  # type: ignore[override]
        """Whether the type gives way to that of other operands."""
        return self.var.aval.weak_type

    def dependence(self) -> str:
        trace = self._trace
        if not isinstance(trace, StageTrace) or trace.name_input is None:
            return ""
        needed = {self.var}
        for eqn in reversed(trace.eqns):
            if not needed.isdisjoint(eqn.outvars):
                needed.update(a for a in eqn.invars if isinstance(a, Var))
        names = [trace.name_input(i) for i, v in enumerate(trace.invars) if v in needed]
        return f"It depends on {' and '.join(names)}.\n" if names else ""


_aval = operator.attrgetter("aval")


class StageTrace(Trace):
    """Records every operation as an equation.

    Attributes:
      invars: the variables of the inputs.
      name_input: names an input by its position, for error messages; None where nobody knows.
      literals: whether captured scalars are written into the program, as numbers.
    """

    __slots__ = ("consts", "constvars", "eqns", "invars", "literals", "name_input", "transformation")

    def __init__(self, parent: Trace, function: Any, transformation: str) -> None:
        super().__init__(parent, function)
        self.transformation = transformation
        self.invars: list[Var] = []
        self.name_input: Callable[[int], str] | None = None
        self.literals = True
        self.eager = self.quick = False
        self.eqns: list[Eqn] = []
        self.consts: list[Any] = []
        self.constvars: dict[int, Var] = {}

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if primitive.stage_rule is not None:
            return primitive.stage_rule(self, args, params)
        if primitive.abstract_eval_rule is None:
            raise missing_rule(primitive, "abstract_eval", "tracing")
        invars: list[Any] = []
        scalars = False
        for x in args:
            if type(x) is StageTracer and x._trace is self:
                invars.append(x.var)
            elif type(x) in SCALARS:
                invars.append(Literal(x, typeof(x)))
                scalars = True
            else:
                invars.append(self.atom(x))
        if scalars:
            _settle_literals(invars, args)
        aval = infer(primitive, list(map(_aval, invars)), params)
        made_at = state.source_loc or source.here()
        if primitive.multiple_results:
            outvars = [Var(a) for a in aval]
            self.eqns.append(Eqn(primitive, invars, params, outvars, made_at, state.scope))
            return [StageTracer(self, v, made_at) for v in outvars]
        var = Var(aval)
        self.eqns.append(Eqn(primitive, invars, params, [var], made_at, state.scope))
        return StageTracer(self, var, made_at)

    def atom(self, x: Any) -> Var | Literal:
        """The variable or literal for a value, from this trace or from outside."""
        if type(x) is StageTracer and x._trace is self:
            return x.var
        if not isinstance(x, Array):
            x = as_array(x)
        if isinstance(x, Tracer):
            trace = self.parent
            while not trace.is_same(x._trace):
                if trace is trace.parent:
                    raise leaked(x)
                trace = trace.parent
        elif self.literals and is_literal(x):
            return Literal(x, typeof(x))
        var = self.constvars.get(id(x))
        if var is None:
            var = self.constvars[id(x)] = Var(typeof(x))
            self.consts.append(x)  # which also keeps the id from being reused
        return var


def _settle_literals(atoms: list[Any], args: Sequence[Any]) -> None:
    """Give Python numbers among the operands their dtype; an integer that it does not hold is an OverflowError."""
    dtype = number_dtype([x if type(x) in SCALARS else a.aval for a, x in zip(atoms, args, strict=True)])
    integer = dtypes.is_integer(dtype)
    for atom, x in zip(atoms, args, strict=True):
        if type(x) not in SCALARS:
            continue
        if integer and type(x) is int and not dtypes.holds(dtype, x):
            raise OverflowError(f"Python integer {x} out of bounds for {dtype.name}")
        if atom.aval.dtype != dtype:
            atom.aval = ShapedArray((), dtype, dtype.kind != "b")
            atom.val = ArrayImpl(dtype.type(x), dtype.kind != "b")


def stage_flat(
    function: Any,
    run: Callable[..., Sequence[Any]],
    avals: Sequence[ShapedArray],
    transformation: str = "staging (make_jaxpr, eval_shape)",
    name_input: Callable[[int], str] | None = None,
    literals: bool = True,
) -> ClosedJaxpr:
    """The jaxpr of ``run`` at some abstract inputs.

    Args:
      function: the user's function, for error messages.
      run: takes and returns flat sequences of arrays.
      avals: the abstract inputs.
      transformation: what asks for it, for error messages.
      name_input: names an input by its position, for error messages.
      literals: whether captured scalars are written into the program, as numbers, or are constants of it.
    """
    trace = StageTrace(state.trace, function, transformation)
    trace.invars = invars = [Var(aval) for aval in avals]
    trace.name_input = name_input
    trace.literals = literals
    source_loc, scope = state.source_loc, state.scope
    try:  # an interrupt may come after any call
        state.source_loc = state.scope = None
        state.trace = trace
        recorders.append(trace)
        results = run(*[StageTracer(trace, v, None) for v in invars])
        outvars = [trace.atom(x) for x in results]
    finally:
        state.source_loc, state.scope = source_loc, scope
        state.trace = trace.parent
        trace.live = False
        if trace in recorders:
            recorders.remove(trace)
    jaxpr = Jaxpr(list(trace.constvars.values()), invars, trace.eqns, outvars)
    if config.enable_checks:
        check_jaxpr(jaxpr, anew=False)
    return ClosedJaxpr(jaxpr, trace.consts)


def hoisted(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """A program whose captured tracers are inputs, after the others; and these tracers."""
    captured = [x for x in closed.consts if isinstance(x, Tracer)]
    if not captured:
        return closed, captured
    jaxpr = closed.jaxpr
    pairs = list(zip(jaxpr.constvars, closed.consts, strict=True))
    inputs = [v for v, x in pairs if isinstance(x, Tracer)]
    kept = [(v, x) for v, x in pairs if not isinstance(x, Tracer)]
    smaller = Jaxpr([v for v, _ in kept], [*jaxpr.invars, *inputs], jaxpr.eqns, jaxpr.outvars)
    return ClosedJaxpr(smaller, [x for _, x in kept]), captured


class ShapeDtypeStruct:
    """A shape and a dtype, standing for an array that need not exist.

    Args:
      shape: the size of each axis.
      dtype: the type of an element.
      weak_type: whether the type gives way to that of other operands.

    >>> ShapeDtypeStruct((2, 3), "float32").size
    6
    """

    __slots__ = ("dtype", "shape", "weak_type")

    def __init__(self, shape: Sequence[int], dtype: Any, *, weak_type: bool = False) -> None:
        self.shape: Shape = tuple(shape)
        self.dtype = dtypes.canonicalize_dtype(dtype)
        self.weak_type = weak_type

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """The shape and dtype of an array, a number, or anything that has both.

        Raises:
          OperandError: something else (a TypeError).

        >>> ShapeDtypeStruct.like(2.0)
        ShapeDtypeStruct(shape=(), dtype=float32, weak_type=True)
        """
        aval = abstractify(x)
        return cls(aval.shape, aval.dtype, weak_type=aval.weak_type)

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """The same with ``shape``, ``dtype`` or ``weak_type`` replaced.

        >>> ShapeDtypeStruct((2,), "float32").update(shape=(3,))
        ShapeDtypeStruct(shape=(3,), dtype=float32)
        """
        unknown = sorted(changes.keys() - set(self.__slots__))
        if unknown:
            raise ArgumentError(
                f"ShapeDtypeStruct.update: no attribute {', '.join(unknown)}; there are {', '.join(self.__slots__)}"
            )
        fields = {name: changes.get(name, getattr(self, name)) for name in self.__slots__}
        return ShapeDtypeStruct(**fields)

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
            raise TypeError("a ShapeDtypeStruct without axes has no length")
        return self.shape[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak_type))

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={dtypes.dtype_name(self.dtype)}{weak})"


def abstractify(x: Any) -> ShapedArray:
    """The type of an array, a number, or anything that has a shape and a dtype."""
    if hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(x, Array):
        refuse_masked(x)
        try:
            dtype = dtypes.canonicalize_dtype(x.dtype)
        except DtypeError as error:
            raise OperandError(f"expected an array of numbers, got {x!r} of type {type(x).__name__}: {error}") from None
        return ShapedArray(tuple(x.shape), dtype, getattr(x, "weak_type", False))
    return typeof(x)


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """A function that gives the program of ``fun`` instead of running it.

    Args:
      fun: takes and returns trees of arrays.
      static_argnums: positional arguments that are passed to ``fun`` as they are.
      axis_env: the names and sizes of mapped axes that ``fun`` may refer to, as pairs.
      return_shape: whether to give the types of the results too.

    Returns:
      A function of the same arguments (arrays, numbers, or anything with ``shape`` and ``dtype``) that gives a
      ``ClosedJaxpr``, or with ``return_shape`` a pair of it and a tree of ``ShapeDtypeStruct``.

    Raises:
      ArgumentError: ``static_argnums`` does not fit the arguments (a TypeError).

    >>> import pullback.numpy as pnp
    >>> make_jaxpr(lambda x: pnp.sin(x) * 2.0)(1.0)
    { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b 2.0:f32[] in (c,) }
    """
    check_callable(fun, "make_jaxpr")
    axes = _named_axes(axis_env) if axis_env else {}
    given = () if static_argnums is None or static_argnums == () else static_argnums
    nums = () if given == () else check_argnums(given, "make_jaxpr", "static_argnums")
    static = (nums,) if isinstance(nums, int) else nums

    def jaxpr_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for i in static:
            if not -len(args) <= i < len(args):
                raise ArgumentError(
                    f"make_jaxpr: static_argnums={static_argnums} does not fit the {len(args)} positional arguments "
                    f"given to {name_of(fun)}"
                )
        fixed = {i % len(args) for i in static}
        dynamic = [None if i in fixed else x for i, x in enumerate(args)]

        def call(xs: Sequence[Any], kw: dict[str, Any]) -> Any:
            return fun(*[args[i] if i in fixed else x for i, x in enumerate(xs)], **kw)

        outer = state.axes
        state.axes = {**outer, **axes}
        try:
            closed, out_tree = _stage_tree(fun, "make_jaxpr", call, dynamic, kwargs)
        finally:
            state.axes = outer
        if not return_shape:
            return closed
        return closed, tree.unflatten(out_tree, [_struct(a) for a in closed.out_avals])

    return transformed(fun, jaxpr_of, make_jaxpr, static_argnums, return_shape)


def _named_axes(axis_env: Any) -> dict[Any, int]:
    """The sizes of named axes by name."""
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
    return sizes


@api_boundary
def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The types of a function's results, without computing them.

    Args:
      fun: takes and returns trees of arrays.
      args, kwargs: trees of arrays, numbers, or anything with ``shape`` and ``dtype``.

    Returns:
      A tree of ``ShapeDtypeStruct``, like the result of ``fun``.

    >>> import pullback.numpy as pnp
    >>> eval_shape(pnp.matmul, ShapeDtypeStruct((2, 3), "float32"), ShapeDtypeStruct((3, 4), "float32")).shape
    (2, 4)
    """
    check_callable(fun, "eval_shape")
    closed, out_tree = _stage_tree(fun, "eval_shape", lambda xs, kw: fun(*xs, **kw), args, kwargs)
    return tree.unflatten(out_tree, [_struct(a) for a in closed.out_avals])


def _stage_tree(
    fun: Any, transformation: str, call: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[ClosedJaxpr, Any]:
    leaves, in_tree = tree.flatten((args, kwargs))
    avals = []
    for i, x in enumerate(leaves):
        try:
            avals.append(abstractify(x))
        except OperandError as error:
            where = argument_name(i, fun, args, None, kwargs)
            hint = " static_argnums passes it as it is." if transformation == "make_jaxpr" else ""
            raise type(error)(f"{transformation} of {name_of(fun)}, {where}: {error}{hint}") from None
    out_tree: Any = None

    def run(*tracers: Any) -> list[Any]:
        nonlocal out_tree
        out_leaves, out_tree = tree.flatten(call(*tree.unflatten(in_tree, tracers)))
        return [out_leaf(x, fun) for x in out_leaves]

    name_input = partial(argument_name, fun=fun, args=args, kwargs=kwargs)
    return stage_flat(fun, run, avals, name_input=name_input), out_tree


def _struct(aval: ShapedArray) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)
