"""Functions that do not depend on the choice of eigenvectors or singular vectors, where values are equal or zero.

Each has another function of the same values whose derivatives need no decomposition; or differences serve. The table
of ``docs/decompositions.md`` is made of these: ``python -m tests.recorded.degenerate`` prints it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

RECORDED = Path(__file__).with_suffix(".json")
RNG = np.random.default_rng(5)
B4, B3 = RNG.normal(size=(4, 4)), RNG.normal(size=(5, 3))
B4, Y5 = B4 + B4.T, RNG.normal(size=5)


def orthogonal(n: int, dtype: str) -> Any:
    x = RNG.normal(size=(n, n)) + (1j * RNG.normal(size=(n, n)) if dtype.startswith("complex") else 0)
    return np.linalg.qr(x)[0]


def with_eigenvalues(*w: float, dtype: str = "float64") -> Any:
    q = orthogonal(len(w), dtype)
    x = (q * np.array(w)) @ q.conj().T
    return (x + x.conj().T) / 2


def with_singular_values(m: int, n: int, *s: float, dtype: str = "float64") -> Any:
    return (orthogonal(m, dtype)[:, : len(s)] * np.array(s)) @ orthogonal(n, dtype)[:, : len(s)].conj().T


class Degenerate(NamedTuple):
    """A function at a matrix.

    Attributes:
      name: what it is.
      function: takes the modules ``numpy`` and ``lax.linalg`` of a library, and a matrix; returns a real number.
      same: the same without a decomposition; None if there is none.
      point: the matrix.
      hermitian: whether the function is one of Hermitian matrices.
    """

    name: str
    function: Callable[..., Any]
    same: Callable[..., Any] | None
    point: Any
    hermitian: bool = False


def _adjoint(np: Any, a: Any) -> Any:
    return np.conj(np.swapaxes(a, -1, -2))


def _gram(np: Any, a: Any) -> Any:
    return _adjoint(np, a) @ a


def _of_w(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda np, la, a: f(np, np.linalg.eigvalsh(a))


def _of_s(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda np, la, a: f(np, np.linalg.svdvals(a))


def _of_hermitian(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda np, la, a: np.real(f(np, (a + _adjoint(np, a)) / 2))


def _plain(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda np, la, a: np.real(f(np, a))


def _projection(np: Any, la: Any, a: Any) -> Any:
    v = np.linalg.eigh(a)[1][:, 1:]
    return np.real(np.sum(B4 * (v @ _adjoint(np, v))))


def _principal_part(np: Any, la: Any, a: Any) -> Any:
    w, v = np.linalg.eigh(a)
    v = v[:, 2:]
    return np.real(np.sum(B4 * ((v * w[2:]) @ _adjoint(np, v))))


def _overlap(np: Any, la: Any, a: Any) -> Any:
    x = np.sum(np.linalg.eigh(a)[1][:, -1] * B4[0])
    return np.real(x * np.conj(x))


def _through_factors(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of matrices of rank two: of x y*, of which the argument holds x (5, 2) above y (3, 2)."""
    return lambda np, la, a: f(np, a[:5], a[5:])


def _pinv_of_factors(np: Any, x: Any, y: Any) -> Any:
    return y @ np.linalg.inv(_gram(np, y)) @ np.linalg.inv(_gram(np, x)) @ _adjoint(np, x)


def _diagonal_of_r(np: Any, la: Any, a: Any) -> Any:
    r = np.linalg.qr(a, "r")
    return np.sum(np.log(np.abs(np.diagonal(r))))


FACTORS = np.vstack([orthogonal(5, "float64")[:, :2] * 2, orthogonal(3, "float64")[:, :2]])
SPREAD = lambda np, w: np.sum((w - np.mean(w)) ** 2)

