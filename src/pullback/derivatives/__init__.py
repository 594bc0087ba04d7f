"""Derivatives beyond gradients and Jacobians: second-order products, estimates, Laplacians, modes from each other."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pullback.derivatives.estimates import Estimate as Estimate
    from pullback.derivatives.estimates import hessian_diag as hessian_diag
    from pullback.derivatives.estimates import hessian_trace as hessian_trace
    from pullback.derivatives.estimates import stochastic_diag as stochastic_diag
    from pullback.derivatives.estimates import stochastic_trace as stochastic_trace
    from pullback.derivatives.krylov import Spectrum as Spectrum
    from pullback.derivatives.krylov import Tridiagonal as Tridiagonal
    from pullback.derivatives.krylov import lanczos as lanczos
    from pullback.derivatives.krylov import spectrum as spectrum
    from pullback.derivatives.laplacians import ForwardLaplacian as ForwardLaplacian
    from pullback.derivatives.laplacians import forward_laplacian as forward_laplacian
    from pullback.derivatives.laplacians import laplacian as laplacian
    from pullback.derivatives.modes import jvp_from_vjp as jvp_from_vjp
    from pullback.derivatives.modes import vjp_from_jvp as vjp_from_jvp
    from pullback.derivatives.products import CurvatureOperator as CurvatureOperator
    from pullback.derivatives.products import empirical_fisher as empirical_fisher
    from pullback.derivatives.products import fisher as fisher
    from pullback.derivatives.products import gauss_newton as gauss_newton
    from pullback.derivatives.products import hessian_operator as hessian_operator
    from pullback.derivatives.products import hvp as hvp

_NAMES = {
    "estimates": ("Estimate", "hessian_diag", "hessian_trace", "stochastic_diag", "stochastic_trace"),
    "krylov": ("Spectrum", "Tridiagonal", "lanczos", "spectrum"),
    "laplacians": ("ForwardLaplacian", "forward_laplacian", "laplacian"),
    "modes": ("jvp_from_vjp", "vjp_from_jvp"),
    "products": ("CurvatureOperator", "empirical_fisher", "fisher", "gauss_newton", "hessian_operator", "hvp"),
}
"""The public names of each module, which is imported when one of them is first used."""
_MODULES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'pullback.derivatives' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"pullback.derivatives.{_MODULES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return __all__
