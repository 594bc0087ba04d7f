"""Every operation that multiplies a tangent by a local derivative makes a zero of a zero under ``masked_zeros``.

So a new operation is masked too, or stands in the table of those that are not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from pullback import masked_zeros
from pullback.core import dtypes
from pullback.core.array import as_array, host_value
from pullback.core.config import enable_x64
from pullback.core.linear import LinearVar
from pullback.core.types import ZERO
from pullback.transforms.traces.linearize import linearize_flat
from tests.grid.all_specs import ALL, OF_PRIMITIVES
from tests.grid.specs import Spec
from tests.grid.test_grid import active, inexact
from tests.helpers import chosen

NOT_MASKED = {
    "sum_of_products": "a coefficient of Taylor mode",
    "lyapunov": "in the derivative of a function of matrices",
    "expm_frechet": "in the derivative of a function of matrices",
    "logm_frechet": "in the derivative of a function of matrices",
    "cofactors_along": "in the derivative of a determinant, a polynomial: it is finite for every finite matrix",
    **dict.fromkeys(
        (
            "matrix_function_along",
            "matrix_function_by_captured",
            "matrix_function_cotangent",
        ),
        "in the derivative of a function of matrices",
    ),
    "matrix_equation": "in the derivative of a function of matrices",
}
PROGRAMS = {
    "while": "its body is masked, operation by operation; NaN in its residuals changes its branches and indices too",
    "custom_vjp_linear": "the rule of a function, which multiplies the cotangents itself",
}


def rows(specs: list[Spec]) -> dict[str, list[Spec]]:
    """The rows of each operation that has derivatives."""
    found: dict[str, list[Spec]] = {}
    for spec in specs:
        if spec.derivative and spec.samples:
            found.setdefault(spec.operation, []).append(spec)
    return found


ROWS = chosen({name: kept[:2] for name, kept in rows(OF_PRIMITIVES).items()}, rows(ALL))


def undefined(x: Any) -> Any:
    """NaN in place of a local derivative; zeros beside a tangent, such as those that it is padded with, stay."""
    if not hasattr(x, "dtype") or not dtypes.is_inexact(x.dtype) or not host_value(x).any():
        return x
    return as_array(np.full(x.shape, np.nan, x.dtype))


def zeros(x: LinearVar) -> Any:
    return as_array(np.zeros(x.aval.shape, x.aval.dtype))


def products(node: LinearVar) -> Iterator[Any]:
    """The tangents of results, and the cotangents of operands, of zeros times NaN."""
    assert node.primitive is not None
    assert node.primitive.transpose_rule is not None
    args = [x if type(x) is LinearVar else undefined(x) for x in node.args]
    out = node.primitive.bind(*[zeros(x) if type(x) is LinearVar else x for x in args], **node.params)
    yield from out if node.primitive.multiple_results else [out]
    ct = zeros(node) if node.results is None else [zeros(x) for x in node.results]
    cts = node.primitive.transpose_rule(ct, *args, **node.params)
    yield from (c for c, x in zip(cts, args, strict=False) if type(x) is LinearVar and c is not None)


@pytest.mark.parametrize("operation", ROWS)
def test_zero_times_an_undefined_derivative_is_zero(operation: str) -> None:
    for spec in ROWS[operation]:
        with enable_x64(), masked_zeros():
            f, point, _ = active(spec, spec.derivative[0])
            _, tape = linearize_flat(f, lambda *xs, f=f: inexact(f(*xs)), point)
            for node in tape.nodes:
                name = node.primitive.name  # type: ignore[union-attr]
                if name not in NOT_MASKED and name not in PROGRAMS:
                    for x in products(node):
                        assert x is ZERO or not np.isnan(host_value(x)).any(), f"{name}, in the derivative of {spec}"


@pytest.mark.parametrize("name", NOT_MASKED)
def test_what_is_not_masked_is_not(name: str) -> None:
    spec = next(s for s in OF_PRIMITIVES if s.derivative and s.operation == name)
    with enable_x64(), masked_zeros():
        f, point, _ = active(spec, spec.derivative[0])
        _, tape = linearize_flat(f, lambda *xs: inexact(f(*xs)), point)
        found = [x for node in tape.nodes if node.primitive.name == name for x in products(node)]  # type: ignore[union-attr]
        assert any(np.isnan(host_value(x)).any() for x in found)