CASES = [
    *(
        Degenerate(f"{name}, eigenvalues {point}{', complex' if dtype == 'complex128' else ''}", _of_w(f),
                   _of_hermitian(same), with_eigenvalues(*point, dtype=dtype), True)
        for point, dtype in (((1, 2, 2, 2), "float64"), ((2, 2, 2, 2), "float64"), ((1, 1, 3, 3), "complex128"))
        for name, f, same in (
            ("sum of w²", lambda np, w: np.sum(w**2), lambda np, a: np.trace(a @ a)),
            ("sum of w³", lambda np, w: np.sum(w**3), lambda np, a: np.trace(a @ a @ a)),
            ("product of w", lambda np, w: np.prod(w), lambda np, a: np.linalg.det(a)),
            ("sum of log w", lambda np, w: np.sum(np.log(w)), lambda np, a: np.linalg.slogdet(a)[1]),
            ("sum of 1 / w", lambda np, w: np.sum(1 / w), lambda np, a: np.trace(np.linalg.inv(a))),
            ("variance of w", SPREAD, lambda np, a: np.trace(a @ a) - np.trace(a) ** 2 / 4),
        )
    ),
    Degenerate("largest w, the others equal", _of_w(lambda np, w: w[-1]), None, with_eigenvalues(1, 1, 1, 3), True),
    Degenerate("projection to the space of w = 2", _projection, None, with_eigenvalues(1, 2, 2, 2), True),
    Degenerate("the same, complex", _projection, None, with_eigenvalues(1, 2, 2, 2, dtype="complex128"), True),
    Degenerate("overlap with one eigenvector, the others' w equal", _overlap, None, with_eigenvalues(1, 1, 1, 3), True),
    Degenerate("principal part, rank 2", _principal_part, None, with_eigenvalues(0, 0, 1, 2), True),
    *(
        Degenerate(f"{name}, singular values {s}, {m} by {n}{', complex' if dtype == 'complex128' else ''}", _of_s(f),
                   _plain(same), with_singular_values(m, n, *s, dtype=dtype))
        for m, n, s, dtype in (
            (4, 4, (2, 2, 1, 1), "float64"),
            (4, 3, (2, 2, 0), "float64"),
            (3, 4, (2, 0, 0), "complex128"),
        )
        for name, f, same in (
            ("sum of s²", lambda np, s: np.sum(s**2), lambda np, a: np.trace(_gram(np, a))),
            ("sum of s⁴", lambda np, s: np.sum(s**4), lambda np, a: np.trace(_gram(np, a) @ _gram(np, a))),
            ("sum of log(1 + s²)", lambda np, s: np.sum(np.log(1 + s**2)),
             lambda np, a: np.linalg.slogdet(np.eye(a.shape[1]) + _gram(np, a))[1]),
        )
    ),
    Degenerate("nuclear norm, s = 2, 2, 2", lambda np, la, a: np.linalg.norm(a, "nuc"), None,
               with_singular_values(5, 3, 2, 2, 2)),
    Degenerate("spectral norm, s = 3, 1, 1", lambda np, la, a: np.linalg.norm(a, 2), None,
               with_singular_values(4, 3, 3, 1, 1)),
    Degenerate("condition, s = 3, 2, 2, 1", lambda np, la, a: np.linalg.cond(a), None,
               with_singular_values(4, 4, 3, 2, 2, 1)),
    Degenerate("pinv, s = 2, 2, 2", lambda np, la, a: np.sum(B3.T * np.linalg.pinv(a)),
               lambda np, la, a: np.sum(B3.T * (np.linalg.inv(_gram(np, a)) @ _adjoint(np, a))),
               with_singular_values(5, 3, 2, 2, 2)),
    Degenerate("pinv, rank 2 of 3", _through_factors(lambda np, x, y: np.sum(B3.T * np.linalg.pinv(x @ y.T))),
               _through_factors(lambda np, x, y: np.sum(B3.T * _pinv_of_factors(np, x, y))), FACTORS),
    Degenerate("lstsq, rank 2 of 3", _through_factors(lambda np, x, y: np.sum(np.linalg.lstsq(x @ y.T, Y5)[0] ** 2)),
               _through_factors(lambda np, x, y: np.sum((_pinv_of_factors(np, x, y) @ Y5) ** 2)), FACTORS),
    Degenerate("lstsq, s = 2, 2, 2", lambda np, la, a: np.sum(np.linalg.lstsq(a, Y5)[0] ** 3),
               lambda np, la, a: np.sum(np.linalg.solve(_gram(np, a), a.T @ Y5) ** 3),
               with_singular_values(5, 3, 2, 2, 2)),
    Degenerate("polar factor U, s = 2, 2, 2", lambda np, la, a: np.sum(B3 * la.qdwh(a)[0]), None,
               with_singular_values(5, 3, 2, 2, 2)),
    Degenerate("polar factor H, s = 2, 2, 2", lambda np, la, a: np.sum(B3[:3] * la.qdwh(a)[1]), None,
               with_singular_values(5, 3, 2, 2, 2)),
    Degenerate("log det by qr, s = 2, 2, 2", _diagonal_of_r,
               lambda np, la, a: np.linalg.slogdet(_gram(np, a))[1] / 2, with_singular_values(5, 3, 2, 2, 2)),
]  # fmt: skip


