"""Mutable references: what they hold after each transformation, in what order, and what is refused."""

import copy
import pickle

import numpy as np
import pytest

import pullback
import pullback.numpy as pnp
from pullback import (
    checkpoint,
    custom_jvp,
    custom_vjp,
    eval_shape,
    freeze,
    grad,
    hessian,
    jit,
    jvp,
    lax,
    linearize,
    make_jaxpr,
    new_ref,
    vjp,
    vmap,
)  # fmt: skip
from pullback.errors import ConcretizationTypeError, OperandError, RefError, RefIndexError, UnexpectedTracerError


def store(ref, x):
    ref[...] = x


def ref_of(x):
    return new_ref(pnp.asarray(x, "float32"))


def held(ref):
    return np.asarray(ref[...]).tolist()


# One at a time --------------------------------------------------------------------------------------------------------


def test_a_reference_describes_itself():
    ref = new_ref(pnp.arange(6.0).reshape(2, 3))
    assert (ref.shape, ref.ndim, ref.size, len(ref)) == ((2, 3), 2, 6, 2)
    assert ref.dtype == np.float32
    assert str(ref.aval) == "Ref{float32[2,3]}"
    assert ref.aval == pullback.ref.AbstractRef(pullback.typeof(ref[...]))
    assert repr(new_ref(pnp.arange(3.0))) == "Ref([0., 1., 2.], dtype=float32)"
    assert isinstance(ref, pullback.Ref)
    assert not isinstance(ref, pullback.Array)
    assert ref == ref
    assert ref != new_ref(ref[...])
    assert [row.tolist() for row in ref] == [[0, 1, 2], [3, 4, 5]]


def test_indices_read_and_write_what_they_do_of_arrays():
    ref = new_ref(pnp.arange(6.0).reshape(2, 3))
    ref[0, 1] = 10.0
    ref[1] += pnp.ones(3)
    ref[:, 2] = pnp.array([7.0, 8.0])
    ref[pnp.array([0, 1]), pnp.array([0, 0])] *= 2
    assert held(ref) == [[0, 10, 7], [8, 5, 8]]
    assert ref[-1, ::2].tolist() == [8, 8]
    assert pullback.ref.get(ref, (0, slice(1, 3))).tolist() == [10, 7]
    assert ref[None].tolist() == pullback.ref.get(ref).tolist() == held(ref)


def test_what_was_read_does_not_change():
    start = pnp.zeros(3)
    ref = new_ref(start)
    before = ref[...]
    ref[1] = 5.0
    assert before.tolist() == start.tolist() == [0, 0, 0]
    assert held(ref) == [0, 5, 0]


def test_swap_set_and_addupdate():
    ref = new_ref(pnp.arange(5))
    assert int(pullback.ref.swap(ref, 3, 10)) == 3
    pullback.ref.set(ref, 0, 7)
    pullback.ref.addupdate(ref, pnp.array([1, 1]), pnp.array([10, 20]))
    ref.addupdate(1, 4)
    assert held(ref) == [7, 31, 2, 10, 5]
    assert pullback.ref.swap(ref, ..., pnp.zeros(5, int)).tolist() == [7, 31, 2, 10, 5]
    assert held(ref) == [0] * 5


def test_types_never_change():
    ref = new_ref(1.0)
    ref[...] = pnp.float32(2)
    assert ref[...].weak_type
    half = new_ref(pnp.ones(3, "float16"))
    half[0] = 2.5
    assert (half.dtype, held(half)) == (np.float16, [2.5, 1, 1])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (pnp.ones(2), "shape"), (1.0, "shape"), (pnp.ones((1, 3)), "shape"), (pnp.ones(3, "int32"), "dtype"),
        (pnp.ones(3, "float16"), "dtype"), (pnp.ones(3) * 1j, "dtype"),
    ],
)  # fmt: skip
def test_values_of_other_types_are_refused(value, message):
    ref = new_ref(pnp.arange(3.0))
    for write in (lambda: store(ref, value), lambda: pullback.ref.addupdate(ref, ..., value)):
        with pytest.raises(RefError, match=message):
            write()
    assert held(ref) == [0, 1, 2]


