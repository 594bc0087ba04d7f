"""The rows for ``pullback.nn`` and ``pullback.scipy.special``: references are SciPy's functions, or formulas."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.special as special

from pullback import image, nn, ops
from pullback.scipy import special as ours
from tests.grid.specs import FLOAT, INEXACT, K, R, Sample, Spec, derivative_of


def row(
    name: str, function: Callable[..., Any], reference: Callable[..., Any], *samples: Sample,
    dtypes: str = FLOAT, label: str = "", **options: Any,
) -> Spec:  # fmt: skip
    """A row for a function of arrays; what it is given besides arrays is in the function."""
    options.setdefault("derivative", derivative_of(dtypes))
    title = f"{name}({'x'.join(str(s.shape) for s in samples)}{';' + label if label else ''})"
    return Spec(title, name, function, reference, samples, dtypes, **options)


def logistic(x: Any) -> Any:
    return special.expit(x) if x.dtype.kind == "f" else 1 / (1 + np.exp(-x))


def softplus(x: Any) -> Any:
    return np.logaddexp(x, np.zeros((), x.dtype))


def elu(x: Any, alpha: float = 1.0) -> Any:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))).astype(x.dtype)


def sparse_plus(x: Any) -> Any:
    return np.where(x <= -1, 0, np.where(x >= 1, x, (x + 1) ** 2 / 4)).astype(x.dtype)


def gelu(x: Any) -> Any:
    return x * (1 + np.tanh(np.sqrt(2 / np.pi).astype(x.dtype) * (x + 0.044715 * x**3))) / 2


ACTIVATIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "identity": (lambda x: x, INEXACT + "i"),
    "relu": (lambda x: np.maximum(x, 0), FLOAT + "iu"),
    "relu6": (lambda x: np.clip(x, 0, 6), FLOAT),
    "leaky_relu": (lambda x: np.where(x < 0, x * x.dtype.type(0.01), x), FLOAT),
    "hard_tanh": (lambda x: np.clip(x, -1, 1), FLOAT + "i"),
    "hard_sigmoid": (lambda x: np.clip(x / 6 + x.dtype.type(0.5), 0, 1), FLOAT),
    "hard_silu": (lambda x: x * np.clip(x / 6 + x.dtype.type(0.5), 0, 1), FLOAT),
    "sparse_plus": (sparse_plus, FLOAT),
    "sparse_sigmoid": (lambda x: np.clip((x + 1) / 2, 0, 1), FLOAT),
    "sigmoid": (logistic, INEXACT),
    "log_sigmoid": (lambda x: -softplus(-x), FLOAT),
    "softplus": (softplus, FLOAT),
    "silu": (lambda x: x * logistic(x), INEXACT),
    "mish": (lambda x: x * np.tanh(softplus(x)), FLOAT),
    "gelu": (gelu, FLOAT),
    "elu": (elu, FLOAT),
    "selu": (lambda x: (1.0507009873554805 * elu(x, 1.6732632423543772)).astype(x.dtype), FLOAT),
    "celu": (elu, FLOAT),
    "tanh": (np.tanh, INEXACT),
    "soft_sign": (lambda x: x / (1 + np.abs(x)), FLOAT),
    "squareplus": (lambda x: (x + np.sqrt(x**2 + 4)) / 2, FLOAT),
}

TOLERANCES = {"gelu": 8.0, "mish": 4.0, "elu": 4.0, "selu": 4.0, "celu": 4.0}

MASK = np.array([[True, False, True], [True, True, True]])


def over(f: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return partial(f, **options)


def masked_softmax(x: Any) -> Any:
    return np.where(MASK, special.softmax(np.where(MASK, x, -np.inf), -1), 0).astype(x.dtype)


def masked_log_softmax(x: Any) -> Any:
    return special.log_softmax(np.where(MASK, x, x.dtype.type(-np.inf)), -1)


def standardize(x: Any, axis: Any = -1) -> Any:
    return (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + x.dtype.type(1e-5))


def logsumexp_and_sign(x: Any, b: Any) -> Any:
    total = (b * np.exp(x)).sum()
    return np.log(np.abs(total)), np.sign(total)


def one_hot(x: Any) -> Any:
    return (x[..., None] == np.arange(3)).astype(np.float32)


SUMS = [
    *(
        row("nn.softmax", over(nn.softmax, axis=axis), over(special.softmax, axis=axis), R(2, 3), label=f"{axis}")
        for axis in (-1, 0, None, (0, 1))
    ),
    *(
        row("nn.log_softmax", over(nn.log_softmax, axis=a), over(special.log_softmax, axis=a), R(2, 3), label=f"{a}")
        for a in (-1, 0, None)
    ),
    row("nn.softmax", over(nn.softmax, where=MASK), masked_softmax, R(2, 3), label="where"),
    row("nn.log_softmax", over(nn.log_softmax, where=MASK), masked_log_softmax, R(2, 3), label="where", derivative=""),
    *(
        row(
            "nn.logsumexp",
            over(nn.logsumexp, axis=axis, keepdims=kept),
            over(special.logsumexp, axis=axis, keepdims=kept),
            R(2, 3),
            dtypes=INEXACT if axis is None else FLOAT,
            label=f"{axis},{kept}",
        )
        for axis, kept in ((None, False), (-1, True), (0, False), ((0, 1), True))
    ),
    row(
        "nn.logsumexp",
        lambda x, b: nn.logsumexp(x, b=b, axis=1),
        lambda x, b: np.log((b * np.exp(x)).sum(1)),
        R(2, 3),
        R(3, lo=0.5),
        dtypes="f",
        label="b",
    ),
    row(
        "nn.logsumexp",
        lambda x, b: nn.logsumexp(x, b=b, return_sign=True),
        logsumexp_and_sign,
        R(3),
        R(3, lo=-3, hi=-0.5),
        dtypes="f",
        label="return_sign",
    ),
    row(
        "nn.logsumexp",
        over(nn.logsumexp, axis=-1, where=MASK),
        lambda x: np.log((MASK * np.exp(x)).sum(-1)).astype(x.dtype),
        R(2, 3),
        label="where",
    ),
    row("nn.logmeanexp", nn.logmeanexp, lambda x: np.log(np.exp(x).mean()), R(2, 3)),
    row(
        "nn.logmeanexp",
        over(nn.logmeanexp, axis=1, where=MASK, keepdims=True),
        lambda x: np.log(np.exp(x).mean(1, keepdims=True, where=MASK)),
        R(2, 3),
        dtypes="f",
        label="where",
    ),
    *(
        row(
            "nn.standardize",
            over(nn.standardize, axis=axis, algorithm=algorithm),
            over(standardize, axis=axis),
            R(4, 3),
            label=f"{axis},{algorithm}",
            tolerance=16,
        )
        for axis, algorithm in ((-1, "fast"), (0, "stable"), (None, "fast"))
    ),
]

OTHERS = [
    row("nn.glu", nn.glu, lambda x: x[..., :2] * logistic(x[..., 2:]), R(2, 4)),
    row("nn.glu", over(nn.glu, axis=0), lambda x: x[:1] * logistic(x[1:]), R(2, 3), label="0"),
    row("nn.log1mexp", nn.log1mexp, lambda x: np.log(-np.expm1(-x)), R(2, 3, lo=0.1, hi=3), tolerance=8),
    row("nn.gelu", over(nn.gelu, approximate=False), lambda x: x * special.ndtr(x), R(2, 3), label="exact"),
    row("nn.leaky_relu", lambda x, a: nn.leaky_relu(x, a), lambda x, a: np.where(x < 0, a * x, x), R(2, 3), R(3)),
    row(
        "nn.celu",
        lambda x, a: nn.celu(x, a),
        lambda x, a: np.where(x > 0, x, a * np.expm1(x / a)),
        R(2, 3),
        R(3, lo=0.5),
        tolerance=8,
    ),
    row("nn.elu", lambda x, a: nn.elu(x, a), elu, R(2, 3), R(3), tolerance=8),
    row("nn.squareplus", nn.squareplus, lambda x, b: (x + np.sqrt(x**2 + b)) / 2, R(2, 3), R(3, lo=0.5), tolerance=4),
    row("nn.one_hot", over(nn.one_hot, num_classes=3), one_hot, K([[0, 2, 1], [3, -1, 0]]), dtypes="i", derivative=""),
    row(
        "nn.one_hot",
        over(nn.one_hot, num_classes=3, axis=0, dtype=np.int32),
        lambda x: (x == np.arange(3)[:, None]).astype(np.int32),
        K([1, 2], np.uint8),
        dtypes="i",
        label="0",
        derivative="",
    ),
]


SEGMENTS = np.array([2, 0, 1, 2])


def segments(x: Any, reduction: Any) -> Any:
    """A reduction of the rows of each segment, none of which is empty."""
    return np.stack([reduction(x[i == SEGMENTS], axis=0) for i in range(3)])


def attended(q: Any, k: Any, v: Any) -> Any:
    """Attention of one batch, as a formula."""
    scores = np.einsum("tnh,snh->nts", q, k) / np.sqrt(q.shape[-1])
    return np.einsum("nts,snh->tnh", special.softmax(scores, -1), v).astype(q.dtype)


def scaled(x: Any, y: Any, p: Any, q: Any) -> Any:
    return np.einsum("bmk,bnk->bmn", x * np.repeat(p, 2, -1), y * np.repeat(q, 2, -1))


CONTRACTED = (((1,), (1,)), ((), ()))

PRODUCTS = [
    row(
        "nn.dot_product_attention", nn.dot_product_attention, attended, R(3, 2, 2), R(4, 2, 2), R(4, 2, 2),
        dtypes="f", tolerance=16,
    ),
    row("nn.scaled_matmul", lambda *xs: nn.scaled_matmul(*xs, preferred_element_type=xs[0].dtype),
        scaled, R(1, 2, 4), R(1, 3, 4), R(1, 2, 2), R(1, 3, 2), dtypes="f"),
    row(
        "nn.scaled_dot_general", lambda x, y: nn.scaled_dot_general(x, y, CONTRACTED, x.dtype), lambda x, y: x @ y.T,
        R(2, 4), R(3, 4), dtypes="f",
    ),
    row(
        "image.resize", over(image.resize, shape=(2, 5), method="cubic"),
        lambda x: image.resize(np.eye(4, dtype=x.dtype), (2, 4), "cubic") @ x
        @ np.asarray(image.resize(np.eye(3, dtype=x.dtype), (5, 3), "cubic")).T,
        R(4, 3), dtypes="f", tolerance=16,
    ),
    row(
        "image.scale_and_translate",
        lambda x, scale, move: image.scale_and_translate(x, (5, 2), (0,), scale, move, "cubic"),
        lambda x, scale, move: np.asarray(
            image.scale_and_translate(np.eye(4, dtype=x.dtype), (5, 4), (0,), scale, move, "cubic")
        ) @ x,
        R(4, 2), R(1), R(1), dtypes="f", tolerance=64,
    ),
    *(
        row(
            f"ops.segment_{name}", over(getattr(ops, f"segment_{name}"), segment_ids=SEGMENTS, num_segments=3),
            partial(segments, reduction=reduction), R(4, 2), dtypes="f",
        )
        for name, reduction in (("sum", np.sum), ("prod", np.prod), ("max", np.max), ("min", np.min))
    ),
]  # fmt: skip

SPECIAL = [
    *(
        row(f"scipy.special.{name}", getattr(ours, name), getattr(special, name), R(2, 3, lo=low, hi=high), **options)
        for name, low, high, options in (
            ("erf", -2, 2, {}),
            ("erfc", -2, 2, {}),
            ("erfinv", -0.9, 0.9, {}),
            ("erfcinv", 0.1, 1.9, {}),
            ("ndtr", -2, 2, {}),
            ("log_ndtr", -4, 4, {"tolerance": 4}),
            ("gammaln", 0.5, 4, {"tolerance": 4}),
            ("digamma", 2, 4, {}),
            ("expit", -2, 2, {}),
            ("logit", 0.1, 0.4, {"tolerance": 4}),
            ("entr", 0.1, 3, {}),
            ("exprel", -2, 2, {"ugly": True}),
        )
    ),
    row(
        "scipy.special.polygamma",
        lambda x: ours.polygamma(1, x),
        lambda x: special.polygamma(1, x).astype(x.dtype),
        R(2, 3, lo=1, hi=3),
        dtypes="f",
    ),
    *(
        row(f"scipy.special.{name}", getattr(ours, name), getattr(special, name), R(2, 3), R(3, lo=low))
        for name, low in (("xlogy", 0.2), ("xlog1py", -0.8))
    ),
    *(
        row(
            f"scipy.special.{name}",
            over(getattr(ours, name), axis=axis),
            over(getattr(special, name), axis=axis),
            R(2, 3),
            dtypes="f",
            label=f"{axis}",
        )
        for name in ("softmax", "log_softmax", "logsumexp")
        for axis in (None, 1)
    ),
]

NN = [
    *(
        row(f"nn.{name}", getattr(nn, name), reference, R(2, 3), dtypes=dtypes, tolerance=TOLERANCES.get(name, 2.0))
        for name, (reference, dtypes) in ACTIVATIONS.items()
    ),
    *SUMS,
    *OTHERS,
    *PRODUCTS,
    *SPECIAL,
]
