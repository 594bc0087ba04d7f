"""Progress bars of loops: one for each run, from its start to its end, moved a few times only."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import pullback.numpy as pnp
from pullback import block_until_ready, effects_barrier, grad, jit, lax, vmap
from pullback.core.errors import ControlFlowError, MissingLibraryError


class FakeBar:
    """Records what a bar of tqdm is told."""

    made: list["FakeBar"] = []  # noqa: RUF012

    def __init__(self, total, desc=None):
        self.total, self.desc, self.n, self.updates, self.closed = total, desc, 0, 0, False
        FakeBar.made.append(self)

    def update(self, count):
        assert count > 0
        self.n += count
        self.updates += 1

    def close(self):
        self.closed = True


@pytest.fixture(autouse=True)
def bars(monkeypatch):
    FakeBar.made = []
    monkeypatch.setitem(sys.modules, "tqdm", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "tqdm.auto", SimpleNamespace(tqdm=FakeBar))
    return FakeBar.made


def finish(x):
    block_until_ready(x)
    effects_barrier()
    return x


def assert_complete(bars, *totals):
    assert [b.total for b in bars] == list(totals)
    for b in bars:
        assert b.closed
        assert b.n == b.total
        assert b.updates <= 40


def scanned(x, progress=True):
    return lax.scan(lambda c, y: (pnp.sin(c) + y, c), x, pnp.ones(137), progress=progress)[0]


def looped(x, n=137, progress=True):
    return lax.fori_loop(3, 3 + n, lambda i, c: pnp.sin(c) + 1.0, x, progress=progress)


@pytest.mark.parametrize("loop", [scanned, looped])
@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_a_bar_for_each_run(loop, wrap, bars):
    f = wrap(lambda x: loop(x))
    np.testing.assert_allclose(finish(f(0.5)), loop(0.5, progress=False), rtol=1e-6)
    finish(f(0.25))
    assert_complete(bars, 137, 137)


@pytest.mark.parametrize("loop", [scanned, looped])
@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_one_bar_for_all_examples_of_a_batch(loop, wrap, bars):
    finish(wrap(vmap(lambda x: loop(x)))(pnp.ones(5)))
    assert_complete(bars, 137)


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_examples_of_different_lengths(wrap, bars):
    out = finish(wrap(vmap(looped))(pnp.ones(3), pnp.array([5, 50, 20])))
    np.testing.assert_allclose(out, [looped(1.0, n, progress=False) for n in (5, 50, 20)], rtol=1e-6)
    assert_complete(bars, 50)


@pytest.mark.parametrize("loop", [scanned, looped])
@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_a_gradient_shows_one_bar(loop, wrap, bars):
    ours = finish(wrap(grad(lambda x: loop(x)))(0.5))
    np.testing.assert_allclose(ours, grad(lambda x: loop(x, progress=False))(0.5), rtol=1e-5)
    assert_complete(bars, 137)


def test_a_traced_bound(bars):
    finish(jit(looped)(0.5, 29))
    assert_complete(bars, 29)


def test_no_steps_and_a_description(bars):
    finish(lax.fori_loop(5, 5, lambda i, c: c, 1.0, progress="empty"))
    assert [(b.total, b.desc, b.n) for b in bars] == [(0, "empty", 0)]


def test_what_is_refused(monkeypatch):
    with pytest.raises(ControlFlowError, match="progress must be a bool"):
        scanned(1.0, progress=3)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(MissingLibraryError, match=r"pip install 'pullback\[progress\]'"):
        looped(1.0)
