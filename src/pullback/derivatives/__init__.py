"""Derivatives beyond gradients and Jacobians: sparse, of any order, estimated, pre-accumulated, and of data types."""

from pullback.core.faces import face as _face

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
        ".kept_parts": "preaccumulate",
        ".products": "CurvatureOperator empirical_fisher fisher gauss_newton hessian_operator hvp",
        ".patterns.colouring": "Colouring colour_hessian colour_jacobian",
        ".patterns.dependence": "sparsity",
        ".patterns.hessian": "hessian_pattern sparse_hessian",
        ".patterns.jacobian": "jacobian_pattern sparse_jacobian",
        ".patterns.pattern": "Pattern",
    },
)
