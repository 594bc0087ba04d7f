"""What ``pullback bench`` measures, in one library: a program that runs by its path, in a process of its own.

``python -P workloads.py LIBRARY`` imports that library and NumPy. Each line on standard input is a list in JSON, and
each answer an object in JSON: ``["prepare", workload, mode, seconds]`` asks for the result, and ``["block", mode]`` for
the seconds of a call, over a block of about so many seconds.
"""

from __future__ import annotations

import gc
import importlib
import importlib.metadata
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from time import perf_counter
from types import SimpleNamespace
from typing import Any, NamedTuple, TextIO

import numpy

LIBRARIES = {"pullback": "Pullback", "jax": "JAX", "torch": "PyTorch", "autograd": "autograd"}
"""The packages that are measured, and their names in print."""
MOST_CALLS = 100_000


class Library(NamedTuple):
    """What a workload may use: transformations, NumPy's functions, and what makes an array and a scalar."""

    transforms: Any
    np: Any
    array: Callable[[Any], Any]
    scalar: Callable[[float], Any] = float
    jit: Callable[..., Any] | None = None
    wait: Callable[[Any], Any] = lambda result: result


Problem = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function, and its arguments."""


def loaded(name: str) -> Library:
    """Import a library."""
    if name in ("pullback", "jax"):
        library = importlib.import_module(name)
        jnp = importlib.import_module(f"{name}.numpy")
        return Library(library, jnp, jnp.asarray, jit=library.jit, wait=library.block_until_ready)
    if name == "torch":
        torch = importlib.import_module("torch")
        return Library(torch.func, torch, torch.from_numpy, torch.tensor)
    autograd = importlib.import_module("autograd")
    anp = importlib.import_module("autograd.numpy")
    make_jvp = importlib.import_module("autograd.differential_operators").make_jvp
    transforms = SimpleNamespace(
        grad=autograd.grad,
        hessian=autograd.hessian,
        jvp=lambda function, primals, tangents: make_jvp(function)(*primals)(*tangents),
    )
    return Library(transforms, anp, anp.asarray)


def normal(library: Any, *shape: int, scale: float = 1.0, seed: int = 0) -> Any:
    """Return an array of float32 normal random numbers, the same in every library."""
    numbers = numpy.random.default_rng(seed).normal(size=shape, scale=scale)
    return library.array(numbers.astype(numpy.float32))


def network(library: Any, width: int, batch: int, layers: int) -> tuple[Callable[..., Any], Any, Any]:
    """Return the loss of a tanh network, its parameters, and a batch of inputs."""
    np = library.np

    def loss(parameters: Any, x: Any) -> Any:
        for weight, bias in parameters:
            x = np.tanh(x @ weight + bias)
        return np.sum(x**2)

    parameters = [
        (
            normal(library, width, width, scale=1 / math.sqrt(width), seed=2 * layer),
            normal(library, width, scale=0.1, seed=2 * layer + 1),
        )
        for layer in range(layers)
    ]
    return loss, parameters, normal(library, batch, width, seed=2 * layers)


def rosenbrock(library: Any) -> Callable[[Any], Any]:
    """Return Rosenbrock's function."""
    np = library.np
    return lambda x: np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def sum_of_tanh_squared(library: Any) -> Callable[[Any], Any]:
    """Return the function of the Hessian-vector products."""
    np = library.np
    return lambda x: np.sum(np.tanh(x) ** 2)


# The workloads -------------------------------------------------------------------------------------------------------


def _add(library: Library) -> Problem:
    x = normal(library, 3)
    return lambda a, b: a + b, (x, normal(library, 3, seed=1))


def _chain(library: Library) -> Problem:
    np = library.np
    return lambda x, y: np.exp(-(x**2)) * np.sin(x) + 2.0 * y, (normal(library, 10**6), normal(library, 10**6, seed=1))


def _tanh(library: Library, order: int) -> Problem:
    function = library.np.tanh
    for _ in range(order):
        function = library.transforms.grad(function)
    return function, (library.scalar(2.0),)


def _network(library: Library, width: int, batch: int, layers: int) -> Problem:
    loss, parameters, x = network(library, width, batch, layers)
    grad = library.transforms.grad
    return lambda parameters, x: grad(loss)(parameters, x), (parameters, x)


def _hessian_vector(library: Library) -> Problem:
    f, grad, jvp = sum_of_tanh_squared(library), library.transforms.grad, library.transforms.jvp
    return lambda x, v: jvp(grad(f), (x,), (v,))[1], (normal(library, 30, 40), normal(library, 30, 40, seed=1))


def _hessian(library: Library) -> Problem:
    f, hessian = rosenbrock(library), library.transforms.hessian
    return lambda x: hessian(f)(x), (normal(library, 100),)


