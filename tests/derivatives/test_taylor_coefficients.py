"""Taylor coefficients to order 10 of every smooth operation on elements: mpmath's (see ``record_taylor.py``)."""

from __future__ import annotations

import functools
import importlib
import json
import pathlib
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback.core.config import enable_x64
from pullback.derivatives import taylor

ROWS: dict[str, Any] = json.loads(pathlib.Path(__file__).with_name("taylor_coefficients.json").read_text())


@pytest.mark.parametrize("label", ROWS)
def test_coefficients_are_those_of_mpmath(label: str) -> None:
    """To twelve digits of the larger of each coefficient and those next to it, as some are zero."""
    row = ROWS[label]
    module, _, name = row["name"].rpartition(".")
    f = functools.partial(getattr(importlib.import_module(f"pullback.{module}"), name), **row["arguments"])

    def along(t: Any) -> Any:
        out = f(*[x + t * d if d else jnp.asarray(x) for x, d in zip(row["operands"], row["directions"], strict=True)])
        return out if row["part"] is None else out[row["part"]]

    with enable_x64():
        got = np.array(taylor(along, jnp.zeros(()), 10))
    expected = np.array(row["coefficients"])
    assert got.dtype == np.float64
    size = np.abs(expected)
    nearby = np.max([size, np.append(size[1:], 0), np.append(0, size[:-1])], axis=0)
    np.testing.assert_array_less(np.abs(got - expected), 1e-12 * nearby + 1e-300)
