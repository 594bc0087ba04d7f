"""From traced functions to compiled ones: what is kept of a compiled function, and how it is run."""

from __future__ import annotations

import functools
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from operator import attrgetter
from types import FunctionType
from typing import Any

from pullback.core import tree
from pullback.core.array import ArrayImpl, DeviceArray, Signature, delete, fresh, signature, signature_of
from pullback.core.config import config
from pullback.core.errors import ArgumentError
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, Var
from pullback.core.registry import OwnsPrograms, Registry
from pullback.transforms.debugging.debug_nans import checked_run, checking
from pullback.transforms.functions.arguments import name_of
from pullback.transforms.interpreters.dce import dce_closed_jaxpr
from pullback.transforms.jit.jit_arguments import Call, Options

buffers_of = attrgetter("_buffer")
_new = object.__new__


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
      captured: arrays that it takes after them.
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


# Running ------------------------------------------------------------------------------------------------------------


def run(entry: Entry, leaves: Sequence[Any]) -> Any:
    """The results of an entry for the leaves of some arguments."""
    given = leaves
    kept = entry.kept
    if kept is not None:
        leaves = [leaves[i] for i in kept]
    if entry.donated:
        if len({id(given[i]) for i in entry.donated}) < len(entry.donated):
            raise ArgumentError("an array was donated twice in one call: its memory can become one result only")
        for i in entry.donated:
            _let_go(given[i])
    try:
        buffers = None if _client.several_devices else list(map(buffers_of, leaves))
    except AttributeError:
        buffers = None
    if buffers is None:
        buffers = _put(leaves, entry.device)
    if entry.captured:
        buffers += map(buffers_of, entry.captured)
    if entry.donated and len(set(map(id, buffers))) < len(buffers):
        for i in entry.donated:  # an operand twice: what is donated is a copy
            position = i if kept is None else kept.index(i)
            buffers[position] = _client.copied(buffers[position])
    outs: list[ArrayImpl] = list(map(from_buffer, entry.run(buffers), entry.kinds))
    places = entry.places
    if places is not None:
        outs = [outs[p] if p >= 0 else fresh(given[~p]) for p in places]
    for i in entry.donated:
        delete(given[i])
    unflatten = entry.unflatten
    return outs[0] if unflatten is None else unflatten(outs)


class _LazyClient:
    """Stands for the module that knows about devices until it is imported."""

    several_devices = False


_client: Any = _LazyClient


def _put(leaves: Sequence[ArrayImpl], device: Any) -> list[Any]:
    from pullback.backends.programs import buffer_of

    return [buffer_of(x, device) for x in leaves]


def _let_go(x: Any) -> None:
    """Let the elements of an array on a device be overwritten: forget the host's view of them, and leave them to others
    that share them (see ``core.array.fresh``)."""
    try:
        buffer = x._buffer
    except AttributeError:
        return
    if type(x) is ArrayImpl:
        signature_of(x)
        del x._value
        x.__class__ = DeviceArray
    if hasattr(buffer, "shared"):
        x._buffer = _client.copied(buffer)


class Plan:
    """A traced function, lowered for a device, with all that is needed to make an entry of it."""

    __slots__ = ("asked_for", "donated", "kept", "lowered", "places", "traced")

    lowered: Any

    def __init__(
        self,
        traced: Traced,
        kept: list[int] | None,
        places: list[int] | None,
        donated: tuple[int, ...],
        asked_for: bool,
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
            self.kept is not None or self.donated or entry.captured or self.places is not None
            or client.several_devices or self.lowered.module.callbacks or config.debug_nans or config.debug_infs
        )  # fmt: skip
        return entry


def lower(options: Options, name: str, traced: Traced, leaves: Sequence[Any], call: Call) -> Plan:
    """Lower a traced function for the device on which its arguments are, or for the one that was asked for."""
    global _client
    from pullback.backends import client, placement
    from pullback.backends.programs import Lowered

    if _client is not client:
        _client = client
        client.when_several.append(_not_simple)
    device, asked_for = placement.device_for(leaves, name)
    if options.device is not None:
        device, asked_for = placement.device_named(options.device), True
    places, closed = _without_forwarded(traced.closed)
    closed, used = dce_closed_jaxpr(closed, [True] * len(closed.out_avals), instantiate=options.keep_unused)
    kept = None if all(used) else [i for i, u in enumerate(used) if u]
    donated, aliases = _aliases(closed, kept, places, call)
    plan = Plan(traced, kept, places, donated, asked_for)
    if checking():
        aliases = {}  # what gives a NaN is run again on its inputs
    plan.lowered = Lowered(closed, f"jit_{name}", device, aliases)
    return plan


