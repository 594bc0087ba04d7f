"""Operations of users with rules as methods."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback import errors, grad, jit, jvp, linearize, make_jaxpr, vjp, vmap
from pullback.experimental import hijax
from pullback.experimental.hijax import VJPHiPrimitive, Zero, instantiate_zeros
from pullback.transforms.custom.hi_primitive import NullAccum, RefAccum, ValAccum


class Unary(VJPHiPrimitive):
    """A function of one array, without rules."""

    def __init__(self, aval: Any) -> None:
        self.in_avals, self.out_aval, self.params = (aval,), aval, {}
        super().__init__()

    def expand(self, x: Any) -> Any:
        return jnp.sin(x)


class Mul(VJPHiPrimitive):
    """The product of two arrays, with a rule for each mode: reverse mode has a factor of 10, forward mode of 100."""

    def __init__(self, x: Any, y: Any, factor: float = 10.0) -> None:
        self.in_avals, self.out_aval, self.params = (x, y), x, {"factor": factor}
        super().__init__()

    def expand(self, x: Any, y: Any) -> Any:
        return x * y

    def vjp_fwd(self, nzs_in: Any, x: Any, y: Any) -> Any:
        return self(x, y), (x if nzs_in[1] else None, y if nzs_in[0] else None)

    def vjp_bwd_retval(self, res: Any, g: Any) -> Any:
        x, y = res
        return None if y is None else self.factor * g * y, None if x is None else self.factor * g * x  # type: ignore[attr-defined]

    def jvp(self, primals: Any, tangents: Any) -> Any:
        (x, y), (s, t) = primals, map(instantiate_zeros, tangents)
        return self(x, y), 100 * (s * y + x * t)

    def batch_dim_rule(self, axis_data: Any, dims: Any) -> Any:
        return dims[1] if dims[0] is None else dims[0]


def mul(x: Any, y: Any) -> Any:
    return Mul(pb.typeof(x), pb.typeof(y))(x, y)


def test_each_mode_has_its_rule_eager_and_compiled() -> None:
    for f in (mul, jit(mul)):
        assert (f(2.0, 3.0), grad(f)(2.0, 3.0), grad(f, 1)(2.0, 3.0)) == (6, 30, 20)
        assert jvp(f, (2.0, 3.0), (1.0, 0.0)) == (6, 300)
        assert linearize(f, 2.0, 3.0)[1](1.0, 0.0) == 300
        assert jit(grad(f))(2.0, 3.0) == 30
        assert grad(grad(lambda x: mul(x, x)))(2.0) == 20
    program = make_jaxpr(lambda x, y: mul(x, y) + 1)(2.0, 3.0)
    assert [eqn.primitive.name for eqn in program.eqns] == ["call_hi_primitive", "add"]
    assert "Mul[{'factor': 10.0}]" in str(program)
    assert program.is_high  # type: ignore[attr-defined]
    assert make_jaxpr(jit(mul))(2.0, 3.0).jaxpr.is_high  # type: ignore[attr-defined]
    assert not make_jaxpr(lambda x, y: x * y)(2.0, 3.0).is_high  # type: ignore[attr-defined]


@pytest.mark.parametrize("policy", [None, pb.checkpoint_policies.everything_saveable])
def test_remat_takes_the_rule_of_each_mode(policy: Any) -> None:
    """The backward pass computes the forward rule again: it never falls back to ``jvp``."""
    f = pb.remat(lambda x, y: mul(jnp.sin(x), y), policy=policy)
    sine, slope = np.sin(2.0), np.cos(2.0)
    for g in (f, jit(f)):
        np.testing.assert_allclose(g(2.0, 3.0), sine * 3, rtol=1e-6)
        for h in (grad(g, (0, 1)), jit(grad(g, (0, 1)))):
            np.testing.assert_allclose(h(2.0, 3.0), (30 * slope, 10 * sine), rtol=1e-6)
        np.testing.assert_allclose(jvp(g, (2.0, 3.0), (1.0, 1.0))[1], 100 * (slope * 3 + sine), rtol=1e-6)
        np.testing.assert_allclose(grad(grad(g), 1)(2.0, 3.0), 10 * slope, rtol=1e-6)
        np.testing.assert_allclose(vmap(grad(g), (0, None))(jnp.full(2, 2.0), 3.0), [30 * slope] * 2, rtol=1e-6)
    nested = pb.remat(lambda x, y: f(f(x, y), y))
    inner = sine * 3
    np.testing.assert_allclose(grad(nested)(2.0, 3.0), 30 * np.cos(inner) * 30 * slope, rtol=1e-5)


def test_batches_are_mapped_rule_by_rule() -> None:
    x, y = jnp.arange(3.0), jnp.arange(3.0) + 1
    np.testing.assert_array_equal(vmap(mul)(x, y), x * y)
    np.testing.assert_array_equal(vmap(mul, (None, 0))(2.0, y), 2 * y)
    np.testing.assert_array_equal(vmap(grad(mul))(x, y), 10 * y)
    np.testing.assert_array_equal(grad(lambda a: vmap(mul, (None, 0))(a, y).sum())(2.0), 60)
    np.testing.assert_array_equal(jvp(lambda a: vmap(mul, (0, None))(a, 2.0), (x,), (jnp.ones(3),))[1], [200] * 3)
    z = jnp.arange(24.0).reshape(2, 3, 4)
    twice = vmap(vmap(mul, (0, None)), (2, None), out_axes=2)
    for f in (twice, jit(twice)):
        np.testing.assert_array_equal(f(z, x), z * x[None, :, None])
    np.testing.assert_array_equal(
        grad(lambda z: twice(z, x).sum())(z), 10 * jnp.broadcast_to(x[None, :, None], z.shape)
    )
    out = pb.lax.scan(lambda c, a: (mul(c, a), mul(c, a)), 1.0, y)
    np.testing.assert_array_equal(out[1], [1, 2, 6])
    np.testing.assert_allclose(grad(lambda c: pb.lax.scan(lambda c, a: (mul(c, a), None), c, y)[0])(1.0), 6000)


def test_rules_that_are_missing_are_named() -> None:
    def f(x: Any) -> Any:
        return Unary(pb.typeof(x))(x)

    assert f(0.0) == 0
    for transformed, method in (
        (grad(f), "vjp_fwd"), (lambda x: jvp(f, (x,), (x,)), "jvp"), (lambda x: vmap(f)(x[None]), "batch_dim_rule"),
    ):  # fmt: skip
        with pytest.raises(NotImplementedError, match=f"needs the method {method} of Unary"):
            transformed(jnp.float32(1))
    for method in ("expand", "vjp_bwd_retval", "linearized", "transpose", "lin"):
        with pytest.raises(errors.MissingRuleError, match=f"the method {method} of"):
            getattr(VJPHiPrimitive, method)(Unary(pb.typeof(1.0)), None, None)


def test_what_a_class_must_set() -> None:
    class Nothing(VJPHiPrimitive):
        def __init__(self) -> None:
            super().__init__()

    with pytest.raises(AttributeError, match=r"Nothing.__init__ must set self.in_avals"):
        Nothing()

    class Both(Mul):
        def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: Any) -> Any:
            pass

    with pytest.raises(AttributeError, match="both vjp_bwd and vjp_bwd_retval"):
        Both(pb.typeof(1.0), pb.typeof(1.0))


def test_operands_and_results_have_the_declared_types() -> None:
    with pytest.raises(errors.ArgumentError, match=r"takes \(f32\[\], f32\[\]\), but got \(f32\[2\], f32\[\]\)"):
        Mul(pb.typeof(1.0), pb.typeof(1.0))(jnp.ones(2), 1.0)
    with pytest.raises(errors.ArgumentError, match="takes arguments of the tree"):
        Mul(pb.typeof(1.0), pb.typeof(1.0))(1.0)

    class Wrong(Unary):
        def expand(self, x: Any) -> Any:
            return jnp.ones(3)

        def vjp_fwd(self, nzs_in: Any, x: Any) -> Any:
            return x, None

        def vjp_bwd_retval(self, res: Any, g: Any) -> Any:
            return (jnp.ones(2),)

        def jvp(self, primals: Any, tangents: Any) -> Any:
            return primals[0], jnp.ones(2)

    wrong = Wrong(pb.typeof(1.0))
    with pytest.raises(errors.CustomRuleError, match=r"expand of Wrong\[\{\}\] returned f32\[3\], where out_aval is"):
        wrong(1.0)
    with pytest.raises(errors.CustomRuleError, match=r"derivative of type f32\[2\], but for a value of f32\[\]"):
        grad(wrong)(1.0)
    with pytest.raises(errors.CustomRuleError, match=r"derivative of type f32\[2\]"):
        jvp(wrong, (1.0,), (1.0,))


Point = namedtuple("Point", ["x", "y"])


class Trees(VJPHiPrimitive):
    """A function from a tree to a tree, one of whose results has no derivative."""

    def __init__(self, point: Any) -> None:
        self.in_avals = (point,)
        self.out_aval = {"a": point.x, "b": (point.x, pb.typeof(jnp.int32(0)))}
        self.params = {}
        super().__init__()

    def expand(self, point: Any) -> Any:
        return {"a": point.x**2, "b": (point.x * point.y, jnp.int32(3))}

    def vjp_fwd(self, nzs_in: Any, point: Any) -> Any:
        assert isinstance(nzs_in[0], Point)
        return self(point), point

    def vjp_bwd_retval(self, point: Any, g: Any) -> Any:
        assert isinstance(g["b"][1], Zero)
        a = instantiate_zeros(g["a"])
        b = instantiate_zeros(g["b"][0])
        return (Point(2 * point.x * a + point.y * b, point.x * b),)


def test_arguments_and_results_are_trees_with_symbolic_zeros() -> None:
    def f(point: Any) -> Any:
        return Trees(pb.tree.map(pb.typeof, point))(point)

    point = Point(2.0, 5.0)
    for g in (f, jit(f)):
        assert g(point)["b"] == (10, 3)
        assert grad(lambda p: g(p)["a"])(point) == Point(4, 0)  # noqa: B023
        assert grad(lambda p: g(p)["a"] + g(p)["b"][0])(point) == Point(9, 2)  # noqa: B023
        assert grad(lambda x: g(Point(x, 5.0))["b"][0])(2.0) == 5  # noqa: B023


class Add(VJPHiPrimitive):
    """The sum of two arrays by accumulators; it is linear itself."""

    def __init__(self, aval: Any) -> None:
        self.in_avals, self.out_aval, self.params = (aval, aval), aval, {}
        super().__init__()

    def expand(self, x: Any, y: Any) -> Any:
        return 2 * (x + y)

    def vjp_fwd(self, nzs_in: Any, x: Any, y: Any) -> Any:
        return self(x, y), None

    def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: Any) -> Any:
        for accum in arg_accums:
            accum.accum(outgrad)
            accum.accum(outgrad)

    def transpose(self, out_ct: Any, *maybe_accums: Any) -> None:
        for accum in maybe_accums:
            if isinstance(accum, hijax.GradAccum):
                accum.accum(3 * out_ct)

    def batch_dim_rule(self, axis_data: Any, dims: Any) -> Any:
        return 0


def test_cotangents_are_accumulated_and_operations_transposed() -> None:
    def f(x: Any, y: Any) -> Any:
        return Add(pb.typeof(x))(x, y)

    assert vjp(f, 1.0, 2.0)[1](1.0) == (2, 2)
    assert grad(f)(1.0, 2.0) == 2
    assert pb.linear_transpose(lambda x: f(x, 0.0), 1.0)(1.0) == (3,)
    xs = jnp.arange(3.0)
    (ct,) = pb.linear_transpose(lambda x: vmap(f, (None, 0))(x, jnp.zeros(3)), 1.0)(xs)
    assert ct == 9
    np.testing.assert_array_equal(pb.linear_transpose(lambda x: vmap(f)(x, jnp.zeros(3)), xs)(xs)[0], 3 * xs)
    assert grad(lambda x: vmap(f, (None, 0))(x, xs).sum())(1.0) == 6
    (ct,) = pb.linear_transpose(lambda x: Double(pb.typeof(x))(x), 1.0)(1.0)  # what the operation consists of
    assert ct == 2


class Double(Unary):
    def expand(self, x: Any) -> Any:
        return x + x


def test_accumulators() -> None:
    aval: Any = pb.typeof(jnp.ones(2))
    total = ValAccum(aval)
    assert isinstance(total.freeze(), Zero)
    ref = pb.new_ref(jnp.ones(2))
    for accum in (total, RefAccum(aval, ref), NullAccum(aval)):
        for ct in (None, Zero(aval), jnp.ones(2), np.zeros(2, pb.float0), jnp.ones(2)):
            accum.accum(ct)
    np.testing.assert_array_equal(total.freeze(), [2, 2])
    np.testing.assert_array_equal(ref[...], [3, 3])
    with pytest.raises(errors.CustomRuleError, match=r"derivative of type f32\[3\]"):
        total.accum(jnp.ones(3))


def test_dead_code_and_equality() -> None:
    class Two(VJPHiPrimitive):
        def __init__(self, aval: Any) -> None:
            self.in_avals, self.out_aval, self.params = (aval, aval), (aval, aval), {}
            super().__init__()

        def expand(self, x: Any, y: Any) -> Any:
            return x + 1, y + 1

        def dce(self, used_outs: Any) -> Any:
            if used_outs == (True, False):
                return (True, False), (True, False), Unary(self.in_avals[0])
            return True, True, self

    aval = pb.typeof(1.0)
    assert jit(lambda x, y: Two(aval)(x, y)[0])(0.0, 0.0) == 0  # the sine, and not the sum
    assert jit(lambda x, y: sum(Two(aval)(x, y)))(0.0, 1.0) == 3
    assert Mul(aval, aval) == Mul(aval, aval) != Mul(aval, aval, 2.0)
    assert hash(Mul(aval, aval)) == hash(Mul(aval, aval))
    assert Unary(aval) != Mul(aval, aval)
