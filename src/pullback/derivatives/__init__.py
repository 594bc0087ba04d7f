"""Derivatives beyond gradients and Jacobians: sparse, of any order, estimated, pre-accumulated, and of data types."""

from typing import TYPE_CHECKING

from pullback.core.faces import face as _face

if TYPE_CHECKING:
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
    from pullback.derivatives.preaccumulation import preaccumulate as preaccumulate
    from pullback.derivatives.products import CurvatureOperator as CurvatureOperator
    from pullback.derivatives.products import empirical_fisher as empirical_fisher
    from pullback.derivatives.products import fisher as fisher
    from pullback.derivatives.products import gauss_newton as gauss_newton
    from pullback.derivatives.products import hessian_operator as hessian_operator
    from pullback.derivatives.products import hvp as hvp
    from pullback.derivatives.sparse.colouring import Colouring as Colouring
    from pullback.derivatives.sparse.colouring import colour_hessian as colour_hessian
    from pullback.derivatives.sparse.colouring import colour_jacobian as colour_jacobian
    from pullback.derivatives.sparse.dependence import sparsity as sparsity
    from pullback.derivatives.sparse.hessian import hessian_pattern as hessian_pattern
    from pullback.derivatives.sparse.hessian import sparse_hessian as sparse_hessian
    from pullback.derivatives.sparse.jacobian import jacobian_pattern as jacobian_pattern
    from pullback.derivatives.sparse.jacobian import sparse_jacobian as sparse_jacobian
    from pullback.derivatives.sparse.pattern import Pattern as Pattern

_face(
    globals(),
    {
        ".data_types": "check_data_type difference in_coordinates local_rule move register_data_type zero_tangent",
        ".estimates": "Estimate hessian_diag hessian_trace stochastic_diag stochastic_trace",
        ".jets": "jet taylor",
        ".krylov": "Spectrum Tridiagonal lanczos spectrum",
        ".laplacians": "ForwardLaplacian forward_laplacian laplacian",
        ".mixed": "derivative_tensor",
        ".modes": "jvp_from_vjp vjp_from_jvp",
        ".preaccumulation": "preaccumulate",
        ".products": "CurvatureOperator empirical_fisher fisher gauss_newton hessian_operator hvp",
        ".sparse.colouring": "Colouring colour_hessian colour_jacobian",
        ".sparse.dependence": "sparsity",
        ".sparse.hessian": "hessian_pattern sparse_hessian",
        ".sparse.jacobian": "jacobian_pattern sparse_jacobian",
        ".sparse.pattern": "Pattern",
    },
)
