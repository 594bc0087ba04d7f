"""What a gradient costs: its arithmetic, counted in the jaxpr, and its memory, traced."""

from __future__ import annotations

import gc
import math
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import grad, jvp, linearize, make_jaxpr, value_and_grad, vjp
from pullback.core.array import as_array
from pullback.core.jaxpr import ClosedJaxpr, Eqn
from pullback.transforms.traces.dce import dce_closed_jaxpr

# Arithmetic: Griewank and Walther, Evaluating Derivatives, section 4.6 (the cheap gradient principle) ----------------

# fmt: off
MOVES = frozenset((
    "broadcast_in_dim", "reshape", "transpose", "squeeze", "expand_dims", "rev", "roll", "pad", "concatenate", "slice",
    "iota", "gather", "dynamic_slice", "dynamic_update_slice", "convert_element_type", "copy", "stop_gradient",
    "select_n",
))
# fmt: on


def operations(eqn: Eqn) -> int:
    """The arithmetic operations of an equation."""
    name = eqn.primitive.name
    if name in MOVES:
        return 0
    if name == "dot_general":
        (contracted, _), _ = eqn.params["dimension_numbers"]
        shape = eqn.invars[0].aval.shape
        return 2 * eqn.outvars[0].aval.size * math.prod(shape[i] for i in contracted)
    if name.startswith(("reduce_", "arg", "cum", "scatter")):
        return eqn.invars[0].aval.size
    return sum(v.aval.size for v in eqn.outvars)


def cost(f: Callable[..., Any], *args: Any) -> int:
    """The arithmetic operations of a function, without those whose results nothing uses."""
    closed: ClosedJaxpr = make_jaxpr(f)(*args)
    needed, _ = dce_closed_jaxpr(closed, [True] * len(closed.out_avals), True)
    return sum(map(operations, needed.eqns))


