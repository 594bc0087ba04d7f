"""All operations that the library has, for tests of what each of them has to say."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

import pullback
from pullback.core.trace import Primitive


@cache
def all_primitives() -> dict[Primitive, str]:
    """The operations that modules of the library hold, and where: ``pullback.primitives.arrays.sorting.sort_p``."""
    found: dict[Primitive, str] = {}
    for module in pkgutil.walk_packages(pullback.__path__, "pullback."):
        if not module.name.endswith("__main__"):
            for name, x in vars(importlib.import_module(module.name)).items():
                if isinstance(x, Primitive):
                    found.setdefault(x, f"{module.name}.{name}")
    return found
