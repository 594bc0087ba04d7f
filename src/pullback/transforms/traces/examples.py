"""Printing the examples of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core.array import ArrayImpl, host_value


class Examples:
    """The batch of values that a tracer under ``vmap`` stands for, as ``print`` and format strings show it.

    Attributes:
      value: the batch: an array; under an outer ``vmap``, again ``Examples``.
      size: the number of examples.
      dim: the position of the mapped axis in ``value``.
    """

    __slots__ = ("dim", "size", "value")

    def __init__(self, value: Any, size: int, dim: int) -> None:
        self.value, self.size, self.dim = value, size, dim

    def _labelled(self, text: str) -> str:
        """Return the text of the batch, followed by the number of examples and their axis."""
        return f"{text} ({self.size} examples along axis {int(self.dim)})"

    def __str__(self) -> str:
        return self._labelled(str(self.value))

    def __format__(self, spec: str) -> str:
        value: Any = self.value
        if spec and isinstance(value, ArrayImpl):
            return self._labelled(np.array2string(host_value(value), formatter={"all": lambda x: format(x, spec)}))
        return self._labelled(format(value, spec))
