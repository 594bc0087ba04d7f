"""Small things that code written against JAX relies on; each was compared with JAX 0.10.2."""

import copy
import functools
import pickle

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback import custom_derivatives, lax, random, test_util
from pullback.core.array import is_on_host

# Objects that are not arrays --------------------------------------------------------------------------------------


class Parameter:
    """An object that says which array it stands for."""

    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return jnp.asarray(self.value)


class Reflecting:
    """An object with the other half of some operators."""

    def __radd__(self, other):
        return "radd"

    def __rmatmul__(self, other):
        return "rmatmul"

    def __eq__(self, other):
        return "eq"

    def __gt__(self, other):
        return "gt"


@pytest.mark.parametrize("wrap", [lambda f: f, pb.jit], ids=["eager", "jit"])
def test_operators_ask_objects_for_the_array_that_they_stand_for(wrap):
    p = Parameter(np.array([1.0, 2.0], np.float32))
    x = jnp.array([3.0, 4.0])
    np.testing.assert_array_equal(wrap(lambda x: x + p)(x), [4, 6])
    np.testing.assert_array_equal(wrap(lambda x: x @ p)(x), 11)
    np.testing.assert_array_equal(wrap(lambda x: x == p)(x), [False, False])
    np.testing.assert_array_equal(wrap(lambda x: x > p)(x), [True, True])
    np.testing.assert_array_equal(wrap(lambda x: jnp.stack([x, jnp.asarray(p)]))(x), [[3, 4], [1, 2]])
    assert pb.grad(lambda x: (x * p).sum())(x).tolist() == [1, 2]


def test_the_array_that_an_object_stands_for_is_not_weakly_typed():
    assert not jnp.asarray(Parameter(2.0)).weak_type
    assert not jnp.array(Parameter(2)).weak_type
    assert jnp.asarray(jnp.asarray(2.0)).weak_type


@pytest.mark.parametrize("wrap", [lambda f: f, pb.jit], ids=["eager", "jit"])
def test_other_objects_get_their_half_of_an_operator(wrap):
    found = []

    def f(x):
        found.extend([x + Reflecting(), x @ Reflecting(), x == Reflecting(), x < Reflecting()])
        return x

    wrap(f)(jnp.ones(2))
    assert found == ["radd", "rmatmul", "eq", "gt"]
    with pytest.raises(TypeError):
        jnp.ones(2) - Reflecting()


@pytest.mark.parametrize("value", [2, 2.0, True, "a", None, len, np.ones(2), np.float64(3), Parameter(1.0), {"a": 1}])
def test_vmap_passes_what_is_not_mapped_as_it_is(value):
    seen = []

    def f(x, y):
        seen.append(y)
        return x

    x = jnp.arange(3.0)
    pb.vmap(f, in_axes=(0, None))(x, value)
    pb.vmap(f, in_axes=(0, None), chunk_size=2)(x, value)
    pb.grad(lambda x: pb.vmap(f, in_axes=(0, None))(x, value).sum())(x)
    if isinstance(value, dict):
        assert all(y == value and type(y["a"]) is int for y in seen)
    else:
        assert len(seen) == 4
        assert all(y is value for y in seen)


def test_numbers_that_vmap_passes_on_keep_their_weak_type():
    assert pb.vmap(lambda x, y: x * y, in_axes=(0, None))(jnp.ones(2, jnp.float16), 2.0).dtype == jnp.float16
    assert pb.vmap(lambda x, y: y, in_axes=(0, None))(jnp.ones(2), 2).tolist() == [2, 2]
    with pytest.raises(TypeError, match="not an array"):
        pb.vmap(lambda x, y: y, in_axes=(0, None))(jnp.ones(2), "a")


# Types ------------------------------------------------------------------------------------------------------------


