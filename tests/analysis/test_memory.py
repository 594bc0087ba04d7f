"""Profiles of memory: predicted, of compiled programs, and of eager code."""

import pytest

import pullback.numpy as jnp
from pullback import ShapeDtypeStruct, analysis, grad, lax
from pullback.core.errors import ArgumentError

W, X = jnp.ones((48, 48)) / 48, jnp.ones((600, 48))
SIZE = 600 * 48 * 4


def loss(w, x):
    for _ in range(6):
        x = jnp.tanh(x @ w)
    return jnp.sum(x)


def test_the_prediction_and_the_compiler_agree_and_name_the_line() -> None:
    kinds = [ShapeDtypeStruct(x.shape, x.dtype) for x in (W, X)]
    profile = analysis.memory_profile(grad(loss), measure="compiled")(*kinds)
    assert 0.85 < profile.predicted.peak / profile.measured.peak < 1.15
    assert 0.85 < max(profile.measured.live) / profile.measured.peak < 1.15
    for each in (profile.predicted, profile.measured):
        where, size = each.alive[0]
        assert where.startswith("test_memory.py:15")
        assert size >= 5 * SIZE
    assert profile.predicted.at.startswith("test_memory.py:1")
    assert "test_memory.py:15" in str(profile)
    assert profile._repr_html_().count("<svg") == 2


def test_an_eager_run_counts_the_arrays_that_are_alive() -> None:
    profile = analysis.memory_profile(loss, measure="eager")(W, X)
    assert 2 * SIZE <= profile.measured.peak <= 4 * SIZE  # a layer's product, its result, and perhaps a copy
    backwards = analysis.memory_profile(grad(loss), measure="eager")(W, X)
    assert backwards.measured.peak >= 6 * SIZE
    assert backwards.measured.alive[0][0] == "test_memory.py:15 loss"


def test_scopes_are_part_of_the_line() -> None:
    import pullback

    def named(w, x):
        with pullback.named_scope("encoder"):
            x = jnp.tanh(x @ w)
        return jnp.sum(jnp.tanh(x @ w))

    alive = analysis.memory_profile(grad(named))(W, X).predicted.alive
    assert any("[encoder]" in where for where, _ in alive)


def test_a_loop_holds_what_its_steps_keep() -> None:
    def looped(x):
        return jnp.sum(lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=40)[0])

    profile = analysis.memory_profile(grad(looped), measure="compiled")(X)
    assert 0.85 < profile.predicted.peak / profile.measured.peak < 1.15
    assert profile.measured.alive[0][1] >= 40 * SIZE


def test_what_it_does_not_take() -> None:
    with pytest.raises(ArgumentError, match="measure must be 'compiled', 'eager' or None, got 'gpu'"):
        analysis.memory_profile(loss, measure="gpu")
    with pytest.raises(ArgumentError):
        analysis.memory_profile(3)
