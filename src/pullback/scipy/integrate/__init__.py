"""Integrals of functions and of samples, and differential equations: ``pullback.scipy.integrate``."""

from __future__ import annotations

from pullback.core.faces import face
from pullback.numpy.statistics import trapezoid
from pullback.scipy.integrate.adaptive import quad
from pullback.scipy.integrate.brownian import BrownianPath
from pullback.scipy.integrate.bvp import BVPResult, solve_bvp
from pullback.scipy.integrate.cubature import CubatureRegion, CubatureResult, cubature
from pullback.scipy.integrate.delays import solve_dde
from pullback.scipy.integrate.grids import Trajectory
from pullback.scipy.integrate.ivp import OdeResult, OdeSolution, solve_ivp
from pullback.scipy.integrate.nested import dblquad, nquad, tplquad
from pullback.scipy.integrate.samples import cumulative_trapezoid, simpson
from pullback.scipy.integrate.stochastic import solve_sde
from pullback.scipy.integrate.symplectic import PhaseTrajectory, solve_hamiltonian, solve_symplectic

__all__ = [
    "BVPResult", "BrownianPath", "CubatureRegion", "CubatureResult", "OdeResult", "OdeSolution", "PhaseTrajectory",
    "Trajectory", "cubature", "cumulative_trapezoid", "dblquad", "nquad", "quad", "simpson", "solve_bvp", "solve_dde",
    "solve_hamiltonian", "solve_ivp", "solve_sde", "solve_symplectic", "tplquad", "trapezoid",
]  # fmt: skip
face(globals())
