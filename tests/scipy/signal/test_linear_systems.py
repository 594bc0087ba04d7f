"""Linear systems beside SciPy's: conversions, objects, simulations, responses and feedback, with derivatives."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.signal

import pullback.numpy as jnp
from pullback import errors, grad, jit, jvp, tree
from pullback.core.config import enable_x64
from pullback.scipy import signal
from pullback.test_util import check_grads
from tests.scipy.signal.comparisons import close, derivatives

pytestmark = pytest.mark.usefixtures("x64")
A = np.array([[0.0, 1.0, 0.0], [-2.0, -0.5, 0.3], [0.1, 0.0, -1.5]])
B = np.array([[0.0, 0.5], [1.0, 0.0], [0.2, -0.4]])
C = np.array([[1.0, 0.0, 0.5], [0.3, -1.0, 0.0]])
D = np.array([[0.1, 0.0], [0.0, 0.7]])
ONE = (A, B[:, :1], C[:1], D[:1, :1])
TF = ([1.0, 3.0], [2.0, 2.4, 4.0])
ZPK = ([-3.0], [-1.0 + 2j, -1.0 - 2j], 0.5)
STEP = 0.1
T = np.linspace(0, 3, 6)
U = np.stack([np.sin(T), np.cos(2 * T)], 1)
W = np.array([0.1, 0.7, 2.0])


def theirs(call: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(scipy.signal)


def test_conversions_are_those_of_scipy() -> None:
    for call in (
        lambda m: m.tf2ss(*TF),
        lambda m: m.tf2ss([[1.0, 2.0], [3.0, 4.0]], [2.0, 1.0, 5.0]),
        lambda m: m.tf2ss([2], 4),
        lambda m: m.tf2ss([0.0, 0.0, 1.0], [1.0, 2.0]),
        lambda m: m.ss2tf(A, B, C, D),
        lambda m: m.ss2tf(A, B, C, D, 1),
        lambda m: m.ss2tf(-2.0, 1.0, 1.0, 1.0),
        lambda m: m.zpk2ss(*ZPK),
        lambda m: m.ss2zpk(*ONE),
        lambda m: m.ss2zpk(A, B[:, :1], C[:1], [[0.0]]),
        lambda m: m.normalize([0.0, 0.0, 2.0, 1.0], [0.0, 4.0, 2.0]),
        lambda m: m.normalize([[0.0, 1.0], [0, 2]], [2.0]),
        lambda m: m.abcd_normalize(A, B, C),
        lambda m: m.abcd_normalize(None, B, C),
        lambda m: m.abcd_normalize(D=2, C=3),
    ):
        close(call(signal), theirs(call))
    for method, system in itertools.product(
        ("zoh", "foh", "impulse", "bilinear", "tustin", "euler", "forward_diff", "backward_diff"),
        ((A, B, C, 0 * D), TF[:1] + ([1.0, 2.0, 3.0, 4.0],), ZPK),
    ):
        call = lambda m: m.cont2discrete(system, STEP, method)  # noqa: B023
        close(call(signal)[:-1], theirs(call)[:-1], 1e-9)
    close(signal.cont2discrete(ONE, 0.1, "gbt", 0.3)[:-1], scipy.signal.cont2discrete(ONE, 0.1, "gbt", 0.3)[:-1])
    with enable_x64(False):
        assert signal.ss2tf(*ONE)[0].dtype == np.float32
        assert signal.ss2zpk(A, B[:, :1], C[:1], [[0.0]])[0].shape == (2,)  # rounding makes no third zero


def test_derivatives_of_conversions() -> None:
    derivatives(signal.tf2ss, *TF, compiled=True)
    derivatives(signal.normalize, *TF)
    derivatives(signal.ss2tf, *ONE, compiled=True)
    derivatives(signal.ss2tf, np.diag([2.0, 2.0]), *(x[..., :2, :] for x in (B[:, :1],)), C[:, :2], D[:, :1])
    derivatives(lambda *x: [abs(v).sum() for v in signal.ss2zpk(*x)], *ONE)
    derivatives(lambda p, k: signal.zpk2ss([-3.0], p, k), [-1.0, -2.5], 0.5)
    for method in ("zoh", "foh", "bilinear", "euler"):
        derivatives(lambda a, b, d, dt: signal.cont2discrete((a, b, C, d), dt, method)[:-1], A, B, D, STEP)  # noqa: B023
    derivatives(
        lambda a, dt, alpha: signal.cont2discrete((a, B, C, D), dt, "gbt", alpha)[:-1], A, STEP, 0.4, compiled=True
    )
    derivatives(lambda num, dt: signal.cont2discrete((num, TF[1]), dt)[:-1], TF[0], STEP)


def test_objects_are_those_of_scipy() -> None:
    for parts, (kind, dt) in itertools.product((TF, ZPK, ONE), (("lti", {}), ("dlti", {"dt": 0.1}), ("dlti", {}))):
        ours, other = (getattr(m, kind)(*parts, **dt) for m in (signal, scipy.signal))
        assert ours.dt == other.dt
        assert isinstance(ours, getattr(signal, kind))
        for what in ("zeros", "poles"):
            close(np.sort_complex(getattr(ours, what)), np.sort_complex(getattr(other, what)), 1e-9)
        for form, fields in (("tf", "num den"), ("zpk", "gain"), ("ss", "A B C D")):
            for field in fields.split():
                close(getattr(getattr(ours, f"to_{form}")(), field), getattr(getattr(other, f"to_{form}")(), field))
        leaves, structure = tree.flatten(ours)
        assert type(tree.unflatten(structure, leaves)) is type(ours)
        assert repr(ours).startswith("_")
    several, others = (m.StateSpace(A, B, C, D) for m in (signal, scipy.signal))
    assert (several.inputs, several.outputs) == (2, 2)
    for call in (
        lambda s: s * s,
        lambda s: s + s,
        lambda s: s - s,
        lambda s: -s,
        lambda s: 2.0 * s,
        lambda s: s * 3,
        lambda s: s / 4,
        lambda s: s + D,
        lambda s: D - s,
        lambda s: s * D,
        lambda s: D * s if s is others else s.__rmul__(D),
    ):
        found, expected = call(several), call(others)
        close([found.A, found.B, found.C, found.D], [expected.A, expected.B, expected.C, expected.D])
    assert signal.TransferFunction(signal.StateSpace(*ONE)).den.shape == (4,)
    assert isinstance(signal.TransferFunction([1.0], [1.0, 2.0], dt=0.5), signal.dlti)
    assert isinstance(signal.StateSpace(*ONE).to_zpk(), signal.ZerosPolesGain)
    discrete = signal.lti(*ONE).to_discrete(0.1)
    close(discrete.A, scipy.signal.lti(*ONE).to_discrete(0.1).A)
    assert discrete.dt == 0.1
    assert jit(lambda s: s)(discrete).B.shape == (3, 1)


def test_simulations_in_continuous_time_are_those_of_scipy() -> None:
    x0 = [0.3, -0.2, 0.5]
    for call in (
        lambda m: m.lsim((A, B, C, D), U, T),
        lambda m: m.lsim((A, B, C, D), U, T, x0, False),
        lambda m: m.lsim((A, B, C, D), U, T + 0.4, x0),
        lambda m: m.lsim(ONE, None, T, x0),
        lambda m: m.lsim(ONE, 0, T, x0),
        lambda m: m.lsim(TF, U[:, 0], T),
        lambda m: m.lsim(ZPK, U[:, 0], T),
        lambda m: m.lsim(ONE, [0.7], [0.3], x0),
        lambda m: m.impulse(TF),
        lambda m: m.impulse(ONE, T=T),
        lambda m: m.impulse(ONE, 0.5, T),
        lambda m: m.step(TF, N=20),
        lambda m: m.step(ONE, x0, T),
        lambda m: m.step((1.0, [1.0, 0.0])),
        lambda m: m.lti(*TF).step(),
        lambda m: m.lti(*TF).impulse(N=7),
        lambda m: m.lti(*ONE).output(U[:, 0], T, x0),
    ):
        close(call(signal), call(scipy.signal), 1e-9)
    with enable_x64(False):
        y = signal.lsim((A, B, C, D), U, np.linspace(0, 70, 1001)[: len(U)])[1]
        assert y.dtype == np.float32
        assert signal.step(TF, N=1000)[1].shape == (1000,)


def test_derivatives_of_simulations() -> None:
    x0 = [0.3, -0.2, 0.5]
    derivatives(lambda a, b, c, d, u, s, x: signal.lsim((a, b, c, d), u, s * T, x)[1:], A, B, C, D, U, 1.1, x0)
    late = lambda s: signal.lsim(ONE, None, T + s, x0)[1]
    close(jvp(late, (0.0,), (1.0,))[1], (late(1e-6) - late(0.0)) / 1e-6, 1e-5)
    derivatives(lambda a, b, u: signal.lsim((a, b, C, D), u, T + 0.1, interp=False)[1], A, B, U)
    derivatives(lambda num, den: signal.impulse((num, den), T=T), *TF, compiled=True)
    derivatives(lambda num, den: signal.impulse((num, den), N=9), *TF)
    derivatives(lambda a, d: signal.step((a, B[:, :1], C, d), T=T)[1], A, D[:, :1])
    loss = lambda system: jnp.sum(signal.step(system, T=T)[1] ** 2)
    system = signal.lti(*TF)
    close(jit(grad(loss))(system).den, grad(loss)(system).den)


def test_simulations_in_discrete_time_are_those_of_scipy() -> None:
    t = np.arange(5) * 0.25
    for call in (
        lambda m: m.dlsim((0.3 * A, B, C, D, 0.1), U),
        lambda m: m.dlsim((0.3 * A, B, C, D, 0.1), U[:5], t, [1.0, 2.0, 3.0]),
        lambda m: m.dlsim((*TF, 0.1), U[:, 0]),
        lambda m: m.dlsim(m.StateSpace(0.3 * A, B, C, D, dt=0.1), U),
        lambda m: m.dlti(*TF, dt=0.2).output(U[:5, 0], t),
    ):
        close(call(signal), call(scipy.signal))
    for call in (
        lambda m: m.dimpulse((0.3 * A, B, C, D, 0.25), n=8),
        lambda m: m.dstep((0.3 * A, B, C, D, 0.25), [1.0, 0.0, 2.0], n=8),
        lambda m: m.dstep((*TF, 0.25), t=t),
        lambda m: m.dlti(*TF).impulse(n=4),
        lambda m: m.dlti(*TF).step(),
    ):
        found, expected = call(signal), call(scipy.signal)
        close([found[0], *found[1]], [expected[0], *expected[1]])
    # Rounding of 99 * 0.3 / 0.3 loses no step.
    assert signal.dstep((*TF, 0.3))[0].shape == (100,)
    derivatives(lambda a, b, c, d, u: signal.dlsim((a, b, c, d, 0.1), u)[1], 0.3 * A, B, C, D, U, compiled=True)
    derivatives(lambda u, dt: signal.dlsim((*TF, dt), u), U[:, 0], 0.1)
    check_grads(lambda t, u: signal.dlsim((*TF, 0.3), u, t)[1], (jnp.asarray(t), jnp.asarray(U[:5, 0])), 1, eps=1e-6)


def test_responses_are_those_of_scipy() -> None:
    for system, call in itertools.product(
        (TF, ZPK, ONE),
        (
            lambda m, system: m.freqresp(system, W),
            lambda m, system: m.bode(system, W),
            lambda m, system: m.bode(system, n=7),
            lambda m, system: m.freqresp(system, n=7),
            lambda m, system: m.dfreqresp((*system, 0.1), W),
            lambda m, system: m.dbode((*system, 0.1), W),
            lambda m, system: m.dfreqresp((*system, 0.1), n=8, whole=True),
            lambda m, system: m.dbode((*system, 0.1), n=5),
            lambda m, system: m.lti(*system).freqresp(W),
            lambda m, system: m.lti(*system).bode(W),
            lambda m, system: m.dlti(*system).freqresp(W),
            lambda m, system: m.dlti(*system).bode(W),
        ),
    ):
        close(call(signal, system), call(scipy.signal, system), 1e-9)
    derivatives(lambda num, den, w: signal.bode((num, den), w), *TF, W)
    derivatives(lambda a, b, c, d, w: signal.bode((a, b, c, d), w), *ONE, W, compiled=True)
    derivatives(lambda a, w, dt: signal.dbode((a, *ONE[1:], dt), w), A, W, 0.1)
    double = np.array([[-1.0, 0.0], [0.0, -1.0]])  # equal eigenvalues
    derivatives(lambda a: signal.freqresp((a, B[:2, :1], C[:1, :2], [[0.0]]), W)[1], double)


def test_feedback() -> None:
    for options in ({}, {"method": "KNV0"}):
        found, expected = (m.place_poles(A, B, [-1.0, -2.0, -3.0], **options) for m in (signal, scipy.signal))
        for field in ("gain_matrix", "computed_poles", "requested_poles", "X", "rtol", "nb_iter"):
            close(getattr(found, field), getattr(expected, field))
    wanted = np.array([-1.0, -2.0 + 1j, -2.0 - 1j])
    one = scipy.signal.place_poles(A, B[:, :1], wanted)
    close(jit(signal.place_poles)(A, B[:, :1], wanted).gain_matrix, one.gain_matrix, 1e-9)
    close(np.sort_complex(jit(signal.place_poles)(A, B[:, :1], wanted).computed_poles), np.sort_complex(wanted), 1e-9)
    derivatives(lambda *x: signal.place_poles(*x).gain_matrix, A, B[:, :1], [-1.0, -2.0, -3.0], compiled=True)
    real = lambda *x: [jnp.abs(v) for v in signal.place_poles(*x)[:4]]
    derivatives(real, A, B[:, :1], [-3.0, -1.0, -2.0])


def test_what_makes_no_sense_is_refused() -> None:
    for call, text in (
        (lambda: signal.tf2ss([1.0, 2.0, 3.0], [1.0, 2.0]), "tf2ss: the numerator must not be longer"),
        (lambda: signal.tf2ss([1.0], [0.0, 0.0]), "tf2ss: the denominator must have a coefficient that is not zero"),
        (lambda: signal.ss2tf(A, B, C, D, 2), "ss2tf: input must be from 0 to 1, got 2"),
        (lambda: signal.ss2zpk(A, B, C, D), "ss2zpk takes a system of one output, got 2"),
        (
            lambda: signal.ss2tf(A, B, C.T, D),
            r"ss2tf: A, B, C and D must have shapes \(3, 3\), \(3, 2\), \(3, 3\), \(3, 2\)",
        ),
        (lambda: signal.abcd_normalize(A), "abcd_normalize: the number of inputs is unknown; pass B or D"),
        (lambda: signal.cont2discrete(ONE, 0.1, "none"), "cont2discrete: method must be one of 'gbt', 'bilinear'"),
        (lambda: signal.cont2discrete(ONE, 0.1, "gbt"), "the method 'gbt' needs alpha"),
        (lambda: signal.cont2discrete(ONE, 0.1, "gbt", 2.0), "alpha must be between 0 and 1, got 2.0"),
        (lambda: signal.cont2discrete(ONE, 0.1, "impulse"), "for the method 'impulse' D must be zero"),
        (lambda: signal.cont2discrete(3.0, 0.1), "cont2discrete: system must be a system, or a tuple"),
        (lambda: signal.lti(1.0), "lti takes 2 polynomials, zeros, poles and gain, or 4 matrices; got 1 arguments"),
        (lambda: signal.StateSpace(1.0), "StateSpace takes 4 arguments or a system, got 1"),
        (lambda: signal.dlti(*TF, dt=-1.0), "dlti: dt must be a positive number, or True"),
        (
            lambda: signal.lti(*ONE) * signal.dlti(*ONE),
            "both systems must have the same time step, got dt None and True",
        ),
        (lambda: signal.StateSpace(*ONE) + B, r"StateSpace \+: a matrix must have the shape \(1, 1\) of D"),
        (lambda: signal.StateSpace(*ONE) / D, r"a system can be divided by a number, got shape \(2, 2\)"),
        (
            lambda: signal.lsim(signal.dlti(*TF), 0, T),
            "lsim takes a system in continuous time, got one in discrete time",
        ),
        (lambda: signal.lsim(TF, U, T), r"the inputs U must have shape \(6, 1\), \(times, inputs\), got \(6, 2\)"),
        (lambda: signal.lsim(TF, None, T**2), "lsim: the times T must be at equal distances"),
        (lambda: signal.lsim(TF, None, T - 1), "the first of the times T must not be negative, got -1.0"),
        (lambda: signal.lsim(TF, None, T, [1.0, 2.0, 3.0]), "the initial state X0 must have 2 elements, got 3"),
        (lambda: signal.impulse((A, B, C, D)), "impulse takes a system of one input, got 2"),
        (
            lambda: signal.dlsim((*TF, 0.1), U[:, 0], T[:3]),
            "dlsim: the times t must be a vector of one element for each",
        ),
        (
            lambda: jit(lambda t: signal.dlsim((*TF, 0.1), U[:, 0], t))(T),
            "the number of time steps depends on the last",
        ),
        (lambda: signal.bode((A, B, C, D), W), "bode takes a system of one input and one output, got 2 and 2"),
        (
            lambda: jit(lambda a: signal.freqresp((a, *ONE[1:])))(A),
            "frequencies are chosen by the poles, which are traced",
        ),
        (
            lambda: signal.place_poles(A, B, [1.0]),
            r"A, B and poles must have shapes \(n, n\), \(n, inputs\) and \(n,\)",
        ),
        (lambda: signal.place_poles(A, B, [1.0, 2.0, 3.0], "none"), "method must be 'YT' or 'KNV0', got 'none'"),
        (
            lambda: jit(signal.place_poles)(A, B, np.arange(3.0)),
            "place_poles: a system of 2 inputs is placed by iterations",
        ),
    ):
        with pytest.raises(errors.PullbackError, match=text):
            call()
