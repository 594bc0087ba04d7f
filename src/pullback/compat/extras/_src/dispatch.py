"""``jax._src.dispatch``: Equinox waits for the effects of programs before the process ends."""

from typing import Any

from pullback.core.trace import Primitive
from pullback.interpreters.xla import apply_primitive as _compiled
from pullback.transforms.programs.callbacks import effects_barrier


def apply_primitive(prim: Primitive, *args: Any, **params: Any) -> Any:
    """Evaluate an operation on concrete arrays by compiling it; BrainEvent evaluates its own operations so.

    >>> from pullback import lax
    >>> from pullback.compat.extras._src.dispatch import apply_primitive
    >>> print(apply_primitive(lax.neg_p, 2.0))
    -2.0
    """
    if prim.lowering_rule is not None:
        return _compiled(prim, *args, **params)
    if prim.decomposition_rule is not None:
        return prim.decomposition_rule(*args, **params)
    return prim.bind(*args, **params)


class RuntimeTokens:
    """The tokens that order effects. There are none here: programs with effects run in order without them."""

    __slots__ = ()

    def clear(self) -> None:
        """Forget the tokens of effects; BrainPy does so after it has deleted arrays."""

    def block_until_ready(self) -> None:
        """Wait until all programs with effects have finished."""
        effects_barrier()


runtime_tokens = RuntimeTokens()


def wait_for_tokens() -> None:
    """Wait until all programs with effects have finished.

    >>> from pullback.compat.extras._src.dispatch import wait_for_tokens
    >>> wait_for_tokens()
    """
    effects_barrier()
