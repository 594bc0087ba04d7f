"""The switches numpy_rank_promotion and numpy_dtype_promotion, eager and compiled."""

from __future__ import annotations

import functools
import operator
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import pullback
import pullback.numpy as pnp
from pullback import grad, jit, numpy_dtype_promotion, numpy_rank_promotion, scipy, vmap
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


def test_a_choice_between_operands_of_different_ranks_is_not_refused():
    """As in JAX."""
    with numpy_rank_promotion("raise"):
        for f in (lambda x, y: pnp.where(True, x, y), lambda x, y: pnp.where(x > 0, y, 1.0), pnp.array_equiv):
            for wrap in (lambda f: f, jit):
                wrap(f)(VECTOR, MATRIX)


@functools.cache
def names_in_the_catalogue():
    """What the calls of ``under_switches.txt`` use: arrays of several ranks and dtypes, and modules."""
    rng = np.random.default_rng(0)
    v, m, t = (pnp.asarray(rng.random(shape), "float32") for shape in ((16,), (4, 16), (2, 4, 16)))
    iv, i8 = pnp.arange(16, dtype="int32"), pnp.arange(16, dtype="int8")
    sq, im = m[:, :4] + 4 * pnp.eye(4, dtype="float32"), iv.reshape(4, 4) % 5
    modules = {
        "jnp": pnp, "jax": pullback, "lax": pullback.lax, "nn": pullback.nn, "random": pullback.random,
        "sig": scipy.signal, "st": scipy.stats, "sl": scipy.linalg, "sp": scipy.special, "ndi": scipy.ndimage,
        "si": scipy.interpolate, "sint": scipy.integrate, "sfft": scipy.fft, "vq": scipy.cluster.vq,
    }  # fmt: skip
    arrays = {
        "v": v, "m": m, "t": t, "iv": iv, "i8": i8, "u8": i8.astype("uint8"), "sq": sq, "im": im, "w4": v[:4],
        "bv": v > 0.5, "cv": v + 1j * v, "f16": v.astype("float16"), "key": pullback.random.key(0),
    }  # fmt: skip
    return modules | arrays


@pytest.mark.parametrize("switch", ["strict", "rank"])
def test_functions_of_ours_do_not_trip_over_the_switches(switch):
    """Each line of ``under_switches.txt`` is a call, and the switches under which JAX refuses it too."""
    names, wrong = dict(names_in_the_catalogue()), []
    override = {"strict": numpy_dtype_promotion("strict"), "rank": numpy_rank_promotion("raise")}[switch]
    lines = (Path(__file__).parent / "under_switches.txt").read_text().splitlines()
    assert len(lines) > 2000
    with override, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call, refused in (line.partition(" | ")[::2] for line in lines):
            try:
                eval(call, names)
            except (ShapeError, TypePromotionError) as error:
                if switch not in refused.split():
                    wrong.append(f"{call}: {error}")
            else:
                if switch in refused.split():
                    wrong.append(f"{call}: is refused by JAX")
    assert not wrong, "\n".join(wrong)


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
