"""``jit``: a function is traced once for each kind of arguments, compiled, and run."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from types import MethodType
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, overload

from pullback.backends.compiler import trees
from pullback.backends.devices.buffers import buffers_of, from_buffer
from pullback.backends.devices.shardings import DeviceLike
from pullback.backends.processes import forks
from pullback.core import monitoring, source, tree
from pullback.core.annotations import PyTree
from pullback.core.array import delete, signature_of, typeof
from pullback.core.config import TIERS, config
from pullback.core.errors import ArgumentError, TracingForbiddenError
from pullback.core.jaxpr import aval_of, eval_jaxpr
from pullback.core.refs import AbstractRef
from pullback.core.registry import OwnsPrograms
from pullback.core.trace import EVAL, Tracer, state
from pullback.transforms.functions.api_boundary import qualified_name, watching
from pullback.transforms.functions.arguments import check_callable, name_of
from pullback.transforms.functions.flat_function import FlatFunction
from pullback.transforms.jit.caches import all_caches, caches_of
from pullback.transforms.jit.jit_arguments import Call, Options, infer_argnums_argnames
from pullback.transforms.jit.jit_refs import UsedRefs
from pullback.transforms.jit.jit_shardings import PlacementTree
from pullback.transforms.jit.stages import Lowered, Traced, donate, in_placements, out_placements
from pullback.transforms.jit.tiers import entry_for
from pullback.transforms.programs.jit_primitive import jit_p
from pullback.transforms.programs.placement import constrained
from pullback.transforms.traces.captured import hoisted
from pullback.transforms.traces.refs import Scope, WithRefs
from pullback.transforms.traces.stage import stage_flat

P = ParamSpec("P")
R = TypeVar("R")

_signatures = attrgetter("_signature")
_new = object.__new__


_frees = itertools.cycle([False] * 1023 + [True])
"""Whether a call goes the general way although it need not, which frees what the runtime keeps of the others."""


class JitFunction(OwnsPrograms, Generic[P, R]):
    """A compiled function: what ``jit`` returns.

    It is called like the function that it was made from. ``trace``, ``lower``, ``eval_shape`` and ``clear_cache`` look
    inside.
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
        self._compiled, self._traced = caches_of(fun, options)

    # Calling

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        # The quick way, for arguments that are arrays, or trees of them, of a kind that was compiled before.
        try:
            if state.trace is EVAL and self._plain:
                entry = None
                leaves: Any = args
                try:
                    if kwargs or self._nested:
                        leaves, treedef = self._flatten((args, kwargs))
                        entry = self._compiled[(config.trace_context, treedef, *map(_signatures, leaves))]
                    else:
                        entry = self._compiled[(config.trace_context, *map(_signatures, args))]
                except (AttributeError, KeyError, TypeError, ValueError):
                    pass
                if entry is not None:
                    if not entry.simple or next(_frees):
                        return entry.run(leaves)  # type: ignore[no-any-return]
                    donated = entry.donated
                    if donated:
                        given_up = [leaves[i] for i in donated]
                        donate(given_up)
                    try:
                        buffers = list(map(buffers_of, leaves))
                        if entry.captured:
                            buffers += map(buffers_of, entry.captured)
                    except AttributeError:
                        return entry.run(leaves)  # type: ignore[no-any-return]
                    if donated and len(set(map(id, buffers))) < len(buffers):
                        return entry.run(leaves)  # type: ignore[no-any-return]
                    outs = entry.collect(entry.execute(buffers), entry.handlers)
                    if donated:
                        delete(*given_up)
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
            if type(error).__module__ == "jaxlib._jax":  # of a program that failed at once
                from pullback.backends.compiler.client import failure

                raise failure(error) from None
            source.hide_internal_frames(error)
            raise

    def _general(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if config.disable_jit:
            forks.warn_eager()
            return self._fun(*args, **kwargs)
        call = Call(self._fun, self._options, args, kwargs)
        leaves = call.arrays()
        whole = state.trace.is_bottom and not [x for x in leaves if isinstance(x, Tracer)]
        if whole and not config.indices_are_checked:
            if self._plain and not kwargs:
                self._nested = call.nested
            signatures = list(map(signature_of, leaves))
            key = self._key(call, signatures)
            entry = self._compiled.get(key)
            if entry is None:
                traced = self._trace(call, list(map(aval_of, signatures)))
                if traced.refs is not None:
                    signatures += map(signature_of, traced.refs.contents())
                entry = entry_for(Lowered(traced, call, signatures), self._options, self._compiled, key)
                self._compiled.keep(key, entry)
            if config.debug_key_reuse:
                closed = self._trace(call, list(map(aval_of, signatures))).jaxpr
                return state.bottom.run_program(closed, leaves, lambda: entry.run(leaves))
            return entry.run(leaves, list(call.refs.values())) if call.refs else entry.run(leaves)
        if self._options.compiler_options and not whole:
            raise ArgumentError(
                f"jit of {name_of(self._fun)}: compiler_options={dict(self._options.compiler_options)} are for a "
                "function that is compiled by itself, but it was called within a transformation "
                f"({state.trace.describe()}). Give them to the outermost jit."
            )
        traced = self._trace(call, list(map(typeof, leaves)))
        if self._options.in_placements is not None:
            placements = in_placements(call, traced)
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
        """The key of a compiled entry, which the quick way builds too."""
        if call.refs:  # for which there is no quick way
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
        """The program for some arguments: the one that was traced before, or a new one."""
        key = (config.trace_context, call.treedef, _marked(avals, call.refs), tuple(state.axes.items()))
        found: Traced | None = self._traced.get(key)
        if found is not None:
            return found
        if config.no_tracing:
            raise TracingForbiddenError(
                f"jit of {name_of(self._fun)} would be traced for arguments of these types, which no_tracing forbids; "
                "call it before with arguments of the same shapes and dtypes"
            )
        if config.explain_cache_misses:
            from pullback.transforms.debugging.explain_cache_misses import explain

            explain(self, call, key, list(self._traced))
        traced = _trace(self._fun, call, avals)
        if not traced.captured and (traced.refs is None or traced.refs.are_lasting()):
            self._traced.keep(key, traced)
        return traced

    # Looking inside

    def trace(self, *args: P.args, **kwargs: P.kwargs) -> Traced:
        """The program for some arguments (arrays, or anything with ``shape`` and ``dtype``), which is not run.

        >>> import pullback.numpy as pnp
        >>> jit(pnp.sin).trace(1.0).jaxpr
        { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
        """
        try:
            call = Call(self._fun, self._options, args, kwargs)
            traced = self._trace(call, call.avals())
            if traced.captured:
                raise ArgumentError(
                    f"jit of {name_of(self._fun)}: it captured a value that another transformation traces, "
                    f"{traced.captured[0]!r}, so it cannot be compiled by itself. Pass the value as an argument."
                )
            return Traced(traced.jaxpr, traced.out_tree, [], call, traced.refs)
        except Exception as error:
            source.hide_internal_frames(error)
            raise

    def lower(self, *args: P.args, **kwargs: P.kwargs) -> Lowered:
        """The program for some arguments as text for the compiler.

        >>> import pullback.numpy as pnp
        >>> "stablehlo.sine" in jit(pnp.sin).lower(1.0).as_text()
        True
        """
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """The types of the results for some arguments, as a tree of ``ShapeDtypeStruct``."""
        return self.trace(*args, **kwargs).out_info

    def clear_cache(self) -> None:
        """Forget what was traced and compiled for this function."""
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


def _rebuilt(fun: Any, key: tuple[Any, ...]) -> JitFunction[..., Any]:
    options = object.__new__(Options)
    for name, value in zip(Options.__slots__, key, strict=True):
        setattr(options, name, value)
    return JitFunction(fun, options)


tree.register_leaf_type(JitFunction)


def _trace(fun: Any, call: Call, avals: Sequence[Any]) -> Traced:
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
    if call.refs or scope.touched:
        refs = UsedRefs(fun, scope, len(avals), flat.out_structure.num_leaves)
        refs.check(list(call.refs.values()))
    return Traced(closed, flat.out_structure, captured, refs=refs)


def _marked(avals: Sequence[Any], refs: Mapping[int, Any]) -> tuple[Any, ...]:
    """The types of some leaves, as part of a key: those of references are others than those of arrays."""
    if not refs:
        return tuple(avals)
    return tuple([AbstractRef(a) if i in refs else a for i, a in enumerate(avals)])


def clear_caches() -> None:
    """Forget everything that was traced and compiled in this process (the cache on disk stays).

    >>> clear_caches()
    """
    from pullback.transforms.traces.derived import clear_derived

    for cache in all_caches.living():
        cache.clear()
    clear_derived()


class JitDecorator(Protocol):
    """``jit`` with options, which is still to be given its function."""

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
    inline: bool = False,
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
    inline: bool = False,
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
    inline: bool = False,
    device: DeviceLike = None,
    backend: str | None = None,
    compiler_options: Mapping[str, Any] | None = None,
    in_shardings: PyTree = None,
    out_shardings: PyTree = None,
    tiered: str | None = None,
) -> Any:
    """Compile a function: it is traced once for each kind of arguments, and runs as one program from then on.

    Args:
      fun: takes and returns trees of arrays. Without it, a decorator is returned.
      static_argnums, static_argnames: arguments that are passed as they are, by position and by name; they must be
        hashable, and a program is compiled for each of their values. Where the signature of ``fun`` is known, each of
        the two is completed from the other.
      donate_argnums, donate_argnames: arguments whose memory the results may take; they cannot be used afterwards.
      keep_unused: whether arguments that ``fun`` does not use are arguments of the program all the same.
      inline: whether, within another traced function, the operations of ``fun`` appear directly instead of as one
        equation.
      device: where to run: a device or the name of a platform. By default where the arguments are.
      backend: where to run, the name of a platform; the same as ``device``, under JAX's name.
      compiler_options: options of XLA by name, such as ``{"xla_cpu_enable_fast_math": True}``; for a function that is
        not called within another compiled one.
      in_shardings: how the positional arguments are spread over devices: a tree that is a prefix of their tuple, of
        shardings, of specifications for the mesh that ``set_mesh`` has set, and of None for arguments that stay where
        they are. Arguments that are elsewhere are put there. One sharding stands for all arguments.
      out_shardings: the same for the results, a prefix of their tree; None leaves the choice to the compiler.
      tiered: whether calls are answered operation by operation while another thread compiles: ``"off"``, ``"on"``, or
        ``"auto"``, where the compiler is expected to take more than a second and such a call less. Both round, each in
        its way. By default as the switch ``tiered`` says, which is ``"off"``.

    Returns:
      A function of the same arguments, with the methods ``trace``, ``lower``, ``eval_shape`` and ``clear_cache``.

    Raises:
      StaticArgumentError: a static argument is not hashable (a TypeError and ValueError).
      ConcretizationTypeError: ``fun`` asks for the value of a traced argument, in ``if`` for example (a TypeError).
      CompilationError: the compiler refuses the program (a RuntimeError).
      DeletedArrayError: an argument was donated before (a RuntimeError).
      IncompatibleDevicesError: arguments are on different devices, or on meshes of different devices (a ValueError).
      ShardingError: a sharding does not fit its array, or there is not one for each (a ValueError).
      MeshContextError: a specification has no mesh, and none is set (a RuntimeError).

    >>> import pullback.numpy as pnp
    >>> @jit
    ... def selu(x):
    ...     return 1.05 * pnp.where(x > 0, x, 1.67 * pnp.exp(x) - 1.67)
    >>> print(selu(pnp.array([1.0, -1.0])))
    [ 1.05       -1.1084...]
    """
    given = {
        "static_argnums": static_argnums, "static_argnames": static_argnames, "donate_argnums": donate_argnums,
        "donate_argnames": donate_argnames, "keep_unused": keep_unused, "inline": inline, "device": device,
        "backend": backend, "compiler_options": compiler_options, "in_shardings": in_shardings,
        "out_shardings": out_shardings, "tiered": tiered,
    }  # fmt: skip
    if fun is None:
        return functools.partial(jit, **given)
    check_callable(fun, "jit")
    return JitFunction(fun, _PLAIN if given == _DEFAULTS else _options(fun, **given))


