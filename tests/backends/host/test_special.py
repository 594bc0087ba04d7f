"""Special functions by loops in C: accurate to the last digits, the same bits in blocks, the usual edges."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special

import pullback
import pullback.nn as nn
import pullback.numpy as jnp
import pullback.scipy.special as special
from pullback.backends.host import native, pending
from pullback.backends.host import special as loops
from pullback.core.array import ArrayImpl
from pullback.core.config import override
from pullback.primitives.special import bessel
from pullback.primitives.special.log_incomplete import normal_hazard
from tests.helpers import ROOT, small_blocks, value
from tests.project.targets import OPTIONS

pytestmark = [
    pytest.mark.skipif(native.loops is None, reason="the module in C is not installed"),
    pytest.mark.filterwarnings("ignore"),
]


def _sine(x: Any) -> tuple[Any, Any]:
    """Return ``sin(pi x)`` and ``cos(pi x)``, from the exact distance to the nearest integer."""
    distance = x - np.rint(x)
    return np.sin(np.pi * distance), np.cos(np.pi * distance)


def _digamma(x: Any) -> Any:
    sine, cosine = _sine(x)
    return np.where(x < 0, scipy.special.psi(1 - x) - np.pi * cosine / sine, scipy.special.psi(x))


def _trigamma(x: Any) -> Any:
    sine, _ = _sine(x)
    positive = scipy.special.zeta(2, np.where(x < 0, 1 - x, x))
    return np.where(x < 0, (np.pi / sine) ** 2 - positive, positive)


def _logistic(x: Any) -> Any:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


def _unscaled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a Bessel function without factor, of numbers at which it is a finite double."""
    return lambda x: function(np.clip(x, -500, 500))


FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "erf": (loops.erf, scipy.special.erf), "erfc": (loops.erfc, scipy.special.erfc),
    "ndtr": (loops.ndtr, scipy.special.ndtr), "gelu": (loops.gelu, lambda x: x * scipy.special.ndtr(x)),
    "lgamma": (loops.lgamma, scipy.special.gammaln),
    "digamma": (loops.digamma, _digamma), "trigamma": (loops.trigamma, _trigamma),
    "gaussian": (lambda x: loops.gaussian(x, factor=1.0), lambda x: np.exp(-x * x)),
    "half_gaussian": (lambda x: loops.gaussian(x, factor=0.5), lambda x: np.exp(-0.5 * x * x)),
    "logistic": (loops.logistic, _logistic),
    "logistic_slope": (loops.logistic_slope, lambda x: _logistic(x) * _logistic(-x)),
    "i0": (bessel.i0_p.host_rule, _unscaled(scipy.special.i0)),
    "i1": (bessel.i1_p.host_rule, _unscaled(scipy.special.i1)),
    "i0e": (loops.i0e, scipy.special.i0e), "i1e": (loops.i1e, scipy.special.i1e),
    "bessel_fall": (bessel.bessel_fall_p.host_rule, bessel._fall_host), "ndtri": (loops.ndtri, scipy.special.ndtri),
    "erfcx": (lambda x: native.applied("erfcx", x), scipy.special.erfcx),
    "normal_hazard": (
        lambda x: native.applied("normal_hazard", x),
        lambda x: np.where(
            x < 0, np.sqrt(2 / np.pi) / scipy.special.erfcx(-x * np.sqrt(0.5)),
            np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi) / scipy.special.ndtr(x),
        ),
    ),
    "log_ndtr": (
        lambda x: native.applied("log_ndtr", x),
        lambda x: np.where(x > 0, np.log1p(-scipy.special.ndtr(-x)), scipy.special.log_ndtr(x)),
    ),
}  # fmt: skip
ULPS = {
    "erf": 1.5, "erfc": 6.5, "ndtr": 6.5, "gelu": 7, "gaussian": 1.8, "half_gaussian": 1.5, "logistic": 2.5,
    "logistic_slope": 4.1,
}  # fmt: skip
"""The errors of the functions that are computed in single precision; others are rounded from double precision."""
POINTS = np.concatenate([
    np.linspace(-12, 12, 40_001), np.geomspace(1e-38, 1e38, 20_000), -np.geomspace(1e-38, 1e4, 20_000),
    np.linspace(0, 1, 5_000), np.geomspace(1e-45, 1e-38, 500), 1 - np.geomspace(1e-7, 1, 1_000),
    np.linspace(15, 120, 3_000), np.linspace(-120, -15, 3_000),
]).astype(np.float32)  # fmt: skip
EDGES = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 2.0, 1e-45, -1e-45, 3.4e38, -3.4e38, -1, -2], np.float32)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_loops_are_accurate_to_the_last_digits(name: str) -> None:
    function, of_doubles = FUNCTIONS[name]
    x = np.concatenate([POINTS, EDGES])
    exact = of_doubles(x.astype(np.float64))
    got, expected = function(x), exact.astype(np.float32)
    assert got.dtype == np.float32
    # At the poles of the gamma function the references differ, and so do signs of infinity at -inf.
    known = np.isfinite(expected) | np.isin(x, [0, np.inf]) | np.isnan(x)
    with np.errstate(all="ignore"):
        ulps = np.abs(got - exact) / np.spacing(np.maximum(np.abs(expected), np.float32(1e-38)))
    fine = (got == expected) | (np.isnan(got) & np.isnan(expected)) | (ulps < ULPS.get(name, 0.6))
    # Next to a zero the double's last digits are not all right.
    fine |= (name in ("digamma", "lgamma")) & (np.abs(exact) < 1e-3) & (np.abs(got - exact) < 1e-10)
    assert fine[known].all(), (x[known & ~fine], got[known & ~fine], exact[known & ~fine])


