"""Programs go when nobody has them any more, with all that was made of them; what is kept on purpose is bounded."""

from __future__ import annotations

import gc
import types
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pullback
import pullback.numpy as jnp
from pullback import checkpoint, grad, hessian, jit, jvp, lax, linearize, make_jaxpr, vjp, vmap
from pullback.backends.compiler.client import Executable
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr
from pullback.core.linear import LinearProgram, LinearVar
from pullback.core.trace import Trace, Tracer
from pullback.custom_batching import custom_vmap
from pullback.custom_derivatives import linear_call
from pullback.experimental.ode import odeint
from pullback.transforms.checkpoint.checkpoint_policies import dots_saveable
from pullback.transforms.custom.custom_calls import CustomCall
from pullback.transforms.custom.linear_map import LinearMap
from pullback.transforms.jit.stages import Compiled, Lowered
from pullback.transforms.jit.traced import Traced
from pullback.transforms.traces import equal_programs
from tests.helpers import chosen

KINDS = (ClosedJaxpr, Jaxpr, Trace, Tracer, Executable, Compiled, Lowered, Traced, CustomCall, LinearMap, LinearVar)


def living() -> Counter[str]:
    """How many objects of each kind there are, and functions of this file."""
    for _ in range(3):  # an object that goes may be the last to refer to others
        gc.collect()
    found: Counter[str] = Counter()
    for x in gc.get_objects():
        if isinstance(x, KINDS):
            found[type(x).__name__] += 1
        elif type(x) is types.FunctionType and x.__module__ == __name__:
            found[x.__qualname__] += 1
    return found


def sine(i: int) -> Callable[..., Any]:
    return lambda x: jnp.sin(x) * float(i)


def with_jvp(i: int) -> Any:
    f = pullback.custom_jvp(sine(i))
    f.defjvp(lambda primals, tangents: (f(*primals), float(i) * jnp.cos(primals[0]) * tangents[0]))
    return f


def with_vjp(i: int) -> Any:
    f = pullback.custom_vjp(sine(i))
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (float(i) * jnp.cos(x) * ct,))
    return f


def with_vmap(i: int) -> Any:
    f = custom_vmap(sine(i))
    f.def_vmap(lambda size, batched, x: (f(x[0] if batched[0] else x) + jnp.zeros(size), True))
    return f


def with_rules(make: Callable[[int], Any]) -> Callable[[int], None]:
    def case(i: int) -> None:
        f = make(i)
        for g in (f, grad(f), hessian(f), lambda x: jvp(f, (x,), (x,)), grad(jit(f))):
            g(1.0)
            make_jaxpr(g)(1.0)
        for g in (f, grad(f)):
            vmap(g)(jnp.ones(2))
            make_jaxpr(vmap(g))(jnp.ones(2))
        jit(f)(1.0)
        jit(grad(f))(1.0)

    return case


def functions(i: int) -> None:
    f = sine(i)
    for g in (f, jit(f), checkpoint(f), checkpoint(f, policy=dots_saveable)):
        grad(g)(1.0)
        vmap(grad(g))(jnp.ones(2))
        jvp(g, (1.0,), (1.0,))
        vjp(g, 1.0)[1](1.0)
        linearize(g, 1.0)[1](1.0)
        hessian(g)(1.0)
        make_jaxpr(vmap(grad(g)))(jnp.ones(2))
    jit(grad(f))(1.0)


def called_by_its_own_program(i: int) -> None:
    def f(x: Any) -> Any:
        pullback.debug.callback(lambda v: (f, i), x)
        return pullback.pure_callback(lambda v: (v, f)[0], pullback.ShapeDtypeStruct((), "float32"), x)

    compiled = jit(f)
    compiled(1.0)
    jit(vmap(lambda x: pullback.pure_callback(lambda v: (v, compiled)[0], x, x, vmap_method="sequential")))(jnp.ones(2))


def linear(i: int) -> None:
    f = lambda x: linear_call(lambda r, x: x * r, lambda r, ct: ct * r, float(i), x)
    for g in (f, grad(f), jit(grad(f))):
        g(1.0)


