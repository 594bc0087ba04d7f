"""Calls of compiled functions: routines of LAPACK that come with the compiler, and one that is compiled here."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import ShapeDtypeStruct, core, custom_vjp, disable_jit, dtypes, errors, ffi, grad, jit, lax, vmap
from pullback.experimental.layout import Layout
from pullback.interpreters import mlir

A = jnp.array([[4.0, 2.0], [2.0, 5.0]])
LOWER = {"uplo": np.uint8(ord("L"))}
UPPER = {"uplo": np.uint8(ord("U"))}


def factor(a: Any, which: dict[str, Any] = UPPER, **options: Any) -> Any:
    """The Cholesky factor by rows, of which LAPACK sees the transpose."""
    types = ShapeDtypeStruct(a.shape, a.dtype), ShapeDtypeStruct(a.shape[:-2], "int32")
    return ffi.ffi_call("lapack_spotrf_ffi", types, **options)(a, **which)


def lines(function: Callable[..., Any], *args: Any) -> str:
    return next(line for line in jit(function).lower(*args).as_text().splitlines() if "custom_call" in line)


@pytest.mark.parametrize("way", [lambda f: f, jit])
def test_a_routine_of_lapack(way: Any) -> None:
    out, info = way(factor)(A)
    assert info.dtype == "int32"
    assert info == 0
    np.testing.assert_allclose(np.tril(out), np.linalg.cholesky(np.asarray(A)), rtol=1e-6)
    assert way(factor)(-A)[1] == 1


def test_attributes_make_programs_different() -> None:
    np.testing.assert_allclose(np.triu(factor(A, LOWER)[0]), [[2, 1], [0, 2]], rtol=1e-6)
    np.testing.assert_allclose(np.tril(factor(A, UPPER)[0]), [[2, 0], [1, 2]], rtol=1e-6)


@pytest.mark.parametrize("options", [{"input_output_aliases": {0: 0}}, {"has_side_effect": True}])
def test_shared_memory_and_effects(options: Any) -> None:
    before = np.array(A)
    for way in (lambda a: factor(a, **options), jit(lambda a: factor(a, **options))):
        out, _ = way(A)
        np.testing.assert_allclose(np.tril(out), [[2, 0], [1, 2]], rtol=1e-6)
        np.testing.assert_array_equal(A, before)
    kept = jit(lambda a: (factor(a, **options), a)[1]).lower(A).as_text()
    assert ("lapack_spotrf_ffi" in kept) == ("has_side_effect" in options)


def test_layouts() -> None:
    columns = {"input_layouts": [(1, 0)], "output_layouts": [Layout((1, 0)), None]}
    for which in (LOWER, UPPER):
        out, _ = factor(A.at[0, 1].set(7.0), which, **columns)
        part = np.tril if which is LOWER else np.triu
        wanted = [[2, 0], [1, 2]] if which is LOWER else [[2, 3.5], [0, np.nan]]
        np.testing.assert_allclose(part(out)[0], wanted[0], rtol=1e-6)
    text = lines(lambda a: factor(a, **columns), A)
    assert "operand_layouts = [dense<[0, 1]> : tensor<2xindex>]" in text
    assert "result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]" in text
    many = jnp.stack([A.at[0, 1].set(7.0), 4 * A])  # the mapped axis is the slowest
    out, _ = vmap(lambda a: factor(a, LOWER, vmap_method="broadcast_all", **columns))(many)
    np.testing.assert_allclose(np.tril(out), [[[2, 0], [1, 2]], [[4, 0], [2, 4]]], rtol=1e-6)


@pytest.mark.parametrize(
    "method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized"]
)
@pytest.mark.parametrize("way", [lambda f: f, jit])
def test_mapped(method: str, way: Any) -> None:
    many = jnp.stack([A, 4 * A, 9 * A])
    out, info = way(vmap(lambda a: factor(a, vmap_method=method)))(many)
    wanted = np.linalg.cholesky(np.asarray(many))
    np.testing.assert_allclose(np.tril(out), wanted, rtol=1e-6)
    assert info.shape == (3,)
    twice = jnp.stack([many, many])
    out, info = way(vmap(vmap(lambda a: factor(a, vmap_method=method, input_output_aliases={0: 0})), in_axes=1))(twice)
    np.testing.assert_allclose(np.tril(out), np.stack([wanted, wanted], 1), rtol=1e-6)
    assert info.shape == (3, 2)


def test_mapped_operands_and_others() -> None:
    def solve(a: Any, b: Any, method: str) -> Any:
        """a / b for a lower triangular b, as LAPACK's by columns: by rows it solves with the transposed."""
        call = ffi.ffi_call("lapack_strsm_ffi", ShapeDtypeStruct(b.shape, b.dtype), vmap_method=method)
        options = {"side": "R", "uplo": "U", "trans_x": "N", "diag": "N"}
        return call(a, b, **{name: np.uint8(ord(letter)) for name, letter in options.items()})

    triangle = jnp.array([[2.0, 0.0], [1.0, 4.0]])
    rhs = jnp.arange(1.0, 9.0).reshape(2, 2, 2)
    wanted = np.linalg.solve(np.asarray(triangle), np.asarray(rhs))
    np.testing.assert_allclose(solve(triangle, rhs[0], "sequential"), wanted[0], rtol=1e-6)
    for method in ("sequential", "broadcast_all"):
        out = jit(vmap(solve, in_axes=(None, 0, None)), static_argnums=2)(triangle, rhs, method)
        np.testing.assert_allclose(out, wanted, rtol=1e-6)
    for method, shape in (("expand_dims", "1x2x2"), ("legacy_vectorized", "2x2"), ("broadcast_all", "2x2x2")):
        text = lines(vmap(lambda b, method=method: solve(triangle, b, method)), rhs)
        assert f": (tensor<{shape}xf32>, tensor<2x2x2xf32>) -> tensor<2x2x2xf32>" in text


