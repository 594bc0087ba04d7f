"""The two passes of reverse mode as functions of their own; what must not be traced; what is alive."""

import numpy as np
import pytest

import pullback
import pullback.numpy as pnp
from pullback import checkpoint_policies, fwd_and_bwd, jit, no_tracing, vmap
from pullback.ad_checkpoint import checkpoint, checkpoint_name
from pullback.core.errors import ArgumentError, TracingForbiddenError

X, Y = pnp.arange(3.0), pnp.array([2.0, -1.0, 0.5])


def f(x, y):
    return pnp.sin(x["a"]) * y


@pytest.mark.parametrize("jitted", [True, False])
def test_two_passes_are_vjp(jitted):
    fwd, bwd = fwd_and_bwd(f, (0, -1), jitted=jitted)
    out, residuals = fwd({"a": X}, Y)
    expected, back = pullback.vjp(f, {"a": X}, Y)
    np.testing.assert_allclose(out, expected, rtol=1e-6)
    for got, wanted in zip(pullback.tree.leaves(bwd(residuals, Y)), pullback.tree.leaves(back(Y)), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_one_argument_and_a_second_result():
    fwd, bwd = fwd_and_bwd(lambda x, y: (f(x, y), {"used": y + 1}), 1, has_aux=True)
    _, residuals, aux = fwd({"a": X}, Y)
    np.testing.assert_allclose(aux["used"], Y + 1)
    np.testing.assert_allclose(bwd(residuals, pnp.ones(3)), pnp.sin(X), rtol=1e-6)
    mapped = vmap(lambda c: bwd(residuals, c))(pnp.eye(3))
    np.testing.assert_allclose(mapped, pnp.diag(pnp.sin(X)), rtol=1e-6)


def test_each_pass_is_traced_once():
    traced = []

    def counted(x):
        traced.append(1)
        return pnp.sin(x)

    fwd, bwd = fwd_and_bwd(counted, 0)
    for i in range(3):
        out, residuals = fwd(X + i)
        bwd(residuals, out)
    assert len(traced) == 1
    with no_tracing():
        bwd(fwd(X)[1], X)


def test_positions_that_do_not_fit():
    with pytest.raises(ArgumentError, match="fwd_and_bwd: argnums must be an int or a tuple"):
        fwd_and_bwd(f, "0")
    with pytest.raises(ArgumentError, match="needs at least 4 positional arguments"):
        fwd_and_bwd(f, 3)[0](X, Y)


def test_tracing_may_be_forbidden():
    g = jit(lambda x: x + 1)
    g(X)
    with no_tracing():
        g(Y)
        pnp.sin(Y)
        with pytest.raises(TracingForbiddenError, match=r"jit of .*<lambda> at .* no_tracing forbids; call it first"):
            g(pnp.ones(4))
        with no_tracing(False):
            g(pnp.ones(4))
    assert isinstance(TracingForbiddenError(), RuntimeError)


def test_policies_that_offload_keep():
    policies = checkpoint_policies
    kept = policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["a"], names_which_can_be_offloaded=["b"], offload_src="device",
        offload_dst="pinned_host",
    )  # fmt: skip

    def residuals(fun, policy):
        back = pullback.vjp(checkpoint(fun, policy=policy), pnp.ones((4, 4)))[1]
        return sorted(x.shape for x in pullback.tree.leaves(back))

    named = lambda x: pnp.sin(checkpoint_name(pnp.exp(x[0]), "b")).sum() * checkpoint_name(pnp.cos(x[0]), "c")
    assert residuals(named, kept) == residuals(named, policies.save_only_these_names("b"))
    assert residuals(named, kept) != residuals(named, policies.save_only_these_names("b", "c"))
    dots = policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    plain = policies.dots_with_no_batch_dims_saveable

    products = lambda w: pnp.sin(pnp.sin(w @ w))
    found = [residuals(products, p) for p in (dots, plain, policies.everything_saveable)]
    assert found[0] == found[1] != found[2]
    with pytest.raises(ArgumentError, match=r"a memory must be 'device', .* got 'disk'"):
        policies.offload_dot_with_no_batch_dims("device", "disk")
    with pytest.raises(ArgumentError, match=r"\['a'\] are in both lists"):
        policies.save_and_offload_only_these_names(
            names_which_can_be_saved=["a"], names_which_can_be_offloaded=["a"], offload_src="device",
            offload_dst="pinned_host",
        )  # fmt: skip


def test_what_is_alive_and_where():
    x = pnp.ones(3)
    y = jit(lambda x: x + 1)(x)
    alive = pullback.live_arrays("cpu")
    assert {id(x), id(y)} <= set(map(id, alive))
    assert pullback.live_arrays("tpu") == []
    text = pullback.print_environment_info(return_string=True)
    for part in ("jaxlib: ", f"numpy: {np.__version__}", "1 in 1 process"):
        assert part in text