def test_functions_of_the_type_take_what_has_a_shape_and_a_dtype():
    s = pb.ShapeDtypeStruct((2, 3), jnp.complex64)
    assert (jnp.shape(s), jnp.ndim(s), jnp.size(s), jnp.size(s, 1)) == ((2, 3), 2, 6, 3)
    assert jnp.iscomplexobj(s)
    assert not jnp.isrealobj(s)
    assert jnp.result_type(s, 1) == jnp.complex64
    assert jnp.iscomplexobj([1.0, 2j])
    assert not jnp.iscomplexobj([1, 2])
    assert not jnp.iscomplexobj(None)
    assert jnp.iscomplexobj(np.ones(2, np.complex128))
    assert jnp.shape([[1, 2]]) == (1, 2)
    for f in (jnp.shape, jnp.ndim, jnp.size, jnp.iscomplexobj):
        with pytest.raises(TypeError, match=f"{f.__name__}: expected an array"):
            f("abc")


def test_eval_shape_nests():
    s = pb.ShapeDtypeStruct((2, 3), jnp.float32)
    none = pb.ShapeDtypeStruct((0, 3), jnp.int8)
    inner = pb.eval_shape(lambda x: {"a": pb.eval_shape(jnp.transpose, x), "b": (x + 1, none)}, s)
    assert inner == {"a": pb.ShapeDtypeStruct((3, 2), jnp.float32), "b": (s, none)}
    assert pb.eval_shape(lambda x: jnp.zeros(pb.eval_shape(jnp.ravel, x).shape), s).shape == (6,)
    with pytest.raises(TypeError, match="not an array"):
        pb.eval_shape(lambda x: "a", s)


def test_zero_from_primal_takes_trees():
    zeros = custom_derivatives.zero_from_primal({"a": jnp.ones(2), "b": (1.0, 2), "c": None})
    assert zeros["a"].tolist() == [0, 0]
    assert zeros["b"][0] == 0
    assert zeros["c"] is None
    assert zeros["b"][1].dtype == pb.float0
    of_type = custom_derivatives.zero_from_primal([pb.ShapeDtypeStruct((2,), jnp.float16)])
    assert of_type[0].shape == (2,)
    assert of_type[0].dtype == jnp.float16
    symbolic = custom_derivatives.zero_from_primal([jnp.arange(3)], symbolic_zeros=True)
    assert symbolic[0].shape == (3,)
    assert symbolic[0].dtype == pb.float0
    with pytest.raises(TypeError, match="zero_from_primal: expected an array"):
        custom_derivatives.zero_from_primal({"a": "b"})


def test_empty_arrays_have_the_widest_float():
    assert jnp.array([]).dtype == jnp.float32
    with pb.enable_x64(True):
        assert jnp.array([]).dtype == jnp.float64
        assert jnp.array([[], []]).dtype == jnp.float64
        assert jnp.asarray(()).dtype == jnp.float64
        assert jnp.array([], jnp.int8).dtype == jnp.int8
        assert pb.jit(lambda: jnp.array([]))().dtype == jnp.float64


def test_full_like_is_as_weakly_typed_as_its_model():
    weak = jnp.asarray(1.0)
    assert jnp.full_like(weak, 2).weak_type
    assert pb.jit(lambda x: jnp.full_like(x, 2))(weak).weak_type
    assert not jnp.full_like(weak, 2, jnp.float32).weak_type
    assert not jnp.full_like(jnp.ones(2), 2.0).weak_type


NUMBERS = {"1": 1, "1.": 1.0, "True": True, "f32": np.float32(1), "f16": np.float16(1), "i8": np.int8(1)}


@pytest.mark.parametrize(
    ("first", "second", "dtype", "weak"),
    [
        ("1", "1.", "float32", True), ("1", "f16", "float16", False), ("1.", "i8", "float32", True),
        ("1", "i8", "int8", False), ("True", "1", "int32", True), ("1.", "1.", "float32", True),
        ("f16", "1.", "float16", False), ("f32", "f16", "float32", False),
    ],
)  # fmt: skip
def test_choices_have_the_type_of_promotion(first, second, dtype, weak):
    a, b = (jnp.asarray(NUMBERS[n]) for n in (first, second))
    for out in (jnp.where(True, a, b), pb.jit(lambda c: jnp.where(c, a, b))(True), jnp.select([True], [a], b)):
        assert (out.dtype, out.weak_type) == (jnp.dtype(dtype), weak)


