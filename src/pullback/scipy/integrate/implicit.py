"""Implicit methods of ``solve_ivp``: Radau IIA of order 5, and Rodas5P; both also for mass matrices, singular ones too.

Sources: E. Hairer and G. Wanner, Solving Ordinary Differential Equations II, 2nd ed., section IV.8 (Radau IIA);
G. Steinebach 2023, "Construction of Rosenbrock-Wanner method Rodas5P and numerical benchmarks within the Julia
Differential Equations package", BIT 63 (the coefficients of Rodas5P).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as pnp
from pullback.control.loops import while_loop
from pullback.control.solves import custom_root
from pullback.primitives import elementwise as ops
from pullback.primitives.linalg.lapack import product
from pullback.primitives.linalg.lu import linear_solve_p, lu
from pullback.primitives.operands import stop_gradient
from pullback.scipy.integrate.ivp_methods import GROW, SAFETY, SHRINK, Attempt, Made, finite, real, rms, weighted
from pullback.scipy.integrate.ivp_problems import System
from pullback.scipy.optimize.problems import dense_solution
from pullback.transforms.autodiff.jvp import jvp


class Factored:
    """A matrix whose factors several solutions use; the solutions have derivatives by the matrix too."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self.factors, _, self.permutation = lu(stop_gradient(matrix))

    def solve(self, b: Any) -> Any:
        """Return the x with ``matrix @ x = b``."""
        return linear_solve_p.bind(self.matrix, self.factors, self.permutation, b[:, None], transpose=False)[:, 0]


def mass_times(mass: Any, x: Any) -> Any:
    """Multiply a vector by the mass matrix, where None is the identity."""
    return x if mass is None else product(mass, x[:, None])[:, 0]


def combination(mass: Any, by_mass: Any, jacobian: Any, by_jacobian: Any) -> Any:
    """Return ``by_mass * M - by_jacobian * J`` for numbers, where None stands for the identity M."""
    matrix = np.eye(jacobian.shape[0], dtype=jacobian.dtype) if mass is None else mass
    return by_mass * matrix - by_jacobian * jacobian


class Newton(NamedTuple):
    """The state of a simplified Newton iteration.

    Attributes:
      x: the unknowns.
      count: the number of iterations.
      size: the norm of the last change.
      status: 0 while it runs, 1 if it converged, -1 if it will not.
    """

    x: Any
    count: Any
    size: Any
    status: Any


def newton(x: Any, change: Callable[[Any], Any], norm: Callable[[Any], Any], tolerance: float, most: int) -> Newton:
    """Apply changes until they are small (Hairer and Wanner, section IV.8, stopping criterion).

    Args:
      x: the first unknowns.
      change: from unknowns to their change.
      norm: from a change to a number, to compare with the tolerance.
      tolerance: how far from the solution the last unknowns may be, by an estimate.
      most: the largest number of iterations.
    """

    def step(now: Newton) -> Newton:
        moved = change(now.x)
        size = norm(moved)
        rate = ops.where(now.count > 0, size / ops.where(now.size > 0, now.size, 1), 0)
        ratio = rate / ops.where(rate < 1, 1 - rate, 1)
        left = ops.convert_element_type(most - now.count - 1, size.dtype)
        later = pnp.maximum(rate, 1e-30) ** left * ratio * size
        hopeless = (now.count > 0) & ((rate >= 1) | (later > tolerance))
        good = ops.eq(size, 0) | ((now.count > 0) & (ratio * size < tolerance))
        status = pnp.where(good, np.int32(1), pnp.where(hopeless | ~(size < np.inf), np.int32(-1), np.int32(0)))
        return Newton(ops.where(status < 0, now.x, now.x + moved), now.count + 1, size, status)

    zero = pnp.zeros((), np.int32)
    first = Newton(x, zero, norm(x) * 0, zero)
    return while_loop(lambda now: ops.eq(now.status, 0) & (now.count < most), step, first)


def attached(equation: Callable[[Any], Any], root: Any) -> Any:
    """Return a vector with the derivatives that an equation gives it, to any order."""
    return custom_root(equation, stop_gradient(root), lambda _, x: x, dense_solution)


