"""Functions with custom derivative rules, under the names of ``jax.custom_derivatives``, and helpers for them."""

from pullback.core.faces import face as _face

_face(
    globals(),
    {
        "pullback.gradient_helpers": (
            "clip_gradient clip_gradient_norm implicit_function reverse_gradient safe_where scale_gradient "
            "straight_through"
        ),
        "pullback.test_util": "check_rule",
        "pullback.transforms.custom.closure": "closure_convert custom_gradient",
        "pullback.transforms.custom.custom_linear": "custom_transpose linear_call",
        "pullback.transforms.custom.custom_rules": "custom_jvp custom_jvp_call_p custom_vjp custom_vjp_call_p",
        "pullback.transforms.custom.rule_adapter": (
            "CustomVJPPrimal SymbolicZero custom_vjp_primal_tree_values zero_from_primal"
        ),
    },
)