def test_within_loops_and_derivatives() -> None:
    @custom_vjp
    def log_det(a: Any) -> Any:
        return 2 * jnp.log(jnp.diagonal(factor(a, vmap_method="broadcast_all")[0])).sum()

    log_det.defvjp(lambda a: (log_det(a), a), lambda a, ct: (ct * jnp.linalg.inv(a).T,))
    for way in (lambda f: f, jit):
        np.testing.assert_allclose(way(grad(log_det))(A), np.linalg.inv(np.asarray(A)), rtol=1e-5)
        np.testing.assert_allclose(way(vmap(log_det))(jnp.stack([A, 2 * A])), np.log([16, 64]), rtol=1e-6)
    out = jit(lambda a: lax.fori_loop(0, 2, lambda i, x: x + factor(a)[0], jnp.zeros_like(a)))(A)
    np.testing.assert_allclose(np.tril(out), [[4, 0], [2, 4]], rtol=1e-6)
    with disable_jit():
        np.testing.assert_allclose(jit(log_det)(A), np.log(16), rtol=1e-6)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1 : i64"),
        (True, "true"),
        ('say "s"\n', '"say \\22s\\22\\0A"'),
        (b"x", '"x"'),
        (np.int8(3), "3 : i8"),
        (np.uint64(2**63), "9223372036854775808 : ui64"),
        (np.array([1, 2]), "dense<[1, 2]> : tensor<2xi64>"),
        (np.array([[True], [False]]), "dense<[[true], [false]]> : tensor<2x1xi1>"),
        (np.array([], np.int32), "dense<> : tensor<0xi32>"),
        (np.array(3, np.uint16), "dense<3> : tensor<ui16>"),
        (np.array([1, -2], ml_dtypes.int4), "dense<[1, -2]> : tensor<2xi4>"),
        (np.array(3, ml_dtypes.uint2), "dense<3> : tensor<ui2>"),
        (np.zeros(2, dtypes.float0), "dense<[false, false]> : tensor<2xi1>"),
        ((1, 2), "[1, 2]"),
        ((1, "a"), '[1 : i64, "a"]'),
        ({"x": np.int32(1)}, "{x = 1 : i32}"),
    ],
)
def test_attributes_as_text(value: Any, text: str) -> None:
    call = ffi.ffi_call("somewhere", ShapeDtypeStruct((2,), "float32"))
    assert f"backend_config = {{v = {text}}}" in lines(lambda x: call(x, v=value), jnp.ones(2))


