"""Flags of the transformations are True or False: what would count as one by accident is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import debug, derivatives, dtypes, errors, lax
from pullback.experimental import checkify, io_callback
from pullback.experimental.jet import jet
from pullback.sharding import PartitionSpec as P


def double(x: Any) -> Any:
    return x * 2.0


def with_aux(x: Any) -> Any:
    return double(x), x


def _made() -> list[tuple[str, str, Callable[[Any], Any]]]:
    """Transformations of ``double``: the name, the flag, and a function that sets it."""
    flags: dict[Any, tuple[str, ...]] = {
        pullback.grad: ("has_aux", "holomorphic", "allow_int"),
        pullback.value_and_grad: ("has_aux", "holomorphic", "allow_int"),
        pullback.jacfwd: ("has_aux", "holomorphic"),
        pullback.jacrev: ("has_aux", "holomorphic", "allow_int"),
        pullback.hessian: ("has_aux", "holomorphic"),
        pullback.vmap: ("sum_match",),
        pullback.make_jaxpr: ("return_shape",),
        pullback.jit: ("keep_unused", "inline"),
        pullback.checkpoint: ("concrete",),
        derivatives.jacobian_pattern: ("local",),
        derivatives.hessian_pattern: ("local",),
        derivatives.sparse_jacobian: ("local", "check"),
        derivatives.sparse_hessian: ("local", "check"),
        derivatives.empirical_fisher: ("centred",),
    }
    return [
        (transformation.__name__, name, lambda value, t=transformation, name=name: t(double, **{name: value}))
        for transformation, names in flags.items()
        for name in names
    ]


def _rule(primals: Any, tangents: Any) -> Any:
    return double(*primals), double(*tangents)


def _steps(carry: Any, x: Any) -> Any:
    return carry, x


def _sharded(check_vma: Any) -> Any:
    mesh = pullback.make_mesh((1,), ("i",))
    return pullback.shard_map(double, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=check_vma)


CALLED: list[tuple[str, str, Callable[[Any], Any]]] = [
    ("jvp", "has_aux", lambda o: pullback.jvp(double, (1.0,), (1.0,), has_aux=o)),
    ("vjp", "has_aux", lambda o: pullback.vjp(double, 1.0, has_aux=o)),
    ("linearize", "has_aux", lambda o: pullback.linearize(double, 1.0, has_aux=o)),
    ("fwd_and_bwd", "has_aux", lambda o: pullback.fwd_and_bwd(double, 0, has_aux=o)),
    ("fwd_and_bwd", "jitted", lambda o: pullback.fwd_and_bwd(double, 0, jitted=o)),
    ("jet", "factorial_scaled", lambda o: jet(double, (1.0,), ((1.0,),), factorial_scaled=o)),
    ("defjvp", "symbolic_zeros", lambda o: pullback.custom_jvp(double).defjvp(_rule, symbolic_zeros=o)),
    ("defvjp", "symbolic_zeros", lambda o: pullback.custom_vjp(double).defvjp(double, double, symbolic_zeros=o)),
    ("shard_map", "check_vma", _sharded),
    ("scan", "reverse", lambda o: lax.scan(_steps, 0.0, jnp.ones(2), reverse=o)),
    ("associative_scan", "reverse", lambda o: lax.associative_scan(jnp.add, jnp.ones(2), reverse=o)),
    ("custom_root", "has_aux", lambda o: lax.custom_root(double, 1.0, double, double, has_aux=o)),
    ("custom_linear_solve", "symmetric", lambda o: lax.custom_linear_solve(double, 1.0, double, symmetric=o)),
    ("io_callback", "ordered", lambda o: io_callback(double, jnp.ones(()), 1.0, ordered=o)),
    ("debug.print", "ordered", lambda o: debug.print("{}", 1.0, ordered=o)),
    ("debug.print", "skip_format_check", lambda o: debug.print("{}", 1.0, skip_format_check=o)),
    ("check", "debug", lambda o: checkify.check(True, "never", debug=o)),
    ("canonicalize_dtype", "allow_extended_dtype", lambda o: dtypes.canonicalize_dtype(float, allow_extended_dtype=o)),
    ("ffi_call", "has_side_effect", lambda o: pullback.ffi.ffi_call("a", jnp.ones(()), has_side_effect=o)),
]


@pytest.mark.parametrize("value", [object(), "yes", 2, 1.0, [True]], ids=["object", "str", "2", "float", "list"])
@pytest.mark.parametrize(
    ("name", "flag", "call"), [pytest.param(*row, id=f"{row[0]}-{row[1]}") for row in _made() + CALLED]
)
def test_what_is_no_flag_is_refused(name: str, flag: str, call: Callable[[Any], Any], value: object) -> None:
    with pytest.raises(errors.ArgumentError, match=f"{re.escape(name)}.*: {flag} must be True or False, got"):
        call(value)


@pytest.mark.parametrize("value", [None, False, 0, np.False_, np.int32(0)])
def test_what_counts_as_false(value: Any) -> None:
    assert pullback.grad(double, has_aux=value, holomorphic=value, allow_int=value)(1.0) == 2.0
    assert pullback.vjp(double, 1.0, has_aux=value)[0] == 2.0
    assert pullback.jit(double, inline=value, keep_unused=value)(1.0) == 2.0


@pytest.mark.parametrize("value", [True, 1, np.True_])
def test_what_counts_as_true(value: Any) -> None:
    assert pullback.grad(with_aux, has_aux=value)(1.0) == (2.0, 1.0)
    assert pullback.jacfwd(double, holomorphic=value)(1j) == 2.0
    assert pullback.jvp(with_aux, (1.0,), (1.0,), has_aux=value) == (2.0, 2.0, 1.0)
    assert pullback.grad(lambda n: 2.0, allow_int=value)(1).dtype == pullback.float0