def test_what_is_no_array_is_refused():
    ref = new_ref(pnp.arange(3.0))
    for call in (lambda: pnp.sin(ref), lambda: new_ref(ref), lambda: new_ref([1.0]), lambda: store(ref, ref)):
        with pytest.raises(OperandError):
            call()
    for call in (lambda: ref + 1, lambda: np.ones(3) * ref, lambda: bool(ref), lambda: pullback.Ref(1.0)):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(RefError, match="takes a reference"):
        pullback.ref.get(pnp.ones(3), 0)
    for index in (3, (0, 0), -4):
        with pytest.raises(RefIndexError):
            ref[index]
        with pytest.raises(ValueError, match="reference"):
            ref[index] = 1.0


def test_a_frozen_reference_cannot_be_used():
    ref, other = ref_of(1), ref_of(2)
    assert float(freeze(ref)) == 1
    pullback.free_ref(other)
    for ended in (ref, other):
        for use in (lambda r: r[...], lambda r: store(r, 1.0), freeze, jit(lambda r: r[...])):
            with pytest.raises(RefError, match="cannot be used anymore"):
                use(ended)
    kept = ref_of(3)
    for use in (jit(freeze), jit(lambda: freeze(kept))):
        with pytest.raises(RefError, match="belongs to the caller"):
            use(*[kept] * (use is not None and use.__wrapped__ is freeze))
    assert held(kept) == 3


def test_copies_are_their_own():
    ref = ref_of([1, 2])
    for other in (copy.deepcopy(ref), pickle.loads(pickle.dumps(ref))):
        other[0] = 5.0
        assert (held(other), held(ref)) == ([5, 2], [1, 2])
    assert pullback.tree.leaves({"a": ref}) == [ref]


# Compiled functions ---------------------------------------------------------------------------------------------------


def test_compiled_functions_read_and_write_in_order():
    ref, log = ref_of(1), new_ref(pnp.zeros(3))

    @jit
    def f(x):
        log[0] = ref[...]
        ref[...] += x
        log[1] = ref[...]
        ref[...] *= 2
        log[2] = ref[...]
        return ref[...]

    assert float(f(2.0)) == 6
    assert held(log) == [1, 3, 6]
    assert float(f(2.0)) == 16
    assert held(log) == [6, 8, 16]
    ref[...] = pnp.float32(0)
    assert float(f(1.0)) == 2  # not what was there when it was traced
    assert f._cache_size() == 1


def test_references_are_arguments_of_compiled_functions():
    traced = []

    @jit
    def f(tree, *, scale):
        traced.append(1)
        tree["ref"][0] += tree["x"] * scale
        return tree["ref"][...].sum()

    for _ in range(2):
        one, other = new_ref(pnp.ones(2)), new_ref(pnp.zeros(2))
        for ref in (one, other):
            f({"ref": ref, "x": 2.0}, scale=3.0)
        assert (held(one), held(other)) == ([7, 1], [6, 0])
    assert len(traced) == 1
    assert float(f({"ref": new_ref(pnp.ones(2)), "x": 2.0}, scale=3.0)) == 8


def test_an_array_and_a_reference_are_different_arguments():
    f = jit(lambda x: x[...] + 1)
    assert float(f(ref_of(1))) == float(f(pnp.float32(1))) == float(f(ref_of(1))) == 2


def test_arguments_and_references_outside_at_once():
    count = new_ref(0)

    @jit
    def exchange(a, b):
        count[...] += 1
        a[...], b[...] = b[...], a[...] * 2
        return count[...]

    a, b = ref_of(1), ref_of(2)
    assert [int(exchange(a, b)), int(exchange(a, b)), int(exchange(b, a))] == [1, 2, 3]
    assert (held(a), held(b), held(count)) == (8, 2, 3)


