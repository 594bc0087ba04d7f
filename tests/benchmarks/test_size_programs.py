"""Programs are the same if they differ in names, notes and order only."""

from __future__ import annotations

import pytest

import pullback
import pullback.numpy as jnp
from benchmarks.sizes.programs import digest

TEXT = """HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[8]{0}, f32[8]{0})->f32[8]{0}}

%fused (a: f32[8], b: f32[8]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  %b = f32[8]{0} parameter(1)
  %sine.1 = f32[8]{0} sine(%a), metadata={op_name="jit(f)/{sin}" source_line=3}
  ROOT %product = f32[8]{0} multiply(%sine.1, /*index=1*/%b)
}

ENTRY %main.4 (x: f32[8], y: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  %y = f32[8]{0} parameter(1)
  ROOT %result = f32[8]{0} fusion(%x, %y), kind=kLoop, calls=%fused
}
"""


def changed(*replacements: tuple[str, str]) -> str:
    text = TEXT
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("text", [
    changed(("%fused", "%wrapped_multiply.7"), ("%sine.1", "%s"), ("%main.4", "%main"), ("jit_f", "jit__lambda")),
    changed((', metadata={op_name="jit(f)/{sin}" source_line=3}', ""), ("/*index=1*/", "")),
    changed(("  %a = f32[8]{0} parameter(0)\n  %b = f32[8]{0} parameter(1)\n",
             "  %b = f32[8]{0} parameter(1)\n  %a = f32[8]{0} parameter(0)\n")),
], ids=["names", "notes", "order"])  # fmt: skip
def test_names_notes_and_order_make_no_difference(text: str) -> None:
    assert digest(text) == digest(TEXT)


@pytest.mark.parametrize("text", [
    changed(("sine(%a)", "cosine(%a)")),
    changed(("sine(%a)", "sine(%b)")),
    changed(("multiply(%sine.1, /*index=1*/%b)", "multiply(%b, %sine.1)")),
    changed(("fusion(%x, %y)", "fusion(%y, %x)")),
    changed(("f32[8]", "f32[9]")),
    changed(("kind=kLoop", 'kind=kLoop, backend_config={"outer_dimension_partitions":["2"]}')),
    changed(("  ROOT %product = f32[8]{0} multiply(%sine.1, /*index=1*/%b)",
             "  %again = f32[8]{0} sine(%a)\n  %product.2 = f32[8]{0} multiply(%again, %b)\n"
             "  ROOT %product = f32[8]{0} multiply(%sine.1, %b)")),
], ids=["operation", "operand", "operands", "arguments", "shape", "threads", "computed twice"])  # fmt: skip
def test_what_is_computed_makes_a_difference(text: str) -> None:
    assert digest(text) != digest(TEXT)


def test_compiled_functions_are_told_apart() -> None:
    def of(function: object, *operands: object) -> str:
        return digest(pullback.jit(function).lower(*operands).compile().as_text())

    x = jnp.ones((8, 30))
    assert of(lambda x: jnp.sin(x).sum(-1) * 2, x) == of(lambda other: 2 * jnp.sum(jnp.sin(other), 1), x)
    assert of(lambda x: jnp.sin(x).sum(-1) * 2, x) != of(lambda x: jnp.sin(x).sum(-1) * 3, x)
    assert of(lambda x: jnp.sin(x).sum(-1), x) != of(lambda x: jnp.sin(x).sum(-1), x[:5])


def test_another_text_is_refused() -> None:
    with pytest.raises(ValueError, match="language of XLA"):
        digest("module @jit_f {")
