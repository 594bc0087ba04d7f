"""What holds for functions of real arrays: compiled and mapped values are the eager ones, and derivatives agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import jit, vmap
from pullback.test_util import check_grads
from tests.helpers import EXHAUSTIVE


def check_laws(
    f: Callable[..., Any],
    args: Sequence[Any],
    theirs: Callable[..., Any] | None = None,
    *,
    tolerance: float = 1e-12,
    order: int = 2 if EXHAUSTIVE else 1,
    precision: float = 1e-5,
) -> None:
    """Check a function with 64 bits.

    Args:
      f: from arrays of real numbers to an array.
      args: the arrays, of NumPy.
      theirs: the same function of NumPy's arrays, by an anchor.
      tolerance: the largest difference of values, relative and absolute.
      order: how often derivatives by all arrays are compared with differences, in both modes: by default twice in the
        exhaustive run, and else once.
      precision: the largest difference there.
    """
    arrays = tuple(map(jnp.asarray, args))
    out = f(*arrays)
    close = lambda found, expected: np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    if theirs is not None:
        close(out, theirs(*args))
    close(jit(f)(*arrays), out)
    rng = np.random.default_rng(0)
    moved = tuple(x + 1e-3 * rng.standard_normal(x.shape) for x in arrays)
    batch = tuple(jnp.stack([x, y]) for x, y in zip(arrays, moved, strict=True))
    close(vmap(f)(*batch), np.stack([out, f(*moved)]))
    check_grads(f, arrays, order, eps=1e-5, rtol=precision, atol=precision)
