"""Every kind of derivative, of every operation, beside constants that are not zero.

All that ``derivatives`` offers, and all modes, give for every row of the table what nested forward mode gives: in all
operands together, in each alone, and in all but one. Sizes differ in every dimension; chunks do not divide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from derivative_cases import Case, cases, columns, vector

import pullback.numpy as jnp
from pullback import hessian, jacfwd, jacrev, jvp, linearize, masked_zeros, vjp, vmap
from pullback.core.array import as_array, host_value
from pullback.derivatives import (
    derivative_tensor,
    hessian_pattern,
    hvp,
    jacobian_pattern,
    jet,
    jvp_from_vjp,
    laplacian,
    preaccumulate,
    sparse_hessian,
    sparse_jacobian,
    vjp_from_jvp,
)

CHUNK = 2


def close(got: Any, expected: Any, tolerance: float = 1e-9) -> None:
    """Equal arrays of NumPy's, within a part of the largest element; what is not finite is so in both."""
    assert got.shape == expected.shape
    scale = np.abs(expected[np.isfinite(expected)]).max(initial=0)
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance * max(scale, 1e-3))


def matrix(blocks: Any, case: Case) -> Any:
    """A Jacobian, as ``jacfwd`` returns it, as a matrix."""
    rows = [
        np.concatenate([host_value(b).reshape(y.size, x.size) for b, x in zip(row, case.point, strict=True)], 1)
        for row, y in zip(blocks, case.results, strict=True)
    ]
    return np.concatenate([np.zeros((0, case.size)), *rows])


# First derivatives -------------------------------------------------------------------------------------------------------


def differences(case: Case) -> None:
    """The derivative along a direction, and the second one, by differences that are extrapolated to order 4."""
    v = [host_value(x) for x in case.directions(0)]
    at = lambda h: vector(case(*[as_array(np.asarray(x + h * t)) for x, t in zip(map(host_value, case.point), v)]))
    here = vector(case.results)
    first = [(at(h) - at(-h)) / (2 * h) for h in (1e-3, 5e-4)]
    flat = vector(v)
    close(case.jacobian @ flat, (4 * first[1] - first[0]) / 3, 1e-6)
    if case.second:
        second = [(at(h) - 2 * here + at(-h)) / h**2 for h in (2e-3, 1e-3)]
        close(case.second_derivatives @ flat @ flat, (4 * second[1] - second[0]) / 3, 1e-4)


def first_order(case: Case) -> None:
    v, u = case.directions(1), case.cotangents()
    out, pushed = jvp(case, case.point, v)
    expected = case.jacobian @ vector(v)
    close(vector(out), vector(case.results), 0)
    close(vector(pushed), expected)
    _, linear = linearize(case, *case.point)
    close(vector(linear(*v)), expected)
    _, pull = vjp(case, *case.point)
    close(vector(pull(u)), vector(u) @ case.jacobian)


def in_chunks(case: Case) -> None:
    for jacobian in (jacfwd, jacrev):
        close(matrix(jacobian(case, case.argnums, chunk_size=CHUNK)(*case.point), case), case.jacobian)


def with_masked_zeros(case: Case) -> None:
    v, u = case.directions(1), case.cotangents()
    with masked_zeros():
        close(vector(jvp(case, case.point, v)[1]), case.jacobian @ vector(v))
        close(vector(vjp(case, *case.point)[1](u)), vector(u) @ case.jacobian)


def other_modes(case: Case) -> None:
    v, u = case.directions(1), case.cotangents()
    for method in ("transpose", "basis"):
        chunk = CHUNK if method == "basis" else None
        reverse = vjp_from_jvp(lambda *xs: case(*xs), method, chunk)
        close(vector(vjp(reverse, *case.point)[1](u)), vector(u) @ case.jacobian)
        forward = jvp_from_vjp(lambda *xs: case(*xs), method, chunk)
        close(vector(jvp(forward, case.point, v)[1]), case.jacobian @ vector(v))


def preaccumulated(case: Case) -> None:
    v, u = case.directions(1), case.cotangents()
    f = preaccumulate(lambda *xs: case(*xs))
    close(vector(jvp(f, case.point, v)[1]), case.jacobian @ vector(v))
    close(vector(vjp(f, *case.point)[1](u)), vector(u) @ case.jacobian)


# Patterns ------------------------------------------------------------------------------------------------------------


def contains(pattern: Any, dense: Any) -> None:
    """A pattern has all elements that are not zero."""
    there = np.asarray(pattern.todense()) if hasattr(pattern, "todense") else np.asarray(pattern)
    assert there.shape == dense.shape
    assert not (dense != 0)[~there.astype(bool)].any()


def patterns(case: Case) -> None:
    for local in (False, True):
        contains(jacobian_pattern(case, case.argnums, local=local)(*case.point), case.jacobian)
        if case.second:
            contains(hessian_pattern(case.scalar, case.argnums, local=local)(*case.point), case.hessian)


# Second and third derivatives ----------------------------------------------------------------------------------------


def second_order(case: Case) -> None:
    whole = lambda blocks: np.block(
        [
            [host_value(b).reshape(x.size, y.size) for b, y in zip(row, case.point, strict=True)]
            for row, x in zip(blocks, case.point, strict=True)
        ]
    )
    n = case.argnums
    close(whole(hessian(case.scalar, n, chunk_size=CHUNK)(*case.point)), case.hessian)
    close(whole(jacrev(jacfwd(case.scalar, n), n)(*case.point)), case.hessian)
    close(whole(jacrev(jacrev(case.scalar, n), n)(*case.point)), case.hessian)


def laplacians(case: Case) -> None:
    scales = case.directions(2)
    diagonal = np.einsum("kii->ki", case.second_derivatives)
    close(vector(laplacian(case, case.argnums)(*case.point)), diagonal.sum(1))
    close(vector(laplacian(case, case.argnums, tuple(scales))(*case.point)), diagonal @ vector(scales))


def taylor_mode(case: Case) -> None:
    """To order 3 along a curve, whose own derivatives are not zero."""
    series = [case.directions(k) for k in range(3)]

    def along(t: Any) -> Any:
        return case(*[
            x + t * (a + t * (b / 2 + t * (c / 6))) for x, a, b, c in zip(case.point, *series, strict=True)
        ])

    _, found = jet(case, case.point, [list(terms) for terms in zip(*series, strict=True)])
    derivative = along
    for k in range(3):
        derivative = lambda t, f=derivative: jvp(f, (t,), (jnp.ones(()),))[1]
        close(vector([terms[k] for terms in found]), vector(derivative(jnp.zeros(()))), 1e-8)


def tensors(case: Case) -> None:
    if len(case.point) > 1:
        return
    for i in range(len(case.results)):
        y = case.results[i]
        found = derivative_tensor(lambda x, i=i: case(x)[i], case.point[0], 2, chunk_size=CHUNK)
        start = sum(z.size for z in case.results[:i])
        shape = (*y.shape, *case.point[0].shape * 2)
        close(host_value(found), case.second_derivatives[start : start + y.size].reshape(shape), 1e-8)