def test_nested_compiled_functions_share_a_reference():
    ref = ref_of(1)
    inner = jit(lambda x: store(ref, ref[...] * 2 + x))

    @jit
    def outer(x):
        inner(x)
        ref[...] += 1
        inner(x)
        return ref[...]

    assert float(outer(3.0)) == held(ref) == 15
    inner(0.0)
    assert held(ref) == 30


def test_references_within_compiled_functions():
    @jit
    def f(x):
        ref = new_ref(x)
        ref[...] = ref[...] ** 2
        return freeze(ref)

    assert float(f(3.0)) == 9
    assert "ref" not in str(make_jaxpr(f)(3.0)).lower()


def test_a_compiled_function_that_uses_a_reference_of_its_caller():
    holder = []
    inner = jit(lambda x: store(holder[0], holder[0][...] * x))

    def outer(x):
        holder[:] = [new_ref(x)]
        inner(3.0)
        return holder[0][...]

    assert [float(f(2.0)) for f in (jit(outer), jit(lambda x: outer(x)), grad(outer))] == [6, 6, 3]


def test_traced_numbers_out_of_range_are_clipped():
    ref = new_ref(pnp.arange(3.0))
    assert float(jit(lambda i: ref[i])(7)) == 2
    jit(lambda i: ref.__setitem__(i, 5.0))(7)
    jit(lambda i: pullback.ref.addupdate(ref, i, 1.0))(7)
    assert held(ref) == [0, 1, 6]


def test_the_steps_of_compilation():
    ref, outside = ref_of([1, 2]), ref_of(5)

    def f(r, x):
        r[0] = outside[...] * x
        outside[...] = x
        return r[1]

    compiled = jit(f).lower(ref, 2.0).compile()
    assert (held(ref), held(outside)) == ([1, 2], 5)
    assert float(compiled(ref, 2.0)) == 2
    assert (held(ref), held(outside)) == ([10, 2], 2)
    with pytest.raises(ValueError, match="references"):
        compiled(ref[...], 2.0)
    assert jit(f).eval_shape(ref, 2.0).shape == ()


def test_static_donated_and_untraced():
    ref = ref_of(1)
    assert float(jit(lambda r: r[...], static_argnums=0)(ref)) == 1
    before = ref[...]
    jit(lambda r: store(r, r[...] + 1), donate_argnums=0)(ref)
    assert (float(before), held(ref)) == (1, 2)
    with pullback.disable_jit():
        jit(lambda r: store(r, r[...] + 1))(ref)
    assert held(ref) == 3


def test_types_and_programs_write_nothing():
    ref, argument = ref_of(1), ref_of(2)

    def f(r, x):
        ref[...] += x
        r[...] = x
        return {"y": x * ref[...]}

    assert eval_shape(f, argument, 3.0)["y"].shape == ()
    program, shapes = make_jaxpr(f, return_shape=True)(argument, pnp.float32(3))
    assert list(shapes) == ["y"]
    assert [str(a) for a in program.in_avals] == ["float32[]"] * 3  # what is outside is an input too
    assert [float(x) for x in pullback.core.eval_jaxpr(program.jaxpr, [], 2.0, 3.0, 1.0)] == [12, 3, 4]
    assert (held(ref), held(argument)) == (1, 2)


def test_one_reference_in_two_places_is_refused():
    ref = ref_of(1)
    with pytest.raises(RefError, match="passed twice"):
        jit(lambda a, b: None)(ref, ref)
    f = jit(lambda a: a[...] + ref[...])
    for _ in range(2):
        with pytest.raises(RefError, match="closes over it as well"):
            f(ref)
    f(ref_of(2))  # now it is compiled
    with pytest.raises(RefError, match="closes over it as well"):
        f(ref)
    with pytest.raises(RefError, match="passed twice"):
        vmap(lambda a, b: a[...])(*[new_ref(pnp.ones(3))] * 2)


@pytest.mark.parametrize("make", [jit, grad, vmap, lambda f: lambda x: lax.scan(lambda c, x: (c, f(x)), 0, x[None])])
def test_references_are_no_results(make):
    x = pnp.ones(2) if make is vmap else pnp.float32(1)
    with pytest.raises(RefError, match="cannot return a reference"):
        make(lambda x: new_ref(x))(x)


