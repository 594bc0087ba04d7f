"""Functions wrapped in transformations that can be compared, so that results can be cached: for other libraries.

A :class:`WrappedFun` is a function and a stack of transformations, each of which changes arguments and results. Two are
equal if their functions and transformations are equal; :func:`cache` relies on this. A transformation may also record a
value while the function runs, for example the tree of the results: it puts it into a :class:`Store`.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Hashable
from typing import Any

from pullback.core.config import config
from pullback.core.errors import StoreException

_EMPTY: Any = object()
Getter = Callable[[], Any]


class Store:
    """A container for one value, which a function puts into it while it runs.

    >>> from pullback.extend.linear_util import Store
    >>> store = Store()
    >>> store.store(3)
    >>> store.val, bool(store)
    (3, True)
    """

    def __init__(self) -> None:
        self._val: Any = _EMPTY

    def store(self, val: Any) -> None:
        """Put a value into the store.

        Args:
          val: the value.

        Raises:
          StoreException: the store has a value already.
        """
        if self:
            raise StoreException("this Store already has a value: a function with auxiliary results runs only once")
        self._val = val

    def reset(self) -> None:
        """Remove the value from the store."""
        self._val = _EMPTY

    @property
    def val(self) -> Any:
        """The value in the store. Raise :class:`StoreException` if the store is empty."""
        if not self:
            raise StoreException("this Store is empty: the function that fills it has not run")
        return self._val

    def __bool__(self) -> bool:
        return self._val is not _EMPTY


class WrappedFun:
    """A function wrapped in transformations; see :func:`wrap_init`.

    Attributes:
      f: the function.
      f_transformed: the function with all transformations applied.
      transforms: pairs of a transformation and its static arguments, the outermost first.
      stores: the :class:`Store` of each transformation, or None.
      params: fixed keyword arguments of the function, as pairs of a name and a value.
      in_type: the types of the arguments, or None; see :func:`annotate`.
      debug_info: a description of the function for messages, or None.

    >>> from pullback.extend.linear_util import wrap_init
    >>> f = wrap_init(lambda x: 2 * x)
    >>> type(f).__name__, f.call_wrapped(3)
    ('WrappedFun', 6)
    """

    __slots__ = ("__weakref__", "debug_info", "f", "f_transformed", "in_type", "params", "stores", "transforms")

    def __init__(
        self,
        f: Callable[..., Any],
        f_transformed: Callable[..., Any],
        transforms: tuple[tuple[Callable[..., Any], tuple[Hashable, ...]], ...],
        stores: tuple[Store | None, ...],
        params: tuple[tuple[str, Hashable], ...],
        in_type: Any,
        debug_info: Any,
    ) -> None:
        self.f = f
        self.f_transformed = f_transformed
        self.transforms = transforms
        self.stores = stores
        self.params = params
        self.in_type = in_type
        self.debug_info = debug_info

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", f"a {type(self.f).__name__} without a name")

    def wrap(
        self, gen: Callable[..., Any], gen_static_args: tuple[Hashable, ...], out_store: Store | None
    ) -> WrappedFun:
        """Return the function wrapped in one more transformation.

        Args:
          gen: the transformation: takes the function, the store if there is one, the static arguments, and the
            arguments of the call.
          gen_static_args: the static arguments, which are hashable.
          out_store: the store that the transformation fills, or None.
        """
        between = () if out_store is None else (out_store,)
        outer = functools.partial(gen, self.f_transformed, *between, *gen_static_args)
        transforms = ((gen, gen_static_args), *self.transforms)
        stores = (out_store, *self.stores)
        return WrappedFun(self.f, outer, transforms, stores, self.params, None, self.debug_info)

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function with all its transformations, and return the result."""
        return self.f_transformed(*args, **kwargs)

    def populate_stores(self, stores: tuple[Store | None, ...]) -> None:
        """Copy values into the stores of this function from ``stores``, those of an equal function that has run."""
        for own, other in zip(self.stores, stores):
            if own is not None and other is not None:
                own.store(other.val)

    def _key(self) -> tuple[Any, ...]:
        return self.f, self.transforms, self.params, self.in_type

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrappedFun) and self._key() == other._key()

    def __repr__(self) -> str:
        names = [getattr(gen, "__name__", repr(gen)) + repr(args) for gen, args in self.transforms]
        return f"WrappedFun({' of '.join([*names, self.__name__])})"


def wrap_init(f: Callable[..., Any], params: dict[str, Any] | None = None, *, debug_info: Any = None) -> WrappedFun:
    """Wrap a function, with no transformations yet.

    Args:
      f: the function.
      params: fixed keyword arguments.
      debug_info: the result of ``api_util.debug_info`` for the function, or None.

    Returns:
      A :class:`WrappedFun`.

    >>> from pullback.extend.linear_util import wrap_init
    >>> wrap_init(pow, {"mod": 5}).call_wrapped(2, 3)
    3
    """
    if not params:
        return WrappedFun(f, f, (), (), (), None, debug_info)
    return WrappedFun(f, functools.partial(f, **params), (), (), tuple(sorted(params.items())), None, debug_info)