def directions(case: Degenerate) -> list[Any]:
    """Two directions, among Hermitian matrices where the function is one of these."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(2):
        t = rng.normal(size=case.point.shape)
        if case.point.dtype.kind == "c":
            t = t + 1j * rng.normal(size=case.point.shape)
        found.append((t + t.conj().T) / 2 if case.hermitian else t)
    return found


def expected(lib: Any, np_: Any, la: Any, case: Degenerate) -> tuple[float, float, float]:
    """The derivative in a direction, and the second derivatives in it twice, and in it and another."""
    d, e = directions(case)
    a = case.point
    if case.same is not None:
        f = lambda a: case.same(np_, la, a)  # type: ignore[misc]
        along = lambda a, t: lib.jvp(f, (a,), (t,))[1]
        second = lambda t: float(lib.jvp(lambda a: along(a, d), (a,), (t,))[1])
        return float(along(a, d)), second(d), second(e)
    compiled = lib.jit(lambda a: case.function(np_, la, a))
    g = lambda a: float(compiled(a))
    h, k = 1e-5, 1e-3
    mixed = lambda h: sum(s * t * g(a + h * (s * d + t * e)) for s in (1, -1) for t in (1, -1)) / (4 * h * h)
    twice = lambda h: (g(a + h * d) - 2 * g(a) + g(a - h * d)) / h**2
    better = lambda f: (4 * f(k) - f(2 * k)) / 3
    return (g(a + h * d) - g(a - h * d)) / (2 * h), better(twice), better(mixed)


def found(lib: Any, np_: Any, la: Any, case: Degenerate) -> dict[str, list[float]]:
    """The same by differentiation of the function itself: the gradient, and the Hessian."""
    f = lambda a: case.function(np_, la, a)
    d, e = directions(case)
    pairing = lambda g, t: float(np.real(np.sum(np.asarray(g) * t)))
    gradient = lib.grad(f)
    along = lambda t: pairing(lib.jvp(gradient, (case.point,), (t,))[1], d)
    forward = lambda a: lib.jvp(f, (a,), (d,))[1]
    return {
        "gradient": [pairing(gradient(case.point), d), float(forward(case.point))],
        "Hessian": [along(d), along(e)],
        "forward over forward": [float(lib.jvp(forward, (case.point,), (t,))[1]) for t in (d, e)],
    }


def status(found: list[float], expected: list[float]) -> str:
    if not np.isfinite(found).all():
        return "nan"
    return "right" if np.allclose(found, expected, rtol=1e-4, atol=1e-4) else "wrong"


def recorded_statuses(lib: Any, np_: Any, la: Any) -> dict[str, list[str]]:
    """For each case, whether a library's gradient and Hessian are right, NaN, wrong, or refused."""
    statuses: dict[str, list[str]] = {}
    for case in CASES:
        first, twice, mixed = expected(lib, np_, la, case)
        try:
            values = found(lib, np_, la, case)
        except Exception as error:
            print(f"{case.name}: {type(error).__name__}")
            statuses[case.name] = ["refused", "refused"]
            continue
        statuses[case.name] = [status(values["gradient"], [first] * 2), status(values["Hessian"], [twice, mixed])]
    return statuses


def recorded() -> dict[str, list[str]]:
    """What is recorded of JAX."""
    known: dict[str, list[str]] = json.loads(RECORDED.read_text())["statuses"]
    return known


if __name__ == "__main__":
    print("| function | JAX 0.10.2: gradient | Hessian |\n|---|---|---|")
    for name, (gradient, hessian) in recorded().items():
        print(f"| {name} | {gradient} | {hessian} |")