def test_branches_that_differ_in_weak_type_alone_are_strongly_typed():
    out = pb.eval_shape(lambda p: lax.cond(p, lambda: 1.0, lambda: jnp.float32(2)), True)
    assert out.dtype == jnp.float32
    assert not out.weak_type
    assert pb.eval_shape(lambda p: lax.cond(p, lambda: 1.0, lambda: 2.0), True).weak_type


# Zero tangents ------------------------------------------------------------------------------------------------------

ZERO_TANGENTS = {
    "of the tangent": lambda p, t: (p * 2, pb.jit(lambda t: jnp.zeros_like(t))(t)),
    "times zero": lambda p, t: (p * 2, pb.jit(lambda t: t * 0)(t)),
    "of nothing": lambda p, t: (p * 2, pb.jit(lambda: jnp.zeros(()))()),
    "beside the value": lambda p, t: pb.jit(lambda p, t: (p * 2, jnp.zeros_like(p)))(p, t),
    "by jvp": lambda p, t: pb.jit(lambda p, t: pb.jvp(lax.stop_gradient, (p,), (t,)))(p, t),
    "of a jit within": lambda p, t: (p * 2, pb.jit(pb.jit(lambda t: (t, jnp.zeros_like(t))))(t)[1]),
    "of a checkpoint": lambda p, t: (p * 2, pb.checkpoint(jnp.zeros_like)(t)),
}


@pytest.mark.parametrize("rule", ZERO_TANGENTS.values(), ids=ZERO_TANGENTS)
def test_rules_return_zeros_out_of_compiled_functions(rule):
    f = pb.custom_jvp(lambda x: x * 2)
    f.defjvp(lambda p, t: rule(p[0], t[0]))
    x = jnp.arange(3.0)
    assert pb.grad(f)(2.0) == pb.jit(pb.grad(f))(2.0) == pb.grad(pb.jit(f))(2.0) == pb.hessian(f)(2.0) == 0
    assert pb.jvp(f, (2.0,), (1.0,))[1] == pb.linearize(f, 2.0)[1](1.0) == pb.vjp(f, 2.0)[1](1.0)[0] == 0
    assert pb.vmap(pb.grad(f))(x).tolist() == pb.grad(lambda x: pb.vmap(f)(x).sum())(x).tolist() == [0, 0, 0]
    assert pb.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0])(2.0) == 0


# Functions without a name -------------------------------------------------------------------------------------------


class Doubling:
    """A callable object without a name."""

    def __call__(self, x):
        return x * 2.0


class Numbered(Doubling):
    """One whose name is no string."""

    __name__ = 3


class Reluctant(Doubling):
    """One that raises where it is asked for its name or to show itself."""

    @property
    def __name__(self):
        raise RuntimeError("name")

    def __repr__(self):
        raise RuntimeError("repr")


NAMELESS = {
    "partial": functools.partial(lambda b, x: x * b, 2.0),
    "object": Doubling(),
    "numbered": Numbered(),
    "reluctant": Reluctant(),
    "partial of an object": functools.partial(Doubling()),
}


