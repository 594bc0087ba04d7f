"""Classes of arrays, and their module by name: see ``install`` in ``pullback.compat.serving``."""

from pullback.core.array import Array as Array
from pullback.core.array import ArrayImpl as ArrayImpl
from pullback.core.array import CommittedArray as CommittedArray
