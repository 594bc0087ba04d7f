"""What is made in a program is a part of it: an operation or a literal, and not an array that the program keeps."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import (
    device_put,
    ensure_compile_time_eval,
    eval_shape,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jit,
    jvp,
    lax,
    linearize,
    make_jaxpr,
    nn,
    random,
    tree,
    vmap,
)
from pullback.core.array import ArrayImpl, typeof
from pullback.core.errors import (
    ConcretizationTypeError,
    ShapeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
)
from pullback.core.jaxpr import ClosedJaxpr
from pullback.core.trace import Tracer
from pullback.interpreters import partial_eval

VECTOR = np.arange(3, dtype=np.float32)

MAKERS: dict[str, Callable[[], Any]] = {
    "array of a number": lambda: jnp.array(0),
    "array of a list": lambda: jnp.array([1, 2]),
    "array of an array of NumPy's": lambda: jnp.array(VECTOR),
    "array of a number of NumPy's": lambda: jnp.array(np.float32(2)),
    "array of a dtype": lambda: jnp.array(1, jnp.float32),
    "array of numbers of NumPy's in a list": lambda: jnp.array([np.float32(1), 2]),
    "array with more axes": lambda: jnp.array(1, ndmin=2),
    "asarray": lambda: jnp.asarray(2.0),
    "asarray of an array of NumPy's": lambda: jnp.asarray(VECTOR),
    "float32": lambda: jnp.float32(3),
    "zeros": lambda: jnp.zeros((2, 3)),
    "zeros without axes": lambda: jnp.zeros(()),
    "zeros without elements": lambda: jnp.zeros((0, 3)),
    "zeros of bfloat16": lambda: jnp.zeros(2, jnp.bfloat16),
    "ones": lambda: jnp.ones(3, int),
    "empty": lambda: jnp.empty(3),
    "full": lambda: jnp.full((2, 3), 7),
    "full of an array": lambda: jnp.full((2, 3), VECTOR),
    "full of its own shape": lambda: jnp.full((3,), VECTOR),
    "full of a complex number": lambda: jnp.full((2,), 1 + 2j),
    "zeros_like": lambda: jnp.zeros_like(VECTOR),
    "ones_like of a number": lambda: jnp.ones_like(3),
    "full_like": lambda: jnp.full_like(VECTOR, 3),
    "full_like of a number": lambda: jnp.full_like(3, 3),
    "empty_like": lambda: jnp.empty_like(VECTOR),
    "eye": lambda: jnp.eye(3),
    "eye beside the diagonal": lambda: jnp.eye(3, 4, 1, dtype=bool),
    "eye out of reach": lambda: jnp.eye(2, 3, -7, dtype=int),
    "identity": lambda: jnp.identity(3, complex),
    "tri": lambda: jnp.tri(3),
    "tri below the diagonal": lambda: jnp.tri(3, 4, -1, dtype=jnp.float16),
    "arange": lambda: jnp.arange(3),
    "arange between bounds": lambda: jnp.arange(2, 5),
    "arange in steps": lambda: jnp.arange(1, 8, 2),
    "arange downwards": lambda: jnp.arange(5, 0, -2),
    "arange without elements": lambda: jnp.arange(3, 3),
    "arange of uint8 to its end": lambda: jnp.arange(255, 256, dtype=jnp.uint8),
    "arange of floats": lambda: jnp.arange(0.5, 3.0, 0.25),
    "arange of bfloat16": lambda: jnp.arange(1, 6, 2, dtype=jnp.bfloat16),
    "arange of integers in halves": lambda: jnp.arange(0.5, 3, 0.5, dtype=int),
    "linspace": lambda: jnp.linspace(0, 1, 5),
    "linspace without its end": lambda: jnp.linspace(1.0, 2.0, 7, endpoint=False),
    "linspace of one": lambda: jnp.linspace(2, 3, 1),
    "linspace of vectors": lambda: jnp.linspace(VECTOR, 2.0, 4, axis=1),
    "linspace of float16": lambda: jnp.linspace(jnp.float16(0), jnp.float16(3), 9),
    "logspace": lambda: jnp.logspace(0, 2, 3),
    "geomspace": lambda: jnp.geomspace(1, 8, 4),
    "indices": lambda: jnp.indices((2, 3)),
    "indices of no axes": lambda: jnp.indices(()),
    "sparse indices": lambda: jnp.indices((2, 3), sparse=True),
    "fromfunction": lambda: jnp.fromfunction(lambda i, j: (i, j), (2, 3)),
    "mgrid": lambda: jnp.mgrid[0:3, 1:3],
    "mgrid of one axis": lambda: jnp.mgrid[0:3],
    "ogrid": lambda: jnp.ogrid[0:3, 0:2],
    "r_": lambda: jnp.r_[1:3, 4],
    "hanning": lambda: jnp.hanning(5),
    "fftfreq": lambda: jnp.fft.fftfreq(5),
    "frombuffer": lambda: jnp.frombuffer(b"ab", dtype="uint8"),
    "fromiter": lambda: jnp.fromiter(range(3), int),
    "broadcast_to": lambda: jnp.broadcast_to(1, (3,)),
    "copy": lambda: jnp.copy(VECTOR),
    "lax.iota": lambda: lax.iota(int, 3),
    "lax.full": lambda: lax.full((2, 3), 1.0),
    "lax.full without axes": lambda: lax.full((), 1.0),
    "lax.full_like": lambda: lax.full_like(VECTOR, 2.0),
    "lax.convert_element_type": lambda: lax.convert_element_type(1, jnp.float32),
    "device_put": lambda: device_put(VECTOR),
    "random.key": lambda: random.key_data(random.key(3)),
    "random.PRNGKey": lambda: random.PRNGKey(3),
}  # fmt: skip


def traced_in(run: Callable[[Callable[[], Any]], Any], make: Callable[[], Any]) -> list[bool]:
    """Whether what is made was traced, for each array, where ``run`` calls a function."""
    found: list[bool] = []

    def function() -> float:
        found.extend(isinstance(x, Tracer) for x in tree.leaves(make()))
        return 0.0

    run(function)
    return found


PLACES: dict[str, Callable[[Callable[[], Any]], Any]] = {
    "make_jaxpr": lambda f: make_jaxpr(f)(),
    "jit": lambda f: jit(f)(),
    "a loop": lambda f: lax.fori_loop(0, 2, lambda i, c: c + f(), 0.0),
    "a gradient within jit": lambda f: jit(grad(lambda x: x + f()))(1.0),
    "vmap within jit": lambda f: jit(vmap(lambda x: x + f()))(VECTOR),
}  # fmt: skip


@pytest.mark.parametrize("name", MAKERS)
def test_it_is_traced_in_a_program(name: str) -> None:
    for place, run in PLACES.items():
        found = traced_in(run, MAKERS[name])
        assert set(found) == {True}, place


@pytest.mark.parametrize("name", MAKERS)
def test_it_is_what_it_is_outside(name: str) -> None:
    """In value, dtype, weak type and shape."""
    expected, got = (tree.leaves(f()) for f in (MAKERS[name], jit(MAKERS[name])))
    assert [x.aval for x in got] == [x.aval for x in expected]
    for x, y in zip(got, expected, strict=True):
        assert type(x) is type(y) is ArrayImpl
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=2e-7 if x.dtype == np.float32 else 0)


@pytest.mark.parametrize("transformation", [lambda f: f, grad, vmap, jacfwd], ids=["call", "grad", "vmap", "jacfwd"])
def test_it_is_an_array_outside_of_programs(transformation: Any) -> None:
    x = VECTOR if transformation is vmap else 1.0
    for name, make in MAKERS.items():
        assert not any(traced_in(lambda f: transformation(lambda x: x + f())(x), make)), name


def test_it_is_computed_where_that_is_asked_for() -> None:
    def f(x: Any) -> Any:
        with ensure_compile_time_eval():
            assert not any(traced_in(lambda f: f(), lambda: [make() for make in MAKERS.values()]))
            return x * int(jnp.arange(3).sum())

    assert float(jit(f)(2.0)) == 6


def test_it_is_known_where_only_inputs_are_not() -> None:
    function = lambda x: [x, *tree.leaves([make() for make in MAKERS.values()])]
    _, (x, *others), _ = partial_eval.trace_to_jaxpr_nounits(function, [partial_eval.PartialVal.unknown(typeof(1.0))])
    assert not x.is_known()
    assert all(type(value.get_known()) is ArrayImpl for value in others)


def test_python_may_not_look_at_it_in_a_program() -> None:
    for error, look in (
        (ConcretizationTypeError, lambda: int(jnp.array(3))),
        (ConcretizationTypeError, lambda: jnp.zeros(()).item()),
        (TracerBoolConversionError, lambda: bool(jnp.array(True))),
        (TracerIntegerConversionError, lambda: range(jnp.int32(3))),
        (TracerArrayConversionError, lambda: np.asarray(jnp.arange(3))),
        (TracerArrayConversionError, lambda: np.asarray(jnp.array([1, 2]))),
    ):
        with pytest.raises(error):
            make_jaxpr(lambda look=look: look() and 0)()
    # Python's lists, and arrays of NumPy's, are what they were.
    assert jit(lambda x: jnp.repeat(x, [1, 2, 0]))(VECTOR).shape == (3,)
    assert jit(lambda x: x[np.array([True, False, True])])(VECTOR).shape == (2,)
    with pytest.raises(ShapeError, match="the range from 0 to inf"):
        make_jaxpr(lambda: jnp.arange(0, float("inf")))()


# Jaxprs -------------------------------------------------------------------------------------------------------------

PRINTED = {
    "jnp.array(0)": "{ lambda ; . let  in (0:i32[],) }",
    "jnp.zeros((), int)": "{ lambda ; . let  in (0:i32[],) }",
    "jnp.array(0).astype(float)": "{ lambda ; . let  in (0.0:f32[],) }",
    "jnp.float32(jnp.array(1))": "{ lambda ; . let  in (1.0:f32[],) }",
    "lax.convert_element_type(np.float32(2), int)": "{ lambda ; . let  in (2:i32[],) }",
    "jnp.sin(1)": "{ lambda ; . let a:f32[] = sin 1.0:f32[] in (a,) }",
    "jnp.array([1, 2])": "{ lambda a:i32[2]; . let  in (a,) }",
    "jnp.arange(3)": "{ lambda ; . let a:i32[3] = iota[dimension=0 dtype=int32 shape=(3,)] in (a,) }",
    "jnp.ones(3)": (
        "{ lambda ; . let a:f32[3] = broadcast_in_dim[broadcast_dimensions=() shape=(3,)] 1.0:f32[] in (a,) }"
    ),
    "jnp.arange(1, 7, 2)": (
        "{ lambda ; . let a:i32[3] = iota[dimension=0 dtype=int32 shape=(3,)] b:i32[3] = mul 2:i32[] a "
        "c:i32[3] = add 1:i32[] b in (c,) }"
    ),
    "jnp.eye(3, 4, 1)": (
        "{ lambda ; . let a:i32[3,4] = iota[dimension=0 dtype=int32 shape=(3, 4)] "
        "b:i32[3,4] = iota[dimension=1 dtype=int32 shape=(3, 4)] c:i32[3,4] = add a 1:i32[] d:bool[3,4] = eq c b "
        "e:f32[3,4] = select_n d 0.0:f32[] 1.0:f32[] in (e,) }"
    ),
    "jnp.tri(2, dtype=bool)": (
        "{ lambda ; . let a:i32[2,2] = iota[dimension=0 dtype=int32 shape=(2, 2)] "
        "b:i32[2,2] = iota[dimension=1 dtype=int32 shape=(2, 2)] c:bool[2,2] = ge a b in (c,) }"
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", PRINTED)
def test_jaxprs(text: str) -> None:
    printed = str(make_jaxpr(lambda: eval(text, {"jnp": jnp, "lax": lax, "np": np}))())
    assert printed.split() == PRINTED[text].split()


def test_a_number_beside_an_array_is_converted_while_it_is_traced() -> None:
    assert (
        str(make_jaxpr(lambda x: x + jnp.array(1))(1.0))
        == "{ lambda ; a:f32[]. let b:f32[] = add a 1.0:f32[] in (b,) }"
    )
    inner = str(make_jaxpr(lambda x: jit(lambda y, z: y + z)(x, jnp.array(1)))(1.0))
    assert "1:i32[]" in inner


def test_closures_have_the_constants_that_they_have_in_jax() -> None:
    """So do those of libraries that compare closures, as Equinox's ``filter_closure_convert`` does."""
    counts = []

    @jit
    def f(x: Any) -> Any:
        i, z = jnp.array(0), jnp.zeros(3)
        counts.append(len(make_jaxpr(lambda y: y + i + z.sum())(1.0).consts))
        counts.append(len(make_jaxpr(lambda y: y + x + z.sum())(1.0).consts))
        return x

    f(1.0)
    assert counts == [2, 2]


