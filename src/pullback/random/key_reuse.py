"""The switch ``debug_key_reuse``: an error where a random key is used a second time.

Every key has a number, and operations that move the elements of arrays move the numbers of keys likewise. A random
function uses the numbers of its key, and raises an error if one of them was used before. A program is interpreted
equation by equation with the numbers of its arguments: the body of a loop twice, the second time with the results of
the first step. If a branch uses a key, the key counts as used. The trait ``Feed`` names an operation's inner programs.

While a thread has the switch on, the trace at the bottom of its stack records the numbers. This trace is not ``quick``,
so that operators call it too. With the switch off there is no cost. Keys that are passed as their words have no number.
"""

from __future__ import annotations

import itertools
import math
import weakref
from collections import ChainMap
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.core import dtypes, source, traits, tree
from pullback.core.array import Array, ArrayImpl, host_value
from pullback.core.errors import KeyReuseError
from pullback.core.jaxpr import ClosedJaxpr, Literal
from pullback.core.trace import EvalTrace, Primitive, RuleKind, state
from pullback.core.watching import Watcher, watch_by
from pullback.primitives import elementwise
from pullback.primitives.random.bits import random_clone_p, random_use_p
from pullback.transforms.programs.placement import device_put_p, sharding_constraint_p
from pullback.transforms.traces.interpretation import Interpretation, Loop
from pullback.transforms.traces.lift import feed

Numbers = np.ndarray[Any, np.dtype[np.int64]]


class Keys(NamedTuple):
    """The numbers of the keys in an array.

    Attributes:
      exact: the number of each element's key, an array of the same shape; None if it is known only which numbers occur.
      loose: further numbers that any element may have.
    """

    exact: Numbers | None
    loose: Numbers

    def all(self) -> Numbers:
        """All numbers that the keys may have."""
        return self.loose if self.exact is None else np.union1d(self.exact, self.loose)


_NONE: Numbers = np.zeros(0, np.int64)
_next = itertools.count()


def _new_keys(shape: tuple[int, ...]) -> Keys:
    size = math.prod(shape)
    numbers = np.fromiter(itertools.islice(_next, size), np.int64, size)
    return Keys(numbers.reshape(shape), _NONE)


def _any_of(keys: Sequence[Keys | None]) -> Keys:
    """Return the ``Keys`` of an array whose elements may each be any of the keys in ``keys``.

    None in ``keys`` stands for no keys.
    """
    return Keys(None, np.unique(np.concatenate([_NONE, *[k.all() for k in keys if k is not None]])))


class ReuseRun(Interpretation):
    """What was used so far, and how programs add to it.

    Attributes:
      uses: for each number that was used, by what and where.
    """

    def __init__(self, uses: MutableMapping[int, tuple[str, Any]]) -> None:
        self.uses = uses

    def use(self, keys: Keys, name: str, where: Any) -> None:
        """Use keys.

        Raises:
          KeyReuseError: one of them was used before.
        """
        numbers = keys.all().tolist()
        for number in numbers:
            if number in self.uses:
                before, position = self.uses[number]
                raise KeyReuseError(
                    f"random.{name} takes a key that random.{before} has already used, at\n"
                    f"{source.format_location(position)}\nBoth draw from the same bits. Make a key for each call "
                    f"with random.split or random.fold_in; if you want the same bits, pass random.clone(key)."
                )
        self.uses.update(dict.fromkeys(numbers, (name, where)))

    def apply(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any], where: Any) -> Any:
        """What an operation does.

        Args:
          primitive: the operation.
          operands: for each operand its ``Keys``, or its value if it has one that is known, or None.
          params: its parameters.
          where: the line of the user's.

        Returns:
          For each result its ``Keys``, or None if it is no key or a new one; or None for all.
        """
        rule = key_reuse.of(primitive)
        if rule is not None:
            return rule(self, operands, params, where)
        if traits.moves.of(primitive):
            return _moved(primitive, operands, params)
        held = feed.of(primitive)
        if held is not None:
            return self.enter(held(**params), operands)
        closed = program_of(params)
        if closed is not None and len(closed.in_avals) == len(operands):
            return self.run(closed, operands)
        given = [x for x in operands if isinstance(x, Keys)]
        return itertools.repeat(_any_of(given)) if given else None

    def run(self, closed: ClosedJaxpr, operands: Sequence[Any]) -> list[Any]:
        """Walk through a program; what is known of its results."""
        jaxpr = closed.jaxpr
        known: dict[Any, Any] = dict(zip(jaxpr.constvars, map(known_of, closed.consts), strict=True))
        known.update((v, _fitted(x, v.aval.shape)) for v, x in zip(jaxpr.invars, operands, strict=True))

        def read(atom: Any) -> Any:
            if isinstance(atom, Literal):
                return known_of(atom.val)
            if known.get(atom) is None and dtypes.is_key(atom.aval.dtype):
                known[atom] = _new_keys(atom.aval.shape)
            return known.get(atom)

        for eqn in jaxpr.eqns:
            outs = self.apply(eqn.primitive, list(map(read, eqn.invars)), eqn.params, eqn.made_at)
            for v, x in zip(eqn.outvars, outs or (), strict=False):
                if isinstance(x, Keys) and dtypes.is_key(v.aval.dtype):
                    known[v] = _fitted(x, v.aval.shape)
        return list(map(read, jaxpr.outvars))

    def choose(self, programs: Sequence[ClosedJaxpr], which: Any, operands: Sequence[Any]) -> list[Any]:
        added: list[dict[int, tuple[str, Any]]] = [{} for _ in programs]
        results = [ReuseRun(ChainMap(own, self.uses)).run(p, operands) for own, p in zip(added, programs, strict=True)]
        for own in added:
            self.uses.update(own)
        return [_joined(column) for column in zip(*results, strict=True)]

    def loop(self, loop: Loop) -> list[Any]:
        """Two steps: the first with the keys that come in, the second with those that the first leaves."""
        carry = [x if isinstance(x, Keys) else None for x in loop.carry]
        stacked: list[Any] = [None] * (len(loop.body.out_avals) - len(carry))
        self._test(loop, carry)
        for turn in range(2 if loop.length is None else min(loop.length, 2)):
            outs = self.run(loop.body, [*loop.consts, *carry, *[_in_turn(x, turn) for x in loop.rows]])
            carry, ys = outs[: len(carry)], outs[len(carry) :]
            stacked = [_any_of([y, x]) if isinstance(y, Keys) else None for y, x in zip(ys, stacked, strict=True)]
            self._test(loop, carry)
        return [*carry, *stacked]

    def _test(self, loop: Loop, carry: Sequence[Any]) -> None:
        """Follow the keys of a loop's carry through the test of the loop, if the loop has a test.

        ``carry`` has for each array of the carry its ``Keys``, or None for an array of no keys.
        """
        if loop.test is not None:
            self.run(loop.test, [*loop.test_consts, *carry])


