"""Eager code on another device than the host's: a second CPU device plays the part of a GPU.

The cases run in a process of their own, which ``test_elsewhere.py`` starts.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import custom_vjp, device_put, errors, grad, jit, jvp, lax, pure_callback, random, vmap
from pullback.backends.devices import transfers
from pullback.core import dtypes
from pullback.core.config import override
from tests.grid.all_specs import ALL
from tests.grid.specs import Spec
from tests.helpers import chosen

HOST, OTHER = pullback.devices()
ROWS = list({spec.operation: spec for spec in reversed(ALL)}.values())[::-1]
"""A row for each operation and function."""
BY_VALUE = {
    "numpy.compress", "numpy.extract", "numpy.nonzero", "numpy.argwhere", "numpy.unique", "scipy.integrate.quad",
    "scipy.interpolate.interp1d", "scipy.interpolate.CubicSpline", "scipy.signal.lfilter", "scipy.signal.lfilter_zi",
    "scipy.signal.sosfilt",
    "scipy.spatial.transform.Rotation", "scipy.spatial.transform.Slerp",
}  # fmt: skip
"""Functions whose shapes or steps depend on elements, which Python must read."""
OF_THE_TYPE = {"numpy.isreal", "numpy.iscomplex"}
"""Functions of real numbers whose results are those of any: a batch of them is a constant."""
UP_TO_A_CHOICE = {"eigenbasis", "singular_basis", "vectors_of_zeros"}
"""Operations whose results are determined up to a choice."""


@contextmanager
def transfers_of() -> Iterator[list[Any]]:
    """The transfers that happen within a block."""
    found: list[transfers.Transfer] = []

    def watch(transfer: transfers.Transfer) -> Any:
        found.append(transfer)
        return nullcontext()

    transfers.watchers.append(watch)
    try:
        yield found
    finally:
        transfers.watchers.remove(watch)


def operands(spec: Spec) -> list[Any]:
    letter = next((c for c in "fF" if c in spec.dtypes), spec.dtypes[0])
    return spec.point(letter)


def assert_close(outs: list[Any], expected: list[Any], what: str) -> None:
    assert len(outs) == len(expected)
    for out, wanted in zip(outs, expected, strict=True):
        assert (out.shape, out.dtype) == (wanted.shape, wanted.dtype), what
        if not dtypes.is_key(out.dtype):
            np.testing.assert_allclose(out, wanted, rtol=2e-3, atol=2e-4, err_msg=what)


def check(
    f: Callable[..., Any], args: list[Any], what: str, reads: bool, by_choice: bool = False, may_be_zero: bool = False
) -> None:
    """Committed to the device, a function's results are there, equal to the host's, and no element comes or goes.

    Args:
      f: the function.
      args: its operands.
      what: its name.
      reads: whether elements go to the host all the same, and what Python makes of them back.
      by_choice: whether the values are determined up to a choice.
      may_be_zero: whether a result may be a constant zero, on the host.
    """
    expected = pullback.tree.leaves(f(*map(jnp.asarray, args)))
    f(*device_put(args, OTHER))  # the constants of the function are sent there once, and kept
    there = device_put(args, OTHER)
    with transfers_of() as found:
        outs = pullback.tree.leaves(f(*there))
    # A number of Python's may be sent once more, if others have displaced it.
    moved = [x for x in found if x.shape or x.direction != "host_to_device"]
    for out in outs:  # a gradient or batch that is zero whatever the operands are is no result of theirs, as in JAX
        assert (out.devices() == {OTHER} and out.committed) or (may_be_zero and not np.asarray(out).any()), what
    assert reads or not moved, f"{what}: {moved}"
    if not by_choice:
        assert_close(outs, expected, what)


def no_operand(spec: Spec) -> bool:
    return not spec.samples


@pytest.mark.parametrize("spec", chosen([s for s in ROWS if not no_operand(s)][::80], ROWS[::4]), ids=str)
def test_every_operation_stays_where_its_operands_are(spec: Spec) -> None:
    if no_operand(spec):
        pytest.skip("it takes no operand, and is made on the default device")
    check(spec.function, operands(spec), str(spec), spec.operation in BY_VALUE, spec.operation in UP_TO_A_CHOICE)


DERIVED = [spec for spec in ROWS if spec.derivative and spec.samples and set(spec.dtypes) & set("f")]


@pytest.mark.parametrize("spec", chosen(DERIVED[::100], DERIVED[::8]), ids=str)
def test_gradients_and_batches_stay_there(spec: Spec) -> None:
    args = operands(spec)
    moving = [i for i, x in enumerate(args) if np.asarray(x).dtype.kind == "f"][:1]

    def total(*xs: Any) -> Any:
        return sum(jnp.sum(jnp.abs(out)) for out in pullback.tree.leaves(spec.function(*xs)) if out.dtype.kind in "fc")

    reads = spec.operation in BY_VALUE
    moving = moving if jnp.issubdtype(jnp.asarray(total(*map(jnp.asarray, args))).dtype, jnp.floating) else []
    if moving and spec.operation not in UP_TO_A_CHOICE:
        check(grad(total, tuple(moving)), args, f"grad of {spec}", reads, may_be_zero=True)
    if spec.operation in OF_THE_TYPE:
        return
    check(
        vmap(spec.function), [np.stack([np.asarray(x)] * 2) for x in args], f"vmap of {spec}", reads, may_be_zero=True
    )


# Ways to use an array ------------------------------------------------------------------------------------------------

X = jnp.arange(6.0).reshape(2, 3) + 1
V = jnp.arange(3)


@custom_vjp
def doubled(x: Any) -> Any:
    return x * 2


doubled.defvjp(lambda x: (doubled(x), x), lambda x, g: (g * x,))


def by_sign(x: Any) -> Any:
    return x * 2 if x.sum() > 0 else x


USES: dict[str, Callable[[Any, Any], Any]] = {
    "numbers": lambda x, v: 2.0 * x + 1,
    "an array of the host": lambda x, v: x + jnp.ones(3),
    "an array of NumPy": lambda x, v: x + np.ones(3, np.float32),
    "a read index": lambda x, v: x[0, 1:] + x[:, v][0, 1:],
    "an update": lambda x, v: x.at[0, v].add(1.0).at[1].set(0.0),
    "a start": lambda x, v: lax.dynamic_slice(x, (v[0], v[1]), (1, 2)),
    "a shift": lambda x, v: jnp.roll(x, v[1], 1),
    "random numbers": lambda x, v: random.gamma(random.wrap_key_data(jnp.asarray(v[:2], jnp.uint32)), x),
    "a scan": lambda x, v: lax.scan(lambda c, row: (c + row, c), x[0], x)[1],
    "a branch": lambda x, v: lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x),
    "a loop": lambda x, v: lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 2, x),
    "a rule": lambda x, v: grad(lambda x: doubled(x).sum())(x),
    "a Jacobian": lambda x, v: jvp(jnp.sin, (x,), (jnp.ones_like(x),))[1],
    "a batch": lambda x, v: vmap(lambda row: jnp.sort(row) @ row)(x),
    "an eigenvector": lambda x, v: jnp.linalg.eigh(x @ x.T)[0],
    "a solution": lambda x, v: jnp.linalg.solve(x @ x.T, x),
    "a program": lambda x, v: jit(jnp.sin)(x) + 1,
    "zeros": lambda x, v: jnp.full_like(x, 2) + jnp.zeros_like(x),
    "a diagonal": lambda x, v: jnp.diagonal(x) + jnp.trace(x),
}


@pytest.mark.parametrize("name", USES)
def test_uses(name: str) -> None:
    check(USES[name], [X, V], name, reads=name in ("an array of the host", "an array of NumPy"))


READS: dict[str, Callable[[Any], Any]] = {
    "nonzero": lambda x: jnp.nonzero(x > 2)[0],
    "a callback": lambda x: pure_callback(lambda a: a * 2, X, x),
    "a mask": lambda x: x[x > 2],
    "control flow": by_sign,
}


@pytest.mark.parametrize("name", READS)
def test_results_of_elements_that_python_reads_go_back(name: str) -> None:
    check(READS[name], [X], name, reads=True)
    with transfers_of() as found:
        READS[name](device_put(X, OTHER))
    assert "device_to_host" in {transfer.direction for transfer in found}


def test_python_reads_one_copy() -> None:
    x = device_put(X, OTHER) * 1
    with transfers_of() as found:
        assert (float(x[0, 0]), x.tolist(), str(x), np.sin(x).shape) == (1.0, X.tolist(), str(X), (2, 3))
    assert [(t.direction, t.nbytes, t.source, t.target) for t in found] == [
        ("device_to_host", 4, OTHER, None), ("device_to_host", 24, OTHER, None),
    ]  # fmt: skip
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(x)), X)


def test_moves_between_devices_do_not_go_through_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    x = device_put(X, OTHER)
    monkeypatch.setattr("pullback.backends.compiler.client.to_numpy", None)
    for move in (lambda: device_put(x, HOST), lambda: x.to_device(HOST), lambda: jit(lambda x: x, device=HOST)(x)):
        with transfers_of() as found:
            assert move().devices() == {HOST}
        assert [(t.direction, t.nbytes, t.source, t.target) for t in found] == [("device_to_host", 24, OTHER, HOST)]


def test_arrays_on_different_devices() -> None:
    x, y = device_put(X, OTHER), device_put(X, HOST)
    for f in (lambda: x + y, lambda: jit(jnp.add)(x, y), lambda: jnp.concatenate([x, y])):
        with pytest.raises(errors.IncompatibleDevicesError, match="different devices"):
            f()
        assert issubclass(errors.IncompatibleDevicesError, ValueError)


def test_the_guard_counts_arrays_and_no_numbers() -> None:
    x, large = device_put(X, OTHER), np.ones((10_000, 1, 3), np.float32)
    with pullback.transfer_guard("disallow"):
        assert (x * 0.123 + X[0]).devices() == {OTHER}
        for f in (lambda: x + large, lambda: jit(jnp.add)(x, large)):
            with pytest.raises(errors.TransferGuardError, match=r"host-to-device transfer of f32\[10000,1,3\]"):
                f()
        device_put(large, OTHER)


# The default device --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", USES)
def test_uses_on_the_default_device(name: str) -> None:
    """Results are there, uncommitted; what they are made of is there too, or comes from the host once."""
    expected = USES[name](X, V)
    with pullback.default_device(OTHER):
        x, v = jit(lambda: (X + 0, V + 0))()
        with transfers_of() as found:
            out = USES[name](x, v)
        assert out.devices() == {OTHER}
        assert not out.committed
        assert "device_to_host" not in {transfer.direction for transfer in found}, found
    assert_close([out], [expected], name)


def test_arrays_are_made_on_the_default_device() -> None:
    with pullback.default_device(OTHER), transfers_of() as found:
        big = jnp.ones((300, 300)) + jnp.zeros((300, 300))
    assert big.devices() == {OTHER}
    assert all(transfer.nbytes < 1000 for transfer in found)


def test_eager_code_stays_on_the_host_if_a_switch_says_so() -> None:
    with pullback.default_device(OTHER), override("eager_on_host", True), transfers_of() as found:
        np.testing.assert_array_equal(jnp.sin(X) + 1, jnp.sin(X) + 1)
        assert not found
        assert jit(jnp.sin)(X).devices() == {OTHER}


def test_an_array_committed_to_the_host_stays_there() -> None:
    y = device_put(X, HOST)
    with pullback.default_device(OTHER):
        out = jnp.sin(y + 1)
    assert out.devices() == {HOST}
    assert out.committed


def test_watchers_see_operations_elsewhere() -> None:
    with pullback.default_device(OTHER), pullback.debug_nans(True):
        x = jit(lambda: X + 0)()
        with pytest.raises(FloatingPointError, match="log"):
            jnp.log(-x)
        assert jnp.log(x).devices() == {OTHER}
    with (
        pullback.default_device(OTHER),
        pullback.numpy_rank_promotion("raise"),
        pytest.raises(ValueError, match="axes"),
    ):
        jnp.ones((2, 3)) + jnp.ones(3)
