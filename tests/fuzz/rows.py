"""The table of operations (``tests/grid``) as instructions: each row, with operands that fit its samples."""

from __future__ import annotations

import dataclasses
import enum
import inspect
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as jnp
from pullback import image, lax, nn, ops, scipy, tree
from pullback.core.config import enable_x64
from pullback.core.trace import Primitive
from tests.fuzz.compiler import NeedsCompiler, without_compiler
from tests.grid.all_specs import ALL
from tests.grid.specs import LETTERS, Dominant, K, Pivoted, PositiveDefinite, R, Sample, Spec, numbered
from tests.primitives_of import all_primitives

NAMES = {
    "f": "float32", "h": "float16", "b": "bfloat16", "F": "complex64", "i": "int32", "s": "int8", "u": "uint8",
    "w": "uint32", "?": "bool_", "d": "float32", "D": "complex64",
}  # fmt: skip
"""The name of each dtype of the table, in the namespace of a precision."""

LEFT_OUT = (
    "random_", "threefry", "philox", "rng_", "adapted", "undetermined", "convert_element_type", "bitcast",
    "nextafter", "numpy.nextafter", "numpy.frexp", "numpy.spacing", "numpy.view", "numpy.astype", "numpy.empty",
    "numpy.finfo", "numpy.isdtype", "numpy.lexsort", "numpy.geomspace", "numpy.issubdtype", "reduce_precision",
    "lax.reduce_precision", "stop_gradient", "lax.bitcast", "lu_pivots", "singular_basis",
    "eigenbasis", "eig(", "numpy.linalg.eig(", "schur",
    "scipy.linalg.schur", "scipy.linalg.rsf2csf",
)  # fmt: skip
"""What is random, takes operands that have to fit each other, or has results or derivatives that rounding decides."""


class Row(NamedTuple):
    """A row of the table.

    Attributes:
      name: of the row, which is unique.
      spec: what the table says of it.
      call: the text of the function.
      keywords: the text of the keywords that it is given.
    """

    name: str
    spec: Spec
    call: str
    keywords: str

    def letters(self) -> list[str]:
        return [d for d in self.spec.dtypes if d in NAMES]


# As text -------------------------------------------------------------------------------------------------------------


class _NoText(Exception):
    """A value that no text of public names makes."""


def literal(value: Any) -> str:
    """The text of a parameter."""
    if isinstance(value, enum.Enum) and hasattr(lax, type(value).__name__):
        return f"lax.{type(value).__name__}.{value.name}"
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, np.dtype):
        return next((NAMES[d] for d, t in LETTERS.items() if t == value and d in "hbfFisuw?"), "") or _fail()
    if hasattr(value, "_fields") or dataclasses.is_dataclass(value):
        return _record(value)
    if isinstance(value, tuple | list):
        inside = ", ".join(map(literal, value))
        return f"({inside}{',' if len(value) == 1 else ''})" if isinstance(value, tuple) else f"[{inside}]"
    return _fail()


def _fail() -> str:
    raise _NoText


def _record(value: Any) -> str:
    kind = type(value)
    if getattr(lax, kind.__name__, None) is not kind:
        raise _NoText
    fields = value._fields if hasattr(value, "_fields") else [f.name for f in dataclasses.fields(value)]
    return f"lax.{kind.__name__}({', '.join(f'{f}={literal(getattr(value, f))}' for f in fields)})"


def _public(f: Any) -> str:
    """The public name of a function."""
    for path, module in (
        ("jnp", jnp), ("nn", nn), ("lax", lax), ("scipy.special", scipy.special), ("scipy.linalg", scipy.linalg),
        ("scipy.signal", scipy.signal), ("jnp.linalg", jnp.linalg), ("jnp.fft", jnp.fft), ("ops", ops),
        ("image", image),
    ):  # fmt: skip
        name = getattr(f, "__name__", "")
        if name and getattr(module, name, None) is f:
            return f"{path}.{name}"
    raise _NoText


