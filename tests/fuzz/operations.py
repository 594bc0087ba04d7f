"""Operations of any shape: each draws the text of an expression of one or two values, or None where it does not fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

ONE = [
    "jnp.sin(_0)", "jnp.cos(_0)", "jnp.tanh(_0)", "jnp.exp(jnp.sin(_0))", "jnp.arctan(_0)", "0.5 * jnp.square(_0)",
    "abs(_0)", "-_0", "nn.sigmoid(_0)", "nn.softplus(_0)", "nn.relu(_0)", "nn.gelu(_0)", "jnp.sqrt(1 + _0 * _0)",
    "jnp.log1p(_0 * _0)", "scipy.special.erf(_0)", "1.5 * _0", "_0 + 1", "2 - _0", "1 / (2 + jnp.cos(_0))", "_0 ** 3",
    "jnp.sinh(0.5 * _0)", "jnp.conj(_0)", "_0.real", "jnp.angle(_0)", "lax.complex(jnp.sin(_0), 0.5 * _0)", "jnp.floor(2 * _0)",
    "jnp.round(_0)", "jnp.sign(_0)", "jnp.rint(3 * _0).astype(int32)", "jnp.isfinite(_0)", "_0 > 0", "~(_0 > 0.5)",
    "jnp.clip(_0, -0.5, 0.75)", "jnp.nan_to_num(_0)", "jnp.ravel(_0)", "_0.T", "jnp.cumsum(_0)", "jnp.sort(_0, None)",
    "jnp.argsort(_0, None)", "nn.softmax(jnp.ravel(_0))", "nn.logsumexp(_0)", "jnp.sum(_0)", "jnp.mean(_0)", "jnp.max(_0)",
    "jnp.min(_0)", "jnp.var(_0)", "jnp.prod(jnp.cos(_0))", "jnp.linalg.norm(jnp.ravel(_0) + 3)", "jnp.argmax(_0)",
    "jnp.any(_0 > 0)", "jnp.count_nonzero(_0 > 0)", "_0[None]", "_0[..., None]", "jnp.outer(_0, jnp.cos(_0))",
    "jnp.diag(jnp.ravel(_0)[:3])", "jnp.flip(_0)", "jnp.roll(_0, 1)", "jnp.where(_0 > 0, _0, 0.1 * _0)", "jnp.unwrap(jnp.ravel(_0))",
    "jnp.fft.fft(jnp.ravel(_0))", "jnp.fft.rfft(jnp.ravel(_0))", "lax.stop_gradient(_0)", "lax.cumlogsumexp(jnp.ravel(_0))",
    "jnp.convolve(jnp.ravel(_0), jnp.array([0.5, -1.0, 0.25], float32))",
    "jnp.interp(jnp.ravel(_0), jnp.array([-1.0, 0.2, 1.1], float32), jnp.array([0.3, -0.6, 0.9], float32))",
    "jnp.polyval(jnp.array([0.3, -0.7, 1.1], float32), _0)", "jnp.trapezoid(jnp.ravel(_0))", "jnp.median(_0)",
    "jnp.quantile(_0, 0.3)", "jnp.linalg.det(spread(_0, (3, 3), -1, 1, float32) + 2 * jnp.eye(3, dtype=float32))",
    "jnp.linalg.inv(spread(_0, (2, 2), -1, 1, float32) + 3 * jnp.eye(2, dtype=float32))",
    "jnp.linalg.cholesky(positive_definite(spread(_0, (3, 3), -1, 1, float32)))",
    "jnp.linalg.slogdet(positive_definite(spread(_0, (2, 2), -1, 1, float32)))[1]",
    "scipy.linalg.expm(spread(_0, (2, 2), -1, 1, float32))", "jnp.linalg.eigvalsh(positive_definite(spread(_0, (3, 3), -1, 1, float32)))",
]  # fmt: skip
TWO = [
    "_0 + _1", "_0 - _1", "_0 * _1", "_0 / (1 + _1 * _1)", "jnp.maximum(_0, _1)", "jnp.minimum(_0, _1)", "jnp.arctan2(_0, 2 + _1 * _1)",
    "jnp.hypot(_0, 1 + _1)", "jnp.logaddexp(_0, _1)", "jnp.where(_0 < _1, jnp.sin(real(_0)), _1)", "(2 + jnp.sin(_0)) ** _1",
    "jnp.stack(jnp.broadcast_arrays(_0, _1))", "jnp.concatenate([jnp.ravel(_0), jnp.ravel(_1)])", "jnp.hstack([_0, _1])",
    "jnp.append(_0, _1)", "jnp.outer(_0, _1)", "jnp.inner(jnp.ravel(_0), like(_1, jnp.ravel(_0)))", "_0 < _1", "_0 >= _1", "_0 == _1",
    "jnp.linalg.solve(spread(_0, (2, 2), -1, 1, float32) + 3 * jnp.eye(2, dtype=float32), spread(_1, (2,), -1, 1, float32))",
    "scipy.linalg.solve_triangular(spread(_0, (3, 3), -1, 1, float32) / 4 + jnp.eye(3, dtype=float32), spread(_1, (3,), -1, 1, float32))",
    "jnp.cross(spread(_0, (3,), -1, 1, float32), spread(_1, (3,), -1, 1, float32))", "jnp.kron(jnp.ravel(_0)[:3], jnp.ravel(_1)[:3])",
    "jnp.einsum('i,j->ij', jnp.ravel(_0), jnp.ravel(_1))", "jnp.where(_1 > 0, _0, 0)", "scipy.special.xlogy(_0, 1.5 + jnp.sin(real(_1)))",
    "jnp.select([_0 > 0.5, _1 > 0], [_0, 2 * _1], 0.25)", "jnp.clip(_0, -abs(_1), abs(_1) + 0.5)", "lax.rem(_0, like(_0, _0) * 0 + 2)",
    "jnp.average(jnp.ravel(_0), weights=like(_1, jnp.ravel(_0)) + 2)", "jnp.polyval(jnp.ravel(_0)[:3], jnp.ravel(_1))",
    "jnp.searchsorted(jnp.sort(jnp.ravel(_0)), _1)", "jnp.correlate(jnp.ravel(_0), jnp.ravel(_1)[:3])", "nn.logsumexp(_0, b=like(_1, _0) + 2)",
    "ops.segment_sum(jnp.ravel(_0), choice(_1, 3) + jnp.arange(_0.size) % 2, 4)", "jnp.isclose(_0, _1)",
    "jnp.take(_0, choice(_1, 3), mode='clip')", "jnp.trapezoid(jnp.ravel(_0), like(_1, jnp.ravel(_0)))",
]  # fmt: skip
DTYPES = ["float32", "float32", "bfloat16", "float16", "complex64", "int32", "int8", "uint8", "uint32", "bool_"]

Shape = tuple[int, ...]


def one(rng: Random, shape: Shape) -> str:
    """On each element, or on all."""
    return rng.choice(ONE)


def converted(rng: Random, shape: Shape) -> str:
    return f"_0.astype({rng.choice(DTYPES)})"


def along(rng: Random, shape: Shape) -> str | None:
    """Along an axis."""
    if not shape:
        return None
    axis = rng.randrange(-len(shape), len(shape))
    text = rng.choice([
        "jnp.sum(_0, A)", "jnp.mean(_0, A, keepdims=True)", "jnp.max(_0, A)", "jnp.min(_0, A)", "jnp.prod(jnp.sin(_0), A)",
        "jnp.cumsum(_0, A)", "jnp.cumprod(jnp.cos(_0), A)", "lax.cummax(_0, A % _0.ndim)", "lax.cummin(_0, A % _0.ndim, reverse=True)",
        "jnp.sort(_0, A)", "jnp.argmax(_0, A)", "jnp.argmin(_0, A)", "jnp.flip(_0, A)", "jnp.roll(_0, 2, A)", "jnp.diff(_0, axis=A)",
        "nn.softmax(_0, A)", "nn.log_softmax(_0, A)", "nn.logsumexp(_0, A)", "nn.standardize(_0, A, algorithm='stable')", "jnp.var(_0, A)",
        "jnp.std(jnp.concatenate([_0, 1 - _0], A), A)", "jnp.repeat(_0, 2, A)", "jnp.concatenate([_0, jnp.sin(_0)], A)",
        "jnp.stack([_0, 2 * _0], A)", "jnp.expand_dims(_0, A)", "jnp.swapaxes(_0, 0, A)", "jnp.moveaxis(_0, A, 0)",
        "jnp.take(_0, jnp.array([0, -1, 0]), A)", "jnp.gradient(jnp.concatenate([_0, _0 ** 2], A), axis=A)", "lax.cumlogsumexp(_0, A % _0.ndim)",
        "jnp.fft.fft(_0, axis=A)", "jnp.fft.irfft(_0, 4, A)", "lax.top_k(jnp.moveaxis(_0, A, -1), 1)[0]", "jnp.median(_0, A)",
        "lax.associative_scan(jnp.add, _0, axis=A)", "jnp.linalg.norm(_0 + 3, axis=A)", "jnp.quantile(_0, 0.25, A)",
        "jnp.take_along_axis(_0, jnp.argsort(_0, A), A)", "jnp.delete(_0, 0, A)", "jnp.insert(_0, 1, 0.5, A)", "jnp.trapezoid(_0, dx=0.5, axis=A)",
    ])  # fmt: skip
    return (
        text.replace("A)", f"{axis})").replace("A,", f"{axis},").replace("A %", f"{axis} %").replace("=A", f"={axis}")
    )


def reshaped(rng: Random, shape: Shape) -> str:
    """The same elements in another order or shape."""
    order = list(range(len(shape)))
    rng.shuffle(order)
    wider = (*shape[:1], 2, *shape[1:])
    return rng.choice([
        f"jnp.transpose(_0, {tuple(order)!r})",
        f"_0.reshape({shape[::-1]!r})",
        f"_0.reshape({(1, *shape)!r})",
        f"jnp.broadcast_to(_0, {(2, *shape)!r})",
        f"lax.broadcast_in_dim(_0, {wider!r}, {tuple(k if k == 0 else k + 1 for k in range(len(shape)))!r})",
        f"jnp.tile(_0, {rng.randint(1, 2)})",
        f"spread(_0, {rng.choice([(2, 3), (4,), (3,), (3, 1), (2, 2, 2), ()])!r}, -2, 2, {rng.choice(DTYPES[:4])})",
    ])  # fmt: skip


def part(rng: Random, shape: Shape) -> str | None:
    """Elements, chosen by slices, numbers and arrays of numbers."""
    return f"_0[{_index(rng, shape)}]" if shape else None


def _index(rng: Random, shape: Shape) -> str:
    """An index within an array, along one or more of its first axes."""
    parts = []
    for n in shape[: rng.randint(1, len(shape))]:
        start = rng.randrange(n)
        choices = [
            str(rng.randrange(-n, n)),
            f"{start}:",
            f"{start}:{rng.randint(start + 1, n)}",
            "::-1",
            "::2",
            f"jnp.array({[rng.randrange(-n, n) for _ in range(3)]})",
            f"jnp.array({[rng.randrange(-n, n) for _ in range(3)]})",
        ]
        parts.append(rng.choice(choices))
    if rng.random() < 0.15:
        parts.append("None")
    return ", ".join(parts)


def filled(rng: Random, shape: Shape) -> str | None:
    """A gather whose indices may be out of range."""
    if not shape:
        return None
    n = shape[0]
    where = [rng.randrange(-n, n + 3) for _ in range(rng.randint(1, 3))]
    mode = rng.choice(["fill_value=0.25, mode='fill'", "mode='fill', fill_value=-1.5", "mode='clip'", "mode='wrap'"])
    wrapped = f"jnp.take(_0, jnp.array({where}), 0, {mode})"
    return wrapped if "wrap" in mode else rng.choice([f"_0.at[jnp.array({where})].get({mode})", wrapped])


def updated(rng: Random, shape: Shape) -> str | None:
    """Some elements replaced by, or combined with, a number or elements of the other operand."""
    if not shape:
        return None
    how = rng.choice(["set", "add", "add", "multiply", "min", "max", "set", "subtract", "power", "divide"])
    n = shape[0]
    if rng.random() < 0.4:
        where = f"jnp.array({[rng.randrange(-n, n + 2) for _ in range(2)]})"
        option = rng.choice(["", ", mode='drop'", ", mode='clip'"])
    else:
        where, option = _index(rng, shape), ""
    if "None" in where:
        return None
    value = {"power": "3", "divide": "1.5"}.get(how) or rng.choice(
        ["0.75", f"like(_1, _0[{where}])", "like(_1, _0[0])", "jnp.ravel(_1)[0]"]
    )
    return f"_0.at[{where}].{how}({value}{option})"


def dynamic(rng: Random, shape: Shape) -> str | None:
    """A slice, or an update, that begins where the other operand says."""
    if not shape:
        return None
    sizes = tuple(rng.randint(1, n) for n in shape)
    start = ", ".join(rng.choice([f"choice(_1, {n})", str(rng.randrange(n))]) for n in shape)
    value = rng.choice([f"jnp.full({sizes!r}, 0.75, _0.dtype)", f"like(_1, _0[{', '.join(f':{n}' for n in sizes)}])"])
    return rng.choice([
        f"lax.dynamic_slice(_0, ({start},), {sizes!r})",
        f"lax.dynamic_update_slice(_0, {value}, ({start},))",
        f"_0[choice(_1, {shape[0]})]",
        f"lax.dynamic_index_in_dim(_0, choice(_1, {shape[-1]}), {len(shape) - 1}, keepdims=False)",
        f"_0.at[choice(_1, {shape[0]})].set(0.5)",
        f"_0.at[choice(_1, {shape[0]})].add(like(_1, _0[0]))",
    ])  # fmt: skip


def padded(rng: Random, shape: Shape) -> str | None:
    if not shape:
        return None
    config = [(rng.randint(-1, 1) if n > 2 else rng.randint(0, 1), rng.randint(0, 1), rng.randint(0, 1)) for n in shape]
    widths = [(rng.randint(0, 1), rng.randint(0, 1)) for _ in shape]
    value = rng.choice(["0.75", "_1.ravel()[0].astype(_0.dtype)", "0"])
    mode = rng.choice(["'reflect'", "'edge'", "'wrap'", "'constant', constant_values=0.5", "'linear_ramp'", "'mean'"])
    return rng.choice([f"lax.pad(_0, jnp.asarray({value}, _0.dtype), {config})", f"jnp.pad(_0, {widths}, {mode})"])


def windowed(rng: Random, shape: Shape) -> str | None:
    """A reduction of windows."""
    if not shape:
        return None
    window = tuple(min(rng.randint(1, 2), n) for n in shape)
    strides = tuple(rng.randint(1, 2) for _ in shape)
    padding = rng.choice(["'VALID'", "'SAME'"])
    how = rng.choice(["0.0, lax.add", "-jnp.inf, lax.max", "jnp.inf, lax.min", "1.0, lax.mul"])
    return f"lax.reduce_window(real(_0).astype(float32), {how}, {window!r}, {strides!r}, {padding})"


def contracted(rng: Random, shape: Shape) -> str | None:
    """A product over an axis, with numbers of the other operand."""
    if not shape:
        return None
    n, m = shape[-1], rng.randint(1, 3)
    return rng.choice([
        f"_0 @ spread(_1, ({n}, {m}), -1, 1, float32)",
        f"jnp.tensordot(_0, spread(_1, ({m}, {n}), -1, 1, float32), ([-1], [1]))",
        f"jnp.einsum('...i,ji->j...', _0, spread(_1, ({m}, {n}), -1, 1, float32))",
        "jnp.vdot(_0, like(_1, _0))",
        f"lax.dot_general(_0, like(_1, _0), ((({len(shape) - 1},), ({len(shape) - 1},)), ((), ())))",
        "jnp.matmul(_0, _0.T)" if len(shape) == 2 else "jnp.inner(_0, like(_1, _0))",
    ])  # fmt: skip


Operation = Callable[[Random, Shape], str | None]


def two(rng: Random, shape: Shape) -> str:
    return rng.choice(TWO)


TABLE: Sequence[tuple[str, Operation]] = (
    ("elements", one), ("elements", one), ("conversion", converted), ("axis", along), ("axis", along), ("shape", reshaped),
    ("index", part), ("gather", filled), ("scatter", updated), ("scatter", updated), ("dynamic", dynamic), ("pad", padded),
    ("window", windowed), ("product", contracted), ("two operands", two), ("two operands", two), ("two operands", two),
)  # fmt: skip


def drawn(rng: Random, shape: Shape) -> tuple[str, str] | None:
    """The kind and the text of an operation on a value of a shape."""
    kind, operation = rng.choice(TABLE)
    text: Any = operation(rng, shape)
    return text and (kind, text)
