"""Functions with derivative rules of their own: every worked problem computed, and compared with its known figure.

Each section below is one small problem, solved eager and compiled. Every line printed is one comparison,
as in the cookbook beside this file, from which the keeping of the score is taken: what was computed, what it should
be, and whether the two agree. The process ends with a non-zero status if any of them does not.

    python examples/custom_derivatives.py
"""

from __future__ import annotations

import io
import math
import pdb
import pickle
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from autodiff_cookbook import Function, expect, outcomes, refusal

import pullback.numpy as jnp
from pullback import (
    Array,
    ShapeDtypeStruct,
    checkpoint,
    closure_convert,
    core,
    custom_gradient,
    custom_jvp,
    custom_vjp,
    grad,
    hessian,
    jacfwd,
    jit,
    jvp,
    lax,
    linear_transpose,
    make_jaxpr,
    pure_callback,
    value_and_grad,
    vjp,
    vmap,
)
from pullback.custom_derivatives import (
    check_rule,
    clip_gradient,
    implicit_function,
    linear_call,
    reverse_gradient,
    safe_where,
    scale_gradient,
    straight_through,
)


def expect_both(name: str, function: Callable[..., Any], *args: Any, figure: Any, tolerance: float = 1e-5) -> None:
    """Compare a function's value with a figure, eager and compiled."""
    expect(name, function(*args), figure, tolerance)
    expect("... compiled", jit(function)(*args), figure, tolerance)


# --------------------------------------------------------------------------------------------------
# The rules
# --------------------------------------------------------------------------------------------------


@custom_jvp
def by_jvp(x: Array, y: Array) -> Array:
    return jnp.sin(x) * y


