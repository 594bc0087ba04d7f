"""``jit``: functions that are traced and compiled for each combination of argument types, and cached."""

from __future__ import annotations

import copy
import functools
import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar, overload

import numpy as np

from pullback.backends.compiler import trees
from pullback.backends.devices.buffers import buffers_of, from_buffer
from pullback.backends.devices.shardings import DeviceLike, as_sharding
from pullback.backends.processes import forks
from pullback.core import monitoring, source, tree
from pullback.core.annotations import PyTree
from pullback.core.arguments import flag, require_function
from pullback.core.array import ArrayImpl, CommittedArray, DeletedArray, Signature, delete, fresh, signature_of, typeof
from pullback.core.config import TIERS, config
from pullback.core.errors import ArgumentError, TracingForbiddenError
from pullback.core.jaxpr import aval_of, eval_jaxpr
from pullback.core.refs import AbstractRef
from pullback.core.registry import OwnsPrograms
from pullback.core.runtime import provides
from pullback.core.trace import EVAL, Tracer, state
from pullback.core.types import ShapedArray
from pullback.core.user_types import has_user_types, is_user_value, mutable_type, types_of_values
from pullback.transforms.functions.api_boundary import qualified_name, watching
from pullback.transforms.functions.arguments import name_of
from pullback.transforms.functions.flat_function import FlatFunction
from pullback.transforms.functions.mutable_values import OnStates, with_states
from pullback.transforms.jit.caches import all_caches, caches_of
from pullback.transforms.jit.call_operands import copiers, numbers, operand, operands_of
from pullback.transforms.jit.compiler_hints import CompilerEffortLevel, Inline
from pullback.transforms.jit.jit_arguments import Call, Options, infer_argnums_argnames
from pullback.transforms.jit.jit_refs import UsedRefs
from pullback.transforms.jit.jit_shardings import PlacementTree
from pullback.transforms.jit.placements import in_placements, only_for_arrays, out_placements, typed_by_placements
from pullback.transforms.jit.stages import Compiled, Lowered, donate
from pullback.transforms.jit.tiers import entry_for
from pullback.transforms.jit.traced import Traced
from pullback.transforms.programs.jit_primitive import jit_p
from pullback.transforms.programs.placement import constrained
from pullback.transforms.traces.captured import hoisted
from pullback.transforms.traces.mutable_cells import as_seen
from pullback.transforms.traces.refs import Scope, WithRefs
from pullback.transforms.traces.stage import stage_flat

try:
    from pullback.transforms.jit import quick
except ImportError:  # it was installed without a compiler
    quick = None  # type: ignore[assignment]

P = ParamSpec("P")
R = TypeVar("R")

_signatures = attrgetter("_signature")
_new = object.__new__


_frees = itertools.cycle([False] * 1023 + [True])
"""Yields True once in 1,024 calls: these take the general path, which frees objects that the runtime accumulates."""


if TYPE_CHECKING or quick is None:
    _Function = OwnsPrograms
else:

    class _Function(quick.Function, OwnsPrograms):
        """The base class of functions under ``jit``, whose calls begin in C."""


