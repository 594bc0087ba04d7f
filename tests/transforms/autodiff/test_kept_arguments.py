"""Arguments among the residuals of a ``vjp`` function: leaving them out, and restoring them."""

from __future__ import annotations

import gc
import pickle
import weakref
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import ad, tree, vjp
from pullback.core.errors import ArgumentError
from pullback.transforms.autodiff.kept_arguments import NotNeeded, NotSaveable

X, W = jnp.arange(6.0).reshape(2, 3) / 8, jnp.arange(9.0).reshape(3, 3) / 8
CT = jnp.ones((2, 3))


def layer(x: Any, w: Any) -> Any:
    return jnp.tanh(x @ w)


def same(a: Any, b: Any) -> None:
    for x, y in zip(tree.leaves(a), tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5)


EXPECTED = vjp(layer, X, W)[1](CT)


@pytest.mark.parametrize("compiled", [False, True])
def test_an_argument_that_is_left_out_is_restored(compiled: bool) -> None:
    wrap = pullback.jit if compiled else lambda f: f
    out, pull = wrap(lambda x, w: vjp(layer, x, w, saveable_args=(True, False)))(X, W)
    assert isinstance(pull.args_res[1], NotSaveable)
    assert len(tree.leaves(pull)) == len(tree.leaves(vjp(layer, X, W)[1])) - 1
    for function in (pull, pickle.loads(pickle.dumps(pull)), pull.with_refs(ad.GradValue(), ad.GradValue())):
        with pytest.raises(ArgumentError, match=r"not-saveable.* args\[1\]\. Assign them"):
            wrap(lambda f, ct: f(ct))(function, CT)
        same(function.replace(args_res=[function.args_res[0], W])(CT), EXPECTED)

    def backward(f: Any, w: Any, ct: Any) -> Any:
        f.args_res[1] = w
        return f(ct)

    same(wrap(backward)(pull, W, CT), EXPECTED)
    same(wrap(backward)(pull, 2 * W, CT)[0], vjp(lambda x: x @ (2 * W), X)[1](CT * (1 - out**2)))


def test_nothing_holds_an_argument_that_is_left_out() -> None:
    w = W + 1.0
    gone = weakref.ref(w)
    _, pull = vjp(layer, X, w, saveable_args=(True, False))
    _, other = vjp(layer, X, w)
    other.args_res[1] = None
    del w
    gc.collect()
    assert gone() is None
    for f in (pull, other):
        f.args_res[1] = W + 1.0
        same(f(CT), vjp(layer, X, W + 1.0)[1](CT))


def test_a_tuple_fits_other_containers() -> None:
    d = {"hi": jnp.ones((4, 5)), "bye": jnp.arange(12.0).reshape(3, 4), "c": jnp.ones(5)}
    f = lambda d: d["bye"] @ d["hi"] + d["c"]
    expected = vjp(f, d)[1](jnp.ones((3, 5)))
    _, pull = vjp(f, d, saveable_args=((True, False, False),))
    bye, c, hi = pull.args_res[0]
    assert isinstance(c, NotNeeded)
    assert isinstance(hi, NotSaveable)
    same(bye, d["bye"])
    with pytest.raises(ArgumentError, match=r"args\[0\]\['hi'\]"):
        pull(jnp.ones((3, 5)))
    for restored in ([d], [(d["bye"], None, d["hi"])], [{**d, "c": NotNeeded()}]):
        same(pull.replace(args_res=restored)(jnp.ones((3, 5))), expected)
    for wrong, message in [
        ([(1.0, 2.0)], r"args_res\[0\] must be a tree like the argument"),
        ([{"hi": 1.0, "bye": 2.0, "d": 3.0}], r"args_res\[0\] must be a tree like the argument"),
        ([d, d], "args_res must be a tree like"),
        ([{**d, "hi": jnp.ones((4, 6))}], r"args_res\[0\]\['hi'\] must be f32\[4,5\]"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            pull.replace(args_res=wrong)(jnp.ones((3, 5)))


@pytest.mark.parametrize(
    ("saveable", "message"),
    [
        ((True,), "another number of children, 2"),
        ((True, (True, True)), r"args\[1\] is a leaf"),
        ((1, True), "tuple-tree of bools"),
        ([True, True], "tuple-tree of bools"),
    ],
)
def test_flags_that_do_not_fit(saveable: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        vjp(layer, X, W, saveable_args=saveable)


def test_all_is_left_out() -> None:
    _, pull = vjp(lambda x, w: x @ w, X, W, saveable_args=False)
    assert tree.leaves(pull) == []
    pull.args_res = [X, W]
    same(pull(CT), vjp(lambda x, w: x @ w, X, W)[1](CT))
    _, sine = vjp(jnp.sin, 3.0, saveable_args=False)
    assert isinstance(sine.args_res[0], NotNeeded)
    same(sine(1.0)[0], jnp.cos(3.0))
    assert (NotSaveable(), hash(NotSaveable())) == (NotSaveable(), hash(NotSaveable()))
    assert NotSaveable() != NotNeeded()