def _not_simple() -> None:
    """From now on it matters on which device a buffer is: no entry can do without looking."""
    for cache in all_caches.living():
        for entry in list(cache.values()):
            if isinstance(entry, Entry):
                entry.simple = False


def from_buffer(buffer: Any, kind: Signature) -> DeviceArray:
    x = _new(DeviceArray)
    x._buffer = buffer
    x._signature = kind
    return x


@functools.cache
def _leaf_tree() -> Any:
    return tree.structure(0)


def _without_forwarded(closed: ClosedJaxpr) -> tuple[list[int] | None, ClosedJaxpr]:
    """The program without results that are inputs; and where each result is to be found."""
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
    closed: ClosedJaxpr, kept: list[int] | None, places: list[int] | None, call: Call
) -> tuple[tuple[int, ...], dict[int, int]]:
    """The leaves that are donated, and for each input of the program that is, the result that takes its memory."""
    if not (call.options.donated_nums or call.options.donated_names):
        return (), {}
    flags = call.donated_leaves()
    inputs = range(len(flags)) if kept is None else kept
    forwarded = {~p for p in places or () if p < 0}
    free: dict[Any, deque[int]] = {}
    for k, a in enumerate(closed.out_avals):
        free.setdefault((a.shape, a.dtype), deque()).append(k)
    donated, aliases, unusable = [], {}, []
    for position, leaf in enumerate(inputs):
        if not flags[leaf] or leaf in forwarded:
            continue
        aval = closed.in_avals[position]
        matching = free.get((aval.shape, aval.dtype))
        if matching:
            aliases[position] = matching.popleft()
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


# Caches -------------------------------------------------------------------------------------------------------------

LARGEST = 1024
"""How many kinds of arguments are kept for a function; the oldest is dropped for a new one."""

Pair = tuple["Cache", "Cache"]
"""What was compiled of a function, and what was traced, by the kind of arguments."""

all_caches: Registry[Cache] = Registry()
_adding = threading.Lock()


class Cache(dict[Any, Any]):
    __slots__ = ("__weakref__",)
    __hash__ = object.__hash__  # type: ignore[assignment]


class _Kept:
    """What is kept of a function, as an attribute of it.

    Programs may refer to the function that they came from: an equation does to a function with rules. In a table beside
    it, even one of weak references, they would keep it alive, and it them; in the function they are a circle that the
    collector finds. ``functools.wraps`` copies attributes, so that it says whose it is.
    """

    __slots__ = ("caches", "owner")

    def __init__(self, owner: Any = None) -> None:
        self.owner = owner and weakref.ref(owner)
        self.caches: dict[Any, Pair] = {}

    def __reduce__(self) -> Any:  # a copy of the function, in another process for example, begins anew
        return _Kept, ()


_ATTRIBUTE = "__pullback_programs__"
_by_object: weakref.WeakKeyDictionary[Any, dict[Any, Pair]] = weakref.WeakKeyDictionary()
"""The same for callable objects, whose attributes are the user's."""


def _caches_by_options(fun: Any) -> dict[Any, Pair]:
    if not isinstance(fun, (FunctionType, functools.partial, OwnsPrograms)):
        return _by_object.setdefault(fun, {})
    attributes = vars(fun)
    found = attributes.get(_ATTRIBUTE)
    if found is None or found.owner is None or found.owner() is not fun:
        found = attributes[_ATTRIBUTE] = _Kept(fun)
    return found.caches


def caches_of(fun: Any, options: Options) -> Pair:
    """What was compiled and traced for a function: shared by all that ``jit`` made of it with equal options."""
    pair = Cache(), Cache()
    try:
        key = options.key()
        with _adding:
            found = _caches_by_options(fun).setdefault(key, pair)
    except TypeError:  # a function that cannot be referred to weakly, or has no hash
        found = pair
    if found is pair:
        for cache in pair:
            all_caches.add(cache)
    return found


def keep(cache: dict[Any, Any], key: Any, value: Any) -> None:
    with _adding:
        while len(cache) >= LARGEST:
            del cache[next(iter(cache))]
        cache[key] = value
