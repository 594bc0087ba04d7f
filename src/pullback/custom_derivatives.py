"""Functions with derivative rules of their own, under the names of ``jax.custom_derivatives``, and helpers for them."""

from typing import Any

from pullback.core import tree
from pullback.core.faces import face
from pullback.gradient_helpers import (
    clip_gradient,
    clip_gradient_norm,
    implicit_function,
    reverse_gradient,
    safe_where,
    scale_gradient,
    straight_through,
)
from pullback.test_util import check_rule
from pullback.transforms.custom.closure import closure_convert, custom_gradient
from pullback.transforms.custom.custom_linear import custom_transpose, linear_call
from pullback.transforms.custom.custom_rules import custom_jvp, custom_jvp_call_p, custom_vjp, custom_vjp_call_p
from pullback.transforms.custom.rule_adapter import CustomVJPPrimal, SymbolicZero, zero_from_primal

__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "check_rule",
    "clip_gradient",
    "clip_gradient_norm",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_jvp_call_p",
    "custom_transpose",
    "custom_vjp",
    "custom_vjp_call_p",
    "custom_vjp_primal_tree_values",
    "implicit_function",
    "linear_call",
    "reverse_gradient",
    "safe_where",
    "scale_gradient",
    "straight_through",
    "zero_from_primal",
]
face(globals())


def custom_vjp_primal_tree_values(tree_of_primals: Any) -> Any:
    """The arguments of a forward rule that asks for ``symbolic_zeros`` without what it is told of them.

    Args:
      tree_of_primals: a tree of ``CustomVJPPrimal``.

    >>> print(custom_vjp_primal_tree_values({"x": CustomVJPPrimal(1.0, True)}))
    {'x': 1.0}
    """
    return tree.tree_map(lambda primal: primal.value, tree_of_primals)
