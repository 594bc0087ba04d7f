"""The shapes with which programs of files may call LAPACK."""

from __future__ import annotations

from typing import Any

import pytest

from pullback.backends.compiler.lapack_calls import TARGETS, fits
from pullback.core.types import Shape

Call = tuple[str, list[Shape], list[Shape], dict[str, str]]
LEFT, RIGHT = {"side": str(ord("L"))}, {"side": str(ord("R"))}
ALL, SOME, NONE = ({"mode": str(ord(letter))} for letter in "ASN")

RIGHT_CALLS: list[Call] = [
    ("spotrf", [(3, 3)], [(3, 3), ()], {}),
    ("dpotrf", [(2, 3, 3)], [(2, 3, 3), (2,)], {}),
    ("sgetrf", [(4, 3)], [(4, 3), (3,), ()], {}),
    ("cgeqrf", [(2, 3, 4)], [(2, 3, 4), (2, 3)], {}),
    ("sgeqp3", [(4, 3), (3,)], [(4, 3), (3,), (3,)], {}),
    ("sorgqr", [(4, 4), (3,)], [(4, 4)], {}),
    ("zungqr", [(4, 2), (2,)], [(4, 2)], {}),
    ("sormqr", [(4, 3), (3,), (4, 5)], [(4, 5)], {"left": "true"}),
    ("cunmqr", [(4, 3), (3,), (5, 4)], [(5, 4)], {"left": "false"}),
    ("strsm", [(3, 3), (3, 5)], [(3, 5)], LEFT),
    ("dtrsm", [(3, 3), (5, 3)], [(5, 3)], RIGHT),
    ("sgtsv", [(3,), (3,), (3,), (3, 2)], [(3,), (3,), (3,), (3, 2), ()], {}),
    ("sgesdd", [(4, 3)], [(4, 3), (3,), (4, 4), (3, 3), ()], ALL),
    ("cgesvd", [(4, 3)], [(4, 3), (3,), (4, 3), (3, 3), ()], SOME),
    ("sgesvd", [(4, 3)], [(4, 3), (3,), (4, 4), (3, 3), ()], NONE),
    ("ssyevd", [(3, 3)], [(3, 3), (3,), ()], {}),
    ("cheevd", [(2, 3, 3)], [(2, 3, 3), (2, 3), (2,)], {}),
    ("ssytrd", [(3, 3)], [(3, 3), (3,), (2,), (2,), ()], {}),
    ("chetrd", [(3, 3)], [(3, 3), (3,), (2,), (2,), ()], {}),
    ("sgehrd", [(3, 3)], [(3, 3), (2,), ()], {}),
    ("sgeev", [(3, 3)], [(3,), (3,), (3, 3), (3, 3), ()], {}),
    ("cgeev", [(3, 3)], [(3,), (3, 3), (3, 3), ()], {}),
    ("sgees", [(3, 3)], [(3, 3), (3, 3), (3,), (3,), (), ()], {}),
    ("cgees", [(3, 3)], [(3, 3), (3, 3), (3,), (), ()], {}),
]
"""Each routine as JAX 0.10.2 calls it."""


def allowed(call: Call) -> bool:
    name, operands, results, options = call
    return fits(f"lapack_{name}_ffi", operands, results, options)


def test_every_routine_is_tried() -> None:
    assert {name[1:] for name, *_ in RIGHT_CALLS} == {target[len("lapack_s") : -len("_ffi")] for target in TARGETS}


@pytest.mark.parametrize("call", RIGHT_CALLS, ids=lambda call: call[0])
def test_shapes_that_belong_together(call: Call) -> None:
    name, operands, results, options = call
    assert allowed(call)
    assert not allowed((name, operands, results[:-1], options))
    assert not allowed((name, operands, [*results, ()], options))
    assert not allowed((name, operands[:-1], results, options))
    for side in (operands, results):
        for i, shape in enumerate(side):
            for k in range(len(shape)):
                if name[1:3] in ("or", "un") and side is operands and (i, k) in ((0, 1), (1, 0)):
                    continue  # there may be more columns than reflections
                other: Any = [list(map(tuple, operands)), list(map(tuple, results))]
                other[side is results][i] = (*shape[:k], shape[k] + 1, *shape[k + 1 :])
                assert not allowed((name, *other, options)), other


def test_options_that_other_shapes_belong_to() -> None:
    by_name = {name: (operands, results) for name, operands, results, _ in RIGHT_CALLS}
    for name, options in [
        ("strsm", RIGHT), ("dtrsm", LEFT), ("sormqr", {"left": "false"}), ("sormqr", {}), ("sgesdd", SOME),
        ("cgesvd", ALL), ("cgesvd", {"mode": str(ord("O"))}), ("cgesvd", {}),
    ]:  # fmt: skip
        assert not allowed((name, *by_name[name], options))
    assert not allowed(("sorgqr", [(3, 4), (4,)], [(3, 4)], {}))  # more columns than rows
    assert not allowed(("sorgqr", [(4, 3), (4,)], [(4, 3)], {}))  # more reflections than columns
    assert not allowed(("sormqr", [(4, 3), (4,), (4, 5)], [(4, 5)], {"left": "true"}))
    assert not allowed(("sother", [(3, 3)], [(3, 3)], {}))
    assert not fits("other", [(3, 3)], [(3, 3)], {})
