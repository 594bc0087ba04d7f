"""Gates before recomputation: the compiler neither merges it with the first computation nor begins it early."""

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import (
    ShapeDtypeStruct,
    checkpoint,
    checkpoint_policies,
    export,
    grad,
    jit,
    jvp,
    lax,
    make_jaxpr,
    nn,
    random,
    value_and_grad,
    vjp,
    vmap,
)
from pullback.backends.hlo.emit import emit_module
from pullback.backends.hlo.module import Module
from pullback.core.jaxpr_check import check_jaxpr
from pullback.transforms.checkpoint.gates import COTANGENT, gated

X = jnp.linspace(-1.0, 1.0, 64 * 256).reshape(64, 256)


def backward(f, *args):
    """Return the backward pass of a checkpointed function."""
    program = make_jaxpr(grad(lambda *xs: jnp.sum(checkpoint(f)(*xs))))(*args)
    [found] = [e.params["jaxpr"] for e in program.eqns if e.params.get("differentiated")]
    return found


def compiled(f, *args):
    return jit(f).lower(*args).compile()


def temporaries(f, *args):
    return compiled(f, *args).memory_analysis().temp_size_in_bytes


def test_the_operand_with_fewest_bytes_passes_a_gate():
    program = gated(backward(lambda x, b: jnp.tanh(x + b), X, jnp.ones(256)))
    check_jaxpr(program)
    [select] = [e for e in program.eqns if e.primitive.name == "select_n"]
    assert select.outvars[0].aval.shape == (256,)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
def test_any_bits_of_a_cotangent_open_a_gate(dtype):
    f = checkpoint(lambda x: jnp.sin(jnp.sin(x)))
    x = jnp.asarray([0.5, 1.0, 1.5], dtype)
    pull = jit(lambda x, ct: vjp(f, x)[1](ct)[0])
    for number in (0.0, -0.0, 1.0, np.inf, np.nan):
        ct = jnp.full(3, number, dtype)
        expected = np.asarray(vjp(f, x)[1](ct)[0], "complex64")
        tolerance = 8 * float(jnp.finfo(dtype).eps)
        np.testing.assert_allclose(np.asarray(pull(x, ct), "complex64"), expected, rtol=tolerance)


def test_what_is_computed_again_is_not_merged_even_if_the_cotangent_is_a_constant():
    f = checkpoint(lambda x: jnp.sum(jnp.sin(jnp.tanh(x))))
    text = compiled(value_and_grad(f), X).as_text()
    assert text.count("tanh(") == 2
    assert "conditional" not in text


def test_layers_that_keep_their_products_take_less_memory(optimised):
    layer = lambda w, x: nn.gelu(x @ w)
    ws, x = [jnp.eye(64)] * 8, X.reshape(256, 64)

    def deep(wrap):
        def loss(ws, x):
            for w in ws:
                x = wrap(layer)(w, x)
            return jnp.mean(x**2)

        return value_and_grad(loss)

    dots = lambda f: checkpoint(f, policy=checkpoint_policies.dots_saveable)
    assert temporaries(deep(dots), ws, x) < 0.75 * temporaries(deep(lambda f: f), ws, x)


def test_parts_of_a_sum_run_one_after_another(optimised):
    def loss(x, wrap):
        return jnp.sum(sum(wrap(lambda x, k=k: jnp.sin(jnp.exp(jnp.cos(x * k))))(x) for k in range(1, 9)))

    usual, kept = (temporaries(value_and_grad(lambda x, w=w: loss(x, w)), X) for w in (lambda f: f, checkpoint))
    assert kept < 0.5 * usual


def test_what_is_not_fused_is_in_a_branch():
    w = jnp.ones((256, 256))
    for f in (
        lambda x: jnp.sin(x @ w),
        lambda x: jnp.sin(x - jnp.mean(x, 1, keepdims=True)),
        lambda x: jnp.sin(jnp.exp(x)[jnp.asarray([0, 3, 3])]),
        lambda x: lax.fori_loop(0, 3, lambda i, x: jnp.sin(x), x),
        lambda x: jnp.sin(jnp.linalg.inv(x[:, :64])),
    ):
        assert gated(backward(f, X)) is None


