"""Axes of more than 2^31 elements: positions are right, or refused where the default integer does not hold them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import ShapeDtypeStruct, enable_x64, jit, lax, make_jaxpr
from pullback.core.errors import IndexRangeError

LONG = 2**31 + 8
POSITIONS: dict[str, Callable[[Any], Any]] = {
    "argmax": jnp.argmax, "argmin": jnp.argmin, "nanargmax": jnp.nanargmax, "nanargmin": jnp.nanargmin,
    "argsort": jnp.argsort, "argsort, descending": lambda x: jnp.argsort(x, descending=True),
    "argpartition": lambda x: jnp.argpartition(x, 3), "lexsort": lambda x: jnp.lexsort((x, x)),
    "lax.top_k": lambda x: lax.top_k(x, 2)[1], "lax.argmax": lambda x: lax.argmax(x, 0, dtype_of_positions()),
    "lax.argmin": lambda x: lax.argmin(x, 0, dtype_of_positions()),
    "searchsorted": lambda x: jnp.searchsorted(x, x[:2]),
    "digitize": lambda x: jnp.digitize(x[:2], x), "nonzero": lambda x: jnp.nonzero(x, size=2)[0],
    "flatnonzero": lambda x: jnp.flatnonzero(x, size=2), "argwhere": lambda x: jnp.argwhere(x, size=2),
    "where": lambda x: jnp.where(x, size=2)[0], "unique": lambda x: jnp.unique(x, return_index=True, size=2)[1],
    "unique's inverse": lambda x: jnp.unique(x, return_inverse=True, size=2)[1],
    "argmax of all": lambda x: jnp.argmax(x.reshape(8, -1)), "method": lambda x: x.argmax(),
    "approx_max_k": lambda x: lax.approx_max_k(x.astype("float32"), 2)[1],
}  # fmt: skip
"""Functions that return positions."""
ALWAYS_NARROW = {
    "lax.top_k",
    "approx_max_k",
    "nonzero",
    "flatnonzero",
    "argwhere",
    "where",
    "unique",
    "unique's inverse",
}
"""Those that count in 32 bits, whatever the switch: they refuse."""
ALWAYS_WIDE = {"searchsorted", "digitize"}
"""Those that return 64 bits where they need them, whatever the switch."""


def dtype_of_positions() -> str:
    return "int64" if pullback.config.jax_enable_x64 else "int32"


@pytest.mark.parametrize("name", POSITIONS)
def test_positions_that_do_not_fit_are_refused(name: str) -> None:
    x = ShapeDtypeStruct((LONG,), "int8")
    for wide in (False, True):
        with enable_x64(wide):
            if name in ALWAYS_NARROW or (not wide and name not in ALWAYS_WIDE):
                with pytest.raises(IndexRangeError, match=rf"goes up to {2**31 - 1}; enable 64-bit types.*enable_x64"):
                    make_jaxpr(POSITIONS[name])(x)
            else:
                assert make_jaxpr(POSITIONS[name])(x).out_avals[0].dtype == "int64"


def test_an_index_dtype_that_is_too_narrow_is_refused_eagerly_too() -> None:
    x = jnp.arange(200)
    for find in (lax.argmax, lax.argmin, jit(lax.argmax, static_argnums=(1, 2))):
        with pytest.raises(IndexRangeError, match="positions up to 199 do not fit i8"):
            find(x, 0, np.dtype("int8"))
    assert int(lax.argmax(x[:128], 0, "int8")) == 127


def test_a_large_python_integer_says_what_to_do() -> None:
    with pytest.raises(OverflowError, match="declare the argument static"):
        jit(lambda x, i: x[i])(jnp.arange(3), 2**31)
    x = jnp.arange(3.0)
    for beyond in (2**31, -(2**40), 2**70):  # positions out of range, as any other
        assert np.isnan(jnp.take(x, beyond))
        assert jnp.take(x, np.array([0, min(beyond, 2**62)]), mode="clip").tolist() == [0, 2.0 if beyond > 0 else 0.0]
        assert float(jnp.take(x, beyond, mode="wrap")) == min(beyond, 2**63 - 1) % 3


@pytest.mark.slow
def test_a_long_axis() -> None:
    whole = np.zeros(LONG, np.int8)
    n = LONG - 3
    whole[n] = 7
    x = jnp.asarray(whole)
    del whole
    for find in (jnp.argmax, jnp.nonzero, jnp.flatnonzero, jnp.argwhere, jnp.where):
        with pytest.raises(IndexRangeError):
            find(x)
    last = (lambda a: a[n], lambda a: a[-3], lambda a: jnp.take(a, n), lambda a: lax.dynamic_slice(a, (n,), (1,))[0])
    for read in last:
        assert int(read(x)) == 7
    assert int(jit(last[0])(x)) == 7
    assert jnp.take(x, np.array([n, 0])).tolist() == [7, 0]
    assert x[np.array([n, 0])].tolist() == [7, 0]
    with enable_x64():
        assert int(jnp.argmax(x)) == n
