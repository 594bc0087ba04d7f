"""Every parameter of every public function is given a number that is being differentiated.

The derivative is that by differences, or the call is refused: it is never lost. Valid calls are those of
``test_bad_operands``, found by signatures; so a new function or parameter is under the law as soon as it is there. The
usual run takes some of the functions of each distribution, other ones for each, and one eager mode for a parameter.
"""

from __future__ import annotations

import inspect
import math
import pkgutil
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import enable_x64, grad, jit, jvp, lax, tree, vmap
from pullback.core.array import Array
from pullback.core.errors import PullbackError, ShapeError
from pullback.derivatives import taylor
from pullback.scipy import stats
from tests.helpers import EXHAUSTIVE, spread
from tests.laws.test_bad_operands import GATHER, KEY, public_functions, valid_call
from tests.laws.test_bad_operands import MODULES as OF_ARRAYS

MODULES = [
    *(name for name in OF_ARRAYS if name not in ("test_util", "tree_util")),
    "image", "nn.initializers", "ops", "scipy.interpolate", "scipy.optimize", "scipy.spatial",
    "scipy.spatial.distance", "scipy.spatial.transform",
    *(f"scipy.stats.{m.name}" for m in pkgutil.iter_modules(stats.__path__) if m.name in stats.__all__),
]  # fmt: skip
POINTS = (2.3, 0.43)
"""Where parameters are differentiated: the first at which the call is valid."""

EXEMPT: dict[str, str] = {
    "custom_derivatives.clip_gradient": "its derivative is another than its own, by definition",
    "custom_derivatives.clip_gradient_norm": "the same",
    "custom_derivatives.reverse_gradient": "the same",
    "custom_derivatives.scale_gradient": "the same",
    "custom_derivatives.straight_through": "the same",
    "custom_derivatives.safe_where": "the same",
    "lax.stop_gradient": "its derivative is zero, by definition",
    "numpy.nan_to_num 0": "a multiple of NaN has no derivative",
    "lax.scaled_dot": "its operands are rounded to few bits, through which the derivative passes",
    **{
        f"random.{name}": "derivatives are those of quantiles (implicit reparameterisation), not of rejection sampling"
        for name in (
            "beta",
            "chisquare",
            "clayton_copula",
            "dirichlet",
            "f",
            "gamma",
            "generalized_normal",
            "loggamma",
            "t",
            "t_copula",
        )
    },
}
X, Y, N = jnp.array([-1.25, 0.3, 2.5]), jnp.array([0.0, 0.5, 1.0]), jnp.array([jnp.nan, jnp.inf, -jnp.inf, 1.0])
FAR = jnp.array([5, 0, -7])
CALLS: dict[str, tuple[Any, ...]] = {
    "numpy.take": (Y, FAR), "numpy.take_along_axis": (Y, FAR), "numpy.nan_to_num": (N, True, 0.5, 1.5, 2.5),
    "nn.leaky_relu": (X,), "scipy.optimize.fixed_point": (jnp.cos, 0.7),
    "nn.elu": (X,), "nn.celu": (X,), "nn.selu": (X,), "numpy.interp": (X, Y, X), "numpy.clip": (X,),
    "numpy.unwrap": (10.0 * X,), "numpy.select": ([X > 1, X < -1], [X, Y]), "numpy.pad": (X, 2),
    "numpy.nonzero": (X > 0,), "numpy.compress": (X > 0, Y), "numpy.extract": (X > 0, Y),
    "numpy.histogram": (X,), "numpy.average": (X,), "numpy.trapezoid": (X,), "numpy.gradient": (X,),
    "numpy.quantile": (X, 0.3), "numpy.percentile": (X, 30.0), "numpy.linspace": (1.0, 3.0),
    "numpy.logspace": (1.0, 3.0), "numpy.geomspace": (1.0, 3.0), "numpy.full": ((2,), 1.5), "numpy.full_like": (X, 1.5),
    "numpy.searchsorted": (Y, X), "numpy.where": (X > 0, X, 1.5), "numpy.vander": (X,), "numpy.heaviside": (X, 0.5),
    "numpy.float_power": (Y, 1.5), "numpy.ediff1d": (X,), "numpy.diff": (X,), "numpy.insert": (X, 1, 1.5),
    "numpy.append": (X, 1.5), "numpy.fill_diagonal": (jnp.ones((2, 2)), 1.5), "numpy.polyval": (X, 1.5),
    "numpy.arange": (0.0, 3.0, 0.7), "numpy.cov": (X,), "numpy.var": (X,), "numpy.std": (X,), "numpy.mean": (X,),
    "numpy.polyfit": (Y, X, 1), "numpy.kaiser": (5, 1.5), "numpy.array": (1.5,), "numpy.asarray": (1.5,),
    "numpy.hypot": (X, 1.5), "numpy.ldexp": (X, FAR), "numpy.linalg.pinv": (jnp.ones((2, 2)),),
    "numpy.linalg.norm": (X,), "nn.glu": (jnp.ones(4),), "nn.standardize": (X,), "nn.logsumexp": (X,),
    "nn.squareplus": (X,), "nn.one_hot": (FAR, 3), "lax.full": ((2,), 1.5), "lax.clamp": (-1.0, X, 1.0),
    "lax.integer_pow": (X, 2), "ops.segment_sum": (X, FAR), "image.scale_and_translate": (
        jnp.ones((2, 2)), (3, 3), (0, 1), jnp.array([1.5, 1.5]), jnp.array([0.0, 0.0]), "linear",
    ),
    "random.triangular": (KEY, 1.0, 2.0, 3.0), "random.uniform": (KEY,), "random.truncated_normal": (KEY, -1.0, 1.0),
    "random.pareto": (KEY, 1.5), "random.weibull_min": (KEY, 1.5, 1.5), "random.rayleigh": (KEY, 1.5),
    "random.wald": (KEY, 1.5), "random.lognormal": (KEY, 1.5), "random.laplace": (KEY,),
    "random.double_sided_maxwell": (KEY, 1.0, 1.5),
    "random.multivariate_normal": (KEY, Y, jnp.eye(3)), "random.gumbel": (KEY,), "random.cauchy": (KEY,),
    "scipy.ndimage.map_coordinates": (X, [jnp.array([-2.0, 0.3, 5.0])], 1), "scipy.special.logsumexp": (X,),
    "scipy.signal.sosfilt": (jnp.array([[1.0, 0.5, 0.0, 1.0, 0.2, 0.0]]), X), "scipy.integrate.trapezoid": (X,),
    "scipy.signal.bode": ((X, X), 1.5), "scipy.signal.freqresp": ((X, X), 1.5), "scipy.signal.lsim": ((X, X), X, Y),
    "scipy.signal.dbode": ((X, X, 0.5), 1.5), "scipy.signal.dfreqresp": ((X, X, 0.5), 1.5),
    "scipy.signal.dlsim": ((X, X, 0.5), X), "scipy.signal.impulse": ((X, X),), "scipy.signal.step": ((X, X),),
    "scipy.signal.dimpulse": ((X, X, 0.5),), "scipy.signal.dstep": ((X, X, 0.5),),
    "scipy.signal.cont2discrete": ((X, X), 0.5), "scipy.signal.group_delay": ((X, X), 1.5),
    "scipy.stats.binom.logcdf": (3.0, 5.0, 0.43), "scipy.stats.norm.pdf": (X,), "scipy.special.zeta": (2.5, 1.5),
    "experimental.ode.odeint": (lambda y, t, k: -k * y, Y, jnp.array([0.0, 1.0]), 1.5),
}  # fmt: skip
"""Calls in which parameters matter that have no part in those that are found: positions out of range, for fills."""


