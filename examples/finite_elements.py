"""Finite elements with sensitivities: the shape of a cantilever that is stiffest for its weight.

A beam is clamped at one end and carries a load at the other. Its plane stress is computed with bilinear quadrilaterals:
the stiffness matrix is sparse, and `spsolve` factorises it (Hughes 1987, *The Finite Element Method*). Whatever follows
from the displacements has derivatives by thicknesses, loads and positions of nodes, at the price of one more
solution with the same factors. They are compared with the known formula for the compliance (Bendsoe and Sigmund 2003,
*Topology Optimization*) and with finite differences. Then the depth along the beam is chosen for the least compliance
at constant area. In the theory of slender beams the best depth grows as the square root of the distance from the
load, Galileo's solid of equal resistance (1638, *Two New Sciences*).

    python examples/finite_elements.py [cantilever.png]
"""

from __future__ import annotations

import sys

import numpy as np

import pullback.numpy as jnp
from pullback import Array, config, grad, jit, ops, vmap
from pullback.derivatives import hvp
from pullback.experimental.sparse import BCOO
from pullback.scipy.optimize import Bounds, LinearConstraint, minimize
from pullback.scipy.sparse.linalg import spsolve

config.update("enable_x64", True)
LENGTH, COLUMNS, ROWS = 10.0, 60, 8  # the depth is 1 in the mean
YOUNG, POISSON, LOAD = 1000.0, 0.3, 1.0
STRESS = YOUNG / (1 - POISSON**2) * jnp.array([[1, POISSON, 0], [POISSON, 1, 0], [0, 0, (1 - POISSON) / 2]])
CORNERS = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
POINTS = CORNERS / np.sqrt(3)  # Gauss's, for an integral over an element
STATIONS = jnp.linspace(0.0, LENGTH, 11)  # where the depth is given; it is linear between them

# The mesh: nodes in columns, from the clamped end at x = 0; each element has four of them, with two displacements each.
NODES = np.arange((COLUMNS + 1) * (ROWS + 1)).reshape(COLUMNS + 1, ROWS + 1)
ELEMENTS = np.stack([NODES[:-1, :-1], NODES[1:, :-1], NODES[1:, 1:], NODES[:-1, 1:]], -1).reshape(-1, 4)
UNKNOWNS = (2 * ELEMENTS[:, :, None] + np.arange(2)).reshape(-1, 8) - 2 * (ROWS + 1)  # negative at the clamped end
COUNT = 2 * COLUMNS * (ROWS + 1)


def pattern() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The positions of the stiffness matrix, the elements' entries that are added there, and where each goes."""
    rows, columns = (
        np.broadcast_to(u, (len(ELEMENTS), 8, 8)).ravel() for u in (UNKNOWNS[:, :, None], UNKNOWNS[:, None])
    )
    [entries] = np.nonzero((rows >= 0) & (columns >= 0))
    positions, where = np.unique(rows[entries] * COUNT + columns[entries], return_inverse=True)
    return np.stack(np.divmod(positions, COUNT), -1), entries, where


POSITIONS, ENTRIES, WHERE = pattern()


def nodes(depths: Array) -> Array:
    """The positions of the nodes of a beam with these depths at the stations, symmetric about its axis."""
    x = jnp.linspace(0.0, LENGTH, COLUMNS + 1)
    y = jnp.interp(x, STATIONS, depths)[:, None] * jnp.linspace(-0.5, 0.5, ROWS + 1)
    return jnp.stack([jnp.broadcast_to(x[:, None], y.shape), y], -1).reshape(-1, 2)


def stiffness(corners: Array) -> Array:
    """The stiffness matrix of one element of thickness 1, from the positions of its corners."""

    def at(point: Array) -> Array:
        s, t = CORNERS.T
        slopes = jnp.stack([s * (1 + t * point[1]), t * (1 + s * point[0])]) / 4
        jacobian = slopes @ corners
        by_x, by_y = jnp.linalg.solve(jacobian, slopes)
        none = jnp.zeros(4)
        rows = [(by_x, none), (none, by_y), (by_y, by_x)]
        strain = jnp.stack([jnp.stack(pair, -1).ravel() for pair in rows])
        return strain.T @ STRESS @ strain * jnp.linalg.det(jacobian)

    return vmap(at)(jnp.asarray(POINTS)).sum(0)


def loads() -> Array:
    """The forces at the nodes: the load is spread over the free end."""
    share = np.full(ROWS + 1, LOAD / ROWS)
    share[[0, -1]] /= 2
    forces = np.zeros((COLUMNS, ROWS + 1, 2))
    forces[-1, :, 1] = -share
    return jnp.asarray(forces.ravel())