@pytest.mark.parametrize("value", [1.5, np.float32(0.1), np.float64(0.1), np.float32("nan"), np.float16(2)])
def test_numbers_are_written_exactly(value: Any) -> None:
    call = ffi.ffi_call("somewhere", ShapeDtypeStruct((2,), "float32"))
    text = lines(lambda x: call(x, v=value), jnp.ones(2)).partition("v = ")[2].partition(" : ")
    kind = text[2].partition("}")[0]
    assert kind == {"float": "f64", "float32": "f32", "float64": "f64", "float16": "f16"}[type(value).__name__]
    if text[0].startswith("0x"):
        assert np.isnan(np.array(int(text[0], 16), np.uint32).view(np.float32))
    else:
        assert type(value)(text[0]) == value


@pytest.mark.parametrize(
    ("dtype", "element"),
    [
        ("bfloat16", "bf16"), ("float4_e2m1fn", "f4E2M1FN"), ("float8_e3m4", "f8E3M4"), ("float8_e4m3", "f8E4M3"),
        ("float8_e4m3b11fnuz", "f8E4M3B11FNUZ"), ("float8_e4m3fn", "f8E4M3FN"), ("float8_e4m3fnuz", "f8E4M3FNUZ"),
        ("float8_e5m2", "f8E5M2"), ("float8_e5m2fnuz", "f8E5M2FNUZ"), ("float8_e8m0fnu", "f8E8M0FNU"),
    ],
)  # fmt: skip
def test_small_numbers_are_attributes(dtype: str, element: str) -> None:
    call = ffi.ffi_call("somewhere", ShapeDtypeStruct((2,), "float32"))
    attributes = {"v": np.ones((), dtype)[()], "w": np.array([1.0, 2.0], dtype)}
    module = jit(lambda x: call(x, **attributes)).lower(jnp.ones(2)).compiler_ir("stablehlo")
    (function,) = module.body.operations
    config = function.regions[0].blocks[0].operations[0].attributes["mhlo.backend_config"]
    assert str(config["v"]) == f"1.000000e+00 : {element}"
    assert str(config["w"]) == f"dense<[1.000000e+00, 2.000000e+00]> : tensor<2x{element}>"


def test_attributes_are_named_as_in_jax() -> None:
    """Tools that read programs find the attributes of the typed interface as ``mhlo.backend_config``."""
    call = ffi.ffi_call("somewhere", ShapeDtypeStruct((2,), "float32"))
    assert "mhlo.backend_config = {v = 1 : i64}" in lines(lambda x: call(x, v=1), jnp.ones(2))