@pytest.mark.parametrize("make", [jit, grad, lambda f: lambda x: vmap(f)(x[None])])
def test_a_reference_that_leaks_cannot_be_used(make):
    leaked = []

    def f(x):
        leaked.append(new_ref(x))
        return x

    make(f)(pnp.float32(1))
    for use in (lambda r: r[...], lambda r: store(r, 1.0)):
        with pytest.raises(UnexpectedTracerError, match="leaked"):
            use(leaked[0])
    assert "f32[]" in repr(leaked[0])


@pytest.mark.parametrize("make", [jit, grad, vmap, lambda f: lambda x: lax.scan(lambda c, x: (f(x), None), x[0], x)])
def test_after_an_error_a_reference_holds_an_array(make):
    ref = ref_of(1)

    def f(x):
        ref[...] = lax.stop_gradient(ref[...] + 1)
        raise KeyError(x)

    with pytest.raises(KeyError):
        make(f)(pnp.float32(1) if make in (jit, grad) else pnp.ones(3))
    assert held(ref) in (1, 2)
    assert type(ref[...]).__name__ != "StageTracer"
    ref[...] += 1


# Loops and branches ---------------------------------------------------------------------------------------------------


def in_python(f, n):
    for i in range(n):
        f(i)


def by_scan(f, n):
    lax.scan(lambda c, x: (f(x), None)[1:] * 2, None, pnp.arange(n))


def by_fori(f, n):
    lax.fori_loop(0, n, lambda i, c: f(i), None)


def by_while(f, n):
    lax.while_loop(lambda i: i < n, lambda i: (f(i), i + 1)[1], 0)


def by_map(f, n):
    lax.map(f, pnp.arange(n))


LOOPS = [by_scan, by_fori, by_while, by_map]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("loop", LOOPS)
def test_bodies_of_loops_read_and_write(loop, compiled):
    total, log, factor = new_ref(0), new_ref(pnp.zeros(5, int)), new_ref(3)

    def body(i):
        log[i] = total[...]
        total[...] += factor[...] * i

    run = jit(lambda: loop(body, 5)) if compiled else lambda: loop(body, 5)
    run()
    assert (held(total), held(log)) == (30, [0, 0, 3, 9, 18])
    factor[...] = 1
    run()
    assert (held(total), held(log)) == (40, [30, 30, 31, 33, 36])


@pytest.mark.parametrize("loop", LOOPS)
def test_loops_in_loops(loop):
    count = new_ref(pnp.zeros(2, int))

    def inner(i):
        count[1] += 1

    def outer(i):
        count[0] += count[1]
        loop(inner, 3)

    loop(outer, 3)
    assert held(count) == [9, 9]


def test_a_condition_sees_what_the_body_wrote():
    ref = ref_of(1)
    steps = lax.while_loop(lambda i: ref[...] < 100, lambda i: (store(ref, ref[...] * 3), i + 1)[1], 0)
    assert (int(steps), held(ref)) == (5, 243)
    with pytest.raises(RefError, match="condition"):
        lax.while_loop(lambda i: (store(ref, 0.0), i < 3)[1], lambda i: i + 1, 0)
    assert held(ref) == 243


@pytest.mark.parametrize("reverse", [False, True])
def test_rows_of_references_in_scan(reverse):
    ref = new_ref(pnp.arange(6.0).reshape(3, 2))

    def step(c, x):
        row, factor = x
        row[0] = c
        row[1] *= factor
        return c + 1, row[1]

    c, ys = lax.scan(step, 10.0, (ref, pnp.array([1.0, 2.0, 3.0])), reverse=reverse)
    assert float(c) == 13
    assert ys.tolist() == [1, 6, 15]
    assert held(ref) == ([[12, 1], [11, 6], [10, 15]] if reverse else [[10, 1], [11, 6], [12, 15]])


