"""Integrals of functions and of samples, and differential equations: ``pullback.scipy.integrate``."""

from __future__ import annotations

from pullback.core.faces import face
from pullback.numpy.statistics import trapezoid
from pullback.scipy.integrate.adaptive import quad
from pullback.scipy.integrate.ivp import OdeResult, OdeSolution, solve_ivp
from pullback.scipy.integrate.samples import cumulative_trapezoid, simpson

__all__ = ["OdeResult", "OdeSolution", "cumulative_trapezoid", "quad", "simpson", "solve_ivp", "trapezoid"]
face(globals())
