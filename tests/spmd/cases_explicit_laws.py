"""For every operation: of sharded operands the values are those of others, and the shardings those of the types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
from pullback import NamedSharding, P, errors, jit
from tests.grid.explicit_laws import MESH, divisions, entries_of, leaves, typed, values_of
from tests.grid.test_explicit_shardings import OPERATIONS
from tests.helpers import chosen

DEVICES = pullback.make_mesh((2, 3), ("x", "y"), axis_types=MESH.axis_types[:2])
RANDOM = {"eigenbasis", "singular_basis", "vectors_of_zeros", "random_wrap"}
"""Operations whose results are determined up to a choice, or have no NumPy equivalent."""


def cases(name: str) -> Any:
    """A row of an operation, its operands, and a way to shard them that is not refused."""
    for spec in OPERATIONS[name]:
        args = values_of(spec)
        if all(x.size for x in args):
            for division in divisions(args):
                try:
                    outs = leaves(spec.function, typed(args, division))
                except errors.ShardingTypeError:
                    continue
                yield spec, args, division, list(map(entries_of, outs))


# The laws of types are tested of all in tests/grid; these compile each twice over six devices.
@pytest.mark.parametrize("name", chosen(list(OPERATIONS)[::3], list(OPERATIONS)))
def test_values_are_those_of_arrays_on_one_device(name: str) -> None:
    spec, args, division, wanted = next(iter(cases(name)), (None, [], [], []))
    if spec is None:
        pytest.skip("it takes no sharded operands")
    plain = pullback.tree.leaves(jit(spec.function)(*args))
    operands = [pullback.device_put(x, NamedSharding(DEVICES, P(*e))) for x, e in zip(args, division, strict=True)]
    for f in (spec.function, jit(spec.function)):
        outs = pullback.tree.leaves(f(*operands))
        for out, entries, expected in zip(outs, wanted, plain, strict=True):
            assert out.sharding.spec == P(*entries)
            if name not in RANDOM:
                np.testing.assert_allclose(out, expected, rtol=2e-3, atol=2e-4)
