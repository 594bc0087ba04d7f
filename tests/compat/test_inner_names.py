"""The private names of JAX that libraries reach into."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
import traceback
import unittest
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import core, errors, interpreters, random
from pullback.compat.extras import __version_info__, legacy_prng_key, make_user_context, version
from pullback.compat.extras import core as served_core
from pullback.compat.extras import lax as served_lax
from pullback.compat.extras._src import (
    ad_util,
    api_util,
    compiler,
    dispatch,
    distributed,
    dtypes,
    earray,
    flatten_util,
    literals,
    source_info_util,
    traceback_util,
    tree_util,
    xla_bridge,
)
from pullback.compat.extras._src import core as private_core
from pullback.compat.extras._src import test_util as private_test_util
from pullback.compat.extras._src.lax import lax as private_lax
from pullback.compat.extras._src.lib import mlir as private_mlir
from pullback.compat.extras._src.numpy import util as private_numpy
from pullback.compat.extras._src.state import types as state_types
from pullback.compat.extras.experimental import colocated_python, hijax
from pullback.compat.extras.experimental import sparse as served_sparse
from pullback.compat.extras.experimental.sparse import bcoo, bcsr, coo, csr
from pullback.compat.extras.interpreters import batching as served_batching
from pullback.compat.extras.interpreters import xla as served_xla
from pullback.compat.serving import Served
from pullback.core import source
from pullback.core.array import operand_types
from pullback.core.runtime import runtime
from pullback.experimental import sparse
from pullback.extend import backend as served_backend
from pullback.extend import source_info_util as public_source_info
from pullback.extend.core import Primitive
from pullback.transforms.autodiff.vmap import vmappable


def test_versions() -> None:
    assert version.__version_info__ == __version_info__
    assert ".".join(map(str, __version_info__)) == version.__version__


def test_keys_of_integers_are_allowed() -> None:
    with legacy_prng_key("allow"):
        assert random.PRNGKey(0).shape == (2,)
    assert legacy_prng_key("allow")(random.PRNGKey)(0).shape == (2,)
    with pytest.raises(NotImplementedError, match="'error'"), legacy_prng_key("error"):
        pass


def test_core() -> None:
    keys = random.split(random.key(0), (2, 3))
    assert private_core.physical_aval(keys.aval).str_short() == "uint32[2,3,2]"
    assert private_core.physical_aval(core.get_aval(1.0)) == core.get_aval(1.0)
    assert private_core.trace_state_clean()
    assert not jax.jit(lambda x: x * private_core.trace_state_clean())(1)
    assert private_core.ShapedArray is core.ShapedArray
    assert private_core.mapped_aval is jax.extend.core.mapped_aval
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        private_core.nothing  # noqa: B018
    assert (served_core.max_dim(2, 3), served_core.min_dim(2, 3)) == (3, 2)


def test_rules_with_the_bindings_of_mlir() -> None:
    double_p = core.Primitive("double")
    double_p.def_abstract_eval(lambda x: core.ShapedArray(x.shape, x.dtype))
    interpreters.mlir.register_lowering(double_p, lambda ctx, x: [private_mlir.dialects.hlo.AddOp(x, x).result])
    assert private_lax.sub(jax.jit(double_p.bind)(2.0), 1.0) == 3
    assert private_mlir.ir is interpreters.mlir.ir
    assert {"chlo", "func", "hlo"} <= set(dir(private_mlir.dialects))


def test_meshes_of_tests() -> None:
    assert private_test_util.create_mesh((1, 1), ("x", "y")).shape_tuple == (("x", 1), ("y", 1))
    with pytest.raises(unittest.SkipTest, match="needs 64 devices"):
        private_test_util.create_mesh((8, 8), ("x", "y"))
    assert private_test_util.check_grads is jax.test_util.check_grads


def test_constants_within_programs() -> None:
    def f(x: Any) -> Any:
        with served_core.eval_context():
            size = int(jnp.ones(4).sum())
        return x[:size]

    assert jax.jit(f)(jnp.arange(9)).shape == (4,)
    with pytest.raises(RuntimeError), served_core.eval_context():
        raise RuntimeError
    assert jax.jit(lambda x: x + 1)(1) == 2


# Trees ---------------------------------------------------------------------------------------------------------------


class Node:
    pass


def test_the_table_of_nodes() -> None:
    registry = tree_util._registry
    assert all(kind in registry for kind in (dict, list, tuple, type(None)))
    assert Node not in registry
    assert 3 not in registry
    size = len(registry)
    jax.tree_util.register_pytree_node(Node, lambda x: ((), None), lambda aux, children: Node())
    assert Node in registry
    assert (len(registry), len(list(registry))) == (size + 1, size + 1)
    assert registry[Node].flatten(Node()) == ((), None)
    with pytest.raises(KeyError):
        registry[int]
    assert tree_util.flatten_one_level({"b": 1, "a": 2})[0] == [2, 1]
    with pytest.raises(ValueError, match="got a leaf"):
        tree_util.flatten_one_level(1)
    assert tree_util.tree_map is jax.tree_util.tree_map
    assert flatten_util.ravel_pytree([1.0, 2.0])[0].shape == (2,)


def test_modules_of_sparse_arrays() -> None:
    for module in (bcoo, bcsr, coo, csr):
        for name in module.__all__:
            assert getattr(module, name) is getattr(sparse, name)
    assert issubclass(served_sparse.CuSparseEfficiencyWarning, sparse.SparseEfficiencyWarning)


@pytest.mark.parametrize(
    ("prefix", "full", "messages"),
    [
        ((1, 2), ((11, 12), 2), []),
        ((None,), (None,), []),
        ((1, 2), [1, 2], ["different types at key path\n    in_axes"]),
        (((1,), (2,)), ([3], [4]), ["different types at key path\n    in_axes[0]", "    in_axes[1]"]),
        ((1,), (2, 3), ["different lengths of tuple at key path\n    in_axes"]),
        (
            {"a": 1},
            {"a": 2, "b": 3},
            [
                "different numbers of pytree children",
            ],
        ),
        ({"a": 1}, {"a": 2, "b": 3}, ["so the symmetric difference on key sets is\n    ['b']"]),
        ([{1: 2}], [{3: 4}], ["different pytree metadata at key path\n    in_axes[0]"]),
    ],
)
def test_errors_of_prefixes(prefix: Any, full: Any, messages: list[str]) -> None:
    found = [error("in_axes") for error in tree_util.prefix_errors(prefix, full)]
    assert len(found) == len(messages)
    for error, message in zip(found, messages, strict=True):
        assert isinstance(error, ValueError)
        assert message in str(error)
    assert tree_util.prefix_errors(prefix, full, is_leaf=lambda node: node is prefix) == []


# Lines of libraries --------------------------------------------------------------------------------------------------


def library(path: str) -> Any:
    """A function of a library at a path, that calls what it is given."""
    names: dict[str, Any] = {}
    exec(compile("def call(f, x):\n    return f(x)\n", path, "exec"), names)
    return names["call"]


def files(error: BaseException) -> list[str]:
    return [frame.filename for frame in traceback.extract_tb(error.__traceback__)]


def test_lines_of_libraries_are_left_out_of_tracebacks() -> None:
    call = library("/opt/layers/dense.py")

    def fail(x: Any) -> Any:
        raise ValueError("of the user's")

    def trace() -> list[str]:
        with pytest.raises(ValueError, match="of the user's") as caught:
            jax.jit(lambda x: call(fail, x))(1.0)
        return files(caught.value)

    assert "/opt/layers/dense.py" in trace()
    traceback_util.register_exclusion("/opt/layers")
    traceback_util.register_exclusion("/opt/layers")
    try:
        shown = trace()
        assert "/opt/layers/dense.py" not in shown
        assert shown[-1] == __file__
        frame = call(lambda x: inspect.currentframe().f_back, 1)  # type: ignore[union-attr]
        assert not traceback_util.include_frame(frame)
        assert traceback_util.include_frame(inspect.currentframe())  # type: ignore[arg-type]
    finally:
        traceback_util._exclude_paths.remove("/opt/layers")
    assert "/opt/layers/dense.py" in trace()
    assert not traceback_util.include_frame(SimpleFrame(source.__file__))  # type: ignore[arg-type]


class SimpleFrame:
    def __init__(self, file: str) -> None:
        self.f_code = self
        self.co_filename = file


def test_errors_leave_a_boundary_without_lines_of_ours() -> None:
    @traceback_util.api_boundary
    def f(x: Any) -> Any:
        return jnp.reshape(x, (2,))

    with pytest.raises(errors.ShapeError) as caught:
        f(jnp.ones(3))
    assert all(file == __file__ for file in files(caught.value))
    assert f(jnp.ones(2)).shape == (2,)


def test_operations_are_written_where_the_user_calls_a_library() -> None:
    call = library("/opt/other/dense.py")
    lines = lambda: jax.make_jaxpr(lambda x: call(jnp.sin, x))(1.0).eqns[0].source_info
    assert lines().file_name == "/opt/other/dense.py"
    public_source_info.register_exclusion("/opt/other/")
    try:
        info = lines()
        assert info.file_name == __file__
        assert source_info_util.summarize(info).startswith(f"{__file__}:{info.line} ")
    finally:
        source._excluded.remove("/opt/other/")
        source._is_internal.clear()
    with jax.named_scope("here"):
        assert source_info_util.current().name_stack == "here"
    assert source_info_util.current().file_name == __file__


# Types and arrays ----------------------------------------------------------------------------------------------------


def test_dtypes() -> None:
    assert [dtypes.supports_inf(d) for d in ("float16", "bfloat16", "float8_e5m2", "complex64")] == [True] * 4
    assert not any(dtypes.supports_inf(d) for d in ("float8_e4m3fn", "float8_e4m3fnuz", "int32", "bool"))
    assert dtypes.short_dtype_name("float32") == "f32"
    assert dtypes.dtype(jnp.int32(1)) == "int32"
    assert dtypes.issubdtype(random.key(0).dtype, dtypes.extended)
    assert isinstance(np.dtype("float32"), dtypes.DType)
    assert dtypes.finfo("float32").bits == 32
    with pytest.raises(dtypes.TypePromotionError), jax.numpy_dtype_promotion("strict"):
        jnp.int32(1) + jnp.float32(1)

    assert isinstance(random.key(0).dtype, dtypes.ExtendedDType)
    assert not isinstance(jnp.ones(1).dtype, dtypes.ExtendedDType)

    class Wrapper(dtypes.ExtendedDType):
        type = dtypes.extended

    with pytest.raises(TypeError):
        jnp.zeros(3, Wrapper())


def test_arrays_of_keys_from_their_words() -> None:
    keys = random.split(random.key(3), 4)
    made = earray.EArray(keys.aval, random.key_data(keys))
    np.testing.assert_array_equal(random.key_data(made), random.key_data(keys))
    assert not isinstance(jnp.ones(2), earray.EArray)
    with pytest.raises(NotImplementedError, match="only random keys"):
        earray.EArray(core.get_aval(1.0), 1.0)


def test_arrays_that_know_whether_they_are_weak() -> None:
    x = literals.TypedNdArray([1.0, 2.0], weak_type=True)
    assert isinstance(x, np.ndarray)
    assert (x.weak_type, x.aval.weak_type, (x * 2).weak_type, x.val.sum()) == (True, True, False, 3.0)
    np.testing.assert_allclose(jax.jit(jnp.sin)(x), np.sin([1.0, 2.0]), rtol=1e-6)
    assert literals.LiteralArray is literals.TypedNdArray


def test_types_of_references() -> None:
    aval = core.ShapedArray((3,), np.dtype("float32"))
    ref = state_types.AbstractRef(aval)
    assert isinstance(ref, core.AbstractValue)
    assert (ref.shape, ref.dtype, ref.inner_aval) == ((3,), "float32", aval)
    assert ref == state_types.AbstractRef(aval) != aval
    assert len({ref, state_types.AbstractRef(aval)}) == 1
    assert isinstance(jax.typeof(jax.new_ref(jnp.zeros(3))), state_types.AbstractRef), "libraries ask for this class"
    with pytest.raises(AttributeError, match="nothing"):
        ref.nothing  # noqa: B018


def test_zeros_and_arguments() -> None:
    assert ad_util.stop_gradient_p is jax.lax.stop_gradient_p
    assert ad_util.instantiate(ad_util.Zero(core.get_aval(1.0))) == 0
    infer = api_util.infer_argnums_and_argnames
    signature = inspect.signature(lambda x, y, *, z=1: x)
    assert infer(signature, 1, None) == ((1,), ("y",))
    assert infer(signature, None, "x") == ((0,), ("x",))
    assert infer(signature, None, ("z",)) == ((), ("z",))
    assert infer(signature, None, None) == ((), ())
    assert infer(signature, 0, "y") == ((0,), ("y",))
    with pytest.raises(errors.ArgumentError, match="not a position"):
        infer(signature, 5, None)


# The runtime ---------------------------------------------------------------------------------------------------------


def test_the_runtime() -> None:
    found: list[Any] = []
    jax.jit(lambda x: jax.debug.callback(lambda y: found.append(float(y)), x))(2.0)
    dispatch.wait_for_tokens()
    assert found == [2.0]
    assert xla_bridge._backends.keys() == xla_bridge.backends().keys() >= {"cpu"}
    assert xla_bridge.get_backend().platform == xla_bridge.get_backend("cpu").platform == "cpu"
    assert xla_bridge.backends_are_initialized()
    assert xla_bridge.process_index() == 0
    with pytest.raises(RuntimeError):
        xla_bridge.get_backend("quantum")
    state = distributed.global_state
    assert (state.client, state.process_id, state.num_processes, state.service) == (None, 0, 1, None)
    assert state.preemption_sync_manager is None


def test_compilation_can_be_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    served = Served("jax._src.compiler")
    served._sources = (compiler,)
    monkeypatch.setitem(sys.modules, "jax._src.compiler", served)
    told: list[str] = []
    monkeypatch.setattr(served, "backend_compile_and_load", lambda backend: told.append(backend.platform))
    jax.jit(lambda x: x * 3.14159 + 41)(1.0)
    assert told == ["cpu"]

    def refuse(backend: Any) -> None:
        raise RuntimeError(f"no programs for {backend.platform}")

    monkeypatch.setattr(served, "backend_compile_and_load", refuse)
    with pytest.raises(RuntimeError, match="no programs for cpu"):
        jax.jit(lambda x: x * 2.71828 + 43)(1.0)
    assert len([f for f in runtime.compiling if f is compiler._before_compiling]) == 1


# Types of users' own -------------------------------------------------------------------------------------------------


class Cell:
    def __init__(self, x: Any) -> None:
        self.x = x

    def cur_qdd(self) -> Any:
        return jax.typeof(self.x)


class CellType(hijax.MutableHiType):
    pass


class Get(hijax.HiPrimitive):
    def to_lojax(self, cell: Cell, *, times: int) -> Any:
        return cell.x * times


class Set(hijax.HiPrimitive):
    multiple_results = True

    def impl(self, cell: Cell, x: Any) -> list[Any]:  # type: ignore[override]
        cell.x = x
        return []


get_p, set_p = Get("get"), Set("set")


def test_operations_on_types_of_users_own() -> None:
    hijax.register_hitype(Cell, lambda x: CellType())

    def f(x: Any) -> Any:
        cell = Cell(x)
        assert set_p.bind(cell, jnp.sin(x)) == []
        return get_p.bind(cell, times=3)

    assert set_p.multiple_results
    np.testing.assert_allclose(f(1.0), 3 * np.sin(1), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.grad(f))(1.0), 3 * np.cos(1), rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(f)(jnp.arange(3.0)), 3 * np.sin(np.arange(3)), rtol=1e-6)
    out = jax.lax.scan(lambda c, x: (c + f(x), None), 0.0, jnp.arange(3.0))[0]
    np.testing.assert_allclose(out, 3 * np.sin(np.arange(3)).sum(), rtol=1e-6)
    cell = Cell(jnp.ones(2))
    assert isinstance(hijax.type_of(cell), CellType)
    assert hijax.type_of(1.0) == core.get_aval(1.0)
    assert hijax.cur_qdd(cell).shape == (2,)
    with pytest.raises(errors.ArgumentError, match="cur_qdd takes"):
        hijax.cur_qdd(1.0)
    with pytest.raises(NotImplementedError, match="has no method to_lojax"):
        hijax.HiPrimitive("nothing").bind(cell)
    with pytest.raises(errors.ArgumentError, match="takes a class and a function"):
        hijax.register_hitype(Cell, None)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        jax.jit(f)(cell)


@dataclass(frozen=True)
class Doubled:
    """An array, held as twice its value."""

    twice: Any


@dataclass(frozen=True)
class DoubledType(hijax.HiType):
    size: int

    def lo_ty(self) -> list[core.ShapedArray]:
        return [core.ShapedArray((self.size,), np.dtype("float32"))]

    def lower_val(self, hi_val: Any, /) -> list[Any]:
        return [hi_val.twice]

    def raise_val(self, *lo_vals: Any) -> Any:
        return Doubled(*lo_vals)

    def to_tangent_aval(self) -> DoubledType:
        return self


class ToDoubled(hijax.HiPrimitive):
    def abstract_eval(self, aval: Any) -> Any:  # type: ignore[override]
        return DoubledType(aval.shape[0]), set()

    def to_lojax(self, x: Any) -> Any:
        return Doubled(2 * x)

    def jvp(self, primals: Any, tangents: Any) -> Any:  # type: ignore[override]
        return to_doubled_p.bind(*primals), to_doubled_p.bind(*tangents)

    def transpose(self, ct: Any, x: Any) -> Any:  # type: ignore[override]
        assert hijax.is_undefined_primal(x)
        return [from_doubled_p.bind(ct, times=1)[0]]


class FromDoubled(hijax.HiPrimitive):
    multiple_results = True

    def abstract_eval(self, aval: Any, *, times: int) -> Any:  # type: ignore[override]
        return [core.ShapedArray((aval.size,), np.dtype("float32"))], set()

    def to_lojax(self, x: Any, *, times: int) -> Any:
        return [times * x.twice / 2]

    def jvp(self, primals: Any, tangents: Any, *, times: int) -> Any:  # type: ignore[override]
        return from_doubled_p.bind(*primals, times=times), from_doubled_p.bind(*tangents, times=times)

    def transpose(self, cts: Any, x: Any, *, times: int) -> Any:  # type: ignore[override]
        return [to_doubled_p.bind(times * cts[0])]


to_doubled_p, from_doubled_p = ToDoubled("to_doubled"), FromDoubled("from_doubled")


def test_operations_with_rules_are_equations() -> None:
    hijax.register_hitype(Doubled, lambda x: DoubledType(x.twice.shape[0]))

    def f(x: Any) -> Any:
        return from_doubled_p.bind(to_doubled_p.bind(x), times=3)[0]

    x = jnp.arange(3.0)
    assert [str(e.outvars[0].aval) for e in jax.make_jaxpr(f)(x).eqns] == ["DoubledType(size=3)", "float32[3]"]
    for g in (f, jax.jit(f)):
        np.testing.assert_array_equal(g(x), 3 * x)
        np.testing.assert_array_equal(jax.grad(lambda x: g(x).sum())(x), [3, 3, 3])  # noqa: B023
        np.testing.assert_array_equal(jax.jvp(g, (x,), (x,))[1], 3 * x)
    assert isinstance(jax.jit(to_doubled_p.bind)(x), Doubled)
    with pytest.raises(NotImplementedError, match="needs the method batch of ToDoubled"):
        jax.vmap(f)(x[None])


def test_small_things_of_hijax() -> None:
    effects = hijax.EffectTypeSet()
    effects.add_type(int)
    assert effects.filter_in([1, "x"]) == [1]
    assert effects.filter_not_in([1, "x"]) == ["x"]
    assert hijax.AvalQDD(1, 2).qdd == hijax.AvalMutableQDD(1, 2).mutable_qdd
    assert hijax.aval_method(len).fun is hijax.aval_property(len).fget


# Functions beside devices --------------------------------------------------------------------------------------------


def test_functions_beside_devices() -> None:
    @colocated_python.colocated_python
    def f(x: Any, *, by: int = 1) -> Any:
        return {"y": x + by}

    assert f.__name__ == "f"
    assert f(jnp.ones(2), by=2)["y"].sum() == 6
    here = jax.devices()[0]
    placed = f.specialize(devices=[here])(jnp.ones(2))
    assert placed["y"].devices() == {here}
    assert [g(jnp.ones(2))["y"].committed for g in (f, f.specialize(), f.specialize(devices=[here]))] == [0, 0, 1]
    assert f.specialize(devices=[here]).specialize()(jnp.ones(2))["y"].committed
    with pytest.raises(errors.TracerArrayConversionError, match="takes concrete arrays"):
        jax.jit(lambda x: f(x))(1.0)
    assert colocated_python.colocated_cpu_devices(jax.devices("cpu")) == jax.devices("cpu")
    mesh = jax.make_mesh((1,), ("x",))
    assert colocated_python.colocated_cpu_devices(mesh) == mesh


# Under the hook ------------------------------------------------------------------------------------------------------

PROGRAM = """
import pullback.compat
pullback.compat.install()
import jax, jax.core, jax.extend, jax.version, jax.lib
import jax._src.traceback_util, jax._src.dispatch, jax._src.compiler
from jax._src import api, core, dtypes, earray, sharding_impls
from jax._src.tree_util import _registry
from jax._src.interpreters import pxla
from jax._src.state.types import AbstractRef
from jax.interpreters import ad, batching, mlir, partial_eval, pxla, xla
from jax.extend import ifrt_programs, source_info_util
from jax.extend.core.primitives import call_p, closed_call_p, jit_p
from jax.experimental import colocated_python, hijax
from jax.experimental.colocated_python import func, serialization
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel, splash_attention_mask
from jax.extend.core import Effect, get_opaque_trace_state, mapped_aval, set_current_trace, take_current_trace
assert isinstance(jax.core.ShapedArray((), "float32"), jax.core.AbstractValue)
assert (api.vmap, api.GradRef) == (jax.vmap, jax.ad.GradRef) and not hasattr(api, "_infer_argnums_and_argnames")
assert sharding_impls.NamedSharding is jax.sharding.NamedSharding and jax.sharding.make_single_device_sharding
assert issubclass(hijax.MutableHiType, core.AbstractValue)
assert jax.experimental.cur_qdd and jax.experimental.EArray is earray.EArray
assert jax._src.xla_bridge._backends == {}, "nothing has been run"
assert ifrt_programs.ifrt_programs.make_hlo_program
serialization.DeviceList((jax.devices()[0],))