def test_incomplete_gamma_functions_are_rounded_from_double_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    sizes = np.concatenate([rng.uniform(0, 60, 20_000), 10 ** rng.uniform(-30, 2, 20_000), rng.uniform(0, 3, 20_000)])
    a, x = sizes.astype(np.float32), rng.permutation(sizes).astype(np.float32)
    exact = scipy.special.gammainc(a.astype(np.float64), x.astype(np.float64))
    got, theirs = loops.gammainc(a, x), scipy.special.gammainc(a, x)
    spacing = np.spacing(np.maximum(np.float32(exact), np.float32(1e-38)))
    ours, usual = (np.abs(v - exact) / spacing for v in (got, theirs))
    assert ours.max() < 0.51, (a[ours.argmax()], x[ours.argmax()], ours.max())
    assert ours.max() <= usual.max() + 0.001
    monkeypatch.setattr(loops, "_SHARE", 1)
    for part in (slice(7, 5000), slice(1, None, 3)):  # wherever an element is
        np.testing.assert_array_equal(loops.gammainc(a[part], x[part]), got[part])


def test_incomplete_gamma_functions_at_edges() -> None:
    edges = np.array([0, -0.0, 1e-45, 1e-38, 1e-3, 1, 49.9, 50, 50.1, 1e4, 3e38, np.inf, -1, np.nan], np.float32)
    a, x = (v.ravel() for v in np.meshgrid(edges, edges))
    many = loops.gammainc(np.tile(a, 20), np.tile(x, 20))
    np.testing.assert_allclose(many, np.tile(scipy.special.gammainc(a, x), 20), 3e-7)
    for one in (np.float32(2), 2, np.asarray(2, np.float32)):
        y = np.linspace(0, 70, 5000, dtype=np.float32)
        np.testing.assert_allclose(loops.gammainc(one, y), scipy.special.gammainc(2, y), 3e-7)
        np.testing.assert_allclose(loops.gammainc(y, one), scipy.special.gammainc(y, 2), 3e-7, 1e-44)


def test_zeta_functions_are_rounded_from_double_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    s = np.concatenate([rng.uniform(1, 30, 20_000), 1 + 10 ** rng.uniform(-6, 3, 20_000)]).astype(np.float32)
    q = np.concatenate([rng.uniform(0, 12, 20_000), 10 ** rng.uniform(-38, 35, 20_000)]).astype(np.float32)
    exact = scipy.special.zeta(s.astype(np.float64), q.astype(np.float64))
    got, known = loops.zeta(s, q), exact.astype(np.float32)
    fine = np.isfinite(known)
    np.testing.assert_array_equal(got[~fine], known[~fine])
    ulps = np.abs(got - exact)[fine] / np.spacing(np.maximum(known[fine], np.float32(1e-38)))
    assert ulps.max() < 0.52, (s[fine][ulps.argmax()], q[fine][ulps.argmax()], ulps.max())
    monkeypatch.setattr(loops, "_SHARE", 1)
    for part in (slice(7, 5000), slice(1, None, 3)):  # wherever an element is
        np.testing.assert_array_equal(loops.zeta(s[part], q[part]), got[part])


