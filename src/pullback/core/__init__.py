"""Floor 1, the language: types, trees, primitives, traces, jaxprs. It knows no operation."""

from typing import TYPE_CHECKING

from pullback.core.array import typeof as get_aval
from pullback.core.faces import face
from pullback.core.inspection import DropVar as DropVar
from pullback.core.jaxpr import Atom as Atom
from pullback.core.jaxpr import ClosedJaxpr as ClosedJaxpr
from pullback.core.jaxpr import Eqn as JaxprEqn
from pullback.core.jaxpr import Jaxpr as Jaxpr
from pullback.core.jaxpr import Literal as Literal
from pullback.core.jaxpr import Var as Var
from pullback.core.jaxpr import eval_jaxpr as eval_jaxpr
from pullback.core.jaxpr import jaxpr_as_fun as jaxpr_as_fun
from pullback.core.jaxpr_check import check_jaxpr as check_jaxpr
from pullback.core.trace import Trace as Trace
from pullback.core.trace import Tracer as Tracer
from pullback.core.types import AbstractValue as AbstractValue
from pullback.core.types import ShapedArray as ShapedArray

if TYPE_CHECKING:
    from pullback.core.rules import Primitive as Primitive

__all__ = [
    "AbstractValue", "Atom", "ClosedJaxpr", "DropVar", "Jaxpr", "JaxprEqn", "Literal", "Primitive", "ShapedArray",
    "Trace", "Tracer", "Var", "check_jaxpr", "eval_jaxpr", "get_aval", "jaxpr_as_fun",
]  # fmt: skip

face(globals(), {".rules": "Primitive"})  # users' own, which few programs need: for a short start