inner = jax._src.compiler.backend_compile_and_load
def refuse(backend, *args):
    raise RuntimeError("refused for " + backend.platform)
jax._src.compiler.backend_compile_and_load = refuse
try:
    jax.jit(lambda x: x * 3.5 + 17)(1.0)
except RuntimeError as error:
    print(error)
jax._src.compiler.backend_compile_and_load = inner
print(jax.jit(lambda x: x * 3.5 + 17)(1.0))
assert jax._src.xla_bridge._backends.keys() == {"cpu"}
x = jax.jit(lambda x: x + 1)(jax.numpy.ones(9))
x.copy_to_host_async()
assert x.sum() == 18
try:
    from jax._src.cudnn import fused_attention_stablehlo
except ImportError as error:
    print(type(error).__name__)
"""


@pytest.mark.slow
def test_names_under_the_hook(tmp_path: Any) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["refused for cpu", "20.5", "ModuleNotFoundError"]


class Variable:
    """A value of a library's own, which says by no method what array it stands for."""

    def __init__(self, value: Any) -> None:
        self.value = value


@pytest.fixture
def without_new_types() -> Any:
    before = dict(operand_types)
    yield
    operand_types.clear()
    operand_types.update(before)
    for table in (served_core.pytype_aval_mappings, served_xla.canonicalize_dtype_handlers):
        for kind in [kind for kind in table if kind.__module__ == __name__]:
            dict.pop(table, kind)


