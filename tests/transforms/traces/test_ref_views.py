"""Views of references: what they read and write, and where they may be passed."""

import numpy as np
import pytest

import pullback
import pullback.numpy as pnp
from pullback import checkpoint, jit, lax, new_ref, vmap


@pytest.mark.parametrize("transform", [lambda f: f, jit])
def test_a_view_reads_and_writes_some_elements(transform) -> None:
    ref = new_ref(pnp.zeros((3, 4)))
    view = ref.at[1:, 1]

    def change(x):
        view[...] = x
        view[0] = 7.0
        view.at[1][...] += 1.0
        before = view.swap(view.get() * 2)
        view.set(view[...] + 1)
        return before, ref[...]

    before, content = transform(change)(pnp.ones(2))
    assert before.tolist() == [7, 2]
    assert content.tolist() == ref[...].tolist() == [[0] * 4, [0, 15, 0, 0], [0, 5, 0, 0]]
    assert (view.shape, view.dtype, view.ndim, view.size) == ((2,), pnp.float32, 1, 2)
    assert repr(view).endswith(".at[(slice(1, None, None), 1)]")


def test_a_view_takes_what_fits() -> None:
    with pytest.raises(ValueError, match="shape"):
        new_ref(pnp.zeros(4)).at[1:3][...] = pnp.ones(3)


@pytest.mark.parametrize(
    "transform", [jit, checkpoint, lambda f: lambda v: lax.cond(True, f, f, v), lambda f: lambda v: jit(jit(f))(v)]
)
def test_a_view_is_an_argument(transform) -> None:
    ref = new_ref(pnp.zeros((3, 4)))
    rows = np.array([0, 2])

    def change(view):
        view[...] += pnp.ones(2)
        view[0] += 1.0
        return view[...]

    assert transform(change)(ref.at[1, 1:3]).tolist() == [2, 1]
    assert transform(change)(ref.at[rows].at[:, 0]).tolist() == [2, 1]
    assert ref[...].tolist() == [[2, 0, 0, 0], [0, 2, 1, 0], [1, 0, 0, 0]]


def test_vmap_refuses_a_view() -> None:
    with pytest.raises(TypeError, match="view of a reference cannot be mapped"):
        vmap(lambda view: view[...])(new_ref(pnp.zeros((2, 3))).at[1])


def test_functions_of_references_take_views() -> None:
    x = new_ref(pnp.zeros(4))
    view = x.at[np.array([1, 1])]
    pullback.ref.addupdate(view, ..., pnp.ones(2))  # both are added: the index selects an element twice
    pullback.ref.addupdate(view, 0, 3.0)
    assert x[...].tolist() == [0, 5, 0, 0]
    assert float(pullback.ref.swap(x.at[1:], 0, 7.0)) == 5
    pullback.ref.set(x.at[2:], 1, 8.0)
    assert pullback.ref.get(x.at[1:], slice(0, 3)).tolist() == [7, 0, 8]


def test_the_index_of_a_mapped_reference_is_an_array() -> None:
    index = np.array([[0, 1]])
    x = np.arange(24.0).reshape(2, 3, 4)
    assert vmap(lambda r: r[index, index], 1)(new_ref(x)).tolist() == x[index, :, index].transpose(2, 0, 1).tolist()
