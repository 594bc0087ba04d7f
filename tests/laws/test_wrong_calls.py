"""Calls with nonsense end soon, and in an error of ours; flags are booleans; random keys are no numbers."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import lax, random, tree_util
from pullback.core.errors import AllocationError, PullbackError, ShapeError
from pullback.scipy import linalg, signal, stats
from pullback.scipy.sparse import linalg as sparse_linalg
from tests.laws.wrong_calls import Thing, nonsense, outcome, public_functions, run, sound, wrong_calls

V = jnp.array([0.25, 0.5, 0.75])
M = jnp.array([[2.0, 0.5], [0.5, 1.0]])


def test_a_drawn_part_of_all_wrong_calls_ends_in_errors_of_ours() -> None:
    """The long run is made by hand: see docs/testing.md."""
    report = run(seed=0, processes=1, share=0.02)
    assert report.ended == [], report.text()
    assert report.counts.total() > 1000
    assert report.counts["late"] == 0, report.text()
    assert report.counts["raw"] <= report.counts.total() / 1000, report.text()


def test_the_calls_of_a_seed_are_the_same_in_each_run() -> None:
    for name, function in list(public_functions())[::40]:
        first, second = ([str(c[2:]) for c in wrong_calls(name, function, 3)] for _ in range(2))
        assert len(first) == len(second)
    assert len(nonsense()) >= 37
    assert len(sound()) > 3


FUNCTIONS: list[Any] = [
    jnp.sum, jnp.prod, jnp.min, jnp.max, jnp.mean, jnp.std, jnp.var, jnp.all, jnp.median, jnp.any, jnp.sort,
    jnp.unique, jnp.angle, jnp.linspace, jnp.linalg.svd, jnp.linalg.norm, jnp.take, jnp.isclose, jnp.cov, lax.cumsum,
    lax.sort, linalg.lu, stats.mode,
    pullback.nn.gelu, pullback.nn.logsumexp, random.categorical, pullback.enable_x64,
]  # fmt: skip
FLAGS = [
    (name, p.name, function)
    for name, function in public_functions()
    for p in (inspect.signature(function).parameters.values() if function in FUNCTIONS else ())
    if isinstance(p.default, bool) and p.name not in ("overwrite_a", "check_finite")
]


@pytest.mark.parametrize(("name", "flag", "function"), FLAGS, ids=[f"{name}-{flag}" for name, flag, _ in FLAGS])
def test_a_flag_is_a_boolean(name: str, flag: str, function: Any) -> None:
    kinds: dict[str, tuple[Any, ...]] = {
        "linspace": (0.0, 1.0), "take": (V, 1), "isclose": (V, V), "lu": (jnp.eye(2),), "svd": (jnp.eye(2),),
        "categorical": (random.key(0), V), "enable_x64": (),
    }  # fmt: skip
    arguments = kinds.get(name.rpartition(".")[2], (V,))
    for bad in (Thing(), "no", 2, np.array([True, False]), V):
        with pytest.raises(PullbackError, match=rf"{flag} must be True or False, got .* of type {type(bad).__name__}"):
            function(*arguments, **{flag: bad})


@pytest.mark.parametrize("value", [True, 1, np.True_, np.int64(1), jnp.array(True)])
def test_what_counts_as_a_flag(value: Any) -> None:
    assert jnp.sum(V, keepdims=value).shape == (1,)
    assert float(jnp.angle(1j, value)) == 90.0
    assert jnp.sum(V, keepdims=not value).shape == ()


@pytest.mark.parametrize(
    "call",
    [
        lambda k: jnp.ceil(k), lambda k: jnp.floor(k), lambda k: jnp.around(k), lambda k: jnp.fix(k),
        lambda k: jnp.logical_and(k, k), lambda k: jnp.logical_or(k, k), lambda k: jnp.logical_xor(k, k),
        lambda k: jnp.logical_not(k), lambda k: jnp.iscomplex(k), lambda k: jnp.isreal(k), lambda k: jnp.signbit(k),
        lambda k: jnp.argwhere(k), lambda k: jnp.extract(k, k), lambda k: jnp.setdiff1d(k, k),
        lambda k: jnp.intersect1d(k, k), lambda k: jnp.setxor1d(k, k),
    ],
)  # fmt: skip
def test_random_keys_are_no_numbers(call: Any) -> None:
    with pytest.raises(TypeError, match=r"takes numbers, got key<fry>"):
        call(random.key(0))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: jnp.fft.fftshift(1.0, ()), None),
        (lambda: jnp.roll(V, np.zeros((0, 3))), "roll: the shifts"),
        (lambda: jnp.linalg.cross(V, 1), "linalg.cross"),
        (lambda: jnp.trim_zeros(V, V), "trim_zeros: trim must be"),
        (lambda: jnp.angle(V, V), "angle: deg must be True or False"),
        (lambda: jnp.arange(random.key(0)), "float() takes a number, got a random key"),
        (lambda: jnp.array_repr(V, precision=2**63 - 1), "array_repr: precision must be an int of 32 bits"),
        (lambda: jnp.histogram(V, np.zeros((0, 3))), "histogram_bin_edges: bins must be a number, or a vector"),
        (lambda: jnp.histogramdd(M, density=np.zeros((0, 3))), "histogramdd: density must be True or False"),
        (lambda: jnp.polyint(V, k=[[1.0, 2.0], [3.0]]), "polyint: "),
        (lambda: jnp.repeat(V, [[1.0, 2.0], [3.0]]), "repeat: repeats must be an int or integers"),
        (lambda: jnp.take(V, jnp.array([0, 9]), fill_value=slice(None)), "take: fill_value: expected"),
        (lambda: lax.expand_dims(V, pullback.ShapeDtypeStruct((2,), "float32")), "expand_dims: expected a sequence"),
        (lambda: jnp.argwhere(1.0, size=10**40), "argwhere: no memory for an array of shape"),
        (lambda: jnp.repeat(V, 2, total_repeat_length=10**40), "repeat: no memory for an array of shape"),
        (lambda: sparse_linalg.lsqr(M, jnp.ones(2), x0={"a": 1.0}), "lsqr: x0 must be an array if A is a matrix"),
        (lambda: pullback.ops.segment_sum(V, jnp.array([0, 1, 1]), 2**63 - 1), "no memory for an array of "
            "shape"),
        (lambda: lax.pbroadcast(V, [], 1.5), "lax.pbroadcast: source must be an int"),
        (lambda: linalg.eigh(M, type=np.array(["a", "b"])), "eigh: type must be 1, 2 or 3"),
        (lambda: linalg.convolution_matrix(V, 2**63 - 1), "repeat: no memory for an array of shape"),
        (lambda: pullback.vmap(jnp.sin, axis_size=np.zeros((0, 3))), "vmap: axis_size must be a non-negative int"),
        (lambda: random.categorical(random.key(0), V + 1j), "categorical: logits must be real"),
        (lambda: signal.csd(V, V, scaling=np.array([1, "a", None], object)), "csd: scaling must be 'density'"),
        (lambda: signal.welch(V, window=(), nperseg=2), "welch: unknown window ()"),
        (lambda: tree_util.register_pytree_node_class(Thing), "Thing lacks the method tree_flatten and tree_unflatten"),
        (lambda: tree_util.register_pytree_with_keys_class(Thing), "Thing lacks the method tree_flatten_with_keys"),
        (lambda: lax.cumsum(V, "a"), "lax.cumsum: an axis must be an int, got 'a' of type str"),
        (lambda: lax.psum(V, [[1]]), "psum: axis_name must be a hashable name"),
        (lambda: jnp.transpose(V, 2.0), "transpose: an axis must be an int"),
        (lambda: jnp.indices(3), "indices: dimensions must be a sequence"),
        (lambda: jnp.sin(10**40), "sin: Python int 10000"),
        (lambda: lax.broadcast(V, "a"), "broadcast: expected a sequence of ints"),
        (lambda: jnp.reshape(V, (V, V)), "reshape: "),
        (lambda: pullback.tree.map(3, V), "tree.map: f must be a function, got 3 of type int"),
        (lambda: pullback.device_count([]), "the name of a platform"),
    ],
)  # fmt: skip
def test_the_worst_errors_name_the_function(call: Any, words: str | None) -> None:
    if words is None:
        call()
        return
    with pytest.raises(PullbackError) as caught:
        call()
    assert words in str(caught.value)


@pytest.mark.parametrize("count", [10**40, 2**62])
@pytest.mark.parametrize(
    "call",
    [
        lambda n: jnp.array_split(V, n), lambda n: jnp.vander(V, n), lambda n: jnp.zeros(n), lambda n: jnp.eye(n),
        lambda n: jnp.linspace(0, 1, n), lambda n: lax.broadcast_to_rank(V, n), lambda n: jnp.hamming(n),
        lambda n: jnp.diag_indices(2, n), lambda n: lax.empty((n,), "float32"),
        lambda n: lax.broadcasted_iota("int32", (n, 2), 0), lambda n: pullback.scipy.special.bernoulli(n),
    ],
)  # fmt: skip
def test_sizes_beyond_any_memory_are_refused_at_once(call: Any, count: int) -> None:
    with pytest.raises((AllocationError, ShapeError)):
        call(count)


def test_functions_of_matrices_take_many_axes() -> None:
    many = jnp.broadcast_to(jnp.array([[2.0, 1.0], [0.0, -3.0]]), (*[1] * 38, 2, 2))
    assert linalg.signm(many).shape == many.shape
    np.testing.assert_allclose(linalg.signm(many).reshape(2, 2), [[1.0, 0.4], [0.0, -1.0]], atol=1e-5)


def test_the_outcome_of_a_call_is_told_by_its_error() -> None:
    name, function = "numpy.sin", jnp.sin
    call = next(c for c in wrong_calls(name, function, 0) if c.kind == "a string" and c.where == "argument 0")
    assert outcome(call).what == "own"
    assert outcome(call._replace(arguments=[])).what == "python"
    assert outcome(call._replace(arguments=[0.5])).what == "accepted"
