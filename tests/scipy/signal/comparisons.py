"""Comparisons of results with SciPy's, and of derivatives with differences, for the tests of signals."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import jit, jvp, tree, vmap
from pullback.test_util import check_grads


def close(found: Any, expected: Any, tolerance: float = 1e-11) -> None:
    """Raise unless results, arrays or sequences of them, have the same shapes and values."""
    found, expected = ((v if isinstance(v, (tuple, list)) else (v,)) for v in (found, expected))
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def derivatives(f: Any, *args: Any, compiled: bool = False) -> None:
    """Raise unless derivatives of both modes are differences; compiled and mapped values are the eager ones."""
    arrays = tuple(map(jnp.asarray, args))
    check_grads(f, arrays, 1, eps=1e-6, rtol=1e-5, atol=1e-5)
    if not compiled:
        return
    expected = tree.leaves(f(*arrays))
    close(tree.leaves(jit(f)(*arrays)), expected)
    close([v[1] for v in tree.leaves(vmap(f)(*(jnp.stack([x, x]) for x in arrays)))], expected)


def by_formula(f: Any, *args: Any) -> Any:
    """Return the values of a function of which derivatives are taken."""
    arrays = tuple(map(jnp.asarray, args))
    return jvp(f, arrays, tuple(map(jnp.ones_like, arrays)))[0]
