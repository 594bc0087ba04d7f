"""Updates that read what they overwrite, in another shape: the compiler, left alone, reads what is overwritten."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import grad, jit, lax, random, vjp


def update(t: Any) -> Any:
    """Column 1 of the first two rows is replaced by what was in the first row."""
    return lax.dynamic_update_slice(t, jnp.sin(t.reshape(-1)[:2]).reshape(2, 1), (0, 1))


def lowered(x: Any) -> Any:
    return lax.linalg.triangular_solve(jnp.eye(3) + jnp.tril(jnp.ones((3, 3))), x, left_side=True, lower=True)


def by_index(s: Any) -> Any:
    """A scatter of one window, which the compiler makes one such update."""
    return s.reshape(2, 3).at[:, 1:].set(jnp.sin(s.reshape(-1)[:4].reshape(2, 2)))


def added(s: Any) -> Any:
    return s.reshape(2, 3).at[:, 1:].add(jnp.sin(s.reshape(-1)[:4].reshape(2, 2)))


def of_two(a: Any, b: Any) -> Any:
    return lax.dynamic_update_slice(a, jnp.sin(b[:2]).reshape(2, 1), (0, 1))


def step(c: Any, i: Any) -> tuple[Any, Any]:
    return update(jnp.sort(c.reshape(2, 3), 0).reshape(3, 2)), c[0]


ordered = lambda x: jnp.sort(x.reshape(2, 3), 0)
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "sort": lambda x: update(ordered(x).reshape(3, 2)),
    "product": lambda x: update((jnp.ones((2, 2)) @ x.reshape(2, 3)).reshape(3, 2)),
    "fft": lambda x: update(jnp.fft.fft(x.reshape(2, 3)).real.reshape(3, 2)),
    "reshaped by a lowering rule": lambda x: update(lowered(x)),
    "several shapes": lambda x: update(ordered(x).reshape(6).reshape(3, 1, 2).reshape(3, 2)),
    "by index": lambda x: by_index(jnp.sort(x, 0)),
    "added": lambda x: added(jnp.sort(x, 0)),
    "a function": lambda x: jit(update)(ordered(x).reshape(3, 2)),
    "a function of two shapes": lambda x: (lambda s: jit(of_two)(s.reshape(3, 2), s.reshape(6)))(ordered(x)),
    "the shape of a function": lambda x: update(jit(lambda s: s.reshape(3, 2))(ordered(x))),
    "scan": lambda x: lax.scan(step, x, jnp.arange(3))[0],
    "cond": lambda x: lax.cond(x[0, 0] < 9, lambda s: update(s.reshape(3, 2)), lambda s: s.reshape(3, 2), ordered(x)),
    "gradient": lambda x: grad(lambda x: (update(ordered(x).reshape(3, 2)) ** 2).sum())(x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_update_reads_what_was_there_before(name: str) -> None:
    f = PROGRAMS[name]
    x = jnp.arange(6.0).reshape(3, 2)
    assert np.allclose(jit(f)(x), f(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool", "complex64", "bfloat16", "float8_e4m3fn"])
def test_updates_of_every_kind_of_number(dtype: str) -> None:
    def f(x: Any) -> Any:
        t = lax.sort(x.reshape(2, 3), dimension=0).reshape(3, 2)
        return lax.dynamic_update_slice(t, lax.rev(t.reshape(-1)[:2], (0,)).reshape(2, 1), (0, 1))

    x = jnp.array([[3, 0], [1, 1], [0, 2]]).astype(dtype)
    assert (np.asarray(jit(f)(x)) == np.asarray(f(x))).all()


def test_updates_of_keys() -> None:
    def f(x: Any) -> Any:
        t = x[jnp.array([3, 0, 1, 5, 4, 2])].reshape(3, 2)
        return t.at[0:2, 1].set(t.reshape(-1)[:2])

    keys = random.split(random.key(0), 6)
    assert (random.key_data(jit(f)(keys)) == random.key_data(f(keys))).all()


def test_an_update_that_does_not_read_the_operand_is_done_in_place() -> None:
    """What is not in danger is written as it was: no loop."""
    f = lambda x, y: lax.dynamic_update_slice(ordered(x).reshape(3, 2), jnp.sin(y), (0, 1))
    x = jnp.ones((3, 2))
    assert "stablehlo.while" not in jit(f).lower(x, x[:2, :1]).as_text()
    assert "stablehlo.while" in jit(PROGRAMS["sort"]).lower(x).as_text()
    loop = lambda x: lax.fori_loop(0, 3, lambda i, c: c.at[i].set(c[i - 1] * 2), x)
    assert jit(loop).lower(x).as_text().count("stablehlo.while") == 1


def test_what_is_chosen_by_comparison_of_arguments_is_not_stored_first() -> None:
    """The weights of a maximum's cotangents are the same in every kernel, unless its operands were rounded there."""
    x, y = jnp.array([1.0, 2.0]), jnp.array([2.0, 2.0])
    gradients = lambda x, y: vjp(jnp.maximum, x, y)[1](x)
    assert "stablehlo.while" not in jit(gradients).lower(x, y).as_text()
    assert "stablehlo.while" in jit(lambda x, y: gradients(jnp.sin(x), y)).lower(x, y).as_text()
    called = lambda x: jit(lambda x, y: gradients(x, y)[0])(jnp.sin(x), x)
    assert "stablehlo.while" in jit(lambda x: called(called(x))).lower(x).as_text()
    assert [g.tolist() for g in jit(gradients)(x, y)] == [[0.0, 1.0], [1.0, 1.0]]
