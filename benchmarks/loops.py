"""What is measured of loops: a recurrent network, a short eager scan, and a loop of unknown length in reverse."""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy

from benchmarks.compiled import Task, _compiler
from benchmarks.libraries import Library
from benchmarks.problems import Call
from benchmarks.shared import normal as _normal

_WIDTH, _STEPS = 128, 1000


def _recurrent(library: Library) -> tuple[Callable[..., Any], Any, Any]:
    """A recurrent tanh network over a long sequence: the mean square of its states, parameters and the sequence."""
    np, scan = library.np, library.loops.scan

    def loss(parameters: Any, sequence: Any) -> Any:
        def step(state: Any, x: Any) -> Any:
            state = np.tanh(state @ parameters["state"] + x @ parameters["input"] + parameters["bias"])
            return state, state

        return np.mean(scan(step, np.zeros(_WIDTH), sequence)[1] ** 2)

    scale = _WIDTH**-0.5
    parameters = {
        "state": _normal(library, _WIDTH, _WIDTH, scale=scale, seed=0),
        "input": _normal(library, _WIDTH, _WIDTH, scale=scale, seed=1),
        "bias": library.array(numpy.zeros(_WIDTH, numpy.float32)),
    }
    return loss, parameters, _normal(library, _STEPS, _WIDTH, seed=2)


def recurrent_forward(library: Library) -> Task:
    """The compiled loss of the network."""
    loss, parameters, sequence = _recurrent(library)
    compiled = _compiler(library).compile(loss)
    return Task(lambda: compiled(parameters, sequence))


def recurrent_gradient(library: Library) -> Task:
    """Its compiled gradient."""
    loss, parameters, sequence = _recurrent(library)
    return Task(_compiler(library).gradient(loss, parameters, sequence))


def recurrent_trace_and_lower(library: Library) -> Task:
    """Tracing and lowering of the gradient, of a new function each time."""
    loss, parameters, sequence = _recurrent(library)
    transforms, numbers = library.transforms, itertools.count()
    transforms.config.update("jax_enable_compilation_cache", False)

    def lowered() -> Any:
        factor = 1 + 1e-6 * next(numbers)
        gradient = transforms.grad(lambda parameters, sequence: factor * loss(parameters, sequence))
        return transforms.jit(gradient).trace(parameters, sequence).lower()

    return Task(lowered, check=lambda: lowered().compile()(parameters, sequence))


def scan_eager(library: Library) -> Call:
    """The gradient of a scan of 100 small steps, eager, whose body is written anew in each call."""
    np, grad, scan = library.np, library.transforms.grad, library.loops.scan
    xs = _normal(library, 100)

    def call() -> Any:
        return grad(lambda c: scan(lambda c, x: (np.sin(c) * x, None), c, xs)[0])(0.5)

    return call


_POINTS, _SOLVER_STEPS = 100_000, 12


def solver_gradient(library: Library) -> Task:
    """The compiled gradient through a scalar solver for many points, which keeps its local Jacobian where it can."""
    np, transforms, loop = library.np, library.transforms, library.loops.fori_loop

    def root(a: Any, b: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            return x - (x**3 + b * np.sin(x) - a) / (3 * x**2 + b * np.cos(x) + 1)

        return loop(0, _SOLVER_STEPS, step, a)

    part = getattr(library.loops, "preaccumulate", lambda f: f)(root)
    gradient = transforms.jit(transforms.grad(lambda a, b: np.sum(transforms.vmap(part)(a, b) ** 2), (0, 1)))
    ends = (0.5, 2.0), (1.0, 2.0)
    points = [library.array(numpy.linspace(*pair, _POINTS, dtype=numpy.float32)) for pair in ends]
    return Task(partial(gradient, *points))


_CHECKPOINTS, _LENGTH = 64, 5000


def checkpointed_loop(library: Library, width: int) -> Task:
    """The compiled gradient of a loop whose length is not known beforehand, with 64 states kept."""
    np, loop = library.np, library.loops.checkpointed

    def loss(x: Any, length: Any) -> Any:
        def step(carry: Any) -> Any:
            i, x = carry
            return i + 1, np.sin(x) * 0.99 + 0.1

        return np.sum(loop(lambda carry: carry[0] < length, step, (0, x), _CHECKPOINTS)[1])

    gradient = library.transforms.jit(library.transforms.grad(loss))
    return Task(partial(gradient, _normal(library, width), _LENGTH))


def _pendulum(library: Library) -> tuple[Callable[..., Any], Any]:
    """The mean square of a damped pendulum's angle at 20 times, as a function of its parameters and start."""
    np, odeint = library.np, library.loops.odeint
    times = library.array(numpy.linspace(0.0, 10.0, 20).astype(numpy.float32))

    def motion(state: Any, t: Any, p: Any) -> Any:
        return np.stack([state[1], -p[0] * state[1] - p[1] * np.sin(state[0])])

    def loss(p: Any) -> Any:
        return np.mean(odeint(motion, p[2:], times, p, rtol=1e-5, atol=1e-5)[:, 0] ** 2)

    return loss, library.array(numpy.array([0.2, 4.0, 1.2, 0.0], numpy.float32))


def pendulum_gradient(library: Library) -> Task:
    """The compiled gradient of the pendulum, by the adjoint equation."""
    loss, parameters = _pendulum(library)
    return Task(_compiler(library).gradient(loss, parameters))


def pendulum_compile(library: Library) -> Task:
    """Tracing, lowering and compiling of that gradient, of a new function each time."""
    loss, parameters = _pendulum(library)
    transforms, numbers = library.transforms, itertools.count()
    transforms.config.update("jax_enable_compilation_cache", False)

    def compiled() -> Any:
        factor = 1 + 1e-6 * next(numbers)
        return transforms.jit(transforms.grad(lambda p: factor * loss(p))).trace(parameters).lower().compile()

    return Task(compiled, check=lambda: compiled()(parameters))