@pytest.mark.parametrize("f", NAMELESS.values(), ids=NAMELESS)
def test_functions_without_a_name_are_transformed(f):
    xs = jnp.arange(3.0)
    assert pb.jit(f)(2.0) == 4
    assert pb.grad(f)(2.0) == pb.vjp(f, 2.0)[1](1.0)[0] == pb.linearize(f, 2.0)[1](1.0) == 2
    assert pb.jvp(f, (2.0,), (1.0,))[1] == pb.jacfwd(f)(2.0) == pb.linear_transpose(f, 2.0)(1.0)[0] == 2
    assert pb.grad(pb.checkpoint(f))(2.0) == 2
    assert pb.eval_shape(f, 2.0).shape == ()
    assert "mul" in str(pb.make_jaxpr(f)(2.0))
    assert "multiply" in pb.jit(f).lower(2.0).as_text()
    assert pb.vmap(f)(xs).tolist() == lax.map(f, xs).tolist() == jnp.vectorize(f)(xs).tolist() == [0, 2, 4]
    assert lax.cond(True, f, f, 1.0) == lax.switch(0, [f, f], 1.0) == 2
    assert pb.pure_callback(f, pb.ShapeDtypeStruct((), np.float32), 2.0) == 4
    rules = pb.custom_jvp(f)
    rules.defjvp(lambda p, t: (p[0], 3 * t[0]))
    assert pb.grad(rules)(1.0) == 3
    rules = pb.custom_vjp(f)
    rules.defvjp(lambda x: (x, None), lambda _, ct: (3 * ct,))
    assert pb.grad(rules)(1.0) == 3


@pytest.mark.parametrize("f", NAMELESS.values(), ids=NAMELESS)
def test_errors_about_functions_without_a_name(f):
    for wrong in (
        lambda: pb.grad(f)(jnp.ones(2)), lambda: pb.grad(f)(1), lambda: pb.vmap(f)(1.0), lambda: pb.jit(f)("a"),
        lambda: pb.jvp(f, (1.0,), (1,)), lambda: pb.grad(f)(), lambda: pb.grad(pb.custom_vjp(f))(1.0),
        lambda: pb.vmap(f, in_axes=(0, 0))(jnp.ones(2)), lambda: pb.jit(f, static_argnames="z")(1.0, z=[]),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError, AttributeError)):
            wrong()


def test_transformed_functions_have_a_name():
    assert pb.jit(functools.partial(np.sin)).__name__ == "sin"
    assert pb.grad(Doubling()).__name__ == pb.vmap(Numbered()).__name__ == "<unnamed function>"
    assert "jit" in repr(pb.jit(Reluctant())) or "Reluctant" in repr(pb.jit(Reluctant()))


# Checks of derivatives ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [lambda f: f, pb.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("size", [1e-42, 1e-39, 1e-37])
def test_derivatives_of_the_size_of_the_smallest_numbers_are_right(wrap, size):
    scale = np.float32(size)
    for f in (lambda x: x * scale, lambda x: jnp.sin(x) * scale, lambda x: x * x * scale):
        test_util.check_grads(wrap(f), (np.float32(0.7),), order=2)
        test_util.check_grads(wrap(f), (np.linspace(0.1, 1, 4, dtype=np.float32),), order=1, modes=("rev",))


def test_wrong_derivatives_next_to_the_smallest_numbers_are_found():
    f = pb.custom_jvp(lambda x: x * np.float32(1e-35))
    f.defjvp(lambda p, t: (f(p[0]), 2e-35 * t[0]))
    with pytest.raises(AssertionError):
        test_util.check_grads(f, (np.float32(0.7),), order=1)


# Random keys --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [lambda f: f, pb.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("keys", [random.key(0), random.split(random.key(0), 3)], ids=["one", "three"])
def test_random_keys_are_no_numbers(wrap, keys):
    for wrong in (
        lambda k: k + 1, lambda k: 1 + k, lambda k: k * 2.0, lambda k: k == 1, lambda k: k != 1, lambda k: k < k,
        lambda k: -k, lambda k: jnp.sin(k), lambda k: jnp.sum(k), lambda k: jnp.max(k), lambda k: jnp.sort(k.ravel()),
        lambda k: bool(k.ravel()[0]), lambda k: jnp.argsort(k.ravel()), lambda k: jnp.any(k), lambda k: jnp.prod(k),
        lambda k: jnp.nonzero(k, size=1), lambda k: jnp.eye(2, dtype=k.dtype), lambda k: k & k, lambda k: ~k,
        lambda k: jnp.stack([k, jnp.ones(k.shape)]), lambda k: jnp.where(True, k, 1), lambda k: k.astype(jnp.uint32),
        lambda k: jnp.unique(k, size=1), lambda k: jnp.argmax(k), lambda k: jnp.mean(k), lambda k: jnp.cumsum(k),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError)):
            print(wrap(wrong)(keys))


