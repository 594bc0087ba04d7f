"""The rows for convolutions and reductions over windows, whose references go through the windows one by one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from pullback import lax, nn
from pullback.primitives.signals import convolution
from pullback.primitives.signals import window_reductions as wr
from pullback.primitives.signals.convolution import ConvDimensionNumbers, Geometry
from pullback.primitives.signals.window_reductions import Windows
from tests.grid.specs import FLOAT, NUMBER, K, R, Sample, Spec, derivative_of, row


def spaced(x: Any, value: Any, axis: int, dilation: int, pair: tuple[int, int]) -> Any:
    """An array with a value around and between its elements along an axis."""
    n = x.shape[axis]
    size = (n - 1) * dilation + 1 if n else 0
    out = np.full((*x.shape[:axis], max(pair[0], 0) + size + max(pair[1], 0), *x.shape[axis + 1 :]), value, x.dtype)
    first = max(pair[0], 0)
    out[(slice(None),) * axis + (slice(first, first + size, dilation),)] = x
    return np.take(out, range(max(-pair[0], 0), out.shape[axis] - max(-pair[1], 0)), axis)


def places(sizes: Any, windows: Any, strides: Any, steps: Any) -> tuple[tuple[int, ...], Iterator[Any]]:
    """How many windows there are along each axis, and for each its index and the elements it has, as slices."""
    counts = tuple(max(0, (n - (k - 1) * d - 1) // s + 1) for n, k, s, d in zip(sizes, windows, strides, steps))

    def each() -> Iterator[Any]:
        for index in itertools.product(*map(range, counts)):
            firsts = [i * s for i, s in zip(index, strides)]
            yield index, tuple(slice(f, f + (k - 1) * d + 1, d) for f, k, d in zip(firsts, windows, steps))

    return counts, each()


def convolve(lhs: Any, rhs: Any, geometry: Geometry, dimension_numbers: Any, groups: tuple[int, int]) -> Any:
    """A convolution by its definition."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    x, w = lhs.transpose(lhs_spec), rhs.transpose(rhs_spec)
    for a, (dilation, pair) in enumerate(zip(geometry.lhs_dilation, geometry.padding)):
        x = spaced(x, 0, 2 + a, dilation, pair)
    features, batches = groups
    parts = []
    for g in range(max(groups)):
        of = lambda v, axis, count, g=g: np.array_split(v, count, axis)[g if count > 1 else 0]
        part, kernel = of(of(x, 1, features), 0, batches), of(w, 0, max(groups))
        counts, each = places(x.shape[2:], w.shape[2:], geometry.strides, geometry.rhs_dilation)
        out = np.zeros((part.shape[0], kernel.shape[0], *counts), np.result_type(lhs, rhs))
        for index, window in each:
            seen = part[(slice(None), slice(None), *window)]
            out[(slice(None), slice(None), *index)] = np.einsum(
                "ncp,ocp->no", *(v.reshape(*v.shape[:2], -1) for v in (seen, kernel))
            )
        parts.append(out)
    return np.concatenate(parts, 1).transpose(np.argsort(out_spec))


def over_windows(x: Any, windows: Windows, value: Any, function: Callable[[Any], Any]) -> Any:
    """A function of the elements of each window."""
    for a, (dilation, pair) in enumerate(zip(windows.base_dilation, windows.padding)):
        x = spaced(x, value, a, dilation, pair)
    counts, each = places(x.shape, windows.sizes, windows.strides, windows.window_dilation)
    out = [function(x[window]) for _, window in each]
    return np.array(out).reshape(counts) if out else np.zeros(counts)


def convolution_row(
    lhs: tuple[int, ...], rhs: tuple[int, ...], geometry: Geometry, dtypes: str = "f",
    numbers: ConvDimensionNumbers | None = None, groups: tuple[int, int] = (1, 1), **options: Any,
) -> Spec:  # fmt: skip
    numbers = numbers or ConvDimensionNumbers(*[tuple(range(len(lhs)))] * 3)
    params = {
        "geometry": geometry, "dimension_numbers": numbers, "feature_group_count": groups[0],
        "batch_group_count": groups[1], "precision": None,
    }  # fmt: skip
    reference = partial(convolve, geometry=geometry, dimension_numbers=numbers, groups=groups)
    return row(
        convolution.conv_general_dilated_p, reference, R(*lhs), R(*rhs), params=params, dtypes=dtypes, tolerance=8,
        label=f"{geometry.strides},{groups}", **options,
    )  # fmt: skip


LAST = ConvDimensionNumbers((0, 2, 1), (2, 1, 0), (0, 2, 1))

CONVOLUTIONS = [
    convolution_row((2, 3, 4), (1, 3, 2), Geometry((1,), ((1, 0),), (1,), (1,)), NUMBER + "?"),
    convolution_row((2, 3, 4), (2, 2, 4), Geometry((2,), ((2, 1),), (2,), (2,)), numbers=LAST, groups=(2, 1)),
    convolution_row((2, 2, 3), (4, 2, 2), Geometry((1,), ((0, 1),), (1,), (1,)), groups=(1, 2)),
]

HERE = Windows((2,), (1,), ((1, 0),), (1,), (1,))
APART = Windows((2, 3), (2, 1), ((0, 1), (1, 1)), (1, 2), (1, 2))
LONG = Windows((35,), (2,), ((30, 2),), (1,), (1,))
LOW = {"f": -np.inf, "i": -(2**31), "b": -np.inf}