def program_of(params: dict[str, Any]) -> ClosedJaxpr | None:
    """The program of a function with rules of its own, which the operation runs on its operands."""
    closed = params.get("jaxpr", params.get("call_jaxpr"))
    return closed if isinstance(closed, ClosedJaxpr) else None


def _fitted(x: Any, shape: tuple[int, ...]) -> Any:
    """Return the keys of a result of ``shape`` whose elements come from an array with the keys ``x``.

    ``x`` is a ``Keys``, or None if the array has no keys. If the array has another shape, each element of the result
    may be any key of ``x``.
    """
    if isinstance(x, Keys) and x.exact is not None and x.exact.shape != shape:
        return _any_of([x])
    return x


def _joined(column: Sequence[Any]) -> Any:
    """Return the keys of a value that is one of several values, such as a result of one of several branches.

    ``column`` lists the keys of these values. If the keys differ, each element may be any of them. Return None if the
    values have no keys.
    """
    first = column[0]
    if not isinstance(first, Keys):
        return None
    same = first.exact is not None and all(
        x.exact is not None and np.array_equal(x.exact, first.exact) and not x.loose.size for x in column
    )
    return first if same else _any_of(column)


def _in_turn(x: Any, turn: int) -> Any:
    """Return the keys that a step of a loop reads from a scanned array with the keys ``x``; None if ``x`` is None.

    The first step has ``turn`` 0. All later steps together have ``turn`` 1. If it is unknown which element has which
    key, the first step reads all keys, and the later steps none.
    """
    if not isinstance(x, Keys):
        return None
    if x.exact is None or x.loose.size:
        return _any_of([x]) if turn == 0 else None  # which element has which number is not known
    first, others = x.exact[0], x.exact[2:].ravel()
    return Keys(first, _NONE) if turn == 0 else Keys(x.exact[1], others)


# The rules of operations ---------------------------------------------------------------------------------------------

key_reuse = RuleKind(
    "key_reuse", "by its inner programs or the trait ``moves``; otherwise each result may be any of the keys"
)
key_reuse.__doc__ = """Declare which keys an operation uses and returns, for the switch ``debug_key_reuse``.

A rule is ``rule(walk, operands, params, where) -> results``. An operand is the ``Keys`` of an array of keys, the value
of another array if it is known, or None. A result is the ``Keys`` of the array, or None for new keys and for what is no
key; one None stands for all results. ``walk.use(keys, name, where)`` uses keys, ``params`` are the parameters of the
operation, and ``where`` is the user's line. Without a rule, a key that the operation returns counts as each of the keys
that it takes.

Args:
  primitive: the operation, a ``Primitive``.

Returns:
  A decorator that registers a function as the rule of ``primitive``, and returns the function.

>>> import pullback.numpy as jnp
>>> from pullback import debug_key_reuse, random
>>> from pullback.experimental.key_reuse import key_reuse
>>> from pullback.extend import Primitive, ShapedArray
>>> noise_p = Primitive("noise")
>>> _ = noise_p.abstract_eval(lambda key: ShapedArray(key.shape, "float32"))
>>> _ = noise_p.impl(lambda operands, params: jnp.zeros(operands[0].shape))
>>> @key_reuse(noise_p)
... def uses_its_key(walk, operands, params, where):
...     walk.use(operands[0], "noise", where)
>>> with debug_key_reuse():
...     key = random.key(0)
...     noise_p.bind(key) + random.normal(key)
Traceback (most recent call last):
    ...
pullback.core.errors.KeyReuseError: random.normal takes a key that random.noise has already used, at
...
"""
__test__ = {"key_reuse": key_reuse.__doc__}

