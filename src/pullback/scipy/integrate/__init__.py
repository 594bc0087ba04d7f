"""Integrals of functions and of samples: ``pullback.scipy.integrate``."""

from __future__ import annotations

from pullback.core.faces import face
from pullback.numpy.statistics import trapezoid
from pullback.scipy.integrate.adaptive import quad
from pullback.scipy.integrate.samples import cumulative_trapezoid, simpson

__all__ = ["cumulative_trapezoid", "quad", "simpson", "trapezoid"]
face(globals())
