"""The options of reverse mode that reduce its memory: ``preaccumulate`` and ``memory``."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pullback.core.config import config

Budget = int | float | str | None
"""A budget of memory: bytes, a text such as ``"2GB"``, the share of the usual peak; or None."""
Saving = tuple[str | None, Budget]
"""The options ``preaccumulate`` and ``memory``."""


def check_preaccumulate(transformation: str, preaccumulate: str | None) -> None:
    """Raise unless the option ``preaccumulate`` is None or ``"auto"``.

    ``transformation`` is the name of the transformation, for the error message.
    """
    if preaccumulate is not None:
        from pullback.transforms.preaccumulation.automatic import check_choice

        check_choice(transformation, preaccumulate)


def auto_preaccumulated(
    fun: Any, run: Callable[..., Sequence[Any]], primals: Sequence[Any], transformation: str
) -> Any:
    """Trace the flat function ``run``, and return a function with the same results for which reverse mode stores less.

    In some regions of the program, the local Jacobian is stored instead of larger intermediate values. Under
    ``disable_jit``, return ``run`` unchanged.

    Args:
      fun: the user's function, for error messages.
      run: takes and returns flat sequences of arrays.
      primals: the point, as arrays.
      transformation: the name of the transformation, for error messages.
    """
    if config.disable_jit:
        return run
    from pullback.transforms.preaccumulation.automatic import preaccumulated

    return preaccumulated(fun, run, primals, transformation)


def saving_of(transformation: str, preaccumulate: str | None, memory: Budget) -> Saving | None:
    """Return the options of a transformation that reduce its memory; None if there are none. Raise if one is wrong."""
    if preaccumulate is None and memory is None:
        return None
    check_preaccumulate(transformation, preaccumulate)
    check_memory(transformation, memory)
    return preaccumulate, memory


def check_memory(transformation: str, memory: Budget) -> None:
    """Raise unless the option ``memory`` is None or a budget."""
    if memory is not None:
        _budgets().bytes_of(transformation, memory, 1)


def with_saving(transformation: Callable[..., Any], saving: Saving | None) -> Callable[..., Any]:
    """Return a function like ``transformation``, such as ``grad``, that always passes the options ``saving``.

    If there are none, return ``transformation`` unchanged.
    """
    if saving is None:
        return transformation
    return partial(transformation, preaccumulate=saving[0], memory=saving[1])


def storing_less(
    fun: Any, run: Callable[..., Sequence[Any]], primals: Sequence[Any], transformation: str, saving: Saving
) -> Any:
    """Return a function with the results of the flat function ``run`` for which reverse mode stores less.

    Args:
      fun: the user's function, for error messages.
      run: takes and returns flat sequences of arrays.
      primals: the point, as arrays.
      transformation: the name of the transformation, for error messages.
      saving: the options.
    """
    preaccumulate, memory = saving
    if preaccumulate is not None:
        run = auto_preaccumulated(fun, run, primals, transformation)
    if memory is not None and not config.disable_jit:
        run = _budgets().within_memory(fun, run, primals, transformation, memory)
    return run


def _budgets() -> Any:
    """Return the module of the planner, which knows loops and so is above this one."""
    return importlib.import_module("pullback.control.memory_budgets")
