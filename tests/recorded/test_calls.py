"""Programs for GPUs and TPUs call what JAX's programs call, with the same attributes, layouts and types.

The compiler's parser verifies each program. None of them has run on a GPU.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from functools import cache

import pytest

import pullback
from pullback import make_jaxpr
from pullback.backends.compiler import portable
from pullback.backends.compiler.client import from_portable, to_portable
from pullback.core.config import enable_x64
from pullback.core.errors import MissingRuleError
from tests.helpers import EXHAUSTIVE
from tests.recorded import calls
from tests.recorded.cases import Case

KNOWN = calls.known()
CASES = list(calls.selected())
SAME_EVERYWHERE = r"(lapack_|pullback_|xla_ffi_python|LayoutConstraint)"
"""What the calls of programs for CPUs begin with, which no program for another platform may have."""

DIFFERENT: dict[str, str] = {
    r"numpy\.qr \(.*(forward|batch)|numpy\.qr complete|linalg\.qr r": "computes no Q where only R is used",
    r"cholesky_update": "is a loop of rotations, which takes batches and complex numbers too; JAX has a kernel for one",
    r"qdwh|polar": "computes the polar factor by an SVD, and its derivative by a Lyapunov equation",
    r"symmetric_product": "multiplies, instead of calling cuBLAS's syrk",
    r"lstsq others": "computes no singular vectors where only the values are used",
    r"slogdet|numpy\.det": "computes determinants by LU for all sizes and methods, and the sign from its pivots",
    r"approx_(max|min)_k": "is exact: the same operation as top_k",
    r"linalg\.eigh values": "reads the lower triangle of the transposed matrix instead of the upper one",
    r"expm triangular": "solves by LU for triangular matrices too",
    r"qr_multiply": "multiplies by Q, instead of by its reflections",
    r"solve_sylvester eigen": "computes eigenvalues once, together with the vectors",
    r"eigh_tridiagonal": "decomposes the matrix, instead of bisecting",
    r"gmres|detrend": "solves least squares by rotations, or in closed form",
    r"(svd|pinv|lstsq|norm|rank|cond).*/tpu": "is refused, as there is no SVD for TPUs",
}
"""By a pattern of names of programs, why they call something else than JAX's: what they do."""


@cache
def reason(name: str) -> str:
    """Why a program calls something else than JAX's; empty if it should call the same."""
    return next((why for pattern, why in DIFFERENT.items() if re.search(pattern, name)), "")


def programs(platform: str) -> Iterator[tuple[str, Case, str]]:
    """The programs whose calls of JAX are known: the name, the case and the mode."""
    for family, case in CASES:
        for mode in calls.MODES:
            name = calls.name_of(family, case, mode, platform)
            if name in KNOWN:
                yield name, case, mode


def called(case: Case, mode: str, platform: str) -> list[str] | str:
    """What a program calls, or the error that says why there is no program."""
    f, args = calls.functions(pullback, case)[mode]
    with enable_x64(case.x64):
        try:
            text = portable.portable(make_jaxpr(f)(*args), "f", [platform]).text
        except MissingRuleError as error:
            return str(error)
        return calls.calls(from_portable(to_portable(text)))


def difference(name: str, case: Case, mode: str, platform: str) -> str:
    """What a program calls that JAX's does not, and the other way round; empty if nothing."""
    ours, theirs = called(case, mode, platform), KNOWN[name]
    if isinstance(ours, str) or isinstance(theirs, str):
        return "" if isinstance(ours, str) == isinstance(theirs, str) else f"{name}: {ours} != {theirs}"
    assert not [call for call in ours if re.match(SAME_EVERYWHERE, call)], name
    if mode == "derivative":  # the rules are others, and may call a function with other operands
        ours, theirs = (sorted({calls.target_of(call) for call in side}) for side in (ours, theirs))
    more, less = (sorted(set(a) - set(b)) for a, b in ((ours, theirs), (theirs, ours)))
    lines = [f"{name}:", *(f"  only Pullback: {x}" for x in more), *(f"  only JAX: {x}" for x in less)]
    return "\n".join(lines) if more or less else ""


def few(platform: str) -> Iterator[tuple[str, Case, str]]:
    """One program of each operation on matrices for CUDA, and each sixteenth of all."""
    seen = set()
    for i, (name, case, mode) in enumerate(programs(platform)):
        first = platform == "cuda" and name.startswith("decompositions") and calls.stem(case) not in seen
        seen.add(calls.stem(case))
        if first or i % 16 == 0:
            yield name, case, mode


def compare(chosen: Iterator[tuple[str, Case, str]], platform: str) -> None:
    wrong = [difference(*program, platform) for program in chosen if not reason(program[0])]
    assert not any(wrong), "\n".join(filter(None, wrong))


@pytest.mark.parametrize("platform", calls.PLATFORMS)
def test_programs_call_what_those_of_jax_call(platform: str) -> None:
    compare(programs(platform) if EXHAUSTIVE else few(platform), platform)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("platform", calls.PLATFORMS)
def test_all_programs_call_what_those_of_jax_call(platform: str, part: int) -> None:
    compare(itertools.islice(programs(platform), part, None, 4), platform)


def test_every_reason_is_needed() -> None:
    """A reason that no program needs any more goes."""
    names = [name for platform in calls.PLATFORMS for name, *_ in programs(platform)]
    for pattern in DIFFERENT:
        assert any(re.search(pattern, name) for name in names), pattern


def test_the_plug_in_registers_what_programs_call() -> None:
    """Each function that JAX's programs for CUDA call is one that the plug-in of the same release registers."""
    registered = set(json.loads(calls.TARGETS_FILE.read_text())["targets"])
    of_the_compiler = {"ApproxTopK"}
    called = {calls.target_of(x) for k, v in KNOWN.items() if k.endswith("/cuda") and not isinstance(v, str) for x in v}
    assert called - registered == of_the_compiler