# Radau IIA -----------------------------------------------------------------------------------------------------------

_ROOT6 = 6**0.5
NODES = np.array([(4 - _ROOT6) / 10, (4 + _ROOT6) / 10, 1.0])
STAGES = np.array(
    [
        [(88 - 7 * _ROOT6) / 360, (296 - 169 * _ROOT6) / 1800, (-2 + 3 * _ROOT6) / 225],
        [(296 + 169 * _ROOT6) / 1800, (88 + 7 * _ROOT6) / 360, (-2 - 3 * _ROOT6) / 225],
        [(16 - _ROOT6) / 36, (16 + _ROOT6) / 36, 1 / 9],
    ]
)
_INVERSE = np.linalg.inv(STAGES)
_POWERS = np.linalg.inv(NODES[:, None] ** np.arange(1, 4))
"""From the stages' differences to the coefficients of the polynomial through them: of x, x² and x³."""
_ERROR = np.array([-13 - 7 * _ROOT6, -13 + 7 * _ROOT6, -1]) / 3
_MOST = 6


def _eigensystem() -> tuple[Any, Any, Any]:
    """Return the real and one complex eigenvalue of the inverse of ``STAGES``, their vectors, and the inverse rows."""
    values, vectors = np.linalg.eig(_INVERSE)
    order = [int(np.argmin(abs(values.imag))), int(np.argmax(values.imag)), int(np.argmin(values.imag))]
    values, vectors = values[order], vectors[:, order]
    vectors[:, 0] /= vectors[2, 0]
    return values, vectors, np.linalg.inv(vectors)


_VALUES, _VECTORS, _ROWS = _eigensystem()


