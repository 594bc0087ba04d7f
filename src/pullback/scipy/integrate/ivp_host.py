"""Solutions of concrete problems on the host: SciPy's methods with the user's functions as compiled programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core.array import as_array
from pullback.core.errors import ShapeError
from pullback.core.interrupts import imported
from pullback.core.jaxpr import ClosedJaxpr
from pullback.scipy.integrate.host_programs import by_numpy
from pullback.scipy.integrate.ivp_problems import Problem, System, output
from pullback.scipy.integrate.runge_kutta import nested_powers
from pullback.transforms.autodiff.jvp import jvp
from pullback.transforms.autodiff.vmap import vmap
from pullback.transforms.jit.jit import jit
from pullback.transforms.traces.derived import cached_by_jaxpr


@cached_by_jaxpr
def _compiled(program: ClosedJaxpr, rest: Any) -> dict[str, Callable[..., Any]]:
    """Return the functions of a problem, compiled, of a time, a state and the parameters."""
    problem = Problem(program, *rest)

    def system(parameters: Any) -> System:
        return System(problem, parameters)

    return {
        "slope": jit(lambda t, y, p: system(p).slope(t, y)),
        "jacobian": jit(lambda t, y, p: system(p).jacobian(t, y)),
        **{f"event {k}": jit(lambda t, y, p, k=k: system(p).event(k, t, y)) for k in range(len(problem.events))},
        "products": jit(lambda t, y, p, seeds: _products(system(p), t, y, seeds)),
    }


def _products(system: System, t: Any, y: Any, seeds: Any) -> Any:
    return vmap(lambda v: jvp(lambda y: system.slope(t, y), (y,), (v,))[1])(seeds)


class Sparse:
    """A sparse Jacobian from few products: columns that share no row are computed together.

    Source: A. R. Curtis, M. J. D. Powell and J. K. Reid 1974, "On the estimation of sparse Jacobian matrices".

    Args:
      pattern: a matrix, sparse or dense, that is zero where the Jacobian always is.
      n: the number of unknowns.
    """

    def __init__(self, pattern: Any, n: int) -> None:
        pattern = imported("scipy.sparse").csc_array(pattern)
        if pattern.shape != (n, n):
            raise ShapeError(f"solve_ivp: jac_sparsity must have shape {(n, n)}, got {pattern.shape}")
        self.starts, self.rows = pattern.indptr, pattern.indices
        self.columns = np.repeat(np.arange(n), np.diff(self.starts))
        self.colours = self._coloured(n)
        self.n = n

    def _coloured(self, n: int) -> Any:
        """Return a colour of each column, greedily."""
        taken: list[set[int]] = [set() for _ in range(n)]
        colours = np.zeros(n, np.int64)
        for j in range(n):
            rows = self.rows[self.starts[j] : self.starts[j + 1]]
            used = set().union(*(taken[i] for i in rows))
            colours[j] = next(c for c in range(n) if c not in used)
            for i in rows:
                taken[i].add(int(colours[j]))
        return colours

    def seeds(self, dtype: Any) -> Any:
        seeds = np.zeros((int(self.colours.max(initial=-1)) + 1, self.n), dtype)
        seeds[self.colours, np.arange(self.n)] = 1
        return seeds

    def matrix(self, products: Any) -> Any:
        data = products[self.colours[self.columns], self.rows]
        return imported("scipy.sparse").csc_matrix((data, self.rows, self.starts), (self.n, self.n))


def solution(
    problem: Problem, y: Any, begin: Any, end: Any, times: Any, parameters: Sequence[Any], dense: bool,
    sparsity: Any = None, jacobian: bool = True, options: Any = None,
) -> Any:  # fmt: skip
    """Return SciPy's result.

    Args:
      problem: the problem.
      y, begin, end, times, parameters: as for :func:`ivp_steps.planned`, concrete; the times may be None.
      dense: whether the result has polynomials.
      sparsity: the pattern of the Jacobian, or None for a dense one.
      jacobian: whether to pass the Jacobian to the methods that use one.
      options: more of SciPy's options.
    """
    functions = _compiled(problem.program, problem[1:])
    parameters = [as_array(x) for x in parameters]
    plain = by_numpy(output(problem.program, 0))
    dtype, time = np.dtype(y.dtype), np.dtype(begin.dtype)

    def called(name: str) -> Callable[[Any, Any], Any]:
        function = functions[name]
        if name == "slope" and plain is not None:
            slope = plain([np.asarray(x)[()] for x in parameters])
            return lambda t, y: slope(time.type(t), y.astype(dtype, copy=False))

        def call(t: Any, y: Any) -> Any:
            return np.asarray(function(time.type(t), y.astype(dtype, copy=False), parameters))

        return call

    events = []
    for k, event in enumerate(problem.events):
        call = called(f"event {k}")
        function = lambda t, y, call=call: float(call(t, y))
        function.terminal, function.direction = event.terminal, event.direction  # type: ignore[attr-defined]
        events.append(function)
    more = dict(options or {})
    if problem.method in ("Radau", "BDF", "LSODA") and jacobian:
        more["jac"] = called("jacobian")
        if sparsity is not None:
            sparse = Sparse(sparsity, len(y))
            products, seeds = functions["products"], sparse.seeds(dtype)
            more["jac"] = lambda t, y: sparse.matrix(
                np.asarray(products(time.type(t), y.astype(dtype, copy=False), parameters, seeds))
            )
    double = np.complex128 if dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        return imported("scipy.integrate").solve_ivp(
            called("slope"), (float(begin), float(end)), np.asarray(y, double), problem.method,
            None if times is None else np.asarray(times, np.float64), dense, events or None, rtol=problem.rtol,
            atol=np.asarray(problem.atol), first_step=problem.first_step, max_step=problem.max_step, **more,
        )  # fmt: skip


def polynomials(interpolants: Sequence[Any], degree: int) -> Any:
    """Return the coefficients of SciPy's interpolants, (steps, degree + 1, n), of times from 0 to 1 within each step.

    They are read where the interpolant has them, and else found from its values at Chebyshev's points.
    """
    found = np.zeros((len(interpolants), degree + 1, len(interpolants[0](interpolants[0].t))), complex)
    for i, piece in enumerate(interpolants):
        found[i, : degree + 1] = _coefficients(piece, degree)
    return found if found.imag.any() else found.real


def _coefficients(piece: Any, degree: int) -> Any:
    if hasattr(piece, "Q"):  # RK23, RK45; Radau, whose coefficients contain the size
        return np.concatenate([piece.y_old[None], piece.Q.T * getattr(piece, "h", 1) ** (not _is_radau(piece))])
    if hasattr(piece, "F"):  # DOP853
        return nested_powers().T @ piece.F + np.eye(degree + 1, 1) * piece.y_old
    order = min(degree, getattr(piece, "order", len(getattr(piece, "p", ())) - 1))
    nodes = 0.5 - 0.5 * np.cos(np.pi * (2 * np.arange(order + 1) + 1) / (2 * order + 2))
    values = piece(piece.t_old + nodes * (piece.t - piece.t_old)).T
    return np.pad(np.linalg.solve(np.vander(nodes, increasing=True), values), ((0, degree - order), (0, 0)))


def _is_radau(piece: Any) -> bool:
    return type(piece).__name__ == "RadauDenseOutput"
