"""The names of ``jax.extend.core``: programs as data, primitives, and tools for users' interpreters.

Classes:
  AbstractValue: the base class of the types of traced values; ``ShapedArray`` is the type of arrays.
  ClosedJaxpr: a program with the values of its constants: ``ClosedJaxpr(jaxpr, consts)``.
  Jaxpr: a program: its constants ``constvars`` and inputs ``invars``, variables; its equations ``eqns`` in order; its
    results ``outvars``, variables and literals; its ``effects``, and the ``debug_info`` of the function.
  JaxprEqn: an equation: the operation ``primitive``, its operands ``invars``, variables and literals, its parameters
    ``params``, a dictionary, and the variables ``outvars`` of its results. The other arguments are its source location.
  Literal: a number ``val`` of type ``aval`` instead of a variable.
  Var: a variable of type ``aval``.

Functions:
  jaxpr_as_fun: takes a ``ClosedJaxpr``; returns a function that takes the inputs of the program, and returns the list
    of its results. The function raises a ``JaxprError`` if the inputs are not as many.

>>> from pullback import make_jaxpr
>>> from pullback.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, jaxpr_as_fun
>>> closed = make_jaxpr(lambda x: 2 * x)(1.0)
>>> closed
{ lambda ; a:f32[]. let b:f32[] = mul 2.0:f32[] a in (b,) }
>>> isinstance(closed, ClosedJaxpr), isinstance(closed.jaxpr, Jaxpr), isinstance(closed.eqns[0], JaxprEqn)
(True, True, True)
>>> two, a = closed.eqns[0].invars
>>> isinstance(two, Literal), float(two.val), isinstance(a, Var), str(a.aval)
(True, 2.0, True, 'float32[]')
>>> jaxpr_as_fun(closed)(3.0)
[Array(6., dtype=float32, weak_type=True)]
"""

from collections.abc import Iterator, Set
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core import AbstractValue as AbstractValue
from pullback.core import ClosedJaxpr as ClosedJaxpr
from pullback.core import DropVar as DropVar
from pullback.core import Jaxpr as Jaxpr
from pullback.core import JaxprEqn as JaxprEqn
from pullback.core import Literal as Literal
from pullback.core import Primitive as Primitive
from pullback.core import Var as Var
from pullback.core import check_jaxpr as check_jaxpr
from pullback.core import dtypes as _dtypes
from pullback.core import inspection as _inspection
from pullback.core import jaxpr_as_fun as jaxpr_as_fun
from pullback.core.errors import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from pullback.core.errors import JaxprError as JaxprTypeError
from pullback.core.faces import face
from pullback.core.inspection import Effect as Effect
from pullback.core.inspection import TraceTag as TraceTag
from pullback.core.inspection import concrete_or_error as concrete_or_error
from pullback.core.inspection import find_top_trace as find_top_trace
from pullback.core.inspection import gensym as gensym
from pullback.core.inspection import get_opaque_trace_state as get_opaque_trace_state
from pullback.core.inspection import mapped_aval as mapped_aval
from pullback.core.inspection import new_jaxpr_eqn as new_jaxpr_eqn
from pullback.core.inspection import set_current_trace as set_current_trace
from pullback.core.inspection import take_current_trace as take_current_trace
from pullback.core.inspection import unmapped_aval as unmapped_aval
from pullback.core.inspection import valid_jaxtype as valid_jaxtype
from pullback.core.jaxpr_info import DebugInfo as DebugInfo
from pullback.lax.tokens import AbstractToken as AbstractToken
from pullback.lax.tokens import Token as Token
from pullback.transforms.traces.batch import BatchTrace as _BatchTrace
from pullback.transforms.traces.stage import StageTrace as _StageTrace

if TYPE_CHECKING:
    from pullback.extend.core import primitives as primitives

