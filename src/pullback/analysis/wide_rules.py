"""The shadows of operations for which evaluation in wider numbers says nothing, or something else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.analysis.wide import Arithmetic, wider
from pullback.core import dtypes
from pullback.primitives.arrays.sorting import sort_p
from pullback.primitives.bits import reduce_precision_p
from pullback.primitives.discrete import bitcast_convert_type_p, nextafter_p
from pullback.primitives.random.rejection import random_binomial_p, random_gamma_p, random_poisson_p
from pullback.transforms.programs.placement import device_put_p, sharding_constraint_p


def _exact(arithmetic: Arithmetic, values: Any, wides: Any, outs: Sequence[Any], params: Any) -> list[Any]:
    """The results are exact, whatever the operands: bits, neighbours, random numbers."""
    return [arithmetic.widened(x) for x in outs]


def _same(arithmetic: Arithmetic, values: Any, wides: Sequence[Any], outs: Any, params: Any) -> Sequence[Any]:
    """The results are the operands, which the operation rounds or puts elsewhere."""
    return wides


for _primitive in (
    bitcast_convert_type_p, nextafter_p, random_binomial_p, random_gamma_p, random_poisson_p,
):  # fmt: skip
    wider(_primitive)(_exact)
for _primitive in (reduce_precision_p, device_put_p, sharding_constraint_p):
    wider(_primitive)(_same)


@wider(sort_p)
def _sort(
    arithmetic: Arithmetic, values: Sequence[Any], wides: Sequence[Any], outs: Sequence[Any], params: Any
) -> list[Any]:
    """The shadows move as their values do, also where a key's shadow would be in another position."""
    axis = params["dimension"]
    shape = values[0].shape
    along = [-1 if i == axis else 1 for i in range(len(shape))]
    positions = np.broadcast_to(np.arange(shape[axis]).reshape(along), shape)
    assert sort_p.host_rule is not None
    order = sort_p.host_rule(*values, positions, **params)[-1]
    return [
        arithmetic.moved(lambda x: np.take_along_axis(x, order, axis), x) if dtypes.is_inexact(y.dtype) else y
        for x, y in zip(wides, outs, strict=True)
    ]
