# Made by `make stubs` from the module itself, for type checkers and editors.

from pullback.derivatives.data_types import check_data_type as check_data_type
from pullback.derivatives.data_types import difference as difference
from pullback.derivatives.data_types import in_coordinates as in_coordinates
from pullback.derivatives.data_types import local_rule as local_rule
from pullback.derivatives.data_types import move as move
from pullback.derivatives.data_types import register_data_type as register_data_type
from pullback.derivatives.data_types import zero_tangent as zero_tangent
from pullback.derivatives.estimates import Estimate as Estimate
from pullback.derivatives.estimates import hessian_diag as hessian_diag
from pullback.derivatives.estimates import hessian_trace as hessian_trace
from pullback.derivatives.estimates import stochastic_diag as stochastic_diag
from pullback.derivatives.estimates import stochastic_trace as stochastic_trace
from pullback.derivatives.jets import jet as jet
from pullback.derivatives.jets import taylor as taylor
from pullback.derivatives.kept_parts import preaccumulate as preaccumulate
from pullback.derivatives.krylov import Spectrum as Spectrum
from pullback.derivatives.krylov import Tridiagonal as Tridiagonal
from pullback.derivatives.krylov import lanczos as lanczos
from pullback.derivatives.krylov import spectrum as spectrum
from pullback.derivatives.laplacians import ForwardLaplacian as ForwardLaplacian
from pullback.derivatives.laplacians import forward_laplacian as forward_laplacian
from pullback.derivatives.laplacians import laplacian as laplacian
from pullback.derivatives.mixed import derivative_tensor as derivative_tensor
from pullback.derivatives.modes import jvp_from_vjp as jvp_from_vjp
from pullback.derivatives.modes import vjp_from_jvp as vjp_from_jvp
from pullback.derivatives.patterns.colouring import Colouring as Colouring
from pullback.derivatives.patterns.colouring import colour_hessian as colour_hessian
from pullback.derivatives.patterns.colouring import colour_jacobian as colour_jacobian
from pullback.derivatives.patterns.dependence import sparsity as sparsity
from pullback.derivatives.patterns.hessian import hessian_pattern as hessian_pattern
from pullback.derivatives.patterns.hessian import sparse_hessian as sparse_hessian
from pullback.derivatives.patterns.jacobian import jacobian_pattern as jacobian_pattern
from pullback.derivatives.patterns.jacobian import sparse_jacobian as sparse_jacobian
from pullback.derivatives.patterns.pattern import Pattern as Pattern
from pullback.derivatives.products import CurvatureOperator as CurvatureOperator
from pullback.derivatives.products import empirical_fisher as empirical_fisher
from pullback.derivatives.products import fisher as fisher
from pullback.derivatives.products import gauss_newton as gauss_newton
from pullback.derivatives.products import hessian_operator as hessian_operator
from pullback.derivatives.products import hvp as hvp

__all__ = [
    "Colouring", "CurvatureOperator", "Estimate", "ForwardLaplacian", "Pattern", "Spectrum", "Tridiagonal",
    "check_data_type", "colour_hessian", "colour_jacobian", "derivative_tensor", "difference", "empirical_fisher",
    "fisher", "forward_laplacian", "gauss_newton", "hessian_diag", "hessian_operator", "hessian_pattern",
    "hessian_trace", "hvp", "in_coordinates", "jacobian_pattern", "jet", "jvp_from_vjp", "lanczos", "laplacian",
    "local_rule", "move", "preaccumulate", "register_data_type", "sparse_hessian", "sparse_jacobian", "sparsity",
    "spectrum", "stochastic_diag", "stochastic_trace", "taylor", "vjp_from_jvp", "zero_tangent",
]
