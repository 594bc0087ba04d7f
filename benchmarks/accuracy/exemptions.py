"""Functions that may exceed their limits, at most ten, each with the reason."""

EXEMPT: dict[str, str] = {}
