"""The switches numpy_rank_promotion and numpy_dtype_promotion, eager and compiled."""

from __future__ import annotations

import operator
import threading
import warnings

import numpy as np
import pytest

import pullback
import pullback.numpy as pnp
from pullback import grad, jit, numpy_dtype_promotion, numpy_rank_promotion, vmap
from pullback.errors import ShapeError, TypePromotionError

VECTOR, MATRIX = pnp.ones(3), pnp.ones((2, 3))
FUNCTIONS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
    "//": operator.floordiv,
    "<": operator.lt,
    "==": operator.eq,
    "maximum": pnp.maximum,
    "hypot": pnp.hypot,
    "logical_and": pnp.logical_and,
    "where": lambda x, y: pnp.where(True, x, y),
    "where, condition": lambda x, y: pnp.where(x > 0, y, 1.0),
    "isclose": pnp.isclose,
    "clip": pnp.clip,
    "select": lambda x, y: pnp.select([x > 0], [y]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("how", ["eager", "jit", "grad", "vmap"])
def test_operands_of_different_ranks_are_refused(name, how):
    def apply(x, y):
        f = FUNCTIONS[name]
        if how == "vmap":
            return vmap(f, in_axes=(None, 0))(x, pnp.ones((2, 2, 3)))
        if how == "grad":
            return grad(lambda x: pnp.sum(pnp.asarray(f(x, y), pnp.float32)))(x)
        return (jit(f) if how == "jit" else f)(x, y)

    with numpy_rank_promotion("raise"):
        with pytest.raises(ShapeError, match=r"operands of shapes .*\(3,\).* have different numbers of axes, and"):
            apply(VECTOR, MATRIX)
        apply(MATRIX, MATRIX)
        apply(1.0 if how != "grad" else MATRIX, MATRIX)
    apply(VECTOR, MATRIX)


def test_a_warning_at_the_users_line():
    with numpy_rank_promotion("warn"):
        with pytest.warns(UserWarning, match=r"add: operands of shapes \(3,\) and \(2, 3\) have different") as caught:
            out = VECTOR + MATRIX
        assert caught[0].filename == __file__
        assert out.shape == (2, 3)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert (MATRIX + 1.0).shape == (2, 3)
            assert (MATRIX + pnp.float32(1.0)).shape == (2, 3)


def test_rank_promotion_is_in_the_key_of_compiled_programs():
    f = jit(lambda x, y: x + y)
    f(VECTOR, MATRIX)
    with numpy_rank_promotion("raise"), pytest.raises(ShapeError):
        f(VECTOR, MATRIX)
    f(VECTOR, MATRIX)


def test_rank_promotion_is_a_threads_own():
    """And the quick operators come back when the last block ends."""
    quick = type(VECTOR).__add__
    failures = []

    def other():
        try:
            VECTOR + MATRIX
        except ShapeError as error:
            failures.append(error)

    with numpy_rank_promotion("raise"), numpy_rank_promotion("raise"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert not failures
    assert type(VECTOR).__add__ is quick


def test_rank_promotion_of_the_process():
    pullback.config.update("jax_numpy_rank_promotion", "raise")
    try:
        with pytest.raises(ShapeError):
            VECTOR * MATRIX
        with numpy_rank_promotion("allow"):
            assert (VECTOR * MATRIX).shape == (2, 3)
    finally:
        pullback.config.update("jax_numpy_rank_promotion", "allow")
    assert (VECTOR * MATRIX).shape == (2, 3)


def test_strict_promotion_refuses_mixed_arrays():
    f = jit(lambda x, y: x + y)
    ones, twos = pnp.ones(2), pnp.ones(2, pnp.float16)
    f(ones, twos)
    with numpy_dtype_promotion("strict"):
        for add in (operator.add, f):
            with pytest.raises(TypePromotionError, match="strict"):
                add(ones, twos)
            with pytest.raises(TypePromotionError, match="strict"):
                add(pnp.arange(2), 0.5)
            assert add(ones, 1).dtype == np.float32
            assert add(twos, 0.5).dtype == np.float16
            assert pnp.add(1, 0.5).dtype == np.float32