def _per_example(library: Library) -> Problem:
    loss, parameters, x = network(library, width=16, batch=64, layers=3)
    grad, vmap = library.transforms.grad, library.transforms.vmap
    return lambda parameters, x: vmap(grad(loss), (None, 0))(parameters, x), (parameters, x)


def _product(library: Library) -> Problem:
    return lambda a, b: a @ b, (normal(library, 512, 512), normal(library, 512, 512, seed=1))


PROGRAMS = {
    "pullback": "import pullback, pullback.numpy as np; pullback.grad(np.tanh)(2.0)",
    "jax": "import jax, jax.numpy as np; jax.grad(np.tanh)(2.0)",
    "torch": "import torch; torch.func.grad(torch.tanh)(torch.tensor(2.0))",
    "autograd": "import autograd, autograd.numpy as np; autograd.grad(np.tanh)(2.0)",
}
"""The programs of the workload ``start``."""

WORKLOADS: dict[str, tuple[str, Callable[[Library], Problem]]] = {
    "add": ("x + y, 3 floats", _add),
    "chain": ("exp(-x²) sin(x) + 2y, 1,000,000", _chain),
    "grad": ("derivative of tanh", lambda library: _tanh(library, 1)),
    "third": ("third derivative of tanh", lambda library: _tanh(library, 3)),
    "network": ("gradient, network of 10 x 10", lambda library: _network(library, 10, 4, 10)),
    "wide": ("gradient, network of 4 x 512", lambda library: _network(library, 512, 128, 4)),
    "hvp": ("Hessian-vector product", _hessian_vector),
    "hessian": ("Hessian, Rosenbrock of 100", _hessian),
    "examples": ("64 gradients by vmap", _per_example),
    "product": ("matrix product, 512 x 512", _product),
}
"""The workloads by name: their titles, and what makes their functions and arguments."""
CANNOT = {("autograd", "examples")}
"""What a library has no function for: autograd has no ``vmap``."""
START = ("start", "new process: import, derivative")
"""The workload that is a process of its own."""


# The process ---------------------------------------------------------------------------------------------------------


def leaves(tree: Any) -> list[Any]:
    """Return the arrays and numbers of a result."""
    if isinstance(tree, (tuple, list)):
        return [leaf for item in tree for leaf in leaves(item)]
    return [tree]


def fingerprint(result: Any) -> list[float]:
    """Return the size, the sum and the sum of magnitudes, by which results are compared."""
    arrays = [numpy.asarray(leaf, dtype=numpy.float64) for leaf in leaves(result)]
    return [
        float(sum(array.size for array in arrays)),
        float(sum(array.sum() for array in arrays)),
        float(sum(abs(array).sum() for array in arrays)),
    ]


def _prepared(library: Library, name: str, workload: str, mode: str) -> Callable[[], Any]:
    """Return the call of a workload, which waits for its result."""
    if workload == START[0]:
        return lambda: float(subprocess.run([sys.executable, "-c", PROGRAMS[name]], check=True).returncode)
    function, arguments = WORKLOADS[workload][1](library)
    if mode == "compiled":
        assert library.jit is not None
        function = library.jit(function)
    wait = library.wait
    return lambda: wait(function(*arguments))


def _seconds(call: Callable[[], Any], calls: int) -> float:
    """Return the seconds of a call, over a block of them."""
    gc.collect()
    start = perf_counter()
    for _ in range(calls):
        call()
    return (perf_counter() - start) / calls


def _warm(call: Callable[[], Any], seconds: float) -> int:
    """Call until caches are filled; return how many calls take so many seconds."""
    calls = 1
    while (each := _seconds(call, calls)) * calls < seconds / 2 and calls < MOST_CALLS:
        calls = min(MOST_CALLS, 10 * calls, max(1, round(seconds / each)))
    return calls


def serve(name: str, questions: TextIO, answers: TextIO) -> None:
    """Import a library, and answer each line of ``questions``."""
    library, prepared = loaded(name), dict[str, tuple[Callable[[], Any], int]]()

    def answer(question: list[Any]) -> dict[str, Any]:
        if question[0] == "block":
            return {"seconds": _seconds(*prepared[question[1]])}
        _, workload, mode, seconds = question
        call = _prepared(library, name, workload, mode)
        compared = fingerprint(call())
        prepared[mode] = call, _warm(call, seconds)
        return {"fingerprint": compared}

    print(json.dumps({"version": importlib.metadata.version(name)}), file=answers, flush=True)
    for line in questions:
        try:
            found = answer(json.loads(line))
        except Exception as error:  # whatever a library raises is its result
            found = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(found), file=answers, flush=True)


if __name__ == "__main__":
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is kept apart from the answers
    serve(sys.argv[1], sys.stdin, out)