def test_zeta_functions_at_edges() -> None:
    edges = np.array([
        0, -0.0, 1e-45, 1e-38, 0.5, 1, 1.0000001, 2, 2.5, 3, 400, 401, 1e4, 1e30, 3e38, np.inf, -0.5, -1, -2.5, -np.inf,
        np.nan,
    ], np.float32)  # fmt: skip
    s, q = (v.ravel() for v in np.meshgrid(edges, edges))
    fine = ~((q < 0) & (s > 1e3)) & ~np.isneginf(q)  # where SciPy's sum does not end
    s, q = s[fine], q[fine]
    np.testing.assert_allclose(loops.zeta(np.tile(s, 20), np.tile(q, 20)), np.tile(scipy.special.zeta(s, q), 20), 3e-7)
    y = np.linspace(0.1, 70, 5000, dtype=np.float32)
    for one in (np.float32(2), 2, np.asarray(2, np.float32)):
        np.testing.assert_allclose(loops.zeta(one, y), scipy.special.zeta(2, y), 3e-7)
        np.testing.assert_allclose(loops.zeta(y + 1, one), scipy.special.zeta(y + 1, 2), 3e-7, 1e-44)
    assert loops.zeta(y.astype(np.float64), 2.0).dtype == np.float64


@pytest.mark.parametrize("name", FUNCTIONS)
def test_edges_are_those_of_few_numbers(name: str) -> None:
    few = {"erfcx": special.erfcx, "log_ndtr": special.log_ndtr, "normal_hazard": normal_hazard}.get(name)
    if few is not None:
        expected = np.asarray(few(jnp.asarray(EDGES)))
    else:
        expected = FUNCTIONS[name][0](EDGES)
    got = native.applied(name, EDGES)
    # Half of the least number may be rounded up or down.
    np.testing.assert_allclose(got, expected, 2e-7, 1.5e-45 if name in ("i1", "i1e") else 0)
    np.testing.assert_array_equal(np.signbit(got[got == got]), np.signbit(expected[got == got]))


@pytest.mark.parametrize("size", [1, 63, 64, 65, 4099])
@pytest.mark.parametrize("name", ["erfc", "logistic", "lgamma", "digamma", "trigamma", "log_ndtr"])
def test_an_element_has_the_same_bits_wherever_it_is(name: str, size: int) -> None:
    x = np.random.default_rng(0).normal(0, 3, 10_000).astype(np.float32)
    everywhere = native.applied(name, x)
    assert native.applied(name, x[5 : 5 + size]).tobytes() == everywhere[5 : 5 + size].tobytes()
    assert native.applied(name, x[::2]).tobytes() == everywhere[::2].tobytes()
    assert native.applied(name, np.abs(x)).tobytes() == np.where(x < 0, native.applied(name, -x), everywhere).tobytes()


PUBLIC: dict[str, Callable[..., Any]] = {
    "erf": special.erf, "erfc": special.erfc, "ndtr": special.ndtr, "log_ndtr": special.log_ndtr,
    "erfcx": special.erfcx, "gammaln": special.gammaln, "digamma": special.digamma,
    "expit": special.expit, "i0": special.i0, "i1": special.i1, "i0e": special.i0e, "i1e": special.i1e,
    "ndtri": special.ndtri, "gelu": lambda x: nn.gelu(x, approximate=False),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLIC)
@pytest.mark.parametrize("by_numpy", [False, True])
def test_pending_elements_have_the_bits_of_those_computed_at_once(name: str, by_numpy: bool) -> None:
    x = jnp.asarray(np.concatenate([EDGES, POINTS[::997]]))
    with small_blocks(by_numpy=by_numpy):
        with override("eager_fusion", False):
            expected = np.asarray(PUBLIC[name](x))
        held = pending.hold(ArrayImpl(value(x)))
        out = PUBLIC[name](held)
        assert by_numpy or out._host_value.pending.known is None
        got = np.asarray(out)
    assert got.tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", PUBLIC)
def test_derivatives_of_many_numbers_are_those_of_few(name: str) -> None:
    x = jnp.asarray(np.linspace(-4, 5, 301, dtype=np.float32) + np.float32(0.01))
    slope = lambda x: pullback.vjp(PUBLIC[name], x)[1](jnp.ones_like(x))[0]
    few = np.asarray(slope(x))
    with small_blocks():
        many = np.asarray(slope(pending.hold(ArrayImpl(value(x)))))
    np.testing.assert_allclose(many, few, 3e-6, 1e-7 * np.abs(few[np.isfinite(few)]).max())


def test_compiled_logarithms_of_probabilities_keep_nan() -> None:
    x = np.array([np.nan, 0.5, -30], np.float32)
    expected = scipy.special.log_ndtr(x.astype(np.float64))
    np.testing.assert_allclose(pullback.jit(special.log_ndtr)(x), expected, 1e-6)
    np.testing.assert_allclose(pullback.jit(special.log_ndtr)(x.astype(np.float16)), expected, 2e-3)


