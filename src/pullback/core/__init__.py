"""Floor 1, the language: types, trees, primitives, traces, jaxprs. It knows no operation."""

from pullback.core.jaxpr import ClosedJaxpr as ClosedJaxpr
from pullback.core.jaxpr import Eqn as JaxprEqn
from pullback.core.jaxpr import Jaxpr as Jaxpr
from pullback.core.jaxpr import Literal as Literal
from pullback.core.jaxpr import Var as Var
from pullback.core.jaxpr import check_jaxpr as check_jaxpr
from pullback.core.jaxpr import eval_jaxpr as eval_jaxpr
from pullback.core.jaxpr import jaxpr_as_fun as jaxpr_as_fun
from pullback.core.trace import Primitive as Primitive
from pullback.core.trace import Tracer as Tracer
from pullback.core.types import ShapedArray as ShapedArray

__all__ = [
    "ClosedJaxpr", "Jaxpr", "JaxprEqn", "Literal", "Primitive", "ShapedArray", "Tracer", "Var", "check_jaxpr",
    "eval_jaxpr", "jaxpr_as_fun",
]  # fmt: skip
