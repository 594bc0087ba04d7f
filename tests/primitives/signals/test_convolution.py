"""Convolutions and windows: what the grid cannot say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import lax, nn
from pullback.core.errors import ArgumentError, DtypeError, ShapeError

X, KERNEL = jnp.ones((2, 4, 8)), jnp.ones((4, 4, 3))


def conv(
    x: Any = X, kernel: Any = KERNEL, strides: Any = (1,), padding: Any = "VALID", *rest: Any, **options: Any
) -> Any:
    return lax.conv_general_dilated(x, kernel, strides, padding, *rest, **options)


ERRORS: dict[str, tuple[Any, type[Exception], str]] = {
    "ranks": (lambda: conv(X[0]), ShapeError, "the same number of axes, at least 2"),
    "rank 1": (lambda: conv(jnp.ones(2), jnp.ones(2)), ShapeError, "at least 2"),
    "dtypes": (lambda: conv(X.astype(int)), DtypeError, "one dtype, got i32 and f32; convert"),
    "a narrower result": (lambda: conv(preferred_element_type="float16"), DtypeError, "able to represent the values"),
    "a real result of complex ones": (
        lambda: conv(X + 0j, KERNEL + 0j, preferred_element_type="float32"), DtypeError, "preferred_element_type",
    ),
    "a letter twice": (lambda: conv(dimension_numbers=("NCC", "OIH", "NCH")), ShapeError, "each once.*'NCC'"),
    "other letters": (lambda: conv(dimension_numbers=("NCW", "OIH", "NCH")), ShapeError, "must be the 3 letters"),
    "too few letters": (lambda: conv(dimension_numbers=("NC", "OIH", "NCH")), ShapeError, "'NC'"),
    "two specifications": (lambda: conv(dimension_numbers=("NCH", "OIH")), ShapeError, "three strings"),
    "no permutation": (lambda: conv(dimension_numbers=((0, 0, 1), (0, 1, 2), (0, 1, 2))), ShapeError, "permutations"),
    "numbers of something else": (lambda: conv(dimension_numbers=(1, 2, 3)), ShapeError, "strings or sequences"),
    "groups of features": (lambda: conv(feature_group_count=3), ShapeError, "but 3 does not divide 4"),
    "no groups": (lambda: conv(feature_group_count=0), ShapeError, "positive integer, got 0"),
    "groups of the batch": (lambda: conv(batch_group_count=4), ShapeError, "4 does not divide 2"),
    "both groups": (lambda: conv(feature_group_count=2, batch_group_count=2), ShapeError, "at most one"),
    "features": (lambda: conv(kernel=KERNEL[:, :2]), ShapeError, "kernel for 2 features does not fit an operand of 4"),
    "a word": (lambda: conv(padding="FULL"), ArgumentError, "'VALID', 'SAME', 'SAME_LOWER' or a sequence.*'FULL'"),
    "a pair": (lambda: conv(padding=[(1, 2, 3)]), ArgumentError, "sequence of pairs"),
    "how many pairs": (lambda: conv(padding=[(1, 1), (1, 1)]), ShapeError, "must be 1 pairs"),
    "negative padding": (lambda: conv(padding=[(-20, 0)]), ShapeError, "must not remove more elements"),
    "how many strides": (lambda: conv(strides=(1, 1)), ShapeError, "strides must be 1 positive integers"),
    "a stride of 0": (lambda: conv(strides=(0,)), ShapeError, r"positive integers.*got \(0,\)"),
    "a dilation of 0": (lambda: conv(rhs_dilation=(0,)), ShapeError, "rhs_dilation"),
    "a word with dilation": (lambda: conv(padding="SAME", lhs_dilation=(2,)), ArgumentError, "use lax.conv_transpose"),
    "an empty kernel": (lambda: conv(kernel=KERNEL[:, :, :0]), ShapeError, "no elements along a spatial axis"),
    "precision": (lambda: conv(precision="great"), ArgumentError, "'great'"),
    "out_sharding": (lambda: conv(out_sharding="x"), ValueError, r"expected a sharding or a PartitionSpec, got 'x'"),
    "filter_shape": (lambda: lax.conv_general_dilated_patches(X, (0,), (1,), "VALID"), ShapeError, "filter_shape"),
    "local kernels": (
        lambda: lax.conv_general_dilated_local(X, jnp.ones((4, 8, 3)), (1,), "VALID", (2,)), ShapeError, r"\(8, 7\)",
    ),
    "many axes": (
        lambda: lax.conv_transpose(jnp.ones((1,) * 6), jnp.ones((1,) * 6), (1,) * 4, "SAME"), ShapeError, "2 to 5",
    ),
    "a word to transpose": (
        lambda: lax.conv_transpose(X, jnp.ones((3, 8, 4)), (1,), "SAME_LOWER"), ArgumentError, "'SAME', 'VALID'",
    ),
    "pooling without features": (lambda: nn.max_pool(jnp.ones(3), (2, 2)), ShapeError, "an axis of features"),
    "strides of pooling": (lambda: nn.max_pool(X, (2,), (2, 2)), ShapeError, "strides must be 1 integers"),
    "padding of pooling": (lambda: nn.avg_pool(X, (2,), padding=[(1, 1)] * 2), ShapeError, "1 pairs"),
    "a complex maximum": (lambda: nn.max_pool(X + 0j, (2,)), DtypeError, "real numbers"),
}  # fmt: skip


@pytest.mark.parametrize("what", ERRORS)
def test_bad_input(what: str) -> None:
    call, error, message = ERRORS[what]
    with pytest.raises(error, match=message):
        call()


def test_an_operand_shorter_than_the_kernel_has_no_places() -> None:
    out, back = pullback.vjp(lambda x: conv(x[:, :, :2]), X)
    assert out.shape == (2, 4, 0)
    np.testing.assert_array_equal(back(out)[0], np.zeros(X.shape))


def test_mapped_operands_are_one_convolution() -> None:
    """In groups where both are mapped, and a reshape beside it if the mapped axes come first."""
    f = lambda x, k: lax.conv(x, k, (1,), "SAME")
    x, kernels = jnp.ones((5, 2, 4, 8)), jnp.ones((5, 4, 4, 3))
    for axes, moved in (((0, None), 0), ((None, 0), 0), ((0, 0), 1)):
        args = [v if a == 0 else v[0] for v, a in zip((x, kernels), axes, strict=True)]
        eqns = pullback.make_jaxpr(pullback.vmap(f, axes))(*args).eqns
        names = [e.primitive.name for e in eqns]
        before = names[: names.index("conv_general_dilated")]
        assert names.count("conv_general_dilated") == 1
        assert before.count("transpose") == moved
        assert not {"concatenate", "broadcast_in_dim", "while", "scan"} & set(names)


def test_no_examples() -> None:
    x, kernels = jnp.ones((0, 2, 4, 8)), jnp.ones((0, 4, 4, 3))
    for axes in ((0, None), (None, 0), (0, 0)):
        args = [v if a == 0 else v.sum(0) for v, a in zip((x, kernels), axes, strict=True)]
        assert pullback.vmap(lambda x, k: lax.conv(x, k, (1,), "SAME"), axes)(*args).shape == (0, 2, 4, 8)


def test_precision_is_written() -> None:
    text = pullback.jit(lambda x, k: conv(x, k, precision=("high", lax.Precision.HIGHEST))).lower(X, KERNEL).as_text()
    assert "precision HIGH>, #stablehlo<precision HIGHEST>" in text


def test_booleans() -> None:
    """True where a product is: JAX's too."""
    x, kernel = np.arange(8).reshape(1, 1, 8) > 5, np.array([[[True, False]]])
    np.testing.assert_array_equal(conv(x, kernel), x[:, :, :-1])


def test_few_features_are_a_product() -> None:
    """Which the compiler would take four times as long for; the windows are no larger than the result."""
    f = lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    image = jnp.ones((2, 6, 6, 1))
    assert "stablehlo.convolution" not in pullback.jit(f).lower(image, jnp.ones((3, 3, 1, 9))).as_text()
    assert "stablehlo.convolution" in pullback.jit(f).lower(image, jnp.ones((3, 3, 1, 8))).as_text()
