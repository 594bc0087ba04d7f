"""Records Taylor coefficients in mpmath's numbers: ``python -m tests.derivatives.record_taylor``, with mpmath.

The functions are those of the table of ``benchmarks/accuracy``, each at a point within the interval where most happens,
along a line by all operands that it is differentiated by.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

ORDER = 10
FILE = pathlib.Path(__file__).with_name("taylor_coefficients.json")
ALONG_THE_LAST = ("jv", "yv", "iv", "kv", "hyp1f1", "hyp2f1")
"""Functions whose derivatives by the order or the parameters are differences in mpmath."""


ELSEWHERE = {
    "lax.lgamma": [(-3.7,), (0.05,), (80.0,)],
    "lax.digamma": [(-3.7,), (12.5,)],
    "lax.polygamma": [(1, -2.4), (4, 0.3), (0, 5.5)],
    "lax.zeta": [(3, -1.3), (2.5, 12.0), (20.5, 0.7)],
    "scipy.special.exprel": [(0.0,), (9.0,), (-40.0,)],
    "scipy.special.erfcx": [(0.0,), (20.0,), (-3.0,)],
    "scipy.special.dawsn": [(0.0,), (5.0,), (9.0,)],
    "scipy.special.expn": [(3, 0.1), (0, 0.5), (7, 10.0)],
    "scipy.special.sici": [(0.0,), (12.0,), (40.0,)],
    "scipy.special.spence": [(1.0,), (1.3,), (10.0,)],
    "scipy.special.i0": [(0.0,), (30.0,)],
    "scipy.special.i1": [(0.0,), (-8.0,)],
    "lax.bessel_i0e": [(-30.0,)],
    "lax.bessel_i1e": [(30.0,), (1000.0,)],
    "scipy.special.jv": [(0.0, 0.0), (2, -1.0), (2.5, 0.3), (0.5, 10.0), (-3, 1.0)],
    "scipy.special.iv": [(1, 0.0), (2.5, 0.3), (7.0, 20.0)],
    "scipy.special.yv": [(2.5, 0.3)],
    "scipy.special.kv": [(2.5, 0.3)],
    "scipy.special.hyp1f1": [
        (1.5, 2.5, 0.0), (2.62, 8.08, -10.0), (1.5, 50.0, 10.0), (0.5, 1.5, 100.0), (0.5, 1.5, -200.0),
        (-3, 2.5, -30.0), (-2.5, 1.5, 6.0), (2, 1, -15.0), (0, 2, 1.0),
    ],
    "scipy.special.hyp2f1": [
        (1, 1, 2, 0.0), (0.3, 2.7, 7.5, 0.4), (2.5, 3.5, 1.2, 0.8), (0.5, 0.5, 1.5, 0.999), (1.5, 0.5, 8.0, -30.0),
        (-3, 2, 1.5, 0.7), (-3, 4, 1, 1.0), (-2, 3, 1.5, 2.0), (-3.5, 1.2, 2.5, 0.9),
    ],
}  # fmt: skip
"""Operands at which functions are recorded along the last, as at zero and far from it they have other formulas."""

BY_PARAMETERS = {
    "lax.igamma": [
        ((2.57, 3.08), (1, 0)), ((0.3, 0.1), (1, 0)), ((1.5, 1e-4), (1, 0)), ((2.0, 3.0), (1, 0)),
        ((40.0, 60.0), (1, 1)), ((300.0, 310.0), (1, 0)), ((5.0, 1.0), (0.25, -0.5)),
    ],
    "lax.igammac": [((2.57, 3.08), (1, 0)), ((0.05, 0.5), (1, 0)), ((3.0, 20.0), (1, 0))],
    "lax.betainc": [
        ((2.57, 3.13, 0.69), (1, 0.625, 0.25)), ((0.4, 0.3, 0.1), (1, 0.5, 0)), ((0.4, 0.3, 0.95), (0, 1, 0)),
        ((2.0, 2.0, 0.5), (0, 1, 0.5)), ((40.0, 60.0, 0.4), (1, 1, 0)), ((8.0, 2.0, 0.9), (1, -1, 0.125)),
        ((300.0, 200.0, 0.55), (1, 0, 0)),
    ],
    "scipy.special.hyp1f1": [
        ((2.62, 8.08, -10.0), (1, 0.5, 0)), ((1.5, 2.5, 100.0), (1, 0, 0)), ((-2.0, 2.5, 3.0), (1, 0, 0)),
    ],
    "scipy.special.hyp2f1": [
        ((1.93, 2.33, 5.76, -1.03), (1, 0.5, 0.5, 0)), ((1.93, 2.33, 5.76, 0.9), (1, 0, 0, 0)),
        ((-2.0, 0.5, 2.5, 0.3), (1, 0, 0, 0)), ((1.5, 0.5, 2.5, 0.3), (1, 1, 0, 0)),
    ],
    "scipy.special.jv": [((v, x), (1, 0)) for v, x in [(1.5, 2.0), (0.3, 0.1), (2.5, 20.0), (20.0, 25.0), (-1.3, 2.0)]],
    "scipy.special.yv": [((v, x), (1, 0)) for v, x in [(1.5, 2.0), (5.5, 3.0), (2.5, 20.0)]],
    "scipy.special.iv": [((v, x), (1, 0)) for v, x in [(1.5, 2.0), (0.3, 0.1), (2.5, 20.0)]],
    "scipy.special.kv": [((v, x), (1, 0)) for v, x in [(2.5, 0.3), (0.0, 1.0), (7.2, 20.0)]],
}  # fmt: skip
"""Operands and directions by which functions move that the table has along their variable alone, or at one place."""


def point(operand: Any, share: float) -> float | int:
    """A number within the interval of an operand, of few digits."""
    low, high = operand.usual
    low, high = max(low, -4.0), min(high, 4.0 + max(low, 0.0))
    value = low + share * (high - low)
    return round(value) if operand.whole else round(value, 2)


def main() -> None:
    from mpmath import mp

    from benchmarks.accuracy.functions import FUNCTIONS
    from benchmarks.accuracy.special_kinds import KINDS
    from benchmarks.accuracy.table import Operand

    mp.dps = 60
    rows = {}
    for function in FUNCTIONS:
        moving = [slope is not None for slope in function.slopes]
        if function in KINDS or not any(moving) or not all(isinstance(o, Operand) for o in function.operands):
            continue
        if function.name.rpartition(".")[2] in ALONG_THE_LAST:
            moving = [*[False] * (len(moving) - 1), True]
        xs = [point(o, share) for o, share in zip(function.operands, (0.63, 0.77, 0.69, 0.6), strict=False)]
        directions = [round(1 - 0.375 * i, 3) if m else 0.0 for i, m in enumerate(moving)]

        def along(t: Any, function: Any = function, xs: Any = xs, directions: Any = directions) -> Any:
            return function.exact(*[mp.mpf(x) + t * d if d else mp.mpf(x) for x, d in zip(xs, directions, strict=True)])

        coefficients = [float(mp.re(c)) for c in mp.taylor(along, 0, ORDER)]
        rows[function.label] = {
            "name": function.name,
            "arguments": function.arguments,
            "part": function.part,
            "operands": xs,
            "directions": directions,
            "coefficients": coefficients,
        }
    exact = {
        "lax.lgamma": lambda x: mp.re(mp.loggamma(x)),
        "lax.digamma": mp.digamma,
        "lax.polygamma": mp.psi,
        "scipy.special.exprel": lambda x: mp.expm1(x) / x if x else mp.mpf(1),
        "scipy.special.erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
        "scipy.special.dawsn": lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x),
        "scipy.special.expn": mp.expint,
        "scipy.special.sici": mp.si,
        "scipy.special.spence": lambda x: mp.re(mp.polylog(2, 1 - x)),
        "scipy.special.i0": lambda x: mp.besseli(0, x),
        "scipy.special.i1": lambda x: mp.besseli(1, x),
        "lax.bessel_i0e": lambda x: mp.besseli(0, x) * mp.exp(-abs(x)),
        "lax.bessel_i1e": lambda x: mp.besseli(1, x) * mp.exp(-abs(x)),
        "scipy.special.jv": mp.besselj,
        "scipy.special.iv": mp.besseli,
        "scipy.special.yv": mp.bessely,
        "scipy.special.kv": mp.besselk,
        "scipy.special.hyp1f1": mp.hyp1f1,
        "scipy.special.hyp2f1": mp.hyp2f1,
        "lax.igamma": lambda a, x: mp.gammainc(a, 0, x, regularized=True),
        "lax.igammac": lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True),
        "lax.betainc": lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
        "lax.zeta": lambda s, q: mp.zeta(s, q) if q > 0 else mp.psi(s - 1, q) * (-1) ** s / mp.factorial(s - 1),
    }
    along_the_last = [(name, [(xs, (*[0] * (len(xs) - 1), 1)) for xs in places]) for name, places in ELSEWHERE.items()]
    for name, places in [*along_the_last, *BY_PARAMETERS.items()]:
        for xs, directions in places:
            along = lambda t, f=exact[name], xs=xs, directions=directions: f(
                *[mp.mpf(x) + t * d if d else x for x, d in zip(xs, directions, strict=True)]
            )
            by_parameters = (xs, directions) in BY_PARAMETERS.get(name, ())
            towards = f" by {', '.join(map(str, directions))}" if by_parameters else ""
            rows[f"{name} at {', '.join(map(str, xs))}{towards}"] = {
                "name": name,
                "arguments": {},
                "part": 0 if name == "scipy.special.sici" else None,
                "operands": [float(x) for x in xs],
                "directions": [float(d) for d in directions],
                "coefficients": [float(mp.re(c)) for c in mp.taylor(along, 0, ORDER)],
            }
    lines = [f"{json.dumps(label)}: {json.dumps(row)}" for label, row in rows.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
