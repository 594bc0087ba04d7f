"""Rows of ``scipy.signal``: designs of filters, responses, and linear systems."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.science.rows import Part, Row
from benchmarks.science.signals import DENOMINATOR, SECTIONS, Call, drawn, given, row, sections

LARGE = 10_000
B, A = [0.2, 0.3, 0.1], DENOMINATOR
Z, P, K = [-0.5, 0.3], [-1.0, -2.0, -3.5], 1.5
POLES, NONE = np.array([0.5, -0.2]), np.zeros(0)
HALVES = SECTIONS[:, :3], SECTIONS[:, 4:]
INSIDE = [0.5, -0.3, 0.7]
W = np.linspace(0.1, 2.5, LARGE)
STATES = (
    np.array([[-0.6, 0.3, 0.0], [-0.2, -0.9, 0.4], [0.1, 0.0, -0.4]]), np.array([[1.0], [0.5], [0.2]]),
    np.array([[1.0, 0.3, -0.4]]), np.array([[0.3]]),
)  # fmt: skip
TIMES, MANY = np.linspace(0.0, 4.0, 9), np.linspace(0.0, 40.0, LARGE)


def design(name: str, call: Call, *numbers: Any, **more: Any) -> Row:
    """Return a row of a function of a few numbers; its results are joined for the checks."""
    return row(name, call, given(*numbers), apart=True, **more)


def response(name: str, call: Call, *numbers: Any) -> Row:
    """Return a row of a response at frequencies: five for the checks, 10,000 for the times."""
    return row(
        name, lambda m, w, *xs: call(m, w, *xs)[1], given(W[::2300], *numbers), given(W, *numbers), apart=True
    )  # fmt: skip


def simulation(name: str, call: Call, *numbers: Any, drive: bool = False) -> Row:
    """Return a row of a simulation: of 9 times for the checks, of 10,000 for the times."""
    small, large = (drawn(len(t)) if drive else list for t in (TIMES, MANY))
    return row(
        name, lambda m, *xs: call(m, *xs), lambda: [*small(), *given(*numbers)()],
        lambda: [*large(), *given(*numbers)()], apart=True,
    )  # fmt: skip


def at_times(x: Any) -> Any:
    """Return the times of as many inputs as ``x`` has."""
    return TIMES if x.shape[0] == len(TIMES) else MANY


DESIGNS = Part(
    "Designs of filters",
    "`scipy.signal`: filters of the orders 2 to 4, and of 11 coefficients, by frequencies, ripples and weights.",
    (
        design("butter", lambda m, w: m.butter(4, w), 0.3),
        design("bessel", lambda m, w: m.bessel(4, w), 0.3),
        design("cheby1", lambda m, r, w: m.cheby1(4, r, w), 1.0, 0.3),
        design("cheby2", lambda m, r, w: m.cheby2(4, r, w), 30.0, 0.3),
        design("ellip", lambda m, r, s, w: m.ellip(4, r, s, w), 1.0, 30.0, 0.3),
        design("iirfilter", lambda m, w: m.iirfilter(3, w, btype="bandpass"), [0.2, 0.5]),
        design("iirnotch", lambda m, w, q: m.iirnotch(w, q), 0.3, 5.0),
        design("iirpeak", lambda m, w, q: m.iirpeak(w, q), 0.3, 5.0),
        design("iircomb", lambda m, q: m.iircomb(0.25, q), 5.0),
        design("gammatone", lambda m, w: m.gammatone(w, "iir"), 0.3),
        design("band_stop_obj", lambda m, w, p, s: m.band_stop_obj(w, 1, p, s, 3.0, 30.0, "ellip"), 4.9, [1.0, 5.0],
               [2.0, 3.0]),
        design("firwin", lambda m, w: m.firwin(11, w), [0.2, 0.5]),
        design("firwin2", lambda m, f, g: m.firwin2(11, edges(m, f), g), [0.3, 0.6],
               [1.0, 1.0, 0.2, 0.1]),
        design("firwin_2d", lambda m, w: m.firwin_2d((5, 5), ("hamming", "hann"), fc=w), 0.4),
        design("firls", lambda m, b, g, w: m.firls(11, b, g, weight=w), [0.05, 0.3, 0.5, 0.9], [1.0, 1.0, 0.1, 0.1],
               [1.0, 2.0]),
        design("remez", lambda m, b, g, w: m.remez(11, b, g, weight=w), [0.03, 0.16, 0.27, 0.44], [1.0, 0.2],
               [1.0, 3.0]),
        design("minimum_phase", lambda m, h: m.minimum_phase(h, n_fft=64), [0.1, 0.4, 1.3, 0.4, 0.1],
               anchor_error=1e-8),
        design("kaiser_beta", lambda m, a: m.kaiser_beta(a), 40.0),
        design("kaiser_atten", lambda m, w: m.kaiser_atten(21, w), 0.1),
        design("cheb1ap", lambda m, r: m.cheb1ap(4, r), 1.0),
        design("cheb2ap", lambda m, r: m.cheb2ap(4, r), 30.0),
        design("ellipap", lambda m, r, s: m.ellipap(4, r, s), 1.0, 30.0),
        design("lp2lp", lambda m, b, a, w: m.lp2lp(b, a, w), B[:2], A, 3.0),
        design("lp2hp", lambda m, b, a, w: m.lp2hp(b, a, w), B[:2], A, 3.0),
        design("lp2bp", lambda m, b, a, w, v: m.lp2bp(b, a, w, v), B[:2], A, 3.0, 0.7),
        design("lp2bs", lambda m, b, a, w, v: m.lp2bs(b, a, w, v), B[:2], A, 3.0, 0.7),
        design("lp2lp_zpk", lambda m, z, p, k, w: m.lp2lp_zpk(z, p, k, w), Z, P, K, 3.0),
        design("lp2hp_zpk", lambda m, z, p, k, w: m.lp2hp_zpk(z, p, k, w), Z, P, K, 3.0),
        design("lp2bp_zpk", lambda m, z, p, k, w: m.lp2bp_zpk(z, p, k, w, 0.7), Z, P, K, 3.0),
        design("lp2bs_zpk", lambda m, z, p, k, w: m.lp2bs_zpk(z, p, k, w, 0.7), Z, P, K, 3.0),
        design("bilinear", lambda m, b, a: m.bilinear(b, a, 2.0), B[:2], A),
        design("bilinear_zpk", lambda m, z, p, k: m.bilinear_zpk(z, p, k, 2.0), Z, P, K),
        design("normalize", lambda m, b, a: m.normalize(b, a), B, A),
        design("sos2tf", lambda m, s: m.sos2tf(s), SECTIONS),
        design("sos2zpk", lambda m, s: m.sos2zpk(s)[1:], SECTIONS,
               note="of the poles; double zeros have no derivative."),
        design("tf2sos", lambda m, b, a: m.tf2sos(b, a), [0.2, 0.3, 0.05], A),
        design("tf2zpk", lambda m, b, a: m.tf2zpk(b, a), [0.2, 0.1, 0.3], A),
        design("zpk2sos", lambda m, z, p, k: m.zpk2sos(z, p, k), Z, INSIDE[:2], K),
        design("zpk2tf", lambda m, z, p, k: m.zpk2tf(z, p, k), Z, P, K),
        design("residue", lambda m, b, a: [x.real for x in m.residue(b, a)[:2]], B, [1.0, 4.0, 3.0, -0.7]),
        design("residuez", lambda m, b, a: m.residuez(b, a)[:2], B, [1.0, 0.6, -0.4, 0.05]),
        design("invres", lambda m, r: m.invres(r, POLES, NONE), [0.3, 0.7]),
        design("invresz", lambda m, r: m.invresz(r, POLES, NONE), [0.3, 0.7]),
        response("freqs", lambda m, w, b, a: m.freqs(b, a, w), B, A),
        response("freqs_zpk", lambda m, w, z, p, k: m.freqs_zpk(z, p, k, w), Z, P, K),
        response("freqz", lambda m, w, b, a: m.freqz(b, a, w), B, A),
        response("freqz_sos", lambda m, w, b, a: m.freqz_sos(sections(m, b, a), w), *HALVES),
        response("sosfreqz", lambda m, w, b, a: m.sosfreqz(sections(m, b, a), w), *HALVES),
        response("freqz_zpk", lambda m, w, z, p, k: m.freqz_zpk(z, p, k, w), Z, INSIDE, K),
        response("group_delay", lambda m, w, b, a: m.group_delay((b, a), w), B, A),
    ),
)  # fmt: skip


def edges(module: Any, inner: Any) -> Any:
    """Return frequencies from 0 to 1 with some in between."""
    from pullback import numpy as jnp

    xp = np if module.__name__.startswith("scipy") else jnp
    return xp.concatenate([xp.zeros(1), xp.asarray(inner), xp.ones(1)])


SYSTEMS = Part(
    "Linear systems",
    "`scipy.signal`: systems of two or three states; responses at 10,000 frequencies, and simulations of 10,000 times.",
    (
        response("lti", lambda m, w, b, a: m.lti(b, a).freqresp(w), B[:2], A),
        response("dlti", lambda m, w, b, a: m.dlti(b, a, dt=0.1).freqresp(w), B[:2], A),
        design("TransferFunction", lambda m, b, a: m.TransferFunction(b, a).to_ss().A, B[:2], A),
        design("ZerosPolesGain", lambda m, z, p, k: [m.ZerosPolesGain(z, p, k).to_tf().num], Z, P, K),
        design("StateSpace", lambda m, *s: [m.StateSpace(*s).to_tf().den], *STATES),
        response("freqresp", lambda m, w, b, a: m.freqresp((b, a), w), B[:2], A),
        response("bode", lambda m, w, b, a: m.bode((b, a), w), B[:2], A),
        response("dfreqresp", lambda m, w, b, a: m.dfreqresp((b, a, 0.1), w), B[:2], A),
        response("dbode", lambda m, w, b, a: m.dbode((b, a, 0.1), w), B[:2], A),
        simulation("lsim", lambda m, u, b, a: m.lsim((b, a), u, at_times(u))[1], B[:2], [1.0, 0.9, 0.4], drive=True),
        simulation("dlsim", lambda m, u, b, a: m.dlsim((b, a, 0.1), u)[1], B[:2], A, drive=True),
        row("step", lambda m, b, a: m.step((b, a), T=TIMES)[1], given(B[:2], [1.0, 0.9, 0.4]), apart=True),
        row("impulse", lambda m, b, a: m.impulse((b, a), T=TIMES)[1], given(B[:2], [1.0, 0.9, 0.4]), apart=True),
        row("dstep", lambda m, b, a: m.dstep((b, a, 0.1), n=9)[1][0], given(B[:2], A), apart=True),
        row("dimpulse", lambda m, b, a: m.dimpulse((b, a, 0.1), n=9)[1][0], given(B[:2], A), apart=True),
        design("abcd_normalize", lambda m, *s: m.abcd_normalize(*s), *STATES),
        design("cont2discrete", lambda m, *s: m.cont2discrete(s, 0.1)[:4], *STATES),
        design("ss2tf", lambda m, *s: m.ss2tf(*s), *STATES),
        design("ss2zpk", lambda m, *s: m.ss2zpk(*s)[1:2], *STATES, second=False),
        design("tf2ss", lambda m, b, a: m.tf2ss(b, a), B, A),
        design("zpk2ss", lambda m, z, p, k: m.zpk2ss(z, p, k), Z, P, K),
        design("place_poles", lambda m, a, b, p: m.place_poles(a, b, p).gain_matrix, STATES[0], STATES[1], P),
    ),
)  # fmt: skip