def test_types_of_operands_are_registered(without_new_types: None) -> None:
    """TensorFlow Probability takes NumPy's handlers for its variables."""
    aval_of = served_core.pytype_aval_mappings[np.ndarray]
    assert aval_of(np.float32([1, 2])) == core.get_aval(jnp.ones(2))
    assert served_xla.canonicalize_dtype_handlers[np.ndarray](np.ones(2)).dtype == "float32"
    with pytest.raises(TypeError, match="expected an array or a number"):
        jnp.sin(Variable(1.0))  # type: ignore[arg-type]
    served_xla.canonicalize_dtype_handlers[Variable] = lambda x: np.float32(x.value)
    served_core.pytype_aval_mappings[Variable] = aval_of
    x: Any = Variable(2.0)
    assert jnp.sin(x) == jnp.sin(2.0)
    assert jax.jit(lambda y: y * 2)(x) == 4.0
    assert jax.grad(lambda y: y * jnp.asarray(x))(3.0) == 2.0


def test_classes_that_are_mapped_in_their_own_way_are_refused() -> None:
    class Data(dict[str, Any]):
        pass

    jax.tree_util.register_pytree_node(Data, lambda d: (tuple(d.values()), tuple(d)), lambda k, v: Data(zip(k, v)))
    data = Data(a=jnp.ones(3))
    f = jax.vmap(lambda d: d["a"] + 1)
    assert f(data).shape == (3,)
    served_batching.register_vmappable(Data, int, int, lambda *x: x, lambda *x: x, None)
    try:
        with pytest.raises(errors.BatchAxisError, match=r"an object of type Data uses batching\.register_vmappable"):
            f([data])
        assert jax.vmap(lambda x: x + 1)(jnp.ones(3)).shape == (3,)
    finally:
        vmappable.remove(Data)


