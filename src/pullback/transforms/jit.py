"""``jit``: a function is traced once for each kind of arguments, compiled, and run."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Sequence
from operator import attrgetter
from types import MethodType
from typing import Any

import numpy as np

from pullback.core import source, tree
from pullback.core.array import Array, ArrayImpl, DeviceArray, Signature, as_array, delete, signature, signature_of, typeof
from pullback.core.config import config
from pullback.core.dtypes import canonicalize_dtype
from pullback.core.errors import ArgumentError, OperandError, StaticArgumentError
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, Var, eval_jaxpr
from pullback.core.trace import EVAL, Tracer, state
from pullback.transforms.arguments import argument_name, check_callable, name_of, out_leaf
from pullback.transforms.call import jit_p
from pullback.transforms.cleanup import clean
from pullback.transforms.dce import dce_closed_jaxpr
from pullback.transforms.nonfinite import checked_run, checking
from pullback.transforms.stage import abstractify, stage_flat

_signatures = attrgetter("_signature")
_buffers = attrgetter("_buffer")
_new = object.__new__


class Options:
    """What ``jit`` was asked for, with static and donated arguments by position and by name."""

    __slots__ = ("device", "donated_names", "donated_nums", "inline", "keep_unused", "static_names", "static_nums")

    def __init__(
        self, static: tuple[Any, Any], donated: tuple[Any, Any], inline: bool, keep_unused: bool, device: Any
    ) -> None:
        self.static_nums, self.static_names = static
        self.donated_nums, self.donated_names = donated
        self.inline = inline
        self.keep_unused = keep_unused
        self.device = device

    def key(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)


class Traced:
    """A function traced for one kind of arguments.

    Attributes:
      closed: its program; arrays of enclosing transformations that it captured are inputs, after the others.
      out_tree: the tree of its results.
      captured: those arrays.
    """

    __slots__ = ("captured", "closed", "out_tree")

    def __init__(self, closed: ClosedJaxpr, out_tree: Any, captured: list[Any]) -> None:
        self.closed = closed
        self.out_tree = out_tree
        self.captured = captured


class Entry:
    """A function compiled for one kind of arguments.

    Attributes:
      run: starts the program on a list of buffers.
      kept: the leaves of the arguments that it takes, or None if it takes all.
      captured: buffers that it takes after them.
      kinds: the signatures of the results that it gives.
      simple: whether it takes all leaves and gives all results, so that nothing but ``execute`` has to be done.
      execute: starts the program on a list of buffers; ``consume_with_handlers(handlers)`` gives those of its results.
      places: None, or for each result of the function where it is: a number of a result of the program, or ``~i`` for
        leaf i of the arguments, which is handed through.
      donated: the leaves of the arguments whose memory it takes.
      unflatten: makes the tree of the results, or None for a single array.
    """

    __slots__ = (
        "captured", "device", "donated", "execute", "handlers", "kept", "kinds", "places", "program", "run", "simple",
        "traced", "unflatten",
    )  # fmt: skip

    captured: list[Any]
    device: Any
    donated: tuple[int, ...]
    kept: list[int] | None
    kinds: list[Signature]
    execute: Callable[[list[Any]], Any]
    handlers: list[Any]
    places: list[int] | None
    program: Any
    run: Callable[[list[Any]], list[Any]]
    simple: bool
    traced: Traced
    unflatten: Callable[[Any], Any] | None


class JitFunction:
    """A compiled function: what ``jit`` returns.

    It is called like the function that it was made from. ``trace``, ``lower``, ``eval_shape`` and ``clear_cache`` look
    inside.
    """

    def __init__(self, fun: Callable[..., Any], options: Options) -> None:
        functools.update_wrapper(self, fun)
        self._fun = fun
        self._options = options
        self._plain = not (options.static_nums or options.static_names)
        self._nested = False
        self._flatten: Any = None
        self._compiled, self._traced = _caches_of(fun, options)

    # Calling

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # The quick way, for arguments that are arrays, or trees of them, of a kind that was compiled before.
        try:
            if state.trace is EVAL and self._plain:
                entry = None
                leaves: Any = args
                try:
                    if kwargs or self._nested:
                        leaves, treedef = self._flatten((args, kwargs))
                        entry = self._compiled[(config.meaning, treedef, *map(_signatures, leaves))]
                    else:
                        entry = self._compiled[(config.meaning, *map(_signatures, args))]
                except (AttributeError, KeyError, TypeError, ValueError):
                    pass
                if entry is not None:
                    if not entry.simple:
                        return self._run(entry, leaves)
                    try:
                        buffers = list(map(_buffers, leaves))
                    except AttributeError:
                        return self._run(entry, leaves)
                    outs = entry.execute(buffers).consume_with_handlers(entry.handlers)
                    unflatten = entry.unflatten
                    if unflatten is None:
                        x = _new(DeviceArray)
                        x._buffer = outs[0]
                        x._signature = entry.kinds[0]
                        return x
                    return unflatten(list(map(_from_buffer, outs, entry.kinds)))
            return self._general(args, kwargs)
        except Exception as error:
            source.hide_internal_frames(error)
            raise

    @staticmethod
    def _run(entry: Entry, leaves: Sequence[Any]) -> Any:
        given = leaves
        kept = entry.kept
        if kept is not None:
            leaves = [leaves[i] for i in kept]
        if entry.donated:
            for i in entry.donated:
                _let_go(given[i])
        try:
            buffers = None if _client.several_devices else list(map(_buffers, leaves))
        except AttributeError:
            buffers = None
        if buffers is None:
            buffers = _put(leaves, entry.device)
        if entry.captured:
            buffers += entry.captured
        outs = list(map(_from_buffer, entry.run(buffers), entry.kinds))
        places = entry.places
        if places is not None:
            outs = [outs[p] if p >= 0 else given[~p] for p in places]
        for i in entry.donated:
            delete(given[i])
        unflatten = entry.unflatten
        return outs[0] if unflatten is None else unflatten(outs)

    def _general(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if config.disable_jit:
            return self._fun(*args, **kwargs)
        call = _Call(self, args, kwargs)
        leaves = call.arrays()
        if state.trace is EVAL and not any(isinstance(x, Tracer) for x in leaves):
            if self._plain and not kwargs:
                self._nested = call.nested
            key = self._key(call, leaves)
            entry = self._compiled.get(key)
            if entry is None:
                entry = self._compile(call, leaves)
                if call.cacheable:
                    _keep(self._compiled, key, entry)
            return self._run(entry, leaves)
        traced = self._trace(call, list(map(typeof, leaves)))
        operands = [*leaves, *traced.captured]
        if self._options.inline:
            outs = eval_jaxpr(traced.closed.jaxpr, traced.closed.consts, *operands)
        else:
            outs = jit_p.bind(*operands, jaxpr=traced.closed, name=self._name)
        return tree.unflatten(traced.out_tree, outs)

    def _key(self, call: _Call, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """The key of a compiled entry, which the quick way builds too."""
        kinds = map(signature_of, leaves)
        if not self._plain:
            return (config.meaning, call.treedef, *kinds)
        if not (call.nested or call.kwargs):
            return (config.meaning, *kinds)
        if self._flatten is None:
            from pullback.backends import trees

            self._flatten = trees.flattener()
        try:
            treedef = self._flatten((call.args, call.kwargs))[1]
        except (TypeError, ValueError):
            treedef = call.treedef
        return (config.meaning, treedef, *kinds)

    @property
    def _name(self) -> str:
        return getattr(self._fun, "__name__", None) or type(self._fun).__name__

    # Tracing and compiling

    def _trace(self, call: _Call, avals: Sequence[Any]) -> Traced:
        """The program for some arguments: the one that was traced before, or a new one."""
        key = (config.meaning, call.treedef, tuple(avals), tuple(state.axes.items()))
        found: Traced | None = self._traced.get(key)
        if found is not None:
            return found
        if config.explain_cache_misses:
            from pullback.transforms.retracing import explain

            explain(self, call, avals, list(self._traced))
        traced = _trace(self._fun, call, avals)
        if call.cacheable and not traced.captured:
            _keep(self._traced, key, traced)
        return traced

    def _compile(self, call: _Call, leaves: Sequence[Any]) -> Entry:
        avals = [signature_of(x).aval for x in leaves]
        traced = self._trace(call, avals)
        return lower(self, traced, leaves, call).compile()

    # Looking inside

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """The program for some arguments (arrays, or anything with ``shape`` and ``dtype``), which is not run.

        >>> import pullback.numpy as pnp
        >>> jit(pnp.sin).trace(1.0).jaxpr
        { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
        """
        from pullback.transforms import stages

        try:
            return stages.trace(self, args, kwargs)
        except Exception as error:
            source.hide_internal_frames(error)
            raise

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """The program for some arguments as text for the compiler.

        >>> import pullback.numpy as pnp
        >>> "stablehlo.sine" in jit(pnp.sin).lower(1.0).as_text()
        True
        """
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The types of the results for some arguments, as a tree of ``ShapeDtypeStruct``."""
        return self.trace(*args, **kwargs).out_info

    def clear_cache(self) -> None:
        """Forget what was traced and compiled for this function."""
        self._compiled.clear()
        self._traced.clear()

    def _cache_size(self) -> int:
        return len(self._compiled)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<compiled {name_of(self._fun)}>"

    def __reduce__(self) -> Any:
        return _rebuilt, (self._fun, self._options.key())


def _rebuilt(fun: Any, key: tuple[Any, ...]) -> JitFunction:
    options = object.__new__(Options)
    for name, value in zip(Options.__slots__, key, strict=True):
        setattr(options, name, value)
    return JitFunction(fun, options)


tree.register_leaf_type(JitFunction)


# Arguments -----------------------------------------------------------------------------------------------------------


class _Call:
    """The arguments of one call: leaves to trace, and all else as a key.

    Attributes:
      treedef: the tree of the traced arguments, with the static ones: hashable.
      nested: whether the positional arguments are trees, not arrays.
      cacheable: whether the key may be kept.
      donated: for each leaf, whether it is donated.
    """

    __slots__ = ("args", "cacheable", "fun", "in_tree", "kwargs", "leaves", "nested", "options", "static", "treedef")

    def __init__(self, function: JitFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.fun = function._fun
        self.options = options = function._options
        self.cacheable = True
        self.args, self.kwargs = args, kwargs
        self.static: dict[Any, Any] = {}
        if options.static_nums or options.static_names:
            self._split(options)
        self.leaves, self.in_tree = tree.flatten((self.args, self.kwargs))
        self.nested = len(self.leaves) != len(args) or any(not tree.all_leaves([x]) for x in args)
        self.treedef: Any = self.in_tree if self.nested or self.kwargs else len(args)
        if self.static:
            self.treedef = (self.treedef, tuple((k, type(v), v) for k, v in self.static.items()))

    def _split(self, options: Options) -> None:
        count = len(self.args)
        wanted = {i % count for i in options.static_nums if -count <= i < count}
        for i in sorted(wanted):
            self.static[i] = self.args[i]
        for name in options.static_names:
            if name in self.kwargs:
                self.static[name] = self.kwargs[name]
        for where, value in self.static.items():
            try:
                hash(value)
            except TypeError:
                shown = f"argument {where}" if isinstance(where, int) else f"argument {where!r}"
                raise StaticArgumentError(
                    f"jit of {name_of(self.fun)}: the static {shown} must be hashable, since programs are kept by its "
                    f"value, but got {value!r} of type {type(value).__name__}. Pass a tuple instead of a list, or do not "
                    "declare the argument static."
                ) from None
        self.args = tuple(x for i, x in enumerate(self.args) if i not in self.static)
        self.kwargs = {k: x for k, x in self.kwargs.items() if k not in self.static}

    def call(self, leaves: Sequence[Any]) -> Any:
        """Call the function with some leaves in the place of those given."""
        args, kwargs = tree.unflatten(self.in_tree, leaves)
        if self.static:
            rest, count = iter(args), len(args) + sum(isinstance(k, int) for k in self.static)
            args = [self.static[i] if i in self.static else next(rest) for i in range(count)]
            kwargs = {**kwargs, **{k: v for k, v in self.static.items() if isinstance(k, str)}}
        return self.fun(*args, **kwargs)

    def arrays(self) -> list[Any]:
        """The leaves as arrays."""
        return [x if isinstance(x, Array) else self._array(i, x) for i, x in enumerate(self.leaves)]

    def _array(self, i: int, x: Any) -> Array:
        if type(x) is np.ndarray and state.trace is EVAL and x.dtype.isnative and canonicalize_dtype(x.dtype) is x.dtype:
            from pullback.backends.programs import snapshot

            return snapshot(x)
        try:
            return as_array(x)
        except OperandError as error:
            raise self._refusal(i, error) from None

    def avals(self) -> list[Any]:
        """The types of the leaves, which may be anything that has a shape and a dtype."""
        out = []
        for i, x in enumerate(self.leaves):
            try:
                out.append(abstractify(x))
            except OperandError as error:
                raise self._refusal(i, error) from None
        return out

    def _refusal(self, i: int, error: OperandError) -> OperandError:
        return OperandError(
            f"jit of {name_of(self.fun)}, {self.place(i)}: {error} An argument that is no array must be declared "
            "static: jit(f, static_argnums=...) or static_argnames=...; a program is compiled for each of its values."
        )

    def place(self, i: int) -> str:
        """The name of leaf ``i``."""
        positions = [k for k in range(len(self.args) + len(self.static)) if k not in self.static]
        full = list(self.args)
        for k in sorted(k for k in self.static if isinstance(k, int)):
            full.insert(k, None)
        return argument_name(i, self.fun, full, positions[: len(self.args)], self.kwargs)

    def donated_leaves(self) -> list[bool]:
        """For each leaf, whether its argument is donated."""
        options, flags = self.options, []
        positions = [k for k in range(len(self.args) + len(self.static)) if k not in self.static]
        count = len(self.args) + sum(isinstance(k, int) for k in self.static)
        wanted = {i % count for i in options.donated_nums if -count <= i < count} if count else set()
        for k, x in zip(positions, self.args, strict=False):
            flags += [k in wanted] * len(tree.leaves(x))
        for name in sorted(self.kwargs):
            flags += [name in options.donated_names] * len(tree.leaves(self.kwargs[name]))
        return flags


def _trace(fun: Any, call: _Call, avals: Sequence[Any]) -> Traced:
    out_tree: Any = None

    def run(*tracers: Any) -> list[Any]:
        nonlocal out_tree
        out_leaves, out_tree = tree.flatten(call.call(tracers))
        return [out_leaf(x, fun) for x in out_leaves]

    closed = stage_flat(fun, run, avals, "jit")
    captured = [x for x in closed.consts if isinstance(x, Tracer)]
    if captured:
        closed = _hoisted(closed)
    return Traced(closed, out_tree, captured)


def _hoisted(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A program whose captured tracers are inputs, after the others."""
    jaxpr = closed.jaxpr
    pairs: list[tuple[Var, Any]] = list(zip(jaxpr.constvars, closed.consts, strict=True))
    inputs = [v for v, x in pairs if isinstance(x, Tracer)]
    kept = [(v, x) for v, x in pairs if not isinstance(x, Tracer)]
    smaller = Jaxpr([v for v, _ in kept], [*jaxpr.invars, *inputs], jaxpr.eqns, jaxpr.outvars)
    return ClosedJaxpr(smaller, [x for _, x in kept])


# Compiled entries ------------------------------------------------------------------------------------------------------


class _LazyClient:
    """Stands for the module that knows about devices until it is imported."""

    several_devices = False


_client: Any = _LazyClient


def _put(leaves: Sequence[ArrayImpl], device: Any) -> list[Any]:
    from pullback.backends.programs import buffer_of

    return [buffer_of(x, device) for x in leaves]


def _let_go(x: Any) -> None:
    """Forget the host's view of an array that has its elements on a device, so that they can be overwritten."""
    if type(x) is ArrayImpl and hasattr(x, "_buffer"):
        signature_of(x)
        del x._value
        x.__class__ = DeviceArray


class Plan:
    """A traced function, lowered for a device, with all that is needed to make an entry of it."""

    __slots__ = ("asked_for", "donated", "kept", "lowered", "places", "traced")

    lowered: Any

    def __init__(
        self, traced: Traced, kept: list[int] | None, places: list[int] | None, donated: tuple[int, ...], asked_for: bool
    ) -> None:
        self.traced = traced
        self.kept = kept
        self.places = places
        self.donated = donated
        self.asked_for = asked_for

    def compile(self, overrides: Sequence[tuple[str, Any]] = ()) -> Entry:
        from pullback.backends import client, trees

        program = self.lowered.compile(overrides)
        entry = Entry()
        entry.traced = traced = self.traced
        entry.program = program
        entry.run = checked_run(program) if checking() else program.run
        entry.captured = program.captured
        entry.device = device = program.device
        entry.kept = self.kept
        entry.donated = self.donated
        entry.kinds = program.out_signatures
        if self.asked_for:
            entry.kinds = [signature(k.aval.shape, k.aval.dtype, k.aval.weak_type, device) for k in entry.kinds]
        entry.execute = program.executable.loaded.execute_sharded
        entry.handlers = program.executable.handlers
        entry.places = self.places
        entry.unflatten = None if traced.out_tree == _leaf_tree() else trees.unflattener(traced.out_tree)
        entry.simple = not (
            self.kept or self.donated or entry.captured or self.places or client.several_devices
            or self.lowered.module.callbacks or config.debug_nans or config.debug_infs
        )  # fmt: skip
        return entry


def lower(function: JitFunction, traced: Traced, leaves: Sequence[Any], call: _Call) -> Plan:
    """Lower a traced function for the device on which its arguments are, or for the one that was asked for."""
    global _client
    from pullback.backends import client, placement
    from pullback.backends.programs import Lowered

    if _client is not client:
        _client = client
        client.when_several.append(_not_simple)
    options = function._options
    device, asked_for = placement.device_for(leaves, function._name)
    if options.device is not None:
        device, asked_for = placement.device_named(options.device), True
    places, closed = _without_forwarded(clean(traced.closed))
    kept: list[int] | None = None
    if not options.keep_unused:
        closed, used = dce_closed_jaxpr(closed, [True] * len(closed.out_avals))
        kept = None if all(used) else [i for i, u in enumerate(used) if u]
    donated, aliases = _aliases(closed, kept, places, call)
    plan = Plan(traced, kept, places, donated, asked_for)
    if checking():
        aliases = {}  # what gives a NaN is run again on its inputs
    plan.lowered = Lowered(closed, f"jit_{function._name}", device, aliases)
    return plan


def _not_simple() -> None:
    """From now on it matters on which device a buffer is: no entry can do without looking."""
    for cache in list(_all):
        for entry in list(cache.values()):
            if isinstance(entry, Entry):
                entry.simple = False


def _from_buffer(buffer: Any, kind: Signature) -> DeviceArray:
    x = _new(DeviceArray)
    x._buffer = buffer
    x._signature = kind
    return x


@functools.cache
def _leaf_tree() -> Any:
    return tree.structure(0)


def _without_forwarded(closed: ClosedJaxpr) -> tuple[list[int] | None, ClosedJaxpr]:
    """The program without results that are inputs, or that are given twice; and where each result is to be found."""
    jaxpr = closed.jaxpr
    inputs = {v: ~i for i, v in enumerate(jaxpr.invars)}
    places: list[int] = []
    outvars: list[Any] = []
    for a in jaxpr.outvars:
        if type(a) is Var and a in inputs:
            places.append(inputs[a])
        else:
            places.append(len(outvars))
            outvars.append(a)
    if len(outvars) == len(places):
        return None, closed
    return places, ClosedJaxpr(Jaxpr(jaxpr.constvars, jaxpr.invars, jaxpr.eqns, outvars), closed.consts)


def _aliases(
    closed: ClosedJaxpr, kept: list[int] | None, places: list[int] | None, call: _Call
) -> tuple[tuple[int, ...], dict[int, int]]:
    """The leaves that are donated, and for each input of the program that is, the result that takes its memory."""
    if not (call.options.donated_nums or call.options.donated_names):
        return (), {}
    flags = call.donated_leaves()
    inputs = range(len(flags)) if kept is None else kept
    forwarded = {~p for p in places or () if p < 0}
    free: dict[Any, list[int]] = {}
    for k, a in enumerate(closed.out_avals):
        free.setdefault((a.shape, a.dtype), []).append(k)
    donated, aliases, unusable = [], {}, []
    for position, leaf in enumerate(inputs):
        if not flags[leaf] or leaf in forwarded:
            continue
        aval = closed.in_avals[position]
        matching = free.get((aval.shape, aval.dtype))
        if matching:
            aliases[position] = matching.pop(0)
            donated.append(leaf)
        else:
            unusable.append(f"{call.place(leaf)} of type {aval}")
    if unusable:
        import warnings

        from pullback.core.errors import DonationWarning

        warnings.warn(
            f"jit of {name_of(call.fun)}: these arguments were donated, but no result has their type, so that their "
            f"memory cannot be used again, and they stay valid: {'; '.join(unusable)}",
            DonationWarning,
            stacklevel=5,
        )
    return tuple(donated), aliases


# Caches ----------------------------------------------------------------------------------------------------------------

LARGEST = 1024
"""How many kinds of arguments are kept for a function; the oldest is dropped for a new one."""

_by_function: weakref.WeakKeyDictionary[Any, dict[Any, tuple[dict[Any, Any], dict[Any, Any]]]]
_by_function = weakref.WeakKeyDictionary()
_all: weakref.WeakSet[Any] = weakref.WeakSet()


class _Cache(dict[Any, Any]):
    __slots__ = ("__weakref__",)
    __hash__ = object.__hash__  # type: ignore[assignment]


def _caches_of(fun: Any, options: Options) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """What was compiled and traced for a function: shared by all that ``jit`` made of it with equal options."""
    try:
        caches = _by_function.setdefault(fun, {})
        key = options.key()
        found = caches.get(key)
    except TypeError:  # a function that cannot be referred to weakly, or has no hash
        caches, key, found = {}, None, None
    if found is None:
        found = caches[key] = (_Cache(), _Cache())
        _all.update(found)
    return found


def _keep(cache: dict[Any, Any], key: Any, value: Any) -> None:
    while len(cache) >= LARGEST:
        cache.pop(next(iter(cache)), None)
    cache[key] = value


def clear_caches() -> None:
    """Forget everything that was traced and compiled in this process (the cache on disk stays).

    >>> clear_caches()
    """
    from pullback.transforms.jaxprs import forget

    for cache in list(_all):
        cache.clear()
    forget()


# The transformation --------------------------------------------------------------------------------------------------


def _numbers_and_names(
    fun: Any, argnums: Any, argnames: Any, what: str
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names of arguments, each completed from the other by the function's signature."""
    nums = (argnums,) if isinstance(argnums, int) else () if argnums is None else tuple(argnums)
    names = (argnames,) if isinstance(argnames, str) else () if argnames is None else tuple(argnames)
    for i in nums:
        if type(i) is not int:
            raise ArgumentError(f"jit: {what}_argnums must be an int or a tuple of ints, got {argnums!r}")
    for n in names:
        if not isinstance(n, str):
            raise ArgumentError(f"jit: {what}_argnames must be a str or a tuple of strs, got {argnames!r}")
    if not nums and not names:
        return (), ()
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return nums, names
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    by_keyword = {p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}
    more = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    any_name = any(p.kind is p.VAR_KEYWORD for p in parameters)
    for i in nums:
        if not more and not -len(positional) <= i < len(positional):
            raise ArgumentError(
                f"jit: {what}_argnums={argnums} is not a position of an argument of {name_of(fun)}, which has "
                f"{len(positional)} positional parameters: {', '.join(positional)}"
            )
    for n in names:
        if not any_name and n not in by_keyword:
            raise ArgumentError(
                f"jit: {what}_argnames={argnames!r} is not the name of an argument of {name_of(fun)}, whose "
                f"parameters are {', '.join(p.name for p in parameters)}"
            )
    if not more and nums:
        nums = tuple(i % len(positional) for i in nums)
    found = {positional[i] for i in nums if 0 <= i < len(positional)} & by_keyword
    numbers = {positional.index(n) for n in names if n in positional}
    return tuple(sorted({*nums, *numbers})), tuple(sorted({*names, *found}))


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
    device: Any = None,
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

    Returns:
      A function of the same arguments, with the methods ``trace``, ``lower``, ``eval_shape`` and ``clear_cache``.

    Raises:
      StaticArgumentError: a static argument is not hashable (a TypeError and ValueError).
      ConcretizationTypeError: ``fun`` asks for the value of a traced argument, in ``if`` for example (a TypeError).
      CompilationError: the compiler refuses the program (a RuntimeError).
      DeletedArrayError: an argument was donated before (a RuntimeError).

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
    }  # fmt: skip
    if fun is None:
        return functools.partial(jit, **given)
    check_callable(fun, "jit")
    static = _numbers_and_names(fun, static_argnums, static_argnames, "static")
    donated = _numbers_and_names(fun, donate_argnums, donate_argnames, "donate")
    both = set(static[0]) & set(donated[0]) | set(static[1]) & set(donated[1])
    if both:
        raise ArgumentError(f"jit of {name_of(fun)}: arguments cannot be both static and donated: {sorted(both, key=str)}")
    return JitFunction(fun, Options(static, donated, inline, keep_unused, device))
