"""Liveness: which values of a program are in memory at each of its operations, before it runs.

Compilers fuse operations: a value that only fused operations read is never in memory. The model is that of XLA. An
elementwise operation, or one that only moves elements, is computed where its result is read, unless it is expensive
and has several readers, or a reader needs it in memory, as a product of matrices does. Every other value is live from
its operation to its last reader. Operations run in the order of the program; a loop needs the memory of one step, a
choice that of the largest branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pullback.core import inlining, traits
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, holds_programs
from pullback.core.jaxpr_text import literal_key
from pullback.core.types import ShapedArray
from pullback.transforms.traces.derived import cached_by_jaxpr

_CHEAP = frozenset({"light"})
_ALIGNMENT = 64


class Moment(NamedTuple):
    """The memory at an operation.

    Attributes:
      eqn: the operation.
      live: the bytes of all values that are alive, and of the values within the operation.
      inner: the bytes of the values within the operation, such as those of the body of a loop.
    """

    eqn: Eqn
    live: int
    inner: int


class Timeline(NamedTuple):
    """The memory of a program at each of its operations, without its arguments.

    Attributes:
      moments: an entry for each operation.
      lives: for each value in memory, the indices of the first and of the last operation at which it is alive.
      made_by: for each of these values, the operation that makes it.
      peak: the largest number of bytes.
      at: the index of the first operation with this number; -1 for a program without operations.
    """

    moments: list[Moment]
    lives: dict[Var, tuple[int, int]]
    made_by: dict[Var, Eqn]
    peak: int
    at: int

    def alive(self, index: int) -> list[Var]:
        """Return the values that are alive at the operation ``index``, the largest first."""
        found = [v for v, (first, last) in self.lives.items() if first <= index <= last]
        return sorted(found, key=lambda v: -nbytes(v.aval))


def nbytes(aval: Any) -> int:
    """Return the size of a value of the type ``aval`` in bytes; 0 if it is no array of known size."""
    if not isinstance(aval, ShapedArray) or aval.dtype.itemsize == 0:
        return 0
    size = 1
    for n in aval.shape:
        if not isinstance(n, int):
            return 0
        size *= n
    return size * aval.dtype.itemsize


def is_fused(eqn: Eqn) -> bool:
    """Whether a compiler may compute an operation where its result is read."""
    p = eqn.primitive
    return len(eqn.outvars) == 1 and (
        traits.elementwise.of(p) or traits.moves.of(p) or _makes_constant(eqn) or is_same(eqn)
    )


def is_same(eqn: Eqn) -> bool:
    """Whether the result of an operation has the elements of its only operand, in the same order."""
    if len(eqn.invars) != 1 or len(eqn.outvars) != 1 or traits.elementwise.of(eqn.primitive):
        return False
    a, b = eqn.invars[0].aval, eqn.outvars[0].aval
    if not isinstance(a, ShapedArray) or not isinstance(b, ShapedArray) or a.dtype != b.dtype or a.size != b.size:
        return False
    return (
        (_squeezed(a) == _squeezed(b) and "permutation" not in eqn.params)
        or "new_sizes" in eqn.params
        or "name" in eqn.params
    )


def _squeezed(aval: ShapedArray) -> list[Any]:
    return [n for n in aval.shape if n != 1]


def _makes_constant(eqn: Eqn) -> bool:
    return not eqn.invars and traits.cost.of(eqn.primitive) is traits.Cost.LIGHT


def is_cheap(eqn: Eqn) -> bool:
    """Whether an operation is fused into several readers, each of which computes it."""
    p = eqn.primitive
    if traits.moves.of(p) or is_same(eqn):
        return True
    return traits.cost.of(p) is traits.Cost.LIGHT or _is_small_power(eqn)


def _is_small_power(eqn: Eqn) -> bool:
    """Whether an operation is a power with a small integer exponent, which becomes products."""
    return "y" in eqn.params and isinstance(eqn.params["y"], int) and 0 <= eqn.params["y"] <= 3


def reduces(eqn: Eqn) -> bool:
    """Whether an operation computes its operands where it reads them, and has its result in memory, as a sum does."""
    return "axes" in eqn.params and traits.cost.of(eqn.primitive) is traits.Cost.SIMPLE and not is_fused(eqn)


def without_duplicates(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return a program that computes each value once: compilers merge equal operations on equal operands."""
    first: dict[Any, list[Var]] = {}
    same: dict[Any, Any] = {}
    eqns: list[Eqn] = []
    jaxpr = closed.jaxpr
    for eqn in jaxpr.eqns:
        invars = [same.get(a, a) for a in eqn.invars]
        key = _key(eqn, invars)
        if key is not None and key in first:
            same.update(zip(eqn.outvars, first[key], strict=True))
            continue
        if key is not None:
            first[key] = eqn.outvars
        eqns.append(eqn if invars == eqn.invars else eqn.like(invars, eqn.outvars))
    if not same:
        return closed
    outvars = [same.get(a, a) for a in jaxpr.outvars]
    return ClosedJaxpr(Jaxpr(jaxpr.constvars, jaxpr.invars, eqns, outvars), closed.consts)