def test_random_keys_say_what_they_are():
    key = random.key(0)
    keys = random.split(key, 3)
    assert repr(key) == "Array((), dtype=key<fry>) overlaying:\n[0 0]"
    assert (key.shape, key.ndim, key.size, key.itemsize, key.nbytes, len(keys)) == ((), 0, 1, 8, 8, 3)
    assert jnp.issubdtype(key.dtype, pb.dtypes.prng_key)
    assert jnp.issubdtype(key.dtype, pb.dtypes.extended)
    assert not jnp.issubdtype(key.dtype, np.integer)
    assert (key == random.key(0)).tolist() is True
    assert (keys == keys[1]).tolist() == [False, True, False]
    assert random.key_impl(key) == random.key_impl(keys)
    assert random.wrap_key_data(random.key_data(keys), impl=random.key_impl(keys))[2] == keys[2]
    assert key[None].shape == (1,)
    assert [k == keys[i] for i, k in enumerate(keys)] == [True] * 3
    assert jnp.stack([key, key]).shape == (2,)
    assert jnp.array([key, keys[0]])[1] == keys[0]
    assert pb.tree.map(lambda k: k, {"k": key})["k"] == key
    assert pb.jit(lambda k: k)(key) == key
    assert pb.vmap(lambda k: k)(keys)[1] == keys[1]
    assert lax.scan(lambda c, k: (c, k), 0, keys)[1][2] == keys[2]
    with pytest.raises(TypeError, match="key_data"):
        np.asarray(key)
    with pytest.raises(TypeError):
        hash(key)
    with pytest.raises(TypeError):
        len(key)


# One class of arrays ------------------------------------------------------------------------------------------------

