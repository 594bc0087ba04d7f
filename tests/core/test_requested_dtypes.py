"""Requests for 64 bits where there are 32: a warning at the user's line, an error, or 64 bits."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import config, explicit_x64_dtypes, grad, jit, lax, nn, random, vmap
from pullback.core.config import enable_x64
from pullback.core.errors import ArgumentError, DtypeError, DtypeTruncationWarning

x = jnp.ones(3)
z = jnp.ones(3, "complex64")
wide = np.ones(3)
key = random.key(0)

SCOPE = {
    "grad": grad, "jit": jit, "jnp": jnp, "key": key, "lax": lax, "nn": nn, "np": np, "pullback": pullback,
    "random": random, "vmap": vmap, "wide": wide, "x": x, "z": z,
}  # fmt: skip
# As JAX 0.10.2 does, each of them.
WARNS = """
jnp.zeros(2, "float64")
jnp.zeros(2, jnp.float64)
jnp.zeros(2, np.dtype("float64"))
jnp.zeros(2, "f8")
jnp.zeros(2, "float")
jnp.ones(2, np.int64)
jnp.empty(2, np.int64)
jnp.full(2, 1, np.uint64)
jnp.zeros_like(x, np.float64)
jnp.ones_like(x, np.float64)
jnp.empty_like(x, np.float64)
jnp.full_like(x, 1, np.float64)
jnp.eye(2, dtype=np.float64)
jnp.identity(2, dtype=np.float64)
jnp.tri(2, dtype=np.float64)
jnp.arange(3, dtype=np.int64)
jnp.linspace(0, 1, 3, dtype=np.float64)
jnp.logspace(0, 1, 3, dtype=np.float64)
jnp.geomspace(1, 2, 3, dtype=np.float64)
jnp.array([1.0], dtype="float64")
jnp.array([1.0], dtype=np.complex128)
jnp.array(1, dtype=np.longlong)
jnp.array(wide, dtype=wide.dtype)
jnp.asarray([1.0], dtype="float64")
x.astype(np.float64)
jnp.astype(x, np.float64)
jnp.ones(4).view(np.int64)
jnp.sum(x, dtype=np.float64)
jnp.mean(x, dtype=np.float64)
jnp.var(x, dtype=np.float64)
x.prod(dtype=np.float64)
jnp.cumsum(x, dtype=np.float64)
jnp.cumulative_sum(x, dtype=np.float64)
jnp.nansum(x, dtype=np.float64)
jnp.trace(jnp.eye(2), dtype=np.float64)
jnp.add.reduce(x, dtype=np.float64)
jnp.float64(1.0)
jnp.int64(1)
jnp.complex128(1)
jnp.fromfunction(lambda i: i, (3,), dtype=np.float64)
jnp.indices((2,), dtype=np.int64)
jnp.concatenate([x], dtype=np.float64)
jnp.stack([x], dtype=np.float64)
jnp.einsum("i,i", x, x, preferred_element_type=np.float64)
jnp.dot(x, x, preferred_element_type=np.float64)
jnp.fft.fftfreq(4, dtype=np.float64)
jnp.cov(jnp.ones((2, 3)), dtype=np.float64)
lax.dot(x, x, preferred_element_type=np.float64)
lax.convert_element_type(x, np.float64)
lax.full((2,), 1, np.float64)
lax.full_like(x, 1, np.float64)
lax.iota(np.int64, 3)
lax.broadcasted_iota(np.int64, (2, 3), 0)
lax.argmax(x, 0, np.int64)
lax.bitcast_convert_type(jnp.ones((3, 2)), np.int64)
random.normal(key, (2,), dtype=np.float64)
random.uniform(key, (2,), dtype=np.float64)
random.randint(key, (2,), 0, 5, dtype=np.int64)
random.bits(key, (2,), dtype=np.uint64)
random.gamma(key, 1.0, (2,), dtype=np.float64)
random.poisson(key, 1.0, (2,), dtype=np.int64)
random.truncated_normal(key, 0.0, 1.0, (2,), dtype=np.float64)
random.multinomial(key, 3, x / 3, dtype=np.float64)
nn.initializers.glorot_normal()(key, (2, 2), np.float64)
nn.one_hot(jnp.arange(2), 2, dtype=np.float64)
jit(lambda y: y.astype(np.float64))(x)
vmap(lambda y: y.astype(np.float64))(x)
grad(lambda y: y.astype(np.float64).sum())(x)
""".strip().splitlines()
SILENT = """
jnp.zeros(2, float)
jnp.zeros(2, int)
jnp.zeros(2, complex)
jnp.arange(3, dtype=float)
x.astype(float)
lax.convert_element_type(x, float)
lax.full((2,), 1, float)
jnp.sum(x, dtype=float)
random.normal(key, (2,), dtype=float)
jnp.full(2, np.float64(1))
jnp.zeros_like(wide)
jnp.array(wide)
jnp.asarray(wide, copy=True)
jnp.copy(wide)
jnp.sin(wide)
x + wide
x + np.float64(1)
jnp.clip(x, np.float64(0))
jnp.power(x, np.int64(2))
jnp.take(x, np.int64(1))
x.at[np.int64(1)].set(np.float64(1))
jnp.frombuffer(wide.tobytes(), dtype=np.float64)
jnp.fromstring("1 2", dtype=np.float64, sep=" ")
pullback.device_put(wide)
pullback.ShapeDtypeStruct((2,), np.float64)
jnp.finfo(np.float64)
jnp.dtype(np.float64)
jnp.promote_types(np.float64, np.float32)
jnp.result_type(np.float32, np.float64)
jnp.can_cast(np.float64, np.float32)
random.bits(key, (2,))
jnp.histogram(x)
jnp.unique(x, return_index=True)
np.asarray(x, dtype=np.float64)
x.astype(np.float32)
""".strip().splitlines()


def caught(text: str) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        eval(compile(text, "<the user's>", "eval"), SCOPE)
    return found


@pytest.mark.parametrize("text", WARNS)
def test_what_yields_32_bits_warns_at_the_users_line(text: str) -> None:
    (found,) = caught(text)
    assert (found.category, found.filename) == (DtypeTruncationWarning, "<the user's>")
    assert str(found.message).startswith("Explicitly requested dtype ")  # JAX's words, for filters
    assert "explicit_x64_dtypes" in str(found.message)
    with enable_x64():
        assert not caught(text)
    with explicit_x64_dtypes("error"), pytest.raises(DtypeError, match="Explicitly requested dtype"):
        eval(text, SCOPE)


@pytest.mark.parametrize("text", SILENT)
def test_what_asks_for_no_width_does_not(text: str) -> None:
    assert not caught(text)
    with explicit_x64_dtypes("error"):
        eval(text, SCOPE)


def test_the_warning_says_all() -> None:
    with pytest.warns(DtypeTruncationWarning) as found:
        jnp.zeros(2, "int64")
    assert str(found[0].message) == (
        "Explicitly requested dtype int64 requested in zeros is not available, and will be truncated to dtype int32: "
        "32 bits are the default. `pullback.config.update('enable_x64', True)` or PULLBACK_ENABLE_X64=1 in the "
        "environment makes 64 bits the default; `pullback.config.update('explicit_x64_dtypes', 'allow')` keeps 64 "
        "bits where you ask for them."
    )


def test_a_line_warns_once() -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        for _ in range(3):
            jnp.zeros(2, "float64")
        jnp.zeros(2, "float64")
    assert len(found) == 2


def test_the_imaginary_part_is_not_lost_without_a_word() -> None:
    """As NumPy; JAX warns of its own deprecation there."""
    with pytest.warns(np.exceptions.ComplexWarning, match="no imaginary part"):
        z.astype(float)
    assert not caught("z.astype(bool)")
    assert not caught("z.real.astype(float)")


# Of 64 bits where they are asked for ----------------------------------------------------------------------------------

ALLOWED: dict[str, str] = {
    'jnp.zeros(2, "float64")': "float64",
    "jnp.zeros(2, float)": "float32",
    "jnp.zeros(2)": "float32",
    "jnp.asarray(wide)": "float32",
    "a": "float64",
    "a + 1.5": "float64",
    "a * x": "float64",
    "a + wide": "float64",
    "x + wide": "float32",
    "i + 1": "int64",
    "i + 1.5": "float32",
    "i / 2": "float64",
    "jnp.sin(i)": "float64",
    "i.sum()": "int64",
    "i.mean()": "float64",
    "a.astype(int)": "int32",
    'x.astype("float64")': "float64",
    "jnp.zeros_like(a)": "float64",
    "jnp.where(a > 1, a, 0)": "float64",
    "jnp.concatenate([a, x])": "float64",
    "jnp.linalg.inv(jnp.diag(a + 1))": "float64",
    "jnp.fft.fft(a)": "complex128",
    "jit(jnp.sin)(a)": "float64",
    'jit(lambda y: y.astype("float64"))(x)': "float64",
    "jit(lambda y: y)(wide)": "float32",
    "grad(lambda y: (y**2).sum())(a)": "float64",
    "pullback.hessian(lambda y: (y**3).sum())(a)": "float64",
    "vmap(lambda y: y * 2)(a)": "float64",
    "lax.scan(lambda c, y: (c + y, c), jnp.zeros((), np.float64), a)[1]": "float64",
    "jnp.int64(2**40)": "int64",
    "random.normal(key, (3,), dtype=np.float64)": "float64",
    "random.normal(key, (3,))": "float32",
    'jnp.ones(3, "uint32") + jnp.ones(3, "int32")': "int32",
}


@pytest.mark.parametrize("text", ALLOWED)
def test_64_bits_where_they_are_asked_for(text: str) -> None:
    """As JAX 0.10.2 with ``jax_explicit_x64_dtypes`` of "allow"; drawing, where JAX fails, included."""
    with explicit_x64_dtypes("allow"):
        scope = {**SCOPE, "a": jnp.arange(3, dtype="float64"), "i": jnp.arange(3, dtype="int64")}
        assert eval(text, scope).dtype == ALLOWED[text]


def test_a_program_is_traced_anew_for_another_choice() -> None:
    f = jit(lambda y: y.astype("float64"))
    for choice, dtype in (("allow", "float64"), ("warn", "float32"), ("allow", "float64")):
        with explicit_x64_dtypes(choice), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert f(x).dtype == dtype


def test_the_values_have_64_bits() -> None:
    with explicit_x64_dtypes("allow"):
        third = jnp.ones((), "float64") / 3
        assert float(third) == 1 / 3
        assert float(jit(lambda y: y / 3)(jnp.ones((), "float64"))) == 1 / 3


def test_the_switch() -> None:
    assert config.jax_explicit_x64_dtypes == "warn"
    with pytest.raises(ArgumentError, match="must be one of"):
        config.update("explicit_x64_dtypes", "yes")


def test_a_buffer_is_read_as_what_it_is() -> None:
    """Elements of 64 bits are not twice as many of 32."""
    out: Any = jnp.frombuffer(np.array([1.0, 2.5]).tobytes(), dtype=np.float64)
    assert (out.dtype, out.tolist()) == ("float32", [1.0, 2.5])


def test_types_of_numpy_can_be_cast() -> None:
    assert jnp.can_cast(np.int8, np.int16)
    assert not jnp.can_cast(np.float64, jnp.float32)
