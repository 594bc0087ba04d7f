# Made by `make stubs` from the module itself, for type checkers and editors.

from pullback.gradient_helpers import clip_gradient as clip_gradient
from pullback.gradient_helpers import clip_gradient_norm as clip_gradient_norm
from pullback.gradient_helpers import implicit_function as implicit_function
from pullback.gradient_helpers import reverse_gradient as reverse_gradient
from pullback.gradient_helpers import safe_where as safe_where
from pullback.gradient_helpers import scale_gradient as scale_gradient
from pullback.gradient_helpers import straight_through as straight_through
from pullback.test_util import check_rule as check_rule
from pullback.transforms.custom.closure import closure_convert as closure_convert
from pullback.transforms.custom.closure import custom_gradient as custom_gradient
from pullback.transforms.custom.custom_linear import custom_transpose as custom_transpose
from pullback.transforms.custom.custom_linear import linear_call as linear_call
from pullback.transforms.custom.custom_rules import custom_jvp as custom_jvp
from pullback.transforms.custom.custom_rules import custom_jvp_call_p as custom_jvp_call_p
from pullback.transforms.custom.custom_rules import custom_vjp as custom_vjp
from pullback.transforms.custom.custom_rules import custom_vjp_call_p as custom_vjp_call_p
from pullback.transforms.custom.rule_adapter import CustomVJPPrimal as CustomVJPPrimal
from pullback.transforms.custom.rule_adapter import SymbolicZero as SymbolicZero
from pullback.transforms.custom.rule_adapter import custom_vjp_primal_tree_values as custom_vjp_primal_tree_values
from pullback.transforms.custom.rule_adapter import zero_from_primal as zero_from_primal

__all__ = [
    "CustomVJPPrimal", "SymbolicZero", "check_rule", "clip_gradient", "clip_gradient_norm", "closure_convert",
    "custom_gradient", "custom_jvp", "custom_jvp_call_p", "custom_transpose", "custom_vjp", "custom_vjp_call_p",
    "custom_vjp_primal_tree_values", "implicit_function", "linear_call", "reverse_gradient", "safe_where",
    "scale_gradient", "straight_through", "zero_from_primal",
]