@pytest.mark.parametrize("wrap", [lambda f: f, pullback.jit])
def test_derivatives_of_the_hazard_of_the_normal_distribution(wrap: Callable[..., Any]) -> None:
    """The second derivative of log_ndtr, -h (x + h), whose terms cancel at negative numbers."""
    x = np.array([-30.0, -3.0, -0.5, 0.0, 0.5, 3.0], np.float32)
    slope = lambda x: pullback.vjp(normal_hazard, x)[1](jnp.ones_like(x))[0]
    third = lambda x: pullback.vjp(slope, x)[1](jnp.ones_like(x))[0]
    wide = x.astype(np.float64)
    h = FUNCTIONS["normal_hazard"][1](wide)
    first = -h * (wide + h)
    second = -first * (wide + h) - h * (1 + first)
    np.testing.assert_allclose(wrap(slope)(jnp.asarray(x)), first, 2e-6)
    np.testing.assert_allclose(wrap(third)(jnp.asarray(x)), second, 2e-5, 1e-8)


def test_many_doubles_are_left_to_other_rules() -> None:
    x = np.linspace(0.1, 4, 5000)
    np.testing.assert_allclose(loops.digamma(x), scipy.special.psi(x), 1e-14)
    np.testing.assert_allclose(loops.digamma.of_many(x), scipy.special.psi(x), 1e-14)
    assert loops.erf(np.float32(0.5)).dtype == np.float32


def test_trigamma_is_the_derivative_of_digamma() -> None:
    x = jnp.asarray(np.array([0.3, 1.7, 5.0, -0.4, -3.3]), np.float32)
    slope = lambda x: pullback.vjp(special.digamma, x)[1](jnp.ones_like(x))[0]
    np.testing.assert_allclose(slope(x), _trigamma(np.asarray(x, np.float64)), 1e-6)
    np.testing.assert_allclose(pullback.jit(slope)(x), slope(x), 2e-6)
    third = pullback.grad(pullback.grad(special.digamma))(np.float32(1.7))
    np.testing.assert_allclose(third, scipy.special.polygamma(2, 1.7), 1e-5)


@pytest.mark.slow
@pytest.mark.skipif(
    platform.machine() != "x86_64" or shutil.which("gcc") is None, reason="gcc compiles for this machine"
)
def test_bits_do_not_depend_on_the_processors_instructions(tmp_path: Path) -> None:
    """The module for the oldest processors, and for this one with all that it has, compute the same bits."""
    program = f"""
import hashlib, importlib.util, sys, numpy as np
spec = importlib.util.spec_from_file_location("pullback.backends.host.loops", sys.argv[1])
loops = importlib.util.module_from_spec(spec)
spec.loader.exec_module(loops)
x = np.random.default_rng(0).normal(0, 4, (64, 1021)).astype(np.float32)
for name in {[*ONE_OPERAND]}:
    out = np.empty_like(x)
    loops.run(x.shape, [x, out], [(loops.own(name + " f"), (0, 1))], 1 << 13, 0)
    print(name, hashlib.sha256(out).hexdigest())
"""
    found = []
    for processor in ("x86-64", "native"):
        library = tmp_path / f"{processor}.so"
        folders = [f"-I{sysconfig.get_paths()['include']}", f"-I{np.get_include()}"]
        options = [*OPTIONS, "-w", "-shared", "-fPIC", "-pthread"]
        # Without versions of a loop for several processors, but for one.
        command = ["gcc", *options, "-Dtarget_clones(...)=", f"-march={processor}", *folders]
        subprocess.run([*command, str(ROOT / "src/pullback/backends/host/loops.c"), "-o", str(library)], check=True)
        done = subprocess.run([sys.executable, "-c", program, str(library)], capture_output=True, check=True)
        found.append(done.stdout.splitlines())
    assert "-ffp-contract=off" in (ROOT / "setup.py").read_text(encoding="utf-8")
    assert len(found[0]) == len(ONE_OPERAND)
    assert found[0] == found[1]


ONE_OPERAND = (
    "exp", "expm1", "log", "log1p", "sinh", "cosh", "tan", "arcsin", "arccos", "arctan", "arcsinh", "arccosh",
    "arctanh", "cbrt", "erf", "erfc", "ndtr", "gelu", "gaussian", "half_gaussian", "logistic", "logistic_slope",
    "erfcx", "log_ndtr", "normal_hazard", "lgamma", "digamma", "trigamma", "softmax", "log_softmax",
    "i0", "i1", "i0e", "i1e", "bessel_fall", "ndtri",
)  # fmt: skip
