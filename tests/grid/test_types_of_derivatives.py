"""Tangents have the dtypes of results, and cotangents those of operands, for numbers of 16 bits too.

Arithmetic promotes, so that a derivative rule that forgets a conversion shows only where a loop checks its carry.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import jvp, make_jaxpr, tree, vjp
from pullback.core import dtypes
from tests.grid.all_specs import ALL, OF_PRIMITIVES
from tests.grid.specs import Spec
from tests.helpers import spread

NARROW = "hb"
ROWS_OF_PRIMITIVES = {id(spec) for spec in OF_PRIMITIVES}


def narrow(spec: Spec, number: int) -> list[str]:
    """The narrow dtypes of a row: of functions, which are made of primitives, one, in turn."""
    letters = [letter for letter in NARROW if letter in spec.dtypes and spec.derivative]
    return letters if id(spec) in ROWS_OF_PRIMITIVES else spread(letters, number, 1)


CASES = [(spec, letter) for number, spec in enumerate(ALL) for letter in narrow(spec, number)]


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


# Functions that take operands of several dtypes --------------------------------------------------------------------

PROMOTE = re.compile(r"(?!lax\.)\w+\.[^(]*\(")
OF_FUNCTIONS = [spec for spec in ALL if PROMOTE.match(str(spec)) and "f" in spec.dtypes and spec.derivative]
"""The rows of functions; operations themselves, and ``lax``'s functions, want one dtype."""


@pytest.mark.filterwarnings("ignore:x.at.* lose precision when they are converted:FutureWarning")
@pytest.mark.parametrize("spec", OF_FUNCTIONS, ids=map(str, OF_FUNCTIONS))
def test_operands_of_several_dtypes(spec: Spec) -> None:
    """What the function takes eagerly it takes while a program is staged, and derivatives have the types they should.

    One operand is of another kind or another width than the rest: NumPy promotes in operations, and staging does not.
    """
    f, xs = of_inexact(spec, "f")
    for i in range(len(xs) if len(spec.point("f")) > 1 else 0):
        for dtype in (jnp.complex64, jnp.float16):
            args = [x.astype(dtype) if k == i else x for k, x in enumerate(xs)]
            try:
                ys = f(*args)
            except (TypeError, ValueError) as error:
                if "takes operands of one dtype" in str(error):
                    raise
                continue
            ones = [jnp.ones(y.shape, y.dtype) for y in ys]
            ts = jvp(f, args, [jnp.ones(x.shape, x.dtype) for x in args])[1]
            assert [t.dtype for t in ts] == [y.dtype for y in ys]
            pull = lambda *args, ones=ones: vjp(f, *args)[1](ones)
            assert [ct.dtype for ct in pull(*args)] == [x.dtype for x in args]
            staged = make_jaxpr(lambda *args, pull=pull: (f(*args), pull(*args)))(*args)
            assert [v.aval.dtype for v in staged.jaxpr.outvars] == [x.dtype for x in [*ys, *args]]
