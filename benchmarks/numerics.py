"""What is measured of SciPy's functions, compiled: each function takes a ``Library`` and returns the task to time."""

import importlib
from typing import Any

import numpy

from benchmarks.compiled import Task, _compiler
from benchmarks.libraries import Library
from benchmarks.problems import special_function


def _scipy(library: Library, module: str) -> Any:
    return importlib.import_module(f"{library.transforms.__name__}.scipy.{module}")


def _task(library: Library, function: Any, *operands: Any) -> Task:
    compiled = _compiler(library).compile(function)
    return Task(lambda: compiled(*operands))


def special_values(library: Library, name: str) -> Task:
    """A special function of 10,000 numbers."""
    function, operands = special_function(library, name)
    return _task(library, function, *operands)


def derivative_in_a(library: Library) -> Task:
    """The derivative of the incomplete gamma function with respect to its parameter."""
    function, operands = special_function(library, "gammainc")
    return _task(library, library.transforms.grad(lambda a, x: library.np.sum(function(a, x))), *operands)


def exponential(library: Library) -> Task:
    """The exponential of a matrix."""
    x = numpy.random.default_rng(0).normal(size=(64, 64)) / 8
    return _task(library, _scipy(library, "linalg").expm, library.array(x.astype(numpy.float32)))


def conjugate_gradients(library: Library) -> Task:
    """The solution of equations with a dense symmetric matrix, whose condition is about 100."""
    rng = numpy.random.default_rng(0)
    q, _ = numpy.linalg.qr(rng.normal(size=(1000, 1000)))
    a = library.array(((q * numpy.geomspace(1, 100, 1000)) @ q.T).astype(numpy.float32))
    b = library.array(rng.normal(size=1000).astype(numpy.float32))
    cg = _scipy(library, "sparse.linalg").cg
    return _task(library, lambda a, b: cg(lambda x: a @ x, b)[0], a, b)


def minimum(library: Library) -> Task:
    """BFGS on the Rosenbrock function of 100 variables; from most points JAX's line search ends without a minimum."""
    minimize, np = _scipy(library, "optimize").minimize, library.np

    def rosenbrock(x: Any) -> Any:
        return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    start = library.array(numpy.full(100, 2, numpy.float32))
    return _task(library, lambda x: minimize(rosenbrock, x, method="BFGS", options={"maxiter": 300}).x, start)