class Radau:
    """The method Radau IIA; see :class:`pullback.scipy.integrate.ivp_methods.Method`.

    The memory is the polynomial of the last step, its size and its error, which predict the stages and the next size.
    """

    degree = 3
    estimate = 3

    def __init__(self, system: System) -> None:
        self.system = system
        self.problem = system.problem

    def start(self, t: Any, y: Any, h: Any) -> tuple[Any, Any]:
        flat = pnp.concatenate([y[None], pnp.zeros((3, *y.shape), y.dtype)])
        none = ops.mul(t, 0)
        return (flat, none, none), (y, pnp.zeros((3, *y.shape), y.dtype))

    def _solved(self, t: Any, y: Any, h: Any, memory: Any, tolerance: float, most: int) -> tuple[Newton, Any, Any]:
        """Solve for the stages; return the last iterate, (3, n), the matrix of the error, and the mass matrix."""
        system, size = self.system, real(h, y)
        pieces, before, _ = memory
        part = ops.where(before > 0, h / ops.where(ops.eq(before, 0), 1, before), 0)
        part = real(ops.where(before < 0, h / ops.where(ops.eq(before, 0), 1, before), part), y)
        z = pnp.stack([_predicted(pieces, part * float(c)) for c in NODES])
        jacobian, mass = system.jacobian(t, y), system.mass(t, y)
        first = Factored(combination(mass, _VALUES[0].real / size, jacobian, 1.0))
        double = np.result_type(y.dtype, np.complex64)
        whole = ops.convert_element_type(jacobian, double)
        wide = None if mass is None else ops.convert_element_type(mass, double)
        second = Factored(
            combination(wide, ops.mul(ops.convert_element_type(1 / size, double), _VALUES[1]), whole, 1.0)
        )
        scale = self.problem.tolerance(abs(y))

        def change(z: Any) -> Any:
            f = _slopes(system, t, y, h, z)
            inner = [mass_times(mass, weighted(row, z)) / size for row in _INVERSE]
            residual = f - pnp.stack(inner)
            one = first.solve(weighted(_ROWS[0].real, residual))
            parts = ops.complex(weighted(_ROWS[1].real, residual), weighted(_ROWS[1].imag, residual))
            two = second.solve(parts)
            moved = [
                float(a.real) * one + 2 * (float(b.real) * two.real - float(b.imag) * two.imag)
                for a, b in zip(_VECTORS[:, 0], _VECTORS[:, 1], strict=True)
            ]
            return pnp.stack(moved)

        return newton(z, change, lambda x: rms(x / scale), tolerance, most), first, mass

    def attempt(self, t: Any, y: Any, h: Any, memory: Any) -> Attempt:
        tolerance = max(10 * np.finfo(y.dtype).eps / self.problem.rtol, min(0.03, self.problem.rtol**0.5))
        found, matrix, mass = self._solved(t, y, h, memory, float(tolerance), _MOST)
        z, size = found.x, real(h, y)
        after = y + z[2]
        estimate = mass_times(mass, weighted(_ERROR, z)) / size
        scale = self.problem.tolerance(pnp.maximum(abs(y), abs(after)))
        error = matrix.solve(self.system.slope(t, y) + estimate)
        error = pnp.maximum(ops.convert_element_type(finite(rms(error / scale)), h.dtype), 1e-10)
        converged = found.status > 0
        accepted = converged & (error < 1)
        _, before, last = memory
        safety = SAFETY * (2 * _MOST + 1) / (2 * _MOST + ops.convert_element_type(found.count, h.dtype))
        trend = abs(h / ops.where(ops.eq(before, 0), 1, before)) * (last / error) ** 0.25
        factor = safety * ops.where(ops.eq(before, 0), 1, pnp.minimum(1, trend)) * error**-0.25
        factor = ops.where(accepted, pnp.minimum(GROW, factor), pnp.clip(factor, SHRINK, 0.9))
        factor = ops.where(converged, factor, 0.5)
        trail = y, z
        made = Made(after, (self.polynomial(trail), h, error), trail)
        return Attempt(accepted, factor, made, np.int32(0), 3 * found.count + 1)

    def step(self, t: Any, y: Any, h: Any, memory: Any, note: Any) -> Made:
        eps = float(np.finfo(y.dtype).eps)
        time, state, width = (stop_gradient(x) for x in (t, y, h))
        start = tuple(stop_gradient(x) for x in memory)
        z = self._solved(time, state, width, start, 100 * eps / max(self.problem.rtol, eps), 12)[0].x
        size = real(h, y)

        def equation(flat: Any) -> Any:
            z = flat.reshape(3, *y.shape)
            mass = self.system.mass(t, y)
            inner = [mass_times(mass, weighted(row, z)) / size for row in _INVERSE]
            return (_slopes(self.system, t, y, h, z) - pnp.stack(inner)).reshape(-1)

        z = attached(equation, z.reshape(-1)).reshape(3, *y.shape)
        trail = y, z
        return Made(y + z[2], (self.polynomial(trail), h, ops.mul(h, 0)), trail)

    def polynomial(self, trail: Any) -> Any:
        y, z = trail
        return pnp.stack([y, *(weighted(row, z) for row in _POWERS)])


def _predicted(pieces: Any, part: Any) -> Any:
    """Return the change of the last polynomial from the end of its step to a part of a step beyond it."""
    x = 1 + part
    return (x - 1) * pieces[1] + (x * x - 1) * pieces[2] + (x * x * x - 1) * pieces[3]


def _slopes(system: System, t: Any, y: Any, h: Any, z: Any) -> Any:
    return pnp.stack([system.slope(t + h * float(c), y + z[i]) for i, c in enumerate(NODES)])


# Rodas5P -------------------------------------------------------------------------------------------------------------