def test_routines_of_lapack_are_registered() -> None:
    """A program that calls one compiles in a process that has used none."""
    code = """
        from pullback import ffi, jit
        call = ffi.ffi_call("lapack_sgetrf_ffi", (), has_side_effect=True)
        assert "lapack_sgetrf_ffi" in jit(lambda: call()).lower().compile().as_text()
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


def test_what_is_refused() -> None:
    out = ShapeDtypeStruct((2,), "float32")
    x = jnp.ones(2)
    for value in (None, 1j, object(), np.ones(2, complex), np.array(["a"])):
        with pytest.raises(TypeError, match="the attribute v must be a number"):
            ffi.ffi_call("somewhere", out)(x, v=value)
    with pytest.raises(errors.JaxRuntimeError, match="somewhere"):
        ffi.ffi_call("somewhere", out)(x)
    with pytest.raises(ValueError, match=r"has None as result 0, but it takes types with a shape and a dtype"):
        ffi.ffi_call("somewhere", None)
    with pytest.raises(ValueError, match=r"has \(\) as result 1"):
        ffi.ffi_call("somewhere", (out, ()))
    with pytest.raises(ValueError, match=r"vmap_method must be None or one of .* got 'all'"):
        ffi.ffi_call("somewhere", out, vmap_method="all")
    with pytest.raises(ValueError, match="names operand 0 and result 1"):
        ffi.ffi_call("somewhere", out, input_output_aliases={0: 1})(x)
    with pytest.raises(ValueError, match=r"operand 0 is f32\[3\] and result 0 is f32\[2\]"):
        ffi.ffi_call("somewhere", out, input_output_aliases={0: 0})(jnp.ones(3))
    with pytest.raises(ValueError, match="result 0 has 1 axes, which its layout must order"):
        ffi.ffi_call("somewhere", out, output_layouts=(0, 1))(x)
    with pytest.raises(ValueError, match="a layout for each operand, 1, got"):
        ffi.ffi_call("somewhere", out, input_layouts=[])(x)
    with pytest.raises(ValueError, match="lapack_spotrf_ffi' was differentiated"):
        grad(lambda a: factor(a)[0].sum())(A)
    with pytest.raises(ValueError, match="vmap_method is missing"):
        vmap(factor)(jnp.stack([A, A]))
    with pytest.raises(ValueError, match="only version 4 has attributes"):
        ffi.ffi_call("somewhere", out, custom_call_api_version=1)(x, v=1)
    with pytest.raises(ValueError, match="legacy_backend_config is for"):
        ffi.ffi_call("somewhere", out, legacy_backend_config="abc")
    with pytest.raises(ValueError, match="custom_call_api_version is 1 to 4"):
        ffi.ffi_call("somewhere", out, custom_call_api_version=7)
    with pytest.raises(TypeError, match="pycapsule takes a function"):
        ffi.pycapsule("text")
    with pytest.raises(TypeError, match="registering 'x'"):
        ffi.register_ffi_target("x", 3)


def test_the_older_interface_has_a_text() -> None:
    call = ffi.ffi_call(
        "old", ShapeDtypeStruct((2,), "float32"), custom_call_api_version=1, legacy_backend_config="a b"
    )
    text = lines(call, jnp.ones(2))
    assert 'backend_config = "a b"' in text
    assert "api_version = 1 : i32" in text


def test_a_rule_of_mlir_that_calls_a_routine() -> None:
    potrf_p = core.Primitive("potrf_of_mine")
    potrf_p.multiple_results = True
    potrf_p.def_abstract_eval(lambda a, *, uplo: [a, core.ShapedArray((), np.dtype("int32"))])
    mlir.register_lowering(
        potrf_p, ffi.ffi_lowering("lapack_spotrf_ffi", operand_output_aliases={0: 0}), platform="cpu"
    )
    out, info = jit(lambda a: potrf_p.bind(a, uplo=np.uint8(ord("U"))))(A)
    np.testing.assert_allclose(np.tril(out), [[2, 0], [1, 2]], rtol=1e-6)
    assert info == 0
    with pytest.raises(TypeError, match="unknown argument colour"):
        ffi.build_ffi_lowering_function("x", colour=1)


# A function of our own ------------------------------------------------------------------------------------------------

SOURCE = r"""
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;
static ffi::Error Scale(ffi::Buffer<ffi::F32> x, float by, ffi::Span<const int64_t> shift, std::string_view mode,
                        ffi::ResultBuffer<ffi::F32> y) {
  if (mode == "fail") return ffi::Error::InvalidArgument("was told to fail");
  for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = by * x.typed_data()[i] + shift[0];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(ScaleHandler, Scale, ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Attr<float>("by")
    .Attr<ffi::Span<const int64_t>>("shift").Attr<std::string_view>("mode").Ret<ffi::Buffer<ffi::F32>>());
"""


@pytest.fixture(scope="module")
def scale(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A function in C++ by the name ``pullback_test_scale``."""
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("there is no compiler for C++")
    here = tmp_path_factory.mktemp("ffi")
    (here / "scale.cc").write_text(SOURCE)
    library = Path(here / "scale.so")
    words = [compiler, "-O0", "-std=c++17", "-shared", "-fPIC", f"-I{ffi.include_dir()}", "-o", str(library)]
    subprocess.run([*words, str(here / "scale.cc")], check=True)
    loaded = ctypes.CDLL(str(library))
    ffi.register_ffi_target("pullback_test_scale", ffi.pycapsule(loaded.ScaleHandler), platform="cpu")
    ffi.register_ffi_target_as_batch_partitionable("pullback_test_scale")

    def call(x: Any, mode: str = "") -> Any:
        f = ffi.ffi_call("pullback_test_scale", ShapeDtypeStruct(x.shape, x.dtype), vmap_method="broadcast_all")
        return f(x, by=np.float32(2.5), shift=np.array([1]), mode=mode)

    call.loaded = loaded  # type: ignore[attr-defined]
    return call


@pytest.mark.slow
def test_a_function_that_was_compiled_here(scale: Any) -> None:
    x = jnp.arange(3.0)
    for way in (scale, jit(scale), vmap(scale), jit(vmap(scale))):
        np.testing.assert_array_equal(way(x), [1, 3.5, 6])
    with pytest.raises(errors.JaxRuntimeError, match="was told to fail"):
        pullback.block_until_ready(jit(lambda x: scale(x, "fail"))(x))