def number(result: Any) -> Any:
    """A sum of all elements of a result with weights of their own."""
    total = 0.0
    for i, x in enumerate(tree.leaves(result)):
        if isinstance(x, (Array, np.ndarray, float, complex)) and jnp.issubdtype(jnp.result_type(x), jnp.inexact):
            x = jnp.asarray(x)
            flat = jnp.ravel(jnp.real(x)) + 0.7 * jnp.ravel(jnp.imag(x))
            total = total + jnp.sum(flat * (1.0 + jnp.cos(1.0 + i + jnp.arange(flat.size))))
    return total


def _double(x: Any) -> Any:
    return x.astype(jnp.result_type(x, "float64")) if isinstance(x, Array) and x.dtype.kind in "fc" else x


def given(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """For each parameter the function of the number that it is given: as it is, or as a factor of an operand."""
    arguments = tree.map(_double, arguments)
    for i, x in enumerate(arguments):
        before, after = arguments[:i], arguments[i + 1 :]
        if isinstance(x, Array) and x.dtype.kind in "fc":
            yield str(i), lambda a, before=before, x=x, after=after: function(*before, x * a, *after)
        elif type(x) in (int, float):
            yield str(i), lambda a, before=before, after=after: function(*before, a, *after)
    parameters = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
    for i, p in enumerate(parameters):
        optional = p.default is not p.empty and p.kind is not p.POSITIONAL_ONLY
        if optional and i >= len(arguments) and type(p.default) is not bool:
            yield p.name, lambda a, name=p.name: function(*arguments, **{name: a})


def difference(f: Callable[[Any], Any], at: float, step: float) -> float:
    return float(f(jnp.float64(at + step)) - f(jnp.float64(at - step))) / (2 * step)


def expected_at(f: Callable[[Any], Any]) -> tuple[float, float] | None:
    """A point at which the call is valid, and the derivative there."""
    for at in POINTS:
        try:
            first = difference(f, at, 1e-5)
        except Exception:
            continue
        if math.isfinite(first):
            return at, first
    return None


def is_smooth(f: Callable[[Any], Any], at: float, derivative: float) -> bool:
    """Whether another step has the same difference, so that it is the derivative."""
    return abs(difference(f, at, 1e-4) - derivative) <= 1e-4 * (1 + abs(derivative))


def _checked(name: str, parameter: str, f: Callable[[Any], Any]) -> tuple[list[str], bool]:
    """What is wrong with the derivatives by a parameter, and whether eager ones are there and not zero."""
    expected = expected_at(f)
    if expected is None:
        return [], False
    at, derivative = expected
    number = zlib.crc32(f"{name} {parameter}".encode())
    eager = {"grad": lambda: grad(f)(at), "jvp": lambda: jvp(f, (at,), (1.0,))[1]}
    ways = {way: eager[way] for way in spread(list(eager), number, 1)}
    if EXHAUSTIVE or number % 24 == 0:
        ways |= {"jit of grad": lambda: jit(grad(f))(at), "grad of jit": lambda: grad(jit(f))(at)}
    wrong, right = [], set()
    for way, run in ways.items():
        try:
            found = float(run())
        except (PullbackError, TypeError, ValueError, NotImplementedError):
            continue  # refused
        if abs(found - derivative) <= 2e-4 * (1 + abs(derivative)):
            right.add(way)
        elif is_smooth(f, at, derivative):
            wrong.append(f"{name}, {parameter}, by {way} at {at}: {found}, by differences {derivative}")
    return wrong, right >= ways.keys() & eager.keys() and derivative != 0


COUNTS = {"numpy": 280, "lax": 145, "nn": 40, "scipy.special": 40, "random": 15}
"""At least so many parameters have an eager derivative that is not zero, and right."""


def functions_of(module: str) -> list[tuple[str, Callable[..., Any]]]:
    """The functions of a module; of a distribution, and of special functions, some, other ones for each."""
    found = list(public_functions(module))
    if module == "scipy.special":
        return spread(found, MODULES.index(module), len(found) // 3)
    return spread(found, MODULES.index(module), 3) if module.startswith("scipy.stats.") else found


@pytest.mark.parametrize("module", MODULES)
def test_a_parameter_has_its_derivative_or_none(module: str) -> None:
    wrong: list[str] = []
    count = 0
    with enable_x64():
        for name, function in functions_of(module):
            if name in EXEMPT or name.endswith(".stop_gradient"):
                continue
            try:
                arguments = CALLS.get(name) or valid_call(name, function)
                calls = list(given(function, arguments)) if arguments else []
            except ValueError:  # no signature
                continue
            for parameter, call in calls:
                if f"{name} {parameter}" in EXEMPT:
                    continue
                found, differentiable = _checked(name, parameter, lambda a, call=call: number(call(a)))
                wrong += found
                count += differentiable
    print(module, count)
    assert not wrong, "\n".join(wrong)
    assert count >= COUNTS.get(module, 0)


FILLS: dict[str, Callable[[Any, Any], Any]] = {
    "take": lambda x, a: jnp.take(x, FAR, mode="fill", fill_value=a),
    "take, one position": lambda x, a: jnp.take(x, 5, mode="fill", fill_value=a),
    "take_along_axis": lambda x, a: jnp.take_along_axis(x, FAR, 0, mode="fill", fill_value=a),
    "at.get": lambda x, a: x.at[FAR].get(mode="fill", fill_value=a),
    "at.get of rows": lambda x, a: jnp.stack([x, x]).at[FAR].get(mode="fill", fill_value=a),
    "lax.gather": lambda x, a: lax.gather(x, FAR[:, None], GATHER, (1,), mode="fill", fill_value=a),
    "operand too": lambda x, a: jnp.take(x * jnp.sum(a), FAR, mode="fill", fill_value=a * a),
}


@pytest.mark.parametrize("name", FILLS)
def test_a_fill_has_its_derivative(name: str) -> None:
    with enable_x64():
        f = lambda a: number(FILLS[name](_double(Y), a))
        expected = difference(f, 2.3, 1e-6)
        assert expected
        for found in (
            grad(f)(2.3), jit(grad(f))(2.3), grad(jit(f))(2.3), jvp(f, (2.3,), (1.0,))[1],
            vmap(grad(f))(jnp.array([2.3]))[0], taylor(f, 2.3, 1)[1],
        ):  # fmt: skip
            np.testing.assert_allclose(found, expected, rtol=1e-6)
        np.testing.assert_allclose(vmap(f)(jnp.array([2.3, 3.3])), [f(2.3), f(3.3)])
        with pytest.raises(ShapeError, match="fill_value must be a number"):
            grad(lambda a: f(a * X))(2.3)


def test_the_period_of_unwrap_has_its_derivative() -> None:
    f = lambda a: number(jnp.unwrap(jnp.array([0.0, 3.0, 6.0, 1.0, 9.0]) * a, period=2.5 * a, discont=1.3 * a))
    with enable_x64():
        for found in (grad(f)(2.3), jit(grad(f))(2.3), vmap(grad(f))(jnp.array([2.3]))[0]):
            np.testing.assert_allclose(found, difference(f, 2.3, 1e-6), rtol=1e-6)
        x = np.array([0.0, 3.0, -6.0, 1.0, 9.0, 4.0])
        for options in ({}, {"period": 2.5}, {"period": 4, "discont": 3.1}, {"discont": 5.0}):
            np.testing.assert_allclose(jnp.unwrap(x, **options), np.unwrap(x, **options), err_msg=str(options))
