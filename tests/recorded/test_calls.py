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

DIFFERENT: dict[str, str] = {}
"""By a pattern of names of programs, why they call something else than JAX's."""


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


def compare(chosen: Iterator[tuple[str, Case, str]], platform: str) -> None:
    wrong = [difference(*program, platform) for program in chosen if not reason(program[0])]
    assert not any(wrong), "\n".join(filter(None, wrong))