def test_a_pass_that_adds_to_the_cotangent_that_it_passes_on_is_a_branch():
    w = 0.1 * jnp.eye(256)
    assert gated(backward(lambda x: jnp.sin(jnp.tanh(x)) @ w, X)) is not None
    assert gated(backward(lambda x: jnp.sin(jnp.tanh(x)) @ w + x, X)) is None
    assert gated(backward(lambda x: jnp.sin(jnp.tanh(x)) + x, X)) is not None  # nothing else reads the cotangent


def test_the_cotangent_of_a_deep_network_is_not_computed_again_for_each_layer():
    def layer(x, w):
        return x + jnp.sin(x - x.mean(1, keepdims=True)) @ w

    keeps_sums = checkpoint(layer, policy=lambda p, *_, **__: p.name in ("dot_general", "reduce_sum", "div"))

    def operations(depth):
        def loss(ws, x):
            for w in ws:
                x = keeps_sums(x, w)
            return jnp.sum(x**2)

        ws = [0.1 * (1 + 0.01 * k) * jnp.eye(64) for k in range(depth)]
        return compiled(grad(loss), ws, X[:, :64]).as_text().count(" add(")

    assert operations(20) - operations(10) < 2.2 * (operations(10) - operations(5))


def test_transformations_keep_gates():
    f = checkpoint(lambda x: jnp.sin(jnp.tanh(x)) * x)
    g = lambda x: jnp.sum(f(x))
    x = jnp.linspace(0.1, 1.0, 5)
    xs = jnp.stack([x, 2 * x])
    np.testing.assert_allclose(jit(vmap(grad(g)))(xs), vmap(grad(g))(xs), rtol=1e-6)
    np.testing.assert_allclose(*(jvp(h, (x,), (x,))[1] for h in (jit(grad(g)), grad(g))), rtol=1e-5)
    text = str(make_jaxpr(vmap(grad(g)))(xs))
    assert COTANGENT in text


def test_a_turn_does_not_leave_a_loop():
    def f(x):
        def body(c, _):
            return checkpoint(lambda c: jnp.sin(jnp.tanh(c)))(c), None

        y, _ = lax.scan(body, x, None, length=3)
        return jnp.sum(checkpoint(lambda y: jnp.cos(jnp.tanh(y)))(y) + checkpoint(lambda y: jnp.exp(jnp.tanh(y)))(x))

    np.testing.assert_allclose(jit(grad(f))(X), grad(f)(X), rtol=1e-5, atol=1e-6)


def test_what_cannot_pass_a_gate_is_in_a_branch():
    key = random.key(0)
    dropped = lambda x, key: jnp.sin(jnp.where(random.bernoulli(key, 0.5, x.shape), jnp.exp(x), 0))
    program = make_jaxpr(grad(lambda x: jnp.sum(checkpoint(dropped)(x, key))))(X)
    [back] = [e.params["jaxpr"] for e in program.eqns if e.params.get("differentiated")]
    assert gated(back) is None
    [n] = export.symbolic_shape("n")
    exported = export.export(jit(grad(lambda x: jnp.sum(checkpoint(lambda x: jnp.sin(jnp.tanh(x)))(x)))))
    found = exported(ShapeDtypeStruct((n,), "float32")).call(X[0])
    np.testing.assert_allclose(found, jnp.cos(jnp.tanh(X[0])) / jnp.cosh(X[0]) ** 2, rtol=1e-5)


@pytest.mark.parametrize("whole", [True, False])
def test_programs_over_devices_have_branches(monkeypatch, whole):
    monkeypatch.setattr(Module, "whole_arrays", lambda self: whole)
    closed = make_jaxpr(grad(lambda x: jnp.sum(checkpoint(lambda x: jnp.sin(jnp.tanh(x)))(x))))(X)
    assert ('"stablehlo.if"' in emit_module(closed, "f", "cpu")[0].text()) != whole


@pytest.mark.parametrize(("count", "passes"), [(3, True), (16, True), (17, False)])
def test_sums_of_few_elements_pass_gates(count, passes) -> None:
    kernel = lambda x: jnp.exp(-jnp.sum((x[:, None] - x[None]) ** 2, -1))
    assert (gated(backward(kernel, jnp.ones((20, count)))) is not None) is passes