def _text(f: Any) -> tuple[str, str]:
    """The texts of a row's function, and of its keywords."""
    keywords: dict[str, Any] = {}
    if isinstance(f, partial) and isinstance(getattr(f.func, "__self__", None), Primitive):
        name, keywords = f"primitive({f.func.__self__.name!r}).bind", f.keywords
    elif (
        isinstance(f, partial) and inspect.isfunction(f.func) and set(f.func.__code__.co_freevars) == {"name", "chosen"}
    ):
        held = inspect.getclosurevars(f.func).nonlocals
        name, keywords = f"jnp.{held['name']}", held["chosen"]
    elif isinstance(f, partial) and not f.args:
        name, keywords = _public(f.func), f.keywords
    else:
        name = _public(f)
    return name, "".join(f", {k}={literal(v)}" for k, v in keywords.items())


def _made(name: str, spec: Spec) -> Row:
    try:
        return Row(name, spec, *_text(spec.function))
    except _NoText:
        return Row(name, spec, f"row({name!r})", "")


def _kept(spec: Spec) -> bool:
    return (
        bool(spec.samples)
        and len(spec.samples) <= 5
        and not spec.name.startswith(LEFT_OUT)
        and all(0 < np.prod(s.shape) <= 64 for s in spec.samples)
        and any(d in NAMES for d in spec.dtypes)
    )


ROWS: list[Row] = [_made(s.name, s) for s in numbered(ALL) if _kept(s)]
BY_NAME = {row.name: row for row in ROWS}


def function(name: str) -> Callable[..., Any]:
    """The function of a row."""
    return BY_NAME[name].spec.function


@cache
def primitives() -> dict[str, Primitive]:
    """All primitives by name."""
    return {p.name: p for p in all_primitives()}


# As instructions -----------------------------------------------------------------------------------------------------


@cache
def results(name: str, letter: str, compiler: bool) -> tuple[str, ...] | None:
    """The kinds of a row's results, or None if it does not take the dtype, or needs the compiler and has none."""
    spec = BY_NAME[name].spec
    wide = {"f": "d", "h": "d", "b": "d", "F": "D"}.get(letter, letter)
    try:
        with enable_x64(), nullcontext() if compiler else without_compiler():
            leaves = tree.leaves(spec.function(*[jnp.asarray(x) for x in spec.point(wide)]))
    except (Exception, NeedsCompiler):
        return None
    kinds = []
    for x in leaves:
        narrow = jnp.issubdtype(x.dtype, jnp.inexact) and x.dtype not in (np.float64, np.complex128)
        kinds.append("" if narrow or not 0 < x.size <= 64 else x.dtype.kind)
    return tuple(kinds)


def operand(sample: Sample, position: int, letter: str) -> str:
    """The text of an operand, made of the value at a position."""
    if isinstance(sample, K):
        values = sample.values
        kind = {"f": "float32", "c": "complex64"}.get(values.dtype.kind, values.dtype.name)
        kind = {"bool": "bool_", "int64": "int32"}.get(kind, kind)
        return f"jnp.array({values.tolist()!r}, {kind})"
    word = {"F": "spread_complex", "D": "spread_complex", "?": "spread_bool"}.get(
        letter, "spread_int" if letter in "isuw" else "spread"
    )
    numbers = "" if letter == "?" else f", {sample.lo}, {sample.hi}, {NAMES[letter]}"
    text = f"{word}(_{position}, {sample.shape!r}{numbers})"
    if isinstance(sample, Dominant):
        return f"({text} / 4 + 2 * jnp.eye({sample.shape[-1]}, dtype={NAMES[letter]}))"
    if isinstance(sample, Pivoted):
        m, n = sample.shape[-2:]
        return f"jnp.roll({text} / 4 + 2 * jnp.eye({m}, {n}, dtype={NAMES[letter]}), 1, -2)"
    if isinstance(sample, PositiveDefinite):
        return f"positive_definite({text})"
    return f"jnp.sort({text})" if sample.sort else text


def takes_value(sample: Sample) -> bool:
    return isinstance(sample, R)


def text(row: Row, operands: list[str], leaf: int, of: int) -> str:
    """The text of an instruction: one of the results of a row."""
    called = f"{row.call}({', '.join(operands)}{row.keywords})"
    return called if of == 1 else f"leaf({called}, {leaf})"


def constant(value: Any, letter: str) -> str:
    """The text of an operand that is given."""
    values = value.astype(np.float64 if value.dtype.kind not in "ciub" else value.dtype)
    shown = (
        np.stack([values.real, values.imag], -1).tolist() if value.dtype.kind == "c" else np.round(values, 6).tolist()
    )
    return f"array({shown!r}, {NAMES[letter]})"
