"""The random generator with state: JAX's figures, under transformations, and its children."""

from __future__ import annotations

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import grad, jit, new_ref, random, threefry_partitionable, tree, vmap
from pullback.experimental.random import StatefulPRNG, stateful_rng


def test_draws_are_those_of_jax() -> None:
    with threefry_partitionable(True):
        rng = stateful_rng(42)
        drawn = [rng.uniform(), *rng.random((2,)), *rng.normal(1.0, 2.0, 2)]
        np.testing.assert_allclose(drawn, [0.5302608, 0.72766423, 0.78786755, 1.864613, 2.1745276], rtol=1e-6)
        assert rng.integers(3, 9, size=4).tolist() == [7, 7, 6, 5]
        assert random.key_data(rng.key((2,)))[0].tolist() == [75273486, 3122212114]
        rng = stateful_rng(42)
        assert random.key_data(rng.spawn(2)[1]._base_key).tolist() == [1705926158, 899080142]
        assert random.key_data(rng.split(3)._base_key)[0].tolist() == [3187376881, 129218101]
        np.testing.assert_allclose(
            vmap(lambda g: g.uniform())(rng.split(3)), [0.10681784, 0.2974217, 0.07771683], rtol=1e-6
        )


def test_transformed_functions_advance_the_state() -> None:
    eager, compiled = stateful_rng(3), stateful_rng(3)
    draw = jit(compiled.normal)
    assert [draw().item() for _ in range(3)] == pytest.approx([eager.normal().item() for _ in range(3)], rel=1e-6)
    assert grad(lambda x: x * compiled.uniform())(2.0) == eager.uniform()
    assert int(compiled._counter[...]) == 4


def test_shapes_follow_from_the_operands() -> None:
    rng = stateful_rng(0, impl="rbg")
    assert rng.uniform(jnp.zeros(3), jnp.ones((2, 1))).shape == (2, 3)
    assert rng.integers(7, size=(2, 2)).shape == (2, 2)
    assert rng.random(dtype="float16").dtype == np.float16
    assert isinstance(tree.map(lambda x: x, rng), StatefulPRNG)


def test_without_a_seed_generators_differ() -> None:
    assert random.key_data(stateful_rng().key()).tolist() != random.key_data(stateful_rng().key()).tolist()


def test_a_seed_is_needed_under_transformations() -> None:
    """It would be part of the program, so that each call drew the same numbers."""
    draw = lambda x: x + stateful_rng().uniform()
    for call in (jit(draw), grad(draw), lambda x: vmap(draw)(x[None])):
        with pytest.raises(TypeError, match="stateful_rng needs a seed within a transformed function"):
            call(jnp.float32(1))


def test_a_generator_has_a_key_and_a_counter() -> None:
    with pytest.raises(ValueError, match=r"_base_key must be a key, .* got Array"):
        StatefulPRNG(jnp.zeros(2, "uint32"), new_ref(0))
    with pytest.raises(ValueError, match="_counter must be a reference to an integer, got 0"):
        StatefulPRNG(random.key(0), 0)  # type: ignore[arg-type]


def test_what_is_no_seed_is_refused() -> None:
    for seed in ("a", 1.5, [1]):
        with pytest.raises(TypeError, match="seed must be"):
            stateful_rng(seed)
