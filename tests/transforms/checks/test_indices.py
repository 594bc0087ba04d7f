"""Indices that are out of range, where a switch makes them errors: eager, compiled, in loops and derivatives."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.image
import pullback.numpy as jnp
import pullback.ops
import pullback.scipy.ndimage
from pullback import check_indices, check_static_indices, checkpoint, config, grad, hessian, jit, lax, random, vmap
from pullback.core.config import override
from pullback.core.errors import ArgumentError, IndexCheckError, IndexingError, OutOfBoundsError
from pullback.experimental import checkify

x, m = jnp.arange(4.0), jnp.ones((2, 3))
i, neg, key = jnp.array([1, 7]), jnp.array(-7), random.key(0)
mesh, P = pullback.make_mesh((1,), ("a",)), pullback.P
SCOPE = {
    "P": P, "checkpoint": checkpoint, "grad": grad, "hessian": hessian, "i": i, "jit": jit, "jnp": jnp, "key": key,
    "lax": lax, "m": m, "mesh": mesh, "neg": neg, "np": np, "pullback": pullback, "random": random, "vmap": vmap,
    "x": x,
}  # fmt: skip

# An expression, and what the error says: the index, the axis and its size.
KNOWN = {
    "x[7]": (7, 0, 4),
    "x[-5]": (-5, 0, 4),
    "m[0, 3]": (3, 1, 3),
    "m[:, jnp.array([0, 5])]": (5, 1, 3),
    "m[..., None, -4]": (-4, 1, 3),
    "x[i]": (7, 0, 4),
    "x[np.array([9])]": (9, 0, 4),
    "x.at[9].set(1.0)": (9, 0, 4),
    "x.at[i].add(1.0)": (7, 0, 4),
    "x.at[-9].get()": (-9, 0, 4),
    "x.at[-1].get(wrap_negative_indices=False)": (-1, 0, 4),
    "x.at[i].multiply(2.0)": (7, 0, 4),
    "x.at[i].divide(2.0)": (7, 0, 4),
    "x.at[i].apply(jnp.sin)": (7, 0, 4),
    "jnp.take(x, i)": (7, 0, 4),
    "jnp.take(m, jnp.array([0, 5]), axis=1)": (5, 1, 3),
    "jnp.take_along_axis(x, i, 0)": (7, 0, 4),
    "jnp.put_along_axis(x, i, 1.0, 0, inplace=False)": (7, 0, 4),
    "grad(lambda x: x[i].sum())(x)": (7, 0, 4),
    "grad(lambda x: x[7])(x)": (7, 0, 4),
    "jit(lambda x: x[7])(x)": (7, 0, 4),
    "jit(grad(lambda x: x[i].sum()))(x)": (7, 0, 4),
    "checkpoint(lambda k: x[k])(7)": (7, 0, 4),
    "hessian(lambda x: (x[i] ** 2).sum())(x)": (7, 0, 4),
}
COMPUTED = {
    "lax.dynamic_slice(x, (3,), (2,))": (3, 0, 4),
    "lax.dynamic_update_slice(x, jnp.ones(2), (3,))": (3, 0, 4),
    "lax.dynamic_index_in_dim(x, 9)": (9, 0, 4),
    "jit(lambda x, i: x[i])(x, i)": (7, 0, 4),
    "jit(lambda x, i: x.at[i].set(0.0))(x, i)": (7, 0, 4),
    "jit(lambda x, i: jnp.take(x, i))(x, i)": (7, 0, 4),
    "jit(lambda x, i: jnp.take_along_axis(x, i, 0))(x, i)": (7, 0, 4),
    "jit(lambda x, i: lax.dynamic_slice(x, (i,), (2,)))(x, 3)": (3, 0, 4),
    "jit(lambda x, i: x[i], device='cpu')(x, i)": (7, 0, 4),
    "jit(lambda x, i: x + x[i].sum(), donate_argnums=0)(jnp.arange(4.0), i)": (7, 0, 4),
    "jit(lambda x, i: x[i], compiler_options={'xla_embed_ir_in_executable': True})(x, i)": (7, 0, 4),
    "jit(grad(lambda x, i: x[i].sum()))(x, i)": (7, 0, 4),
    "jit(vmap(lambda i: x[i]))(i)": (7, 0, 4),
    "vmap(lambda i: x[i])(i)": (7, 0, 4),
    "vmap(lambda i: x.at[i].set(0.0))(i)": (7, 1, 4),
    "lax.fori_loop(0, 6, lambda k, s: s + x[k], 0.0)": (4, 0, 4),
    "lax.scan(lambda s, k: (s + x[k], None), 0.0, jnp.arange(6))": (4, 0, 4),
    "lax.while_loop(lambda c: c[0] < 6, lambda c: (c[0] + 1, c[1] + x[c[0]]), (0, 0.0))": (4, 0, 4),
    "jit(lambda n: lax.fori_loop(0, n, lambda k, s: s + x[k], 0.0))(6)": (4, 0, 4),
    "jit(lambda p, k: lax.cond(p, lambda k: x[k], lambda k: 0.0, k))(True, 7)": (7, 0, 4),
    "grad(lambda y: lax.scan(lambda s, k: (s + y[k], None), 0.0, jnp.arange(6))[0])(x)": (4, 0, 4),
    "lax.map(lambda k: x[k], i)": (7, 0, 4),
    "pullback.shard_map(lambda x, i: x[i], mesh=mesh, in_specs=(P(), P()), out_specs=P())(x, i)": (7, 0, 4),
}
# What is within range, or says by its mode what it means; and functions that compute places of their own.
FINE = """
x[3] + x[-4] + x[jnp.array([0, -1])].sum() + x[1:9].sum()
x.at[7].get(mode="fill", fill_value=0.0)
x.at[7].set(1.0, mode="drop")
x.at[7].get(mode="clip")
jnp.take(x, 7, mode="clip") + jnp.take(x, 7, mode="wrap")
jnp.take(x, i, mode="fill")
jnp.take_along_axis(x, i, 0, mode="clip")
jit(lambda x, i: x.at[i].get(mode="fill"))(x, i)
jit(lambda x, i: x.at[i].add(1.0, mode="drop"))(x, i)
jit(lambda x, i: x[i % 4])(x, i)
lax.fori_loop(0, 4, lambda k, s: s + x[k], 0.0)
jit(lambda p, k: lax.cond(p, lambda k: x[k], lambda k: 0.0, k))(False, 7)
vmap(lambda p, k: lax.cond(p, lambda k: x[k], lambda k: 0.0, k))(jnp.array([True, False]), i)
jnp.interp(jnp.array([-1.0, 5.0]), x, x)
jnp.searchsorted(x, jnp.array([9.0, -1.0]))
jnp.quantile(x, jnp.array([0.0, 1.0]))
jnp.unique(x, size=6)
jnp.nonzero(x, size=6)
pullback.ops.segment_sum(x, jnp.array([0, 5, 1, 1]), num_segments=2)
jnp.bincount(jnp.array([1, 9]), length=3)
jit(grad(lambda x: jnp.sort(x).sum()))(x)
jnp.pad(x, 3, mode="reflect")
random.permutation(key, 5)
random.choice(key, x, (3,))
random.gamma(key, 2.0, (3,))
jnp.linalg.inv(jnp.eye(3))
pullback.nn.one_hot(jnp.array([1, 9]), 3)
pullback.scipy.ndimage.map_coordinates(m, [jnp.array([-1.0, 5.0]), jnp.array([0.0, 1.0])], order=1)
pullback.image.resize(m, (4, 6), "linear")
lax.associative_scan(jnp.add, x)
lax.reduce_window(x, 0.0, lax.add, (2,), (1,), "SAME")
""".strip().splitlines()


@pytest.mark.parametrize("text", [*KNOWN, *COMPUTED])
def test_the_error_says_which_where_and_how_large_the_axis_is(text: str) -> None:
    index, axis, size = {**KNOWN, **COMPUTED}[text]
    code = compile(f"\n\n{text}", "<the user's>", "eval")
    with check_indices(), pytest.raises(OutOfBoundsError) as found:
        eval(code, SCOPE)
    assert f"index {index} is out of bounds for axis {axis} with size {size}" in str(found.value)
    assert "<the user's>:3 (" in str(found.value)
    assert isinstance(found.value, IndexError)
    assert isinstance(found.value, ValueError)
    np.asarray(eval(code, SCOPE))  # off by default, also for what was compiled with the switch


@pytest.mark.parametrize("text", FINE)
def test_what_is_in_range_or_meant_is_none(text: str) -> None:
    with check_indices():
        found = eval(text, SCOPE)
    for got, expected in zip(pullback.tree.leaves(found), pullback.tree.leaves(eval(text, SCOPE)), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_a_position_from_the_end_is_quoted_as_it_was_written() -> None:
    with check_indices(), pytest.raises(OutOfBoundsError, match=r"-7 counts from the end"):
        jit(lambda i: x[i])(neg)


def test_static_indices_alone() -> None:
    """As JAX's switch has it: what is known in Python is looked at, and nothing is added to programs."""
    with check_static_indices():
        for text in ("x[7]", "x[i]", "x.at[9].set(1.0)", "jit(lambda x: x[7])(x)", "jnp.take_along_axis(x, i, 0)"):
            with pytest.raises(OutOfBoundsError):
                eval(text, SCOPE)
        assert jit(lambda x, i: x[i])(x, i).tolist() == [1.0, 3.0]
        assert x.at[7].get(mode="clip") == 3.0


