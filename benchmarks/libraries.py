"""The libraries under measurement, each behind the same few names.

JAX's public names serve Pullback, JAX and ``torch.func`` as they are; autograd gets adapters of one line.
"""

import dataclasses
import importlib
import importlib.metadata
import operator
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

import numpy

from benchmarks.compilers import Compiler, JaxLike, Torch

OURS = "pullback"
TITLES = {
    OURS: "Pullback",
    "jax": "JAX",
    "torch": "torch.func",
    "autograd": "autograd",
    "torch-compile": "torch.compile",
    "torch-imperative": "imperative PyTorch",
    "equinox": "Equinox",
    "folx": "folx",
    "scipy": "SciPy",
}
PEERS = tuple(name for name in TITLES if name != OURS)


def _cores() -> int:
    """The cores that this process may use: so many threads have XLA's pool and NumPy's BLAS by default."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclasses.dataclass(frozen=True)
class Library:
    """What a workload may use.

    ``transforms`` holds ``grad``, ``jvp``, ``vjp``, ``vmap``, ``jacrev``, ``hessian`` and ``make_jaxpr``, as
    far as the library has them; ``np`` its NumPy functions; ``array`` makes its array of a NumPy array, and
    ``scalar`` of a Python float the scalar that its functions take; ``add`` is its addition. ``cold_start``
    is a program that prints the gradient of tanh at 2. A library that returns before its result is computed
    returns in ``wait_for`` the function that waits for results like the one that it is shown. ``compiler`` is how
    it compiles, if it does; ``loops`` has ``scan``, ``odeint``, and ``checkpointed(cond, body, init, slots)``, a while
    loop that keeps some states only in reverse mode, and ``preaccumulate``, as far as it has them; ``sparse`` makes a
    sparse matrix of elements, their rows and columns, and a shape; ``special`` has special functions; ``laplacian``
    makes of a function its Laplacian; ``threads`` says how many it computes with;
    within ``masked_zeros`` a cotangent of zero stays zero, if the library has that.
    """

    version: str
    transforms: Any
    np: Any
    array: Callable[[Any], Any]
    cold_start: str
    scalar: Callable[[float], Any] = float
    add: Callable[[Any, Any], Any] = operator.add
    wait_for: Callable[[Any], Callable[[Any], Any] | None] = lambda result: None
    compiler: Compiler | None = None
    loops: Any = None
    sparse: Callable[..., Any] | None = None
    special: Any = None
    laplacian: Callable[[Callable[[Any], Any]], Callable[[Any], Any]] | None = None
    threads: Callable[[], int] = _cores
    masked_zeros: Callable[[], AbstractContextManager[Any]] = nullcontext


def _jax_like(package: str) -> Library:
    """Pullback or JAX: the same code runs, only the import differs."""
    library = importlib.import_module(package)
    jnp = importlib.import_module(f"{package}.numpy")

    def odeint(*args: Any, **kwargs: Any) -> Any:
        return importlib.import_module(f"{package}.experimental.ode").odeint(*args, **kwargs)

    def sparse(elements: Any, rows: Any, columns: Any, shape: tuple[int, int]) -> Any:
        places = jnp.asarray(numpy.stack([rows, columns], 1))
        bcoo = importlib.import_module(f"{package}.experimental.sparse").BCOO
        return bcoo((jnp.asarray(elements), places), shape=shape, indices_sorted=True, unique_indices=True)

    return Library(
        version=getattr(library, "__version__", ""),
        transforms=library,
        np=jnp,
        array=jnp.asarray,
        cold_start=f"import {package} as jax, {package}.numpy as jnp; print(jax.grad(jnp.tanh)(2.))",
        compiler=JaxLike(package),
        loops=SimpleNamespace(scan=library.lax.scan, fori_loop=library.lax.fori_loop, odeint=odeint),
        sparse=sparse,
        special=importlib.import_module(f"{package}.scipy.special"),
    )


def _ours() -> Library:
    """Pullback: what is not compiled is finished when it returns."""
    import pullback
    from pullback.core import array
    from pullback.derivatives import preaccumulate

    def wait_for(result: Any) -> Callable[[Any], Any] | None:
        # Elements that are not in NumPy's memory are computed by a compiled program, or later.
        waits = any(map(is_absent, pullback.tree.leaves(result)))
        return pullback.block_until_ready if waits else None

    def is_absent(leaf: Any) -> bool:
        if not hasattr(array.ArrayImpl, "_host_value"):  # an older tree
            return bool(array.is_on_device(leaf))
        return isinstance(leaf, array.ArrayImpl) and not isinstance(leaf._host_value, numpy.ndarray | numpy.generic)

    def checkpointed(cond: Any, body: Any, init: Any, slots: int) -> Any:
        return pullback.lax.while_loop(cond, body, init, checkpoints=slots)

    def laplacian(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return pullback.derivatives.laplacian(function)

    library = _jax_like(OURS)
    library.loops.checkpointed = checkpointed
    library.loops.preaccumulate = preaccumulate
    return dataclasses.replace(library, wait_for=wait_for, laplacian=laplacian, masked_zeros=pullback.masked_zeros)


def _jax() -> Library:
    """JAX computes asynchronously: every timed call waits for its result."""
    import jax

    def wait_for(result: Any) -> Callable[[Any], Any]:
        # The method itself is the quickest way to wait, but only an array has it.
        return type(result).block_until_ready if isinstance(result, jax.Array) else jax.block_until_ready

    def laplacian(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda x: jax.numpy.trace(jax.hessian(function)(x))

    return dataclasses.replace(_jax_like("jax"), wait_for=wait_for, laplacian=laplacian)


def _folx() -> Library:
    """JAX with folx's forward Laplacian."""
    import folx

    def laplacian(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        forward = folx.forward_laplacian(function)
        return lambda x: forward(x).laplacian

    return dataclasses.replace(_jax(), version=importlib.metadata.version("folx"), laplacian=laplacian)


def _equinox() -> Library:
    """JAX with Equinox's while loop, which keeps some states only in reverse mode."""
    from equinox.internal import while_loop

    def checkpointed(cond: Any, body: Any, init: Any, slots: int) -> Any:
        return while_loop(cond, body, init, kind="checkpointed", checkpoints=slots)

    version = importlib.metadata.version("equinox")
    return dataclasses.replace(_jax(), version=version, loops=SimpleNamespace(checkpointed=checkpointed))


def _torch() -> Library:
    """PyTorch's function transformations; on a processor they return finished results."""
    import torch

    return Library(
        version=torch.__version__,
        transforms=torch.func,
        np=torch,
        array=torch.from_numpy,
        cold_start="import torch; print(torch.func.grad(torch.tanh)(torch.tensor(2.)).item())",
        scalar=torch.tensor,
        threads=torch.get_num_threads,
    )


def _torch_stateful(compiles: bool) -> Library:
    """PyTorch as it is mostly used, with or without ``torch.compile``."""
    return dataclasses.replace(_torch(), compiler=Torch(compiles))


def _autograd() -> Library:
    """HIPS autograd, which has no ``vmap`` and stages nothing."""
    import autograd
    import autograd.numpy as anp
    from autograd.differential_operators import make_jvp, make_vjp

    def vjp(function: Callable[..., Any], point: Any) -> tuple[Any, Callable[[Any], tuple[Any]]]:
        pullback, value = make_vjp(function)(point)
        return value, lambda cotangent: (pullback(cotangent),)

    return Library(
        version=importlib.metadata.version("autograd"),
        transforms=SimpleNamespace(
            grad=autograd.grad,
            hessian=autograd.hessian,
            jacrev=autograd.jacobian,
            jvp=lambda function, primals, tangents: make_jvp(function)(*primals)(*tangents),
            vjp=vjp,
        ),
        np=anp,
        array=anp.asarray,
        add=anp.add,  # its arrays are NumPy's, whose + it never sees outside a derivative
        cold_start="import autograd, autograd.numpy as np; print(autograd.grad(np.tanh)(2.))",
    )


def _scipy() -> Library:
    """SciPy's sparse matrices, by NumPy."""
    import scipy.sparse
    import scipy.special

    def sparse(elements: Any, rows: Any, columns: Any, shape: tuple[int, int]) -> Any:
        return scipy.sparse.coo_array((elements, (rows, columns)), shape=shape)

    return Library(scipy.__version__, None, numpy, numpy.asarray, cold_start="", sparse=sparse, special=scipy.special)


LOADERS: Mapping[str, Callable[[], Library]] = {
    OURS: _ours,
    "jax": _jax,
    "torch": _torch,
    "autograd": _autograd,
    "torch-compile": lambda: _torch_stateful(True),
    "torch-imperative": lambda: _torch_stateful(False),
    "equinox": _equinox,
    "folx": _folx,
    "scipy": _scipy,
}