def _by_generator(f: Callable[..., Any], gen: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call ``f`` with arguments from the generator ``gen(*args, **kwargs)``; return the last value that it yields.

    The generator first yields the arguments for ``f``: a tuple and a dictionary. Then it receives the result of ``f``
    by ``send``, and yields the value to return.
    """
    running = gen(*args, **kwargs)
    inner_args, inner_kwargs = next(running)
    out = running.send(f(*inner_args, **inner_kwargs))
    running.close()
    return out


def _by_generator_with_aux(f: Callable[..., Any], store: Store, gen: Any, *args: Any, **kwargs: Any) -> Any:
    """Call ``f`` with arguments from the generator ``gen(*args, **kwargs)``; return a result, and fill ``store``.

    The generator first yields the arguments for ``f``: a tuple and a dictionary. Then it receives the result of ``f``
    by ``send``, and yields a pair: the result to return, and the value to put into ``store``.
    """
    out, aux = _by_generator(f, gen, *args, **kwargs)
    store.store(aux)
    return out


def transformation2(gen: Callable[..., Any], fun: Any = _EMPTY, *gen_static_args: Hashable) -> Any:
    """Make a transformation of wrapped functions from ``gen``, which calls the function to transform.

    Args:
      gen: takes the function to call, the static arguments and the arguments of the call; returns the result.
      fun: the :class:`WrappedFun` to transform. Without it, as in a decorator, the transformation is returned.
      gen_static_args: hashable arguments of the transformation.

    Returns:
      A :class:`WrappedFun`, or the transformation.

    >>> from pullback.extend.linear_util import transformation2, wrap_init
    >>> @transformation2
    ... def shifted(f, by, x):
    ...     return f(x + by)
    >>> shifted(wrap_init(abs), 1).call_wrapped(-3)
    2
    """
    if fun is _EMPTY:
        return functools.partial(transformation2, gen)
    return fun.wrap(gen, gen_static_args, None)


def transformation_with_aux2(
    gen: Callable[..., Any],
    fun: Any = _EMPTY,
    *gen_static_args: Hashable,
    use_eq_store: bool = False,
    unk_names: bool = False,
) -> Any:
    """Make a transformation of wrapped functions from ``gen``, which calls the function and also records a value.

    Args:
      gen: takes the function to call, a :class:`Store`, the static arguments and the arguments of the call; fills the
        store and returns the result.
      fun: the :class:`WrappedFun` to transform. Without it, as in a decorator, the transformation is returned.
      gen_static_args: hashable arguments of the transformation.
      use_eq_store: whether the store may be filled more than once, with equal values.
      unk_names: accepted for compatibility with JAX; without effect.

    Returns:
      A pair: a :class:`WrappedFun`, and a function without arguments that returns the value in the store. Without
      ``fun``: the transformation.

    >>> from pullback.extend.linear_util import transformation_with_aux2, wrap_init
    >>> @transformation_with_aux2
    ... def counted(f, store, *args):
    ...     store.store(len(args))
    ...     return f(*args)
    >>> fun, count = counted(wrap_init(max))
    >>> fun.call_wrapped(3, 1), count()
    (3, 2)
    """
    if fun is _EMPTY:
        return functools.partial(transformation_with_aux2, gen, use_eq_store=use_eq_store, unk_names=unk_names)
    store = _EqualStore() if use_eq_store else Store()
    return fun.wrap(gen, gen_static_args, store), lambda: store.val


class _EqualStore(Store):
    """A store that may be filled again, with a value equal to its own."""

    def store(self, val: Any) -> None:
        if self and self.val != val:
            raise StoreException(f"this Store already has {self.val!r} and cannot store {val!r}")
        self._val = val


def transformation(gen: Callable[..., Any], fun: Any = _EMPTY, *gen_static_args: Hashable) -> Any:
    """Make a transformation of wrapped functions from a generator.

    Args:
      gen: takes the static arguments and the arguments of the call. It yields the arguments for the function, as a pair
        of a tuple and a dictionary, receives the function's result by ``send``, and yields the final result.
      fun: the :class:`WrappedFun` to transform. Without it, as in a decorator, the transformation is returned.
      gen_static_args: hashable arguments of the transformation.

    Returns:
      A :class:`WrappedFun`, or the transformation.

    >>> from pullback.extend.linear_util import transformation, wrap_init
    >>> @transformation
    ... def shifted(by, x):
    ...     out = yield (x + by,), {}
    ...     yield [out]
    >>> shifted(wrap_init(abs), 1).call_wrapped(-3)
    [2]
    """
    if fun is _EMPTY:
        return functools.partial(transformation, gen)
    return fun.wrap(_by_generator, (gen, *gen_static_args), None)


def transformation_with_aux(
    gen: Callable[..., Any], fun: Any = _EMPTY, *gen_static_args: Hashable, use_eq_store: bool = False
) -> Any:
    """Make a transformation of wrapped functions, which also records a value, from a generator.

    Args:
      gen: as in :func:`transformation`, but at the end it yields a pair of the result and the value to record.
      fun: the :class:`WrappedFun` to transform. Without it, as in a decorator, the transformation is returned.
      gen_static_args: hashable arguments of the transformation.
      use_eq_store: whether the function may run more than once, if it records an equal value each time.

    Returns:
      A pair: a :class:`WrappedFun`, and a function without arguments that returns the recorded value. Without ``fun``:
      the transformation.

    >>> from pullback.extend.linear_util import transformation_with_aux, wrap_init
    >>> @transformation_with_aux
    ... def counted(*args):
    ...     out = yield args, {}
    ...     yield out, len(args)
    >>> fun, count = counted(wrap_init(max))
    >>> fun.call_wrapped(3, 1), count()
    (3, 2)
    """
    if fun is _EMPTY:
        return functools.partial(transformation_with_aux, gen, use_eq_store=use_eq_store)
    store = _EqualStore() if use_eq_store else Store()
    return fun.wrap(_by_generator_with_aux, (gen, *gen_static_args), store), lambda: store.val


def merge_linear_aux(aux1: Getter, aux2: Getter) -> tuple[bool, Any]:
    """Return the value of that one of two stores which is full.

    Args:
      aux1, aux2: functions without arguments that return the value of a store, or raise if it is empty.

    Returns:
      A pair: True if the first store is full, False if the second is; and its value.

    Raises:
      StoreException: both stores are full, or neither is.

    >>> from pullback.extend.linear_util import Store, merge_linear_aux
    >>> def value_of(store):
    ...     return lambda: store.val
    >>> full, empty = Store(), Store()
    >>> full.store(3)
    >>> merge_linear_aux(value_of(empty), value_of(full))
    (False, 3)
    """
    found = []
    for is_first, getter in ((True, aux1), (False, aux2)):
        try:
            found.append((is_first, getter()))
        except StoreException:
            continue
    if len(found) != 1:
        raise StoreException(f"one of two stores must be full, but {'both are' if found else 'neither is'}")
    return found[0]


def annotate(f: WrappedFun, in_type: Any) -> WrappedFun:
    """Return a copy of a wrapped function with the types of its arguments attached.

    Copies with different types are not equal.

    Args:
      f: the function.
      in_type: the types, as a hashable object; None to return ``f`` itself.

    Returns:
      A wrapped function.

    >>> from pullback.extend.linear_util import annotate, wrap_init
    >>> annotate(wrap_init(lambda x: 2 * x), ("f32[]",)).in_type
    ('f32[]',)
    """
    if in_type is None:
        return f
    return WrappedFun(f.f, f.f_transformed, f.transforms, f.stores, f.params, in_type, f.debug_info)


def cache(call: Callable[..., Any], *, explain: Any = None) -> Callable[..., Any]:
    """Memoize a function of a :class:`WrappedFun` and hashable arguments.

    A call with an equal :class:`WrappedFun` returns the same result, and fills its stores with the same values. Results
    live as long as the innermost function. They are separate for different settings of the configuration.

    Args:
      call: takes a :class:`WrappedFun` and other arguments.
      explain: None, or a function to call at each miss. It takes the wrapped function, whether there were no entries
        for it, these entries, the key, and the number 0 (in JAX, a time).

    Returns:
      The memoized function, with the methods ``cache_clear()`` and ``evict_function(f)``.

    >>> from pullback.extend.linear_util import cache, wrap_init
    >>> runs = []
    >>> run = cache(lambda fun, x: runs.append(x) or fun.call_wrapped(x))
    >>> run(wrap_init(abs), -3), run(wrap_init(abs), -3), runs
    (3, 3, [-3])
    """
    known: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()

    @functools.wraps(call)
    def with_memory(fun: WrappedFun, *args: Any) -> Any:
        entries = known.setdefault(fun.f, {})
        key = (fun.transforms, fun.params, fun.in_type, args, config.trace_context)
        if key in entries:
            out, stores = entries[key]
            fun.populate_stores(stores)
            return out
        new = not entries
        out = call(fun, *args)
        if explain is not None:
            explain(fun, new, entries, key, 0.0)
        entries[key] = out, fun.stores
        return out

    def evict_function(f: Callable[..., Any]) -> None:
        known.pop(f, None)

    memory: Any = with_memory
    memory.cache_clear = known.clear
    memory.evict_function = evict_function
    return memory  # type: ignore[no-any-return]