def test_branches_may_return_closures_over_what_is_made_and_what_is_computed() -> None:
    def f(x: Any) -> Any:
        def convert(number: Any) -> list[Any]:
            return list(make_jaxpr(lambda y: y * number)(1.0).consts)

        return lax.cond(x > 0, lambda: convert(jnp.array(2.0)), lambda: convert(jnp.asarray(x)))

    assert [float(jit(f)(x)[0]) for x in (1.0, -3.0)] == [2, -3]


# What programs keep --------------------------------------------------------------------------------------------------


def kept(closed: ClosedJaxpr) -> Iterator[Any]:
    """The constants of a program, and of those within it."""
    yield from closed.consts
    for eqn in closed.jaxpr.eqns:
        for given in eqn.params.values():
            for inner in given if isinstance(given, (tuple, list)) else [given]:
                if isinstance(inner, ClosedJaxpr):
                    yield from kept(inner)


N = 100


def rosenbrock(x: Any) -> Any:
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def waves(x: Any) -> Any:
    return jnp.sin(x) * jnp.sum(x)


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "hessian": hessian(rosenbrock),
    "hessian written out": lambda x: vmap(lambda v: jvp(grad(rosenbrock), (x,), (v,))[1])(jnp.eye(N)),
    "hessian, a few columns at a time": hessian(rosenbrock, chunk_size=64),
    "hessian of two arguments": lambda x: hessian(lambda x, y: jnp.sum(x * y[0] ** 2), (0, 1))(x, jnp.ones((1, N))),
    "jacfwd": jacfwd(waves),
    "jacrev": jacrev(waves),
    "third derivatives": jacfwd(jacfwd(lambda x: jnp.sum(x[:9] ** 4) + jnp.sum(x))),
    "gradient that is zero": grad(lambda x: jnp.sum(jnp.zeros(N)) + 0 * x[0]),
    "tangent that is zero": lambda x: jvp(lambda x: (jnp.round(x), x), (x,), (x,))[1],
    "linearize": lambda x: linearize(lambda x: jnp.cumsum(x) * x[0], x)[1](x),
    "loop of zeros": lambda x: lax.scan(lambda c, y: (c + y * x, None), jnp.zeros(N), x)[0],
    "gradient of a loop": grad(lambda x: lax.scan(lambda c, y: (c * y + x, None), jnp.zeros(N), x)[0].sum()),
    "gradient of a branch": grad(lambda x: lax.cond(x[0] > 0, lambda x: (x, x), lambda x: (x, 0 * x), x)[0].sum()),
    "tril": lambda x: jnp.tril(jnp.outer(x, x)),
    "triu": lambda x: jnp.triu(jnp.outer(x, x), 2),
    "meshgrid": lambda x: jnp.meshgrid(x, jnp.arange(N)),
    "argwhere": lambda x: jnp.argwhere(jnp.outer(x, x) > 2, size=N),
    "one_hot": lambda x: nn.one_hot(jnp.arange(N), N) @ x,
    "permutation": lambda x: random.permutation(random.key(0), N),
    "identity": lambda x: jnp.linalg.matrix_power(jnp.outer(x, x), 0),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_keep_no_array_that_they_make(name: str) -> None:
    x = jnp.linspace(0.0, 1.0, N)
    sizes = [c.size for c in kept(make_jaxpr(PROGRAMS[name])(x))]
    assert max(sizes, default=0) < N
    for got, expected in zip(*(tree.leaves(f(x)) for f in (jit(PROGRAMS[name]), PROGRAMS[name])), strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=2e-4, atol=2e-4)