def extreme_row(p: Any, largest: bool, shape: tuple[int, ...], windows: Windows, dtypes: str) -> Spec:
    def reference(x: Any) -> Any:
        info = np.iinfo(x.dtype) if x.dtype.kind in "iu" else np.finfo(x.dtype)
        nothing = (-np.inf if largest else np.inf) if x.dtype.kind == "f" else info.min if largest else info.max
        return over_windows(x, windows, nothing, np.max if largest else np.min).astype(x.dtype)

    return row(p, reference, R(*shape), params={"windows": windows}, dtypes=dtypes, label=str(windows.sizes))


def positions_row(largest: bool, shape: tuple[int, ...], windows: Windows) -> Spec:
    def reference(x: Any) -> Any:
        numbers = over_windows(
            x, windows, np.nan, lambda v: -1 if np.isnan(v).all() else (np.nanargmax if largest else np.nanargmin)(v)
        )
        return np.where(numbers < 0, np.prod(windows.sizes), numbers).astype(np.int32)

    params = {"windows": windows, "largest": largest}
    return row(wr.window_positions_p, reference, R(*shape), params=params, derivative="", label=str(windows.sizes))


def sum_row(shape: tuple[int, ...], windows: Windows, dtypes: str) -> Spec:
    reference = lambda x: over_windows(x, windows, 0, np.sum).astype(x.dtype)
    return row(
        wr.reduce_window_sum_p, reference, R(*shape), params={"windows": windows}, dtypes=dtypes, tolerance=4,
        label=str(windows.sizes),
    )  # fmt: skip


def take(t: Any, positions: Any, windows: Windows) -> Any:
    """What each window has at a position, by its definition; zero where it is none of its elements."""
    of = iter(positions.ravel())

    def element(window: Any) -> Any:
        position = next(of)
        return window.ravel()[position] if position < window.size else 0

    return over_windows(t, windows, 0, element).astype(t.dtype)


def put(ct: Any, positions: Any, windows: Windows, shape: tuple[int, ...]) -> Any:
    """The transpose of ``take``, which is a matrix."""
    matrix = np.stack(
        [take(e.reshape(shape), positions, windows).ravel() for e in np.eye(int(np.prod(shape)), dtype=ct.dtype)]
    )
    return (matrix @ ct.ravel()).reshape(shape)


def chosen_rows(shape: tuple[int, ...], windows: Windows) -> list[Spec]:
    counts = windows.counts(shape)
    numbers = np.arange(np.prod(counts)) * 5 % (np.prod(windows.sizes) + 1)
    positions = K(numbers.reshape(counts))
    options: dict[str, Any] = {"dtypes": "f", "label": str(windows.sizes)}
    return [
        row(
            wr.take_chosen_p, partial(take, windows=windows), R(*shape), positions, params={"windows": windows},
            **options,
        ),
        row(
            wr.put_chosen_p, partial(put, windows=windows, shape=shape), R(*counts), positions,
            params={"windows": windows, "shape": shape}, **options,
        ),
    ]  # fmt: skip


WINDOW_REDUCTIONS = [
    sum_row((4,), HERE, NUMBER),
    sum_row((3, 4), APART, "f"),
    extreme_row(wr.reduce_window_max_p, True, (4,), HERE, "hbfiu"),
    extreme_row(wr.reduce_window_max_p, True, (3, 4), APART, "f"),
    extreme_row(wr.reduce_window_min_p, False, (4,), HERE, "hbfiu"),
    positions_row(True, (3, 4), APART),
    positions_row(False, (40,), LONG),
    *chosen_rows((3, 4), APART),
    *chosen_rows((40,), LONG),
]


def pooled(name: str, reference: Callable[[Any], Any], *samples: Sample, dtypes: str = FLOAT, **options: Any) -> Spec:
    function = partial(getattr(nn, name), window_shape=(2,), **options)
    title = f"nn.{name}({'x'.join(str(s.shape) for s in samples)};{options})"
    return Spec(title, f"nn.{name}", function, reference, samples, dtypes, derivative_of(dtypes))


def in_pairs(x: Any, function: Any) -> Any:
    return function(x[:, :4].reshape(2, 2, 2, 3), 2).astype(x.dtype)


POOLING = [
    pooled("avg_pool", partial(in_pairs, function=np.mean), R(2, 5, 3), strides=(2,)),
    pooled(
        "avg_pool",
        lambda x: np.concatenate([(x[:, :-1] + x[:, 1:]) / 2, x[:, -1:]], 1),
        R(2, 3, 1), dtypes="f", padding="SAME", count_include_pad=False,
    ),
    pooled("max_pool", partial(in_pairs, function=np.max), R(2, 5, 3), strides=(2,)),
    pooled("min_pool", partial(in_pairs, function=np.min), R(2, 5, 3), strides=(2,)),
]  # fmt: skip


SOME_ZEROS = np.array([0, 1, 0, 0, 1])


def product_of_threes(x: Any) -> Any:
    x = x * SOME_ZEROS.astype(x.dtype)
    return lax.reduce_window(x, 1.0, lax.mul, (3,), (1,), "SAME")


THREES = Windows((3,), (1,), ((1, 1),), (1,), (1,))

PRODUCTS = [
    Spec(
        "lax.reduce_window(mul)", "lax.reduce_window", product_of_threes,
        lambda x: over_windows(x * SOME_ZEROS.astype(x.dtype), THREES, 1, np.prod).astype(x.dtype), (R(5),),
    ),
    Spec(
        "lax.reduce(by a function)", "lax.reduce",
        lambda x: lax.reduce(x, 0.0, lambda a, b: a * b + a + b, (0,)),
        lambda x: np.prod(1 + x, 0) - 1, (R(5, 2),), tolerance=8,
    ),
]  # fmt: skip

IN_SPACE = [*CONVOLUTIONS, *WINDOW_REDUCTIONS, *PRODUCTS]
