"""A cost model of the CPU compiler's fusion, which decides whether equal regions of a program are outlined.

The compiler fuses an elementwise operation and the operations that produce its operands, if these are elementwise too,
into one loop, and repeats in each loop the operations that several loops need. A value that any other operation reads
(a product, a reduction along other axes than the last, a call) is written to memory once. So the sum of residual
connections is computed from the beginning in each layer: loops grow with the depth of a network, and the time for
compiling them with its square.

Measured on two cores, jaxlib 0.10.2, gradients; seconds for compiling, and milliseconds of a run:

| program | one function | outlined |
|---|---|---|
| transformer, 24 layers of 64 | 10.3 s, 11.8 ms | 1.7 s, 9.0 ms |
| LSTM, 100 steps | 265 s, 2,849 ms | 4.9 s, 5.2 ms |
| 100 times ``y = sin(y) + s``, 10,000 numbers | 4.2 s, 621 ms | 0.6 s, 6.3 ms |
| 100 times ``y = s * y * (1 - y)``, 100,000 numbers | 0.3 s, 2.2 ms | 0.9 s, 47 ms |
| residual convolutional network, 50 layers | 1.7 s, 21 ms | 1.8 s, 29 ms |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pullback.core import traits
from pullback.core.jaxpr import Eqn, Literal, subjaxprs

HEAVY = 25
"""The cost of a sine, a quotient and the like for an element, where a sum costs 1, about 0.1 ns."""
KERNEL, CALL = 500, 1_000
"""The costs of starting a loop, and of calling a function."""
NEAR, FAR, CACHED = 1, 4, 2**18
"""The costs of reading or writing an element of an array of at most ``CACHED`` bytes, and of a larger one."""
CODE = 30
"""The cost of compiling a loop, in addition to the costs of its operations."""
_COST, _LIGHT = traits.cost.name, traits.Cost.LIGHT
_MOST = 16
"""How many operations in loops are counted for each equation; more cost too much in any case."""


class Cost(NamedTuple):
    """The cost of the loops of a program.

    Attributes:
      code: the cost of compiling the loops, in operations; equal loops are compiled once.
      run: the time of a run, in tenths of nanoseconds.
    """

    code: float
    run: float


def weight(eqn: Eqn) -> int:
    """The cost of an operation for one element, as a multiple of the cost of a sum."""
    return 1 if traits.cost.of(eqn.primitive) is traits.Cost.LIGHT else HEAVY


def weight_in_loop(eqn: Eqn) -> int:
    """The cost of an operation for one element if the compiler fuses it with the producers of its operands, else 0."""
    if eqn.primitive.traits.get(_COST) is _LIGHT:  # ``cost.of``, written out, for this runs for each equation
        return 1
    return HEAVY if _reduces_last(eqn) or _is_elementwise(eqn) else 0


def _reduces_last(eqn: Eqn) -> bool:
    """Whether an operation reduces the last axis; a reduction of other axes gets a vectorised loop of its own."""
    axes = eqn.params.get("axes")
    return axes is not None and bool(eqn.invars) and eqn.invars[0].aval.ndim - 1 in axes


def _is_elementwise(eqn: Eqn) -> bool:
    shape = eqn.outvars[0].aval.shape if eqn.outvars else None
    for v in (*eqn.invars, *eqn.outvars):
        if v.aval.shape != shape and v.aval.shape:
            return False
    return "axes" not in eqn.params and not any(subjaxprs(eqn))


def is_small(eqns: Sequence[Eqn], results: Sequence[Any], most: int) -> bool:
    """Whether the cost of compiling equations, ``cost(eqns, results).code``, is surely at most ``most``.

    The result may be False for a smaller cost: this function computes an upper bound, in a seventh of the time of
    :func:`cost`. The bound counts equal loops separately, and an operation again for each chain of uses to the end of
    its loop.
    """
    code, unwritten = 0, dict[Any, int]()  # the latter: the cost of each variable that is not written to memory
    for eqn in eqns:
        size = weight_in_loop(eqn)
        if size:
            for a in eqn.invars:
                if a in unwritten:
                    size += unwritten[a]
            if "axes" in eqn.params:
                code += CODE + size
            else:
                for v in eqn.outvars:
                    unwritten[v] = size
        else:
            for a in eqn.invars:
                if a in unwritten:
                    code += CODE + unwritten.pop(a)
        if code > most:
            return False
    return code + sum([CODE + unwritten[a] for a in results if a in unwritten]) <= most


def cost(eqns: Sequence[Eqn], results: Iterable[Any]) -> Cost:
    """The cost of the loops that the compiler makes of some equations; infinite if the loops are too large.

    Args:
      eqns: the equations, in order.
      results: the variables that must be in memory afterwards.
    """
    weights = list(map(weight_in_loop, eqns))
    producers = {v: i for i, eqn in enumerate(eqns) for v in eqn.outvars}
    written = {a for a in results if type(a) is not Literal}
    for eqn, fused in zip(eqns, weights, strict=True):
        if not fused:
            written.update(eqn.outvars)
            written.update(a for a in eqn.invars if type(a) is not Literal)
        elif "axes" in eqn.params:
            written.update(eqn.outvars)
    kinds = [hash((eqn.primitive, *[v.aval for v in eqn.outvars])) for eqn in eqns]
    operands = [[a for a in eqn.invars if type(a) is not Literal] for eqn in eqns]
    inside = [[producers[a] for a in each if a in producers and a not in written] for each in operands]
    outside = [[a for a in each if a not in producers or a in written] for each in operands]
    budget = _MOST * len(eqns)
    code, run, counted = 0, 0, set()
    for i, eqn in enumerate(eqns):
        if not weights[i] or not any(v in written for v in eqn.outvars):
            continue
        loop = _loop(inside, i, budget)
        budget -= len(loop)
        if budget <= 0:
            return Cost(float("inf"), float("inf"))
        operations = sum([weights[j] for j in loop])
        key = tuple([kinds[j] for j in loop])
        if key not in counted:
            counted.add(key)
            code += CODE + operations
        read = len({a for j in loop for a in outside[j]})
        aval = max((v.aval for v in (*eqn.outvars, *eqn.invars)), key=lambda a: a.size)
        moved = NEAR if aval.size * aval.dtype.itemsize <= CACHED else FAR
        run += KERNEL + aval.size * (operations + moved * (1 + read))
    return Cost(code, run)


def _loop(inside: Sequence[Sequence[int]], root: int, most: int) -> list[int]:
    """The indices of the equations that the compiler fuses into the loop that ends with the equation ``root``.

    Args:
      inside: for each equation the indices of those equations that produce its operands and are fused with it.
      root: the index of the last equation.
      most: the number of equations at which the search stops.
    """
    loop, members = [root], {root}
    for i in loop:
        for j in inside[i]:
            if j not in members:
                members.add(j)
                loop.append(j)
        if len(loop) >= most:
            break
    return loop
