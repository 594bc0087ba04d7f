"""``jax._src.compiler``: Chex replaces ``backend_compile_and_load`` to refuse platforms (``restrict_backends``)."""

import sys
from typing import Any

from pullback.backends.compiler import client as _client
from pullback.compat.serving import Served as _Served
from pullback.core.runtime import runtime as _runtime


def backend_compile_and_load(backend: Any, *args: Any, **kwargs: Any) -> None:
    """Called before a program is compiled for a platform; a replacement may raise an error to forbid that.

    Args:
      backend: the runtime of the platform, with an attribute ``platform``, its name.
      args: none.
      kwargs: none.
    """


def _before_compiling(platform: str) -> None:
    served = sys.modules.get("jax._src.compiler")
    if isinstance(served, _Served):
        served.backend_compile_and_load(_client.client(platform))


if _before_compiling not in _runtime.compiling:
    _runtime.compiling.append(_before_compiling)
