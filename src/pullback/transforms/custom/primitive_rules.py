"""Backward rules of primitives, instead of a jvp rule and transposition rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from pullback.core import tree
from pullback.core.trace import Primitive
from pullback.transforms.custom.custom_calls import DerivativeCall
from pullback.transforms.custom.custom_rules import custom_vjp
from pullback.transforms.custom.rule_adapter import RuleAdapter

F = TypeVar("F", bound=Callable[..., Any])


def vjp_rule(primitive: Primitive) -> Callable[[F], F]:
    """Decorate a function to register it as the backward rule of a primitive, instead of a jvp rule.

    The rule is ``rule(ct, ans, *operands, **params) -> cotangents``. It takes the cotangent ``ct`` of the result
    ``ans``, and returns a tuple with a cotangent for each operand, or None for no cotangent. For a primitive with
    several results, ``ct`` and ``ans`` are lists. Forward mode transposes the rule, as ``derivatives.jvp_from_vjp``
    does; for this the rule must be linear in ``ct``, and consist of operations with transposition rules. Reverse mode
    does not require that.

    Args:
      primitive: an ``extend.Primitive``. Its jvp rule is replaced.

    Returns:
      A decorator, which returns the rule.

    Source: J. Townsend, A new trick for calculating Jacobian vector products, 2017, for forward mode.

    >>> from pullback import grad, jvp
    >>> from pullback.extend import Primitive, vjp_rule
    >>> cube_p = Primitive("cube")
    >>> host = cube_p.host(lambda x: x**3)
    >>> rule = vjp_rule(cube_p)(lambda ct, ans, x: (3 * x**2 * ct,))
    >>> print(grad(cube_p.bind)(2.0), jvp(cube_p.bind, (2.0,), (1.0,))[1])
    12.0 12.0
    """

    def register(rule: F) -> F:
        @lru_cache(maxsize=64)
        def function(params: tuple[tuple[str, Any], ...]) -> Any:
            options = dict(params)

            def run(*operands: Any) -> Any:
                return primitive.bind(*operands, **options)

            def forward(*operands: Any) -> tuple[Any, Any]:
                ans = run(*operands)
                return ans, (ans, operands)

            def backward(residuals: Any, ct: Any) -> Any:
                ans, operands = residuals
                return rule(ct, ans, *operands, **options)

            run.__name__ = run.__qualname__ = primitive.name
            backward.__name__ = backward.__qualname__ = getattr(rule, "__name__", "rule")
            owner = custom_vjp(run)
            owner.defvjp(forward, backward)
            return owner

        @primitive.jvp
        def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
            owner = function(tuple(sorted(params.items())))
            application = RuleAdapter(owner, (), tree.structure(tuple(primals)))
            call = DerivativeCall(owner._equation, owner.fun, application, None, application.forward)
            outs, out_tangents = call.differentiate(primals, tangents)
            return (outs, out_tangents) if primitive.multiple_results else (outs[0], out_tangents[0])

        return rule

    return register
