from collections.abc import Sequence

import numpy as np

Loop = tuple[int, int]

def find(ufunc: np.ufunc, types: bytes, /) -> Loop | None: ...
def own(name: str, /) -> Loop | None: ...
def run(
    shape: tuple[int, ...],
    values: list[object],
    steps: list[tuple[Loop, tuple[int, ...]]],
    block: int,
    helpers: int,
    /,
) -> None: ...
