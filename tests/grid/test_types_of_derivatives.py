"""Tangents have the dtypes of results, and cotangents those of operands, for numbers of 16 bits too.

Arithmetic promotes, so that a derivative rule that forgets a conversion shows only where a loop checks its carry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from all_specs import ALL
from specs import Spec

import pullback.numpy as jnp
from pullback import jvp, tree, vjp
from pullback.core import dtypes

NARROW = "hb"
CASES = [(spec, letter) for spec in ALL for letter in NARROW if letter in spec.dtypes and spec.derivative]


def of_inexact(spec: Spec, letter: str) -> tuple[Callable[..., Any], list[Any]]:
    """The inexact results of a row as a function of its inexact operands."""
    point = spec.point(letter)
    where = [i for i, x in enumerate(point) if dtypes.is_inexact(np.asarray(x).dtype)]
    if spec.differentiable is not None:
        where = [i for i in where if i in spec.differentiable]

    def f(*xs: Any) -> list[Any]:
        operands = list(point)
        for i, x in zip(where, xs, strict=True):
            operands[i] = x
        return [y for y in tree.leaves(spec.function(*operands)) if dtypes.is_inexact(y.dtype)]

    return f, [jnp.asarray(point[i]) for i in where]


@pytest.mark.parametrize(("spec", "letter"), CASES, ids=[f"{spec}-{letter}" for spec, letter in CASES])
def test_derivatives_have_the_types_of_values(spec: Spec, letter: str) -> None:
    f, xs = of_inexact(spec, letter)
    ones = lambda values: [jnp.ones(v.shape, v.dtype) for v in values]
    ys, ts = jvp(f, xs, ones(xs))
    cts = vjp(f, *xs)[1](ones(ys))
    assert [t.dtype for t in ts] == [y.dtype for y in ys]
    assert [ct.dtype for ct in cts] == [x.dtype for x in xs]
    assert [ct.shape for ct in cts] == [x.shape for x in xs]
