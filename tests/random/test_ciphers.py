"""The generators Threefry-4x32 and Philox: known answers of their authors, and figures of JAX 0.12.0.1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as pnp
from pullback import jit, random, vmap
from pullback.core.errors import DtypeError
from pullback.core.trace import Primitive
from pullback.primitives.random.ciphers import CIPHERS, philox2x32_p, philox4x32_p, threefry4x32_p

ONES = 0xFFFFFFFF
PI = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0, 0x082EFA98, 0xEC4E6C89)
KNOWN = [
    (philox2x32_p, [0] * 3, "FF1DAE59 6CD10DF2"),
    (philox2x32_p, [ONES] * 3, "2C3F628B AB4FD7AD"),
    (philox2x32_p, [PI[2], *PI[:2]], "DD7CE038 F62A4C12"),
    (philox4x32_p, [0] * 6, "6627E8D5 E169C58D BC57AC4C 9B00DBD8"),
    (philox4x32_p, [ONES] * 6, "408F276D 41C83B0E A20BC7C6 6D5451FD"),
    (philox4x32_p, [*PI[4:6], *PI[:4]], "D16CFE09 94FDCCEB 5001E420 24126EA1"),
    (threefry4x32_p, [0] * 8, "9C6CA96A E17EAE66 FC10ECD4 5256A7D8"),
    (threefry4x32_p, [ONES] * 8, "2A881696 57012287 F6C7446E A16A6732"),
    (threefry4x32_p, [*PI[4:], *PI[:4]], "59CD1DBB B8879579 86B5D00C AC8B6D84"),
]


@pytest.mark.parametrize(("bijection", "operands", "expected"), KNOWN)
def test_known_answers(bijection: Primitive, operands: list[int], expected: str) -> None:
    """Of keys and counters of zeros, of ones, and of the digits of pi, by NumPy and compiled."""
    words = [np.uint32(x) for x in operands]
    for run in (bijection.bind, jit(bijection.bind)):
        assert " ".join(f"{int(x):08X}" for x in run(*words)) == expected


# What ``figures`` returns under JAX.
FIGURES: dict[str, list[list[float]]] = {
    "threefry4x32": [
        [2535856969, 757880446, 1703251539, 2659320],
        [3617711967, 3739764675, 2917855108, 609554591],
        [1943616406, 1729971241, 2662063793, 3154274746, 242730383, 2552065035, 848077674, 1553483864],
        [2369109050, 1296250655, 393845505, 1615665431],
        [180, 143, 250],
        [51380, 20879, 45050],
        [913164468, 1624920463, 412397562],
        [17109989893676674451, 9528326259287866288],
        [0.2126126, 0.3783312, 0.0960187],
        [2.3938055, 11.1988773],
        [2.0, 3.0],
    ],
    "philox2x32": [
        [2246910722],
        [326457608],
        [2904543977, 3512304938],
        [2831481926],
        [233, 250, 248],
        [31465, 28666, 13560],
        [1393916649, 765423610, 1943221496],
        [12474921395270887424, 15085234846530202320],
        [0.3245465, 0.178214, 0.4524415],
        [1.643472, 3.3377709],
        [2.0, 5.0],
    ],
    "philox4x32": [
        [4130576541, 252180694],
        [3070865155, 1409865214],
        [3390616171, 2545328165, 3426512584, 1605298195],
        [252809835, 1528754437],
        [21, 85, 186],
        [16661, 43349, 41146],
        [1496596757, 1056680277, 1600364730],
        [14562585570279071781, 2471319663975561974],
        [0.3484535, 0.2460275, 0.3726139],
        [0.9622852, 5.9358048],
        [5.0, 4.0],
    ],
}  # fmt: skip


def figures(impl: str) -> list[Any]:
    key = random.key(7, impl=impl)
    with pullback.enable_x64(True):
        of_64_bits, long_seed = random.bits(key, (2,), "uint64"), random.key(2**40 + 3, impl=impl)
    found = [
        random.key_data(random.key(-1, impl=impl)), random.key_data(long_seed),
        random.key_data(random.split(key, (1, 2))), random.key_data(random.fold_in(key, 5)),
        random.bits(key, (3,), "uint8"), random.bits(key, (3,), "uint16"), random.bits(key, (3,)), of_64_bits,
        random.uniform(key, (3,)), random.gamma(key, pnp.array([2.0, 5.0])),
        random.binomial(key, 10, pnp.array([0.3, 0.5])),
    ]  # fmt: skip
    return [np.ravel(x) for x in found]


@pytest.mark.parametrize("impl", CIPHERS)
def test_figures_of_jax(impl: str) -> None:
    for found, expected in zip(figures(impl), FIGURES[impl], strict=True):
        if found.dtype.kind == "f":
            np.testing.assert_allclose(found, expected, rtol=3e-7)
        else:
            np.testing.assert_array_equal(found, np.array(expected, found.dtype))


@pytest.mark.parametrize("impl", CIPHERS)
def test_batches_of_keys(impl: str) -> None:
    """Each key of a batch draws what it draws alone, also by rejection."""
    keys = random.split(random.key(0, impl=impl), 3)
    np.testing.assert_array_equal(
        random.key_data(keys),
        random.key_data(vmap(lambda i: random.fold_in(random.key(0, impl=impl), i))(pnp.arange(3))),
    )
    for draw in (lambda k: random.bits(k, (2,)), lambda k: random.poisson(k, 3.0), lambda k: random.gamma(k, 0.5)):
        alone = [draw(k) for k in keys]
        np.testing.assert_allclose(vmap(draw)(keys), alone, rtol=1e-6)
        np.testing.assert_allclose(jit(vmap(draw))(keys), alone, rtol=1e-6)


def test_other_operands_are_refused() -> None:
    with pytest.raises(DtypeError, match="philox2x32 takes 3 operands of uint32: 1 of a key and 2 of a counter; got"):
        pullback.eval_shape(philox2x32_p.bind, np.float32(1), np.uint32(1), np.uint32(1))
    with pytest.raises(DtypeError, match="philox4x32 takes 6 operands"):
        pullback.eval_shape(philox4x32_p.bind, np.uint32(1), np.uint32(1))
