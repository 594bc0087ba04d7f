"""Programs for GPUs and TPUs move values between memories where JAX's do. None of them has run there."""

from __future__ import annotations

import json
import re

import pytest

import pullback
import pullback.ad_checkpoint
import pullback.export
from tests.recorded import memories
from tests.recorded.calls import PLATFORMS

KNOWN = json.loads(memories.FILE.read_text())["programs"]


@pytest.mark.parametrize("name", memories.NAMES)
def test_values_move_where_those_of_jax_do(name: str) -> None:
    for platform in PLATFORMS:
        assert memories.memories(memories.exported(pullback, name, platform)) == KNOWN[name], platform


def test_programs_for_cpus_move_nothing() -> None:
    for name in memories.NAMES:
        assert not re.search("memory_kind|annotate", memories.exported(pullback, name, "cpu")), name
