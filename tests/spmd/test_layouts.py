"""Layouts and formats, and functions whose inputs or results are spread in JAX's words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import P, device_put, errors, grad, jit, lax, sharding, vmap
from pullback.experimental import multihost_utils
from pullback.experimental.layout import Format, Layout, with_layout_constraint
from pullback.experimental.pjit import pjit

MESH = pullback.make_mesh((1,), ("i",))
ROWS = sharding.NamedSharding(MESH, P("i"))


def test_the_format_of_an_array() -> None:
    x = jnp.ones((2, 3))
    assert x.format == Format(Layout((0, 1), ()), x.sharding)
    assert x.format.sharding == x.sharding
    assert hash(x.format) == hash(jnp.zeros((2, 3)).format)
    assert device_put(x, ROWS).format.sharding == ROWS
    assert jnp.float32(1).format.layout.major_to_minor == ()
    assert repr(Format(Layout.AUTO)) == "Format(layout=AUTO, sharding=None)"


@pytest.mark.parametrize("form", [Format(None, ROWS), Format(Layout((0, 1)), ROWS), Format(Layout.AUTO, ROWS)])
def test_formats_are_places(form: Format) -> None:
    x = jnp.arange(6.0).reshape(2, 3)
    assert device_put(x, form).sharding == ROWS
    assert device_put({"a": x}, {"a": form})["a"].sharding == ROWS
    f = jit(lambda x: 2 * x, in_shardings=form, out_shardings=form)
    assert f(x).sharding == ROWS
    np.testing.assert_array_equal(f(x), 2 * x)
    compiled = f.lower(x).compile()
    assert compiled.output_formats == Format(Layout((0, 1), ()), ROWS)
    assert compiled.input_formats == ((Format(Layout((0, 1), ()), ROWS),), {})


def test_a_format_without_a_sharding_asks_for_nothing() -> None:
    x = jnp.ones((2, 3))
    assert device_put(x, Format()).sharding == x.sharding
    np.testing.assert_array_equal(jit(lambda x: x + 1, in_shardings=Format(Layout.AUTO))(x), x + 1)


def test_other_layouts_are_refused() -> None:
    x = jnp.ones((2, 3))
    columns = Format(Layout((1, 0)), ROWS)
    for put in (lambda: device_put(x, columns), lambda: jit(lambda x: x, in_shardings=columns)(x)):
        with pytest.raises(errors.LayoutError, match=r"row-major order.*\(1, 0\)") as info:
            put()
        assert isinstance(info.value, (ValueError, NotImplementedError))
    with pytest.raises(ValueError, match="needs a sharding"):
        Format(Layout((0, 1)))
    with pytest.raises(ValueError, match="expected a Layout"):
        Format((0, 1))
    with pytest.raises(ValueError, match="expected a sharding"):
        Format(None, "i")


def test_constraints_on_layouts() -> None:
    x = jnp.ones((2, 3))
    f = jit(vmap(grad(lambda x: with_layout_constraint(jnp.sin(x), Layout((0,))).sum())))
    np.testing.assert_allclose(f(x), jnp.cos(x), rtol=1e-6)
    with pytest.raises(errors.LayoutError, match="does not fit an array"):
        with_layout_constraint(x, Layout((0,)))
    with pytest.raises(errors.LayoutError, match="row-major order"):
        jit(lambda x: with_layout_constraint(x, Layout((1, 0))))(x)


def test_functions_that_spread_what_leaves_or_enters() -> None:
    x = jnp.arange(4.0)
    seen: list[Any] = []
    with pullback.set_mesh(MESH):
        assert sharding.auto_axes(jnp.sin, out_sharding=P("i"))(x).sharding == ROWS
        assert sharding.auto_axes(axes="i")(jnp.sin)(x, out_sharding=ROWS).sharding == ROWS

        @sharding.explicit_axes(in_sharding=(P("i"), None))
        def f(x: Any, y: Any) -> Any:
            seen.append(getattr(x, "sharding", None))
            return x * y

        f(x, 2.0)
        np.testing.assert_allclose(jit(grad(lambda x: f(x, 2.0).sum()))(x), 2)
        g = jit(vmap(sharding.auto_axes(jnp.sin, out_sharding=P())))
        np.testing.assert_allclose(g(x), jnp.sin(x), rtol=1e-6)
        with pytest.raises(TypeError, match="pass out_sharding="):
            sharding.auto_axes(jnp.sin)(x)
        with pytest.raises(TypeError, match="pass in_sharding="):
            sharding.explicit_axes(jnp.sin)(x)
        with pytest.raises(ValueError, match=r"has the axes \('i',\), but axes='j' names 'j'"):
            sharding.auto_axes(jnp.sin, axes="j", out_sharding=P())(x)
    assert seen[0].spec == ROWS.spec
    assert seen[0].mesh.explicit_axes == ("i",)
    with pytest.raises(errors.MeshContextError, match="auto_axes needs a mesh"):
        sharding.auto_axes(jnp.sin, out_sharding=P())(x)


def test_pjit_is_jit_with_options_by_position() -> None:
    out = pjit(lambda x, n: x * n, (ROWS,), ROWS, 1)(jnp.ones(2), 3)
    assert out.sharding == ROWS
    np.testing.assert_array_equal(out, [3, 3])


def test_no_process_is_told_to_save() -> None:
    assert multihost_utils.reached_preemption_sync_point(3) is False
    with pytest.raises(TypeError, match="step_id must be an int"):
        multihost_utils.reached_preemption_sync_point("3")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("x", "name"),
    [
        (1, "int32"),
        (np.float64(1), "float32"),
        (True, "bool"),
        (1j, "complex64"),
        (float, "float32"),
        ("float64", "float32"),
        (np.dtype("int8"), "int8"),
        (jnp.bfloat16, "bfloat16"),
        (jnp.ones(2, jnp.bfloat16), "bfloat16"),
        (np.ones(2), "float32"),
    ],
)
def test_dtypes_of_values(x: Any, name: str) -> None:
    assert lax.dtype(x) == jnp.dtype(name)


def test_what_has_no_dtype() -> None:
    with pytest.raises(ValueError, match="got None"):
        lax.dtype(None)
    with pytest.raises(TypeError):
        lax.dtype([1])
    dtypes = [jit(lambda x: (lax.dtype(x), x)[1])(jnp.ones(1, "int16")).dtype]
    assert dtypes == ["int16"]


def test_the_format_of_a_description() -> None:
    form = Format(Layout((0, 1)), ROWS)
    struct = pullback.ShapeDtypeStruct((2, 3), "float32", sharding=form)
    assert (struct.sharding, struct.format) == (ROWS, form)
    assert struct.update(shape=(4, 3)).format == form
    assert struct.update(sharding=ROWS).format == Format(None, ROWS)
    assert pullback.ShapeDtypeStruct((2,), "float32", sharding=P("i")).format == Format()
    assert jit(lambda x: 2 * x).lower(struct).compile().input_formats[0][0].sharding == ROWS
    for layout, message in ((Layout.AUTO, "AUTO cannot be used"), (Layout((1, 0)), "stored in row-major order")):
        with pytest.raises(errors.LayoutError, match=message):
            pullback.ShapeDtypeStruct((2, 3), "float32", sharding=Format(layout, ROWS))