_SAME = (device_put_p, sharding_constraint_p, elementwise.copy_p, elementwise.convert_element_type_p)


def _moved(primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """Return the keys of each result of an operation that moves elements; None if no operand has keys.

    The operation is applied to arrays of the numbers of the keys. If it is unknown where elements move to, each element
    of a result may be any key of the operands.
    """
    keys = [x for x in operands if isinstance(x, Keys)]
    if not keys:
        return None
    unknown = any(x is None or (isinstance(x, Keys) and (x.exact is None or x.loose.size)) for x in operands)
    if unknown or primitive.host_rule is None:
        return itertools.repeat(_any_of(keys))
    moved = primitive.host_rule(*[x.exact if isinstance(x, Keys) else x for x in operands], **params)
    return [Keys(np.asarray(x), _NONE) for x in (moved if primitive.multiple_results else [moved])]


def _same(walk: ReuseRun, operands: Sequence[Any], params: dict[str, Any], where: Any) -> Any:
    return operands


for _primitive in _SAME:
    key_reuse(_primitive)(_same)


@key_reuse(random_use_p)
def _use(walk: ReuseRun, operands: Sequence[Any], params: dict[str, Any], where: Any) -> Any:
    walk.use(operands[0], params["name"], where)


@key_reuse(random_clone_p)
def _clone(walk: ReuseRun, operands: Sequence[Any], params: dict[str, Any], where: Any) -> Any:
    return None


# Eager ---------------------------------------------------------------------------------------------------------------

_known: dict[int, tuple[Any, Keys]] = {}
"""The keys of arrays, by their identities, with a reference that takes an entry out when its array is gone."""
_uses: dict[int, tuple[str, Any]] = {}


def _forget(identity: int) -> Callable[[Any], None]:
    return lambda reference: _known.pop(identity, None) and None


def keys_of(x: Any) -> Keys:
    """The keys of an array, which are new if it is."""
    found = _known.get(id(x))
    if found is None:
        return _remember(x, _new_keys(x.shape))
    return found[1]


def _remember(x: Any, keys: Keys) -> Keys:
    _known[id(x)] = weakref.ref(x, _forget(id(x))), keys
    return keys


def known_of(x: Any) -> Any:
    """What is known of an operand: its keys, or its value."""
    if not isinstance(x, ArrayImpl):
        return x if isinstance(x, (bool, int, float, complex, np.ndarray, np.generic)) else None
    return keys_of(x) if dtypes.is_key(x.dtype) else host_value(x)


def _look(evaluate: EvalTrace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Evaluate an operation, and record the keys that it uses and the keys of its results; return the results."""
    holds = feed.of(primitive) is not None or program_of(params) is not None
    if not holds and not any(_is_key(x) for x in args):
        return evaluate.process(primitive, args, params)
    where = state.source_loc or source.here()
    found = ReuseRun(_uses).apply(primitive, list(map(known_of, args)), params, where)
    before = state.trace, state.bottom
    if holds:  # whose programs were walked through, and are not to be looked at again
        state.trace = state.bottom = evaluate
    try:
        out = evaluate.process(primitive, args, params)
    finally:
        state.trace, state.bottom = before
    _account(out if primitive.multiple_results else [out], found)
    return out


def _look_at_program(evaluate: EvalTrace, closed: ClosedJaxpr, leaves: Sequence[Any], run: Callable[[], Any]) -> Any:
    """Run a compiled program, and record the keys that it uses and the keys of its results; return the results.

    Args:
      evaluate: the trace that evaluates operations.
      closed: the program.
      leaves: the operands.
      run: a function of no arguments that runs the program.
    """
    found = ReuseRun(_uses).run(closed, list(map(known_of, leaves)))
    out = run()
    _account(tree.flatten(out)[0], found)
    return out


def _is_key(x: Any) -> bool:
    return isinstance(x, Array) and dtypes.is_key(x.dtype)


def _account(outs: Sequence[Any], found: Any) -> None:
    """Record the keys of the results ``outs``.

    ``found`` has for each result its ``Keys``, or None if the result has no keys. It is None if no result has keys.
    """
    for x, keys in zip(outs, found or (), strict=False):
        if isinstance(keys, Keys) and _is_key(x):
            _remember(x, _fitted(keys, x.shape))


watch_by("keys", lambda: Watcher(_look, _look_at_program))
