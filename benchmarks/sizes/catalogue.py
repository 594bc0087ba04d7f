"""The operations that are measured, in JAX's names and in PyTorch's.

An operation is written twice: for libraries with JAX's names, and for PyTorch. Operands are made of a number of
elements, so that one row serves several sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Draw = Callable[..., Any]
"""Makes an operand: ``draw(*shape)`` is an array of normal numbers in single precision."""
Operands = Callable[[int, np.random.Generator], list[Any]]
SMALL, LARGE = 10**3, 10**6


@dataclass(frozen=True)
class Row:
    """An operation.

    Attributes:
      name: what it is called in the table.
      operands: ``operands(n, generator)``, arrays of NumPy's, of about ``n`` elements.
      jax: ``jax(library)``, the operation with JAX's names, a function of the operands.
      torch: ``torch(torch)``, the same with PyTorch's; None if it has no such operation.
      differentiable: how many of the operands the gradient is taken by; none at 0.
      sizes: the numbers of elements.
    """

    name: str
    operands: Operands
    jax: Callable[[Any], Callable[..., Any]]
    torch: Callable[[Any], Callable[..., Any]] | None
    differentiable: int = 1
    sizes: Sequence[int] = (SMALL, LARGE)


def normal(count: int = 1, dtype: Any = np.float32) -> Operands:
    """Vectors of normal numbers."""
    return lambda n, rng: [rng.standard_normal(n).astype(dtype) for _ in range(count)]


def positive(count: int = 1, low: float = 0.1, high: float = 3.0) -> Operands:
    """Vectors of numbers between two bounds."""
    return lambda n, rng: [rng.uniform(low, high, n).astype(np.float32) for _ in range(count)]


def square(n: int) -> tuple[int, int]:
    """The shape of a square matrix of about ``n`` elements."""
    return (round(n**0.5),) * 2


def matrix(count: int = 1) -> Operands:
    """Square matrices of normal numbers."""
    return lambda n, rng: [rng.standard_normal(square(n)).astype(np.float32) for _ in range(count)]


def well_conditioned(size: int) -> Operands:
    """A symmetric positive definite matrix of one size, whatever ``n`` is."""

    def operands(n: int, rng: np.random.Generator) -> list[Any]:
        a = rng.standard_normal((size, size)) / size**0.5
        return [(a @ a.T + np.eye(size)).astype(np.float32)]

    return operands


def fixed(*shapes: Sequence[int]) -> Operands:
    """Arrays of normal numbers of some shapes, whatever ``n`` is."""
    return lambda n, rng: [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def with_indices(n: int, rng: np.random.Generator) -> list[Any]:
    """A vector, and as many positions in it."""
    return [rng.standard_normal(n).astype(np.float32), rng.integers(0, n, n).astype(np.int32)]


def with_segments(n: int, rng: np.random.Generator) -> list[Any]:
    """A vector, and for each element the number of one of a thousand segments."""
    return [rng.standard_normal(n).astype(np.float32), rng.integers(0, 1000, n).astype(np.int32)]


def integers(n: int, rng: np.random.Generator) -> list[Any]:
    """Two vectors of integers."""
    return [rng.integers(1, 1000, n).astype(np.int32) for _ in range(2)]


def complex_numbers(n: int, rng: np.random.Generator) -> list[Any]:
    """Two complex vectors."""
    return [(rng.standard_normal(n) + 1j * rng.standard_normal(n)).astype(np.complex64) for _ in range(2)]


def square_complex(n: int, rng: np.random.Generator) -> list[Any]:
    """A complex square matrix."""
    return [rng.standard_normal(square(n)).astype(np.complex64)]


def rows(n: int, rng: np.random.Generator) -> list[Any]:
    """A matrix of rows of a thousand elements, or fewer."""
    width = min(1000, max(n // 10, 1))
    return [rng.standard_normal((n // width, width)).astype(np.float32)]


def named(name: str, torch: str | None = None, operands: Operands | None = None, **options: Any) -> Row:
    """A function of ``jax.numpy`` that PyTorch has under the same name, or another one."""
    return Row(
        name, normal() if operands is None else operands, lambda m: getattr(m.np, name),
        lambda t: getattr(t, torch or name), **options,
    )  # fmt: skip


def of_nn(name: str, torch: str | None = None) -> Row:
    """A function of ``jax.nn``."""
    return Row(name, normal(), lambda m: getattr(m.nn, name), lambda t: getattr(t.nn.functional, torch or name))


def special(name: str, operands: Operands, torch: str | None = None) -> Row:
    """A function of ``jax.scipy.special``."""
    return Row(name, operands, lambda m: getattr(m.special, name), lambda t: getattr(t.special, torch or name))


def _layer_norm(m: Any) -> Any:
    def layer_norm(x: Any) -> Any:
        centred = x - m.np.mean(x, -1, keepdims=True)
        return centred / m.np.sqrt(m.np.mean(centred**2, -1, keepdims=True) + 1e-5)

    return layer_norm


def _chain(m: Any) -> Any:
    """The tanh form of gelu, by single operations."""
    return lambda x: 0.5 * x * (1 + m.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def _attention(m: Any) -> Any:
    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = m.np.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
        return m.np.einsum("bhqk,bkhd->bqhd", m.nn.softmax(scores, -1), v)

    return attention


def _torch_attention(t: Any) -> Any:
    def attention(q: Any, k: Any, v: Any) -> Any:
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        return t.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2)

    return attention


def _cdist(m: Any) -> Any:
    return lambda a, b: m.np.sqrt(((a[:, None] - b[None]) ** 2).sum(-1))


def _torch_cdist(t: Any) -> Any:
    # By differences, as the others: the formula by a product of matrices loses digits where points are close.
    return lambda a, b: t.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")


def _cross_entropy(m: Any) -> Any:
    return lambda x: -m.nn.log_softmax(x, -1)[:, 0]


ALL_SIZES = (10**3, 10**4, 10**5, 10**6, 10**7)
LARGEST = (*ALL_SIZES, 10**8)
HEADS = (8, 256, 4, 32)
IMAGES, KERNEL = (8, 32, 32, 32), (3, 3, 32, 32)
NHWC = ("NHWC", "HWIO", "NHWC")

ELEMENTS = (
    Row("add", normal(2), lambda m: lambda x, y: x + y, lambda t: lambda x, y: x + y, 2, LARGEST),
    Row("mul", normal(2), lambda m: lambda x, y: x * y, lambda t: lambda x, y: x * y, 2),
    Row("div", positive(2), lambda m: lambda x, y: x / y, lambda t: lambda x, y: x / y, 2),
    Row("power", positive(2), lambda m: lambda x, y: x**y, lambda t: lambda x, y: x**y, 2),
    Row("cube", normal(), lambda m: lambda x: x**3, lambda t: lambda x: x**3),
    named("maximum", operands=normal(2), differentiable=2), named("hypot", operands=normal(2), differentiable=2),
    named("arctan2", operands=normal(2), differentiable=2),
    named("exp"), named("sin"), named("tanh", sizes=ALL_SIZES), named("arctan"), named("abs"), named("sign"),
    named("expm1"), named("cosh"), named("log", operands=positive()), named("sqrt", operands=positive()),
    named("log1p", operands=positive()), named("reciprocal", operands=positive()),
    Row("clip", normal(), lambda m: lambda x: m.np.clip(x, -1.0, 1.0), lambda t: lambda x: t.clamp(x, -1.0, 1.0)),
    Row("where", normal(2), lambda m: lambda x, y: m.np.where(x > 0, x, y),
        lambda t: lambda x, y: t.where(x > 0, x, y), 2),
    Row("add, a row to each", lambda n, r: [*matrix()(n, r), *normal()(square(n)[0], r)],
        lambda m: lambda x, y: x + y, lambda t: lambda x, y: x + y, 2),
    Row("add, float64", normal(2, np.float64), lambda m: lambda x, y: x + y, lambda t: lambda x, y: x + y, 2),
    Row("add, int32", integers, lambda m: lambda x, y: x + y, lambda t: lambda x, y: x + y, 0),
    Row("floor division, int32", integers, lambda m: lambda x, y: x // y, lambda t: lambda x, y: x // y, 0),
    Row("mul, complex64", complex_numbers, lambda m: lambda x, y: x * y, lambda t: lambda x, y: x * y, 0),
    Row("float32 to float64", normal(), lambda m: lambda x: x.astype("float64"), lambda t: lambda x: x.double()),
    Row("float32 to bfloat16", normal(), lambda m: lambda x: x.astype(m.np.bfloat16),
        lambda t: lambda x: x.bfloat16(), 0),
    Row("isfinite", normal(), lambda m: m.np.isfinite, lambda t: t.isfinite, 0),
    Row("gelu (erf)", normal(), lambda m: lambda x: m.nn.gelu(x, approximate=False), lambda t: t.nn.functional.gelu,
        sizes=ALL_SIZES),
    Row("gelu (tanh) by operations", normal(), lambda m: _chain(m.np), _chain, sizes=LARGEST),
    of_nn("sigmoid"), of_nn("relu"), of_nn("silu"), of_nn("softplus"), of_nn("elu"), of_nn("leaky_relu"),
    special("erf", normal()), special("erfinv", positive(1, -0.9, 0.9)), special("gammaln", positive()),
    special("digamma", positive()), special("i0e", positive()), special("log_ndtr", normal()),
    special("gammainc", positive(2), "gammainc"),
)  # fmt: skip

REDUCTIONS = (
    Row("sum", normal(), lambda m: m.np.sum, lambda t: t.sum, sizes=LARGEST),
    Row("sum over rows", rows, lambda m: lambda x: x.sum(-1), lambda t: lambda x: x.sum(-1)),
    Row("sum over columns", rows, lambda m: lambda x: x.sum(0), lambda t: lambda x: x.sum(0)),
    Row("mean over rows", rows, lambda m: lambda x: x.mean(-1), lambda t: lambda x: x.mean(-1)),
    Row("var over rows", rows, lambda m: lambda x: x.var(-1), lambda t: lambda x: x.var(-1, correction=0)),
    Row("max over rows", rows, lambda m: lambda x: x.max(-1), lambda t: lambda x: x.amax(-1)),
    Row("argmax over rows", rows, lambda m: lambda x: x.argmax(-1), lambda t: lambda x: x.argmax(-1), 0),
    Row("prod over rows", rows, lambda m: lambda x: x.prod(-1), lambda t: lambda x: x.prod(-1)),
    Row("norm", normal(), lambda m: m.np.linalg.norm, lambda t: t.linalg.norm),
    Row("norm of rows", rows, lambda m: lambda x: m.np.linalg.norm(x, axis=-1),
        lambda t: lambda x: t.linalg.norm(x, dim=-1)),
    Row("logsumexp", rows, lambda m: lambda x: m.special.logsumexp(x, -1), lambda t: lambda x: t.logsumexp(x, -1)),
    Row("softmax", rows, lambda m: lambda x: m.nn.softmax(x, -1), lambda t: lambda x: t.softmax(x, -1),
        sizes=ALL_SIZES),
    Row("log_softmax", rows, lambda m: lambda x: m.nn.log_softmax(x, -1), lambda t: lambda x: t.log_softmax(x, -1)),
    Row("layer norm", rows, _layer_norm, lambda t: lambda x: t.nn.functional.layer_norm(x, x.shape[-1:])),
    Row("cross entropy", rows, _cross_entropy, lambda t: lambda x: -t.log_softmax(x, -1)[:, 0]),
    Row("cumsum", normal(), lambda m: m.np.cumsum, lambda t: lambda x: t.cumsum(x, 0)),
    Row("cumsum of rows", rows, lambda m: lambda x: m.np.cumsum(x, -1), lambda t: lambda x: t.cumsum(x, -1)),
    Row("sort", normal(), lambda m: m.np.sort, lambda t: lambda x: t.sort(x)[0]),
    Row("argsort of rows", rows, lambda m: lambda x: m.np.argsort(x, -1), lambda t: lambda x: t.argsort(x, -1), 0),
    Row("median", normal(), lambda m: m.np.median, lambda t: lambda x: t.quantile(x, 0.5)),
    Row("top_k (10 of each row)", rows, lambda m: lambda x: m.lax.top_k(x, 10)[0],
        lambda t: lambda x: t.topk(x, 10)[0]),
)  # fmt: skip

MOVES = (
    Row("transpose, + 0", matrix(), lambda m: lambda x: x.T + 0, lambda t: lambda x: x.T + 0),
    Row("flip", normal(), lambda m: m.np.flip, lambda t: lambda x: t.flip(x, (0,))),
    Row("roll", normal(), lambda m: lambda x: m.np.roll(x, 7), lambda t: lambda x: t.roll(x, 7)),
    Row("pad", matrix(), lambda m: lambda x: m.np.pad(x, 1), lambda t: lambda x: t.nn.functional.pad(x, (1, 1, 1, 1))),
    Row("concatenate", normal(2), lambda m: lambda x, y: m.np.concatenate([x, y]),
        lambda t: lambda x, y: t.cat([x, y]), 2),
    Row("stack", normal(2), lambda m: lambda x, y: m.np.stack([x, y], 1), lambda t: lambda x, y: t.stack([x, y], 1), 2),
    Row("repeat", normal(), lambda m: lambda x: m.np.repeat(x, 2), lambda t: lambda x: t.repeat_interleave(x, 2)),
    Row("tile", normal(), lambda m: lambda x: m.np.tile(x, 2), lambda t: lambda x: t.tile(x, (2,))),
    Row("tril", matrix(), lambda m: m.np.tril, lambda t: t.tril),
    Row("gather", with_indices, lambda m: lambda x, i: x[i], lambda t: lambda x, i: x[i.long()]),
    Row("take_along_axis", lambda n, r: [rows(n, r)[0], r.integers(0, 10, (rows(n, r)[0].shape[0], 3))],
        lambda m: lambda x, i: m.np.take_along_axis(x, i, 1), lambda t: lambda x, i: t.gather(x, 1, i)),
    Row("scatter add", with_indices, lambda m: lambda x, i: m.np.zeros_like(x).at[i].add(x),
        lambda t: lambda x, i: t.zeros_like(x).index_add(0, i, x)),
    Row("segment_sum", with_segments, lambda m: lambda x, i: m.ops.segment_sum(x, i, 1000),
        lambda t: lambda x, i: t.zeros(1000).index_add(0, i, x)),
    Row("update of a slice", normal(), lambda m: lambda x: x.at[10:500].set(1.0),
        lambda t: lambda x: t.slice_scatter(x, t.ones(490), 0, 10, 500)),
    Row("one_hot", with_segments, lambda m: lambda x, i: m.nn.one_hot(i[:1000], 1000),
        lambda t: lambda x, i: t.nn.functional.one_hot(i[:1000].long(), 1000).float(), 0),
    Row("searchsorted", lambda n, r: [np.sort(r.standard_normal(n)).astype(np.float32), *normal()(n, r)],
        lambda m: m.np.searchsorted, lambda t: t.searchsorted, 0),
    Row("bincount", with_segments, lambda m: lambda x, i: m.np.bincount(i, length=1000),
        lambda t: lambda x, i: t.bincount(i, minlength=1000), 0),
    Row("outer", lambda n, r: normal(2)(square(n)[0], r), lambda m: m.np.outer, lambda t: t.outer, 2),
)  # fmt: skip

PRODUCTS = (
    named("matmul", operands=matrix(2), differentiable=2), named("dot", operands=normal(2), differentiable=2),
    Row("matrix by vector", lambda n, r: [*matrix()(n, r), *normal()(square(n)[0], r)],
        lambda m: lambda a, x: a @ x, lambda t: lambda a, x: a @ x, 2),
    Row("batched products (100 of 32)", fixed((100, 32, 32), (100, 32, 32)), lambda m: lambda a, b: a @ b,
        lambda t: lambda a, b: a @ b, 2, (LARGE,)),
    Row("einsum bqhd,bkhd->bhqk", fixed(HEADS, HEADS), lambda m: lambda a, b: m.np.einsum("bqhd,bkhd->bhqk", a, b),
        lambda t: lambda a, b: t.einsum("bqhd,bkhd->bhqk", a, b), 2, (LARGE,)),
    Row("attention", fixed(HEADS, HEADS, HEADS), _attention, _torch_attention, 3, (LARGE,)),
    Row("cdist (300, 300, 50)", fixed((300, 50), (300, 50)), _cdist, _torch_cdist, 2, (LARGE,)),
    Row("convolution, images", fixed(IMAGES, KERNEL),
        lambda m: lambda x, k: m.lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=NHWC),
        lambda t: lambda x, k: t.nn.functional.conv2d(x.permute(0, 3, 1, 2), k.permute(3, 2, 0, 1), padding=1).permute(
            0, 2, 3, 1), 2, (LARGE,)),
    Row("max pool, images", fixed(IMAGES),
        lambda m: lambda x: m.lax.reduce_window(x, -np.inf, m.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
        lambda t: lambda x: t.nn.functional.max_pool2d(x.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1), 1, (LARGE,)),
    Row("fft", complex_numbers, lambda m: lambda x, y: m.np.fft.fft(x), lambda t: lambda x, y: t.fft.fft(x), 0),
    Row("rfft of rows", rows, lambda m: lambda x: abs(m.np.fft.rfft(x)), lambda t: lambda x: abs(t.fft.rfft(x))),
    Row("2-d fft", square_complex, lambda m: m.np.fft.fft2, lambda t: t.fft.fft2, 0),
    Row("kron (30 by 30)", fixed((30, 30), (30, 30)), lambda m: m.np.kron, lambda t: t.kron, 2, (LARGE,)),
)  # fmt: skip

DECOMPOSITIONS = tuple(
    Row(f"{name} ({size})", well_conditioned(size), jax, torch, 1, (LARGE,))
    for name, size, jax, torch in (
        ("cholesky", 512, lambda m: m.np.linalg.cholesky, lambda t: t.linalg.cholesky),
        ("eigvalsh", 128, lambda m: m.np.linalg.eigvalsh, lambda t: t.linalg.eigvalsh),
        ("svdvals", 128, lambda m: lambda a: m.np.linalg.svd(a, compute_uv=False), lambda t: t.linalg.svdvals),
        ("qr", 128, lambda m: lambda a: m.np.linalg.qr(a)[1], lambda t: lambda a: t.linalg.qr(a)[1]),
        ("inv", 256, lambda m: m.np.linalg.inv, lambda t: t.linalg.inv),
        ("det", 256, lambda m: lambda a: m.np.linalg.slogdet(a)[1], lambda t: lambda a: t.linalg.slogdet(a)[1]),
        ("solve", 256, lambda m: lambda a: m.np.linalg.solve(a, a[0]), lambda t: lambda a: t.linalg.solve(a, a[0])),
        ("matrix exponential", 64, lambda m: m.linalg.expm, lambda t: t.linalg.matrix_exp),
    )
)

ROWS: tuple[Row, ...] = (*ELEMENTS, *REDUCTIONS, *MOVES, *PRODUCTS, *DECOMPOSITIONS)
