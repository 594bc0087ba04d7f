"""Operations that hold programs and are new to every transformation: all of these follow from their ``Feed``.

Their operands come in orders that no operation of the library has. Beside a type and a way to evaluate them they have
no rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import hessian, jacfwd, jvp, lax, make_jaxpr, random, vmap
from pullback.core.array import typeof
from pullback.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from pullback.core.lists import split_list
from pullback.core.trace import Primitive
from pullback.core.types import ShapedArray
from pullback.derivatives import jacobian_pattern, jet, laplacian
from pullback.errors import KeyReuseError
from pullback.experimental import checkify
from pullback.experimental.checkify import check
from pullback.random import key_reuse
from pullback.transforms.traces.lift import Fed, Feed, holds_programs
from pullback.transforms.traces.stage import stage_flat


def program(f: Callable[..., Any], *xs: Any) -> ClosedJaxpr:
    return stage_flat(f, lambda *args: list(map(jnp.asarray, f(*args))), list(map(typeof, xs)))


def operation(name: str, types: Callable[..., Any], run: Callable[..., Any], fed: Callable[..., Feed]) -> Primitive:
    p = Primitive(name, multiple_results=True, keeps_weak_type=False)
    p.abstract_eval(types)
    p.impl(lambda args, params: run(*args, **params))
    holds_programs(p, fed)
    return p


# A call --------------------------------------------------------------------------------------------------------------


def _fed_call(body: ClosedJaxpr) -> Feed:
    return Feed((body,), lambda fed: call_p.bind(*fed.groups[0], body=fed.programs[0]))


call_p = operation(
    "new_call",
    lambda *avals, body: body.out_avals,
    lambda *xs, body: jaxpr_as_fun(body)(*xs),
    _fed_call,
)


def call(f: Callable[..., Any], *xs: Any) -> Any:
    xs = tuple(map(jnp.asarray, xs))
    return call_p.bind(*xs, body=program(f, *xs))


# A choice, whose operands come before the number of the program ------------------------------------------------------


def _pick(*operands: Any, programs: tuple[ClosedJaxpr, ...]) -> Any:
    *xs, which = operands
    return lax.switch(which, [jaxpr_as_fun(p) for p in programs], *xs)


def _fed_pick(programs: tuple[ClosedJaxpr, ...]) -> Feed:
    count = len(programs[0].in_avals)
    return Feed(
        programs, lambda fed: pick_p.bind(*fed.groups[0], *fed.groups[1], programs=fed.programs), (count,), choice=1
    )


pick_p = operation("new_choice", lambda *avals, programs: programs[0].out_avals, _pick, _fed_pick)


def pick(which: Any, fs: Sequence[Callable[..., Any]], *xs: Any) -> Any:
    return pick_p.bind(*xs, which, programs=tuple([program(f, *xs) for f in fs]))


# A loop over rows: rows, then the carry, then constants; a step takes the carry, elements and constants --------------


def _fold(*operands: Any, body: ClosedJaxpr, counts: tuple[int, int], length: int) -> Any:
    rows, carry, consts = split_list(operands, *counts)

    def step(carry: Any, elements: Any) -> Any:
        outs = jaxpr_as_fun(body)(*carry, *elements, *consts)
        return outs[: len(carry)], outs[len(carry) :]

    carry, ys = lax.scan(step, carry, rows, length, reverse=True)
    return [*carry, *ys]


def _types_of_fold(*avals: ShapedArray, body: ClosedJaxpr, counts: tuple[int, int], length: int) -> list[ShapedArray]:
    carry, ys = split_list(body.out_avals, counts[1])
    return [*carry, *[a.update(shape=(length, *a.shape)) for a in ys]]


def _fed_fold(body: ClosedJaxpr, counts: tuple[int, int], length: int) -> Feed:
    def bind(fed: Fed) -> Any:
        rows, carry, consts = fed.groups
        return fold_p.bind(*rows, *carry, *consts, body=fed.programs[0], counts=(len(rows), len(carry)), length=length)

    return Feed((body,), bind, counts, (1, 0, 2), carried=1, rows=0, length=length, reverse=True)


fold_p = operation("new_loop", _types_of_fold, _fold, _fed_fold)


def fold(step: Callable[..., Any], row: Any, carry: Any, const: Any) -> Any:
    carry, const = jnp.asarray(carry), jnp.asarray(const)
    body = program(step, carry, row[0], const)
    return fold_p.bind(row, carry, const, body=body, counts=(1, 1), length=len(row))


# A loop with a test: the carry, then constants of the test, then constants of the steps -------------------------------


def _until(*operands: Any, body: ClosedJaxpr, test: ClosedJaxpr, counts: tuple[int, int]) -> Any:
    carry, limits, consts = split_list(operands, *counts)
    return lax.while_loop(
        lambda carry: jaxpr_as_fun(test)(*limits, *carry)[0], lambda carry: jaxpr_as_fun(body)(*carry, *consts), carry
    )


def _fed_until(body: ClosedJaxpr, test: ClosedJaxpr, counts: tuple[int, int]) -> Feed:
    def bind(fed: Fed) -> Any:
        carry, limits, consts = fed.groups
        return until_p.bind(
            *carry, *limits, *consts, body=fed.programs[0], test=fed.test, counts=(len(carry), len(limits))
        )

    return Feed((body,), bind, counts, (0, 2), carried=0, test=(test, (1, 0)))


until_p = operation("new_loop_with_test", lambda *avals, body, **params: body.out_avals, _until, _fed_until)


def until(test: Callable[..., Any], step: Callable[..., Any], carry: Sequence[Any], limit: Any, const: Any) -> Any:
    *carry, limit, const = map(jnp.asarray, (*carry, limit, const))
    return until_p.bind(
        *carry, limit, const, body=program(step, *carry, const), test=program(test, limit, *carry),
        counts=(len(carry), 1),
    )  # fmt: skip


# Forward transformations, and patterns -------------------------------------------------------------------------------

K = jnp.array([0.5, -1.5, 2.0])
ROWS = jnp.arange(1.0, 13.0).reshape(4, 3) / 7


def steps(x: Any, row: Any, k: Any) -> Any:
    return jnp.sin(x) * k + row, x * row


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    # with an operation of this file, and with one of the library's
    "call": (
        lambda x: call(lambda x, k: (jnp.sin(x) * k,), x, K)[0],
        lambda x: jnp.sin(x) * K,
    ),
    "choice": (
        lambda x: pick(jnp.int32(1), [lambda x, k: (x.sum() * k,), lambda x, k: (jnp.sin(x) * k,)], x, K)[0],
        lambda x: jnp.sin(x) * K,
    ),
    "loop": (
        lambda x: jnp.concatenate([y.ravel() for y in fold(steps, ROWS * x, x, K)]),
        lambda x: jnp.concatenate(
            [y.ravel() for y in lax.scan(lambda c, row: steps(c, row, K), x, ROWS * x, reverse=True)]
        ),
    ),
    "loop with a test": (
        lambda x: until(lambda n, i, x, y: (i < n,), lambda i, x, y, k: (i + 1, jnp.sin(y) * k, x), (0, K, x), 3, K)[1],
        lambda x: jnp.sin(jnp.sin(x) * K) * K,
    ),
}
X = jnp.array([0.3, -0.8, 1.2])
TANGENT = jnp.array([1.0, 0.5, -2.0])


def _jvp(f: Callable[[Any], Any]) -> Any:
    return jvp(f, (X,), (TANGENT,))


def _taylor(f: Callable[[Any], Any]) -> Any:
    value, coefficients = jet(f, (X,), ((TANGENT, X),))
    return [value, *coefficients]


def _batch(f: Callable[[Any], Any]) -> Any:
    return vmap(f, 1)(jnp.stack([X, TANGENT], 1))


def _laplacian(f: Callable[[Any], Any]) -> Any:
    return laplacian(lambda x: (f(x) ** 2).sum())(X)


@pytest.mark.parametrize("transformed", [_jvp, _taylor, _batch, _laplacian])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_forward_transformations(name: str, transformed: Callable[[Any], Any]) -> None:
    new, known = map(transformed, FUNCTIONS[name])
    for a, b in zip(pullback.tree.leaves(new), pullback.tree.leaves(known), strict=True):
        assert np.allclose(a, b, rtol=1e-4, atol=1e-5)


def test_the_laplacian_is_the_trace_of_the_hessian() -> None:
    f = lambda x: (FUNCTIONS["loop"][1](x) ** 2).sum()
    assert np.allclose(_laplacian(FUNCTIONS["loop"][0]), jnp.trace(hessian(f)(X)), rtol=1e-4)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_patterns(name: str) -> None:
    new, known = FUNCTIONS[name]
    expected = np.asarray(jacfwd(known)(X)) != 0
    np.testing.assert_array_equal(jacobian_pattern(new)(X).to_scipy().toarray(), expected)


def test_patterns_of_a_choice_that_depends_on_values() -> None:
    f = lambda x: pick((x[0] > 5).astype(int), [lambda x: (x * K,), lambda x: (x[::-1],)], x)[0]
    expected = np.eye(3, dtype=bool) | np.eye(3, dtype=bool)[::-1]
    np.testing.assert_array_equal(jacobian_pattern(f)(X).to_scipy().toarray(), expected)


@pytest.mark.parametrize("length", [4, 200_000])
def test_patterns_of_loops_whose_steps_differ(length: int) -> None:
    """One by one, or the fixed point for all of them."""
    rows = jnp.arange(length)
    step = lambda x, i, k: (jnp.where(i % 2 == 0, x * k, jnp.roll(x, 1)),)
    found = jacobian_pattern(lambda x: fold(step, rows, x, K)[0])(X).to_scipy().toarray()
    if length == 4:
        np.testing.assert_array_equal(found, np.asarray(jacfwd(lambda x: jnp.roll(x, 2))(X)) != 0)
    assert found.all() == (length > 4)


# Keys ----------------------------------------------------------------------------------------------------------------


def draw(key: Any) -> Any:
    return random.normal(key, ())


@pytest.fixture
def looking() -> Iterator[None]:
    with pullback.debug_key_reuse():
        yield


def drawn(x: Any, _: Any, key: Any) -> Any:
    return (x + draw(key),)


def split(key: Any, x: Any, _: Any) -> Any:
    following, own = random.split(key)
    return following, draw(own) * x


KEYS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    # that use each key once, and one of them twice
    "call": (
        lambda key: call(lambda k: (draw(k),), key),
        lambda key: call(lambda k: (draw(k), draw(k)), key),
    ),
    "call that returns it": (
        lambda key: draw(call(lambda k, x: (x, k), key, 1.0)[1]),
        lambda key: [draw(call(lambda k, x: (x, k), key, 1.0)[1]), draw(key)],
    ),
    "choice": (
        lambda key: pick(jnp.int32(0), [lambda k: (draw(k),), lambda k: (draw(k) + 1,)], key),
        lambda key: [pick(jnp.int32(0), [lambda k: (1.0,), lambda k: (draw(k),)], key), draw(key)],
    ),
    "loop, carried": (
        lambda key: fold(split, jnp.arange(3.0), key, 1.0),
        lambda key: fold(lambda key, x, _: (key, draw(key) * x), jnp.arange(3.0), key, 1.0),
    ),
    "loop, constants": (
        lambda key: fold(drawn, jnp.arange(1.0), 0.0, key),
        lambda key: fold(drawn, jnp.arange(2.0), 0.0, key),
    ),
    "loop, rows": (
        lambda key: fold(lambda x, key, _: (x + draw(key),), random.split(key, 3), 0.0, 1.0),
        lambda key: (lambda ks: [fold(lambda x, k, _: (x + draw(k),), ks, 0.0, 1.0), draw(ks[2])])(
            random.split(key, 3)
        ),
    ),
    "loop with a test": (
        lambda key: until(lambda n, x: (x < n,), lambda x, k: (x + 1,), (0.0,), 3.0, key) + [draw(key)],
        lambda key: until(lambda n, x: (x < n,), lambda x, k: (x + 1 + abs(draw(k)),), (0.0,), 3.0, key),
    ),
    "the test of a loop": (
        lambda key: until(lambda k, x: (x < 1 + 0 * draw(random.clone(k)),), lambda x, _: (x + 1,), (0.0,), key, 1.0),
        lambda key: until(lambda k, x: (x < 1 + 0 * draw(k),), lambda x, _: (x + 1,), (0.0,), key, 1.0),
    ),
}


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.usefixtures("looking")
def test_keys_that_are_used_twice(name: str) -> None:
    good, bad = KEYS[name]
    good(random.key(0))
    with pytest.raises(KeyReuseError):
        bad(random.key(0))
    key = random.key(0)
    known = [key_reuse.known_of(key)]
    key_reuse.ReuseRun({}).run(make_jaxpr(good)(key), known)
    with pytest.raises(KeyReuseError):
        key_reuse.ReuseRun({}).run(make_jaxpr(bad)(key), known)


# Checks --------------------------------------------------------------------------------------------------------------


def checked(x: Any, limit: float, what: str) -> Any:
    check(x < limit, what + " {}", x)
    return x


def stepping(x: Any, row: Any, k: Any) -> Any:
    return checked(x * k, 3, "step"), checked(row, 3, "row")


def counted(x: Any) -> Any:
    return until(lambda n, x: (checked(x, 5, "test") < n,), lambda x, k: (checked(x, 3, "step") + k,), (x,), 4.0, 3.0)


CHECKS: dict[str, tuple[Callable[[Any], Any], dict[float, str | None]]] = {
    # with what fails at some points
    "call": (lambda x: call(lambda x: (checked(x, 2, "x"),), x), {1.0: None, 3.0: "x 3.0"}),
    "choice": (
        lambda x: pick(
            (x > 5).astype(int), [lambda x: (checked(x, 2, "first"),), lambda x: (checked(x, 7, "second"),)], x
        ),
        {1.0: None, 3.0: "first 3.0", 6.0: None, 8.0: "second 8.0"},
    ),
    "loop": (
        lambda x: fold(stepping, jnp.arange(3.0), x, 2.0),
        {0.25: None, 0.5: "step 4.0", 4.0: "step 8.0"},
    ),
    "rows of a loop": (lambda x: fold(stepping, jnp.arange(3.0) * x, 0.0, 1.0), {1.0: None, 2.0: "row 4.0"}),
    "loop with a test": (counted, {1.0: None, 2.5: "test 5.5", 3.5: "step 3.5", 4.5: None, 7.0: "test 7.0"}),
}


@pytest.mark.parametrize("name", CHECKS)
def test_checks(name: str) -> None:
    f, expected = CHECKS[name]
    run = checkify.checkify(f)
    staged = jaxpr_as_fun(make_jaxpr(lambda x: pullback.tree.leaves(run(x)))(1.0))
    program = jaxpr_as_fun(make_jaxpr(f)(1.0))
    for x, message in expected.items():
        error, results = run(jnp.float32(x))
        wanted = None if message is None else f"{message} (`check` failed)"
        assert error.get() == wanted
        assert checkify.checkify(program)(jnp.float32(x))[0].get() == wanted
        code, *_ = staged(jnp.float32(x))
        assert bool(code) == (message is not None)
        if message is None:
            for a, b in zip(results, f(jnp.float32(x)), strict=True):
                assert np.allclose(a, b)


def test_a_test_that_cannot_fail_stays_where_it_is() -> None:
    f = lambda x: until(lambda n, x: (x < n,), lambda x, k: (checked(x, 3, "step") + k,), (x,), 4.0, 3.0)
    assert checkify.checkify(f)(jnp.float32(3.5))[0].get() == "step 3.5 (`check` failed)"
    assert checkify.checkify(f)(jnp.float32(2.5))[0].get() is None
    closed = make_jaxpr(lambda x: checkify.checkify(f)(x)[1])(2.5)
    (eqn,) = [e for e in closed.eqns if e.primitive is until_p]
    assert [e.primitive.name for e in eqn.params["test"].eqns] == ["lt"]
