"""A differentiable linear program: profits that a plant's decisions reveal.

A plant chooses the most profitable amounts of eight products within five resources, by a linear program. Only its
decisions are seen, on days with different stocks of the resources, and the profits of the products are unknown. A
vertex does not move with the profits; but with a small quadratic term, by ``solve_qp``, the decisions have derivatives
by them, and BFGS finds profits that explain them all. (Others do so too: where a resource is used up every day, its
price and the profits are known only together.) The derivatives of the linear program itself by the stocks, by
``linprog``, are compared with finite differences, and those of the profit with the shadow prices.

    python examples/differentiable_linear_program.py [prices.png]
"""

from __future__ import annotations

import sys

import numpy as np

import pullback.numpy as jnp
from pullback import Array, config, grad, jacrev, jit, vmap
from pullback.scipy.optimize import linprog, minimize, solve_qp

config.update("enable_x64", True)
PRODUCTS, RESOURCES, DAYS = 8, 5, 30
SMOOTHING = 0.05

generator = np.random.default_rng(0)
NEEDS = jnp.asarray(0.2 + generator.random((RESOURCES, PRODUCTS)))
PROFITS = jnp.asarray(1 + generator.random(PRODUCTS))
STOCKS = jnp.asarray(3 + 2 * generator.random((DAYS, RESOURCES)))


def decided(profits: Array, stocks: Array) -> Array:
    """The amounts of the greatest profit, less a small multiple of their squares."""
    return solve_qp(SMOOTHING * jnp.eye(PRODUCTS), -profits, NEEDS, stocks, lb=0.0).x


def plan(profits: Array, stocks: Array) -> Array:
    """The amounts of the linear program."""
    return linprog(-profits, NEEDS, stocks).x


def main() -> int:
    """Learn the profits, compare, and draw."""
    seen = vmap(lambda stocks: decided(PROFITS, stocks))(STOCKS)
    loss = lambda profits: ((vmap(lambda stocks: decided(profits, stocks))(STOCKS) - seen) ** 2).mean()
    start = jnp.full(PRODUCTS, 1.5)
    found = minimize(loss, start, method="BFGS", options={"gtol": 1e-10})
    print(f"loss {loss(start):.3f} -> {found.fun:.1e}")

    stocks, step = STOCKS[0], 1e-6
    slopes = jit(jacrev(plan, 1))(PROFITS, stocks)
    difference = lambda e: (plan(PROFITS, stocks + step * e) - plan(PROFITS, stocks - step * e)) / (2 * step)
    by_differences = jnp.stack([difference(e) for e in jnp.eye(RESOURCES)], axis=1)
    program = linprog(-PROFITS, NEEDS, stocks)
    of_profit = grad(lambda stocks: linprog(-PROFITS, NEEDS, stocks).fun)(stocks)
    checks = {
        "decisions by the profits found, and those seen": found.fun < 1e-12,
        "amounts by the stocks, and finite differences": np.abs(slopes - by_differences).max() < 1e-6,
        "profit by the stocks, and shadow prices": np.abs(of_profit - program.ineqlin.marginals).max() < 1e-12,
    }
    for what, good in checks.items():
        print(f"{what}: {'agree' if good else 'DISAGREE'}")
    print(f"{sum(map(bool, checks.values()))} of {len(checks)} checks agree")
    if len(sys.argv) > 1:
        decisions = [np.ravel(vmap(lambda s, p=p: decided(p, s))(STOCKS)) for p in (PROFITS, start, found.x)]
        draw(sys.argv[1], decisions, -np.asarray(program.ineqlin.marginals))
    return 0 if all(checks.values()) else 1


def draw(file: str, decisions: list[np.ndarray], prices: np.ndarray) -> None:
    """Draw decisions by the profits at the start and the end beside those seen, and the resources' shadow prices."""
    import matplotlib.pyplot as plt

    fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    seen, before, after = decisions
    left.plot(seen, before, "x", label="at the start")
    left.plot(seen, after, ".", label="at the end")
    left.set(xlabel="amount seen", ylabel="amount by the profits found")
    left.legend()
    right.bar(np.arange(RESOURCES), prices)
    right.set(xlabel="resource", ylabel="shadow price")
    fig.savefig(file)


if __name__ == "__main__":
    raise SystemExit(main())
