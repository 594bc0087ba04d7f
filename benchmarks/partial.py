"""Measurements of a run that is not complete, a line for each, so that a run that was broken off goes on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class Partial:
    """What a run has measured so far.

    Attributes:
      found: the measurements by key, in the order in which they were made.

    Args:
      path: the file.
      run: what has to agree for measurements of another run to be kept: libraries and settings.
      resume: whether measurements in the file are kept; otherwise it begins anew.
    """

    def __init__(self, path: Path, run: Sequence[Any], resume: bool) -> None:
        self.path, self.run = path, json.loads(json.dumps(run))
        self.found: dict[str, Any] = {}
        if resume and path.exists():
            kept = [line for line in map(_parsed, path.read_text(encoding="utf-8").splitlines()) if line]
            self.found = {key: value for made_by, key, value in kept if made_by == self.run}
        path.unlink(missing_ok=True)
        for key, value in self.found.items():
            self.add(key, value)

    def add(self, key: str, value: Any) -> None:
        """Keep a measurement, which JSON can write."""
        self.found[key] = value
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([self.run, key, value]) + "\n")

    def finish(self) -> None:
        """Remove the file: the run is complete."""
        self.path.unlink(missing_ok=True)


def _parsed(line: str) -> Any:
    """The content of a line; None of half a line, which the last may be where the machine stopped."""
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None
