"""The latest results of each function, kept beside the exact values, so that some can be measured anew."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.accuracy.functions import FUNCTIONS
from benchmarks.accuracy.measure import Error, Row
from benchmarks.accuracy.reference import cache_directory


def keep(rows: Sequence[Row]) -> None:
    """Put results in the place of those that are kept of the same functions."""
    kept = _read()
    for name in {row.name for row in rows}:
        kept[name] = [asdict(row) for row in rows if row.name == name]
    _path().parent.mkdir(parents=True, exist_ok=True)
    _path().write_text(json.dumps(kept, default=str))


def latest() -> list[Row]:
    """All results that are kept, in the order of the table."""
    kept = _read()
    return [_row(fields) for function in FUNCTIONS for fields in kept.get(function.label, [])]


def missing() -> list[str]:
    """The functions of which there are no results."""
    return [function.label for function in FUNCTIONS if function.label not in _read()]


def _path() -> Path:
    return cache_directory() / "results.json"


def _read() -> dict[str, Any]:
    return json.loads(_path().read_text()) if _path().exists() else {}


def _row(fields: dict[str, Any]) -> Row:
    return Row(**fields | {"errors": {source: Error(**error) for source, error in fields["errors"].items()}})
