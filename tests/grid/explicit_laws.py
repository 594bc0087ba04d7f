"""Laws of shardings in types, for every operation of the table: what the types say, and where it is the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import pullback
from pullback import NamedSharding, P, ShapeDtypeStruct, errors, eval_shape, jit, jvp, vjp, vmap
from pullback.core import dtypes
from pullback.sharding import AbstractMesh, AxisType

SIZES = {"x": 2, "y": 3, "batch": 2}
MESH = AbstractMesh((2, 3, 2), ("x", "y", "batch"), (AxisType.Explicit,) * 3)
Entries = tuple[Any, ...]


def letter_of(spec: Any) -> str:
    """The dtype for which an operation is checked: single precision, if it takes that."""
    return next((c for c in "fF" if c in spec.dtypes), spec.dtypes[0])


def divisions(args: list[Any]) -> Iterator[list[Entries]]:
    """Yield ways to shard the operands: each one along each of its axes, and all of them along the same axis."""
    none: list[Entries] = [(None,) * x.ndim for x in args]
    for i, x in enumerate(args):
        for axis, n in enumerate(x.shape):
            name = next((name for name in "yx" if n and n % SIZES[name] == 0), None)
            if name is not None:
                entries = tuple(name if a == axis else None for a in range(x.ndim))
                yield [entries if j == i else e for j, e in enumerate(none)]
                same = [entries if y.shape == x.shape else e for y, e in zip(args, none, strict=True)]
                if i == 0 and len(set(same)) <= 2 and same.count(entries) > 1:
                    yield same


def typed(args: list[Any], entries: list[Entries], batched: bool = False) -> list[ShapeDtypeStruct]:
    """The types of operands with these shardings; ``batched`` adds a sharded first axis to each."""
    more, size = (("batch",), (2,)) if batched else ((), ())
    return [
        ShapeDtypeStruct((*size, *x.shape), x.dtype, sharding=NamedSharding(MESH, P(*more, *e)))
        for x, e in zip(args, entries, strict=True)
    ]


def entries_of(x: Any) -> Entries:
    return (None,) * len(x.shape) if x.sharding is None else x.sharding.spec.partitions


def leaves(f: Any, operands: Any) -> list[Any]:
    return pullback.tree.leaves(eval_shape(f, *operands))  # type: ignore[no-any-return]


def broken_laws(spec: Any, args: list[Any], division: list[Entries]) -> list[str]:
    """What does not hold for an operation and a way to shard its operands; empty if it refuses the operands."""
    f, operands = spec.function, typed(args, division)
    try:
        outs = leaves(f, operands)
    except errors.ShardingTypeError:
        return []
    found, broken = list(map(entries_of, outs)), []
    for x, e in zip(outs, found, strict=True):
        if any(entry is not None and n % SIZES[entry] for n, entry in zip(x.shape, e, strict=True)):
            broken.append("an axis of the result is not divided evenly")
    if list(map(entries_of, leaves(jit(f), operands))) != found:
        broken.append("jit")
    batch = list(map(entries_of, leaves(vmap(f), typed(args, division, batched=True))))
    if batch != [("batch", *e) for e in found]:
        broken.append(f"vmap: {batch} of {found}")
    moving = [i for i, x in enumerate(args) if dtypes.is_inexact(x.dtype)]
    if spec.derivative and moving:
        broken += _broken_derivatives(f, operands, moving, found)
    return broken


def _broken_derivatives(f: Any, operands: Any, moving: list[int], found: list[Entries]) -> Iterator[str]:
    def with_tangents(*xs: Any) -> Any:
        def g(*moved: Any) -> Any:
            values = dict(zip(moving, moved, strict=True))
            return pullback.tree.leaves(f(*[values.get(i, x) for i, x in enumerate(xs)]))

        primals = [xs[i] for i in moving]
        _, tangents = jvp(g, primals, primals)
        outs, pull = vjp(g, *primals)
        return tangents, pull(outs)

    tangents, cts = eval_shape(with_tangents, *operands)
    inexact = [(t, e) for t, e in zip(tangents, found, strict=True) if dtypes.is_inexact(t.dtype)]
    if [entries_of(t) for t, _ in inexact] != [e for _, e in inexact]:
        yield f"tangents: {list(map(entries_of, tangents))} of {found}"
    wanted = [entries_of(operands[i]) for i in moving]
    if list(map(entries_of, cts)) != wanted:
        yield f"cotangents: {list(map(entries_of, cts))} of {wanted}"


def values_of(spec: Any, seed: int = 0) -> list[Any]:
    return [np.asarray(x) for x in spec.point(letter_of(spec))]
