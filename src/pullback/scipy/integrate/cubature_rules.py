"""Rules for integrals over boxes: products of Gauss and Kronrod's rules, and the rule of Genz and Malik.

Sources: Piessens, de Doncker-Kapenga, Überhuber and Kahaner 1983, *QUADPACK*, for nodes and weights; Genz and Malik
1980, *Remarks on algorithm 006: an adaptive algorithm for numerical integration over an N-dimensional rectangular
region*, Journal of Computational and Applied Mathematics 6.
"""

from __future__ import annotations

import math
from functools import lru_cache, reduce
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np

from pullback.core.arguments import is_listed, quote
from pullback.core.errors import ArgumentError
from pullback.scipy.integrate.adaptive import GAUSS_21, KRONROD_21, NODES_21

_KRONROD_15 = (
    (0.991455371120812639206854697526329, 0.022935322010529224963732008058970, 0.0),
    (0.949107912342758524526189684047851, 0.063092092629978553290700663189204, 0.129484966168869693270611432679082),
    (0.864864423359769072789712788640926, 0.104790010322250183839876322541518, 0.0),
    (0.741531185599394439863864773280788, 0.140653259715525918745189590510238, 0.279705391489276667901467771423780),
    (0.586087235467691130294144838258730, 0.169004726639267902826583426598550, 0.0),
    (0.405845151377397166906606412076961, 0.190350578064785409913256402421014, 0.381830050505118944950369775488975),
    (0.207784955007898467600689403773245, 0.204432940075298892414161999234649, 0.0),
)
"""The positive nodes, with their weights in Kronrod's and Gauss's rules."""
_ZERO_15 = (0.0, 0.209482141084727828012999174891714, 0.417959183673469387755102040816327)


class Rule(NamedTuple):
    """A rule for the mean of a function over the unit cube, and a less precise one on the same nodes.

    Attributes:
      nodes: the nodes, of shape (n, ndim).
      weights: their weights, whose sum is 1.
      differences: the weights less those of the less precise rule; so they estimate the error.
    """

    nodes: np.ndarray[Any, Any]
    weights: np.ndarray[Any, Any]
    differences: np.ndarray[Any, Any]


def _of_15() -> tuple[np.ndarray[Any, Any], ...]:
    rows = [(-x, k, g) for x, k, g in _KRONROD_15] + [_ZERO_15] + list(reversed(_KRONROD_15))
    return tuple(np.array(column) for column in zip(*rows, strict=True))


_ON_LINES = {
    "gk21": lambda: (NODES_21, KRONROD_21, GAUSS_21),
    "gauss-kronrod": lambda: (NODES_21, KRONROD_21, GAUSS_21),
    "gk15": _of_15,
}


@lru_cache(maxsize=32)
def _product(name: str, ndim: int) -> Rule:
    nodes, kronrod, gauss = _ON_LINES[name]()
    grid = np.stack(np.meshgrid(*[0.5 + 0.5 * nodes] * ndim, indexing="ij"), axis=-1).reshape(-1, ndim)
    weights, coarse = (reduce(np.multiply.outer, [0.5 * w] * ndim).reshape(-1) for w in (kronrod, gauss))
    return Rule(grid, weights, weights - coarse)


@lru_cache(maxsize=32)
def _genz_malik(ndim: int) -> Rule:
    """Return Genz and Malik's rule of degree 7, which contains one of degree 5."""
    n = ndim
    unit = np.eye(n)
    near, far, corner = math.sqrt(9 / 70), math.sqrt(9 / 10), math.sqrt(9 / 19)
    pairs = [s * unit[i] + t * unit[j] for i, j in combinations(range(n), 2) for s, t in product((-1, 1), repeat=2)]
    groups = [
        (np.zeros((1, n)), 12824 - 9120 * n + 400 * n**2, 19683, 729 - 950 * n + 50 * n**2, 729),
        (near * np.concatenate([unit, -unit]), 980, 6561, 245, 486),
        (far * np.concatenate([unit, -unit]), 1820 - 400 * n, 19683, 265 - 100 * n, 1458),
        (far * np.array(pairs), 200, 19683, 25, 729),
        (corner * np.array(list(product((-1.0, 1.0), repeat=n))), 6859, 19683 * 2**n, 0, 1),
    ]
    nodes = np.concatenate([points for points, *_ in groups])
    fine = np.concatenate([np.full(len(points), a / b) for points, a, b, _, _ in groups])
    coarse = np.concatenate([np.full(len(points), c / d) for points, _, _, c, d in groups])
    return Rule(0.5 + 0.5 * nodes, fine, fine - coarse)


def rule_of(name: str, rule: Any, ndim: int) -> Rule:
    """Return the rule that a user named, in ``ndim`` dimensions."""
    if not is_listed(rule, {**_ON_LINES, "genz-malik": None}):
        raise ArgumentError(f"{name}: rule must be one of 'gk21', 'gk15', 'genz-malik', got {quote(rule)}")
    if rule != "genz-malik":
        return _product(rule, ndim)
    if ndim < 2:
        raise ArgumentError(f"{name}: the rule 'genz-malik' needs at least two dimensions, got {ndim}; use 'gk21'")
    return _genz_malik(ndim)