def solve(i: int) -> None:
    f = lambda b: lax.custom_linear_solve(lambda x: x * (i + 1.0), b, lambda _, b: b / (i + 1.0), symmetric=True)
    for g in (f, grad(f), jit(grad(f))):
        g(1.0)


def failing(i: int) -> None:
    def f(x: Any) -> Any:
        return x * i if x > 0 else x

    for g in (jit(f), jit(grad(f)), vmap(f), lambda xs: lax.scan(lambda c, x: (f(x), x), 1.0, xs)):
        with pytest.raises(pullback.errors.ConcretizationTypeError):
            g(jnp.ones(2) if g is not jit else 1.0)


def looking_for_nans(i: int) -> None:
    with pullback.debug_nans():
        jit(sine(i))(1.0)
        grad(with_jvp(i))(1.0)
        with pytest.raises(FloatingPointError):
            jit(lambda x: jnp.log(x - i - 1.0))(0.0)
    with pullback.named_scope(f"scope{i}"):
        jit(grad(sine(i)))(1.0)


# Loops and branches that run eagerly are kept, up to a bound.


def reverse_while(i: int) -> Callable[..., Any]:
    step = sine(i)
    return lambda x: lax.while_loop(lambda c: c[1] < 3, lambda c: (step(c[0]), c[1] + 1), (x, 0))[0]


def reverse_fori(i: int) -> Callable[..., Any]:
    return lambda x: lax.fori_loop(0, (x * 0).astype(int) + 3, lambda j, c: jnp.sin(c) * float(i), x)


def scan(i: int) -> Callable[..., Any]:
    return lambda x: lax.scan(lambda c, _: (jnp.sin(c) * float(i), c), x, None, length=3)[0]


def checkpointed_scan(i: int) -> Callable[..., Any]:
    step = checkpoint(lambda c, _: (jnp.sin(c) * float(i), None), policy=dots_saveable)
    return lambda x: lax.scan(step, x, None, length=3)[0]


def branch(i: int) -> Callable[..., Any]:
    return lambda x: lax.cond(x > 0, sine(i), jnp.cos, x)


def root(i: int) -> Callable[..., Any]:
    def newton(f: Any, x: Any) -> Any:
        return lax.while_loop(lambda x: abs(f(x)) > 1e-2, lambda x: x - f(x) / (2 * x), x)

    return lambda a: lax.custom_root(lambda x: x * x - a * (i + 1.0), 1.0, newton, lambda g, y: y / g(1.0))


def ode(i: int) -> Callable[..., Any]:
    return lambda y: odeint(lambda y, t: -y * (i + 1.0), y, jnp.array([0.0, 0.1])).sum()


LOOPS = {f.__name__: f for f in (reverse_while, reverse_fori, scan, checkpointed_scan, branch, root, ode)}


def compiled(make: Callable[[int], Callable[..., Any]]) -> Callable[[int], None]:
    def case(i: int) -> None:
        jit(grad(make(i)))(1.5)
        make_jaxpr(vmap(grad(make(i))))(jnp.ones(2))

    return case


def eager(make: Callable[[int], Callable[..., Any]]) -> Callable[[int], None]:
    return lambda i: grad(make(i))(1.5)


CASES: dict[str, Callable[[int], None]] = {
    "functions": functions,
    "custom_jvp": with_rules(with_jvp),
    "custom_vjp": with_rules(with_vjp),
    "custom_vmap": with_rules(with_vmap),
    "callbacks": called_by_its_own_program,
    "linear_call": linear,
    "custom_linear_solve": solve,
    "errors": failing,
    "debugging": looking_for_nans,
    **{f"compiled {name}": compiled(make) for name, make in LOOPS.items()},
    **{f"eager {name}": eager(make) for name, make in LOOPS.items()},
}


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    pullback.clear_caches()
    gc.collect()
    gc.freeze()  # what there was before need not be looked at
    yield
    pullback.clear_caches()


