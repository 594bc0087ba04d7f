"""Printing the examples of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core.array import ArrayImpl, host_value


class Examples:
    """The batch behind a tracer, as ``print`` and format strings show it.

    Attributes:
      value: the batch: an array, or again ``Examples``, under an outer ``vmap``.
      size: the number of examples.
      dim: the mapped axis of ``value``.
    """

    __slots__ = ("dim", "size", "value")

    def __init__(self, value: Any, size: int, dim: int) -> None:
        self.value, self.size, self.dim = value, size, dim

    def _labelled(self, text: str) -> str:
        """Append the number and the axis of the examples to the text of the batch."""
        return f"{text} ({self.size} examples along axis {int(self.dim)})"

    def __str__(self) -> str:
        return self._labelled(str(self.value))

    def __format__(self, spec: str) -> str:
        value: Any = self.value
        if spec and isinstance(value, ArrayImpl):
            return self._labelled(np.array2string(host_value(value), formatter={"all": lambda x: format(x, spec)}))
        return self._labelled(format(value, spec))
