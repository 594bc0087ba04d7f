"""Cases of convolutions, windows and reductions by functions."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tests.recorded import cases

Shapes = tuple[tuple[int, ...], ...]


def distinct(name: str, shapes: Shapes, dtype: str) -> tuple[np.ndarray[Any, Any], ...]:
    """Operands of a case, no two elements of which are equal."""
    rng = np.random.default_rng(sum(map(ord, name)))
    found = []
    for shape in shapes:
        x = rng.permutation(int(np.prod(shape))).reshape(shape) / 7 - 1
        if dtype.startswith("complex"):
            x = x + 1j * rng.permutation(x.size).reshape(shape) / 5
        found.append((np.round(x) if dtype.startswith("int") else x).astype(dtype))
    return tuple(found)


def case_of(name: str, run: Any, shapes: Shapes, dtype: str = "float32") -> cases.Case:
    return cases.Case(
        name, lambda lib, *xs: run(lib.lax, *xs), distinct(name, shapes, dtype), derivatives=dtype != "float16"
    )


def call(name: str, lax: Any, *xs: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    if name == "reduce_window":
        init, computation, *rest = arguments
        return lax.reduce_window(*xs, init, getattr(lax, computation), *rest, **options)
    return getattr(lax, name)(*xs, *arguments, **options)


def case(name: str, shapes: Shapes, *arguments: Any, dtype: str = "float32", **options: Any) -> cases.Case:
    shown = [str(s) for s in shapes] + [str(a) for a in arguments] + [f"{k}={v}" for k, v in options.items()]
    title = f"{name}({', '.join(shown)}{'' if dtype == 'float32' else ', ' + dtype})"
    return case_of(title, partial(call, name, arguments=arguments, options=options), shapes, dtype)


ONE, TWO = ((2, 3, 7), (4, 3, 3)), ((2, 2, 6, 5), (3, 2, 3, 2))
LAST = ("NHWC", "HWIO", "NHWC")
MIXED = ("HNWC", "IWHO", "CWNH")

GENERAL = [
    case("conv_general_dilated", ONE, (1,), "VALID"),
    case("conv_general_dilated", ONE, (2,), "SAME"),
    case("conv_general_dilated", ((2, 3, 7), (4, 3, 4)), (3,), "SAME_LOWER"),
    case("conv_general_dilated", TWO, (2, 1), [(1, 2), (0, 1)]),
    case("conv_general_dilated", TWO, (2, 3), [(-1, 2), (1, -1)]),
    case("conv_general_dilated", TWO, (1, 2), [(3, 1), (0, 4)], (2, 1), (1, 2)),
    case("conv_general_dilated", TWO, (3, 2), [(3, 1), (2, 4)], (2, 3), (2, 2)),
    case("conv_general_dilated", ((2, 6, 5, 3), (3, 2, 3, 4)), (2, 1), "SAME", dimension_numbers=LAST),
    case("conv_general_dilated", ((2, 6, 5, 1), (3, 2, 1, 7)), (2, 1), "SAME", None, (1, 2), LAST),
    case("conv_general_dilated", ((2, 7, 2), (2, 2, 5)), (3,), [(2, 0)], dimension_numbers=("NHC", "HIO", "NHC")),
    case("conv_general_dilated", ((4, 2, 5, 3), (3, 2, 3, 2)), (1, 2), [(1, 0), (2, 1)], dimension_numbers=MIXED),
    case("conv_general_dilated", ((2, 6, 7), (4, 3, 3)), (2,), "SAME", feature_group_count=2),
    case("conv_general_dilated", ((2, 4, 7), (8, 1, 3)), (1,), [(2, 1)], (2,), (2,), feature_group_count=4),
    case("conv_general_dilated", ((4, 3, 7), (6, 3, 3)), (2,), [(1, 1)], batch_group_count=2),
    case("conv_general_dilated", ((4, 5, 5, 2), (2, 3, 2, 4)), (1, 1), "SAME", None, (2, 1), LAST, 1, 4),
    case("conv_general_dilated", ((1, 1, 3, 4, 3), (2, 1, 2, 2, 3)), (1, 2, 1), "SAME"),
    case("conv_general_dilated", ((2, 3), (4, 3)), (), "VALID"),
    case("conv_general_dilated", ((2, 3, 2), (4, 3, 3)), (1,), "VALID"),
    case("conv_general_dilated", ((2, 0, 4), (4, 0, 3)), (1,), "SAME"),
    case("conv_general_dilated", ((2, 3, 0), (4, 3, 3)), (1,), [(2, 2)], (2,)),
    case("conv_general_dilated", TWO, (2, 1), "SAME", dtype="complex64"),
    case("conv_general_dilated", ((2, 4, 5), (4, 2, 2)), (1,), [(1, 2)], None, (2,), None, 2, dtype="complex64"),
    case("conv_general_dilated", TWO, (2, 1), "SAME", dtype="int32"),
    case("conv_general_dilated", TWO, (2, 1), "SAME", dtype="int8", preferred_element_type="int32"),
    case("conv_general_dilated", TWO, (1, 1), "SAME", dtype="int8", preferred_element_type="float32"),
    case("conv_general_dilated", ONE, (1,), "SAME", dtype="float16", preferred_element_type="float32"),
]

OTHERS = [
    *(case("conv", ONE, (stride,), padding) for stride in (1, 2, 3) for padding in ("SAME", "VALID")),
    *(case("conv", TWO, strides, padding) for strides in ((1, 1), (2, 3)) for padding in ("SAME_LOWER", "VALID")),
    *(
        case("conv_with_general_padding", ONE, (stride,), [padding], (base,), (step,))
        for stride, padding, base, step in (
            (1, (0, 0), 1, 1), (1, (1, 2), 1, 1), (2, (1, 1), 1, 1), (2, (0, 1), 1, 2), (1, (0, 0), 2, 1),
            (1, (3, 2), 2, 3), (3, (1, 0), 3, 2), (2, (-1, -1), 1, 1), (2, (-2, 4), 2, 1),
        )
    ),
    case("conv_with_general_padding", TWO, (2, 1), "SAME", None, (1, 2)),
    *(
        case("conv_transpose", ((2, 5, 3), (k, 3, 4)), (stride,), padding)
        for k, stride, padding in ((3, 1, "SAME"), (3, 2, "SAME"), (2, 3, "SAME"), (4, 2, "VALID"), (2, 3, "VALID"))
    ),
    case("conv_transpose", ((2, 5, 3), (3, 3, 4)), (2,), [(1, 2)]),
    case("conv_transpose", ((2, 5, 3), (3, 3, 4)), (2,), [(1, 2)], use_consistent_padding=True),
    case("conv_transpose", ((2, 5, 3), (3, 3, 4)), (2,), "SAME", (2,)),
    case("conv_transpose", ((2, 4, 3, 2), (3, 2, 5, 2)), (2, 3), "SAME", transpose_kernel=True),
    case("conv_transpose", ((2, 2, 4, 3), (2, 3, 3, 2)), (2, 1), "VALID", (1, 2), ("NCHW", "IOHW", "NCHW")),
    *(
        case("conv_general_dilated_patches", (shape,), filters, strides, padding, **options)
        for shape, filters, strides, padding, options in (
            ((2, 3, 5), (3,), (1,), "VALID", {}), ((2, 3, 5), (2,), (2,), "SAME", {}),
            ((2, 3, 5), (2,), (1,), [(1, 2)], {"lhs_dilation": (2,), "rhs_dilation": (3,)}),
            ((2, 3, 2), (3,), (1,), "VALID", {}), ((1, 2, 4, 5), (3, 2), (1, 2), "SAME", {}),
            ((1, 2, 4, 5), (2, 2), (2, 1), [(1, 0), (-1, 2)], {}),
            ((1, 4, 5, 2), (2, 3), (1, 1), "VALID", {"dimension_numbers": LAST}),
            ((4, 1, 5, 2), (2, 3), (1, 1), "SAME", {"dimension_numbers": MIXED}),
            ((1, 2, 4, 3), (2, 2), (1, 1), "SAME_LOWER", {"rhs_dilation": (2, 1)}),
            ((1, 1, 3, 3, 2), (2, 1, 2), (1, 1, 1), "VALID", {}),
        )
    ),
    *(
        case("conv_general_dilated_local", shapes, *arguments)
        for shapes, arguments in (
            (((2, 3, 5), (4, 6, 4)), ((1,), "VALID", (2,))), (((2, 3, 5), (4, 9, 3)), ((2,), "SAME", (3,))),
            (((2, 1, 4), (2, 2, 6)), ((1,), [(1, 2)], (2,))), (((2, 1, 4), (2, 2, 6)), ((1,), [(0, 0)], (2,), (2,))),
            (((2, 1, 6), (2, 3, 2)), ((1,), "VALID", (3,), None, (2,))),
            (((1, 2, 3, 4), (3, 8, 2, 3)), ((1, 1), "VALID", (2, 2))),
            (((1, 2, 3, 4), (3, 8, 2, 2)), ((2, 2), "SAME", (2, 2))),
            (((1, 3, 4, 2), (2, 3, 8, 3)), ((1, 1), "VALID", (2, 2), None, None, LAST)),
            (((3, 1, 4, 2), (8, 3, 2, 3)), ((1, 1), "VALID", (2, 2), None, None, MIXED)),
            (((2, 3), (4, 3)), ((), "VALID", ())),
        )
    ),
]  # fmt: skip

SPACES: list[tuple[tuple[int, ...], tuple[Any, ...]]] = [
    ((6,), ((2,),)), ((7,), ((3,), (2,), "SAME")), ((7,), ((4,), (3,), "SAME_LOWER")), ((3,), ((5,),)),
    ((7,), ((3,), (1,), [(2, 1)], (2,), (2,))), ((4, 5), ((2, 2), (2, 2))), ((4, 5), ((3, 2), (1, 2), "SAME")),
    ((4, 5), ((2, 3), (1, 1), [(1, -1), (0, 2)], (1, 2), (2, 1))), ((40,), ((35,), (2,), "SAME")),
    ((2, 3, 4), ((1, 2, 2), (1, 1, 2), "SAME")),
]  # fmt: skip
WINDOWS = [
    *(case("reduce_window", (shape,), 0.0, "add", *rest) for shape, rest in SPACES),
    *(case("reduce_window", (shape,), -np.inf, "max", *rest) for shape, rest in SPACES),
    *(case("reduce_window", (shape,), np.inf, "min", *rest) for shape, rest in SPACES),
    *(case("reduce_window", (shape,), 1.0, "mul", *rest) for shape, rest in SPACES),
    case("reduce_window", ((6,),), 0.0, "add", (3,), (2,), "SAME", (2,)),
    case("reduce_window", ((6,),), -np.inf, "max", (3,), (2,), "SAME", (2,), (3,)),
    case("reduce_window", ((6,),), -np.inf, "max", (3,), (2,), "SAME", dtype="float16"),
    case("reduce_window", ((6,),), 5.0, "add", (3,), (1,), [(1, 1)]),
    case("reduce_window", ((6,),), 0.0, "max", (3,), (1,), [(1, 1)]),
    case("reduce_window", ((6,),), 2.0, "mul", (3,), (2,), [(1, 1)]),
    case("reduce_window", ((6,),), 0, "add", (3,), (2,), "SAME", dtype="int32"),
    case("reduce_window", ((6,),), -(2**31), "max", (3,), (2,), "SAME", dtype="int32"),
    case("reduce_window", ((6,),), 0, "bitwise_or", (3,), (2,), "SAME", dtype="int32"),
    case("reduce_window", ((6,),), -1, "bitwise_and", (3,), (2,), "SAME", dtype="int32"),
]


def reduced(lax: Any, *xs: Any, name: str, init: Any, computation: Any, rest: Any) -> Any:
    """A reduction of one operand, by a function or by one of the library's."""
    function = getattr(lax, computation) if isinstance(computation, str) else computation
    return getattr(lax, name)(*xs, init, function, *rest)