COMPUTED = {
    "number": lambda: pb.jit(lambda x: x * 2)(3.0),
    "vector": lambda: pb.jit(lambda x: x * 2)(jnp.arange(3.0)),
    "matrix": lambda: pb.jit(lambda x: x @ x)(jnp.eye(3)),
    "integers": lambda: pb.jit(lambda x: x + 1)(jnp.arange(3)),
    "booleans": lambda: pb.jit(lambda x: x > 1)(jnp.arange(3)),
    "complex": lambda: pb.jit(lambda x: x * 1j)(jnp.arange(3.0)),
    "bfloat16": lambda: pb.jit(lambda x: x + 1)(jnp.arange(3, dtype=jnp.bfloat16)),
    "nothing": lambda: pb.jit(lambda x: x + 1)(jnp.zeros((0, 2))),
}
USES = {
    "+ self": lambda x: x + x,
    "+ number": lambda x: x + 1,
    "number +": lambda x: 1 + x,
    "*": lambda x: x * x,
    "/": lambda x: x / 2,
    "-": lambda x: x * 1 - x * 1,
    "==": lambda x: x == x,
    "== 0": lambda x: x == 0,
    "!=": lambda x: x != x,
    "0 ==": lambda x: x == 0,
    "<": lambda x: (x * 0 + 1).real < 2,
    "@": lambda x: x.ravel() @ x.ravel(),
    "**": lambda x: x**2,
    "host +": lambda x: jnp.ones(x.shape, x.dtype) + x,
    "+ host": lambda x: x + jnp.ones(x.shape, x.dtype),
    "numpy +": lambda x: np.ones(x.shape, x.dtype) + x,
    "sin": lambda x: jnp.sin(x),
    "exp": lambda x: jnp.exp(x),
    "dot": lambda x: jnp.dot(x, x),
    "sum": lambda x: x.sum(),
    "[...]": lambda x: x[...],
    "[0:1]": lambda x: jnp.atleast_1d(x)[0:1],
    "[None]": lambda x: x[None],
    "[x]": lambda x: jnp.arange(9)[abs(x).astype(int)],
    "take": lambda x: jnp.take(jnp.arange(9), abs(x).astype(int)),
    "where": lambda x: jnp.where(x == 0, x, x),
    "reshape": lambda x: x.reshape(-1),
    "stack": lambda x: jnp.stack([x, x]),
    "astype": lambda x: x.astype(complex),
    "list": lambda x: x.tolist(),
    "repr": repr,
    "str": str,
    "len": lambda x: len(jnp.atleast_1d(x)),
    "numpy": np.asarray,
    "np.sin": lambda x: np.sin(np.abs(x)),
    "copy": lambda x: copy.copy(x) + 0,
    "deepcopy": lambda x: copy.deepcopy(x),
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "jit": lambda x: pb.jit(lambda y: y + 1)(x),
    "grad": lambda x: pb.grad(lambda y: (y * x.real * 1.0).sum().real)(1.0),
    "vmap": lambda x: pb.vmap(lambda y: y + 1)(x[None]),
    "at": lambda x: jnp.atleast_1d(x).at[:1].set(jnp.atleast_1d(x)[1:2]),
    "device_get": pb.device_get,
    "device_put": pb.device_put,
    "iter": lambda x: [y + 1 for y in jnp.atleast_1d(x)],
    "bool": lambda x: bool((x == 0).all()),
    "weak": lambda x: x.weak_type,
    "aval": lambda x: str(pb.typeof(x)),
    "sizes": lambda x: (x.shape, x.ndim, x.size, x.nbytes, x.dtype),
    "neg": lambda x: -(x * 1),
    "&": lambda x: (x == 0) & (x == 1),
    "~": lambda x: ~(x == 0),
    "round": lambda x: jnp.round(x * 1.0),
    "sorted": lambda x: jnp.sort(x.ravel()),
    "max": lambda x: jnp.max(jnp.atleast_1d(x), initial=0),
    "concatenate": lambda x: jnp.concatenate([x[None], x[None]]),
    "divmod": lambda x: divmod(x.real * 2, 2),
}


def test_results_of_compiled_functions_are_of_the_class_of_all_arrays():
    for f in COMPUTED.values():
        x = f()
        assert type(x) is type(jnp.array(1.0))
        assert not is_on_host(x)
        np.asarray(x)
        assert is_on_host(x)
        assert type(pb.device_put(x)) is type(x)


def outcome(use, x):
    """The result, or the error as text."""
    try:
        return use(x)
    except (TypeError, ValueError) as error:
        return repr(error)


@pytest.mark.parametrize("kind", COMPUTED)
def test_arrays_are_used_alike_wherever_their_elements_are(kind):
    known = jnp.asarray(np.asarray(COMPUTED[kind]()))
    if COMPUTED[kind]().weak_type:
        known = pb.jit(lambda x: x * 2)(3.0)
        np.asarray(known)
    assert is_on_host(known)
    for name, use in USES.items():
        on_device = COMPUTED[kind]()
        expected, got = outcome(use, known), outcome(use, on_device)
        assert type(got) is type(expected), name
        for a, b in zip(pb.tree.leaves(got), pb.tree.leaves(expected), strict=True):
            assert getattr(a, "weak_type", None) == getattr(b, "weak_type", None), name
            assert getattr(a, "dtype", None) == getattr(b, "dtype", None), name
            if hasattr(a, "dtype"):
                np.testing.assert_array_equal(np.asarray(a), np.asarray(b), err_msg=name)
            else:
                assert a == b, name
