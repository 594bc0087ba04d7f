"""Functions within transformations, for libraries: ``extend.linear_util`` and ``api_util``."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import api_util, enable_x64, errors, grad, jit, make_jaxpr, tree, vmap
from pullback.extend import linear_util as lu


def product(x: Any, y: Any = 2) -> Any:
    return x * y


@lu.transformation
def shifted(by: Any, *args: Any) -> Any:
    out = yield tuple(x + by for x in args), {}
    yield 10 * out


@lu.transformation_with_aux
def counted(*args: Any) -> Any:
    out = yield args, {}
    yield out, len(args)


@lu.transformation2
def scaled(f: Any, factor: Any, *args: Any) -> Any:
    return factor * f(*args)


@lu.transformation_with_aux2
def measured(f: Any, store: Any, *args: Any) -> Any:
    out = f(*args)
    store.store(("seen", out))
    return out


def test_transformations_nest_the_last_one_outermost() -> None:
    fun = lu.wrap_init(product)
    assert fun.call_wrapped(3) == 6
    assert lu.wrap_init(product, {"y": 5}).call_wrapped(3) == 15
    assert shifted(fun, 1).call_wrapped(3) == 80
    assert scaled(shifted(fun, 1), 2).call_wrapped(3) == 160
    assert shifted(scaled(fun, 2), 1).call_wrapped(3, 4) == 400
    assert fun.wrap(lambda f, x: f(x) + 1, (), None).call_wrapped(3) == 7
    assert scaled(fun, 2).__name__ == "product"
    assert repr(scaled(fun, 2)) == "WrappedFun(scaled(2,) of product)"


def test_what_a_transformation_finds_out() -> None:
    both, count = counted(lu.wrap_init(product))
    with pytest.raises(lu.StoreException, match="is empty"):
        count()
    assert (both.call_wrapped(3, 4), count()) == (12, 2)
    with pytest.raises(lu.StoreException, match="already has a value"):
        both.call_wrapped(3, 4)
    fun, seen = measured(lu.wrap_init(product))
    assert (fun.call_wrapped(3), seen()) == (6, ("seen", 6))
    again, seen = lu.transformation_with_aux2(
        lambda f, store, x: store.store(f(x)), lu.wrap_init(abs), use_eq_store=True
    )
    again.call_wrapped(-1)
    again.call_wrapped(1)
    assert seen() == 1
    with pytest.raises(lu.StoreException, match="already has 1 and cannot store 2"):
        again.call_wrapped(2)


def test_functions_are_equal_if_their_transformations_are() -> None:
    fun = lu.wrap_init(product)
    assert fun == lu.wrap_init(product)
    assert hash(shifted(fun, 1)) == hash(shifted(lu.wrap_init(product), 1))
    assert shifted(fun, 1) == shifted(fun, 1)
    assert shifted(fun, 1) != shifted(fun, 2)
    assert shifted(fun, 1) != scaled(fun, 1)
    assert fun != lu.wrap_init(product, {"y": 2})
    assert lu.annotate(fun, ("f32",)) != fun
    assert lu.annotate(fun, None) is fun


def test_merged_stores() -> None:
    full, empty = lu.Store(), lu.Store()
    full.store(3)
    assert lu.merge_linear_aux(lambda: full.val, lambda: empty.val) == (True, 3)
    assert lu.merge_linear_aux(lambda: empty.val, lambda: full.val) == (False, 3)
    for store, message in ((full, "both are"), (empty, "neither is")):
        with pytest.raises(errors.StoreException, match=message):
            lu.merge_linear_aux(lambda store=store: store.val, lambda store=store: store.val)


def test_a_memory_of_functions_fills_the_stores_of_equal_ones() -> None:
    runs = []

    @lu.cache
    def run(fun: Any, x: Any) -> Any:
        runs.append(x)
        return fun.call_wrapped(x)

    for _ in range(2):
        fun, seen = measured(lu.wrap_init(product))
        assert (run(fun, 3), seen()) == (6, ("seen", 6))
    assert runs == [3]
    run(measured(lu.wrap_init(product))[0], 4)
    run(lu.wrap_init(product), 3)
    assert runs == [3, 4, 3]
    with enable_x64():
        run(lu.wrap_init(product), 3)
    assert len(runs) == 4
    run.evict_function(product)
    run(lu.wrap_init(product), 3)
    run.cache_clear()
    run(lu.wrap_init(product), 3)
    assert len(runs) == 6

    def local(x: Any) -> Any:
        return x

    alive = weakref.ref(local)
    run(lu.wrap_init(local), 1)
    del local
    gc.collect()
    assert alive() is None


def test_flat_functions_under_transformations() -> None:
    leaves, in_tree = tree.flatten((({"w": 2.0, "b": 1.0}, jnp.arange(3.0)), {"k": 3.0}))
    flat, out_tree = api_util.flatten_fun(lu.wrap_init(lambda p, x, k: {"y": p["w"] * x + p["b"], "k": k}), in_tree)
    outs = jit(lambda *xs: flat.call_wrapped(*xs))(*leaves)
    out = tree.unflatten(out_tree(), outs)
    np.testing.assert_allclose(out["y"], [1, 3, 5])
    assert out["k"] == 3

    def f(x: Any) -> Any:
        leaves, in_tree = tree.flatten(((x, {"a": 2 * x}),))
        flat, out_tree = api_util.flatten_fun_nokwargs(lu.wrap_init(lambda t: t[0] * t[1]["a"]), in_tree)
        (out,) = flat.call_wrapped(*leaves)
        return tree.unflatten(out_tree(), [out])

    np.testing.assert_allclose(vmap(grad(f))(jnp.arange(3.0)), [0, 4, 8])
    assert len(make_jaxpr(f)(1.0).eqns) == 2


def test_arguments_that_are_fixed() -> None:
    fun = lu.wrap_init(lambda x, y, z=0: 100 * x + 10 * y + z)
    one, args = api_util.argnums_partial(fun, 1, (3, 4))
    assert args == (4,)
    assert one.call_wrapped(7, z=5) == 375
    two, args = api_util.argnums_partial(fun, (-1, 0), (3, 4))
    assert args == (4, 3)
    assert two.call_wrapped(*args) == 340
    assert api_util.argnums_partial(fun, 1, (3, 4))[0] == api_util.argnums_partial(fun, 1, (3, 5))[0]
    assert api_util.argnums_partial(fun, 1, (3, 4))[0] != api_util.argnums_partial(fun, 1, (4, 4))[0]
    with pytest.raises(ValueError, match="no argument at position 2"):
        api_util.argnums_partial(fun, 2, (3, 4))
    with pytest.raises(ValueError, match=r"static argument \[3\] of type list, at position 0"):
        api_util.argnums_partial(fun, 1, ([3], 4))
    g = lu.wrap_init(lambda x, y: (x, y))
    loose, args = api_util.argnums_partial(g, 1, ([3], 4), require_static_args_hashable=False)
    assert loose.call_wrapped(*args) == ([3], 4)
    assert loose != api_util.argnums_partial(g, 1, ([3], 4), require_static_args_hashable=False)[0]


def test_donated_leaves() -> None:
    in_tree = tree.structure(((1, (2, 3), 4), {"a": 5, "b": (1, 2), "c": {}}))
    assert api_util.donation_vector((0, 2), (), in_tree) == (True, False, False, True, False, False, False)
    assert api_util.donation_vector((1,), ("b", "c"), in_tree) == (False, True, True, False, False, True, True)
    assert api_util.donation_vector((0,), (), tree.structure((1, (2, 3))), kws=False) == (True, False, False, False)
    assert api_util.rebase_donate_argnums((0, 3, 5), (1, 4)) == (0, 2, 3)
    with pytest.raises(ValueError, match=r"those at positions \[1\] are both"):
        api_util.rebase_donate_argnums((0, 1), (1, 2))


def test_axes_of_leaves() -> None:
    treedef = tree.structure((1, (2, 3), {"a": 4}))
    assert api_util.flatten_axes("in_axes", treedef, (0, None, {"a": 1})) == [0, None, None, 1]
    assert api_util.flatten_axes("in_axes", treedef, 2) == [2, 2, 2, 2]
    assert api_util.flatten_axes("in_axes", tree.structure(((1, 2), {"k": 3})), (1, None), kws=True) == [1, None, 0]
    with pytest.raises(ValueError, match=r"in_axes=\(0, 1\) must be a prefix") as info:
        api_util.flatten_axes("in_axes", treedef, (0, 1))
    assert "Put it" not in str(info.value)
    with pytest.raises(ValueError, match="Put it into a tuple"):
        api_util.flatten_axes("in_axes", treedef, (0, 1), tupled_args=True)


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (1, "ShapedArray(int32[], weak_type=True)"),
        (True, "ShapedArray(bool[])"),
        (np.float64(2), "ShapedArray(float32[])"),
        (np.ones(3, np.int64), "ShapedArray(int32[3])"),
        (pullback.ShapeDtypeStruct((2,), "int8"), "ShapedArray(int8[2])"),
    ],
)
def test_types_of_values(x: Any, text: str) -> None:
    assert repr(api_util.shaped_abstractify(x)) == text


def test_what_has_no_type() -> None:
    for x in ("a", [1], None):
        with pytest.raises(TypeError):
            api_util.shaped_abstractify(x)


def test_safe_map() -> None:
    assert api_util.safe_map(lambda a, b: a + b, [1, 2], iter([3, 4])) == [4, 6]
    with pytest.raises(ValueError, match=r"one length, got lengths \[2, 1\]"):
        api_util.safe_map(max, [1, 2], [3])
    with pytest.raises(TypeError, match="at least one sequence"):
        api_util.safe_map(max)


def test_debug_info_names_the_leaves() -> None:
    info = api_util.debug_info("jit", product, ((1, {"z": 2}),), {"y": 2})
    assert info.arg_names == ("x[0]", "x[1]['z']", "y")  # as JAX names them
    assert (info.traced_for, info.func_name, info.func_filename) == ("jit", "product", __file__)
    assert info.func_lineno == product.__code__.co_firstlineno
    assert api_util.debug_info("jit", product, (1, 2), {}, static_argnums=(1,)).arg_names == ("x",)
    assert api_util.debug_info("jit", product, (1, 2), {}, static_argnames=("x",)).arg_names == ("y",)
    assert api_util.debug_info("jit", lambda *xs: 0, (1, 2), {}).arg_names == ("xs[0]", "xs[1]")
    assert api_util.debug_info("jit", max, (1, 2), {}).arg_names == ("args[0]", "args[1]")
    assert lu.wrap_init(product, debug_info=info).debug_info is info
