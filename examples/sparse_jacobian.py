"""A stiff reaction in a ring of cells, step by step with sparse Jacobians.

The Brusselator: two substances that react in each of many cells and wander to the neighbouring ones. Implicit steps
need the solution of a nonlinear equation, and Newton's method needs its Jacobian, which is almost empty: each cell
depends on itself and its two neighbours. The pattern is found and coloured once; each Jacobian is then a few products,
and a matrix of SciPy's. The process ends with a non-zero status if an element is not that of the dense Jacobian, or if
the solution with steps of half the size is another one.

    python examples/sparse_jacobian.py [picture.png]
"""

from __future__ import annotations

import sys

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

import pullback.numpy as jnp
from pullback import Array, config, jacfwd
from pullback.derivatives import sparse_jacobian

CELLS, END, DIFFUSION = 400, 1.0, 0.02


def rate(y: Array) -> Array:
    """How fast the substances change; ``y`` has shape (2, CELLS)."""
    u, v = y[0], y[1]
    wander = lambda w: DIFFUSION * (CELLS / 20) ** 2 * (jnp.roll(w, 1) - 2 * w + jnp.roll(w, -1))
    return jnp.stack([1 + u**2 * v - 4 * u + wander(u), 3 * u - u**2 * v + wander(v)])


def solve(y: np.ndarray, steps: int) -> np.ndarray:
    """The substances at the end, by implicit Euler steps."""
    jacobian, h = sparse_jacobian(rate, format="scipy"), END / steps
    one = scipy.sparse.eye_array(y.size, format="csc")
    for _ in range(steps):
        before = y
        for _ in range(20):
            defect = y - before - h * np.asarray(rate(jnp.asarray(y)))
            matrix = one - h * jacobian(y).tocsc()
            change = scipy.sparse.linalg.spsolve(matrix, defect.ravel()).reshape(y.shape)
            y = y - change
            if np.abs(change).max() < 1e-10:
                break
    return y


def main() -> int:
    """Compare, solve, draw; the exit status is 0 if all agrees."""
    config.update("enable_x64", True)
    place = np.linspace(0, 2 * np.pi, CELLS, endpoint=False)
    start = np.stack([1 + 0.5 * np.sin(place), 3 + 0.2 * np.cos(2 * place)])
    colouring = sparse_jacobian(rate).prepare(start)
    print(colouring)
    dense = np.asarray(jacfwd(rate)(start))
    sparse = np.asarray(sparse_jacobian(rate)(start).todense())
    same = bool(np.abs(dense - sparse).max() < 1e-12)
    coarse, fine = solve(start, 100), solve(start, 200)
    close = bool(np.abs(coarse - fine).max() < 0.02)
    print(f"the Jacobians {'agree' if same else 'differ'}; {colouring.count} products instead of {start.size}")
    print(f"the solutions with 100 and 200 steps {'agree' if close else 'differ'}")
    if len(sys.argv) > 1:
        draw(sys.argv[1], place, fine)
    return 0 if same and close else 1


def draw(path: str, place: np.ndarray, y: np.ndarray) -> None:
    """The solution, and the pattern of a smaller ring in the colours of its products."""
    try:
        import matplotlib
    except ImportError:
        print("no picture: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    for values, name in zip(y, ("u", "v"), strict=True):
        left.plot(place, values, label=name)
    left.legend()
    small = sparse_jacobian(rate).prepare(y[:, :: CELLS // 10])
    picture = np.full(small.pattern.shape, np.nan)
    picture[small.pattern.rows, small.pattern.columns] = small.products
    right.imshow(picture, cmap="tab10")
    right.set_title(f"{small.count} products")
    figure.savefig(path)


if __name__ == "__main__":
    sys.exit(main())
