"""Attributes of traces that libraries written for JAX read."""

import pullback.numpy as jnp
from pullback.core.trace import state


def test_a_trace_takes_values_as_they_are() -> None:
    """Quax asks for it on each result of a function that it ran, and Equinox compares the traces of tracers."""
    x = jnp.ones(2)
    assert state.trace.full_raise(x) is x
    assert state.trace.main is state.trace
