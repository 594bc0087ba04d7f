"""Calls of all public functions of arrays with operands of many dtypes, for laws that hold for each function.

A valid call is that of ``test_bad_operands``, found by the function's signature; a new function is in the catalogue as
soon as it is public. Each row puts other operands in the place of those that are floats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as jnp
from pullback.core.array import Array
from pullback.primitives.elementwise import convert_element_type
from tests.laws.test_bad_operands import B, I, M, V, public_functions, valid_call

MODULES = [
    "lax", "lax.linalg", "nn", "numpy", "numpy.fft", "numpy.linalg", "ops", "random", "scipy.cluster.vq", "scipy.fft",
    "scipy.integrate", "scipy.linalg", "scipy.ndimage", "scipy.signal", "scipy.special",
]  # fmt: skip

CALLS: dict[str, tuple[Any, ...]] = {
    "numpy.linspace": (0.25, 1.5, 4), "numpy.geomspace": (0.5, 2.0, 4), "numpy.logspace": (0.5, 2.0, 4),
    "numpy.interp": (V, V, V), "numpy.average": (V, None, V), "numpy.cov": (M, V[:2]), "numpy.corrcoef": (M, V[:2]),
    "numpy.convolve": (V, V), "numpy.correlate": (V, V), "numpy.trapezoid": (V, V), "numpy.polyfit": (V, V, 1),
    "numpy.linalg.solve": (M, V[:2]), "numpy.linalg.lstsq": (M, V[:2]), "numpy.clip": (V, 0.25, 0.5),
    "numpy.quantile": (V, 0.5), "numpy.percentile": (V, 50.0), "numpy.searchsorted": (V, V), "numpy.digitize": (V, V),
    "numpy.where": (B, V, V), "numpy.select": ([B, ~B], [V, V], 0.5), "numpy.take": (V, I), "numpy.isin": (V, V),
    "numpy.insert": (V, 1, 0.5), "numpy.append": (V, V), "numpy.diff": (V, 1, -1, V[:1]), "numpy.gradient": (V, V),
    "numpy.unwrap": (V, None, -1, 0.5), "numpy.ediff1d": (V, V), "numpy.full": ((2,), 0.5),
    "numpy.full_like": (V, 0.5), "numpy.arange": (0.25, 2.0, 0.5), "numpy.histogram": (V, 3, (0.0, 2.0), V),
    "numpy.polydiv": (V, V), "numpy.polymul": (V, V), "numpy.polyval": (V, V), "numpy.heaviside": (V, 0.5),
    "numpy.nan_to_num": (V, True, 0.5, 1.5, 2.5), "numpy.pad": (V, 1, "constant"), "numpy.fill_diagonal": (),
    "numpy.isclose": (V, V), "numpy.allclose": (V, V), "numpy.union1d": (V, V), "numpy.cross": (V, V),
    "numpy.einsum": ("i,i", V, V), "numpy.matmul": (M, M), "numpy.ldexp": (V, I), "numpy.std": (V,),
    "numpy.histogram2d": (V, V, 2), "numpy.kron": (V, V), "numpy.maximum": (V, 0.5), "numpy.minimum": (V, 0.5),
    "lax.clamp": (0.25, V, 0.5), "lax.full": ((2,), 0.5), "lax.full_like": (V, 0.5), "lax.conv": (
        jnp.ones((1, 1, 3)), jnp.ones((1, 1, 2)), (1,), "VALID"
    ),
    "nn.elu": (V, 0.5), "nn.celu": (V, 0.5), "nn.leaky_relu": (V, 0.5), "nn.softmax": (V,), "nn.logsumexp": (V,),
    "nn.standardize": (V,), "nn.one_hot": (I, 3), "nn.dot_product_attention": (),
    "ops.segment_sum": (V, I, 3), "ops.segment_max": (V, I, 3), "ops.segment_min": (V, I, 3),
    "ops.segment_prod": (V, I, 3),
    "scipy.integrate.trapezoid": (V, V), "scipy.integrate.simpson": (V,), "scipy.signal.lfilter": (V, V, V),
    "scipy.signal.fftconvolve": (V, V), "scipy.signal.csd": (V, V), "scipy.signal.residue": (V[:1], V),
    "scipy.signal.residuez": (V[:1], V), "scipy.special.logsumexp": (V, None, V),
    "scipy.special.hyp1f1": (0.5, 1.5, V), "scipy.special.betainc": (0.5, 1.5, V),
    "scipy.linalg.solve": (M, V[:2]), "scipy.linalg.solve_triangular": (M, V[:2]), "scipy.linalg.toeplitz": (V, V),
}  # fmt: skip
"""Calls with more operands than those that are found."""

LEFT_OUT = {
    "numpy.empty_like": "its elements are any",
    "lax.empty": "its elements are any",
}


class Call(NamedTuple):
    """One call of a function: which operands stand where in the arguments."""

    name: str
    row: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    places: tuple[int, ...]

    @property
    def operands(self) -> list[Any]:
        return [self.arguments[i] for i in self.places]

    def __call__(self, operands: list[Any]) -> Any:
        arguments = list(self.arguments)
        for i, x in zip(self.places, operands, strict=True):
            arguments[i] = x
        return self.function(*arguments)


def _is_float(x: Any) -> bool:
    return type(x) is float or (isinstance(x, Array) and jnp.issubdtype(x.dtype, np.floating))


def is_operand(x: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return bool(x) and all(isinstance(y, Array) for y in x)
    return type(x) is float or isinstance(x, Array)


def cast(x: Any, dtype: str) -> Any:
    """Operands of floats in another dtype: integers are eight times as large, of uint32 up to 4,000,000,000."""
    if isinstance(x, (list, tuple)):
        return type(x)(cast(y, dtype) for y in x)
    if not _is_float(x):
        return x
    if dtype.startswith("weak "):
        return convert_element_type(cast(x, dtype.removeprefix("weak ")), np.dtype(dtype.removeprefix("weak ")), True)
    values = np.asarray(x, np.float64)
    if dtype == "uint32":
        values = np.round(4e9 * values / np.abs(values).max(initial=1e-9))
    elif dtype in ("int8", "uint8", "int32"):
        values = np.round(8 * values)
    elif dtype == "bool":
        values = values >= values.mean()
    return jnp.asarray(values.astype("float32" if "float" in dtype else dtype)).astype(dtype)


def in_python(x: Any, kind: type) -> Any:
    if isinstance(x, (list, tuple)):
        return type(x)(in_python(y, kind) for y in x)
    return kind(2.5) if _is_float(x) else x


MIXED = [
    ("uint32", "int8"), ("int8", "uint32"), ("float16", "int32"), ("bfloat16", "float16"), ("uint8", "int8")
]  # fmt: skip
DTYPES = [
    "float8_e5m2",
    "float8_e4m3fn",
    "float32",
    "weak float32",
    "weak int32",
    "float16",
    "bfloat16",
    "int8",
    "uint8",
    "int32",
    "uint32",
    "bool",
]


def _rows(operands: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    for dtype in DTYPES:
        yield dtype, [cast(x, dtype) for x in operands]
    for kind in (float, int, bool):
        yield f"a Python {kind.__name__}", [in_python(x, kind) for x in operands]
    if len(operands) < 2:
        return
    first, rest = operands[0], operands[1:]
    for a, b in (
        ("uint32", "int8"),
        ("int8", "uint32"),
        ("float16", "int32"),
        ("bfloat16", "float16"),
        ("uint8", "int8"),
    ):
        yield f"{a} beside {b}", [cast(first, a), *(cast(x, b) for x in rest)]
    for dtype in ("float16", "uint8"):
        for kind in (float, int):
            yield f"{dtype} beside a Python {kind.__name__}", [cast(first, dtype), *(in_python(x, kind) for x in rest)]
            yield f"a Python {kind.__name__} beside {dtype}", [in_python(first, kind), *(cast(x, dtype) for x in rest)]


def calls(module: str) -> Iterator[Call]:
    """The calls of all functions of a module."""
    for name, function in public_functions(module):
        if name in LEFT_OUT:
            continue
        try:
            arguments = CALLS.get(name) or valid_call(name, function)
        except ValueError:  # no signature
            continue
        places = tuple(i for i, x in enumerate(arguments) if is_operand(x))
        for row, operands in _rows([arguments[i] for i in places]):
            given = list(arguments)
            for i, x in zip(places, operands, strict=True):
                given[i] = x
            if places:
                yield Call(name, row, function, tuple(given), places)