class JitFunction(_Function, Generic[P, R]):
    """A function under ``jit``. It is called like the original function.

    The methods ``trace``, ``lower``, ``eval_shape`` and ``clear_cache`` access its traced and compiled programs.

    Args:
      fun: the function.
      options: the options of :func:`pullback.jit`, which makes these objects.

    >>> import pullback.numpy as jnp
    >>> from pullback import jit
    >>> f = jit(lambda x: 2 * x)
    >>> type(f).__name__, f.lower(jnp.ones(3)).compile()(jnp.ones(3))
    ('JitFunction', Array([2., 2., 2.], dtype=float32))
    """

    __name__: str
    __wrapped__: Callable[P, R]

    def __init__(self, fun: Callable[P, R], options: Options) -> None:
        source.named_as(fun)(self)
        self._fun = fun
        self._options = options
        self._plain = not (options.static_nums or options.static_names)
        self._nested = False
        self._flatten: Any = None
        self._stateful: JitFunction[..., Any] | None = None
        self._compiled, self._traced = caches_of(fun, options)

    # Calling

    def _call_by_python(self, *args: P.args, **kwargs: P.kwargs) -> R:
        # Fast path, written out: the arguments are arrays, or trees of arrays, and a compiled program is in the cache.
        # The module in C has the same for the most frequent calls, and leaves the others to this function.
        try:
            if state.trace is EVAL and self._plain:
                entry = treedef = None
                leaves: Any = args
                try:
                    if kwargs or self._nested:
                        leaves, treedef = self._flatten((args, kwargs))
                        entry = self._compiled[(config.trace_context, treedef, *map(_signatures, leaves))]
                    else:
                        entry = self._compiled[(config.trace_context, *map(_signatures, args))]
                except AttributeError:  # a number or an array of NumPy's among the leaves, or a new array
                    leaves = operands_of(leaves)
                    if leaves is not None:
                        head = (config.trace_context, treedef) if kwargs or self._nested else (config.trace_context,)
                        entry = self._compiled.get((*head, *map(_signatures, leaves)))
                        if entry is not None and (not entry.simple or entry.donated):
                            entry = None
                except (KeyError, TypeError, ValueError):
                    pass
                if entry is not None:
                    if not entry.simple or next(_frees):
                        return entry.run(leaves)  # type: ignore[no-any-return]
                    donated = entry.donated
                    if donated:
                        donated_arrays = [leaves[i] for i in donated]
                        donate(donated_arrays, entry.program.device)
                    try:
                        buffers = list(map(buffers_of, leaves))
                        if entry.captured:
                            buffers += map(buffers_of, entry.captured)
                    except AttributeError:
                        return entry.run(leaves)  # type: ignore[no-any-return]
                    if donated and len(set(map(id, buffers))) < len(buffers):  # an operand occurs twice
                        return entry.run(leaves)  # type: ignore[no-any-return]
                    outs = entry.collect(entry.execute(buffers), entry.handlers)
                    if donated:
                        delete(*donated_arrays)
                    unflatten = entry.unflatten
                    if unflatten is None:
                        sig = entry.signatures[0]
                        x = _new(sig.array_class)
                        x._buffer = outs[0]
                        x._signature = sig
                        x._host_value = sig.absent
                        x.weak_type = sig.aval.weak_type
                        return x  # type: ignore[no-any-return]
                    return unflatten(list(map(from_buffer, outs, entry.signatures)))  # type: ignore[no-any-return]
            return self._general(args, kwargs) if not watching else watching[-1](self._general, (args, kwargs), {})  # type: ignore[no-any-return]
        except Exception as error:
            shown = _for_users(error)
            if shown is not error:
                raise shown from None
            raise

    if TYPE_CHECKING or quick is None:
        __call__ = _call_by_python

    def _general(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function for any arguments; ``__call__`` handles only the fast case.

        Run a compiled program; within a transformation, apply the traced program under the current trace. Under
        ``disable_jit``, call the original function.
        """
        if config.disable_jit:
            forks.warn_eager()
            return self._fun(*args, **kwargs)
        call = Call(self._fun, self._options, args, kwargs)
        if types_of_values and any(mutable_type(x) is not None for x in call.leaves):
            with as_seen(call.leaves):
                return self._on_states(args, kwargs)
        leaves = call.arrays()
        outermost = state.trace.is_bottom and not [x for x in leaves if isinstance(x, Tracer) or is_user_value(x)]
        if outermost and not config.indices_are_checked:
            if self._plain and not kwargs:
                self._nested = call.nested
            signatures = list(map(signature_of, leaves))
            key = self._key(call, signatures)
            entry = self._compiled.get(key)
            if entry is None:
                traced = self._trace(call, list(map(aval_of, signatures)))
                if has_user_types(traced.out_avals) or (traced.refs is not None and traced.refs.of_user_types()):
                    return self._within(call, leaves, args, kwargs)
                if traced.refs is not None:
                    signatures += map(signature_of, traced.refs.contents())
                entry = entry_for(Lowered(traced, call, signatures), self._options, self._compiled, key)
            if config.debug_key_reuse:
                closed = self._trace(call, list(map(aval_of, signatures))).jaxpr
                return state.bottom.run_program(closed, leaves, lambda: entry.run(leaves))
            return entry.run(leaves, list(call.refs.values())) if call.refs else entry.run(leaves)
        if self._options.compiler_options and not outermost:
            raise ArgumentError(
                f"jit of {name_of(self._fun)}: compiler_options={dict(self._options.compiler_options)} apply to a "
                f"function that is compiled separately, but it was called inside a transformation "
                f"({state.trace.describe()}). Pass them to the outermost jit."
            )
        return self._within(call, leaves, args, kwargs)

    def _on_states(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function with the states of the mutable values among its arguments, and change these values."""
        if self._stateful is None:
            options = copy.copy(self._options)
            placements = options.out_placements
            if placements is not None:  # and none for the new states
                placements = tree.unflatten(placements.treedef, placements.leaves), None
                options.out_placements = PlacementTree(placements, "jit, out_shardings")
            self._stateful = JitFunction(OnStates(self._fun), options)
        args, kwargs, values = with_states(args, kwargs)
        out, states = self._stateful(*args, **kwargs)
        for state_of_value, value in zip(states, values, strict=True):
            state_of_value.assign(value)
        return out

    def _within(self, call: Call, leaves: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Apply the traced program as an operation, within a transformation or on values of users' types.

        ``leaves`` are the leaves of the arguments ``args`` and ``kwargs``. If custom rules take references, call the
        function itself, so that the backward pass of the transformation writes to these references.
        """
        traced = self._trace(call, list(map(typeof, leaves)))
        if traced.refs is not None and traced.refs.in_rules:
            return self._fun(*args, **kwargs)
        of_arrays = self._options.in_placements is not None or self._options.out_placements is not None
        if of_arrays and has_user_types([*traced.in_avals, *traced.out_avals]):
            raise only_for_arrays(self._fun)
        if self._options.in_placements is not None:
            placements = in_placements(call, traced.in_avals)
            leaves = [constrained(x, p, "jit") for x, p in zip(leaves, placements, strict=True)]
        refs = traced.refs
        operands = [*leaves, *(() if refs is None else refs.contents()), *traced.captured]
        if self._options.inline:
            outs = eval_jaxpr(traced.jaxpr.jaxpr, traced.jaxpr.consts, *operands)
        else:
            outs = jit_p.bind(*operands, jaxpr=traced.jaxpr, name=call.fun_name)
        if refs is not None:
            outs = refs.written_back(outs, list(call.refs.values()))
        if self._options.out_placements is not None:
            outs = [constrained(x, p, "jit") for x, p in zip(outs, out_placements(call, traced), strict=True)]
        return tree.unflatten(traced.out_tree, outs)

    def _key(self, call: Call, signatures: Sequence[Any]) -> tuple[Any, ...]:
        """Return the cache key of the compiled program for a call.

        For simple calls, ``__call__`` computes the same key itself. ``signatures`` are the types and placements of the
        leaves of the arguments.
        """
        if call.refs:  # which the fast path does not support
            return (config.trace_context, call.treedef, tuple(call.refs), *signatures)
        if not self._plain:
            return (config.trace_context, call.treedef, *signatures)
        if not (call.nested or call.kwargs):
            return (config.trace_context, *signatures)
        if self._flatten is None:
            self._flatten = trees.flattener()
        try:
            treedef = self._flatten((call.args, call.kwargs))[1]
        except (TypeError, ValueError):
            treedef = call.treedef
        return (config.trace_context, treedef, *signatures)

    # Tracing and compiling

    def _trace(self, call: Call, avals: Sequence[Any]) -> Traced:
        """Return the traced program for a call whose leaves have the types ``avals``: from the cache, or by tracing."""
        if self._options.in_placements is not None:
            avals = typed_by_placements(call, avals)
        key = (config.trace_context, call.treedef, _marked(avals, call.refs), tuple(state.axes.items()))
        found: Traced | None = self._traced.get(key)
        if found is not None:
            return found
        if config.no_tracing:
            raise TracingForbiddenError(
                f"jit of {name_of(self._fun)} would be traced for arguments of these types, which no_tracing "
                f"forbids; call it first, outside, with arguments of the same shapes and dtypes"
            )
        if config.explain_cache_misses:
            from pullback.transforms.debugging.explain_cache_misses import explain

            explain(self, call, key, list(self._traced))
        traced = _trace(self._fun, call, avals)
        if not traced.captured and (traced.refs is None or traced.refs.are_lasting()):
            self._traced.keep(key, traced)
        return traced

    # Access to the programs

    def trace(self, *args: P.args, **kwargs: P.kwargs) -> Traced:
        """Trace the function for some arguments (arrays, or objects with ``shape`` and ``dtype``), without running it.

        >>> import pullback.numpy as jnp
        >>> from pullback import jit
        >>> jit(jnp.sin).trace(1.0).jaxpr
        { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
        """
        try:
            call = Call(self._fun, self._options, args, kwargs)
            traced = self._trace(call, call.avals())
            if traced.captured:
                raise ArgumentError(
                    f"jit of {name_of(self._fun)}: it captured a value traced by another transformation, "
                    f"{traced.captured[0]!r}, so it cannot be compiled separately. Pass the value as an argument."
                )
            return Traced(traced.jaxpr, traced.out_tree, [], call, traced.refs)
        except Exception as error:
            source.hide_internal_frames(error)
            raise

    def lower(self, *args: P.args, **kwargs: P.kwargs) -> Lowered:
        """Lower the function for some arguments to a StableHLO module.

        >>> import pullback.numpy as jnp
        >>> from pullback import jit
        >>> "stablehlo.sine" in jit(jnp.sin).lower(1.0).as_text()
        True
        """
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Return the types of the results for some arguments, as a tree of ``ShapeDtypeStruct``.

        They have the shardings that ``out_shardings`` asks for.
        """
        traced = self.trace(*args, **kwargs)
        requested = out_placements(traced.call, traced)
        if not any(requested):
            return traced.out_info
        leaves, treedef = tree.flatten(traced.out_info)
        described = [
            x if p is None else x.update(sharding=as_sharding(p)) for x, p in zip(leaves, requested, strict=True)
        ]
        return tree.unflatten(treedef, described)

    def clear_cache(self) -> None:
        """Remove all traced and compiled programs of this function from the cache."""
        self._compiled.clear()
        self._traced.clear()

    def _cache_size(self) -> int:
        return len(self._compiled)

    @overload
    def __get__(self, instance: None, owner: Any = None) -> JitFunction[P, R]: ...
    @overload
    def __get__(self, instance: object, owner: Any = None) -> Callable[..., R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<compiled {name_of(self._fun)}>"

    def __reduce__(self) -> Any:
        return qualified_name(self) or (_rebuilt, (self._fun, self._options.key()))


def _for_users(error: Exception) -> Exception:
    """Return the error that a call raises instead of ``error``: the same one, without Pullback's frames, or our own."""
    # Raised by the runtime, for a program that failed immediately; the package jax, if it is there, renames the module.
    if type(error).__module__ in ("jaxlib._jax", "jax.errors"):
        from pullback.backends.compiler.client import failure

        return failure(error)
    source.hide_internal_frames(error)
    return error


if quick is not None:
    provides(quick.as_subclass)
    quick.configure(
        python_call=JitFunction._call_by_python, state=state, eval_trace=EVAL, config=config, numbers=numbers,
        copiers=copiers, operand=operand, signature_of=signature_of, explained=_for_users, fresh=fresh,
        array_type=ArrayImpl, committed_type=CommittedArray, signature_type=Signature, aval_type=ShapedArray,
        entry_type=Compiled, deleted_type=DeletedArray, numpy_array=np.ndarray, numpy_scalar=np.generic,
    )  # fmt: skip


def _rebuilt(fun: Any, key: tuple[Any, ...]) -> JitFunction[..., Any]:
    """Rebuild a ``jit`` function from the original function and the values of its options, for unpickling."""
    options = object.__new__(Options)
    for name, value in zip(Options.__slots__, key, strict=True):
        setattr(options, name, value)
    return JitFunction(fun, options)


tree.register_leaf_type(JitFunction)


def _trace(fun: Any, call: Call, avals: Sequence[Any]) -> Traced:
    """Trace a function for the arguments of a call; return the traced program.

    ``avals`` are the types of the leaves of the arguments.
    """
    flat = FlatFunction(fun, call.in_tree, keywords=True)
    if call.static:
        flat.kwargs = {k: x for k, x in call.static.items() if isinstance(k, str)}
        count = len(call.args) + len(call.static) - len(flat.kwargs)
        flat.args = [call.static.get(i) for i in range(count)]
        flat.where = [i for i in range(count) if i not in call.static]
    scope = Scope()
    run = WithRefs(flat, list(call.refs)) if call.refs else flat
    with monitoring.timed(monitoring.TRACE, fun_name=call.fun_name):
        closed, captured = hoisted(stage_flat(fun, run, avals, "jit", call.arg_name, outside=scope))
    refs = None
    if call.refs or scope.touched or scope.in_rules:
        count = flat.out_structure.num_leaves
        ends = closed.jaxpr.outvars[count : count + len(call.refs)]
        own_written = [v is not closed.jaxpr.invars[i] for i, v in zip(call.refs, ends, strict=True)]
        refs = UsedRefs(fun, scope, len(avals), count, own_written)
        refs.check(list(call.refs.values()))
    return Traced(closed, flat.out_structure, captured, refs=refs)


def _marked(avals: Sequence[Any], refs: Mapping[int, Any]) -> tuple[Any, ...]:
    """Return the types ``avals`` of the leaves of arguments, for a cache key, with reference types for references.

    The keys of ``refs`` are the indices of the leaves that are references.
    """
    if not refs:
        return tuple(avals)
    return tuple([AbstractRef(a) if i in refs else a for i, a in enumerate(avals)])


cleared_too: list[Callable[[], Any]] = []
"""Functions that :func:`clear_caches` calls as well, to clear caches of libraries."""


def clear_caches() -> None:
    """Clear all caches of traced and compiled programs in this process, but not the cache on disk.

    >>> from pullback import clear_caches
    >>> clear_caches()
    """
    from pullback.transforms.traces.derived import clear_derived

    for cache in all_caches.living():
        cache.clear()
    clear_derived()
    for clear in cleared_too:
        clear()


class JitDecorator(Protocol):
    """The type of ``jit`` with options but without a function: a decorator."""

    def __call__(self, fun: Callable[P, R], /) -> JitFunction[P, R]: ...


@overload
def jit(
    fun: Callable[P, R],
    /,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    inline: bool | Inline = False,
    device: DeviceLike = None,
    backend: str | None = None,
    compiler_options: Mapping[str, Any] | None = None,
    in_shardings: PyTree = None,
    out_shardings: PyTree = None,
    tiered: str | None = None,
) -> JitFunction[P, R]: ...
@overload
def jit(
    fun: None = None,
    /,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    inline: bool | Inline = False,
    device: DeviceLike = None,
    backend: str | None = None,
    compiler_options: Mapping[str, Any] | None = None,
    in_shardings: PyTree = None,
    out_shardings: PyTree = None,
    tiered: str | None = None,
) -> JitDecorator: ...
# long: because each option is described
def jit(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    inline: bool | Inline = False,
    device: DeviceLike = None,
    backend: str | None = None,
    compiler_options: Mapping[str, Any] | None = None,
    in_shardings: PyTree = None,
    out_shardings: PyTree = None,
    tiered: str | None = None,
) -> Any:
    """Compile a function: trace it for each combination of argument types, and run it as a program.

    Args:
      fun: takes and returns trees of arrays. Without it, a decorator is returned.
      static_argnums, static_argnames: arguments that are not traced, by position and by name; they must be hashable,
        and a program is compiled for each of their values. If the signature of ``fun`` is known, each of the two is
        completed from the other.
      donate_argnums, donate_argnames: arguments whose memory the results may take; they cannot be used afterwards.
      keep_unused: whether the program also takes arguments that ``fun`` does not use.
      inline: whether, within another traced function, the equations of ``fun`` are inlined instead of being one
        equation; or an :class:`Inline`.
      device: the device to run on, or the name of a platform; by default the device of the arguments.
      backend: the name of the platform to run on: JAX's name for ``device``.
      compiler_options: options of XLA by name, such as ``{"xla_cpu_enable_fast_math": True}``; only for a function that
        is not called within another compiled function.
      in_shardings: the shardings of the positional arguments: a prefix tree of their tuple, whose leaves are shardings,
        specifications for the mesh that ``set_mesh`` has set, and None for arguments that are not moved. Arguments with
        another placement are moved. A single sharding applies to all arguments.
      out_shardings: the shardings of the results, a prefix tree; None leaves the choice to the compiler.
      tiered: whether calls run operation by operation while another thread compiles: ``"off"``, ``"on"``, or
        ``"auto"``: if compilation is expected to take more than a second, and a call less. Results of both ways may
        differ by rounding. By default the switch ``tiered`` decides, which is ``"off"``.

    Returns:
      A function of the same arguments, with the methods ``trace``, ``lower``, ``eval_shape`` and ``clear_cache``.

    Raises:
      StaticArgumentError: a static argument is not hashable (a TypeError and ValueError).
      ConcretizationTypeError: ``fun`` needs the value of a traced argument (a TypeError).
      TracerBoolConversionError: it needs the value for a condition, as in ``if`` (a TypeError).
      TracerIntegerConversionError: it needs the value for an integer of Python, as in ``range`` (a TypeError).
      UnexpectedTracerError: ``fun`` uses a traced value of a function that has ended (a TypeError).
      CompilationError: the compiler rejects the program (a RuntimeError).
      DeletedArrayError: an argument was donated before (a RuntimeError).
      IncompatibleDevicesError: arguments are on different devices, or on meshes of different devices (a ValueError).
      ShardingError: a sharding does not fit its array, or is missing (a ValueError).
      MeshContextError: a specification has no mesh, and no mesh is set (a RuntimeError).

    Warns:
      DonationWarning: a donated argument has the type of no result.
      CompilationCacheWarning: the cache of compiled programs on disk is of no use.
      ForkWarning: this process was forked from one that had compiled programs.

    >>> import pullback.numpy as jnp
    >>> from pullback import jit
    >>> @jit
    ... def selu(x):
    ...     return 1.05 * jnp.where(x > 0, x, 1.67 * jnp.exp(x) - 1.67)
    >>> print(selu(jnp.array([1.0, -1.0])))
    [ 1.05       -1.1084...]
    """
    options = {
        "static_argnums": static_argnums, "static_argnames": static_argnames, "donate_argnums": donate_argnums,
        "donate_argnames": donate_argnames, "keep_unused": keep_unused, "inline": inline, "device": device,
        "backend": backend, "compiler_options": compiler_options, "in_shardings": in_shardings,
        "out_shardings": out_shardings, "tiered": tiered,
    }  # fmt: skip
    if fun is None:
        return functools.partial(jit, **options)
    require_function("jit", "fun", fun)
    if isinstance(fun, staticmethod):
        raise ArgumentError(
            "jit: staticmethod arguments are not supported: write @staticmethod above @jit, so that jit gets it"
        )
    if type(fun) is FunctionType and fun.__code__.co_flags & inspect.CO_GENERATOR:
        raise ArgumentError(
            f"jit: expected a function, got a generator function, {name_of(fun)}: it returns an iterator, and no "
            f"program yields values. Return a list or a tuple of arrays"
        )
    return JitFunction(fun, _PLAIN if options == _DEFAULTS else _options(fun, **options))


_DEFAULTS = dict(jit.__kwdefaults__ or {})
_PLAIN = Options(((), ()), ((), ()), False, False, None)


def _options(
    fun: Any, *, static_argnums: Any, static_argnames: Any, donate_argnums: Any, donate_argnames: Any,
    keep_unused: bool, inline: Any, device: Any, backend: Any, compiler_options: Any, in_shardings: Any,
    out_shardings: Any, tiered: Any,
) -> Options:  # fmt: skip
    """Check the options of :func:`jit`, and return them as an ``Options`` object."""
    static = infer_argnums_argnames(fun, static_argnums, static_argnames, "static")
    donated = infer_argnums_argnames(fun, donate_argnums, donate_argnames, "donate")
    both = set(static[0]) & set(donated[0]) | set(static[1]) & set(donated[1])
    if both:
        shown = sorted(both, key=str)
        raise ArgumentError(f"jit of {name_of(fun)}: arguments cannot be both static and donated: {shown}")

    if device is not None and backend is not None:
        raise ArgumentError(f"jit of {name_of(fun)}: pass either device or backend; got {device!r} and {backend!r}")
    where = [name for name, value in (("device", device), ("backend", backend)) if value is not None]
    for name, shardings in (("in_shardings", in_shardings), ("out_shardings", out_shardings)):
        if where and shardings is not None:
            raise ArgumentError(
                f"jit of {name_of(fun)}: pass either {where[0]} or {name}, which say where the function runs"
            )
    placements = [
        None if shardings is None else PlacementTree(shardings, f"jit of {name_of(fun)}, {what}")
        for shardings, what in ((in_shardings, "in_shardings"), (out_shardings, "out_shardings"))
    ]
    if tiered not in (None, *TIERS):
        raise ArgumentError(f"jit of {name_of(fun)}: tiered must be None or one of {TIERS}, got {tiered!r}")
    inline = inline is Inline.JAX_EARLY if isinstance(inline, Inline) else flag("jit", "inline", inline)
    keep_unused = flag("jit", "keep_unused", keep_unused)
    return Options(
        static, donated, inline, keep_unused, backend if device is None else device,
        _compiler_options(compiler_options), *placements, tiered=tiered,
    )  # fmt: skip


def _compiler_options(options: Any) -> tuple[tuple[str, Any], ...]:
    """Check options of the compiler, and return them as a hashable object: a tuple of pairs, sorted by name."""
    if options is None:
        return ()
    if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
        raise ArgumentError(f"jit: compiler_options must be a dict of options by name, got {options!r}")
    plain = {n: v.value if isinstance(v, CompilerEffortLevel) else v for n, v in options.items()}
    for name, value in plain.items():
        if not isinstance(value, (bool, int, float, str)):
            raise ArgumentError(f"jit: the option {name} must be a bool, an int, a float or a str, got {value!r}")
        if name in _LEVELS and type(value) is not int:
            if value not in CompilerEffortLevel.__members__:
                raise ArgumentError(
                    f"jit: the option {name} must be a CompilerEffortLevel, its name or number, got {value!r}"
                )
            plain[name] = CompilerEffortLevel[value].value  # type: ignore[misc]
    return tuple(sorted(plain.items()))


_LEVELS = ("optimization_level", "memory_fitting_level")
