"""Linear algebra of other platforms: what is called there, what is refused, and what is written for all of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import export, jit, lax, make_jaxpr, scipy
from pullback.backends.compiler import portable
from pullback.backends.compiler.client import default_device, to_portable
from pullback.backends.compiler.programs import Lowered
from pullback.backends.hlo import emit
from pullback.backends.hlo.module import Module
from pullback.core.config import enable_x64
from pullback.core.errors import MissingRuleError
from pullback.primitives.linalg.householder import geqrf_p


class ForAnother(Module):
    def __init__(self, name: str, platform: str, inline: Any) -> None:
        super().__init__(name, "another", inline)


def as_elsewhere(monkeypatch: pytest.MonkeyPatch, f: Callable[..., Any], *args: Any) -> list[Any]:
    """What a function returns by the program of a platform without libraries, which CPUs can run."""
    monkeypatch.setattr(emit, "Module", ForAnother)
    lowered = Lowered(make_jaxpr(f)(*args), "f", default_device())
    assert "custom_call" not in lowered.module.text()
    return lowered.compile()(args)


def random(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    rng = np.random.default_rng([seed, *shape])
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize(("batch", "n", "k"), [((), 1, 1), ((2,), 2, 3), ((), 9, 2), ((2, 3), 5, 1)], ids=str)
def test_tridiagonal_systems(
    batch: tuple[int, ...], n: int, k: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with enable_x64():
        dl, d, du = (random(*batch, n, dtype=dtype, seed=i) for i in range(3))
        d = d / 10  # so that rows change places
        b = random(*batch, n, k, dtype=dtype)
        args = list(map(jnp.asarray, (dl, d, du, b)))
        (x,) = as_elsewhere(monkeypatch, lax.linalg.tridiagonal_solve, *args)
        expected, eps = lax.linalg.tridiagonal_solve(*args), float(np.finfo(dtype).eps)
        assert x.dtype == expected.dtype
        np.testing.assert_allclose(x, expected, rtol=3e4 * eps, atol=3e4 * eps)


@pytest.mark.parametrize("d", [[0.0, 0, 0], [1.0, 0, 2]])
def test_tridiagonal_systems_that_are_singular(d: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    d = jnp.array([d, [1.0, 2, 3]])
    none = jnp.zeros_like(d)
    (x,) = as_elsewhere(monkeypatch, lax.linalg.tridiagonal_solve, none, d, none, jnp.ones((2, 3, 1)))
    np.testing.assert_array_equal(np.isnan(x), np.broadcast_to([[[True]], [[False]]], (2, 3, 1)))


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_products_with_reflections(dtype: str, transpose: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    a, taus = geqrf_p.bind(jnp.asarray(random(2, 4, 3, dtype=dtype)))
    c = jnp.asarray(random(2, 4, 5, dtype=dtype))
    multiply = partial(lax.linalg.ormqr, transpose=transpose)
    (x,) = as_elsewhere(monkeypatch, multiply, a, taus, c)
    np.testing.assert_allclose(x, multiply(a, taus, c), rtol=1e-4, atol=1e-5)


def lowered(f: Callable[..., Any], platform: str, *args: Any) -> str:
    """The text of a program for a platform, which the compiler's parser has verified."""
    text = portable.portable(make_jaxpr(f)(*args), "f", [platform]).text
    to_portable(text)
    return text


SQUARE = np.eye(3, dtype=np.float32)
REFUSED: list[tuple[Any, str, str, str]] = [
    (lax.linalg.schur, "schur at .*", "gees", "cuda rocm tpu another"),
    (scipy.linalg.sqrtm, "schur, in .*sqrtm.* at .*", "gees", "cuda rocm tpu another"),
    (lax.linalg.hessenberg, "hessenberg at .*", "gehrd", "cuda rocm tpu another"),
    (lax.linalg.tridiagonal, "tridiagonal at .*", "sytrd", "tpu another"),
    (jnp.linalg.eig, "eig at .*", "geev", "tpu another"),
    (partial(lax.linalg.qr, pivoting=True), "qr with pivoting, in qr at .*", "geqp3", "tpu another"),
    (jnp.linalg.qr, "qr at .*", "geqrf", "another"),
    (jnp.linalg.eigh, "eigh at .*", "syevd", "another"),
    (jnp.linalg.svd, "svd at .*", "gesdd", "another"),
    (lambda x: lax.linalg.householder_product(x, x[0]), "householder_product at .*", "orgqr", "another"),
]


@pytest.mark.parametrize(("f", "who", "routine", "platforms"), REFUSED, ids=[row[2] for row in REFUSED])
def test_operations_that_a_platform_lacks(f: Any, who: str, routine: str, platforms: str) -> None:
    for platform in platforms.split():
        message = rf"^{who}test_device_routines.py.*: programs for '{platform}' .* like LAPACK's {routine}\. .*'cpu'"
        with pytest.raises(MissingRuleError, match=message):
            lowered(f, platform, SQUARE)


@pytest.mark.parametrize(("shape", "by_rows"), [((4, 3), False), ((3, 4), True), ((3, 3), False)])
def test_wide_matrices_are_read_as_transposed_ones(shape: tuple[int, int], by_rows: bool) -> None:
    """The SVD by QR takes no matrices with fewer rows than columns."""
    by_qr = partial(lax.linalg.svd, algorithm=lax.linalg.SvdAlgorithm.QR)
    text = lowered(by_qr, "cuda", np.eye(*shape, dtype=np.float32))
    assert f"transposed = {str(by_rows).lower()}" in text
    assert f"operand_layouts = [dense<{[1, 0] if by_rows else [0, 1]}> : tensor<2xindex>]" in text


def test_many_axes_have_names_in_sharding_rules() -> None:
    """Letters from i on, and numbers when these have run out."""
    text = lowered(jnp.linalg.cholesky, "cuda", np.broadcast_to(SQUARE, (*[1] * 20, 3, 3)))
    assert "z, z_1, z_2, z_3, z_4" in text
    assert 'num_batch_dims = "20"' in text


def test_calls_with_symbolic_sizes_are_not_divided() -> None:
    shapes = export.symbolic_args_specs([np.zeros((2, 3, 3), np.float32)], "b, _, _")
    text = export.export(jit(jnp.linalg.cholesky), platforms=["cuda"])(*shapes).mlir_module()
    assert "cusolver_potrf_ffi" in text
    assert "sharding_rule" not in text
