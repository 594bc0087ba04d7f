"""Pullback's switches as command-line flags of ``absl``."""

from __future__ import annotations

import itertools
import sys
from typing import Any

from pullback.core.errors import MissingLibraryError

_defined: list[str] = []


def _absl(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(f"absl.{name}")
    except ImportError as error:
        raise MissingLibraryError(f"config: flags need the library absl (pip install absl-py): {error}") from None


def define(config: Any) -> None:
    """Define an ``absl`` flag ``--jax_NAME`` for each switch of ``config``; later calls change nothing."""
    flags, app = _absl("flags"), _absl("app")
    if _defined:
        return
    for name, value in config.values.items():
        flag = f"jax_{name}"
        what = f"Pullback's switch {name}"
        if isinstance(value, bool):
            flags.DEFINE_bool(flag, value, what)
        elif isinstance(value, int):
            flags.DEFINE_integer(flag, value, what)
        elif isinstance(value, float):
            flags.DEFINE_float(flag, value, what)
        else:
            flags.DEFINE_string(flag, value, what)
        _defined.append(name)
    app.call_after_init(lambda: complete(config, flags))


def complete(config: Any, flags: Any) -> None:
    """Set each switch of ``config`` whose flag was on the command line; ``flags`` is the module ``absl.flags``."""
    for name in _defined:
        flag = flags.FLAGS[f"jax_{name}"]
        if flag.present:
            config.update(name, flag.value)


def parse(config: Any) -> None:
    """Read the flags ``--jax_NAME`` in ``sys.argv``, up to ``--``, and set these switches of ``config``."""
    define(config)
    flags = _absl("flags")
    own = [word for word in itertools.takewhile(lambda word: word != "--", sys.argv) if word.startswith("--jax")]
    flags.FLAGS(["", *own], known_only=True)
    complete(config, flags)
