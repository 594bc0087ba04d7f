"""``debug_key_reuse``: keys that are used twice are found, and others are left alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pullback
import pullback.numpy as pnp
from pullback import jit, lax, make_jaxpr, random, vmap
from pullback.errors import KeyReuseError
from pullback.experimental.key_reuse import key_reuse
from pullback.primitives.random.bits import random_clone_p
from pullback.random import key_reuse as rules


@pytest.fixture(autouse=True)
def looking() -> Iterator[None]:
    with pullback.debug_key_reuse():
        yield


def draw(key: Any) -> Any:
    return random.normal(key, ())


@pullback.custom_jvp
def ruled(key: Any) -> Any:
    return draw(key)


ruled.defjvp(lambda primals, tangents: (ruled(*primals), 0.0))


def both(f: Callable[[Any], Any], g: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda key: (f(key), g(key))


def steps(body: Callable[[Any, Any], Any], carry: Any, xs: Any = None, length: int | None = 3) -> Any:
    return lax.scan(body, carry, xs, length)


def turns(test: Any, body: Any) -> Callable[[Any], Any]:
    return lambda key: lax.while_loop(test, body, (key, 0.0))


def replaced(carry: Any, _: Any) -> Any:
    following, subkey = random.split(carry)
    return following, draw(subkey)


def pair(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of two keys."""
    return lambda key: f(random.split(key))