def test_tracing_takes_no_memory_for_it() -> None:
    makers = (
        lambda: jnp.zeros((2000, 2000)), lambda: jnp.arange(4_000_000), lambda: jnp.eye(2000),
        lambda: jnp.full((2000, 2000), 3.0), lambda: jnp.tri(2000), lambda: jnp.linspace(0, 1, 4_000_000),
        lambda: jnp.indices((1000, 2000)), lambda: lax.full((2000, 2000), 1.0),
    )  # fmt: skip
    jit(lambda x: jnp.sum(x + jnp.zeros(3))).lower(1.0)
    for make in makers:
        tracemalloc.start()
        try:
            jit(lambda x: jnp.sum(x + make())).lower(1.0)  # noqa: B023
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 4_000_000  # an array takes 16 million bytes


def test_shapes_of_what_no_memory_holds() -> None:
    shape = (10**6, 10**6)
    assert eval_shape(lambda: jnp.zeros(shape) + 1).shape == shape
    assert eval_shape(lambda: jnp.eye(*shape)).shape == shape
    assert eval_shape(lambda: jnp.arange(2.0 * 10**6).reshape(2, 10**6)).shape == (2, 10**6)


def test_a_product_with_the_identity_keeps_its_nan() -> None:
    """The compiler would make a choice of it, if ones and zeros were a conversion of booleans."""
    product = lambda x: (jnp.eye(2) * x, jnp.tri(2) * x)
    for got, expected in zip(jit(product)(np.inf), product(np.inf), strict=True):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(expected))
