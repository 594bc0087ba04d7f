"""Programs with odd names and sizes: none ends the process."""

import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback import lax
from pullback.core.errors import AllocationError


@pytest.mark.parametrize(
    "large",
    [
        lambda x: jnp.broadcast_to(x, (1 << 33, 1 << 33)).sum(),
        lambda x: jnp.broadcast_to(x, (1 << 31, 1 << 31, 8))[0, 0],
        lambda x: jnp.broadcast_to(x, (1 << 62,)),
        lambda x: lax.iota(jnp.int32, 1 << 61)[3],
    ],
)
def test_shapes_whose_bytes_cannot_be_counted_are_refused(large):
    with pytest.raises(AllocationError, match=r"no memory for an array of shape .* in a compiled program"):
        pb.jit(large)(1.0)


@pytest.mark.parametrize("name", ["\ud800", "a\0b", 'é\n"quoted"\\', "x" * 5000])
def test_names_that_are_no_identifiers(name):
    def f(x):
        with pb.named_scope(name):
            return jnp.sin(x) + 1

    f.__name__ = name
    assert pb.jit(f)(0.0) == 1.0