def one_of_three(f: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """A function of three keys, and of one of them: of the first two, which is known at run time alone, or the last."""

    def run(key: Any) -> Any:
        ks = random.split(key, 3)
        n = jit(lambda: pnp.asarray(1))()
        return f(ks, lax.cond(n > 2, lambda n: ks[2], lambda n: lax.dynamic_index_in_dim(ks[:2], n, 0, False), n))

    return run


def set_in_first(ks: Any) -> Any:
    """The first two of three keys, with the third in place of the first."""
    return ks[:2].at[0].set(ks[2])


PROGRAMS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    # what uses a key: a program without and one with a key that is used twice
    "functions": (draw, both(draw, random.uniform)),
    "split": (random.split, both(random.split, random.split)),
    "split and draw": (lambda k: draw(random.split(k)[0]), both(random.split, draw)),
    "fold_in": (
        both(lambda k: draw(random.fold_in(k, 1)), draw),
        lambda k: [draw(random.fold_in(k, 1)), draw(k), draw(k)],
    ),
    "key_data": (both(random.key_data, draw), lambda k: [random.key_data(k), draw(k), draw(k)]),
    "clone": (both(lambda k: draw(random.clone(k)), draw), lambda k: both(draw, draw)(random.clone(k))),
    "index": (pair(lambda ks: draw(ks[0]) + draw(ks[1])), pair(lambda ks: draw(ks[0]) + draw(ks[0]))),
    "unpack": (pair(lambda ks: list(map(draw, ks))), pair(lambda ks: [*map(draw, ks), draw(ks[1])])),
    "slice": (
        pair(lambda ks: draw(ks[0]) + vmap(draw)(ks[1:])),
        pair(lambda ks: draw(ks[0]) + vmap(draw)(ks[:1])),
    ),
    "set": (
        lambda k: vmap(draw)(set_in_first(random.split(k, 3))),
        lambda k: (lambda ks: [vmap(draw)(set_in_first(ks)), draw(ks[2])])(random.split(k, 3)),
    ),
    "beside what is set": (
        lambda k: (lambda ks: [draw(set_in_first(ks)[1]), draw(ks[2])])(random.split(k, 3)),
        lambda k: (lambda ks: [draw(set_in_first(ks)[1]), draw(ks[1])])(random.split(k, 3)),
    ),
    "reshape": (
        pair(lambda ks: vmap(vmap(draw))(ks.reshape(1, 2))),
        pair(lambda ks: [draw(ks.reshape(1, 2)[0, 1]), draw(ks[1])]),
    ),
    "reversed": (pair(lambda ks: draw(ks[::-1][0]) + draw(ks[0])), pair(lambda ks: draw(ks[::-1][0]) + draw(ks[1]))),
    "joined": (
        pair(lambda ks: vmap(draw)(pnp.concatenate([ks[1:], ks[:1]]))),
        pair(lambda ks: [vmap(draw)(pnp.concatenate([ks[1:], ks[:1]])), draw(ks[0])]),
    ),
    "stacked": (
        pair(lambda ks: vmap(draw)(pnp.stack([*ks]))),
        pair(lambda ks: [draw(pnp.stack([*ks])[0]), draw(ks[0])]),
    ),
    "chosen": (
        pair(lambda ks: draw(pnp.where(True, ks[0], ks[1]))),
        pair(lambda ks: [draw(lax.select(True, ks[0], ks[1])), draw(ks[0])]),
    ),
    "many copies": (
        lambda k: vmap(draw)(pnp.broadcast_to(k, (3,))),
        lambda k: [vmap(draw)(pnp.broadcast_to(k, (3,))), draw(k)],
    ),
    "placed": (lambda k: draw(pullback.device_put(k)), lambda k: [draw(pullback.device_put(k)), draw(k)]),
    "vmap": (pair(lambda ks: vmap(draw)(ks)), pair(lambda ks: [vmap(draw)(ks), draw(ks[1])])),
    "vmap of others": (
        lambda k: vmap(lambda x: x * draw(k))(pnp.ones(3)),
        lambda k: [vmap(lambda x: x * draw(k))(pnp.ones(3)), draw(k)],
    ),
    "grad": (
        lambda k: pullback.grad(lambda x: x * draw(k))(1.0),
        lambda k: [pullback.grad(lambda x: x * draw(k))(1.0), draw(k)],
    ),
    "jit": (lambda k: jit(draw)(k), lambda k: [jit(draw)(k), jit(draw)(k)]),
    "jit that returns it": (
        lambda k: draw(jit(lambda k: k)(k)),
        lambda k: draw(jit(lambda k: (draw(k), k))(k)[1]),
    ),
    "captured": (lambda k: jit(lambda x: x * draw(k))(1.0), lambda k: [jit(lambda x: x * draw(k))(1.0), draw(k)]),
    "call with rules": (
        lambda k: ruled(k),
        lambda k: [ruled(k), draw(k)],
    ),
    "checkpoint": (lambda k: pullback.checkpoint(draw)(k), lambda k: [pullback.checkpoint(draw)(k), draw(k)]),
    "cond": (
        lambda k: lax.cond(True, draw, random.uniform, k),
        lambda k: [lax.cond(True, lambda k: 1.0, draw, k), draw(k)],
    ),
    "cond that returns it": (
        pair(lambda ks: draw(lax.cond(True, lambda a, b: a, lambda a, b: b, *ks))),
        pair(lambda ks: [draw(lax.cond(True, lambda a, b: a, lambda a, b: b, *ks)), draw(ks[1])]),
    ),
    "cond that returns one of several, or another": (
        one_of_three(lambda ks, chosen: draw(chosen)),
        one_of_three(lambda ks, chosen: [draw(chosen), draw(ks[2])]),
    ),
    "switch": (
        lambda k: lax.switch(1, [draw, random.uniform, draw], k),
        lambda k: lax.switch(1, [draw, lambda k: draw(k) + draw(k), draw], k),
    ),
    "scan, carried": (lambda k: steps(replaced, k), lambda k: steps(lambda c, x: (c, draw(c)), k)),
    "scan, final carry": (
        lambda k: draw(steps(replaced, k)[0]),
        lambda k: [draw(steps(lambda c, x: (c, 0.0), k)[0]), draw(k)],
    ),
    "scan, from outside": (
        lambda k: steps(lambda c, i: (c, draw(random.fold_in(k, i))), 0.0, pnp.arange(3)),
        lambda k: steps(lambda c, x: (c + draw(k), x), 0.0),
    ),
    "scan, one step": (
        lambda k: steps(lambda c, x: (c + draw(k), x), 0.0, length=1),
        lambda k: [steps(lambda c, x: (c + draw(k), x), 0.0, length=1), draw(k)],
    ),
    "scan, over keys": (
        lambda k: steps(lambda c, x: (c, draw(x)), 0.0, random.split(k, 3)),
        pair(lambda ks: [steps(lambda c, x: (c, draw(x)), 0.0, ks, None), draw(ks[1])]),
    ),
    "scan, over more keys": (
        lambda k: (lambda ks: [steps(lambda c, x: (c, draw(x)), 0.0, ks[:3]), draw(ks[3])])(random.split(k, 4)),
        lambda k: (lambda ks: [steps(lambda c, x: (c, draw(x)), 0.0, ks), draw(ks[2])])(random.split(k, 3)),
    ),
    "scan, stacked": (
        lambda k: vmap(draw)(steps(lambda c, x: tuple(random.split(c)), k)[1]),
        lambda k: (lambda ks: [steps(lambda c, x: (c, draw(x)), 0.0, ks), vmap(draw)(ks)])(
            steps(lambda c, x: tuple(random.split(c)), k)[1]
        ),
    ),
    "while, carried": (
        turns(lambda c: c[1] < 3, lambda c: (replaced(c[0], 0)[0], c[1] + 1)),
        turns(lambda c: c[1] < 3, lambda c: (c[0], c[1] + 1 + abs(draw(c[0])))),
    ),
    "while, test": (
        lambda k: lax.while_loop(lambda c: c < draw(random.fold_in(k, 1)), lambda c: c + 1.0, 0.0),
        turns(lambda c: c[1] + draw(c[0]) < 3, lambda c: (c[0], c[1] + 1)),
    ),
    "while, test and body": (
        turns(lambda c: c[1] + draw(random.fold_in(c[0], 2)) < 3, lambda c: (random.split(c[0])[0], c[1] + 1)),
        turns(lambda c: c[1] + draw(c[0]) < 3, lambda c: (random.split(c[0])[0], c[1] + 1)),
    ),
    "fori_loop": (
        lambda k: lax.fori_loop(0, 3, lambda i, c: c + draw(random.fold_in(k, i)), 0.0),
        lambda k: lax.fori_loop(0, 3, lambda i, c: c + draw(k), 0.0),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_use_is_counted_once(name: str) -> None:
    """Eager, a program is refused; staged, its walk refuses it, which is what a call of it under ``jit`` asks."""
    good, bad = PROGRAMS[name]
    good(random.key(0))
    run = jit(bad) if name.startswith("cond") else bad  # eager, the other branch is not looked at
    message = r"takes a key that random\.\w+ has already used, at\n  File"
    with pytest.raises(KeyReuseError, match=message):
        run(random.key(0))
    key = random.key(0)
    rules.ReuseRun({}).run(make_jaxpr(good)(key), [rules.known_of(key)])
    with pytest.raises(KeyReuseError):
        rules.ReuseRun({}).run(make_jaxpr(bad)(key), [rules.known_of(key)])


def test_compiled() -> None:
    f = jit(lambda k, x: draw(k) * x)
    keys = random.split(random.key(0))
    f(keys[0], 1.0)
    f(keys[1], 1.0)
    with pytest.raises(KeyReuseError, match="has already used"):
        f(keys[1], 1.0)
    with pytest.raises(KeyReuseError):
        jit(lambda i: both(draw, random.bits)(random.key(i)))(0)
    with pytest.raises(KeyReuseError):  # an index that is not known: any key of the array
        jit(lambda ks, i: draw(ks[i]) + draw(ks[i + 1]))(random.split(random.key(0), 3), 0)
    twice = random.key(0)
    with pytest.raises(KeyReuseError):
        jit(lambda a, b: draw(a) + draw(b))(twice, twice)
    assert abs(f(random.key(0), 2.0) - 2 * draw(random.key(0))) < 1e-6


def test_donated_and_static_arguments() -> None:
    f = jit(lambda k, x, n: x + random.normal(k, (n,)), static_argnums=2, donate_argnums=1)
    key, x = random.key(0), pnp.zeros(3)
    f(key, x, 3)
    assert x.is_deleted()
    with pytest.raises(KeyReuseError):
        f(key, pnp.zeros(3), 3)


def test_with_other_switches() -> None:
    key = random.key(0)
    with pullback.debug_nans():
        draw(key)
        with pytest.raises(KeyReuseError):
            draw(key)
        with pytest.raises(FloatingPointError):
            pnp.log(pnp.array(-1.0))
    with pullback.disable_jit(), pytest.raises(KeyReuseError):
        jit(both(draw, draw))(random.key(0))
    with pullback.debug_key_reuse(False):
        draw(key)


def test_other_keys() -> None:
    words = random.PRNGKey(0)
    draw(words), draw(words)  # words are not looked at
    for impl in ("rbg", "unsafe_rbg"):
        with pytest.raises(KeyReuseError):
            both(draw, random.split)(random.key(0, impl=impl))
    draw(random.key(0)), draw(random.key(0))  # equal keys are not one
    keys = random.split(random.key(0), 5)
    vmap(draw)(keys[pnp.array([0, 2])])
    vmap(draw)(keys[1::2])
    with pytest.raises(KeyReuseError):
        vmap(draw)(keys[pnp.array([4, 2])])


@pytest.mark.parametrize(
    ("name", "args"),
    [("orthogonal", (3,)), ("permutation", (4,)), ("categorical", (pnp.zeros(3),)), ("beta", (1.0, 2.0)),
     ("multivariate_normal", (pnp.zeros(2), pnp.eye(2))), ("dirichlet", (pnp.ones(3),)), ("randint", ((), 0, 3)),
     ("multinomial", (5, pnp.array([0.4, 0.6]))), ("choice", (4, (2,), False)), ("poisson", (2.0,))],
)  # fmt: skip
def test_compositions_use_their_key_once(name: str, args: Any) -> None:
    key = random.key(0)
    getattr(random, name)(key, *args)
    with pytest.raises(KeyReuseError):
        random.bits(key)


def test_the_message_names_both_lines() -> None:
    key = random.key(0)
    first = random.uniform(key)
    with pytest.raises(KeyReuseError) as caught:
        random.split(key)
    text = str(caught.value)
    assert "random.split takes a key that random.uniform has already used" in text
    assert "first = random.uniform(key)" in text
    assert "random.clone" in text
    assert 0 <= first < 1
    assert isinstance(caught.value, TypeError)


def test_rules_are_an_open_table() -> None:
    assert key_reuse.of(random_clone_p) is not None
    assert key_reuse is rules.key_reuse


def test_arrays_that_are_gone_are_forgotten() -> None:
    before = len(rules._known)
    for _ in range(3):
        draw(random.key(0))
    assert len(rules._known) == before


def test_nothing_is_recorded_while_it_is_off() -> None:
    with pullback.debug_key_reuse(False):
        assert "random_use" not in str(make_jaxpr(draw)(random.key(0)))
    assert "random_use" in str(make_jaxpr(draw)(random.key(0)))


@pytest.mark.slow
def test_the_environment_sets_it() -> None:
    code = "import pullback; k = pullback.random.key(0); [pullback.random.bits(k) for _ in range(2)]"
    env = {**os.environ, "PULLBACK_DEBUG_KEY_REUSE": "1"}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert "KeyReuseError" in out.stderr
    pullback.config.update("jax_debug_key_reuse", False)