def test_references_are_not_carried():
    ref = ref_of(1)
    for call in (
        lambda: lax.scan(lambda c, x: (c, x), ref, pnp.ones(3)),
        lambda: lax.fori_loop(0, 3, lambda i, c: c, ref),
        lambda: lax.while_loop(lambda c: True, lambda c: c, ref),
    ):
        with pytest.raises(RefError, match="A reference cannot be carried"):
            call()


@pytest.mark.parametrize("known", [False, True])
def test_branches_read_and_write(known):
    a, b = ref_of(1), ref_of(2)

    def one(x):
        a[...] = b[...] + x

    def two(x):
        b[...] *= 10

    def choose(i, x):
        lax.switch(i, [one, two, lambda x: None], x)
        return lax.cond(i == 0, lambda: a[...], lambda: b[...])

    run = choose if known else jit(choose)
    assert [float(run(i, 5.0)) for i in (0, 1, 2)] == [7, 20, 20]
    assert (held(a), held(b)) == (7, 20)


@pytest.mark.parametrize("known", [False, True])
def test_references_are_operands_of_branches(known):
    def f(p, r, x):
        lax.cond(p, lambda r, x: store(r, x), lambda r, x: store(r, r[...] + x), r, x)

    run = f if known else jit(f)
    ref = ref_of(1)
    run(False, ref, pnp.float32(5))
    assert held(ref) == 6
    run(True, ref, pnp.float32(5))
    assert held(ref) == 5


def test_a_value_and_a_reference_that_holds_it_in_a_branch():
    ref = ref_of(2)

    @jit
    def f(p):
        x = ref[...]
        return lax.cond(p, lambda: x * ref[...], lambda: x + 10 * ref[...])

    assert (float(f(True)), float(f(False))) == (4, 22)


# Batches --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("compiled", [False, True])
def test_mapped_references(axis, compiled):
    start = np.arange(6.0, dtype="float32").reshape(2, 3)
    count = start.shape[axis]
    ref = new_ref(pnp.asarray(start))
    xs = pnp.arange(float(count))

    def f(x, r):
        r[...] = r[...] * x + 1
        return r[0]

    run = vmap(f, in_axes=(0, axis))
    ys = (jit(run) if compiled else run)(xs, ref)
    scaled = np.moveaxis(np.moveaxis(start, axis, 0) * np.arange(float(count))[:, None] + 1, 0, axis)
    np.testing.assert_allclose(ref[...], scaled)
    np.testing.assert_allclose(ys, np.moveaxis(scaled, axis, 0)[:, 0])


def test_mapped_references_in_parts():
    ref = new_ref(pnp.arange(5.0))
    vmap(lambda r, x: store(r, r[...] * x), chunk_size=2)(ref, pnp.arange(5.0))
    assert held(ref) == [0, 1, 4, 9, 16]


def test_references_that_are_not_mapped():
    ref = ref_of(3)
    assert vmap(lambda x, r: x * r[...], in_axes=(0, None))(pnp.arange(3.0), ref).tolist() == [0, 3, 6]
    assert vmap(lambda x: x * ref[...])(pnp.arange(3.0)).tolist() == [0, 3, 6]
    vmap(lambda x: store(ref, ref[...] + 1))(pnp.arange(3.0))  # once, for all examples
    assert held(ref) == 4
    for f in (
        lambda x: store(ref, x),
        jit(lambda x: store(ref, x)),
        lambda x: pullback.ref.addupdate(ref, ..., x),
        lambda x: lax.fori_loop(0, 3, lambda i, c: store(ref, ref[...] * x), None),
        lambda x: lax.cond(x > 1, lambda: store(ref, 1.0), lambda: None),
    ):
        for run in (vmap(f), jit(vmap(f))):
            with pytest.raises(RefError, match="mapped"):
                run(pnp.arange(3.0))
    assert held(ref) == 4


