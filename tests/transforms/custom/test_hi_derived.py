"""Rules of a user's operation that follow from others of its rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback import errors, grad, hessian, jit, jvp, linearize, vmap
from pullback.experimental.hijax import (
    VJPHiPrimitive,
    instantiate_zeros,
    jvp_from_lin,
    linearize_from_jvp,
    vjp_from_jvp,
    vjp_from_lin,
)


class Product(VJPHiPrimitive):
    def __init__(self, x: Any, y: Any) -> None:
        self.in_avals, self.out_aval, self.params = (x, y), x, {}
        super().__init__()

    def expand(self, x: Any, y: Any) -> Any:
        return jnp.sin(x) * y

    def batch_dim_rule(self, axis_data: Any, dims: Any) -> Any:
        return dims[1] if dims[0] is None else dims[0]


class ByJvp(Product):
    def jvp(self, primals: Any, tangents: Any) -> Any:
        (x, y), (s, t) = primals, map(instantiate_zeros, tangents)
        return self(x, y), jnp.cos(x) * s * y + jnp.sin(x) * t


class LinOfJvp(ByJvp):
    lin, linearized = linearize_from_jvp
    vjp_fwd, vjp_bwd_retval = vjp_from_lin


class VjpOfJvp(ByJvp):
    vjp_fwd, vjp_bwd_retval = vjp_from_jvp


class ByLin(Product):
    def lin(self, nzs_in: Any, x: Any, y: Any) -> Any:
        return self(x, y), (jnp.cos(x) * y, jnp.sin(x))

    def linearized(self, res: Any, s: Any, t: Any) -> Any:
        return res[0] * instantiate_zeros(s) + res[1] * instantiate_zeros(t)

    jvp = jvp_from_lin


class VjpOfLin(ByLin):
    vjp_fwd, vjp_bwd_retval = vjp_from_lin


@pytest.mark.parametrize("kind", [LinOfJvp, VjpOfJvp, ByLin, VjpOfLin])
def test_derived_rules_are_the_derivatives(kind: Any) -> None:
    def f(x: Any, y: Any) -> Any:
        return kind(pb.typeof(x), pb.typeof(y))(x, y)

    def plain(x: Any, y: Any) -> Any:
        return jnp.sin(x) * y

    xs = jnp.arange(3.0)
    for wrap in (lambda f: f, jit):
        g = wrap(f)
        close = np.testing.assert_allclose
        close(grad(g, (0, 1))(0.5, 2.0), grad(plain, (0, 1))(0.5, 2.0), rtol=1e-6)
        close(jvp(g, (0.5, 2.0), (1.0, 3.0)), jvp(plain, (0.5, 2.0), (1.0, 3.0)), rtol=1e-6)
        close(linearize(g, 0.5, 2.0)[1](1.0, 3.0), jvp(plain, (0.5, 2.0), (1.0, 3.0))[1], rtol=1e-6)
        close(vmap(grad(g), (0, None))(xs, 2.0), vmap(grad(plain), (0, None))(xs, 2.0), rtol=1e-6)
        close(
            grad(lambda x, g=g: vmap(g, (None, 0))(x, xs).sum())(0.5),
            grad(lambda x: plain(x, xs).sum())(0.5),
            rtol=1e-6,
        )
        close(hessian(g)(0.5, 2.0), hessian(plain)(0.5, 2.0), rtol=1e-6)
        close(jvp(vmap(g), (xs, xs), (xs, xs))[1], jvp(vmap(plain), (xs, xs), (xs, xs))[1], rtol=1e-6)


def test_rules_derived_in_a_circle_are_refused() -> None:
    class Circle(Product):
        jvp = jvp_from_lin
        lin, linearized = linearize_from_jvp

    def f(x: Any) -> Any:
        return Circle(pb.typeof(x), pb.typeof(x))(x, x)

    with pytest.raises(errors.ArgumentError, match=r"derives jvp from lin .* and lin from jvp"):
        jvp(f, (1.0,), (1.0,))
    with pytest.raises(errors.ArgumentError, match=r"derives jvp from lin .* and lin from jvp"):
        grad(f)(1.0)


def test_forward_mode_alone_is_not_transposed() -> None:
    def f(x: Any) -> Any:
        return ByJvp(pb.typeof(x), pb.typeof(x))(x, x)

    assert jvp(f, (0.0,), (1.0,))[1] == 0
    with pytest.raises(NotImplementedError, match=r"vjp_from_lin, in ByJvp.* needs the method vjp_fwd"):
        grad(f)(1.0)
