"""What the README and the page on other libraries show works, and every target that they name exists."""

from __future__ import annotations

import contextlib
import io
import math
import re

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import random
from pullback.core.config import override
from pullback.core.errors import DtypeTruncationWarning
from tests.helpers import ROOT

README = (ROOT / "README.md").read_text()


def printed_by_examples() -> list[list[str]]:
    outputs = []
    for program in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(program, "README.md", "exec"), {})
        outputs.append(printed.getvalue().splitlines())
    return outputs


def test_the_examples_run() -> None:
    tour, beyond = printed_by_examples()
    assert len(tour) == 1 + 3 + 4 + 1, "a gradient, a Hessian, four gradients, and what was learnt"
    figures = [float(x) for line in beyond for x in line.split()]
    expected = [0.5 / math.sqrt(2), -0.25 * 2**-1.5, 1.0, math.exp(1) / (1 + math.exp(1)) ** 2]
    assert all(math.isclose(a, b, rel_tol=1e-4) for a, b in zip(figures, expected, strict=True))


def test_the_line_on_random_numbers_is_true() -> None:
    """It stands beside the first use of ``random``; the numbers are those that JAX 0.10.2 returns."""
    line = next(line for line in README.splitlines() if "`pullback.random`" in line)
    assert 'config.update("jax_threefry_partitionable", True)' in line
    assert "bit for bit" not in README
    with override("jax_threefry_partitionable", True):
        numbers = random.normal(random.key(0), (3,))
    assert numbers.round(3).tolist() == np.float32([1.623, 2.025, -0.434]).tolist()


def test_what_it_says_of_64_bits_is_true() -> None:
    assert jnp.zeros(3).dtype == "float32"
    with override("explicit_x64_dtypes", "allow"):
        assert (jnp.zeros(3, "float64") + jnp.ones(3)).dtype == "float64"
    with pytest.warns(DtypeTruncationWarning):
        assert jnp.zeros(3, "float64").dtype == "float32"


def test_the_page_on_other_libraries_runs() -> None:
    page = ROOT / "docs" / "coming_from.md"
    text = page.read_text()
    (found,) = re.finditer(r"```python\n(.*?)```", text, re.DOTALL)
    lines_before = "\n" * text[: found.start(1)].count("\n")  # so that errors show the text of the page's lines
    exec(compile(lines_before + found[1], str(page), "exec"), {})


def test_the_targets_exist() -> None:
    found = re.findall(r"^make ([a-z-]+)|`make ([a-z-]+)`", README, re.MULTILINE)
    named = {target for pair in found for target in pair if target}
    defined = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"cookbook", "test", "bench"} <= named <= defined
