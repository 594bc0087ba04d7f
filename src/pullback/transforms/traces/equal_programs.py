"""Equal programs, of which the first one is used for all; and how many operations a program runs.

What was made of a program (derivatives, compiled code) is kept in it, and so serves an equal one, such as the body of
a loop that is written as a new closure in each call.
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
"""The programs that others were found to be equal to, as long as somebody has them, such as a program around them."""
_lately: dict[ClosedJaxpr, bool] = {}
"""Programs that are kept although nobody has them: the next call, of a body that is another closure with the same code,
may need them again. Beside each is whether it was asked for since the last full collection."""
PROGRAMS_KEPT = 256
"""How many of these are kept; that which was longest not asked for is dropped for a new one."""
_keeping = lock(globals(), "_keeping")
caches.extend((_programs, _lately))


def _drop_idle(phase: str, info: dict[str, int]) -> None:
    """At each full collection, let go of the programs that nobody asked for since the one before."""
    if phase == "start" and info["generation"] == 2 and _keeping.acquire(blocking=False):
        try:
            for program in [p for p, asked in _lately.items() if not asked]:
                del _lately[program]
            _lately.update(dict.fromkeys(_lately, False))
        finally:
            _keeping.release()


def deduplicated(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The first program that is equal to this one, which holds no values of its own: the same for equal ones.

    What was made of a program is kept in it, so that nothing has to be made again for an equal one.

    >>> from pullback.transforms.autodiff.tracing import make_jaxpr
    >>> one, other = (make_jaxpr(lambda x: x * 2)(1.0) for _ in range(2))
    >>> one is other, interned(one) is interned(other)
    (False, True)
    """
    try:
        found = _programs.setdefault(_key_of(closed), closed)
    except TypeError:  # a parameter that has no hash, or none by its value
        return closed
    with _keeping:
        if not _lately and _drop_idle not in gc.callbacks:
            gc.callbacks.append(_drop_idle)
        _lately.pop(found, None)
        _lately[found] = True
        while len(_lately) > PROGRAMS_KEPT:
            del _lately[next(iter(_lately))]
    return found


@cached_by_jaxpr
def _key_of(closed: ClosedJaxpr) -> tuple[Any, ...]:
    """All that a program is, with numbers for variables: its lines too, which errors and profiles show."""
    jaxpr = closed.jaxpr
    numbers: dict[Any, Any] = {}
    for v in jaxpr.invars:
        numbers[v] = len(numbers)
    eqns = []
    for eqn in jaxpr.eqns:
        atoms = tuple([numbers[a] if type(a) is Var else literal_key(a) for a in eqn.invars])
        params = tuple([(name, param_key(value)) for name, value in eqn.params.items()])
        code, place = eqn.made_at or (None, 0)
        # The code object lives as long as the program that is kept, so that its id is not used for another.
        eqns.append((eqn.primitive, atoms, params, id(code), place, eqn.scope, len(eqn.outvars)))
        for v in eqn.outvars:
            numbers[v] = len(numbers)
    outs = tuple([numbers[a] if type(a) is Var else literal_key(a) for a in jaxpr.outvars])
    return tuple([v.aval for v in jaxpr.invars]), tuple(eqns), outs


def param_key(value: Any) -> Any:
    """A parameter by its value.

    Raises:
      TypeError: it has none that another could equal.
    """
    kind: Any = type(value)
    if kind in SCALARS:
        return kind, repr(value)
    if kind is ClosedJaxpr:
        if value.consts:
            raise TypeError("a program that holds values")
        # One object for all equal ones. By its key, of keys within keys, the hash of a program that is used twice by
        # one that is used twice, and so on, would take a time that doubles with each.
        return deduplicated(value)
    if getattr(kind, "equal_by_key", False) and value.key is None:
        raise TypeError("a call of which nothing is known")
    if kind.__hash__ is object.__hash__ and value is not None and kind is not type:
        # A function: each call may bring another, and what it holds would be kept.
        raise TypeError("a parameter without a value")
    return (kind, value.tobytes()) if isinstance(value, np.generic) else value


# How long they run ----------------------------------------------------------------------------------------------------

INTERPRETED = 100
"""Up to so many operations are run one by one; more are run as a compiled program.

Measured with eager scans over arrays of four elements, tracing included (75 µs for a step of 3 operations, 100
for one of 10; NumPy 2.4, jaxlib 0.10.2, two quiet cores): one by one and compiled, in µs

| operations | 12 | 24 | 48 | 96 | 160 | 320 |
|---|---|---|---|---|---|---|
| one by one | 103 | 134 | 197 | 322 | 353 | 618 |
| compiled | 77 | 77 | 75 | 75 | 102 | 104 |

An operation costs about 2 µs more than within a compiled loop, and compiling takes 15 to 60 ms the first time. So a
loop below the bound loses at most 0.2 ms, and is not worth compiling unless it is run hundreds of times; of arrays of
1,000 elements both ways are as fast there, and of 100,000 NumPy is faster.
"""


@cached_by_jaxpr
def op_count(closed: ClosedJaxpr) -> int:
    """How many operations a program runs, each loop of unknown length counted as one step."""
    return _work(closed.jaxpr, {})


def _work(jaxpr: Jaxpr, counted: dict[Jaxpr, int]) -> int:
    if jaxpr not in counted:
        inner = [eqn.params.get("length", 1) * sum(_work(p, counted) for p in subjaxprs(eqn)) for eqn in jaxpr.eqns]
        counted[jaxpr] = sum(n or 1 for n in inner)
    return counted[jaxpr]
