"""Products of matrices in the step of a loop that read one operand: one product, with all weights beside each other.

The gates of a recurrent network multiply the same input by a matrix each, ``x @ u`` and ``x @ v``. The elements of
``x @ [u, v]`` are the same sums, in one call instead of two, and the matrices are joined once, before the loop. In the
backward pass, two products for each gate become two for all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pullback.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Var
from pullback.core.types import ShapedArray
from pullback.primitives.arrays.slicing import slice_p
from pullback.primitives.linalg.contraction import dot_general_p
from pullback.transforms.traces.derived import cached_by_jaxpr

_LARGEST = 64 * 64
"""The most elements of a matrix. The gradient of a gated recurrent network that computes all values of a step again
takes 0.67 of the time with 4 rows and matrices of 8 x 8, 0.86 with 4 rows and 64 x 64, 0.97 with 64 rows and 64 x 64;
but 1.02 with 16 rows and 128 x 128, and 1.03 with 32 rows and 256 x 256."""
_FEWEST_ROWS = 2
"""With one row and matrices of 32 x 32 it takes 1.08."""


class Joined(NamedTuple):
    """A step whose products are joined.

    Attributes:
      program: the step; its first inputs are the constants that it still reads, and then the joined matrices.
      kept: the indices of the constants that it still reads.
      groups: for each joined matrix the indices of the constants that are joined, along the last axis.
    """

    program: ClosedJaxpr
    kept: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]


@cached_by_jaxpr
def joined_products(step: ClosedJaxpr, num_consts: int) -> Joined | None:
    """Join the products of a step that read one operand; return None if there are none.

    Args:
      step: a flat program, from constants of a loop and others to results.
      num_consts: the number of constants, its first inputs.
    """
    jaxpr = step.jaxpr
    consts: dict[Any, int] = {v: i for i, v in enumerate(jaxpr.invars[:num_consts])}
    found: dict[Any, list[Eqn]] = {}
    for eqn in jaxpr.eqns:
        if _may_join(eqn, consts):
            x, w = eqn.invars
            params = tuple(sorted([(name, repr(value)) for name, value in eqn.params.items()]))
            found.setdefault((x, w.aval.dtype, eqn.outvars[0].aval.dtype, params), []).append(eqn)
    groups = [eqns for eqns in found.values() if len(eqns) > 1]
    if not groups:
        return None
    matrices = [Var(_joined([e.invars[1].aval for e in eqns])) for eqns in groups]
    at = {id(eqns[0]): (eqns, w) for eqns, w in zip(groups, matrices, strict=True)}
    gone = {id(eqn) for eqns in groups for eqn in eqns}
    written: list[Eqn] = []
    for eqn in jaxpr.eqns:
        if id(eqn) in at:
            written += _as_one(*at[id(eqn)])
        elif id(eqn) not in gone:
            written.append(eqn)
    read: set[Atom] = {a for eqn in written for a in eqn.invars} | set(jaxpr.outvars)
    kept = [v for v in jaxpr.invars[:num_consts] if v in read]
    invars = [*kept, *matrices, *jaxpr.invars[num_consts:]]
    program = ClosedJaxpr(Jaxpr(jaxpr.constvars, invars, written, jaxpr.outvars), step.consts)
    indices = [tuple([consts[e.invars[1]] for e in eqns]) for eqns in groups]
    return Joined(program, tuple([consts[v] for v in kept]), tuple(indices))


def _may_join(eqn: Eqn, consts: dict[Any, int]) -> bool:
    """Whether an operation multiplies rows, which change, by a small matrix, which does not."""
    if eqn.primitive is not dot_general_p:
        return False
    x, w = eqn.invars
    if type(x) is not Var or x in consts or w not in consts or not x.aval.shape:
        return False
    numbers = (((len(x.aval.shape) - 1,), (0,)), ((), ()))
    shapes = (*x.aval.shape, *w.aval.shape)
    if eqn.params["dimension_numbers"] != numbers or len(w.aval.shape) != 2:
        return False
    if not all(isinstance(n, int) for n in shapes) or any(a.explicit is not None for a in (x.aval, w.aval)):
        return False
    return w.aval.size <= _LARGEST and x.aval.size >= _FEWEST_ROWS * x.aval.shape[-1]


def _joined(avals: list[Any]) -> ShapedArray:
    return ShapedArray((avals[0].shape[0], sum(a.shape[1] for a in avals)), avals[0].dtype)


def _as_one(eqns: list[Eqn], matrix: Var) -> list[Eqn]:
    """Return the equations of one product, and of the slices of it that are the products of ``eqns``."""
    first = eqns[0]
    aval = first.outvars[0].aval
    whole = Var(ShapedArray((*aval.shape[:-1], matrix.aval.shape[1]), aval.dtype))
    written = [first.like([first.invars[0], matrix], [whole])]
    start = 0
    for eqn in eqns:
        out = eqn.outvars[0]
        begin, end = (0,) * (len(aval.shape) - 1), out.aval.shape[:-1]
        stop = start + out.aval.shape[-1]
        params: dict[str, Any] = {
            "start_indices": (*begin, start), "limit_indices": (*end, stop), "strides": (1,) * len(aval.shape),
        }  # fmt: skip
        written.append(Eqn(slice_p, [whole], params, [out], eqn.made_at, eqn.scope))
        start = stop
    return written