@by_jvp.defjvp
def by_jvp_rule(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    x, y = primals
    x_dot, y_dot = tangents
    return by_jvp(x, y), jnp.cos(x) * x_dot * y + jnp.sin(x) * y_dot


by_jvps = custom_jvp(lambda x, y: jnp.sin(x) * y)
by_jvps.defjvps(
    lambda x_dot, ans, x, y: jnp.cos(x) * x_dot * y,
    lambda y_dot, ans, x, y: jnp.sin(x) * y_dot,
)


@custom_vjp
def by_vjp(x: Array, y: Array) -> Array:
    return jnp.sin(x) * y


def by_vjp_forward(x: Array, y: Array) -> tuple[Array, tuple[Array, Array, Array]]:
    return by_vjp(x, y), (jnp.cos(x), jnp.sin(x), y)


def by_vjp_backward(residuals: tuple[Array, Array, Array], ct: Array) -> tuple[Array, Array]:
    cos_x, sin_x, y = residuals
    return cos_x * ct * y, sin_x * ct


by_vjp.defvjp(by_vjp_forward, by_vjp_backward)


def two_kinds_of_rules() -> None:
    """A rule returns tangents from tangents (jvp), or cotangents from cotangents (vjp). Each serves both modes."""
    for f, kind in ((by_jvp, "defjvp"), (by_jvps, "defjvps"), (by_vjp, "defvjp")):
        expect_both(f"sin(x) y at (2, 3), by {kind}", f, 2.0, 3.0, figure=2.7278922)
        expect_both("... its gradient", grad(f), 2.0, 3.0, figure=-1.2484405)
        tangent = lambda x, y, f=f: jvp(f, (x, y), (1.0, 0.0))[1]
        expect_both("... its tangent along (1, 0)", tangent, 2.0, 3.0, figure=-1.2484405)
        mixed = lambda x, y, f=f: hessian(f, (0, 1))(x, y)[0][1]
        expect_both("... its mixed second derivative", mixed, 2.0, 3.0, figure=math.cos(2.0))


@custom_jvp
def log1pexp(x: Array) -> Array:
    return jnp.log(1.0 + jnp.exp(x))


@log1pexp.defjvp
def log1pexp_rule(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (x_dot,) = primals, tangents
    ans = log1pexp(x)
    return ans, (1 - 1 / (1 + jnp.exp(x))) * x_dot


def numerical_stability() -> None:
    """A derivative may overflow where it is harmless on paper: a rule says it in another way."""
    plain = log1pexp.fun
    expect("log(1 + exp x) at 3, compiled", jit(log1pexp)(3.0), 3.0485873)
    expect_both("... its gradient", grad(log1pexp), 3.0, figure=0.95257413)
    expect_both("... its gradient at 5", grad(log1pexp), 5.0, figure=0.9933072)
    expect_both("... at 0, 1, 2", vmap(grad(log1pexp)), jnp.arange(3.0), figure=[0.5, 0.7310586, 0.8807971])
    for x in (100.0, 500.0):
        expect(f"at {x:g} by plain differentiation", bool(jnp.isnan(grad(plain)(x))), True)
        expect_both("... by the rule", grad(log1pexp), x, figure=1.0)


def convention() -> None:
    """Where plain differentiation finds no derivative, a rule can give what is right by continuity."""

    @custom_jvp
    def f(x: Array) -> Array:
        return x / (1 + jnp.sqrt(x))

    @f.defjvp
    def rule(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
        (x,), (x_dot,) = primals, tangents
        return f(x), (jnp.sqrt(x) + 2) / (2 * (jnp.sqrt(x) + 1) ** 2) * x_dot

    expect("x / (1 + sqrt x) at 0, plain", bool(jnp.isnan(grad(f.fun)(0.0))), True)
    expect_both("... by convention", grad(f), 0.0, figure=1.0)
    expect_both("... at 4, as plain", grad(f), 4.0, figure=grad(f.fun)(4.0))


# --------------------------------------------------------------------------------------------------
# Rules that are not the derivative
# --------------------------------------------------------------------------------------------------


@custom_vjp
def clipped(low: float, high: float, x: Array) -> Array:
    return x


clipped.defvjp(
    lambda low, high, x: (x, (low, high)),
    lambda limits, ct: (None, None, jnp.clip(ct, *limits)),
)


def gradient_clipping() -> None:
    """The identity, whose backward rule is not linear. Forward mode says so, and wants a rule of its own."""

    def f(x: Array) -> Array:
        return jnp.sin(clipped(-0.75, 0.75, x))

    t = jnp.linspace(0.0, 10.0, 1000)
    expect_both("sin' clipped: its maximum", lambda t: vmap(grad(f))(t).max(), t, figure=0.75)
    expect_both("... its minimum", lambda t: vmap(grad(f))(t).min(), t, figure=-0.75)
    expect_both("... everywhere", vmap(grad(f)), t, figure=jnp.clip(jnp.cos(t), -0.75, 0.75))
    kind, message = refusal(lambda: jvp(f, (0.1,), (1.0,)))
    expect("forward mode through it raises", kind, "TypeError")
    expect("... that says how to do it", "defjvp" in message, True)
    both = lambda x: jnp.sin(clip_gradient(x, -0.75, 0.75))
    expect_both("the helper, in reverse mode", vmap(grad(both)), t, figure=jnp.clip(jnp.cos(t), -0.75, 0.75))
    expect_both("... in forward mode", vmap(jacfwd(both)), t, figure=jnp.cos(t))


def rules_that_survive() -> None:
    """A rule that says 3 where the derivative is 2: every transformation must keep it."""
    f = custom_jvp(lambda x: 2 * x)
    f.defjvp(lambda primals, tangents: (f(*primals), 3 * tangents[0]))
    ones, threes = jnp.ones(4), [3.0] * 4
    expect_both("grad", grad(f), 1.0, figure=3.0)
    expect_both("vmap of grad", vmap(grad(f)), ones, figure=threes)
    expect_both("grad of a sum over vmap", grad(lambda xs: vmap(f)(xs).sum()), ones, figure=threes)
    closed = make_jaxpr(f)(1.0)
    expect(
        "grad of the program that make_jaxpr shows",
        grad(lambda x: core.eval_jaxpr(closed.jaxpr, closed.consts, x)[0])(1.0),
        3.0,
    )
    expect("... which has one equation", " ".join(e.primitive.name for e in closed.jaxpr.eqns), "custom_jvp_call")

    def scanned(x: Array) -> Array:
        return lax.scan(lambda carry, _: (f(carry), None), x, None, length=2)[0]

    expect_both("inside scan, twice", grad(scanned), 1.0, figure=9.0)
    expect_both("inside cond", grad(lambda x: lax.cond(x > 0, f, jnp.negative, x)), 1.0, figure=3.0)
    expect_both("inside checkpoint", grad(checkpoint(lambda x: f(f(x)))), 1.0, figure=9.0)
    looped = lambda x: lax.while_loop(lambda s: s[1] < 2, lambda s: (f(s[0]), s[1] + 1), (x, 0))[0]
    expect_both("inside while_loop, forward mode", jacfwd(looped), 1.0, figure=9.0)


def ordinary_python() -> None:
    """While nothing is compiled, functions and rules are ordinary Python: they may branch on values, print, raise."""

    @custom_jvp
    def f(x: Array) -> Array:
        return jnp.sin(x) if x > 0 else jnp.cos(x)

    @f.defjvp
    def rule(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
        ans = f(*primals)
        return (ans, 2 * tangents[0]) if ans > 0.8 else (ans, 3 * tangents[0])

    expect("a branch in the function", f(1.0), math.sin(1.0))
    expect("one branch of the rule", grad(f)(1.0), 2.0)
    expect("the other", grad(f)(-1.0), 3.0)


def debugger_in_a_backward_pass() -> None:
    """The identity, whose backward rule stops in the debugger. Here a script types into it."""
    screen = io.StringIO()

    @custom_vjp
    def debug(x: Array) -> Array:
        return x

    def backward(x: Array, ct: Array) -> tuple[Array]:
        pdb.Pdb(stdin=io.StringIO("p x\np ct\ncontinue\n"), stdout=screen, nosigint=True, readrc=False).set_trace()
        return (ct,)

    debug.defvjp(lambda x: (x, x), backward)

    def foo(x: Array) -> Array:
        return jnp.sin(debug(x**2))

    expect("grad with a stop in the backward pass", grad(foo)(3.0), -5.4667816)
    shown = screen.getvalue()
    expect("... where the debugger showed x", "9." in shown, True)
    expect("... and the cotangent", "-0.9111302" in shown, True)
    screen.truncate(0)
    expect("vmap(grad) with a stop", vmap(grad(foo))(jnp.array([3.0, 1.0])), [-5.4667816, 2 * math.cos(1.0)])
    expect("... where the debugger showed a batch", "by vmap" in screen.getvalue(), True)


# --------------------------------------------------------------------------------------------------
# Implicit differentiation
# --------------------------------------------------------------------------------------------------


@partial(custom_vjp, nondiff_argnums=(0,))
def fixed_point(f: Function, a: Any, x_guess: Array) -> Array:
    """The x with x = f(a, x), by iteration from a guess."""

    def step(state: tuple[Array, Array]) -> tuple[Array, Array]:
        return f(a, state[0]), state[0]

    return lax.while_loop(lambda s: jnp.abs(s[0] - s[1]) > 1e-6, step, (f(a, x_guess), x_guess))[0]


@partial(custom_vjp, nondiff_argnums=(0,))
def fixed_point_in_python(f: Function, a: Any, x_guess: Array) -> Array:
    """The same by a loop of Python's, which needs values, so that it cannot be compiled."""
    x, before = f(a, x_guess), x_guess
    while abs(x - before) > 1e-6:
        x, before = f(a, x), x
    return x


def rules_of(solver: Any) -> None:
    """Give a fixed-point solver its rule: the cotangent is a fixed point too, of the transposed linear map."""

    def forward(f: Function, a: Any, x_guess: Array) -> tuple[Array, tuple[Any, Array]]:
        x = solver(f, a, x_guess)
        return x, (a, x)

    def step_back(f: Function, packed: tuple[Any, Array, Array], u: Array) -> Array:
        a, x, ct = packed
        return ct + vjp(lambda x: f(a, x), x)[1](u)[0]

    def backward(f: Function, residuals: tuple[Any, Array], ct: Array) -> tuple[Any, Array]:
        a, x = residuals
        _, pull_a = vjp(lambda a: f(a, x), a)
        (a_bar,) = pull_a(solver(partial(step_back, f), (a, x, ct), ct))
        return a_bar, jnp.zeros_like(x)

    solver.defvjp(forward, backward)


rules_of(fixed_point)
rules_of(fixed_point_in_python)


def newton_step(a: Array, x: Array) -> Array:
    return 0.5 * (x + a / x)


def implicit_differentiation() -> None:
    """The square root by Newton's iteration, to second order, without differentiating the loop."""
    figures = (1.4142135, 0.35355338, -0.088388346)
    solvers = {
        "Python's loop": lambda a: fixed_point_in_python(newton_step, a, a),
        "while_loop": lambda a: fixed_point(newton_step, a, a),
        "implicit_function": implicit_function(lambda x, a: x**2 - a, lambda a: fixed_point(newton_step, a, a)),
    }
    for name, square_root in solvers.items():
        for what, f, exact, figure in (
            ("sqrt 2", square_root, jnp.sqrt, figures[0]),
            ("its gradient", grad(square_root), grad(jnp.sqrt), figures[1]),
            ("its curvature", grad(grad(square_root)), grad(grad(jnp.sqrt)), figures[2]),
        ):
            expect(f"{what}, by {name}", f(2.0), figure)
            expect("... the closed form", exact(2.0), figure)
            if name != "Python's loop":
                expect("... compiled", jit(f)(2.0), figure)
                expect("... compiled and mapped", jit(vmap(f))(jnp.array([2.0, 2.0])), [figure, figure])
    for name in ("while_loop", "implicit_function"):
        expect_both(f"its gradient in forward mode, by {name}", jacfwd(solvers[name]), 2.0, figure=figures[1])
        expect_both(f"its curvature, forward over reverse, by {name}", hessian(solvers[name]), 2.0, figure=figures[2])
    expect_both(
        "second derivative in forward mode", jacfwd(jacfwd(solvers["implicit_function"])), 2.0, figure=figures[2]
    )


# --------------------------------------------------------------------------------------------------
# Other ways to say it
# --------------------------------------------------------------------------------------------------


def gradients_by_closures() -> None:
    """`custom_gradient`: the function returns its own backward pass, which closes over what it needs."""
    f = custom_gradient(lambda x: (x**2, lambda ct: (ct * x,)))
    expect_both("x^2 at 3", f, 3.0, figure=9.0)
    expect_both("... whose rule says x", grad(f), 3.0, figure=3.0)
    product = custom_gradient(lambda x, y: (x * y, lambda ct: (ct * y, ct * x)))
    gradient = grad(product, argnums=(0, 1))
    expect_both("gradient of x y at (3, 4)", lambda x, y: jnp.stack(gradient(x, y)), 3.0, 4.0, figure=[4.0, 3.0])


def closing_over_values() -> None:
    """A rule differentiates with respect to arguments only. `closure_convert` makes arguments of captured values."""

    def naive(a: Array) -> Array:
        return fixed_point(lambda _, x: 0.5 * (x + a / x), 0.0, 1.0)

    kind, message = refusal(lambda: grad(naive)(2.0))
    expect("closing over what is differentiated raises", kind, "TypeError")
    expect("... that says what to do", "closure_convert" in message, True)

    def converted(a: Array) -> Array:
        step, hoisted = closure_convert(lambda x: 0.5 * (x + a / x), 1.0)
        return fixed_point(lambda captured, x: step(x, *captured), hoisted, 1.0)

    expect_both("sqrt 2 after closure_convert", converted, 2.0, figure=1.4142135)
    expect_both("... its gradient", grad(converted), 2.0, figure=0.35355338)


def coupled_transposes() -> None:
    """`linear_call`: a linear function and its transpose, each of which is the transpose of the other."""

    def divide(r: Array, x: Array) -> Array:
        return x / r

    def div_add(x: Array, denominator: Array) -> Array:
        return x + linear_call(divide, divide, denominator, x)

    def transpose(f: Function) -> Function:
        return lambda ct: linear_transpose(f, 1.0)(ct)[0]

    expect_both("9 + 9 / 3", div_add, 9.0, 3.0, figure=12.0)
    expect_both("its transpose at 18", transpose(lambda x: div_add(x, 3.0)), 18.0, figure=24.0)

    seven = lambda x: linear_call(lambda r, x: x, lambda r, ct: 7.0 * jnp.ones_like(ct), (), x)
    f, figures = seven, []
    for _ in range(4):
        figures.append(f(1.0))
        f = transpose(f)
    expect("identity, whose transpose says 7", jnp.stack(figures), [1.0, 7.0, 1.0, 7.0])


def foreign_functions() -> None:
    """A function that is not ours, called back from the compiled program, with a rule for its derivative."""

    @custom_jvp
    def erf(x: Array) -> Array:
        result = ShapeDtypeStruct(x.shape, x.dtype)
        return pure_callback(lambda x: np.vectorize(math.erf)(x).astype(x.dtype), result, x, vmap_method="expand_dims")

    erf.defjvps(lambda x_dot, ans, x: 2 / math.sqrt(math.pi) * jnp.exp(-(x**2)) * x_dot)
    xs = jnp.array([0.0, 0.5])
    expect_both("erf at 0.5", erf, 0.5, figure=0.5204999)
    expect_both("... its gradient", grad(erf), 0.5, figure=0.8787826)
    expect_both("... its second derivative", grad(grad(erf)), 0.5, figure=-0.8787826)
    expect_both("... mapped", vmap(value_and_grad(erf)), xs, figure=[[0.0, 0.5204999], [1.1283792, 0.8787826]])


def arguments_that_are_functions() -> None:
    """`nondiff_argnums`: arguments that are not differentiated may be anything. The rule is given them first."""

    @partial(custom_jvp, nondiff_argnums=(0,))
    def apply(f: Function, x: Array) -> Array:
        return f(x)

    @apply.defjvp
    def rule(f: Function, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
        return f(*primals), 2.0 * tangents[0]

    expect_both("x^3 at 3", lambda x: apply(lambda x: x**3, x), 3.0, figure=27.0)
    expect_both("... whose rule says 2", lambda x: grad(apply, argnums=1)(lambda x: x**3, x), 3.0, figure=2.0)


def pickling() -> None:
    """Functions with rules can be pickled: those of a module by their names, others by what they are made of."""
    for f in (by_jvp, by_vjp):
        copy = pickle.loads(pickle.dumps(f))
        expect(f"{f.__name__} is itself after pickling", copy is f, True)
    made = custom_jvp(jnp.sin)
    made.defjvp(tripled)
    copy = pickle.loads(pickle.dumps(made))
    expect("another is a copy, with its rule", grad(copy)(0.0), 3.0)


def tripled(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return jnp.sin(*primals), 3 * jnp.cos(*primals) * tangents[0]


# --------------------------------------------------------------------------------------------------
# Helpers
# --------------------------------------------------------------------------------------------------


def helpers() -> None:
    """What is written over and over, in a line each."""
    expect_both("sqrt where positive: gradient at 0", grad(lambda x: safe_where(x > 0, jnp.sqrt, x)), 0.0, figure=0.0)
    expect_both("x^2 at 3 with half the gradient", grad(lambda x: scale_gradient(x, 0.5) ** 2), 3.0, figure=3.0)
    expect_both("... with its gradient reversed", grad(lambda x: reverse_gradient(x) ** 2), 3.0, figure=-6.0)
    rounded = straight_through(jnp.round)
    expect_both("round(2.7)^2, straight through", grad(lambda x: rounded(x) ** 2), 2.7, figure=6.0)


def checking_rules() -> None:
    """`check_rule` tests a rule against the function itself, and says what is wrong with it."""
    right = ((by_jvp, (2.0, 3.0)), (by_vjp, (2.0, 3.0)), (log1pexp, (100.0,)), (fixed_point, (newton_step, 2.0, 1.0)))
    for f, args in right:
        expect(f"the rule of {f.__name__}", refusal(lambda f=f, args=args: check_rule(f, *args))[0], "no error")
    wrong = custom_vjp(lambda x, y: x * y)
    wrong.defvjp(lambda x, y: (x * y, (x, y)), lambda residuals, ct: (ct * residuals[0], ct * residuals[1]))
    kind, message = refusal(lambda: check_rule(wrong, 2.0, 5.0))
    expect("one with two cotangents exchanged", kind, "RuleCheckError")
    expect("... that is recognised", "wrong order" in message, True)


SECTIONS: list[Callable[[], None]] = [
    two_kinds_of_rules,
    numerical_stability,
    convention,
    gradient_clipping,
    rules_that_survive,
    ordinary_python,
    debugger_in_a_backward_pass,
    implicit_differentiation,
    gradients_by_closures,
    closing_over_values,
    coupled_transposes,
    foreign_functions,
    arguments_that_are_functions,
    pickling,
    helpers,
    checking_rules,
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