def reduction(
    title: str,
    shape: tuple[int, ...],
    init: Any,
    computation: Any,
    *rest: Any,
    dtype: str = "float32",
    of: str = "reduce",
) -> cases.Case:
    return case_of(title, partial(reduced, name=of, init=init, computation=computation, rest=rest), (shape,), dtype)


def second_of_largest(lax: Any, x: Any, y: Any, axes: Any) -> Any:
    def better(one: Any, other: Any) -> Any:
        larger = one[0] >= other[0]
        return lax.select(larger, one[0], other[0]), lax.select(larger, one[1], other[1])

    return lax.reduce((x, y), (np.float32(-np.inf), np.float32(0)), better, axes)[1]


def of_logarithms(a: Any, b: Any) -> Any:
    return a * b + a + b


FUNCTIONS = [
    *(
        reduction(f"reduce {name} {axes}", (2, 3, 4), init, name, axes)
        for name, init in (("add", 0.0), ("mul", 1.0), ("max", -np.inf), ("min", np.inf))
        for axes in ((0,), (0, 2))
    ),
    reduction("reduce from 2", (2, 3), 2.0, "add", (1,)),
    reduction("reduce from 0", (2, 3), 0.0, "max", (1,)),
    *(
        reduction(f"reduce by a function {axes}", (2, 3, 4), 0.0, of_logarithms, axes)
        for axes in ((0,), (1,), (0, 2), (0, 1, 2), ())
    ),
    *(
        case_of(f"reduce of two {axes}", partial(second_of_largest, axes=axes), ((2, 3, 5), (2, 3, 5)))
        for axes in ((0,), (2,), (1, 2))
    ),
    *(
        reduction(f"reduce {name} of integers", (2, 3), init, name, (1,), dtype="int32")
        for name, init in (("bitwise_and", -1), ("bitwise_or", 0), ("bitwise_xor", 0), ("add", 0))
    ),
    *(
        reduction(f"reduce_window by a function {rest}", shape, 0.0, of_logarithms, *rest, of="reduce_window")
        for shape, rest in SPACES
    ),
]

CASES = [*GENERAL, *OTHERS, *WINDOWS, *FUNCTIONS]