def _key(eqn: Eqn, invars: Sequence[Any]) -> Any:
    """Return a key that operations with equal results share; None if there is none, as for operations with effects."""
    if (eqn.params and holds_programs(eqn.params)) or eqn.primitive.effect:
        return None
    operands = tuple([a if type(a) is Var else (literal_key(a), a.aval) for a in invars])
    key = eqn.primitive, operands, tuple(sorted(eqn.params.items(), key=_name))
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _name(item: tuple[str, Any]) -> str:
    return item[0]


class Materialised(NamedTuple):
    """Which values of a list of equations are in memory.

    Attributes:
      values: these values, each with the index of its equation.
      reads: for each value, the indices of the equations in memory at which it is read.
    """

    values: dict[Var, int]
    reads: dict[Any, set[int]]


def materialised(eqns: Sequence[Eqn], results: Sequence[Any]) -> Materialised:
    """Return which values are in memory, and at which equations they are read."""
    count = len(eqns)
    reads: dict[Any, set[int]] = {a: {count} for a in results if type(a) is Var}
    needed = set(reads)
    values: dict[Var, int] = {}
    for i in reversed(range(count)):
        eqn = eqns[i]
        where: set[int] = set()
        if is_fused(eqn):
            v = eqn.outvars[0]
            readers = reads.get(v, set())
            if not readers and not eqn.effect:
                continue
            if (v in needed and not is_same(eqn)) or (len(readers) > 1 and not is_cheap(eqn)):
                values[v] = i
                where = {i}
            else:
                where = readers
                if v in needed:
                    needed.update(a for a in eqn.invars if type(a) is Var)
        else:
            values.update((v, i) for v in eqn.outvars)
            where = {i}
            if not reduces(eqn):
                needed.update(a for a in eqn.invars if type(a) is Var)
        for a in eqn.invars:
            if type(a) is Var:
                reads.setdefault(a, set()).update(where)
    return Materialised(values, reads)


def timeline(closed: ClosedJaxpr) -> Timeline:
    """Return the memory of a program at each operation, without its arguments and the values that it returns."""
    flat = without_duplicates(inlining.flattened(closed, inlining.inlined))
    jaxpr = flat.jaxpr
    eqns = jaxpr.eqns
    results = {a for a in jaxpr.outvars if type(a) is Var}
    found = materialised(eqns, jaxpr.outvars)
    lives: dict[Var, tuple[int, int]] = {}
    dying: list[list[Var]] = [[] for _ in range(len(eqns) + 1)]
    born: list[list[Var]] = [[] for _ in eqns]
    for v, i in found.values.items():
        if v not in results:
            last = max(found.reads.get(v, {i}), default=i)
            last = min(last, len(eqns) - 1)
            lives[v] = i, last
            born[i].append(v)
            dying[last].append(v)
    moments: list[Moment] = []
    live, peak, at = 0, 0, -1
    for i, eqn in enumerate(eqns):
        inner = inner_peak(eqn)
        grown = sum(_aligned(v.aval) for v in born[i])
        if grown and (is_fused(eqn)):  # it may write over an operand that nobody else reads
            freed = [v for v in dying[i] if v not in born[i]]
            own = nbytes(eqn.outvars[0].aval)
            same = next((v for v in freed if nbytes(v.aval) == own), None)
            if same is not None:
                dying[i].remove(same)
                live -= _aligned(same.aval)
        live += grown
        moments.append(Moment(eqn, live + inner, inner))
        if live + inner > peak:
            peak, at = live + inner, i
        live -= sum(_aligned(v.aval) for v in dying[i])
    made_by = {v: eqns[i] for v, i in found.values.items()}
    return Timeline(moments, lives, made_by, peak, at)


def _aligned(aval: Any) -> int:
    return -(-nbytes(aval) // _ALIGNMENT) * _ALIGNMENT


def inner_peak(eqn: Eqn) -> int:
    """Return the memory that the programs within an operation need beside its operands and results."""
    programs = [p for value in eqn.params.values() for p in (value if isinstance(value, (tuple, list)) else (value,))]
    closed = [
        p if isinstance(p, ClosedJaxpr) else ClosedJaxpr(p) for p in programs if isinstance(p, (ClosedJaxpr, Jaxpr))
    ]
    return max(map(program_peak, closed), default=0)


@cached_by_jaxpr
def program_peak(closed: ClosedJaxpr) -> int:
    """Return the largest number of bytes that a program needs, beside its arguments and results."""
    return timeline(closed).peak
