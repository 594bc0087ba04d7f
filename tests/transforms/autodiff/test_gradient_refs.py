"""Cotangents that go to references, to the caller, or nowhere: ``with_refs`` of a function that ``vjp`` returned."""

from __future__ import annotations

import numpy as np
import pytest

import pullback.numpy as pnp
from pullback import ad, freeze, jit, lax, make_jaxpr, new_ref, tree, vjp, vmap
from pullback.errors import ArgumentError, RefError


def power(x, y):
    return x**2 * y["a"] + y["b"]


ARGUMENTS = (2.0, {"a": 3.0, "b": 5.0})
VALUE, NOT = ad.GradValue(), ad.DontWant()


def test_each_cotangent_goes_where_it_is_told_to():
    _, pull = vjp(power, *ARGUMENTS)
    ref = new_ref(100.0)
    bound = pull.with_refs(ref, {"a": VALUE, "b": NOT})
    first, rest = bound(1.0)
    assert (first, rest["b"]) == (ad.GradRef(), ad.DidntWant())
    assert float(rest["a"]) == 4
    assert float(ref[...]) == 112
    bound(10.0)
    assert float(ref[...]) == 232
    assert [float(x) for x in tree.leaves(pull(1.0))] == [12, 4, 1]  # the first function is as it was


def test_a_prefix_stands_for_a_tree():
    _, pull = vjp(power, *ARGUMENTS)
    assert pull.with_refs(VALUE, NOT)(1.0)[1] == {"a": ad.DidntWant(), "b": ad.DidntWant()}
    assert [float(x) for x in tree.leaves(pull.with_refs(VALUE, VALUE)(1.0))] == [12, 4, 1]
    again = pull.with_refs(NOT, NOT).with_refs(VALUE, NOT)
    assert float(again(1.0)[0]) == 12


def test_what_is_not_wanted_is_not_computed():
    _, pull = vjp(lambda w, x: w @ x, pnp.ones((4, 4)), pnp.ones(4))
    counted = [
        str(make_jaxpr(lambda p=p: p(pnp.ones(4)))()).count("dot_general")
        for p in (pull, pull.with_refs(VALUE, NOT), pull.with_refs(NOT, VALUE), pull.with_refs(NOT, NOT))
    ]
    assert counted == [2, 1, 1, 0]
    np.testing.assert_array_equal(pull.with_refs(NOT, VALUE)(pnp.arange(4.0))[1], np.full(4, 6.0))


def test_gradients_of_batches_accumulate_in_a_loop():
    def loss(w, x):
        return pnp.sum(pnp.tanh(x @ w))

    def run(w, batches):
        total = new_ref(pnp.zeros_like(w))

        def body(_, x):
            value, pull = vjp(lambda w: loss(w, x), w)
            pull.with_refs(total)(pnp.ones_like(value))
            return None, value

        return lax.scan(body, None, batches)[1], total[...]

    rng = np.random.default_rng(0)
    w, batches = pnp.asarray(rng.normal(size=3), "float32"), pnp.asarray(rng.uniform(0.1, 1, (5, 4, 3)), "float32")
    expected = sum(vjp(lambda w, x=x: loss(w, x), w)[1](1.0)[0] for x in batches)
    for f in (run, jit(run)):
        values, found = f(w, batches)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        assert values.shape == (5,)


def test_a_bound_function_passes_through_jit_and_vmap():
    ref = new_ref(0.0)
    _, pull = vjp(power, *ARGUMENTS)
    bound = pull.with_refs(ref, NOT)
    jit(lambda p: p(1.0)[0] is None)(bound)
    assert float(ref[...]) == 12
    rows = new_ref(pnp.zeros(3))

    def one(x, r):
        vjp(pnp.sin, x)[1].with_refs(r)(1.0)

    vmap(one)(pnp.arange(3.0), rows)
    np.testing.assert_allclose(rows[...], np.cos(np.arange(3.0)), rtol=1e-6)


def test_the_point_may_be_a_reference():
    def f(ref, y):
        ref[...] = pnp.sin(ref[...])
        return ref[...] ** 2 * y

    ref, total = new_ref(2.0), new_ref(1.0)
    out, pull = vjp(f, ref, 3.0)
    np.testing.assert_allclose(ref[...], np.sin(2.0), rtol=1e-6)  # it was written once
    np.testing.assert_allclose(out, 3 * np.sin(2.0) ** 2, rtol=1e-6)
    _, dy = pull.with_refs(total, VALUE)(1.0)
    np.testing.assert_allclose(total[...], 1 + 6 * np.sin(2.0) * np.cos(2.0), rtol=1e-5)
    np.testing.assert_allclose(dy, np.sin(2.0) ** 2, rtol=1e-6)
    assert pull.with_refs(NOT, NOT)(1.0) == (ad.DidntWant(), ad.DidntWant())
    with pytest.raises(RefError, match=r"must be accumulated into a ref.*with_refs"):
        pull(1.0)
    with pytest.raises(RefError, match="can't be returned as a value"):
        pull.with_refs(VALUE, VALUE)


def test_a_reference_that_is_only_read_stays_as_it_was():
    ref = new_ref(pnp.arange(3.0))
    (out, aux), pull = vjp(lambda r: (r[1] * r[2], r[0]), ref)
    assert (float(out), float(aux)) == (2, 0)
    total = new_ref(pnp.zeros(3))
    pull.with_refs(total)((1.0, 10.0))
    assert total[...].tolist() == [10, 2, 1]
    assert ref[...].tolist() == [0, 1, 2]
    out, pull, aux = vjp(lambda r: (r[1], "aux"), ref, has_aux=True)
    assert (float(out), aux) == (1, "aux")
    with pytest.raises(RefError, match="passed twice"):
        vjp(lambda a, b: a[0] + b[0], ref, ref)


def test_what_is_refused():
    _, pull = vjp(lambda x, n: x * n, pnp.ones(3), 2)
    ref = new_ref(pnp.zeros(3))
    with pytest.raises(ArgumentError, match=r"one entry for each argument.*"):
        pull.with_refs(ref)
    with pytest.raises(ArgumentError, match=r"must be a reference, ad.GradValue\(\) or ad.DontWant\(\), got 1.0"):
        pull.with_refs(1.0, VALUE)
    with pytest.raises(RefError, match=r"cannot take the cotangent of an argument of type f32\[3\]"):
        pull.with_refs(new_ref(0.0), VALUE)
    with pytest.raises(RefError, match=r"type i32\[\].*, which has no cotangent: pass"):
        pull.with_refs(VALUE, new_ref(0))
    _, pull = vjp(lambda x, y: x * y, pnp.ones(3), pnp.ones(3))
    with pytest.raises(RefError, match="is used for two cotangents"):
        pull.with_refs(ref, ref)
    other = new_ref(pnp.zeros(3))
    bound = pull.with_refs(ref, other)
    other_content = other[...]
    freeze(other)
    with pytest.raises(RefError, match="it was frozen"):
        bound(pnp.ones(3))
    assert ref[...].tolist() == other_content.tolist() == [0, 0, 0]  # nothing was written


def test_a_reference_says_where_its_elements_are():
    ref = new_ref(pnp.arange(3.0))
    assert ref.unsafe_buffer_pointer() == ref[...].unsafe_buffer_pointer()
    assert ref.committed is False
    assert ref.format.layout.major_to_minor == (0,)