def test_the_switches() -> None:
    assert not config.check_indices
    assert config.jax_check_static_indices is False
    assert config.jax_error_checking_behavior_oob == "ignore"
    with override("jax_error_checking_behavior_oob", "raise"), pytest.raises(IndexError, match="index 7"):
        jit(lambda x, i: x[i])(x, i)
    with pytest.raises(ArgumentError, match="must be one of"):
        config.update("jax_error_checking_behavior_oob", "yes")


def test_together_with_other_switches() -> None:
    with check_indices(), pullback.debug_nans(), pullback.debug_key_reuse():
        with pytest.raises(FloatingPointError):
            jnp.log(jnp.float32(-1.0))
        with pytest.raises(OutOfBoundsError):
            jit(lambda i: x[i])(i)
        with pytest.raises(OutOfBoundsError):
            vmap(lambda i: x[i])(i)
        assert jit(lambda i: x[i])(jnp.array([1, 2])).tolist() == [1.0, 2.0]
    assert math.isnan(jnp.log(jnp.float32(-1.0)))


def test_within_checkify_the_kinds_are_as_before() -> None:
    f: Any = checkify.checkify(lambda i: x[i], errors=checkify.index_checks)
    found = f(i)[0].get_exception()
    assert type(found) is IndexCheckError
    assert not isinstance(found, IndexingError)
    with pytest.raises(ValueError, match="errors must be a set"):
        checkify.checkify(jnp.sin, errors=frozenset({OutOfBoundsError}))


def test_the_message_of_a_file() -> None:
    with check_indices(), pytest.raises(OutOfBoundsError) as found:
        jit(lambda k: x[k])(7)
    assert re.search(r"test_indices\.py:\d+ \(<lambda>\)", str(found.value))
