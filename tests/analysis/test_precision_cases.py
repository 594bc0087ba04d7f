"""The line, the digits and the rewriting are right for classical programs; right programs raise no alarm."""

from __future__ import annotations

import inspect
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import analysis
from pullback.core.config import enable_x64
from tests.analysis.precision_cases import CASES, RECORDED, RIGHT, Case, point

EXACT: dict[str, list[str]] = json.loads(RECORDED.read_text(encoding="utf-8"))


class _Functions:
    def __getattr__(self, name: str) -> Any:
        return getattr(jnp, name) if hasattr(jnp, name) else getattr(pullback.scipy.special, name)


def measured(function: Any, args: list[Any], dtype: str) -> analysis.Precision:
    with enable_x64(dtype == "float64"):
        return analysis.precision(lambda *xs: function(_Functions(), *xs))(*args)


def true_digits(value: float, exact: str, dtype: str) -> float:
    """The true digits of a number, by exact fractions."""
    limits = np.finfo(dtype)
    if not math.isfinite(value):
        return 0.0
    size = max(abs(Fraction(exact)), Fraction(float(limits.tiny)))
    error = abs(Fraction(value) - Fraction(exact)) / size
    return -math.log10(min(max(float(error), float(limits.eps) / 2), 1))


@pytest.mark.parametrize("each", CASES, ids=lambda c: c.name)
def test_the_line_the_digits_and_the_rewriting_are_right(each: Case) -> None:
    found = measured(each.function, point(each), each.dtype)
    values = np.ravel(np.asarray(found.value)).astype(float)
    true = [true_digits(float(x), text, each.dtype) for x, text in zip(values, EXACT[each.name], strict=True)]
    np.testing.assert_allclose(np.ravel(found.results[0].elements), true, atol=0.5)
    lines, start = inspect.getsourcelines(each.function)
    first = found.losses[0]
    assert first.line.endswith(f":{start + next(i for i, line in enumerate(lines) if '# lost' in line)}"), str(found)
    assert first.kind == each.kind
    assert each.advice in first.advice
    assert first.advice in str(found)


@pytest.mark.parametrize("name", RIGHT)
def test_right_programs_raise_no_alarm(name: str) -> None:
    function, args = RIGHT[name]
    found = measured(function, [np.asarray(x, np.float32)[()] for x in args], "float32")
    assert not found.losses, str(found)
    assert found.digits > 5.5
