"""Metadata for the compiler: names and values that operations of programs have, as the attributes of StableHLO."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

from pullback.control.common import leaf_names, stage
from pullback.core import tree
from pullback.core.arguments import require_function
from pullback.core.array import as_array, typeof
from pullback.core.errors import ArgumentError
from pullback.core.jaxpr import ClosedJaxpr, eval_jaxpr
from pullback.core.provenance import with_metadata
from pullback.core.source import Metadata, named_as
from pullback.core.trace import Primitive, state
from pullback.core.traits import Cost
from pullback.core.types import ShapedArray
from pullback.primitives.rules import axis_divided, stays
from pullback.transforms.functions.api_boundary import Transformed
from pullback.transforms.functions.arguments import name_of, to_arrays
from pullback.transforms.programs.program_primitive import program_primitive
from pullback.transforms.traces.partial_eval import partial_eval_jaxpr
from pullback.transforms.traces.refs import contents, write_all

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

# Values --------------------------------------------------------------------------------------------------------------

marked_p = Primitive("xla_metadata_value", cost=Cost.SIMPLE, passes_nan=True)
marked_p.host(lambda x, *, metadata: x)
axis_divided(marked_p)(stays)
marked_p.abstract_eval(lambda x, *, metadata: ShapedArray(x.shape, x.dtype))
marked_p.batch(lambda axis, args, dims, *, metadata: (marked_p.bind(args[0], metadata=metadata), dims[0]))


@marked_p.jvp
def _marked_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, metadata: Metadata) -> tuple[Any, Any]:
    return marked_p.bind(primals[0], metadata=metadata), tangents[0]


@marked_p.lowering
def _marked_lowering(hlo: Any, x: Any, *, metadata: Metadata) -> Any:
    from pullback.backends.hlo.frontend import mark

    mark(hlo, [x], metadata)
    return x


class Marks(AbstractContextManager[None]):
    """A context in which operations of programs have metadata; as a decorator, it puts the calls of a function in it.

    Args:
      metadata: the names and values; None removes the value of an outer context.
    """

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        self._metadata = metadata
        self._entered: list[AbstractContextManager[None]] = []

    def __enter__(self) -> None:
        self._entered.append(with_metadata(self._metadata))
        self._entered[-1].__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._entered.pop().__exit__(kind, error, traceback)

    def __call__(self, f: F) -> F:
        require_function("set_xla_metadata", "the decorated object", f)
        return _Marked(f, self._metadata)  # type: ignore[return-value]


class _Marked:
    """A function whose calls, and those of its methods, such as ``lower``, run in a context of metadata."""

    def __init__(self, fun: Any, metadata: Mapping[str, Any]) -> None:
        named_as(fun)(self)
        self._fun, self._metadata = fun, metadata

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with with_metadata(self._metadata):
            return self._fun(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in ("_fun", "_metadata"):  # while an object is being unpickled
            raise AttributeError(name)
        value = getattr(self._fun, name)
        return _Marked(value, self._metadata) if callable(value) else value


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """Mark operations of compiled functions with names and values for the compiler.

    The marks are attributes of the operations in the program's text (``mhlo.frontend_attributes``), and stay with them
    in exported and compiled programs. The operations of derivatives have those of the operations that they come from.
    On CPUs the compiler reads ``inlineable`` of calls only.

    Args:
      x: a tree of arrays, whose operations are marked, those that computed them last; without it, a context is
        returned, for all operations in it, which decorates functions too.
      kwargs: the names, and their values: strings, booleans or numbers. In a context None removes a value of an outer
        context.

    Returns:
      The tree, or the context.

    Raises:
      ArgumentError: a value has another type (a TypeError and ValueError).
      OperandError: a leaf of ``x`` is no array (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import jit
    >>> from pullback.experimental.xla_metadata import set_xla_metadata
    >>> @jit
    ... def f(x):
    ...     with set_xla_metadata(stage="loss"):
    ...         return jnp.sin(x)
    >>> 'frontend_attributes = {stage = "loss"}' in f.lower(1.0).as_text()
    True
    """
    _checked("set_xla_metadata", {name: value for name, value in kwargs.items() if value is not None})
    if x is None:
        return Marks(kwargs)
    metadata = tuple(sorted((name, value) for name, value in kwargs.items() if value is not None))
    return tree.tree_map(lambda leaf: marked_p.bind(as_array(leaf), metadata=metadata), x)


def _checked(who: str, metadata: Any) -> Metadata:
    """Return a dictionary as metadata; raise an ArgumentError that begins with ``who`` if it is none of good values."""
    if not isinstance(metadata, Mapping):
        raise ArgumentError(f"{who}: metadata must be a dict of names and values, got {metadata!r}")
    for name, value in metadata.items():
        if not isinstance(name, str) or not isinstance(value, (str, bool, int, float)):
            raise ArgumentError(
                f"{who}: metadata values must be strings, booleans or numbers, and their names strings, got "
                f"{name!r}: {value!r}"
            )
    return tuple(sorted(metadata.items()))


# Calls ---------------------------------------------------------------------------------------------------------------


def _cut(jaxpr: ClosedJaxpr, unknown: Sequence[bool], metadata: Metadata, ad_metadata: Any) -> Any:
    """Split a marked call: the part that needs tangents has the metadata of derivatives."""
    return partial_eval_jaxpr(jaxpr, unknown), _of_derivatives(metadata, ad_metadata)


def _of_derivatives(metadata: Metadata, ad_metadata: Metadata | None) -> dict[str, Any]:
    """Return the options of a call that is derived from one with these options; ``ad_metadata`` None means the same."""
    return {"metadata": metadata if ad_metadata is None else ad_metadata, "ad_metadata": None}


call_p = program_primitive("xla_metadata_call", _cut, derived=_of_derivatives)


@call_p.decomposition
def _call_equations(*args: Any, jaxpr: ClosedJaxpr, metadata: Metadata, ad_metadata: Any) -> list[Any]:
    return eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args)


@call_p.lowering
def _call_lowering(hlo: Any, *operands: Any, jaxpr: ClosedJaxpr, metadata: Metadata, ad_metadata: Any) -> list[Any]:
    from pullback.backends.hlo.emit import emit_jaxpr, shared_function
    from pullback.backends.hlo.frontend import mark

    if jaxpr.jaxpr.effect:  # inlined: the token that orders effects does not cross functions
        return emit_jaxpr(hlo, jaxpr.jaxpr, jaxpr.consts, operands)
    outs: list[Any] = hlo.call(shared_function(hlo.module, jaxpr, "xla_metadata_call"), operands)
    if metadata:
        mark(hlo, outs, metadata)
    return outs


def xla_metadata_call(f: Any = None, /, **meta: Any) -> Any:
    """Return a function that programs call as a unit, a call that is marked with names and values for the compiler.

    The mark is an attribute of the call in the program's text (``mhlo.frontend_attributes``). Calls in the forward and
    in the backward pass have it. Where nothing is compiled, the function runs as it is.

    Args:
      f: a function of trees of arrays; without it, a decorator is returned.
      meta: the names, and their values: strings, booleans or numbers. With ``inlineable="false"`` the compiler for CPUs
        keeps the call.

    Returns:
      A function like ``f``, or a decorator.

    Raises:
      ArgumentError: ``f`` is no function, or a value has another type (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import grad, jit
    >>> from pullback.experimental.xla_metadata import xla_metadata_call
    >>> f = jit(grad(xla_metadata_call(jnp.sin, block="first")))
    >>> f.lower(1.0).as_text().count('{block = "first"}'), float(f(0.0))
    (2, 1.0)
    """
    return xla_metadata_call2(f, meta)


def xla_metadata_call2(
    f: Any = None, /, metadata: Mapping[str, Any] | None = None, *, ad_metadata: str | Mapping[str, Any] = "same"
) -> Any:
    """Return a function that programs call as a unit, with metadata as a dictionary: see :func:`xla_metadata_call`.

    Args:
      f: a function of trees of arrays; without it, a decorator is returned.
      metadata: the names, and their values: strings, booleans or numbers.
      ad_metadata: the metadata of the calls that reverse mode adds, of tangents and cotangents: ``"same"``, ``"drop"``
        for none, or a dictionary. In forward mode one call computes values and tangents, and has ``metadata``.

    Returns:
      A function like ``f``, or a decorator.

    Raises:
      ArgumentError: an argument is none of these (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import grad, jit
    >>> from pullback.experimental.xla_metadata import xla_metadata_call2
    >>> f = jit(grad(xla_metadata_call2(jnp.sin, {"block": "1"}, ad_metadata={"block": "back"})))
    >>> f.lower(1.0).as_text().count('{block = "back"}')
    1
    """
    if isinstance(f, Mapping) and metadata is None:
        f, metadata = None, f
    if f is not None and not callable(f):
        raise ArgumentError(f"xla_metadata_call: expected a callable to mark, got {f!r}")
    marks = _checked("xla_metadata_call", {} if metadata is None else metadata)
    derived: Metadata | None
    if ad_metadata == "same":
        derived = None
    elif ad_metadata == "drop":
        derived = ()
    elif isinstance(ad_metadata, Mapping):
        derived = _checked("xla_metadata_call", ad_metadata)
    else:
        raise ArgumentError(f"xla_metadata_call: ad_metadata must be 'same', 'drop' or a dict, got {ad_metadata!r}")
    options = {"metadata": marks, "ad_metadata": derived}
    if f is None:
        return lambda f: _called(f, options)
    return _called(f, options)


def _called(fun: Any, options: dict[str, Any]) -> Transformed:
    require_function("xla_metadata_call", "f", fun)
    return Transformed(fun, lambda args, kwargs: _results(fun, options, args, kwargs))


def _results(fun: Any, options: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a marked function: as one operation while a program is recorded, otherwise as it is.

    ``options`` are the parameters of the operation, except the program.
    """
    if state.trace.eager:
        return fun(*args, **kwargs)
    leaves, in_tree = tree.flatten((args, kwargs))
    arrays = to_arrays(leaves, "xla_metadata_call", fun, args, kwargs=kwargs)

    def call(*xs: Any) -> Any:
        own, by_name = tree.unflatten(in_tree, xs)
        return fun(*own, **by_name)

    names = partial(leaf_names, f"the arguments of {name_of(fun)}", in_tree)
    avals = list(map(typeof, arrays))
    body = stage("xla_metadata_call", fun, call, avals, names, key=("xla_metadata_call", in_tree))
    outs = call_p.bind(*body.captured, *arrays, *contents(body.refs), jaxpr=body.jaxpr, **options)
    count = len(outs) - len(body.refs)
    write_all(body.refs, outs[count:])
    return tree.unflatten(body.out_tree, outs[:count])


def scheduling_group(name: str) -> Callable[[F], F]:
    """Return a decorator of functions whose calls belong to a group that the compiler schedules together.

    The name is the attribute ``scheduling_group`` of the call: see :func:`xla_metadata_call`. CPUs run operations in
    the order of their dependences, whatever their groups.

    Args:
      name: the name of the group.

    Returns:
      A decorator.

    Raises:
      ArgumentError: the name is no string (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import jit
    >>> from pullback.experimental.scheduling_groups import scheduling_group
    >>> 'scheduling_group = "first"' in jit(scheduling_group("first")(jnp.sin)).lower(1.0).as_text()
    True
    """
    if not isinstance(name, str):
        raise ArgumentError(f"scheduling_group takes the name of a group, a string, got {name!r}")
    decorator: Callable[[F], F] = xla_metadata_call(scheduling_group=name)
    return decorator


def fuse_limit() -> AbstractContextManager[None]:
    """Return a context whose operations limit fusion: they have the metadata ``FUSE_LIMIT``, without effect on CPUs.

    Returns:
      A context manager.

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental.xla_metadata import fuse_limit
    >>> with fuse_limit():
    ...     x = jnp.ones(2)
    """
    return Marks({"FUSE_LIMIT": True})


def must_fuse_call(identifier: str) -> Callable[[F], F]:
    """Return a decorator of functions that the compiler must fuse: their calls have the metadata ``MUST_FUSE``.

    The compiler for CPUs does not read it.

    Args:
      identifier: the name of the group of operations, a string of digits.

    Returns:
      A decorator that returns the function.

    Raises:
      ArgumentError: ``identifier`` is no such string (a TypeError and a ValueError).

    >>> from pullback.experimental.xla_metadata import must_fuse_call
    >>> must_fuse_call("1")(lambda x: 2 * x)(3)
    6
    """
    if not isinstance(identifier, str) or not identifier.isdigit():
        raise ArgumentError(f"must_fuse_call takes a string of digits, got {identifier!r}")
    decorator: Callable[[F], F] = xla_metadata_call(MUST_FUSE=identifier)
    return decorator
