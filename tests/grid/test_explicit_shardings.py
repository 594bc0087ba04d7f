"""Laws of shardings in types hold for every operation; over a mesh without devices, so that no program runs."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import pytest

import pullback
import pullback.numpy as jnp
from pullback import NamedSharding, P, ShapeDtypeStruct, eval_shape, explicit_x64_dtypes, shard_map, typeof, vjp
from pullback.core import dtypes
from tests.grid.all_specs import OF_PRIMITIVES
from tests.grid.explicit_laws import MESH, broken_laws, divisions, values_of
from tests.helpers import chosen

ROWS = sorted((s for s in OF_PRIMITIVES if s.samples), key=lambda spec: spec.operation)
OPERATIONS = {name: list(rows) for name, rows in itertools.groupby(ROWS, key=lambda spec: spec.operation)}


@pytest.mark.parametrize("name", OPERATIONS)
def test_results_of_all_transformations_are_sharded_alike(name: str) -> None:
    broken: dict[str, Any] = {}
    for spec in OPERATIONS[name]:
        args = values_of(spec)
        if all(x.size for x in args):
            for division in divisions(args):
                found = broken_laws(spec, args, division)
                if found:
                    broken[f"{spec} {division}"] = found
    assert broken == {}


def reduced_gradients(f: Any, xs: Any, moving: list[int]) -> tuple[list[Any], Any]:
    """The inexact results of an operation, and the cotangents of its operands ``moving`` if those of results are 1."""

    def g(*moved: Any) -> Any:
        values = dict(zip(moving, moved, strict=True))
        outs = pullback.tree.leaves(f(*[values.get(i, x) for i, x in enumerate(xs)]))
        return [x for x in outs if dtypes.is_inexact(x.dtype)]

    outs, pull = vjp(g, *[xs[i] for i in moving])
    with explicit_x64_dtypes("allow"):  # some results have 64 bits
        return outs, pull([jnp.ones(x.shape, x.dtype) for x in outs])


def _gradients(f: Any, moving: list[int], states: list[Any], *xs: Any) -> Any:
    """The cotangents of :func:`reduced_gradients`; ``states`` gets the axes over which the results have a state."""
    outs, cts = reduced_gradients(f, xs, moving)
    states[:] = [typeof(x).mat.reduced or typeof(x).mat.unreduced for x in outs]
    return cts


@pytest.mark.parametrize("name", chosen(list(OPERATIONS)[::3], list(OPERATIONS)))
def test_gradients_within_shard_map_are_unreduced(name: str) -> None:
    for spec in OPERATIONS[name]:
        args = values_of(spec)
        moving = [i for i, x in enumerate(args) if dtypes.is_inexact(x.dtype)]
        if not (spec.derivative and moving and all(x.size for x in args)):
            continue
        axes = [{"reduced": {"x"}} if i in moving else {} for i in range(len(args))]
        operands = [
            ShapeDtypeStruct(x.shape, x.dtype, sharding=NamedSharding(MESH, P(**a)))
            for x, a in zip(args, axes, strict=True)
        ]
        states: list[Any] = []
        body = partial(_gradients, spec.function, moving, states)
        cts = eval_shape(shard_map(body, mesh=MESH, out_specs=P(unreduced={"x"})), *operands)
        assert states == [{"x"}] * len(states)
        assert all(ct.sharding.spec.unreduced == {"x"} for ct in cts)
        return
    pytest.skip("it has no derivative")