@jit
def displacements(thickness: Array, positions: Array) -> Array:
    """The displacements of the free nodes, of elements of given thickness between nodes at given positions."""
    each = vmap(stiffness)(positions[ELEMENTS]) * thickness[:, None, None]
    entries = ops.segment_sum(each.ravel()[ENTRIES], WHERE, len(POSITIONS))
    return spsolve(BCOO((entries, POSITIONS), shape=(COUNT, COUNT)), loads())


def compliance(thickness: Array, depths: Array) -> Array:
    """The work of the load."""
    return loads() @ displacements(thickness, nodes(depths))


def expect(what: str, found: Array, expected: Array, tolerance: float) -> bool:
    """Print a comparison."""
    found, expected = np.asarray(found), np.asarray(expected)
    error = float(np.abs(found - expected).max() / np.abs(expected).max())
    print(f"{what}: largest difference {error:.1e}, {'agree' if error <= tolerance else 'DISAGREE'}")
    return error <= tolerance


def checks() -> list[bool]:
    """Compare the deflection and its derivatives with formulas and with finite differences."""
    ones, straight = jnp.ones(len(ELEMENTS)), jnp.ones(len(STATIONS))
    bending = LOAD * LENGTH**3 / (3 * YOUNG / 12)
    shear = LOAD * LENGTH * 1.2 / (YOUNG / (2 * (1 + POISSON)))
    moved = jnp.concatenate([jnp.zeros(2 * (ROWS + 1)), displacements(ones, nodes(straight))])
    own = moved[(2 * ELEMENTS[:, :, None] + np.arange(2)).reshape(-1, 8)]
    energies = jnp.einsum("ei,eij,ej->e", own, vmap(stiffness)(nodes(straight)[ELEMENTS]), own)
    of_depths = lambda depths: compliance(ones, depths)
    step, along = 1e-5, jnp.linspace(1.0, 0.0, len(STATIONS))
    between = lambda f: (f(straight + step * along) - f(straight - step * along)) / (2 * step)
    slope, second = grad(of_depths)(straight) @ along, hvp(of_depths, (straight,), (along,))
    return [
        expect("deflection, and the theory of beams", of_depths(straight) / LOAD, bending + shear, 0.02),
        expect("compliance by thicknesses, and its formula", grad(compliance)(ones, straight), -energies, 1e-9),
        expect("compliance by depths, and a difference", slope, between(of_depths), 1e-5),
        expect("its second derivative, and a difference", second, between(grad(of_depths)), 1e-5),
    ]


def stiffest() -> Array:
    """The depths at the stations with the least compliance, for an area of that of depth 1."""
    ones = jnp.ones(len(ELEMENTS))
    weights = np.full(len(STATIONS), 1.0 / (len(STATIONS) - 1))
    weights[[0, -1]] /= 2
    area = LinearConstraint(jnp.asarray(weights)[None], 1.0, 1.0)
    objective = jit(lambda depths: jnp.log(compliance(ones, depths)))
    found = minimize(
        objective, jnp.ones(len(STATIONS)), method="SLSQP", bounds=Bounds(0.1, 3.0), constraints=area, tol=1e-9
    )
    return found.x


def main() -> int:
    """Compare, optimise, and draw."""
    good = checks()
    ones, depths = jnp.ones(len(ELEMENTS)), stiffest()
    before, after = float(compliance(ones, jnp.ones(len(STATIONS)))), float(compliance(ones, depths))
    print(f"the deflection falls from {before:.3f} to {after:.3f}, at the same weight")
    parabola = 1.5 * jnp.sqrt(1 - STATIONS / LENGTH)
    good.append(expect("depths, and Galileo's parabola but for the end", depths[:-2], parabola[:-2], 0.05))
    print(f"{sum(good)} of 5 checks agree")
    if len(sys.argv) > 1:
        draw(sys.argv[1], depths, parabola)
    return 0 if all(good) else 1


def draw(file: str, depths: Array, parabola: Array) -> None:
    """Draw the mesh, bent by the load, and the depths along the beam."""
    import matplotlib.pyplot as plt

    placed = nodes(depths)
    moved = displacements(jnp.ones(len(ELEMENTS)), placed).reshape(-1, 2)
    bent = np.asarray(placed.at[ROWS + 1 :].add(moved)).reshape(COLUMNS + 1, ROWS + 1, 2)
    fig, (above, below) = plt.subplots(2, 1, figsize=(7, 5), layout="constrained")
    for lines in (bent, bent.transpose(1, 0, 2)):
        for line in lines:
            above.plot(*line.T, color="0.3", linewidth=0.4)
    above.set(aspect="equal", title="the stiffest cantilever, and how it bends")
    below.plot(STATIONS, depths, marker="o", label="finite elements")
    below.plot(STATIONS, parabola, label="slender beams: a parabola")
    below.set(xlabel="distance from the clamped end", ylabel="depth")
    below.legend()
    fig.savefig(file)


if __name__ == "__main__":
    raise SystemExit(main())
