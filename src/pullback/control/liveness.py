"""Liveness: which values of a program are in memory at each of its operations, before it runs.

Compilers fuse operations: a value that only fused operations read is never in memory. The model is that of XLA for
CPUs, on the program in the form in which it runs (``compiled_form``). An elementwise operation, or one that only moves
elements, is computed where its result is read, unless it is expensive and has several readers, or a reader needs it in
memory, as a product of matrices does. Every other value is live from its operation to its last reader. Operations run
breadth first: each as soon as its operands are computed. Some write over an operand, and results lend their memory to
values before them. A loop needs the memory of one step, a choice that of the largest branch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from pullback.control.compiled_form import compiled_form, updates
from pullback.core import traits
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from pullback.core.types import ShapedArray
from pullback.primitives import discrete, elementwise
from pullback.primitives.arrays.gather import gather_p
from pullback.primitives.arrays.shapes import broadcast_in_dim_p
from pullback.transforms.traces.derived import cached_by_jaxpr

_ALSO_CHEAP = frozenset({
    elementwise.sin_p, elementwise.cos_p, elementwise.square_p, elementwise.one_minus_square_p, discrete.floor_p,
    discrete.ceil_p, discrete.round_p, discrete.is_finite_p,
})  # fmt: skip
"""Operations that XLA counts as cheap, and computes in each reader, although they are not light."""
_EXPENSIVE = frozenset({gather_p})
_ALIGNMENT = 64
_WINDOW = 32
"""The longest axis over which XLA sums in one step; longer ones are divided into windows of so many elements."""


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
    return (
        len(eqn.outvars) == 1
        and not updates(eqn)
        and (traits.elementwise.of(p) or traits.moves.of(p) or _makes_constant(eqn) or is_same(eqn))
    )


def is_same(eqn: Eqn) -> bool:
    """Whether the result of an operation has the elements of its only operand, in the same order."""
    if len(eqn.invars) != 1 or len(eqn.outvars) != 1 or traits.elementwise.of(eqn.primitive):
        return False
    a, b = eqn.invars[0].aval, eqn.outvars[0].aval
    if not isinstance(a, ShapedArray) or not isinstance(b, ShapedArray) or a.dtype != b.dtype or a.size != b.size:
        return False
    return (
        (_squeezed(a) == _squeezed(b) and _keeps_order(eqn.params.get("permutation", ()), a))
        or "new_sizes" in eqn.params
        or "name" in eqn.params
    )


def _keeps_order(permutation: Sequence[int], aval: ShapedArray) -> bool:
    moved = [i for i in permutation if aval.shape[i] != 1]
    return moved == sorted(moved)


def _squeezed(aval: ShapedArray) -> list[Any]:
    return [n for n in aval.shape if n != 1]


def _makes_constant(eqn: Eqn) -> bool:
    return not eqn.invars and traits.cost.of(eqn.primitive) is traits.Cost.LIGHT


def is_cheap(eqn: Eqn) -> bool:
    """Whether an operation is fused into several readers, each of which computes it."""
    p = eqn.primitive
    if p in _EXPENSIVE:
        return False
    if traits.moves.of(p) or is_same(eqn) or p in _ALSO_CHEAP:
        return True
    return traits.cost.of(p) is traits.Cost.LIGHT or _is_small_power(eqn)


def is_light(eqn: Eqn) -> bool:
    """Whether an operation takes so little time that nothing is gained by keeping its result for later."""
    return (is_cheap(eqn) and eqn.primitive not in _ALSO_CHEAP) or eqn.primitive in _EXPENSIVE


def _is_small_power(eqn: Eqn) -> bool:
    """Whether an operation is a power with a small integer exponent, which becomes products."""
    return "y" in eqn.params and isinstance(eqn.params["y"], int) and 0 <= eqn.params["y"] <= 3


def _is_reduction(eqn: Eqn) -> bool:
    return "axes" in eqn.params and traits.cost.of(eqn.primitive) is traits.Cost.SIMPLE and not is_fused(eqn)


def reduces(eqn: Eqn) -> bool:
    """Whether an operation computes its operands where it reads them, and has its result in memory, as a short sum.

    A reduction over a long axis is divided into windows first, which read their operand in memory.
    """
    if not _is_reduction(eqn):
        return False
    shape = eqn.invars[0].aval.shape
    return all(isinstance(shape[i], int) and shape[i] <= _WINDOW for i in eqn.params["axes"])


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
    made = {v: i for i, eqn in enumerate(eqns) for v in eqn.outvars}
    users: dict[Any, list[int]] = {}
    for i in reversed(range(count)):
        eqn = eqns[i]
        where: set[int] = set()
        if is_fused(eqn):
            v = eqn.outvars[0]
            readers = reads.get(v, set())
            if not readers and not eqn.effect:
                continue
            forms = _forms(v, users, eqns, made, values)
            kept = v in needed and not is_same(eqn)
            if not kept and len(readers) > 1:
                kept = not is_cheap(eqn) or (
                    _joins(eqn, eqns, made) and _is_read_beside(v, forms, users, eqns, made, values)
                )
            if kept:
                values[v] = i
                where = {i}
            else:
                where = readers
                if v in needed:
                    needed.update(a for a in eqn.invars if type(a) is Var)
        else:
            if not eqn.effect and not any(v in reads for v in eqn.outvars):
                continue
            values.update((v, i) for v in eqn.outvars)
            where = {i}
            if not reduces(eqn):
                needed.update(a for a in eqn.invars if type(a) is Var)
        for a in eqn.invars:
            if type(a) is Var:
                reads.setdefault(a, set()).update(where)
                users.setdefault(a, []).append(i)
    return Materialised(values, reads)


def _joins(eqn: Eqn, eqns: Sequence[Eqn], made: dict[Var, int]) -> bool:
    """Whether an operation has several operands of the size of its result: to compute it again keeps all of them."""
    own = nbytes(eqn.outvars[0].aval)
    full = {a for a in eqn.invars if type(a) is Var and nbytes(a.aval) >= own}
    return len([a for a in full if a not in made or eqns[made[a]].primitive is not broadcast_in_dim_p]) > 1


_MOST_STEPS = 100


def _forms(
    v: Var, users: dict[Any, list[int]], eqns: Sequence[Eqn], made: dict[Var, int], values: dict[Var, int]
) -> dict[Var, None]:
    """Return a value and those that are made of it alone, and are not in memory."""
    found = {v: None}
    pending = [v]
    while pending and len(found) < _MOST_STEPS:
        for i in users.get(pending.pop(), ()):
            out = eqns[i].outvars[0]
            if is_fused(eqns[i]) and out not in values and not _joins(eqns[i], eqns, made) and out not in found:
                found[out] = None
                pending.append(out)
    return found


def _is_read_beside(
    v: Var, forms: dict[Var, None], users: dict[Any, list[int]], eqns: Sequence[Eqn], made: dict[Var, int],
    values: dict[Var, int],
) -> bool:  # fmt: skip
    """Whether an operation reads ``v`` beside a result in memory, or the operand of a reduction, that is made of ``v``.

    XLA fuses an operation into all of its readers or into none of them, if it has several operands.
    """
    first = made[v]
    for user in {i for form in forms for i in users.get(form, ())}:
        seen: set[int] = set()
        pending = [a for a in eqns[user].invars if type(a) is Var and a not in forms]
        while pending and len(seen) < _MOST_STEPS:
            a = pending.pop()
            i = made.get(a, -1)
            if i <= first or i in seen:
                continue
            seen.add(i)
            in_memory = a in values and (not is_fused(eqns[i]) or any(_is_reduction(eqns[j]) for j in users[a]))
            if in_memory and any(b in forms for b in eqns[i].invars):
                return True
            pending += [b for b in eqns[i].invars if type(b) is Var and b not in forms]
    return False


def timeline(closed: ClosedJaxpr) -> Timeline:
    """Return the memory of a program at each operation, without its arguments and the values that it returns."""
    form = compiled_form(closed)
    jaxpr = form.program.jaxpr
    eqns = jaxpr.eqns
    found = materialised(eqns, jaxpr.outvars)
    order = breadth_first(jaxpr, found)
    lives = _lives(found, order)
    returned = {a for a in jaxpr.outvars if type(a) is Var}
    ordered = [eqns[k] for k in order]
    guests = _within_results(lives, ordered, returned)
    buffers = _buffers({v: life for v, life in lives.items() if v not in guests and v not in returned}, ordered)
    change = [0] * (len(order) + 1)
    for each in buffers:
        change[each.first] += each.size
        change[each.last + 1] -= each.size
    moments: list[Moment] = []
    live, peak, at = 0, 0, -1
    for i, k in enumerate(order):
        inner = inner_peak(eqns[k])
        live += change[i]
        moments.append(Moment(eqns[k], live + inner, inner))
        if live + inner > peak:
            peak, at = live + inner, i
    made_by = {v: form.made_by.get(v, eqns[i]) for v, i in found.values.items()}
    return Timeline(moments, {v: lives[v] for each in buffers for v in each.values}, made_by, peak, at)


def _lives(found: Materialised, order: Sequence[int]) -> dict[Var, tuple[int, int]]:
    """Return the positions in an order of equations between which each value in memory is alive."""
    index = {i: k for k, i in enumerate(order)}
    end = len(order) - 1
    return {
        v: (index[i], max([index.get(j, end) for j in found.reads.get(v, ())], default=index[i]))
        for v, i in found.values.items()
    }


class _Buffer:
    """Memory for values of one size, each written over the one before.

    Attributes:
      size: the number of bytes.
      first, last: the positions of the operations between which it is used.
      values: the values.
    """

    __slots__ = ("first", "last", "size", "values")

    def __init__(self, v: Var, life: tuple[int, int]) -> None:
        self.size = _aligned(v.aval)
        self.first, self.last = life
        self.values = [v]


def _buffers(lives: dict[Var, tuple[int, int]], order: Sequence[Eqn]) -> list[_Buffer]:
    """Return the memory of all values; some operations write over an operand that nobody reads later."""
    found: list[_Buffer] = []
    dying: dict[tuple[int, int], list[_Buffer]] = {}
    for v, life in sorted(lives.items(), key=lambda item: item[1][0]):
        size = _aligned(v.aval)
        before = dying.get((life[0], size), [])
        if before and _writes_over(order[life[0]]):
            own = before.pop()
            own.last = life[1]
            own.values.append(v)
        else:
            own = _Buffer(v, life)
            found.append(own)
        if life[1] > life[0]:
            dying.setdefault((life[1], size), []).append(own)
    return found


def _writes_over(eqn: Eqn) -> bool:
    """Whether an operation may write its result over an operand: elementwise ones, decompositions, and updates."""
    return is_fused(eqn) or traits.cost.of(eqn.primitive) is traits.Cost.MATRIX or updates(eqn)


def _within_results(lives: dict[Var, tuple[int, int]], order: Sequence[Eqn], returned: set[Var]) -> set[Var]:
    """Return the values that are in the memory of a result: compilers use it as any other before it is computed."""
    hosts = sorted(((_aligned(v.aval), lives[v]) for v in returned if v in lives), key=lambda h: (-h[0], h[1]))
    taken = [[(size, *life)] for size, life in hosts]
    guests: set[Var] = set()
    for v in sorted(lives, key=lambda v: (-nbytes(v.aval), lives[v])):
        size, (first, last) = _aligned(v.aval), lives[v]
        if v in returned or size <= _ALIGNMENT:
            continue
        for (room, _), used in zip(hosts, taken, strict=True):
            if room < size:
                break
            if all(_are_separate((size, first, last), each, order) for each in used):
                used.append((size, first, last))
                guests.add(v)
                break
    return guests


def _are_separate(one: tuple[int, int, int], other: tuple[int, int, int], order: Sequence[Eqn]) -> bool:
    """Whether two values, given by size, birth and death, may have the same memory."""
    (size, first, last), (other_size, begins, ends) = one, other
    if last < begins or ends < first:
        return True
    return size == other_size and (last == begins or ends == first) and _writes_over(order[max(first, begins)])


def breadth_first(jaxpr: Jaxpr, found: Materialised) -> list[int]:
    """Return the indices of the equations in memory in the order in which a compiled program runs them.

    XLA's order for CPUs is breadth first: an operation stands in a queue as soon as its last operand is computed.
    """
    nodes = sorted(set(found.values.values()) | {i for i, eqn in enumerate(jaxpr.eqns) if _runs(eqn, i, found)})
    known = set(nodes)
    readers: dict[Any, list[int]] = {}
    waiting = dict.fromkeys(nodes, 0)
    inputs = [*jaxpr.constvars, *jaxpr.invars]
    for v in [*inputs, *found.values]:
        readers[v] = sorted(j for j in found.reads.get(v, ()) if j in known and j != found.values.get(v))
        for j in readers[v]:
            waiting[j] += 1
    made: dict[int, list[Var]] = {}
    for v, i in found.values.items():
        made.setdefault(i, []).append(v)
    order: list[int] = []
    queue: deque[Any] = deque([*inputs, *[i for i in nodes if not waiting[i]]])
    while queue:
        item = queue.popleft()
        if type(item) is int:
            order.append(item)
        for v in made.get(item, ()) if type(item) is int else (item,):
            for j in readers.get(v, ()):
                waiting[j] -= 1
                if not waiting[j]:
                    queue.append(j)
    return order


def _runs(eqn: Eqn, i: int, found: Materialised) -> bool:
    return bool(eqn.effect)


def _aligned(aval: Any) -> int:
    return -(-nbytes(aval) // _ALIGNMENT) * _ALIGNMENT


def inner_peak(eqn: Eqn) -> int:
    """Return the memory that the programs within an operation need beside its operands and results."""
    return max(map(program_peak, _inner(eqn)), default=0)


def inner_timeline(eqn: Eqn) -> Timeline | None:
    """Return the memory of the program within an operation that needs most; None if there is no program."""
    program = max(_inner(eqn), key=program_peak, default=None)
    return None if program is None else timeline(program)


def _inner(eqn: Eqn) -> list[ClosedJaxpr]:
    programs = [p for value in eqn.params.values() for p in (value if isinstance(value, (tuple, list)) else (value,))]
    return [
        p if isinstance(p, ClosedJaxpr) else ClosedJaxpr(p) for p in programs if isinstance(p, (ClosedJaxpr, Jaxpr))
    ]


@cached_by_jaxpr
def program_peak(closed: ClosedJaxpr) -> int:
    """Return the largest number of bytes that a program needs, beside its arguments and results."""
    return timeline(closed).peak
