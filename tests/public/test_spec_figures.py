"""The figures that the project promises to reproduce: derivatives, complex numbers, printed programs.

Agreement means float32 to a relative 1e-5, or an absolute 1e-6 near zero.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import grad, hessian, jacfwd, jacobian, jacrev, jit, jvp, lax, make_jaxpr, random, vjp, vmap
from pullback.test_util import check_grads

INPUTS = np.array([[0.52, 1.12, 0.77], [0.88, -1.08, 0.15], [0.52, 0.06, -1.30], [0.74, -2.49, 1.39]], np.float32)
TARGETS = np.array([True, True, False, True])
TANH_DERIVATIVES = {2.0: [0.070650935, -0.13621889, 0.2526544], 0.5: [0.7864477, -0.726862, -0.5652091]}
TANH_SLOPES = [0.48228705, 0.45585024, 0.99329686, 0.0953269, 0.8153717]
GRADIENT_W = [-0.16965576, -0.8774645, -1.4901344]
GRADIENT_B = -0.29227236
LOSS = 3.051939
JACOBIAN_W = [
    [0.05981756, 0.12883782, 0.088576],
    [0.04015914, -0.04928622, 0.00684531],
    [0.12188289, 0.01406341, -0.3047072],
    [0.00140428, -0.00472522, 0.00263777],
]
JACOBIAN_B = [0.11503378, 0.04563539, 0.23439017, 0.00189768]
HESSIAN_FIRST = [
    [0.02285465, 0.0492254, 0.03384246],
    [0.0492254, 0.10602394, 0.07289147],
    [0.03384246, 0.07289146, 0.05011288],
]
HESSIAN_LAST = [
    [-0.00103522, 0.00348336, -0.00194453],
    [0.00348336, -0.01172105, 0.00654308],
    [-0.00194453, 0.00654308, -0.00365256],
]


def assert_agrees(got: Any, figure: Any, relative: float = 1e-5) -> None:
    got, figure = np.asarray(got), np.asarray(figure)
    assert got.shape == figure.shape
    assert got.dtype == (np.complex64 if figure.dtype.kind == "c" else np.float32)
    off = np.abs(got - figure) - np.maximum(relative * np.abs(figure), relative / 10)
    assert np.all(off <= 0), f"got {got}, expected {figure}"


def parameters() -> tuple[Any, Any]:
    _, w_key, b_key = random.split(random.key(0), 3)
    return random.normal(w_key, (3,)), random.normal(b_key, ())


def predict(w: Any, b: Any, inputs: Any = INPUTS) -> Any:
    return 0.5 * (jnp.tanh((jnp.dot(inputs, w) + b) / 2) + 1)


def loss(w: Any, b: Any, inputs: Any = INPUTS, targets: Any = TARGETS) -> Any:
    p = predict(w, b, inputs)
    return -jnp.sum(jnp.log(jnp.where(targets, p, 1 - p)))


def dict_predict(params: dict[str, Any]) -> Any:
    return predict(params["W"], params["b"])


def dict_loss(params: dict[str, Any]) -> Any:
    return loss(params["W"], params["b"])


# --------------------------------------------------------------------------------------------------
# A. Gradients
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", TANH_DERIVATIVES)
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("derivative", [grad, jacfwd, jacrev])
def test_scalar_derivatives(derivative: Callable[..., Any], order: int, point: float) -> None:
    f: Callable[..., Any] = jnp.tanh
    for _ in range(order):
        f = derivative(f)
    assert_agrees(f(point), TANH_DERIVATIVES[point][order - 1])


def test_gradient_of_a_vector_is_refused() -> None:
    with pytest.raises(TypeError, match=r"(?s)scalar.*\(5,\)"):
        grad(jnp.tanh)(jnp.ones(5))


@pytest.mark.parametrize("derivative", [grad(lambda x: jnp.tanh(x).sum()), vmap(grad(jnp.tanh))])
@pytest.mark.parametrize("new_key", [random.PRNGKey, random.key])
def test_elementwise_slopes(derivative: Callable[..., Any], new_key: Callable[..., Any]) -> None:
    assert_agrees(derivative(random.normal(new_key(1234), (5,))), TANH_SLOPES)


def test_partitionable_random_numbers_are_a_switch() -> None:
    key = random.PRNGKey(1234)
    with pullback.threefry_partitionable(True):
        partitionable = random.normal(key, (5,))
    assert not np.allclose(partitionable, random.normal(key, (5,)))
    assert_agrees(vmap(grad(jnp.tanh))(random.normal(key, (5,))), TANH_SLOPES)


def test_argnums() -> None:
    w, b = parameters()
    assert_agrees(grad(loss)(w, b), GRADIENT_W)
    assert_agrees(grad(loss, 0)(w, b), GRADIENT_W)
    assert_agrees(grad(loss, argnums=1)(w, b), GRADIENT_B)
    gradient = grad(loss, (1, 0))(w, b, inputs=INPUTS, targets=TARGETS)
    assert isinstance(gradient, tuple)
    assert_agrees(gradient[0], GRADIENT_B)
    assert_agrees(gradient[1], GRADIENT_W)


def test_gradient_by_a_dict() -> None:
    w, b = parameters()
    gradient = grad(dict_loss)({"W": w, "b": b})
    assert set(gradient) == {"W", "b"}
    assert_agrees(gradient["W"], GRADIENT_W)
    assert_agrees(gradient["b"], GRADIENT_B)


def test_value_and_grad() -> None:
    w, b = parameters()
    assert_agrees(loss(w, b), LOSS)
    value, (w_bar, b_bar) = pullback.value_and_grad(loss, (0, 1))(w, b)
    assert_agrees(value, LOSS)
    assert_agrees(w_bar, GRADIENT_W)
    assert_agrees(b_bar, GRADIENT_B)


def test_value_and_grad_calls_the_function_once() -> None:
    calls: list[None] = []

    def counted(w: Any) -> Any:
        calls.append(None)
        return loss(w, parameters()[1])

    value, _ = pullback.value_and_grad(counted)(parameters()[0])
    assert_agrees(value, LOSS)
    assert len(calls) == 1


def test_auxiliary_output() -> None:
    w, b = parameters()

    def loss_and_probabilities(w: Any) -> Any:
        return loss(w, b), {"p": predict(w, b)}

    gradient, aux = grad(loss_and_probabilities, has_aux=True)(w)
    assert_agrees(gradient, GRADIENT_W)
    assert_agrees(aux["p"], predict(w, b))
    (value, aux), gradient = pullback.value_and_grad(loss_and_probabilities, has_aux=True)(w)
    assert_agrees(value, LOSS)
    assert_agrees(gradient, GRADIENT_W)
    assert_agrees(aux["p"], predict(w, b))


def test_integers_need_allow_int() -> None:
    with pytest.raises(TypeError, match="allow_int"):
        grad(lambda n: 2.0 * n)(3)
    gradient = grad(lambda n: 2.0 * n, allow_int=True)(3)
    assert gradient.dtype == pullback.dtypes.float0


@pytest.mark.parametrize(
    ("f", "figure"),
    [
        (lambda x: x * x, 6.0),
        (lambda x: x * lax.stop_gradient(x), 3.0),
        (lambda x: lax.stop_gradient(x * x), 0.0),
    ],
)
def test_stop_gradient(f: Callable[..., Any], figure: float) -> None:
    assert_agrees(grad(f)(3.0), figure)
    assert_agrees(jvp(f, (3.0,), (1.0,))[1], figure)


@pytest.mark.parametrize("jac", [jacfwd, jacrev, jacobian])
def test_jacobians(jac: Callable[..., Any]) -> None:
    w, b = parameters()
    assert_agrees(jac(predict)(w, b), JACOBIAN_W)
    assert_agrees(jac(predict, argnums=1)(w, b), JACOBIAN_B)
    by_w, by_b = jac(predict, argnums=(0, 1))(w, b)
    assert_agrees(by_w, JACOBIAN_W)
    assert_agrees(by_b, JACOBIAN_B)
    tree = jac(dict_predict)({"W": w, "b": b})
    assert_agrees(tree["W"], JACOBIAN_W)
    assert_agrees(tree["b"], JACOBIAN_B)


@pytest.mark.parametrize("jac", [jacfwd, jacrev])
def test_jacobian_of_a_tree_with_auxiliary_output(jac: Callable[..., Any]) -> None:
    w, b = parameters()
    tree, aux = jac(lambda w: ({"out": predict(w, b)}, {"loss": loss(w, b)}), has_aux=True)(w)
    assert_agrees(tree["out"], JACOBIAN_W)
    assert_agrees(aux["loss"], LOSS)


@pytest.mark.parametrize(
    "second",
    [hessian, lambda f: jacfwd(jacrev(f)), lambda f: jacrev(jacfwd(f)), lambda f: jacrev(jacrev(f))],
    ids=["hessian", "forward over reverse", "reverse over forward", "reverse over reverse"],
)
def test_hessian_blocks(second: Callable[..., Any]) -> None:
    blocks = second(predict)(*parameters())
    assert blocks.shape == (4, 3, 3)
    assert_agrees(blocks[0], HESSIAN_FIRST)
    assert_agrees(blocks[3], HESSIAN_LAST)


def test_per_example_gradients() -> None:
    w, b = parameters()
    batched = vmap(grad(loss), in_axes=(None, None, 0, 0))(w, b, INPUTS, TARGETS)
    looped = [grad(loss)(w, b, x, t) for x, t in zip(INPUTS, TARGETS, strict=True)]
    assert_agrees(batched, np.stack([np.asarray(row) for row in looped]))
    assert_agrees(batched.sum(0), GRADIENT_W)


@pytest.mark.parametrize("modes", [("fwd",), ("rev",), ("fwd", "rev")])
def test_check_grads(modes: tuple[str, ...]) -> None:
    check_grads(loss, parameters(), order=2, modes=modes)


def test_check_grads_finds_a_wrong_derivative() -> None:
    with pytest.raises(AssertionError):
        check_grads(lambda x: jnp.sin(lax.stop_gradient(x)), (1.0,), order=1)


def test_linear_functions() -> None:
    w, b = parameters()
    out, pullback_function = vjp(lambda w: predict(w, b), w)
    _, linear_part = pullback.linearize(lambda w: predict(w, b), w)
    transposed = pullback.linear_transpose(linear_part, w)
    assert_agrees(vmap(linear_part, in_axes=1, out_axes=1)(jnp.eye(3)), JACOBIAN_W)
    for row, cotangent in zip(JACOBIAN_W, jnp.eye(4), strict=True):
        assert_agrees(transposed(cotangent)[0], row)
        assert_agrees(pullback_function(cotangent)[0], row)
    assert_agrees(out, predict(w, b))


def test_linear_transpose_refuses_what_is_not_linear() -> None:
    with pytest.raises((NotImplementedError, TypeError), match="sin"):
        pullback.linear_transpose(jnp.sin, 1.0)(1.0)


@pytest.mark.parametrize(
    "tangent", [1, np.ones(2, np.float32), [1.0]], ids=["another dtype", "another shape", "another tree"]
)
def test_mismatched_tangents_are_refused(tangent: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        jvp(jnp.sin, (1.0,), (tangent,))


HVP = {
    "forward over reverse": lambda f, x, v: jvp(grad(f), (x,), (v,))[1],
    "reverse over forward": lambda f, x, v: grad(lambda x: jvp(f, (x,), (v,))[1])(x),
    "reverse over reverse": lambda f, x, v: grad(lambda x: jnp.vdot(grad(f)(x), v))(x),
    "dense": lambda f, x, v: jnp.tensordot(hessian(f)(x), v, 2),
}


@pytest.mark.parametrize("way", HVP)
def test_hessian_vector_products(way: str) -> None:
    x, v = random.normal(random.key(0), (2, 30, 40))
    product = HVP[way](lambda x: jnp.sum(jnp.tanh(x) ** 2), x, v)
    t = np.tanh(np.asarray(x, np.float64))
    curvature = 2 * (1 - t**2) * (1 - 3 * t**2)  # the Hessian is diagonal: d/dx 2 t (1 - t^2)
    assert_agrees(product, curvature * np.asarray(v), relative=1e-4)


def test_products_with_128_vectors() -> None:
    w, b = parameters()
    out, pullback_function = vjp(lambda w: predict(w, b), w)
    cotangents = random.normal(random.key(1), (128, *out.shape))
    looped = np.stack([np.asarray(pullback_function(row)[0]) for row in cotangents])
    assert_agrees(vmap(pullback_function)(cotangents)[0], looped)

    def push(v: Any) -> Any:
        return jvp(lambda w: predict(w, b), (w,), (v,))[1]

    tangents = random.normal(random.key(2), (128, *w.shape))
    assert_agrees(vmap(push)(tangents), np.stack([np.asarray(push(row)) for row in tangents]))


def test_vmapped_products_are_jacobians() -> None:
    w, b = parameters()
    _, pullback_function = vjp(lambda w: predict(w, b), w)
    assert_agrees(vmap(pullback_function, in_axes=0)(jnp.eye(4))[0], JACOBIAN_W)
    columns = vmap(lambda v: jvp(lambda w: predict(w, b), (w,), (v,))[1], in_axes=1)(jnp.eye(3))
    assert_agrees(columns.T, JACOBIAN_W)


def test_python_control_flow() -> None:
    def branch(x: Any) -> Any:
        try:
            if x < 3:
                return 2 * x**3
            raise ValueError
        except ValueError:
            return jnp.pi * x

    assert_agrees(grad(branch)(2.0), 24.0)
    _, pullback_function = vjp(branch, 4.0)
    for _ in range(2):  # it can be called again
        (cotangent,) = pullback_function(1.0)
        assert_agrees(cotangent, 3.1415927)


def test_the_function_from_vjp_is_a_pytree() -> None:
    _, pullback_function = vjp(jnp.sin, 2.0)
    leaves, structure = pullback.tree_util.tree_flatten(pullback_function)
    assert leaves
    (cotangent,) = pullback.tree_util.tree_unflatten(structure, leaves)(1.0)
    assert_agrees(cotangent, np.cos(2.0))


# --------------------------------------------------------------------------------------------------
# B. Complex numbers
# --------------------------------------------------------------------------------------------------

Z = 3.0 + 4.0j


@pytest.mark.parametrize(
    ("f", "holomorphic", "figure"),
    [
        (lambda z: jnp.real(z) ** 2 + jnp.imag(z) ** 2, False, 6 - 8j),
        (lambda z: jnp.abs(z) ** 2, False, 6 - 8j),
        (lambda z: (z * jnp.conj(z)).real, False, 6 - 8j),
        (jnp.sin, True, -27.034945 - 3.8511531j),
        (jnp.conj, True, 1 - 0j),
    ],
    ids=["x^2 + y^2", "abs^2", "z conj(z)", "sin", "conj"],
)
def test_complex_gradients(f: Callable[..., Any], holomorphic: bool, figure: complex) -> None:
    assert_agrees(grad(f, holomorphic=holomorphic)(Z), figure)


def test_complex_output_needs_the_promise() -> None:
    with pytest.raises(TypeError, match="holomorphic"):
        grad(jnp.sin)(Z)


def test_the_promise_needs_a_complex_input() -> None:
    with pytest.raises(TypeError, match=r"(?s)holomorphic.*complex.*float32"):
        grad(jnp.sin, holomorphic=True)(3.0)


@pytest.mark.parametrize("jac", [jacfwd, jacrev])
def test_holomorphic_jacobians(jac: Callable[..., Any]) -> None:
    z = jnp.array([Z, 0.5j])
    assert_agrees(jac(jnp.sin, holomorphic=True)(z), np.diag(np.cos(np.asarray(z, np.complex128))))


@pytest.mark.parametrize("seed", range(5))
def test_complex_products_of_linear_functions(seed: int) -> None:
    """f(x + iy) = u + iv, with u and v random and linear; its tangent, and its transpose."""
    (a, b, c, d), (x, y, x_dot, y_dot) = random.uniform(random.key(seed), (2, 4))

    def u(x: Any, y: Any) -> Any:
        return a * x + b * y

    def v(x: Any, y: Any) -> Any:
        return c * x + d * y

    def f(z: Any) -> Any:
        return u(z.real, z.imag) + 1j * v(z.real, z.imag)

    (u_x, u_y), (v_x, v_y) = grad(u, (0, 1))(x, y), grad(v, (0, 1))(x, y)
    z, tangent = x + 1j * y, x_dot + 1j * y_dot
    assert_agrees(jvp(f, (z,), (tangent,))[1], u_x * x_dot + u_y * y_dot + 1j * (v_x * x_dot + v_y * y_dot))
    (cotangent,) = vjp(f, z)[1](tangent)
    assert_agrees(cotangent, u_x * x_dot - v_x * y_dot - 1j * (u_y * x_dot - v_y * y_dot))


@pytest.mark.parametrize("compile_", [lambda f: f, jit], ids=["host", "compiled"])
def test_holomorphic_gradient_through_cholesky(compile_: Callable[..., Any]) -> None:
    x = jnp.array([[5, 2 + 3j, 5j], [2 - 3j, 7, 1 + 7j], [-5j, 1 - 7j, 12]])

    def f(x: Any) -> Any:
        factor = jnp.linalg.cholesky(x)
        return jnp.sum((factor - jnp.sin(factor)) ** 2)

    figure = [
        [-0.75342447, -3.0509021 - 10.940544j, 5.989684 + 3.5422976j],
        [-3.0509021 + 10.940544j, -8.904487, -5.1351547 - 6.5593696j],
        [5.989684 - 3.5422976j, -5.1351547 + 6.5593696j, 0.01320434],
    ]
    assert_agrees(compile_(grad(f, holomorphic=True))(x), figure)


# --------------------------------------------------------------------------------------------------
# C. Seeing the program
# --------------------------------------------------------------------------------------------------


def product(x: Any, y: Any) -> Any:
    return x * y


def test_jaxpr_of_the_gradient_of_a_product() -> None:
    closed = make_jaxpr(grad(product))(2.0, 3.0)
    first, second = closed.jaxpr.eqns
    assert [first.primitive.name, second.primitive.name] == ["mul", "mul"]
    unused = first.outvars[0]
    assert not any(atom is unused for atom in [*second.invars, *closed.jaxpr.outvars])
    lines = [line.strip() for line in str(closed).splitlines()]
    assert lines[0] == "{ lambda ; a:f32[] b:f32[]. let"
    assert re.fullmatch(r"_:f32\[\] = mul a b", lines[1])
    assert re.fullmatch(r"c:f32\[\] = mul 1\.0(:f32\[\])? b", lines[2])
    assert lines[3] == "in (c,) }"


@pytest.mark.parametrize(
    ("f", "args", "pattern"),
    [
        (jnp.sin, (1.0,), r"a:f32\[\]\. let b:f32\[\] = sin a in \(b,\)"),
        (jnp.sin, (np.ones((3, 4), np.float32),), r"a:f32\[3,4\]\. let b:f32\[3,4\] = sin a"),
        (jnp.conj, (Z,), r"a:c64\[\]"),
        (lambda x: x**3, (2.0,), r"integer_pow\[\s*y=3\s*\] a"),
        (jnp.sum, (np.ones((3, 4), np.float32),), r"b:f32\[\] = reduce_sum\[\s*axes=\(0, 1\)[^]]*\] a"),
        (vmap(grad(product)), (np.ones(3, np.float32),) * 2, r"_:f32\[3\] = mul a b\s+c:f32\[3\] = mul 1\.0"),
        (lambda x: jvp(jnp.sin, (x,), (x,)), (2.0,), r"b:f32\[\] = sin a\s+c:f32\[\] = cos a"),
    ],
    ids=["scalar", "matrix", "complex", "parameter", "axes", "vmap(grad)", "jvp"],
)
def test_printed_programs(f: Callable[..., Any], args: tuple[Any, ...], pattern: str) -> None:
    text = str(make_jaxpr(f)(*args))
    assert re.search(pattern, text), text


def test_make_jaxpr_static_arguments_and_shapes() -> None:
    assert "integer_pow" in str(make_jaxpr(lambda n, x: x**n, static_argnums=0)(3, 2.0))
    _, shape = make_jaxpr(product, return_shape=True)(jnp.ones(3), jnp.ones(3))
    assert shape.shape == (3,)
    assert shape.dtype == jnp.float32


@pytest.mark.parametrize("transform", [grad, jacfwd, jacrev, hessian, vmap])
def test_make_jaxpr_composes(transform: Callable[..., Any]) -> None:
    argument = jnp.ones(3) if transform is vmap else 2.0
    names = [equation.primitive.name for equation in make_jaxpr(transform(jnp.tanh))(argument).jaxpr.eqns]
    assert "tanh" in names


def test_differentiating_through_a_staged_program() -> None:
    closed = make_jaxpr(lambda w: loss(w, parameters()[1]))(jnp.zeros(3))

    def evaluate(w: Any) -> Any:
        return pullback.core.eval_jaxpr(closed.jaxpr, closed.consts, w)[0]

    assert_agrees(grad(evaluate)(parameters()[0]), GRADIENT_W)


def test_eval_shape_runs_nothing() -> None:
    tall = pullback.ShapeDtypeStruct((1_000_000, 3), jnp.float32)
    out = pullback.eval_shape(lambda x: {"gram": x @ x.T}, tall)  # four terabytes, if it ran
    assert out["gram"].shape == (1_000_000, 1_000_000)
    assert out["gram"].dtype == jnp.float32