def test_the_runtimes_by_their_public_names() -> None:
    assert "cpu" in served_backend.backends()
    assert served_backend.get_backend().platform == "cpu"
    assert served_backend.get_default_device() in jax.devices()


def test_promotion_by_its_private_names() -> None:
    assert [x.dtype.name for x in private_numpy.promote_dtypes_complex(jnp.ones(2), 1)] == ["complex64", "complex64"]
    assert [x.dtype.name for x in private_numpy.promote_dtypes_inexact(jnp.int8(1), 2)] == ["float32", "float32"]
    assert [x.dtype.name for x in private_numpy.promote_dtypes(jnp.int8(1), 2)] == ["int8", "int8"]


def test_numbers_with_a_dtype() -> None:
    for kind, value, dtype in (
        (literals.TypedInt, 2, "int32"),
        (literals.TypedFloat, 2.5, "float32"),
        (literals.TypedComplex, 2j, "complex64"),
    ):
        x: Any = kind(value, np.dtype(dtype))
        assert x == value
        assert (x.dtype, x.aval.weak_type) == (dtype, True)
        again = pickle.loads(pickle.dumps(x))
        assert (again, again.dtype, type(again)) == (value, dtype, kind)
        assert repr(x) == f"{kind.__name__}({value!r}, dtype={dtype})"
        assert jnp.asarray(x) == value