_GAMMA = 0.21193756319429014
_A = (
    (),
    (3.0,),
    (2.849394379747939, 0.45842242204463923),
    (-6.954028509809101, 2.489845061869568, -10.358996098473584),
    (2.8029986275628964, 0.5072464736228206, -0.3988312541770524, -0.04721187230404641),
    (-7.502846399306121, 2.561846144803919, -11.627539656261098, -0.18268767659942256, 0.030198172008377946),
)
"""The weights of the earlier stages in the state of a stage; the stages after the sixth add one stage each."""
_C = (
    (),
    (-14.155112264123755,),
    (-17.97296035885952, -2.859693295451294),
    (147.12150275711716, -1.41221402718213, 71.68940251302358),
    (165.43517024871676, -0.4592823456491126, 42.90938336958603, -5.961986721573306),
    (24.854864614690072, -3.0009227002832186, 47.4931110020768, 5.5814197821558125, -0.6610691825249471),
    (30.91273214028599, -3.1208243349937974, 77.79954646070892, 34.28646028294783, -19.097331116725623,
     -28.087943162872662),
    (37.80277123390563, -3.2571969029072276, 112.26918849496327, 66.9347231244047, -40.06618937091002,
     -54.66780262877968, -9.48861652309627),
)  # fmt: skip
"""The weights of the earlier stages, over the size of the step, on the right-hand side of a stage."""
_TIMES = (0.0, 0.6358126895828704, 0.4095798393397535, 0.9769306725060716, 0.4288403609558664, 1.0, 1.0, 1.0)
_SLOPES = (0.21193756319429014, -0.42387512638858027, -0.3384627126235924, 1.8046452872882734, 2.325825639765069)
"""The weights of the derivative by time in the first stages."""
_DENSE = np.array([
    [25.948786856663858, -2.5579724845846235, 10.433815404888879, -2.3679251022685204, 0.524948541321073,
     1.1241088310450404, 0.4272876194431874, -0.17202221070155493],
    [-9.91568850695171, -0.9689944594115154, 3.0438037242978453, -24.495224566215796, 20.176138334709044,
     15.98066361424651, -6.789040303419874, -6.710236069923372],
    [11.419903575922262, 2.8879645146136994, 72.92137995996029, 80.12511834622643, -52.072871366152654,
     -59.78993625266729, -0.15582684282751913, 4.883087185713722],
])  # fmt: skip
"""The weights of the stages in the polynomial."""


class Rodas:
    """The method Rodas5P, which solves eight linear equations with one matrix a step."""

    degree = 4
    estimate = 4

    def __init__(self, system: System) -> None:
        self.system = system
        self.problem = system.problem

    def start(self, t: Any, y: Any, h: Any) -> tuple[Any, Any]:
        return (), (y, y, pnp.zeros((3, *y.shape), y.dtype))

    def step(self, t: Any, y: Any, h: Any, memory: Any, note: Any = None) -> Made:
        return self._made(t, y, h)[0]

    def _made(self, t: Any, y: Any, h: Any) -> tuple[Made, Any]:
        """Return a step and its last stage, which estimates the error."""
        system, size = self.system, real(h, y)
        jacobian, mass = system.jacobian(t, y), system.mass(t, y)
        matrix = Factored(combination(mass, 1 / (size * _GAMMA), jacobian, 1.0))
        slope, by_time = jvp(lambda t: system.slope(t, y), (t,), (ops.mul(t, 0) + 1,))
        stages: list[Any] = []
        state = y
        for i in range(8):
            if i < 6:
                state = y + weighted(_A[i], stages) if i else y
            else:
                state = state + stages[-1]
            right = system.slope(t + h * _TIMES[i], state) if i else slope
            if i:
                right = right + mass_times(mass, weighted(_C[i], stages)) / size
            if i < 5:
                right = right + _SLOPES[i] * size * by_time
            stages.append(matrix.solve(right))
        after = state + stages[-1]
        bends = pnp.stack([weighted(row, stages) for row in _DENSE])
        return Made(after, (), (y, after, bends)), stages[-1]

    def attempt(self, t: Any, y: Any, h: Any, memory: Any) -> Attempt:
        made, last = self._made(t, y, h)
        scale = self.problem.tolerance(pnp.maximum(abs(y), abs(made.y)))
        error = ops.convert_element_type(finite(rms(last / scale)), h.dtype)
        accepted = error < 1
        factor = SAFETY * pnp.maximum(error, 1e-30) ** (-1 / 5)
        factor = ops.where(accepted, pnp.minimum(GROW, factor), pnp.maximum(SHRINK, factor))
        return Attempt(accepted, factor, made, np.int32(0), np.int32(8))

    def polynomial(self, trail: Any) -> Any:
        # (1 - x) y + x (after + (1 - x) (b0 + x (b1 + x b2)))
        y, after, bends = trail
        b0, b1, b2 = bends[0], bends[1], bends[2]
        return pnp.stack([y, after - y + b0, b1 - b0, b2 - b1, -b2])