def test_references_within_mapped_functions():
    def f(x):
        ref = new_ref(pnp.zeros(3))
        lax.fori_loop(0, 3, lambda i, c: ref.__setitem__(i, x * i), None)
        return ref[...]

    expected = [[0, 0, 0], [0, 1, 2], [0, 2, 4]]
    for run in (vmap(f), jit(vmap(f)), vmap(jit(f)), vmap(f, axis_name="i")):
        assert run(pnp.arange(3.0)).tolist() == expected


def test_named_axes():
    def f(x):
        ref = new_ref(pnp.float32(0))

        def body(i, c):
            ref[...] += lax.psum(x, "i") + lax.axis_index("i").astype("float32")

        lax.fori_loop(0, 2, body, None)
        return ref[...]

    assert vmap(f, axis_name="i")(pnp.arange(3.0)).tolist() == [6, 8, 10]


@pytest.mark.parametrize("loop", [by_fori, by_scan, by_while])
def test_gradients_summed_over_named_axes(loop):
    def f(w, x, run):
        ref = new_ref(pnp.float32(1))
        run(lambda i: store(ref, ref[...] * w + x), 2)
        return ref[...]

    def gradients(run):
        return vmap(grad(lambda w, x: f(w, x, run), reduce_axes=("i",)), (None, 0), axis_name="i")(2.0, pnp.arange(3.0))

    np.testing.assert_allclose(gradients(loop), gradients(in_python))


# Derivatives ----------------------------------------------------------------------------------------------------------


def with_refs(loop):
    """sin(x·sin(x·...)), three times, and a sum along the way."""

    def f(x):
        value, log = new_ref(x), new_ref(pnp.zeros(3))

        def body(i):
            log[i] = value[...] * x
            value[...] = pnp.sin(value[...] * x)

        loop(body, 3)
        return value[...] + log[...].sum()

    return f


def pure(x):
    value, total = x, 0.0
    for _ in range(3):
        total += value * x
        value = pnp.sin(value * x)
    return value + total


@pytest.mark.parametrize("loop", [in_python, by_scan, by_fori, by_while])
@pytest.mark.parametrize("wrap", [lambda f: f, jit, checkpoint, lambda f: checkpoint(jit(f))])
def test_derivatives_through_references(loop, wrap):
    f, x = wrap(with_refs(loop)), pnp.float32(1.3)
    close = {"rtol": 1e-4}
    for run in (grad, lambda f: jit(grad(f)), lambda f: lambda x: jvp(f, (x,), (1.0,))[1], hessian):
        np.testing.assert_allclose(run(f)(x), run(pure)(x), **close)
    y, pull = vjp(f, x)
    np.testing.assert_allclose([y, pull(1.0)[0]], [pure(x), grad(pure)(x)], **close)
    np.testing.assert_allclose(linearize(f, x)[1](1.0), grad(pure)(x), **close)
    np.testing.assert_allclose(vmap(grad(f))(x * pnp.arange(3)), vmap(grad(pure))(x * pnp.arange(3)), **close)


@pytest.mark.parametrize("wrap", [lambda f: f, jit])
@pytest.mark.parametrize(
    "run", [grad, lambda f: lambda x: jvp(f, (x,), (1.0,))[1], lambda f: lambda x: vjp(f, x)[1](1.0)[0]]
)
def test_references_outside_of_a_differentiated_function(wrap, run):
    ref = ref_of(1)

    def observed(x):
        ref[...] = lax.stop_gradient(x * 2)
        return x**2 * ref[...]

    for _ in range(2):
        assert float(wrap(run(wrap(observed)))(3.0)) == 36  # what was stopped is a constant
        assert held(ref) == 6
        ref[...] = pnp.float32(0)

    for refused in (
        lambda x: (store(ref, x), x)[1],
        lambda x: (lax.fori_loop(0, 2, lambda i, c: store(ref, x), None), x)[1],
        lambda x: lax.scan(lambda c, _: (store(ref, c), (c * x, None))[1], 1.0, None, length=3)[0],
    ):
        with pytest.raises(RefError, match="differentiated"):
            wrap(run(wrap(refused)))(3.0)
        assert held(ref) == 0