Effects = Set[Effect]
no_effects: frozenset[Effect] = frozenset()
array_types = {np.ndarray, *(np.dtype(code).type for code in "?bhilBHILefdFD")}
"""The NumPy classes whose values count as arrays."""


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """Yield the programs among the parameters of an equation.

    Args:
      params: the parameters.

    Returns:
      An iterator.

    >>> from pullback import jit, make_jaxpr
    >>> from pullback.extend.core import jaxprs_in_params
    >>> (eqn,) = make_jaxpr(jit(lambda x: -x))(1.0).eqns
    >>> list(jaxprs_in_params(eqn.params))
    [{ lambda ; a:f32[]. let b:f32[] = neg a in (b,) }]
    """
    return _inspection.jaxprs_in_params(params)


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """Yield the programs that the equations of a program hold.

    Args:
      jaxpr: the program.

    Returns:
      An iterator.

    >>> from pullback import jit, make_jaxpr
    >>> from pullback.extend.core import subjaxprs
    >>> list(subjaxprs(make_jaxpr(jit(lambda x: -x))(1.0).jaxpr))
    [{ lambda ; a:f32[]. let b:f32[] = neg a in (b,) }]
    """
    return _inspection.subjaxprs_of(jaxpr)


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any:
    """Return the dtype of tangents of values of a dtype: itself, or ``float0`` for integers and booleans.

    Args:
      primal_dtype: the dtype.

    Returns:
      A dtype.

    >>> from pullback.extend.core import primal_dtype_to_tangent_dtype
    >>> primal_dtype_to_tangent_dtype("float32")
    dtype('float32')
    """
    return _dtypes.tangent_dtype(np.dtype(primal_dtype))


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Whether a named axis is in scope; the name is JAX's.

    Returns:
      A bool of Python's.

    >>> from pullback.extend.core import nonempty_axis_env_DO_NOT_USE
    >>> nonempty_axis_env_DO_NOT_USE()
    False
    """
    return bool(_inspection.named_axes())


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """Return the names of the axes in scope; the function's name is JAX's.

    Returns:
      A list of names.

    >>> from pullback.extend.core import unsafe_get_axis_names_DO_NOT_USE
    >>> unsafe_get_axis_names_DO_NOT_USE()
    []
    """
    return _inspection.named_axes()


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Whether a program is being staged; the name is JAX's.

    Returns:
      A bool of Python's.

    >>> from pullback.extend.core import unsafe_am_i_under_a_jit_DO_NOT_USE
    >>> unsafe_am_i_under_a_jit_DO_NOT_USE()
    False
    """
    return _inspection.within(_StageTrace)


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Whether a function is being mapped; the name is JAX's.

    Returns:
      A bool of Python's.

    >>> from pullback.extend.core import unsafe_am_i_under_a_vmap_DO_NOT_USE
    >>> unsafe_am_i_under_a_vmap_DO_NOT_USE()
    False
    """
    return _inspection.within(_BatchTrace)


__all__ = [
    "AbstractToken",
    "AbstractValue",
    "ClosedJaxpr",
    "DebugInfo",
    "DropVar",
    "Effect",
    "Effects",
    "InconclusiveDimensionOperation",
    "Jaxpr",
    "JaxprEqn",
    "JaxprTypeError",
    "Literal",
    "Primitive",
    "Token",
    "TraceTag",
    "Var",
    "array_types",
    "check_jaxpr",
    "concrete_or_error",
    "find_top_trace",
    "gensym",
    "get_opaque_trace_state",
    "jaxpr_as_fun",
    "jaxprs_in_params",
    "mapped_aval",
    "new_jaxpr_eqn",
    "no_effects",
    "nonempty_axis_env_DO_NOT_USE",
    "primal_dtype_to_tangent_dtype",
    "primitives",
    "set_current_trace",
    "subjaxprs",
    "take_current_trace",
    "unmapped_aval",
    "unsafe_am_i_under_a_jit_DO_NOT_USE",
    "unsafe_am_i_under_a_vmap_DO_NOT_USE",
    "unsafe_get_axis_names_DO_NOT_USE",
    "valid_jaxtype",
]  # fmt: skip

face(globals(), modules="primitives")  # lazy, since it imports every family of operations
