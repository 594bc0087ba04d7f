"""``jax.extend.core``: the names that ``pullback.extend.core`` lacks."""

from typing import Any

from pullback.core.trace import Primitive as _Primitive
from pullback.transforms.programs.closed_calls import register_call_rules


def register_call_primitive_rules(prim: _Primitive, name: str | None = None, **options: Any) -> None:
    """Give a primitive the rules of one that runs a program. BrainState and BrainPy make such primitives.

    Args:
      prim: the primitive; it has several results from then on, and the program is its parameter ``call_jaxpr``.
      name: is ignored: the name of the primitive serves in programs too.
      options: are ignored; JAX has them.

    >>> import pullback as jax
    >>> from pullback.compat.extras.extend.core import register_call_primitive_rules
    >>> from pullback.extend.core import Primitive
    >>> twice_p = Primitive("twice")
    >>> register_call_primitive_rules(twice_p)
    >>> program = jax.make_jaxpr(lambda x: 2 * x)(1.0).jaxpr
    >>> print(jax.grad(lambda x: twice_p.bind(x, call_jaxpr=program)[0])(3.0))
    2.0
    """
    prim.multiple_results = True
    register_call_rules(prim)


__all__ = ["register_call_primitive_rules"]
