"""Private helpers of JAX that libraries build their own functions of, by what JAX 0.10.2 returns for the same calls."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import errors
from pullback.compat.extras.extend.core import register_call_primitive_rules
from pullback.compat.extras.interpreters import partial_eval as pe
from pullback.compat.extras.interpreters import pxla
from pullback.extend.core import Primitive

# Most of their names are looked up when they are asked for, which type checkers do not see.
ad_checkpoint: Any = importlib.import_module("pullback.compat.extras._src.ad_checkpoint")
api: Any = importlib.import_module("pullback.compat.extras._src.api")
api_util: Any = importlib.import_module("pullback.compat.extras._src.api_util")
array: Any = importlib.import_module("pullback.compat.extras._src.array")
batching: Any = importlib.import_module("pullback.compat.extras._src.interpreters.batching")
control_flow: Any = importlib.import_module("pullback.compat.extras._src.lax.control_flow")
dispatch: Any = importlib.import_module("pullback.compat.extras._src.dispatch")
dtypes: Any = importlib.import_module("pullback.compat.extras._src.dtypes")
effects: Any = importlib.import_module("pullback.compat.extras._src.effects")
functions: Any = importlib.import_module("pullback.compat.extras._src.nn.functions")
impls: Any = importlib.import_module("pullback.compat.extras._src.sharding_impls")
initializers: Any = importlib.import_module("pullback.compat.extras._src.nn.initializers")
lax_numpy: Any = importlib.import_module("pullback.compat.extras._src.numpy.lax_numpy")
lib: Any = importlib.import_module("pullback.compat.extras._src.lib")
lines: Any = importlib.import_module("pullback.compat.extras._src.source_info_util")
loops: Any = importlib.import_module("pullback.compat.extras._src.lax.control_flow.loops")
numpy_util: Any = importlib.import_module("pullback.compat.extras._src.numpy.util")
parts: Any = importlib.import_module("pullback.compat.extras._src.numpy.vectorize")
pjit: Any = importlib.import_module("pullback.compat.extras._src.pjit")
private_core: Any = importlib.import_module("pullback.compat.extras._src.core")
scale: Any = importlib.import_module("pullback.compat.extras._src.image.scale")
special: Any = importlib.import_module("pullback.compat.extras._src.scipy.special")
util: Any = importlib.import_module("pullback.compat.extras._src.util")


def test_a_jacobian_of_the_parts() -> None:
    def f(x: Any) -> Any:
        return {"a": x[0] * x[1], "b": x[1].sum()}

    x = (jnp.float32(3), jnp.arange(2.0))
    y, pushed = api._jvp(f, (x,), (x,))
    assert float(pushed["a"][1]) == 6
    basis = api._std_basis(x)
    assert [b.shape for b in basis] == [(3,), (3, 2)]
    jac = jax.vmap(lambda t: jax.jvp(f, (x,), (t,))[1], out_axes=-1)(basis)
    forward = jax.tree.map(lambda leaf, j: api._jacfwd_unravel(x, leaf, j), y, jac)
    _, pullback = api._vjp(f, x)
    back = jax.vmap(pullback)(api._std_basis(y))[0]
    backward = jax.tree.map(lambda leaf, j: api._jacrev_unravel(y, leaf, j), x, back)
    expected = jax.jacfwd(f)(x)
    jax.tree.map(np.testing.assert_array_equal, forward, expected)
    np.testing.assert_array_equal(backward[1]["a"], expected["a"][1])


def test_dtypes_that_jacobians_refuse() -> None:
    api._check_input_dtype_jacfwd(False, 1.0)
    api._check_input_dtype_jacrev(False, True, 1)
    api._check_output_dtype_jacfwd(True, 1j)
    for check in (
        lambda: api._check_input_dtype_jacfwd(False, 1j),
        lambda: api._check_output_dtype_jacfwd(False, 1),
        lambda: api._check_input_dtype_jacrev(False, False, 1),
        lambda: api._check_output_dtype_jacrev(True, 1.0),
    ):
        with pytest.raises(TypeError, match="jac"):
            check()


def test_batches_and_what_is_left_over() -> None:
    batches, rest = loops._batch_and_remainder({"x": jnp.arange(4)}, 2)
    assert batches["x"].shape == (2, 2)
    assert rest is None
    assert loops._batch_and_remainder(jnp.arange(1), 2)[0] is None
    with pytest.raises(errors.ArgumentError, match="one size"):
        loops._batch_and_remainder((jnp.arange(1), jnp.arange(2)), 2)
    assert control_flow.scan_p is jax.lax.scan_p
    assert control_flow.loops is loops


def test_signatures_of_vectorize() -> None:
    ins, outs = parts._parse_gufunc_signature("(n),(n)->()")
    f, args, _ = parts._apply_excluded(lambda a, b, c: a * (b * c).sum(), {0}, (2, jnp.ones(3), jnp.ones((4, 3))), {})
    loop, sizes = parts._parse_input_dimensions(tuple(args), ins)
    assert (loop, sizes) == ((4,), {"n": 3})
    checked = parts._check_output_dims(f, sizes, outs)
    assert float(checked(jnp.ones(3), jnp.ones(3))) == 6
    with pytest.raises(errors.ShapeError, match="do not fit"):
        parts._check_output_dims(lambda x: x, sizes, outs)(jnp.ones(3))
    with pytest.raises(errors.ShapeError, match="sizes 3 and 2"):
        parts._parse_input_dimensions((jnp.ones(3), jnp.ones(2)), ins)


def test_arguments() -> None:
    assert api_util._ensure_index((np.int32(1), 2)) == (1, 2)
    for wrong in (3, (x for x in "a")):
        with pytest.raises(TypeError, match="expected a function"):
            api_util.check_callable(wrong)
    assert private_core.canonicalize_shape(3) == (3,)
    with pytest.raises(errors.ShapeError, match="negative"):
        private_core.canonicalize_shape((-1,))
    assert util.canonicalize_axis(np.int8(-2), 3) == 1
    with pytest.raises(errors.ShapeError):
        util.canonicalize_axis(3, 3)
    wrapped = util.wraps(len, docstr="{fun}: {more} {doc}", more="and")(lambda x: 1)
    assert wrapped.__name__ == "len"
    assert (wrapped.__doc__ or "").startswith("len: and Return")
    with pytest.raises(TypeError, match="f: expected an array"):
        numpy_util.check_arraylike("f", 1, [2])


def test_shardings() -> None:
    mesh = jax.make_mesh((1,), ("x",))
    spec = jax.sharding.PartitionSpec("x")
    found = impls.canonicalize_sharding(jax.sharding.NamedSharding(mesh, spec), "f")
    assert found is not None
    assert (found.mesh, found.spec) == (mesh.abstract_mesh, spec)
    with pytest.raises(errors.ArgumentError, match="no mesh is set"):
        impls.canonicalize_sharding(spec, "f")
    with pytest.raises(errors.ArgumentError, match="f takes a NamedSharding"):
        impls.canonicalize_sharding(3, "f")
    with jax.set_mesh(mesh):
        assert impls.canonicalize_sharding(spec, "f") == found
        assert pxla.thread_resources.env.physical_mesh == mesh
    assert jax.jit(lambda x: x + 1, in_shardings=impls.UNSPECIFIED)(1) == 2
    assert isinstance(pjit.UNSPECIFIED, impls.UnspecifiedValue)


def test_examples_of_batches() -> None:
    def f(x: Any) -> Any:
        assert isinstance(x, batching.BatchTracer)
        assert x.batch_dim == 1
        y = batching.to_elt(x._trace, None, jnp.arange(6).reshape(3, 2), -1)
        assert batching.to_elt(x._trace, None, x, None) is x
        return x + y

    out = jax.vmap(f, in_axes=1)(jnp.zeros((3, 2)))
    np.testing.assert_array_equal(out, [[0, 2, 4], [1, 3, 5]])
    assert batching.make_iota(2).tolist() == [0, 1]


def test_lines() -> None:
    info = lines.current()

    def f(x: Any) -> Any:
        with lines.user_context(info.traceback):
            return x + 1

    eqn = jax.make_jaxpr(f)(1.0).eqns[0]
    frame = lines.user_frame(eqn.source_info)
    assert frame is not None
    assert (frame.file_name, frame.start_line) == (__file__, info.line)
    assert lines.user_frame(lines.new_source_info()) is None


def test_calls_of_users() -> None:
    twice_p = Primitive("twice")
    register_call_primitive_rules(twice_p)
    assert twice_p.call_primitive
    assert [pjit.jit_p.call_primitive, jax.lax.sin_p.map_primitive] == [False, False]  # type: ignore[attr-defined]
    program = jax.make_jaxpr(lambda x: 2 * x)(1.0).jaxpr
    call = lambda x: twice_p.bind(x, call_jaxpr=program)[0]
    assert float(jax.jit(call)(3.0)) == float(call(3.0)) == 6
    assert jax.vmap(call)(jnp.arange(2.0)).tolist() == [0, 2]


def test_dead_code_of_users() -> None:
    pair_p = Primitive("pair")
    pair_p.multiple_results = True
    pair_p.def_abstract_eval(lambda *avals: list(avals))
    assert pair_p not in pe.dce_rules

    def rule(used: list[bool], eqn: Any) -> Any:
        keep = lambda xs: [x for x, u in zip(xs, used, strict=True) if u]
        return used, eqn.replace(invars=keep(eqn.invars), outvars=keep(eqn.outvars))

    pe.dce_rules[pair_p] = rule
    jaxpr = jax.make_jaxpr(lambda x, y: pair_p.bind(x, y))(1.0, 2).jaxpr
    smaller, used = jax.interpreters.partial_eval.dce_jaxpr(jaxpr, [False, True])
    assert used == [False, True]
    assert len(smaller.eqns[0].outvars) == 1
    assert pe.dce_rules[pair_p] is rule
    of_jit = pe.dce_rules[pjit.jit_p]
    eqn = jax.make_jaxpr(jax.jit(lambda x, y: (x, y + 1)))(1.0, 2).eqns[0]
    needed, _ = of_jit([True] * len(eqn.outvars), eqn)
    assert len(needed) == len(eqn.invars)
    with pytest.raises(errors.ArgumentError, match="1 constants"):
        pe.close_jaxpr(jax.make_jaxpr(lambda x: x + np.ones(2, "f"))(1.0).jaxpr)


def test_names_of_public_modules() -> None:
    assert array.ArrayImpl is type(jnp.ones(1))
    assert ad_checkpoint.remat_p is jax.extend.core.primitives.remat_p
    assert functions.glu is jax.nn.glu
    assert initializers.zeros is jax.nn.initializers.zeros
    assert special.gammaln is jax.scipy.special.gammaln
    assert lax_numpy.sin is jnp.sin
    assert importlib.import_module("pullback.compat.extras._src.random").Shape == tuple[int, ...]
    assert isinstance(jax.jit(abs), lib._jax.PjitFunction)
    assert lib.jaxlib_extension_version > 300
    assert float(scale._kernels[scale.ResizeMethod.LINEAR](jnp.float32(-0.25))) == 0.75
    assert dtypes.to_complex_dtype("float32") == np.complex64
    assert dispatch.apply_primitive(jax.lax.neg_p, 2.0) == -2
    dispatch.runtime_tokens.clear()
    dispatch.runtime_tokens.block_until_ready()
    assert private_core.full_lower(1) == private_core.get_referent(1) == 1

    class Mark(effects.Effect):
        pass

    effects.lowerable_effects.add_type(Mark)
    assert effects.lowerable_effects.contains(Mark())
    assert not effects.remat_allowed_effects.contains(Mark())
