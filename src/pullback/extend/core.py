"""What ``jax.extend.core`` has: programs as data, and primitives."""

from pullback.core import ClosedJaxpr as ClosedJaxpr
from pullback.core import Jaxpr as Jaxpr
from pullback.core import JaxprEqn as JaxprEqn
from pullback.core import Literal as Literal
from pullback.core import Primitive as Primitive
from pullback.core import Var as Var
from pullback.core import jaxpr_as_fun as jaxpr_as_fun

__all__ = ["ClosedJaxpr", "Jaxpr", "JaxprEqn", "Literal", "Primitive", "Var", "jaxpr_as_fun"]
