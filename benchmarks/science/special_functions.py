"""Rows of ``scipy.special``: elliptic integrals and functions, inverses, and Voigt's profile."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.special as oracle

from benchmarks.science.rows import Part, Row
from pullback import numpy as jnp
from pullback.scipy import special

LARGE = 10_000
Bounds = Sequence[tuple[float, float]]


def drawn(bounds: Bounds, count: int) -> Callable[[], Sequence[Any]]:
    """Return the function that draws ``count`` numbers between each pair of bounds."""

    def draw() -> Sequence[Any]:
        rng = np.random.default_rng(0)
        return [rng.uniform(low, high, count) for low, high in bounds]

    return draw


def row(name: str, signature: str, *bounds: tuple[float, float], part: Callable[[Any], Any] = lambda out: out) -> Row:
    """Return a row for a function of numbers between bounds; ``part`` takes an array from its result."""
    ours, theirs = getattr(special, name), getattr(oracle, name)
    return Row(
        f"scipy.special.{name}", signature, lambda *xs: part(ours(*xs)), lambda *xs: part(theirs(*xs)),
        drawn(bounds, 4), drawn(bounds, LARGE),
    )  # fmt: skip


def of_orders(name: str, signature: str, orders: Sequence[Sequence[float]], *bounds: tuple[float, float]) -> Row:
    """Return a row for a function whose first operands, such as integers, have no derivatives, or of several results.

    All results are one array.
    """
    ours, theirs = getattr(special, name), getattr(oracle, name)

    def fixed(like: Any) -> list[Any]:
        return [np.resize(np.asarray(v), like.shape) for v in orders]

    def of_scipy(*xs: Any) -> Any:
        out = theirs(*fixed(xs[0]), *xs)
        return np.concatenate(out) if isinstance(out, tuple) else out

    def of_ours(*xs: Any) -> Any:
        out = ours(*fixed(xs[0]), *xs)
        return jnp.concatenate(out) if isinstance(out, tuple) else out

    title = f"scipy.special.{name}"
    return Row(title, signature, of_ours, of_scipy, drawn(bounds, 4), drawn(bounds, LARGE))


def of_complex(name: str) -> Row:
    """Return a row for a Hankel function: the real parts and the imaginary ones."""
    ours, theirs = getattr(special, name), getattr(oracle, name)

    def of_ours(v: Any, x: Any) -> Any:
        out = ours(v, x)
        return jnp.concatenate([out.real, out.imag])

    def of_scipy(v: Any, x: Any) -> Any:
        out = theirs(v, x)
        return np.concatenate([out.real, out.imag])

    bounds = (0.2, 6), (0.5, 20)
    return Row(f"scipy.special.{name}", "(v, x)", of_ours, of_scipy, drawn(bounds, 4), drawn(bounds, LARGE))


OF_ONE = {
    (-3, 3): "psi rgamma cosm1 erfi exp10 exp2 expm1 cbrt sinc log_expit softplus sindg cosdg tandg cotdg wrightomega",
    (0.1, 6): "log1p k0 k1 k0e k1e",
    (0.2, 9): "j0 j1 y0 y1",
    (-9, -0.1): "ndtri_exp",
}
"""Functions of one number by the interval of the numbers."""
OF_ONE_AND_OTHERS = {
    "ber": "x", "bei": "x", "berp": "x", "beip": "x", "ker": "x", "kei": "x", "kerp": "x", "keip": "x", "shichi": "x",
    "airy": "z", "airye": "z", "itairy": "x", "itj0y0": "x", "iti0k0": "x", "it2j0y0": "x", "it2i0k0": "x",
    "itstruve0": "x", "it2struve0": "x", "itmodstruve0": "x",
}  # fmt: skip
"""Functions of one number between 0.2 and 5, some of which have several results."""
OF_TWO: dict[str, tuple[str, Bounds]] = {
    "binom": ("x, y", [(4, 9), (0.3, 3)]), "agm": ("a, b", [(0.2, 5), (0.2, 5)]),
    "powm1": ("x, y", [(0.2, 5), (-2, 2)]), "huber": ("delta, r", [(0.5, 2), (-4, 4)]),
    "pseudo_huber": ("delta, r", [(0.5, 2), (-4, 4)]), "inv_boxcox": ("y, lmbda", [(-0.3, 0.5), (-1, 1)]),
    "inv_boxcox1p": ("y, lmbda", [(-0.3, 0.5), (-1, 1)]), "chdtr": ("v, x", [(0.5, 6), (0.5, 6)]),
    "chdtrc": ("v, x", [(0.5, 6), (0.5, 6)]), "chdtri": ("v, p", [(0.5, 6), (0.1, 0.9)]),
    "stdtr": ("df, t", [(0.5, 9), (-4, 4)]), "stdtrit": ("df, p", [(0.5, 9), (0.1, 0.9)]),
    "jve": ("v, z", [(0.2, 6), (0.5, 20)]), "yve": ("v, z", [(0.2, 6), (0.5, 20)]),
    "ive": ("v, z", [(0.2, 6), (0.5, 20)]), "kve": ("v, z", [(0.2, 6), (0.5, 20)]),
    "jvp": ("v, z, n", [(0.2, 6), (0.5, 20)]), "yvp": ("v, z, n", [(1.2, 6), (2, 20)]),
    "ivp": ("v, z, n", [(0.2, 6), (0.5, 9)]), "kvp": ("v, z, n", [(0.2, 6), (2, 9)]),
    "betaincc": ("a, b, x", [(0.3, 9), (0.3, 9), (0.05, 0.95)]), "gdtr": ("a, b, x", [(0.5, 3)] * 3),
    "gdtrc": ("a, b, x", [(0.5, 3)] * 3), "fdtr": ("dfn, dfd, x", [(0.5, 6)] * 3),
    "fdtrc": ("dfn, dfd, x", [(0.5, 6)] * 3), "fdtri": ("dfn, dfd, p", [(0.5, 6), (0.5, 6), (0.1, 0.9)]),
}  # fmt: skip
"""Functions with derivatives by all operands, and the bounds of these."""
ORDERS, WHOLE, COUNTS = [0.0, 0.5, 1.7, 3.0], [1, 2, 3, 4], ([0.0, 1.0, 2.0, 4.0], [5, 6, 7, 9])
OF_ORDERS: dict[str, tuple[str, Sequence[Sequence[float]], Bounds]] = {
    **dict.fromkeys(("kn", "yn"), ("n, x", [WHOLE], [(0.5, 9)])),
    **{f"spherical_{kind}n": ("n, z, derivative", [WHOLE], [(0.5, 9)]) for kind in "jyik"},
    **dict.fromkeys(("struve", "modstruve"), ("v, x", [ORDERS], [(0.5, 9)])),
    "pbdv": ("v, x", [ORDERS], [(-2, 3)]), "pbvv": ("v, x", [ORDERS], [(-2, 3)]), "pbwa": ("a, x", [ORDERS], [(0, 3)]),
    "hyp0f1": ("v, z", [[0.7, 1.5, 2.0, 3.1]], [(-4, 4)]), "pdtr": ("k, m", COUNTS[:1], [(0.5, 6)]),
    "pdtrc": ("k, m", COUNTS[:1], [(0.5, 6)]),
    **dict.fromkeys(("bdtr", "bdtrc", "nbdtr", "nbdtrc"), ("k, n, p", COUNTS, [(0.1, 0.9)])),
    **dict.fromkeys(
        ("wright_bessel", "log_wright_bessel"), ("a, b, x", [[0.5, 1.0, 1.5, 2.0], [1.0, 1.5, 2.0, 0.5]], [(0.2, 4)])
    ),
    **{
        f"mathieu_{name}": ("m, q, x", [WHOLE, [0.3, 1.5, 4.0, 9.0]], [(0.2, 1.5)])
        for name in ("cem", "sem", "modcem1", "modsem1", "modcem2", "modsem2")
    },
}  # fmt: skip
"""Functions, their first operands, and the bounds of the others."""

PART = Part(
    "Special functions",
    "`scipy.special`, of 10,000 numbers. Eagerly most values are SciPy's own. Derivatives are relations between the\n"
    "functions, or formulas of operations. Compiled values are formulas that need no calls of the host, but for the\n"
    "functions of Kelvin, Struve, Mathieu, Wright and of the parabolic cylinder, integrals of Bessel's, `shichi`\n"
    "and `hyp0f1`, which the host computes.",
    (
        row("ellipk", "(m)", (-3, 0.95)),
        row("ellipkm1", "(p)", (0.01, 3)),
        row("ellipe", "(m)", (-3, 0.95)),
        row("ellipkinc", "(phi, m)", (-4, 4), (-2, 0.95)),
        row("ellipeinc", "(phi, m)", (-4, 4), (-2, 0.95)),
        row("ellipj", "(u, m)", (-4, 4), (0.05, 0.95), part=lambda out: out[0]),
        row("elliprc", "(x, y)", (0.1, 4), (0.1, 4)),
        row("elliprd", "(x, y, z)", *[(0.1, 4)] * 3),
        row("elliprf", "(x, y, z)", *[(0.1, 4)] * 3),
        row("elliprg", "(x, y, z)", *[(0.1, 4)] * 3),
        row("elliprj", "(x, y, z, p)", *[(0.1, 4)] * 4),
        row("gammaincinv", "(a, y)", (0.3, 9), (0.05, 0.95)),
        row("gammainccinv", "(a, y)", (0.3, 9), (0.05, 0.95)),
        row("betaincinv", "(a, b, y)", (0.3, 9), (0.3, 9), (0.05, 0.95)),
        row("betainccinv", "(a, b, y)", (0.3, 9), (0.3, 9), (0.05, 0.95)),
        row("lambertw", "(z, k)", (0.05, 9), part=lambda out: out.real),
        row("voigt_profile", "(x, sigma, gamma)", (-3, 3), (0.2, 2), (0.2, 2)),
        *(row(name, "(x)", interval) for interval, names in OF_ONE.items() for name in names.split()),
        *(
            of_orders(name, f"({operand})", [], (0.2, 2 if name == "itairy" else 5))  # beyond 2 SciPy loses digits
            for name, operand in OF_ONE_AND_OTHERS.items()
        ),
        *(row(name, f"({operands})", *bounds) for name, (operands, bounds) in OF_TWO.items()),
        *map(of_complex, ("hankel1", "hankel2", "hankel1e", "hankel2e")),
        *(of_orders(name, f"({operands})", orders, *bounds) for name, (operands, orders, bounds) in OF_ORDERS.items()),
        *(
            dataclasses.replace(of_orders(f"mathieu_{kind}", "(m, q)", [WHOLE], (0.3, 9)), second=False)
            for kind in "ab"
        ),
    ),
)
