"""Prices of an Asian option and their derivatives, the Greeks, by quasi-random points.

The option pays by how much the mean of twelve monthly prices of a share exceeds a strike. Its payoff has a kink,
through which a derivative passes once: the second one, gamma, is lost. So the number that moves all months together is
integrated in closed form, from the root at which the option begins to pay to infinity; what is left is smooth
(Griewank, Kuo, Leövey and Sloan 2018, "High dimensional integration of kinks and jumps: smoothing by preintegration").
The other numbers are points of Sobol's sequence, scrambled by sixteen keys, which give the error. The Greeks are
derivatives of the whole.

The option on the geometric mean has a price in closed form (Kemna and Vorst 1990): the process ends with a non-zero
status if its price or a Greek is off by more than five standard errors, if gamma of the option on the arithmetic mean
is not the difference quotient of prices, or if the error is not thirty times smaller than that of random points. If
matplotlib is installed, the errors of random and quasi-random points, and delta and gamma by the price of the share,
are drawn.

    python examples/option_prices.py [prices.png]
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import Array, enable_x64, grad, jit, random, vmap
from pullback.scipy.optimize import brentq
from pullback.scipy.stats import norm, qmc

STRIKE, MONTHS = 100.0, 12
TIMES = np.arange(1, MONTHS + 1) / MONTHS
MARKET = {"share": 100.0, "volatility": 0.25, "rate": 0.03}
GREEKS = {
    "price": (), "delta": ("share",), "gamma": ("share", "share"), "vega": ("volatility",), "rho": ("rate",),
}  # fmt: skip


def loadings() -> np.ndarray[Any, Any]:
    """A root of the covariance of Brownian motion at the months: principal components, by their importance."""
    values, vectors = np.linalg.eigh(np.minimum(TIMES[:, None], TIMES))
    root = vectors[:, ::-1] * np.sqrt(values[::-1])
    return root * np.sign(root.sum(0))  # the first one moves all prices upwards


ROOT = loadings()


def drift(p: dict[str, Array]) -> Array:
    return jnp.log(p["share"]) + (p["rate"] - p["volatility"] ** 2 / 2) * TIMES


def payoff(p: dict[str, Array], z: Array, geometric: bool) -> Array:
    """What the option pays for twelve normal numbers, discounted."""
    logarithms = drift(p) + p["volatility"] * (ROOT @ z)
    mean = jnp.exp(jnp.mean(logarithms)) if geometric else jnp.mean(jnp.exp(logarithms))
    return jnp.exp(-p["rate"]) * jnp.maximum(mean - STRIKE, 0.0)


def smoothed(p: dict[str, Array], z: Array, geometric: bool) -> Array:
    """The mean payoff over the first normal number, for the eleven others."""
    slopes = p["volatility"] * ROOT[:, 0]
    heights = drift(p) + p["volatility"] * (ROOT[:, 1:] @ z)
    if geometric:
        slopes, heights = jnp.mean(slopes)[None], jnp.mean(heights)[None]
    start = brentq(lambda x: jnp.mean(jnp.exp(heights + slopes * x)) - STRIKE, -40.0, 40.0)
    paid = jnp.mean(jnp.exp(heights + slopes**2 / 2) * norm.cdf(slopes - start))
    return jnp.exp(-p["rate"]) * (paid - STRIKE * norm.cdf(-start))


def price(p: dict[str, Array], key: Array, n: int, geometric: bool, way: str) -> Array:
    """The mean over n points: of the payoff at "random" or "sobol" points, or "smoothed" at those of Sobol."""
    d = MONTHS - (way == "smoothed")
    u = random.uniform(key, (n, d)) if way == "random" else qmc.sobol(key, n, d)
    z = norm.ppf(jnp.clip(u, 1e-12, 1 - 1e-12))
    return jnp.mean(vmap(partial(smoothed if way == "smoothed" else payoff, p, geometric=geometric))(z))


def exact(p: dict[str, Array]) -> Array:
    """The price of the option on the geometric mean: that of a share with the mean's drift and variance."""
    deviation = p["volatility"] * np.sqrt(np.mean(np.minimum(TIMES[:, None], TIMES)))
    centre = jnp.mean(drift(p))
    start = (jnp.log(STRIKE) - centre) / deviation
    paid = jnp.exp(centre + deviation**2 / 2) * norm.cdf(deviation - start)
    return jnp.exp(-p["rate"]) * (paid - STRIKE * norm.cdf(-start))


