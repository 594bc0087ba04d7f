"""Deduplication of equal programs; and the number of operations that a program runs.

Derivatives and compiled code of a program are cached in it. If equal programs are replaced by the first of them, all
share its cache: for example the body of a loop, which is a new closure in each call of a function.
"""

from __future__ import annotations

import gc
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from pullback.core.array import SCALARS
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, Var, subjaxprs
from pullback.core.jaxpr_text import literal_key
from pullback.core.locks import lock
from pullback.transforms.traces.derived import cached_by_jaxpr, caches

_programs: WeakValueDictionary[Any, ClosedJaxpr] = WeakValueDictionary()
"""The first of equal programs, by key. Weak references, so that an entry lives as long as its program is used."""
_recent: dict[ClosedJaxpr, bool] = {}
"""Strong references to recently used programs, the latest last, so that the next call finds them even if no other
object holds them. The value is whether the program was used since the last full garbage collection."""
MAX_RECENT = 256
"""The size of ``_recent``; the least recently used program is dropped first."""
_keeping = lock(globals(), "_keeping")
caches.extend((_programs, _recent))


def _drop_idle(phase: str, info: dict[str, int]) -> None:
    """Forget the recent programs that were not used since the previous full garbage collection.

    The garbage collector calls it: ``phase`` is ``"start"`` or ``"stop"``, and ``info`` has the generation.
    """
    # Without blocking: the collection may have begun in a thread that holds the lock.
    if phase == "start" and info["generation"] == 2 and _keeping.acquire(blocking=False):
        try:
            for program in [p for p, used in _recent.items() if not used]:
                del _recent[program]
            _recent.update(dict.fromkeys(_recent, False))
        finally:
            _keeping.release()


def deduplicated(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return the first program equal to ``closed``, so that equal programs share its caches.

    Programs that hold arrays, or functions as parameters, are returned unchanged.

    >>> from pullback import make_jaxpr
    >>> from pullback.transforms.traces.equal_programs import deduplicated
    >>> one, other = (make_jaxpr(lambda x: x * 2)(1.0) for _ in range(2))
    >>> one is other, deduplicated(one) is deduplicated(other)
    (False, True)
    """
    try:
        found = _programs.setdefault(_key_of(closed), closed)
    except TypeError:  # a parameter cannot be compared by value
        return closed
    with _keeping:
        if not _recent and _drop_idle not in gc.callbacks:
            gc.callbacks.append(_drop_idle)
        _recent.pop(found, None)  # to move it to the end
        _recent[found] = True
        while len(_recent) > MAX_RECENT:
            del _recent[next(iter(_recent))]
    return found


@cached_by_jaxpr
def _key_of(closed: ClosedJaxpr) -> tuple[Any, ...]:
    """Return a key that is the same for equal programs.

    The key includes source lines, since errors and profiles show them.
    """
    jaxpr = closed.jaxpr
    numbers: dict[Any, Any] = {}
    for v in jaxpr.invars:
        numbers[v] = len(numbers)
    eqns = []
    for eqn in jaxpr.eqns:
        atoms = tuple([numbers[a] if type(a) is Var else literal_key(a) for a in eqn.invars])
        params = tuple([(name, param_key(value)) for name, value in eqn.params.items()])
        code, instruction = eqn.made_at or (None, 0)
        # The cached program keeps the code object alive, so that its id is not reused.
        eqns.append((eqn.primitive, atoms, params, id(code), instruction, eqn.scope, len(eqn.outvars)))
        for v in eqn.outvars:
            numbers[v] = len(numbers)
    outs = tuple([numbers[a] if type(a) is Var else literal_key(a) for a in jaxpr.outvars])
    return tuple([v.aval for v in jaxpr.invars]), tuple(eqns), outs


def param_key(value: Any) -> Any:
    """Return a key by which a parameter of an equation is compared by value.

    Raises:
      TypeError: the parameter can only be compared by identity.
    """
    kind: Any = type(value)
    if kind in SCALARS:
        return kind, repr(value)
    if kind is ClosedJaxpr:
        if value.consts:
            raise TypeError("a program that holds values")
        # The representative, not its key: nested keys would be hashed again for each use, in a time that doubles with
        # each level at which a program is used twice.
        return deduplicated(value)
    if getattr(kind, "equal_by_key", False) and value.key is None:
        raise TypeError("an unknown call")
    if kind.__hash__ is object.__hash__ and value is not None and kind is not type:
        # A function: each call may pass a new one, and the cache would keep its closure alive.
        raise TypeError("a parameter without a value")
    return (kind, value.tobytes()) if isinstance(value, np.generic) else value


# Numbers of operations ------------------------------------------------------------------------------------------------

INTERPRETED = 100
"""The largest number of operations that are run one by one; a program with more is compiled.

Measured with eager scans over arrays of four elements, tracing included (75 µs for a step of 3 operations, 100
for one of 10; NumPy 2.4, jaxlib 0.10.2, two quiet cores): one by one and compiled, in µs

| operations | 12 | 24 | 48 | 96 | 160 | 320 |
|---|---|---|---|---|---|---|
| one by one | 103 | 134 | 197 | 322 | 353 | 618 |
| compiled | 77 | 77 | 75 | 75 | 102 | 104 |

An operation costs about 2 µs more than within a compiled loop, and compiling takes 15 to 60 ms the first time. So a
loop below the bound loses at most 0.2 ms, and is not worth compiling unless it runs hundreds of times. On arrays of
1,000 elements both are equally fast at the bound, and on 100,000 elements NumPy is faster.
"""


@cached_by_jaxpr
def op_count(closed: ClosedJaxpr) -> int:
    """Return the number of operations that a program runs; a loop of unknown length counts as one step."""
    return _work(closed.jaxpr, {})


def _work(jaxpr: Jaxpr, counted: dict[Jaxpr, int]) -> int:
    """Return the number of operations that a jaxpr runs, including those in nested programs.

    ``counted`` memoizes the number for each jaxpr, as a nested program may occur many times.
    """
    if jaxpr not in counted:
        inner = [eqn.params.get("length", 1) * sum(_work(p, counted) for p in subjaxprs(eqn)) for eqn in jaxpr.eqns]
        counted[jaxpr] = sum(n or 1 for n in inner)
    return counted[jaxpr]
