"""Wavelet transforms: figures recorded of PyWavelets, inverses, derivatives by signals and by filters."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import errors, grad, jit, tree, vmap
from pullback.core.config import enable_x64
from pullback.scipy.signal import wavelets
from pullback.test_util import check_grads
from tests.scipy.laws import check_laws

RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("wavelets.json").read_text(encoding="utf-8"))
X = np.array(RECORDED["signal"])
MODES = (
    "zero", "constant", "symmetric", "periodic", "smooth", "periodization", "reflect", "antisymmetric", "antireflect",
)  # fmt: skip
RNG = np.random.default_rng(8)
pytestmark = pytest.mark.usefixtures("x64")


def close(found: Any, expected: Any, tolerance: float = 1e-11) -> None:
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("mode", MODES)
def test_coefficients_are_those_of_pywavelets(mode: str) -> None:
    for name in ("db2", "db5"):
        expected = RECORDED[f"{mode} {name}"]
        eager = wavelets.dwt(X, name, mode)
        for found, figures in zip(eager, expected, strict=True):
            close(found, figures)
        assert len(eager[0]) == wavelets.dwt_coeff_len(len(X), name, mode)
        close(wavelets.idwt(*eager, name, mode)[: len(X)], X)


@pytest.mark.parametrize("mode", ["antireflect", "periodization"])
def test_transforms_obey_the_laws(mode: str) -> None:
    f = lambda x: jnp.stack(wavelets.dwt(x, "db5", mode))
    check_laws(f, (X,), lambda x: np.stack([np.array(v) for v in RECORDED[f"{mode} db5"]]), tolerance=1e-11, order=1)
    low, high = (RNG.standard_normal(12) for _ in range(2))
    check_laws(lambda a, d: wavelets.idwt(a, d, "db3", mode), (low, high), order=1)


def test_filters_are_orthogonal_and_those_of_pywavelets() -> None:
    # The tables of symlets have fewer digits than doubles.
    for name, taps in RECORDED["filters"].items():
        close(wavelets.Wavelet(name).rec_lo, taps, 1e-15 if name.startswith("db") else 1e-10)
    for name in ("db7", "db38", "sym9", "sym20"):
        w = wavelets.Wavelet(name)
        n = w.dec_len
        for shift in range(0, n, 2):
            close(w.rec_lo[shift:] @ w.rec_lo[: n - shift], float(shift == 0), 1e-14)
            close(w.rec_lo[shift:] @ w.rec_hi[: n - shift], 0, 1e-14)
        moments = n // 2
        close(np.polyval(w.rec_hi, 1.0), 0, 1e-13)
        derivative = w.rec_hi @ np.arange(n) if moments > 1 else 0
        close(derivative, 0, 1e-12)
    assert abs(wavelets.Wavelet("db2").rec_lo[0] - (1 + math.sqrt(3)) / (4 * math.sqrt(2))) < 1e-16


def test_many_levels_and_images() -> None:
    for found, expected in zip(wavelets.wavedec(X, "haar", "periodic", 2), RECORDED["wavedec"], strict=True):
        close(found, expected)
    image = np.outer(X[:4], X)
    a, details = wavelets.dwt2(image, "db2", "reflect")
    for found, expected in zip((a, *details), RECORDED["dwt2"], strict=True):
        close(np.ravel(found), expected)
    close(wavelets.idwt2((a, details), "db2", "reflect")[:, :7], image)
    x = RNG.standard_normal((3, 50, 41))
    for mode in ("symmetric", "periodization"):
        close(wavelets.waverec(wavelets.wavedec(x, "db3", mode, axis=1), "db3", mode, 1), x)
        parts = wavelets.wavedec2(x, "sym2", mode, axes=(2, 1))
        close(wavelets.waverec2(parts, "sym2", mode, (2, 1))[:, :, :41], x)
    z = x[0] + 1j * x[1]
    close(jit(lambda z: wavelets.waverec(wavelets.wavedec(z, "db2"), "db2"))(z)[:, :41], z)


def test_coefficients_that_are_none_count_as_zero() -> None:
    low, high = wavelets.dwt(X, "db2")
    zero = jnp.zeros_like(low)
    close(wavelets.idwt(low, None, "db2"), wavelets.idwt(low, zero, "db2"))
    close(wavelets.idwt(None, high, "db2"), wavelets.idwt(zero, high, "db2"))
    a, (h, *_) = wavelets.dwt2(np.outer(X, X), "haar")
    none = jnp.zeros_like(a)
    close(wavelets.idwt2((a, (h, None, None)), "haar"), wavelets.idwt2((a, (h, none, none)), "haar"))
    parts = wavelets.wavedec(X, "haar", level=2)
    filled = [*parts[:2], 0 * parts[2]]
    close(wavelets.waverec([*parts[:2], None], "haar"), wavelets.waverec(filled, "haar"))
    assert wavelets.wavedec(X, "db8")[0].shape == (7,)  # no level at all


def test_filters_can_be_learned() -> None:
    named = wavelets.Wavelet("db2")
    learned = wavelets.Wavelet("mine", [jnp.asarray(v) for v in named.filter_bank])
    assert tree.leaves(named) == []
    assert len(tree.leaves(learned)) == 4
    f = lambda w, x: jnp.sum(wavelets.dwt(x, w)[1] ** 2)
    close(f(learned, X), f(named, X))
    slope = jit(grad(f))(learned, X)
    assert isinstance(slope, wavelets.Wavelet)
    bank = lambda h: wavelets.Wavelet("mine", [named.dec_lo, h, named.rec_lo, named.rec_hi])
    check_grads(
        lambda h: wavelets.dwt(jnp.asarray(X), bank(h))[1],
        (jnp.asarray(named.dec_hi),),
        1,
        eps=1e-5,
        rtol=1e-6,
        atol=1e-6,
    )
    rows = vmap(lambda x: wavelets.dwt(x, "db2")[0])(jnp.stack([X, 2 * X]))
    close(rows[1], 2 * rows[0])


def test_numbers_of_levels() -> None:
    assert [wavelets.dwt_max_level(n, 8) for n in (0, 6, 7, 13, 14, 1000)] == [0, 0, 0, 0, 1, 7]
    assert wavelets.dwt_max_level(100, wavelets.Wavelet("haar")) == 6
    assert len(wavelets.wavelist()) == 1 + 38 + 19
    with pytest.warns(UserWarning, match="at most 1 is useful"):
        wavelets.wavedec(X, "db2", level=2)


def test_single_precision_is_kept() -> None:
    with enable_x64(False):
        low, _ = wavelets.dwt(X.astype(np.float32), "db2")
        assert low.dtype == np.float32
        assert wavelets.dwt([1, 2, 3, 4], "haar")[0].dtype == np.float32


def test_what_makes_no_sense_is_refused() -> None:
    for call, text in (
        (lambda: wavelets.Wavelet("db39"), "unknown wavelet 'db39'"),
        (lambda: wavelets.Wavelet("sym1"), "unknown wavelet 'sym1'"),
        (lambda: wavelets.Wavelet("db"), "unknown wavelet 'db'"),
        (lambda: wavelets.Wavelet("mine", [X, X, X]), "filter_bank must be four filters"),
        (lambda: wavelets.Wavelet("mine", [X] * 4), "vectors of one even size"),
        (lambda: wavelets.dwt(X, 3), "dwt: wavelet must be a name or a Wavelet"),
        (lambda: wavelets.dwt(X, "haar", "mirror"), "dwt: mode must be one of 'zero'"),
        (lambda: wavelets.dwt(X[:0], "haar"), "takes signals of at least 1 elements"),
        (lambda: wavelets.dwt(X[:1], "haar", "reflect"), "takes signals of at least 2 elements"),
        (lambda: wavelets.idwt(None, None, "haar"), "at least one of the coefficients"),
        (lambda: wavelets.idwt(X, X[1:], "haar"), "must have one shape with elements"),
        (lambda: wavelets.idwt(X[:2], X[:2], "db4"), "are too few for filters of 8 elements"),
        (lambda: wavelets.wavedec(X, "haar", level=-1), "level must be at least 0"),
        (lambda: wavelets.waverec([], "haar"), "coeffs must be a list"),
        (lambda: wavelets.dwt2(np.outer(X, X), "haar", axes=(0, 0)), "the axes must differ"),
        (lambda: wavelets.idwt2(X, "haar"), "coefficients of an image are pairs"),
        (lambda: wavelets.wavelist("coif"), "family must be"),
    ):  # fmt: skip
        with pytest.raises(errors.PullbackError, match=text):
            call()