def derivative(f: Callable[..., Array], by: tuple[str, ...]) -> Callable[..., Array]:
    """The derivative of a function of the market's numbers by some of them, one after the other."""
    if not by:
        return f
    return derivative(lambda p, *rest: grad(f)(p, *rest)[by[0]], by[1:])


def greeks(f: Callable[..., Array]) -> Callable[..., Array]:
    """The price and the Greeks, from a function of the market's numbers."""
    return lambda p, *rest: jnp.stack([derivative(f, by)(p, *rest) for by in GREEKS.values()])


def measured(f: Callable[..., Array], keys: Array) -> tuple[Array, Array]:
    """The mean of a function of the market and a key over keys, and its standard error."""
    values = jit(vmap(f, (None, 0)))(MARKET, keys)
    return values.mean(0), values.std(0, ddof=1) / np.sqrt(len(values))


def draw(errors: dict[str, list[float]], sizes: list[int], path: Path) -> None:
    """The errors by the number of points, and delta and gamma by the price of the share, as a picture."""
    try:
        import matplotlib
    except ImportError:
        print("no picture: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    _, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4))
    for way, values in errors.items():
        left.loglog(sizes, values, "o-", label=way)
    left.set(xlabel="points", ylabel="standard error of the price")
    left.legend()
    shares = jnp.linspace(70, 130, 61)
    f = greeks(partial(price, n=256, geometric=False, way="smoothed"))
    curves = jit(vmap(lambda share: f({**MARKET, "share": share}, random.key(0))))(shares)
    second = right.twinx()
    for axis, i, colour in ((right, 1, "tab:blue"), (second, 2, "tab:orange")):
        axis.plot(shares, curves[:, i], colour)
        axis.set_ylabel(list(GREEKS)[i], color=colour)
    right.set(xlabel="price of the share")
    pyplot.tight_layout()
    pyplot.savefig(path)
    print(f"the errors and the Greeks are drawn in {path}")


def main() -> int:
    """Compute prices and Greeks, and check them; the exit status is 0 if they are right."""
    keys = random.split(random.key(1), 16)
    expected = greeks(exact)(MARKET)
    geometric, error = measured(greeks(partial(price, n=512, geometric=True, way="smoothed")), keys)
    arithmetic, spread = measured(greeks(partial(price, n=512, geometric=False, way="smoothed")), keys)
    print("of the option on the geometric mean, beside its formula; of the one on the arithmetic mean")
    for row in zip(GREEKS, geometric, expected, arithmetic, spread, strict=True):
        print("{:6} {:9.5f} {:9.5f} {:9.5f} +- {:.0e}".format(row[0], *map(float, row[1:])))
    right = bool((abs(geometric - expected) < 5 * error + 1e-9).all())

    at = jit(lambda share: price({**MARKET, "share": share}, random.key(2), 64, False, "smoothed"))
    step = 0.01
    quotient = float(at(100.0 + step) - 2 * at(100.0) + at(100.0 - step)) / step**2
    gamma = float(jit(grad(grad(at)))(100.0))
    print(f"gamma is {gamma:.6f}, and {quotient:.6f} by differences of prices at the same points")
    right &= abs(gamma - quotient) < 1e-5

    sizes = [2**k for k in range(5, 12, 2)]
    errors = {
        way: [float(measured(partial(price, n=n, geometric=False, way=way), keys)[1]) for n in sizes]
        for way in ("random", "sobol", "smoothed")
    }
    gain = errors["random"][-1] / errors["smoothed"][-1]
    print(f"with {sizes[-1]} points the error is {gain:.0f} times smaller than that of random points")
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "prices.png"
    draw(errors, sizes, path)
    return 0 if right and gain > 30 else 1


if __name__ == "__main__":
    with enable_x64():
        sys.exit(main())
