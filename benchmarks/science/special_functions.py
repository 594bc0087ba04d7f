"""Rows of ``scipy.special``: elliptic integrals and functions, inverses, and Voigt's profile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.special as oracle

from benchmarks.science.rows import Part, Row
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


PART = Part(
    "Special functions",
    "`scipy.special`, of 10,000 numbers. Eagerly most values are SciPy's own; derivatives, and compiled values, are\n"
    "formulas of operations, so that they need no calls of the host.",
    (
        row("ellipk", "m", (-3, 0.95)),
        row("ellipkm1", "p", (0.01, 3)),
        row("ellipe", "m", (-3, 0.95)),
        row("ellipkinc", "phi, m", (-4, 4), (-2, 0.95)),
        row("ellipeinc", "phi, m", (-4, 4), (-2, 0.95)),
        row("ellipj", "u, m", (-4, 4), (0.05, 0.95), part=lambda out: out[0]),
        row("elliprc", "x, y", (0.1, 4), (0.1, 4)),
        row("elliprd", "x, y, z", *[(0.1, 4)] * 3),
        row("elliprf", "x, y, z", *[(0.1, 4)] * 3),
        row("elliprg", "x, y, z", *[(0.1, 4)] * 3),
        row("elliprj", "x, y, z, p", *[(0.1, 4)] * 4),
        row("gammaincinv", "a, y", (0.3, 9), (0.05, 0.95)),
        row("gammainccinv", "a, y", (0.3, 9), (0.05, 0.95)),
        row("betaincinv", "a, b, y", (0.3, 9), (0.3, 9), (0.05, 0.95)),
        row("betainccinv", "a, b, y", (0.3, 9), (0.3, 9), (0.05, 0.95)),
        row("lambertw", "z, k", (0.05, 9), part=lambda out: out.real),
        row("voigt_profile", "x, sigma, gamma", (-3, 3), (0.2, 2), (0.2, 2)),
    ),
)
