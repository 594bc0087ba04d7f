"""A cookbook of automatic differentiation: every recipe computed, and compared with its known figure.

Each section below is one small function. Read them from top to bottom: they begin with the derivative
of a number and end with the programs that derivatives are made of. Every line printed is one
comparison: what was computed, what it should be (the figure that JAX's documents print, or the same
thing computed in another way), and whether the two agree. The process ends with a non-zero status if
any of them does not.

    python examples/autodiff_cookbook.py
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import (
    Array,
    ShapeDtypeStruct,
    eval_shape,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    lax,
    linear_transpose,
    linearize,
    make_jaxpr,
    random,
    value_and_grad,
    vjp,
    vmap,
)
from pullback.test_util import check_grads

Function = Callable[[Array], Array]

# --------------------------------------------------------------------------------------------------
# Keeping score
# --------------------------------------------------------------------------------------------------

outcomes: list[bool] = []


def expect(name: str, got: Any, figure: Any, tolerance: float = 1e-5) -> bool:
    """Print one comparison and remember its outcome; `tolerance` is relative, a tenth of it absolute."""
    agrees = is_close(got, figure, tolerance)
    outcomes.append(agrees)
    print(f"  {name:<42} {show(got):<38} {show(figure):<38} {'ok' if agrees else 'DISAGREES'}")
    return agrees


def is_close(got: Any, figure: Any, tolerance: float) -> bool:
    """Whether two texts are equal, or two arrays of one shape are close in every component."""
    if isinstance(figure, str):
        return bool(got == figure)
    got, figure = np.asarray(got), np.asarray(figure)
    if got.shape != figure.shape:
        return False
    if figure.dtype == bool:
        return bool(np.array_equal(got, figure))
    allowed = tolerance * np.maximum(np.abs(figure), 0.1)
    return bool(np.all(np.abs(got - figure) <= allowed))  # a NaN is never close


def show(value: Any) -> str:
    """A value in a few characters: long arrays by their first components and their shape."""
    if isinstance(value, str):
        return value
    array = np.asarray(value)
    if array.ndim == 0:
        return f"{array.item()}" if array.dtype.kind in "bi" else f"{array.item():.8g}"
    if array.size <= 3:
        return "[" + ", ".join(f"{x:.7g}" for x in array.ravel()) + "]"
    first = ", ".join(f"{x:.6g}" for x in array.ravel()[:2])
    return f"[{first}, ...] {array.shape}"


def refusal(call: Callable[[], Any]) -> tuple[str, str]:
    """The kind and the message of the error that a call raises."""
    try:
        call()
    except Exception as error:
        return "TypeError" if isinstance(error, TypeError) else type(error).__name__, str(error)
    return "no error", ""


def best_times(*calls: Callable[[], Any], rounds: int) -> list[float]:
    """The least milliseconds of each call. They take turns, so that a busy moment is shared by all."""
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            start = time.perf_counter()
            np.asarray(call())  # NumPy's view of the result: it is there, not merely promised
            best[i] = min(best[i], 1e3 * (time.perf_counter() - start))
    return best


def timing(name: str, milliseconds: float, note: str = "") -> None:
    """Print a time. It belongs to the machine, and is not judged; the order of several may be."""
    print(f"  {name:<42} {f'{milliseconds:.3f} ms':<38} {note}".rstrip())


# --------------------------------------------------------------------------------------------------
# The model that most sections share: logistic regression on four examples of three features
# --------------------------------------------------------------------------------------------------

INPUTS = jnp.array([[0.52, 1.12, 0.77], [0.88, -1.08, 0.15], [0.52, 0.06, -1.30], [0.74, -2.49, 1.39]])
TARGETS = jnp.array([True, True, False, True])

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


def initial_parameters() -> tuple[Array, Array]:
    """Weights and bias from one seed. A key is spent by splitting it: no hidden generator state."""
    _, w_key, b_key = random.split(random.key(0), 3)
    return random.normal(w_key, (3,)), random.normal(b_key, ())


def sigmoid(x: Array) -> Array:
    return 0.5 * (jnp.tanh(x / 2) + 1)


def predict(w: Array, b: Array, inputs: Array) -> Array:
    """The probability that each example is true."""
    return sigmoid(jnp.dot(inputs, w) + b)


def loss(w: Array, b: Array, inputs: Array = INPUTS, targets: Array = TARGETS) -> Array:
    """The negative log-likelihood of the targets."""
    p = predict(w, b, inputs)
    return -jnp.sum(jnp.log(jnp.where(targets, p, 1 - p)))


def predictions_by_w() -> tuple[Function, Array]:
    """The four predictions as a function of W alone, and the W to take its derivatives at."""
    w, b = initial_parameters()
    return lambda w: predict(w, b, INPUTS), w


# --------------------------------------------------------------------------------------------------
# Gradients
# --------------------------------------------------------------------------------------------------


def scalar_derivatives() -> None:
    """`grad` takes a function and returns one. What it returns can be differentiated again, and again."""
    first = grad(jnp.tanh)
    second = grad(first)
    third = grad(second)
    figures = {2.0: (0.070650935, -0.13621889, 0.2526544), 0.5: (0.7864477, -0.726862, -0.5652091)}
    for x, (f1, f2, f3) in figures.items():
        expect(f"tanh' at {x}", first(x), f1)
        expect(f"tanh'' at {x}", second(x), f2)
        expect(f"tanh''' at {x}", third(x), f3)


def vector_outputs() -> None:
    """A gradient belongs to a function with one number as its output; others are refused.

    To differentiate elementwise, sum the outputs (they do not depend on each other's inputs), or map
    the derivative of one element over all of them.
    """
    xs = random.normal(random.PRNGKey(1234), (5,))
    kind, message = refusal(lambda: grad(jnp.tanh)(xs))
    expect("grad of a vector output raises", kind, "TypeError")
    expect("... that says what it is for", "scalar" in message, True)
    expect("... and the shape that it got", "(5,)" in message, True)

    figure = [0.48228705, 0.45585024, 0.99329686, 0.0953269, 0.8153717]
    expect("tanh' elementwise, by the sum", grad(lambda x: jnp.tanh(x).sum())(xs), figure)
    expect("tanh' elementwise, by vmap(grad)", vmap(grad(jnp.tanh))(xs), figure)


def logistic_regression() -> None:
    """`argnums` chooses what to differentiate by: one argument, or several at once."""
    w, b = initial_parameters()
    expect("gradient by W", grad(loss, argnums=0)(w, b), GRADIENT_W)
    expect("gradient by b", grad(loss, argnums=1)(w, b), GRADIENT_B)
    w_bar, b_bar = grad(loss, argnums=(0, 1))(w, b)
    expect("both at once: W", w_bar, GRADIENT_W)
    expect("both at once: b", b_bar, GRADIENT_B)


def parameters_in_a_dict() -> None:
    """Arguments may be any tree of containers. The gradient comes back as a tree of the same form."""
    w, b = initial_parameters()
    gradient = grad(lambda params: loss(params["W"], params["b"]))({"W": w, "b": b})
    expect("the gradient's keys", " ".join(sorted(gradient)), "W b")
    expect("params['W']", gradient["W"], GRADIENT_W)
    expect("params['b']", gradient["b"], GRADIENT_B)


def value_with_gradient() -> None:
    """Reverse mode computes the value on its way, so both cost no more than the gradient alone."""
    w, b = initial_parameters()
    value, (w_bar, b_bar) = value_and_grad(loss, argnums=(0, 1))(w, b)
    expect("loss", loss(w, b), LOSS)
    expect("value_and_grad: the value", value, LOSS)
    expect("value_and_grad: the gradient by W", w_bar, GRADIENT_W)
    expect("value_and_grad: the gradient by b", b_bar, GRADIENT_B)


def finite_differences() -> None:
    """Trust, and check: `check_grads` measures slopes along random directions, in both modes."""
    w, b = initial_parameters()
    kind, _ = refusal(lambda: check_grads(loss, (w, b), order=2))
    expect("check_grads of the loss to second order", kind, "no error")

    step = 1e-3  # the same by hand, for b: a central difference
    slope = (loss(w, b + step) - loss(w, b - step)) / (2 * step)
    expect("a central difference by b", slope, GRADIENT_B, tolerance=1e-2)


def no_derivative_here() -> None:
    """`stop_gradient` is the identity for values, and a constant for derivatives."""
    expect("x * x at 3", grad(lambda x: x * x)(3.0), 6.0)
    expect("x * stop_gradient(x) at 3", grad(lambda x: x * lax.stop_gradient(x))(3.0), 3.0)
    expect("stop_gradient(x * x) at 3", grad(lambda x: lax.stop_gradient(x * x))(3.0), 0.0)


# --------------------------------------------------------------------------------------------------
# Jacobians and Hessians
# --------------------------------------------------------------------------------------------------


def jacobians() -> None:
    """The whole matrix of derivatives: `jacfwd` builds it by columns, `jacrev` by rows.

    Forward mode is the better choice for few inputs, reverse mode for few outputs; the matrix is one.
    """
    w, b = initial_parameters()
    for jacobian in (jacfwd, jacrev):
        name = jacobian.__name__
        expect(f"{name} of predict by W", jacobian(lambda w: predict(w, b, INPUTS))(w), JACOBIAN_W)
        expect(f"{name} of predict by b", jacobian(lambda b: predict(w, b, INPUTS))(b), JACOBIAN_B)
    tree = jacrev(lambda params: predict(params["W"], params["b"], INPUTS))({"W": w, "b": b})
    expect("jacrev by a dict: by W", tree["W"], JACOBIAN_W)
    expect("jacrev by a dict: by b", tree["b"], JACOBIAN_B)


def hessians() -> None:
    """Second derivatives: the Jacobian of a Jacobian, forward over reverse. One block an output."""
    f, w = predictions_by_w()
    blocks = hessian(f)(w)
    expect("shape of the Hessian of predict by W", str(blocks.shape), "(4, 3, 3)")
    expect("its first block", blocks[0], HESSIAN_FIRST)
    expect("its last block", blocks[-1], HESSIAN_LAST)


def per_example_gradients() -> None:
    """`vmap` turns the gradient for one example into that for a batch. The function stays as it was."""
    w, b = initial_parameters()
    one_example = grad(loss)  # by W, of a single row and a single target
    batched = vmap(one_example, in_axes=(None, None, 0, 0))(w, b, INPUTS, TARGETS)
    looped = jnp.stack([one_example(w, b, x, t) for x, t in zip(INPUTS, TARGETS, strict=True)])
    expect("vmap(grad) against a loop", batched, looped)
    expect("their sum is the batch's gradient", batched.sum(axis=0), GRADIENT_W)


# --------------------------------------------------------------------------------------------------
# The two products that everything above is made of
# --------------------------------------------------------------------------------------------------


def forward_and_reverse() -> None:
    """`jvp` pushes a tangent v forward (J v); `vjp` pulls a cotangent u back (u J). Neither builds J.

    They are transposes of each other: the number u J v is the same whichever product comes first.
    """
    f, w = predictions_by_w()
    v = random.normal(random.key(1), (3,))
    u = random.normal(random.key(2), (4,))
    out, jv = jvp(f, (w,), (v,))
    pulled_out, pullback_function = vjp(f, w)
    (uj,) = pullback_function(u)
    expect("the value from jvp", out, f(w))
    expect("the value from vjp", pulled_out, f(w))
    expect("jvp is J v", jv, jnp.dot(jnp.array(JACOBIAN_W), v))
    expect("vjp is u J", uj, jnp.dot(u, jnp.array(JACOBIAN_W)))
    expect("u (J v) = (u J) v", jnp.dot(u, jv), jnp.dot(uj, v))


def linear_functions() -> None:
    """`linearize` runs the function once, and keeps its linear part to be applied to many tangents.

    `linear_transpose` turns any linear function around; of the linear part, it makes reverse mode.
    """
    f, w = predictions_by_w()
    out, linear_part = linearize(f, w)
    expect("linearize: the value", out, f(w))
    expect("linearize: all columns of J", jnp.stack([linear_part(e) for e in jnp.eye(3)], axis=1), JACOBIAN_W)

    (row,) = linear_transpose(linear_part, w)(jnp.array([1.0, 0.0, 0.0, 0.0]))
    expect("linear_transpose: the first row of J", row, JACOBIAN_W[0])
    (doubled,) = linear_transpose(lambda x: 2.0 * x, 1.0)(21.0)
    expect("linear_transpose of doubling, at 21", doubled, 42.0)
    kind, _ = refusal(lambda: linear_transpose(jnp.sin, 1.0)(1.0))
    expect("linear_transpose of sin is refused", kind != "no error", True)


# --------------------------------------------------------------------------------------------------
# Hessian-vector products
# --------------------------------------------------------------------------------------------------


def forward_over_reverse(f: Function, x: Array, v: Array) -> Array:
    """How the gradient changes along v."""
    return jvp(grad(f), (x,), (v,))[1]


def reverse_over_forward(f: Function, x: Array, v: Array) -> Array:
    """The gradient of the slope along v."""
    return grad(lambda x: jvp(f, (x,), (v,))[1])(x)


def reverse_over_reverse(f: Function, x: Array, v: Array) -> Array:
    """The gradient of the gradient's product with v."""
    return grad(lambda x: jnp.vdot(grad(f)(x), v))(x)


def dense_hessian(f: Function, x: Array, v: Array) -> Array:
    """The matrix of 1,440,000 numbers that the other three never build."""
    return jnp.tensordot(hessian(f)(x), v, x.ndim)


def sum_of_squared_tanh(x: Array) -> Array:
    return jnp.sum(jnp.tanh(x) ** 2)


def hessian_vector_products() -> None:
    """Four ways to one result. The orders of composition differ in cost, the dense matrix by far."""
    x = random.normal(random.key(3), (30, 40))
    v = random.normal(random.key(4), (30, 40))
    f = sum_of_squared_tanh
    ways = [forward_over_reverse, reverse_over_forward, reverse_over_reverse]
    dense = dense_hessian(f, x, v)
    for way in ways:
        expect(f"{way.__name__} is the dense product", way(f, x, v), dense, tolerance=1e-4)

    quick = best_times(*(partial(way, f, x, v) for way in ways), rounds=40)
    slow = best_times(partial(dense_hessian, f, x, v), rounds=2)
    for way, milliseconds in zip([*ways, dense_hessian], quick + slow, strict=True):
        timing(way.__name__, milliseconds)
    expect("fwd-over-rev < rev-over-rev < dense", quick[0] < quick[2] < slow[0], True)


# --------------------------------------------------------------------------------------------------
# Products with whole matrices
# --------------------------------------------------------------------------------------------------


def matrix_jacobian_products() -> None:
    """A matrix times the Jacobian: 128 cotangents, one by one, and all at once by `vmap`."""
    f, w = predictions_by_w()
    out, pullback_function = vjp(f, w)
    matrix = random.normal(random.key(5), (128, *out.shape))

    def looped() -> Array:
        return jnp.stack([pullback_function(row)[0] for row in matrix])

    def vectorised() -> Array:
        return vmap(pullback_function)(matrix)[0]

    expect("128 cotangents: vmap against a loop", vectorised(), looped())
    expect("... against the matrix product", vectorised(), jnp.dot(matrix, jnp.array(JACOBIAN_W)))
    compare_speed(looped, vectorised, "291 ms", "6.85 ms")

    (rows,) = vmap(pullback_function, in_axes=0)(jnp.eye(4))
    expect("vmap(vjp_fun)(eye) is jacrev", rows, jacrev(f)(w))
    expect("... and the documents' matrix", rows, JACOBIAN_W)


def jacobian_matrix_products() -> None:
    """The Jacobian times a matrix: 128 tangents, one by one, and all at once by `vmap`."""
    f, w = predictions_by_w()
    matrix = random.normal(random.key(6), (128, *w.shape))

    def push(v: Array) -> Array:
        return jvp(f, (w,), (v,))[1]

    def looped() -> Array:
        return jnp.stack([push(row) for row in matrix])

    def vectorised() -> Array:
        return vmap(push)(matrix)

    expect("128 tangents: vmap against a loop", vectorised(), looped())
    expect("... against the matrix product", vectorised(), jnp.dot(matrix, jnp.array(JACOBIAN_W).T))
    compare_speed(looped, vectorised, "693 ms", "5.97 ms")

    columns = vmap(push, in_axes=1, out_axes=1)(jnp.eye(3))
    expect("vmap(jvp)(eye) is jacfwd", columns, jacfwd(f)(w))
    expect("... and the documents' matrix", columns, JACOBIAN_W)


def compare_speed(
    looped: Callable[[], Array], vectorised: Callable[[], Array], loop_figure: str, vector_figure: str
) -> None:
    loop_time, vector_time = best_times(looped, vectorised, rounds=3)
    timing("in a loop", loop_time, f"{loop_figure} in the documents")
    timing("vectorised", vector_time, f"{vector_figure} in the documents")
    expect("vectorised < in a loop", vector_time < loop_time, True)


# --------------------------------------------------------------------------------------------------
# Python control flow
# --------------------------------------------------------------------------------------------------


def python_control_flow() -> None:
    """What is not compiled runs as ordinary Python: branches, loops and exceptions see real values."""

    def branch(x: Array) -> Array:
        try:
            if x < 3:
                return 2 * x**3
            raise ValueError
        except ValueError:
            return jnp.pi * x

    expect("one branch: 2 x^3 at 2", grad(branch)(2.0), 24.0)
    out, linear_part = vjp(branch, 4.0)
    expect("the other raises: its value at 4", out, 12.566371)
    expect("... and its linear part at 1", linear_part(1.0)[0], 3.1415927)

    def double_until_large(x: Array) -> Array:
        while x < 100:
            x = 2 * x
        return x

    expect("a loop that depends on its value, at 3", grad(double_until_large)(3.0), 64.0)


# --------------------------------------------------------------------------------------------------
# Complex numbers
# --------------------------------------------------------------------------------------------------


def complex_gradients() -> None:
    """A complex number is a pair of real ones, and so is its derivative.

    The gradient of a real output by z = x + iy is df/dx - i df/dy: with this sign, the gradient of a
    holomorphic function is its complex derivative. `holomorphic=True` is the promise that it is one,
    and complex outputs are refused without it.
    """
    z = 3.0 + 4.0j
    expect("x^2 + y^2 at 3+4i", grad(lambda z: jnp.real(z) ** 2 + jnp.imag(z) ** 2)(z), 6 - 8j)
    expect("sin, holomorphic, at 3+4i", grad(jnp.sin, holomorphic=True)(z), -27.034945 - 3.8511531j)
    expect("conj, promised to be holomorphic", grad(jnp.conj, holomorphic=True)(z), complex(1.0, -0.0))
    kind, message = refusal(lambda: grad(jnp.sin)(z))
    expect("sin without the promise raises", kind, "TypeError")
    expect("... that names the promise", "holomorphic" in message, True)


GRADIENT_THROUGH_CHOLESKY = [
    [-0.75342447, -3.0509021 - 10.940544j, 5.989684 + 3.5422976j],
    [-3.0509021 + 10.940544j, -8.904487, -5.1351547 - 6.5593696j],
    [5.989684 - 3.5422976j, -5.1351547 + 6.5593696j, 0.01320434],
]


def random_linear(key: Array) -> Callable[[Array, Array], Array]:
    """A function of two real numbers, a x + b y."""
    a, b = random.uniform(key, (2,))
    return lambda x, y: a * x + b * y


def complex_products() -> None:
    """Both modes on f(x + iy) = u(x, y) + i v(x, y), where u and v are random and linear.

    Forward, a tangent moves x and y, and these move u and v. Reverse is the transpose of that: a
    cotangent c is paired with a tangent t by the real part of c t.
    """
    for seed in range(3):
        u_key, v_key, point_key = random.split(random.key(seed), 3)
        u, v = random_linear(u_key), random_linear(v_key)
        x, y, x_dot, y_dot, c, d = random.uniform(point_key, (6,))
        z, tangent, cotangent = x + 1j * y, x_dot + 1j * y_dot, c + 1j * d
        u_x, u_y = grad(u, argnums=(0, 1))(x, y)
        v_x, v_y = grad(v, argnums=(0, 1))(x, y)
        f = partial(on_the_plane, u, v)

        _, pushed = jvp(f, (z,), (tangent,))
        expect(f"jvp, draw {seed}", pushed, u_x * x_dot + u_y * y_dot + 1j * (v_x * x_dot + v_y * y_dot))
        _, pullback_function = vjp(f, z)
        (pulled,) = pullback_function(cotangent)
        expect(f"vjp, draw {seed}", pulled, u_x * c - v_x * d - 1j * (u_y * c - v_y * d))
        expect(f"Re c (J t) = Re (c J) t, draw {seed}", (cotangent * pushed).real, (pulled * tangent).real)


def on_the_plane(u: Callable[..., Array], v: Callable[..., Array], z: Array) -> Array:
    """The function of a complex number whose real and imaginary parts are u and v."""
    x, y = jnp.real(z), jnp.imag(z)
    return u(x, y) + 1j * v(x, y)


def through_a_decomposition() -> None:
    """Complex derivatives go through the Cholesky decomposition too: L times its adjoint is the Hermitian matrix."""
    x = jnp.array([[5, 2 + 3j, 5j], [2 - 3j, 7, 1 + 7j], [-5j, 1 - 7j, 12]])

    def f(x: Array) -> Array:
        factor = jnp.linalg.cholesky(x)
        return jnp.sum((factor - jnp.sin(factor)) ** 2)

    factor = jnp.linalg.cholesky(x)
    expect("L times its adjoint", factor @ factor.conj().T, x)
    expect("gradient through L, holomorphic", grad(f, holomorphic=True)(x), GRADIENT_THROUGH_CHOLESKY)

    real = x.real
    gradient = grad(lambda x: 2 * jnp.sum(jnp.log(jnp.diagonal(jnp.linalg.cholesky(x)))))(real)
    expect("gradient of log det A: its inverse", gradient @ real, np.eye(3))


# --------------------------------------------------------------------------------------------------
# Seeing the program
# --------------------------------------------------------------------------------------------------


def seeing_the_program() -> None:
    """`make_jaxpr` shows a function as the list of operations that it is, whatever was done to it.

    The gradient of x y by x multiplies twice: once for the value, which nobody reads, and once the
    cotangent 1.0 by y.
    """
    closed = make_jaxpr(grad(lambda x, y: x * y))(2.0, 3.0)
    for line in str(closed).splitlines():
        print(f"    {line}")
    equations = closed.jaxpr.eqns
    read = [*closed.jaxpr.outvars, *(atom for equation in equations for atom in equation.invars)]
    unread = [e for e in equations if not any(e.outvars[0] is atom for atom in read)]
    expect("its operations", " ".join(e.primitive.name for e in equations), "mul mul")
    expect("... of which nobody reads the result", " ".join(e.primitive.name for e in unread), "mul")
    expect("... and one has the literal 1.0", str(closed).count("mul 1.0"), 1)
    expect("variables show their types", "a:f32[] b:f32[]" in str(closed), True)

    tall = ShapeDtypeStruct((1_000_000, 3), jnp.float32)  # the product would fill four terabytes
    expect("eval_shape runs nothing", str(eval_shape(lambda x: x @ x.T, tall).shape), "(1000000, 1000000)")


SECTIONS: list[Callable[[], None]] = [
    scalar_derivatives,
    vector_outputs,
    logistic_regression,
    parameters_in_a_dict,
    value_with_gradient,
    finite_differences,
    no_derivative_here,
    jacobians,
    hessians,
    per_example_gradients,
    forward_and_reverse,
    linear_functions,
    hessian_vector_products,
    matrix_jacobian_products,
    jacobian_matrix_products,
    python_control_flow,
    complex_gradients,
    complex_products,
    through_a_decomposition,
    seeing_the_program,
]


def main() -> int:
    """Run every section; the exit status is 0 if all figures agree."""
    start = time.perf_counter()
    for section in SECTIONS:
        print(f"\n{section.__name__.replace('_', ' ').capitalize()}")
        section()
    print(f"\n{sum(outcomes)} of {len(outcomes)} figures agree ({time.perf_counter() - start:.1f} s)")
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
