"""Shapes to which the operands of an operation of a tape broadcast."""

import pytest

from pullback.core.elementwise_shapes import _broadcast


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([(3, 4), (3, 4)], (3, 4)), ([(), (3, 4)], (3, 4)), ([(4,), (3, 4)], (3, 4)), ([(3, 1), (3, 4)], (3, 4)),
        ([(1,), (2,)], (2,)), ([(2,), (1,)], (2,)), ([(1, 3), (2, 3), (1, 1)], (2, 3)), ([(1,), (0,)], (0,)),
        ([(3, 1), (1, 4)], None), ([(1, 4), (3, 1), (3, 4)], None), ([(), ()], ()),
    ],
)  # fmt: skip
def test_the_shape_is_one_of_the_operands_or_unknown(shapes, expected) -> None:
    assert _broadcast(shapes) == expected
