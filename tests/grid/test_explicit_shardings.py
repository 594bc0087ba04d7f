"""Laws of shardings in types hold for every operation; over a mesh without devices, so that no program runs."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.grid.all_specs import OF_PRIMITIVES
from tests.grid.explicit_laws import broken_laws, divisions, values_of

ROWS = sorted((s for s in OF_PRIMITIVES if s.samples), key=lambda spec: spec.operation)
OPERATIONS = {name: list(rows) for name, rows in itertools.groupby(ROWS, key=lambda spec: spec.operation)}


@pytest.mark.parametrize("name", OPERATIONS)
def test_results_of_all_transformations_are_sharded_alike(name: str) -> None:
    broken: dict[str, Any] = {}
    for spec in OPERATIONS[name]:
        args = values_of(spec)
        if all(x.size for x in args):
            for division in divisions(args):
                found = broken_laws(spec, args, division)
                if found:
                    broken[f"{spec} {division}"] = found
    assert broken == {}