def grows_by(case: Callable[[int], Any], count: int) -> Counter[str]:
    case(count)  # what is made once: constants, and programs of single operations
    pullback.clear_caches()
    case(count)  # and programs that are kept with functions of the library, which are always there
    before = living()
    for i in range(count):
        case(i)
    return living() - before


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_program_that_nobody_has_is_gone(name: str) -> None:
    assert not grows_by(CASES[name], 2)


@pytest.mark.parametrize("name", LOOPS)
def test_eager_loops_are_kept_up_to_a_bound(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equal_programs, "MAX_RECENT", 2)
    for i in range(4):
        grad(LOOPS[name](i))(1.5)
    assert len(equal_programs._recent) <= 2


def test_loops_that_run_again_and_again_are_kept() -> None:
    kept = []
    for _ in range(3):
        grad(scan(3))(1.0)
        gc.collect()
        kept.append(set(equal_programs._recent))
    assert kept[0]
    assert kept[0] == kept[1] == kept[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    chosen(
        ["functions", "custom_vjp", "eager reverse_while"],
        ["functions", "custom_jvp", "custom_vjp", "compiled reverse_while", "compiled scan", "eager reverse_while",
         "eager scan"],
    ),
)  # fmt: skip
def test_many_programs_are_gone(name: str) -> None:
    simple = {"functions": lambda i: jit(sine(i))(1.0), "custom_jvp": lambda i: jit(with_jvp(i))(1.0)}
    simple["custom_vjp"] = lambda i: jit(grad(with_vjp(i)))(1.0)
    assert not grows_by(simple.get(name, CASES[name]), 20)


def test_equal_bodies_are_one_program_until_nobody_asks_for_it() -> None:
    first, second = make_jaxpr(scan(3))(1.0), make_jaxpr(scan(3))(1.0)
    assert first.eqns[-1].params["jaxpr"] is second.eqns[-1].params["jaxpr"]
    grad(scan(3))(1.0)
    size = len(equal_programs._recent)
    grad(scan(3))(1.0)
    make_jaxpr(grad(scan(3)))(1.0)
    assert 0 < len(equal_programs._recent) == size
    living()
    assert not equal_programs._recent


def test_what_was_made_of_a_program_serves_the_next_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    make_jaxpr(grad(scan(5)))(1.0)
    transposed = []
    original = LinearProgram.transpose
    monkeypatch.setattr(
        LinearProgram, "transpose", lambda self, *args, **kw: transposed.append(self) or original(self, *args, **kw)
    )
    make_jaxpr(grad(scan(5)))(1.0)
    assert len(transposed) == 1  # the tape of the function; that of a step is at hand


# What is kept with a function ----------------------------------------------------------------------------------------


def test_a_function_that_wraps_another_has_programs_of_its_own() -> None:
    import functools

    def f(x: Any) -> Any:
        return x + 1

    jit(f)(1.0)

    @functools.wraps(f)  # which copies the attributes of the function
    def g(x: Any) -> Any:
        return x + 2

    assert float(jit(g)(1.0)) == 3.0
    assert float(jit(f)(1.0)) == 2.0


def test_equal_calls_of_jit_share_what_was_compiled() -> None:
    traced = []

    def f(x: Any) -> Any:
        traced.append(1)
        return x + 1

    jit(f)(1.0)
    jit(f)(1.0)
    assert len(traced) == 1


def test_functions_that_were_compiled_are_copied_and_pickled_without_their_programs() -> None:
    import copy
    import pickle

    rule = pullback.custom_jvp(module_level)
    rule.defjvps(lambda t, out, x: 2.0 * t)
    jit(rule)(1.0)
    jit(module_level)(1.0)
    assert pickle.loads(pickle.dumps(module_level)) is module_level
    other = copy.copy(rule)
    assert float(jit(other)(1.0)) == 2.0
    kept = vars(module_level)["__pullback_programs__"]
    assert kept.caches
    assert not pickle.loads(pickle.dumps(kept)).caches


def module_level(x: Any) -> Any:
    return 2.0 * x