def mlp(layers: int, width: int, batch: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    rng = np.random.RandomState(0)
    normal = lambda *shape: as_array((rng.standard_normal(shape) / math.sqrt(width)).astype(np.float32))

    def loss(params: Any, x: Any) -> Any:
        for w, b in params:
            x = jnp.tanh(x @ w + b)
        return jnp.sum(x)

    return loss, ([(normal(width, width), normal(width)) for _ in range(layers)], normal(batch, width))


def rosenbrock(x: Any) -> Any:
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def test_the_counter() -> None:
    assert cost(lambda x, y: jnp.sin(x) * y, jnp.ones(5), 2.0) == 10
    assert cost(lambda x, y: x @ y, jnp.ones((2, 3)), jnp.ones((3, 4))) == 2 * 2 * 3 * 4
    assert cost(lambda x: jnp.sum(x.T.reshape(2, 3)[1:]), jnp.ones((2, 3))) == 3
    assert cost(lambda x: (jnp.sin(x), x)[1], jnp.ones(5)) == 0


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "MLP of width 10": mlp(10, 10, 4),
    "MLP of width 128": mlp(10, 128, 32),
    "Rosenbrock": (rosenbrock, (jnp.linspace(-1.0, 1.0, 100),)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_gradient_costs_at_most_four_times_its_function(name: str) -> None:
    f, args = PROGRAMS[name]
    ratio = cost(grad(f), *args) / cost(f, *args)
    assert 1 < ratio <= 4, ratio


@pytest.mark.parametrize("name", PROGRAMS)
def test_value_and_tangent_cost_about_three_times_the_function(name: str) -> None:
    f, args = PROGRAMS[name]
    tangent = lambda *xs: jvp(f, xs, xs)
    assert cost(tangent, *args) / cost(f, *args) <= 3.2


# Memory ------------------------------------------------------------------------------------------------------------

SIZE = 100_000
BYTES = 4 * SIZE

# A step of a chain, how many arrays it must store for the backward pass, and how long the chains are.
STEPS: dict[str, tuple[Callable[[Any], Any], int, tuple[int, int, int]]] = {
    "tanh": (jnp.tanh, 1, (250, 500, 1000)),  # 1 - tanh(x)²
    "x sin x": (lambda x: x * jnp.sin(x), 3, (50, 100, 200)),  # cos x, x and sin x
    "linear": (lambda x: 0.99 * x + 0.01, 0, (250, 500, 1000)),
}


def chain(step: Callable[[Any], Any], length: int) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        for _ in range(length):
            x = step(x)
        return jnp.sum(x)

    return f


def memory(call: Callable[[], Any]) -> tuple[float, float, Any]:
    """The peak of what a call allocates and what is left after it, in bytes; and its result."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        result = call()
        now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak - before, now - before, result


@pytest.mark.slow
@pytest.mark.usefixtures("without_collector")
@pytest.mark.parametrize("name", STEPS)
def test_the_memory_of_a_gradient_is_that_of_its_residuals(name: str) -> None:
    step, stored, lengths = STEPS[name]
    x = jnp.linspace(0.1, 1.0, SIZE)
    grad(chain(step, 1))(x)
    peaks = []
    for length in lengths:
        peak, left, gradient = memory(lambda length=length: grad(chain(step, length))(x))
        residuals = stored * length * BYTES
        assert residuals <= peak <= 1.25 * residuals + (0 if stored else 12 * BYTES)
        assert left <= 1.75 * BYTES  # the gradient, and what Python keeps in pools of its own
        assert gradient.shape == x.shape
        del gradient
        peaks.append(peak)
    if stored:
        assert peaks[1] / peaks[0] == pytest.approx(2, rel=0.05)
        assert peaks[2] / peaks[1] == pytest.approx(2, rel=0.05)


@pytest.mark.usefixtures("without_collector")
def test_other_derivatives_free_their_memory_too() -> None:
    f = chain(jnp.tanh, 50)
    x = jnp.linspace(0.1, 1.0, SIZE)
    few = 2.5 * BYTES
    calls: dict[str, Callable[[], Any]] = {
        "value_and_grad": lambda: value_and_grad(f)(x),
        "vjp": lambda: vjp(f, x)[1](1.0),
        "linearize": lambda: linearize(f, x)[1](x),
        "jvp": lambda: jvp(f, (x,), (x,)),
        "grad of grad": lambda: grad(lambda x: jnp.sum(grad(f)(x)))(x),
        "make_jaxpr": lambda: make_jaxpr(grad(f))(x),
    }
    for name, call in calls.items():
        call()
        assert memory(call)[1] < few, name


@pytest.mark.usefixtures("without_collector")
def test_forward_mode_stores_nothing() -> None:
    x = jnp.linspace(0.1, 1.0, SIZE)
    peak, _, _ = memory(lambda: jvp(chain(jnp.tanh, 200), (x,), (x,)))
    assert peak < 10 * BYTES


@pytest.mark.usefixtures("without_collector")
def test_a_vjp_function_holds_its_residuals_as_long_as_it_lives() -> None:
    x = jnp.linspace(0.1, 1.0, SIZE)
    _, left, (_, pull) = memory(lambda: vjp(chain(jnp.tanh, 100), x))
    assert 100 * BYTES <= left <= 102 * BYTES
    tracemalloc.start()
    _, pull = vjp(chain(jnp.tanh, 100), x)
    pull(1.0)
    del pull
    assert tracemalloc.get_traced_memory()[0] < BYTES
    tracemalloc.stop()


@pytest.mark.usefixtures("without_collector")
def test_an_error_frees_what_was_recorded() -> None:
    x = jnp.linspace(0.1, 1.0, SIZE)

    def fails(x: Any) -> Any:
        return chain(jnp.tanh, 50)(x) + jnp.ones(3) + jnp.ones(2)

    def attempt() -> None:
        with pytest.raises(TypeError, match="shapes"):
            grad(fails)(x)

    attempt()
    gc.collect()
    assert memory(lambda: (attempt(), gc.collect()))[1] < 2 * BYTES