_DEFAULTS = dict(jit.__kwdefaults__ or {})
_PLAIN = Options(((), ()), ((), ()), False, False, None)


def _options(
    fun: Any, *, static_argnums: Any, static_argnames: Any, donate_argnums: Any, donate_argnames: Any,
    keep_unused: bool, inline: bool, device: Any, backend: Any, compiler_options: Any, in_shardings: Any,
    out_shardings: Any, tiered: Any,
) -> Options:  # fmt: skip
    """The options of :func:`jit`, checked."""
    static = infer_argnums_argnames(fun, static_argnums, static_argnames, "static")
    donated = infer_argnums_argnames(fun, donate_argnums, donate_argnames, "donate")
    both = set(static[0]) & set(donated[0]) | set(static[1]) & set(donated[1])
    if both:
        shown = sorted(both, key=str)
        raise ArgumentError(f"jit of {name_of(fun)}: arguments cannot be both static and donated: {shown}")

    if device is not None and backend is not None:
        raise ArgumentError(f"jit of {name_of(fun)}: give device or backend, not both; got {device!r} and {backend!r}")
    chosen = backend if device is None else device
    placements = [
        None if given is None else PlacementTree(given, f"jit of {name_of(fun)}, {what}")
        for given, what in ((in_shardings, "in_shardings"), (out_shardings, "out_shardings"))
    ]
    if tiered not in (None, *TIERS):
        raise ArgumentError(f"jit of {name_of(fun)}: tiered must be None or one of {TIERS}, got {tiered!r}")
    return Options(
        static, donated, inline, keep_unused, chosen, _compiler_options(compiler_options), *placements, tiered=tiered
    )


def _compiler_options(given: Any) -> tuple[tuple[str, Any], ...]:
    """Options of the compiler as something hashable."""
    if given is None:
        return ()
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise ArgumentError(f"jit: compiler_options must be a dict of options by name, got {given!r}")
    for name, value in given.items():
        if not isinstance(value, (bool, int, float, str)):
            raise ArgumentError(f"jit: the option {name} must be a bool, an int, a float or a str, got {value!r}")
    return tuple(sorted(given.items()))
