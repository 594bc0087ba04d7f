"""Programs written for JAX, run on Pullback: ``import jax`` then imports Pullback's modules.

:func:`install` is the first line of a program or notebook; ``python -m pullback run program.py`` calls it before it
starts a program, and ``pytest -p pullback.compat.pytest`` before it collects tests. The served modules are Pullback's
own; ``extras`` has the names that libraries use beyond JAX's documented API.
"""

from pullback.compat.serving import install as install
from pullback.compat.serving import missing_names as missing_names
from pullback.compat.serving import uninstall as uninstall

__all__ = ["install", "missing_names", "uninstall"]