def test_reading_a_reference_is_reading_a_constant():
    ref = ref_of(3)
    assert float(grad(lambda x: x * ref[...])(2.0)) == 3
    with pytest.raises(OperandError, match=r"ref\[...\] reads the content"):
        grad(lambda r: r[...])(ref)


def test_tangents_of_references():
    primal, tangent = ref_of(3), ref_of(1)
    out, t = jvp(lambda r, x: (store(r, r[...] * x), r[...] + x)[1], (primal, 2.0), (tangent, 10.0))
    assert (float(out), float(t)) == (8, 42)
    assert (held(primal), held(tangent)) == (6, 32)
    with pytest.raises(TypeError, match="tangent of a reference"):
        jvp(lambda r: r[...], (primal,), (1.0,))


@pytest.mark.parametrize("compiled", [False, True])
def test_checkpointed_functions_write_once(compiled):
    ref = ref_of(1)

    def f(x):
        ref[...] += 1
        return pnp.sin(x) * ref[...]

    run = grad(checkpoint(f))
    assert float((jit(run) if compiled else run)(0.0)) == 2
    assert held(ref) == 2
    assert float(checkpoint(lambda r, x: (store(r, r[...] + x), r[...])[1])(ref, 5.0)) == 7
    assert held(ref) == 7
    nested = checkpoint(lambda x: checkpoint(f)(x) * 2)
    assert float((jit(grad(nested)) if compiled else grad(nested))(0.0)) == 16
    assert held(ref) == 8


def test_checkpointed_functions_with_references_may_not_look_at_values():
    ref = ref_of(1)
    with pytest.raises(ConcretizationTypeError, match="references"):
        grad(checkpoint(lambda x: ref[...] * x if x > 0 else x))(1.0)


# Rules ----------------------------------------------------------------------------------------------------------------


@custom_vjp
def stash(ref, x):
    return x


def stash_backward(ref, ct):
    ref[...] = ct
    return None, 2 * ct


stash.defvjp(lambda ref, x: (x, ref), stash_backward)


@pytest.mark.parametrize("wrap", [lambda f: f, jit])
def test_a_backward_rule_writes_a_gradient_to_a_reference(wrap):
    ref = ref_of(0)
    found = wrap(grad(lambda x, r: pnp.sin(stash(r, x**2))))(2.0, ref)
    np.testing.assert_allclose(found, 2 * np.cos(4.0) * 4, rtol=1e-5)
    np.testing.assert_allclose(ref[...], np.cos(4.0), rtol=1e-5)
    assert float(wrap(stash)(ref, 5.0)) == 5


def in_loop(wrap):
    def loss(ref, x):
        def step(c, _):
            c = pnp.sin(c)
            return pnp.sin(stash(ref, c)), c

        last, steps = lax.scan(wrap(step), x, None, length=3)
        return last + steps.sum()

    return loss


def in_counted_loop(ref, x):
    return lax.fori_loop(0, 3, lambda i, c: stash(ref, pnp.sin(c)), x)


def twice(ref, x):
    return pnp.sin(stash(ref, pnp.sin(stash(ref, pnp.sin(x)))))


@pytest.mark.parametrize("inner", [lambda f: f, jit, lambda f: jit(jit(f)), checkpoint])
@pytest.mark.parametrize("f", [twice, in_loop(lambda f: f), in_loop(checkpoint), in_counted_loop])
@pytest.mark.parametrize("outer", [lambda f: f, jit])
def test_backward_rules_write_to_references_wherever_they_are(f, inner, outer):
    ref, other = ref_of(0), ref_of(0)

    def cotangent(ref, x):  # what the rule of the first call in the program, the last to run, is given
        found = []
        watched = custom_vjp(lambda r, x: x)
        watched.defvjp(lambda r, x: (x, None), lambda _, ct: found.append(ct) or (None, 2 * ct))
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(globals(), "stash", watched)
            with pullback.disable_jit():
                gradient = grad(f, 1)(ref, x)
        return gradient, found[-1]

    gradient, last = cotangent(other, 1.0)
    for _ in range(2):  # the second time the program is in the cache
        np.testing.assert_allclose(outer(grad(inner(f), 1))(ref, 1.0), gradient, rtol=1e-5)
        np.testing.assert_allclose(ref[...], last, rtol=1e-5)
        store(ref, pnp.float32(0))
    assert held(other) == 0
    assert float(inner(f)(ref, 1.0)) == pytest.approx(float(f(ref, 1.0)))
    assert held(ref) == 0