def test_modules_that_are_imported_and_hold_little() -> None:
    code = (
        "import pullback.compat; pullback.compat.install(); import jax.lib, jaxlib, jax._src.pjit; "
        "from jax.experimental.pallas import triton; from jax.extend.backend import get_backend; "
        "assert jax.lib.__version__ == jaxlib.__version__; assert jax._src.pjit.jit_p.name == 'jit'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_tracers_with_a_known_value() -> None:
    """PennyLane asks this of each operand, to choose an interface."""
    seen: list[Any] = []

    def watch(x: Any) -> Any:
        seen.append((served_core.is_concrete(x), served_core.to_concrete_value(x)))
        return x * 2.0

    jax.grad(watch)(3.0)
    jax.jit(watch)(3.0)
    assert seen == [(True, 3.0), (False, None)]
    assert served_core.is_concrete(np.ones(2))
    assert jax.grad(lambda x: x * served_core.concrete_or_error(int, x))(3.0) == 3.0
    with pytest.raises(errors.ConcretizationTypeError, match="a conversion needs a concrete value"):
        jax.jit(lambda x: served_core.concrete_or_error(None, x))(3.0)


def test_a_users_context_is_part_of_the_key_of_compiled_functions() -> None:
    context, seen = make_user_context(1), []

    @jax.jit
    def f(x: Any) -> Any:
        seen.append(context.value)
        return context.value * x

    def values() -> list[float]:
        found = [float(f(1.0))]
        for value in (2, 3):
            with context(value):
                found.append(float(f(1.0)))
        return found

    assert values() == values() == [1, 2, 3]
    assert seen == [1, 2, 3]
    context.set_global(5)
    assert (float(f(1.0)), context.get_global(), context.value) == (5, 5, 5)
    with pytest.raises(TypeError, match="unhashable"), context([]):
        pass


@pytest.mark.parametrize("rule", ["jvp", "vjp", None])
def test_a_sink_keeps_equations_in_programs(rule: str | None) -> None:
    def f(x: Any) -> Any:
        served_lax.dce_sink({"y": jnp.cos(x)})
        return 2 * x

    def in_rule(x: Any) -> Any:
        served_lax.dce_sink(x)
        return f(x)

    g: Any = f
    if rule == "jvp":
        g = jax.custom_jvp(f)
        g.defjvp(lambda primals, tangents: (in_rule(*primals), 2 * tangents[0]))
    elif rule == "vjp":
        g = jax.custom_vjp(f)
        g.defvjp(lambda x: (in_rule(x), None), lambda _, ct: (2 * ct,))
    assert "cos" in str(jax.make_jaxpr(jax.jit(g))(1.0))
    assert "stablehlo.cosine" in jax.jit(f).lower(1.0).as_text()
    assert float(jax.jit(jax.grad(g))(3.0)) == float(jax.grad(g)(3.0)) == 2
    assert jax.vmap(g)(jnp.arange(2.0)).tolist() == jax.jit(jax.vmap(g))(jnp.arange(2.0)).tolist() == [0, 2]
    with pytest.raises(errors.UnsupportedArgumentError, match="prevent_mlir_dce"):
        served_lax.dce_sink(1.0, prevent_mlir_dce=True)


def test_an_operation_that_is_evaluated_by_compiling_it() -> None:
    twice_p = Primitive("twice")
    twice_p.def_abstract_eval(lambda x: x)
    twice_p.def_impl(lambda x: dispatch.apply_primitive(twice_p, x))
    twice_p.lowering(lambda hlo, x: hlo.elementwise("stablehlo.add", x, x))
    assert twice_p.bind(jnp.arange(3.0)).tolist() == [0, 2, 4]
