"""Operations on constants, which the compiler evaluates by other code than the programs it makes, give the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback import jit, lax, tree
from pullback import numpy as jnp
from pullback.core import dtypes, traits
from pullback.core.config import enable_x64
from pullback.random import key_data
from tests.grid.all_specs import OF_PRIMITIVES
from tests.grid.specs import LETTERS
from tests.helpers import EXHAUSTIVE
from tests.primitives_of import all_primitives

PRIMITIVES = {p.name: p for p in all_primitives()}


def letters_of(spec: Any) -> list[str]:
    """The dtypes of a row: of whole numbers and booleans; in the exhaustive run all but those of two sizes."""
    return [x for x in spec.dtypes if (x not in "dD" if EXHAUSTIVE else np.dtype(LETTERS[x]).kind in "biu")]


def is_elementwise(spec: Any) -> bool:
    return spec.operation in PRIMITIVES and bool(traits.elementwise.of(PRIMITIVES[spec.operation]))


ROWS = [s for s in OF_PRIMITIVES if s.samples and letters_of(s) and (EXHAUSTIVE or is_elementwise(s))]
"""Those of elementwise operations: others are folded by the same code, element by element."""
EPS = {2: 1e-2, 4: 1e-5, 8: 1e-12, 1: 1.0}


def wide(x: Any) -> Any:
    x = np.asarray(key_data(x) if dtypes.is_key(x.dtype) else x)
    return x.astype(np.float64) if x.dtype.kind == "V" else x


@pytest.mark.parametrize("spec", ROWS, ids=str)
def test_constants_are_folded_right(spec: Any) -> None:
    letters = letters_of(spec)
    with enable_x64():
        points = [spec.point(letter) for letter in letters]
        run = lambda points: [spec.function(*map(jnp.asarray, args)) for args in points]
        found, expected = jit(lambda: run(points))(), jit(run)(points)
    for letter, a, b in zip(letters, found, expected, strict=True):
        for x, y in zip(map(wide, tree.leaves(a)), map(wide, tree.leaves(b)), strict=True):
            assert x.dtype == y.dtype
            eps = EPS[LETTERS[letter].itemsize // (2 if letter in "FD" else 1)] if x.dtype.kind in "fc" else 0
            size = np.abs(y)[np.isfinite(y)].max(initial=0) if eps else 0
            np.testing.assert_allclose(x, y, rtol=eps, atol=eps * size, err_msg=letter)


def edges(letter: str) -> Any:
    dtype = np.dtype(LETTERS[letter])
    if dtype.kind == "b":
        return np.array([False, True])
    info = np.iinfo(dtype)
    return np.array([info.min, info.min + 1, info.max // 2, info.max, 0, 1, 3, info.min // 2], dtype)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32"])
@pytest.mark.parametrize("operation", [lax.div, lax.rem])
def test_constants_divided_by_zero(dtype: str, operation: Any) -> None:
    """The compiler ended the process."""
    x, y = lax.full((2,), 5, dtype), lax.full((2,), 0, dtype)
    by_zero = jit(lambda: operation(lax.full((2,), 5, dtype), lax.full((2,), 0, dtype)))()
    np.testing.assert_array_equal(by_zero, operation(x, y))
    np.testing.assert_array_equal(by_zero, jit(operation)(x, y))


SPECS = {spec.operation: spec for spec in ROWS if is_elementwise(spec) and len(spec.samples) < 3}


@pytest.mark.parametrize("spec", SPECS.values(), ids=str)
def test_constants_at_the_edges_of_their_dtypes_are_folded_right(spec: Any) -> None:
    letters = [x for x in spec.dtypes if np.dtype(LETTERS[x]).kind in "biu"]
    with enable_x64():
        points = [np.meshgrid(*[edges(x)] * len(spec.samples)) for x in letters]
        run = lambda points: [spec.function(*map(jnp.asarray, args)) for args in points]
        found, expected = jit(lambda: run(points))(), jit(run)(points)
    for letter, a, b in zip(letters, found, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b), err_msg=letter)