def test_a_backward_rule_under_jit_writes_to_a_reference_that_is_closed_over():
    ref = ref_of(0)
    f = jit(lambda x: pnp.sin(stash(ref, x)))
    np.testing.assert_allclose([grad(f)(x) for x in (1.0, 2.0)], 2 * np.cos([1.0, 2.0]), rtol=1e-5)
    np.testing.assert_allclose(ref[...], np.cos(2.0), rtol=1e-5)


def test_rows_of_references_are_not_there_for_backward_rules():
    ref = ref_of([0, 0])
    with pytest.raises(UnexpectedTracerError, match="after the end of the transformation"):
        grad(lambda x: lax.scan(lambda c, row: (stash(row, c), None), x, ref)[0])(1.0)
    assert held(ref) == [0, 0]


def test_functions_with_rules_use_references():
    ref = ref_of(0)

    @custom_jvp
    def f(r, x):
        r[...] = x
        return 2 * x

    @f.defjvp
    def _(primals, tangents):
        r, x = primals
        r[...] = 10 * x
        return 2 * x, 3 * tangents[1]

    assert (float(f(ref, 4.0)), held(ref)) == (8, 4)
    assert [float(x) for x in jvp(lambda x: f(ref, x), (5.0,), (1.0,))] == [10, 3]
    assert held(ref) == 50
    with pytest.raises(RefError, match="has derivative rules and writes to a reference"):
        jit(lambda r, x: f(r, x))(ref, 1.0)
    assert held(ref) == 50


@pytest.mark.parametrize("transform", [lambda f: f, jit])
def test_a_barrier_takes_references(transform) -> None:
    ref = ref_of(1)

    def f(ref, x):
        y, same = lax.optimization_barrier((x, ref))
        assert same is ref
        ref[...] += y
        return ref[...]

    assert float(transform(f)(ref, 2.0)) == held(ref) == 3


def test_methods_of_references_are_the_functions() -> None:
    ref = new_ref(pnp.arange(3.0))
    ref.set(5.0, 0)
    assert ref.swap(7.0, 1) == 1
    np.testing.assert_array_equal(ref.get(), [5, 7, 2])
    assert ref.get(slice(1, 2)) == 7
    np.testing.assert_array_equal(ref.swap(pnp.zeros(3)), [5, 7, 2])


def test_functions_are_lowered_for_descriptions_of_references() -> None:
    described = pullback.ShapeDtypeStruct((3,), "float32", is_ref=True)
    assert repr(described) == "ShapeDtypeStruct(shape=(3,), dtype=float32, is_ref=True)"
    assert described == described.update(shape=(3,)) != described.update(is_ref=False)
    assert pullback.typeof(described) == pullback.typeof(new_ref(pnp.zeros(3)))

    def count(ref, by):
        ref[...] += by
        ref[0] += 1
        return ref[1] * 2

    compiled = jit(count).lower(described, 2.0).compile()
    ref = new_ref(pnp.zeros(3))
    assert compiled(ref, 2.0) == 4
    assert ref[...].tolist() == [3, 2, 2]
    assert str(make_jaxpr(count)(described, 2.0)) == str(make_jaxpr(count)(ref, 2.0))
    for types in (pullback.eval_shape(count, described, 2.0), jit(count).eval_shape(described, 2.0)):
        assert types.shape == ()
    assert ref[...].tolist() == [3, 2, 2]
    with pytest.raises(TypeError, match="references only for arguments that were references"):
        compiled(pnp.zeros(3), 2.0)
    with pytest.raises(TypeError, match="expected an array or a number, got ShapeDtypeStruct"):
        jit(count)(described, 2.0)
