"""The checker of derivatives finds what is wrong, says where, and lets pass what is right."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
import pullback.numpy as pnp
from pullback import jvp, vjp
from pullback.core import dtypes
from pullback.core.array import as_array
from pullback.core.config import enable_x64
from pullback.core.trace import Primitive
from pullback.primitives.arrays.slicing import slice_in_dim
from pullback.primitives.checks import INEXACT
from pullback.primitives.declare import elementwise
from pullback.primitives.elementwise import (
    add,
    conj,
    convert_element_type,
    cos,
    gt,
    mul,
    real,
    sin,
    stop_gradient_p,
    where,
)
from pullback.primitives.reductions import reduce_sum
from pullback.test_util import check_grads, check_jvp, check_vjp
from pullback.testing.differences import Point

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _the_same_numbers_in_whatever_order_the_tests_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "RNG", np.random.default_rng(0))


THOUSAND = np.asarray(RNG.normal(size=1000), np.float32)


def total(x: Any) -> Any:
    return reduce_sum(x, range(len(x.shape)))


def sines_with_factor(factor: Any) -> Any:
    """sin, whose derivative is multiplied by something that should be one."""
    factor = np.asarray(factor)

    def rule(t: Any, x: Any, ans: Any) -> Any:
        return mul(t, mul(cos(x), as_array(factor.astype(x.dtype))))

    p: Primitive = elementwise("nearly_sin", of=INEXACT, host=np.sin, jvp=rule)
    return p.bind


class TestWhatIsRight:
    def test_a_long_sum_in_float32(self) -> None:
        x = np.asarray(RNG.uniform(0, 1, 10_000), np.float32)
        check_grads(total, (x,), order=2)

    def test_a_long_sum_that_is_computed_in_float32_whatever_its_input(self) -> None:
        x = np.asarray(RNG.uniform(0, 1, 10_000), np.float32)
        check_grads(lambda x: total(convert_element_type(x, np.dtype(np.float32))), (x,), order=1)

    @pytest.mark.slow
    def test_a_large_sum_of_large_values(self) -> None:
        x = np.asarray(RNG.uniform(0, 1e4, 400), np.float32)
        check_grads(lambda x: total(mul(x, x)), (x,), order=2)

    @pytest.mark.parametrize("order", [1, 2, 3])
    def test_orders(self, order: int) -> None:
        check_grads(lambda x: sin(mul(x, sin(x))), (0.7,), order=order)

    def test_trees_of_arguments_and_results(self) -> None:
        def f(p: dict[str, Any], q: Any) -> dict[str, Any]:
            return {"a": sin(mul(p["w"], q[0])), "b": (total(p["v"]), q[1])}

        args = ({"w": THOUSAND[:3], "v": THOUSAND[:2]}, [1.5, 2])
        check_grads(f, args, order=2)

    def test_integer_arguments_and_results_are_left_alone(self) -> None:
        check_grads(lambda x, n: (mul(sin(x), 2.0), n, np.arange(3)), (1.0, 3), order=2)
        check_grads(lambda n: n, (3,), order=1)

    def test_complex(self) -> None:
        z = np.asarray([1 + 2j, 0.5 - 1j], np.complex64)
        check_grads(lambda z: sin(mul(z, z)), (z,), order=2)
        check_grads(lambda z: mul(conj(z), z), (z,), order=2)
        check_grads(lambda z: real(mul(conj(z), sin(z))), (z,), order=2)
        check_grads(lambda x: mul(x, 1j * np.ones(2, np.complex64)), (z,), order=1)

    def test_near_the_border_of_the_domain(self) -> None:
        check_grads(jnp.log, (1e-3,), order=2)
        check_grads(jnp.log, (1e-7,), order=1)
        check_grads(jnp.sqrt, (1e-6,), order=1)

    def test_large_and_small_arguments(self) -> None:
        check_grads(jnp.exp, (20.0,), order=2)
        check_grads(lambda x: mul(x, x), (1e10,), order=2)
        check_grads(lambda x: mul(x, x), (1e-10,), order=2)
        check_grads(lambda x: add(sin(x), 1e3), (1e-3,), order=2)

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
    def test_narrow_dtypes(self, dtype: str) -> None:
        x = as_array(THOUSAND[:5].astype(dtypes.canonicalize_dtype(dtype)))
        check_grads(lambda x: sin(mul(x, x)), (x,), order=1)

    def test_double_precision(self) -> None:
        with enable_x64():
            check_grads(lambda x: sin(mul(x, x)), (np.asarray([0.3, 2.0]),), order=3)

    def test_more_components_than_are_differenced_one_by_one(self) -> None:
        x = np.asarray(RNG.normal(size=3000), np.float32)
        check_grads(sin, (x,), order=2)

    def test_a_single_mode(self) -> None:
        check_grads(sin, (1.0,), 1, modes="fwd")
        check_grads(sin, (1.0,), 1, modes=["rev"])

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("scale", [1.0, 1e5])
    def test_a_zero_that_is_the_difference_of_large_intermediates(self, dtype: Any, scale: float) -> None:
        weights = np.asarray(RNG.uniform(-scale, scale, 64), dtype)

        def f(x: Any) -> Any:  # zero, but for the rounding of two sums in different orders
            terms = mul(sin(x), weights)
            halves = [total(terms[start::2]) for start in (0, 1)]
            return jnp.stack([add(total(terms), -add(*halves)), total(sin(x))])

        with enable_x64():
            check_grads(f, (as_array(np.asarray(RNG.uniform(0.5, 1, 64), dtype)),), order=2)

    def test_own_steps_and_tolerances(self) -> None:
        check_grads(sin, (1.0,), 1, eps=1e-3, atol=1e-3, rtol=1e-3)


class TestWhatIsWrong:
    @pytest.mark.parametrize("size", [1.0, 1e-3, 1e-5])
    def test_a_thousandth_of_a_component_beside_the_rounding_errors_of_large_intermediates(self, size: float) -> None:
        nearly = sines_with_factor(np.asarray([1.001, 1.0]))

        def f(x: Any) -> Any:
            large = mul(sin(x), 1e4)
            return jnp.stack([total(add(large, mul(x, size))) - total(large), total(mul(nearly(x), size))])

        with enable_x64(), pytest.raises(AssertionError, match=r"output\[1\] by argument 0\[0\]"):
            check_grads(f, (as_array(np.asarray([0.7, 0.8])),), order=1)

    @pytest.mark.slow
    @pytest.mark.parametrize("modes", ["fwd", "rev"])
    @pytest.mark.parametrize("size", [1000, 5000])
    def test_one_component_of_many(self, modes: str, size: int) -> None:
        x = np.asarray(RNG.normal(size=size), np.float32)
        x[637] = 0.5  # so that its derivative is not small beside the others
        factor = np.ones(size)
        factor[637] = 1.001
        bad = sines_with_factor(factor)
        check_grads(lambda x: total(sines_with_factor(np.ones(size))(x)), (x,), 1, modes=modes)
        with pytest.raises(AssertionError, match=r"derivative of output by argument 0\[637\]: expected") as caught:
            check_grads(lambda x: total(bad(x)), (x,), 1, modes=modes)
        assert re.search(r"relative 0\.0010*\b|relative 0\.001", str(caught.value))
        with pytest.raises(AssertionError, match=r"by argument 0\[637\]: expected"):
            check_grads(bad, (x,), 1, modes=modes)

    def test_the_leaf_and_the_component_are_named(self) -> None:
        bad = sines_with_factor(np.asarray([[1, 1], [1, 1.5]]))

        def f(p: dict[str, Any], q: Any) -> dict[str, Any]:
            return {"y": bad(p["w"]), "z": sin(q)}

        args = ({"w": THOUSAND[:4].reshape(2, 2), "b": 1.0}, 2.0)
        for modes in ("fwd", "rev"):
            with pytest.raises(AssertionError) as caught:
                check_grads(f, args, 1, modes=modes)
            message = str(caught.value)
            assert "wrong in 1 of the" in message
            assert "derivative of output['y'][1, 1] by argument 0['w'][1, 1]" in message
            assert ("jvp of" if modes == "fwd" else "vjp of") in message

    def test_the_second_order_alone(self) -> None:
        wrong = elementwise("wrong_cos", of=INEXACT, host=np.cos, jvp=lambda t, x, ans: mul(t, mul(-1.1, sin(x))))
        f = elementwise("half_right", of=INEXACT, host=np.sin, jvp=lambda t, x, ans: mul(t, wrong.bind(x))).bind
        check_grads(f, (1.0,), order=1)
        with pytest.raises(AssertionError, match=r"jvp of jvp of"):
            check_grads(f, (1.0,), order=2)

    def test_a_stopped_gradient(self) -> None:
        with pytest.raises(AssertionError, match=r"got 1.* off by 1"):
            check_grads(lambda x: mul(x, stop_gradient_p.bind(x)), (1.0,), 1, modes="fwd")

    def test_a_kink(self) -> None:
        with pytest.raises(AssertionError, match=r"expected 0\.5 .* got 0:"):
            check_grads(lambda x: where(gt(x, 0), x, 0), (0.0,), 1)

    def test_the_imaginary_part(self) -> None:
        z = np.asarray([1 + 2j, 0.5 - 1j], np.complex64)
        p = elementwise("wrong_sin", of=INEXACT, host=np.sin, jvp=lambda t, x, ans: mul(conj(t), cos(x)))
        p2 = elementwise("wrong_sin", of=INEXACT, host=np.sin, jvp=lambda t, x, ans: mul(t, cos(conj(x))))
        for q in (p, p2):
            with pytest.raises(AssertionError, match=r"\((real|imaginary) part\)"):
                check_grads(q.bind, (z,), 1, modes="fwd")
        with pytest.raises(AssertionError, match=r"by argument 0\[[01]\] \((real|imaginary) part\)"):
            check_grads(p2.bind, (z,), 1, modes="rev")

    def test_not_a_number(self) -> None:
        bad = sines_with_factor(np.nan)
        with pytest.raises(AssertionError, match="got nan"):
            check_grads(bad, (1.0,), 1)

    def test_only_in_the_dtype_of_the_arguments(self) -> None:
        def rule(t: Any, x: Any, ans: Any) -> Any:
            return mul(t, mul(cos(x), 1.01 if x.dtype == np.float32 else 1.0))

        bad = elementwise("narrowly_wrong", of=INEXACT, host=np.sin, jvp=rule).bind
        with pytest.raises(AssertionError, match="in the dtype of the arguments"):
            check_grads(bad, (THOUSAND[:3],), 1, modes="fwd")
        with pytest.raises(AssertionError, match="in the dtype of the arguments"):
            check_grads(bad, (THOUSAND[:3],), 1, modes="rev")

    def test_many_at_once_are_counted(self) -> None:
        with pytest.raises(AssertionError, match=r"wrong in 50 of the 2500 .*(\n.*)*and 45 more"):
            check_grads(sines_with_factor(2.0), (THOUSAND[:50],), 1)


class TestRulesByHand:
    def test_jvp(self) -> None:
        check_jvp(sin, lambda xs, ts: (sin(xs[0]), mul(ts[0], cos(xs[0]))), (THOUSAND[:3],))
        with pytest.raises(AssertionError, match="mine is wrong"):
            check_jvp(sin, lambda xs, ts: (sin(xs[0]), mul(ts[0], sin(xs[0]))), (THOUSAND[:3],), err_msg="mine")

    def test_vjp(self) -> None:
        check_vjp(sin, lambda x: (sin(x), lambda ct: (mul(ct, cos(x)),)), (THOUSAND[:3],))
        with pytest.raises(AssertionError, match="vjp of sin is wrong"):
            check_vjp(pnp.sin, lambda x: (sin(x), lambda ct: (mul(ct, sin(x)),)), (THOUSAND[:3],))

    def test_a_wrong_value(self) -> None:
        with pytest.raises(AssertionError, match=r"the value returned with it is wrong: output\[0\] is"):
            check_jvp(sin, lambda xs, ts: (cos(xs[0]), mul(ts[0], cos(xs[0]))), (THOUSAND[:3],))
        with pytest.raises(AssertionError, match="the value returned with it is"):
            check_vjp(sin, lambda x: ([sin(x)], lambda ct: (mul(ct[0], cos(x)),)), (THOUSAND[:3],))

    def test_a_tangent_of_another_shape(self) -> None:
        def short(xs: Any, ts: Any) -> Any:
            return sin(xs[0]), slice_in_dim(ts[0], 0, 2, 0)

        with pytest.raises(AssertionError, match=r"tangent of the output must have shape \(3,\).* got shape \(2,\)"):
            check_jvp(sin, short, (THOUSAND[:3],))

    def test_cotangents_of_another_tree(self) -> None:
        with pytest.raises(AssertionError, match="cotangents of the arguments must have the tree"):
            check_vjp(sin, lambda x: (sin(x), lambda ct: (ct, ct)), (THOUSAND[:3],))

    def test_the_transformations_themselves(self) -> None:
        check_jvp(sin, lambda xs, ts: jvp(sin, xs, ts), (1.0,))
        check_vjp(sin, lambda x: vjp(sin, x), (1.0,))


@pytest.mark.parametrize(("order", "modes"), [(0, "fwd"), (1, "reverse"), (1, ()), (1.5, "fwd")])
def test_arguments_that_make_no_sense(order: Any, modes: Any) -> None:
    with pytest.raises(ValueError, match=r"check_grads: (order|modes) must be"):
        check_grads(sin, (1.0,), order, modes)


def test_rounding_is_measured_at_zeros_too() -> None:
    with enable_x64():
        noise = Point(lambda x: jnp.exp(x + 1) ** 2 - jnp.exp(x + 2) * jnp.exp(x), (jnp.zeros(4),)).noise
    assert (noise > 1e-16).any()
    assert (noise < 1e-13).all()
