"""A case of an operation, and what is compared of it: its value, a tangent and a gradient."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

FAMILIES = (
    "convolution", "decompositions", "fourier", "jets", "lax", "nn_image", "numpy_rest", "random_keys", "random_rest",
    "scipy_linalg", "scipy_signal", "sparse", "special", "stats",
)  # fmt: skip
Arrays = tuple[Any, ...]


@dataclass(frozen=True)
class Case:
    """One call of an operation.

    Attributes:
      name: the operation, and after a space or a bracket what is special in the call.
      run: takes a library, with ``lax`` and ``numpy``, and arrays.
      operands: the arrays.
      x64: whether 64 bits are computed with.
      derivatives: whether a tangent and a gradient are compared, by the operands that are inexact.
      elementwise: whether each element of the operands is a case of its own.
    """

    name: str
    run: Callable[..., Any]
    operands: Arrays = ()
    x64: bool = False
    derivatives: bool = True
    elementwise: bool = False

    @property
    def operation(self) -> str:
        return re.split(r"[ (,]", self.name, maxsplit=1)[0]

    @property
    def points(self) -> int:
        """How many cases this is."""
        return max(np.size(x) for x in self.operands) if self.elementwise else 1


def real(*shape: int, lo: float = -1, hi: float = 1, seed: int = 0) -> np.ndarray[Any, Any]:
    """Numbers between two bounds, in single precision."""
    drawn = np.random.default_rng([*shape, int(10 * hi), seed]).uniform(lo, hi, shape)
    return drawn.astype(np.float32)


def both(*shape: int) -> np.ndarray[Any, Any]:
    """Complex numbers, in single precision."""
    return (real(*shape) + 1j * real(*shape, hi=2)).astype(np.complex64)


def leaves(out: Any) -> Iterator[Any]:
    """The arrays of a result: one, or tuples of them."""
    if isinstance(out, (tuple, list)):
        for x in out:
            yield from leaves(x)
    else:
        yield out


def weights(x: Any, shift: float = 0) -> np.ndarray[Any, Any]:
    """Weights for the elements of an array, no two of them alike."""
    return np.asarray(np.cos(np.arange(x.size) + shift).reshape(x.shape), x.dtype)


def quantities(lib: Any, case: Case) -> dict[str, Callable[[], list[Any]]]:
    """What is compared of a case: its results, their tangents, and the gradient of a weighted sum of them."""
    f = partial(case.run, lib)
    found: dict[str, Callable[[], list[Any]]] = {"value": lambda: list(leaves(f(*case.operands)))}
    moving = tuple(i for i, x in enumerate(case.operands) if np.asarray(x).dtype.kind in "fc")
    if not case.derivatives or not moving:
        return found

    def of_inexact(*given: Any) -> list[Any]:
        operands = list(case.operands)
        for i, x in zip(moving, given, strict=True):
            operands[i] = x
        return [x for x in leaves(f(*operands)) if x.dtype.kind in "fc"]

    def loss(*given: Any) -> Any:
        total = 0.0
        for x in of_inexact(*given):
            w = weights(lib.numpy.real(x))
            total = total + (lib.numpy.real(x) * w).sum()
            if x.dtype.kind == "c":
                total = total + (lib.numpy.imag(x) * np.sin(w)).sum()
        return total

    xs = [case.operands[i] for i in moving]
    found["tangent"] = lambda: lib.jvp(of_inexact, tuple(xs), tuple(weights(x, 1) for x in xs))[1]
    found["gradient"] = lambda: list(lib.grad(loss, tuple(range(len(xs))))(*xs))
    return found


def encoded(x: Any) -> list[Any]:
    """The type of an array and its elements, to as many digits as it holds; of complex ones the parts, one by one."""
    x = np.asarray(x)
    flat = np.ascontiguousarray(x).ravel()
    flat = flat.view(flat.real.dtype) if x.dtype.kind == "c" else flat
    if x.dtype.kind in "fcV":
        digits = 13 if flat.dtype == np.float64 else 8
        numbers = [float(f"{float(v):.{digits}g}") for v in flat]
    else:
        numbers = flat.tolist()
    return [f"{x.dtype}{list(x.shape)}", numbers]


def file_of(family: str) -> Path:
    return Path(__file__).with_name(f"{family}.json")


def known(family: str) -> dict[str, dict[str, list[Any]]]:
    """What is recorded: for each case, for each quantity, arrays as they are encoded."""
    recorded: dict[str, dict[str, list[Any]]] = json.loads(file_of(family).read_text())["cases"]
    return recorded
