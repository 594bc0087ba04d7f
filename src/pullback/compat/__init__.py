"""Programs written for JAX, run on Pullback: ``import jax`` gives what Pullback has.

:func:`install` is the first line of a program or notebook; ``python -m pullback run program.py`` calls it before it
starts a program, and ``pytest -p pullback.compat.pytest`` before it collects tests. Nothing here is a mechanism: the
modules served are Pullback's own, and ``extras`` holds the names that libraries use beyond JAX's documented API.
"""

from pullback.compat.serving import install as install
from pullback.compat.serving import missing_names as missing_names
from pullback.compat.serving import uninstall as uninstall

__all__ = ["install", "missing_names", "uninstall"]
