"""Which values are in memory at each operation of a program, against counts by hand."""

import pullback.numpy as jnp
from pullback import grad, jit, lax, make_jaxpr
from pullback.control.liveness import timeline

KB = 1000 * 4
X = jnp.ones(1000)


def peak(fun, *args):
    return timeline(make_jaxpr(fun)(*args)).peak


def test_a_value_that_only_fused_operations_read_is_never_in_memory() -> None:
    assert peak(lambda x: jnp.sum(x * 2 + 1) * 2, X) == 64  # the sum alone, aligned
    assert peak(lambda x: (x * 2 + 1) * 3, X) == 0


def test_an_expensive_value_with_two_readers_is_in_memory() -> None:
    def twice(f):
        def run(x):
            y = f(x)
            return jnp.sum(y), jnp.sum(y * x)

        return run

    assert peak(twice(lax.sin), X) == -(-KB // 64) * 64
    assert peak(twice(lambda x: x + 1), X) == 0


def test_products_read_their_operands_in_memory() -> None:
    w = jnp.ones((100, 100))
    found = timeline(make_jaxpr(lambda w: lax.dot(lax.tanh(w) + 1, w))(w))
    assert [v.aval.shape for v in found.alive(found.at)] == [(100, 100)]
    assert found.peak == -(-100 * 100 * 4 // 64) * 64


def test_values_of_the_backward_pass_are_alive_until_it_reads_them() -> None:
    w, x = jnp.ones((64, 64)), jnp.ones((512, 64))

    def loss(w, x, depth):
        for _ in range(depth):
            x = jnp.tanh(x @ w)
        return jnp.sum(x)

    four, eight = (peak(lambda w, depth=depth: grad(loss)(w, x, depth), w) for depth in (4, 8))
    assert eight - four == 4 * 512 * 64 * 4
    measured = jit(lambda w: grad(loss)(w, x, 8)).lower(w).compile().memory_analysis().temp_size_in_bytes
    assert abs(eight - measured) < 0.15 * measured


def test_a_loop_keeps_stacked_values_and_needs_the_memory_of_one_step() -> None:
    def loss(x):
        return jnp.sum(lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=50)[0])

    assert 50 * KB <= peak(grad(loss), X) <= 55 * KB
