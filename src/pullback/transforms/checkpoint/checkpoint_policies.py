"""Policies of ``checkpoint``, which select the values to save for the backward pass; and names of values for them.

A policy is a function ``policy(primitive, *avals, **params) -> bool`` of an operation, the types of its operands and
its parameters: whether the results may be saved. It may also answer with an ``Offloadable``, to save them in another
memory. The backward pass recomputes the values that it needs and that were
not saved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from pullback.backends.devices.devices import Space
from pullback.core import tree
from pullback.core.arguments import is_listed
from pullback.core.array import Array, as_array
from pullback.core.errors import ArgumentError, OperandError
from pullback.core.jaxpr import Eqn, Var
from pullback.core.trace import Primitive
from pullback.core.traits import Cost, cost
from pullback.core.types import ShapedArray
from pullback.primitives.linalg.contraction import dot_general_p  # noqa: F401  # the examples ask about it
from pullback.primitives.rules import axis_divided, stays
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.programs.placement import device_put_p

T = TypeVar("T")

Policy = Callable[..., Any]

# Names ---------------------------------------------------------------------------------------------------------------

name_p = Primitive("name", cost=Cost.SIMPLE, passes_nan=True, keeps_elements=True)
name_p.host(lambda x, *, name: x)
axis_divided(name_p)(stays)


name_p.abstract_eval(lambda x, *, name: ShapedArray(x.shape, x.dtype))
name_p.jvp(lambda primals, tangents, *, name: (name_p.bind(primals[0], name=name), tangents[0]))
name_p.batch(lambda axis, args, dims, *, name: (name_p.bind(args[0], name=name), dims[0]))
name_p.lowering(lambda hlo, x, *, name: x)


@api_boundary
def checkpoint_name(x: T, name: str) -> T:
    """Name values for the policies of ``checkpoint``.

    Args:
      x: a tree of arrays.
      name: the name; several values may have the same name.

    Returns:
      The same tree of arrays.

    Raises:
      ArgumentError: the name is no string (a TypeError and ValueError).
      OperandError: a leaf is no array (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import checkpoint, checkpoint_policies, grad
    >>> from pullback.ad_checkpoint import checkpoint_name
    >>> f = lambda x: jnp.sin(checkpoint_name(jnp.exp(x), "power"))
    >>> print(grad(checkpoint(f, policy=checkpoint_policies.save_only_these_names("power")))(0.0))
    0.5403023
    """
    if not isinstance(name, str):
        raise ArgumentError(f"checkpoint_name takes a string as name, got {name!r} of type {type(name).__name__}")
    named: T = tree.tree_map(lambda leaf: name_p.bind(_array(leaf, name), name=name), x)
    return named


def _array(x: Any, name: str) -> Array:
    """Convert ``x``, a leaf that :func:`checkpoint_name` was called with, to an array; its errors mention ``name``."""
    try:
        return x if isinstance(x, Array) else as_array(x)
    except OperandError as error:
        raise type(error)(f"checkpoint_name takes a tree of arrays, for the name {name!r} too: {error}") from None


# Policies ------------------------------------------------------------------------------------------------------------


class Offloadable(NamedTuple):
    """The answer of a policy that saves values in another memory.

    Attributes:
      src: the memory of the values, such as ``"device"``; the backward pass moves them there.
      dst: the memory to save them in, such as ``"pinned_host"``.
    """

    src: str
    dst: str

    def moves(self, value: Var, stored: Var) -> tuple[Eqn, Eqn]:
        """Return the equation that moves ``value`` to ``stored``, in the memory ``dst``, and the equation back."""
        src, dst = _space(self.src), _space(self.dst)
        return (
            Eqn(device_put_p, [value], {"placement": dst, "source": src}, [stored]),
            Eqn(device_put_p, [stored], {"placement": src, "source": dst}, [value]),
        )


def _space(kind: str) -> Space:
    return Space.Device if kind == "device" else Space.Host


def everything_saveable(primitive: Primitive, *avals: ShapedArray, **params: Any) -> bool:
    """Return True. As a policy, this saves all residuals, as if there were no checkpoint.

    >>> from pullback import checkpoint_policies, lax
    >>> checkpoint_policies.everything_saveable(lax.dot_general_p)
    True
    """
    return True


def nothing_saveable(primitive: Primitive, *avals: ShapedArray, **params: Any) -> bool:
    """Return False. As a policy, this saves only the arguments, as a checkpoint without a policy does.

    >>> from pullback import checkpoint_policies, lax
    >>> checkpoint_policies.nothing_saveable(lax.dot_general_p)
    False
    """
    return False


def dots_saveable(primitive: Primitive, *avals: ShapedArray, **params: Any) -> bool:
    """Whether an operation is a matrix product.

    As a policy, this saves the results that are the most expensive to recompute.

    >>> from pullback import checkpoint_policies, lax
    >>> from pullback.extend.core.primitives import name_p
    >>> checkpoint_policies.dots_saveable(lax.dot_general_p), checkpoint_policies.dots_saveable(name_p)
    (True, False)
    """
    return cost.of(primitive) is Cost.PRODUCT


def dots_with_no_batch_dims_saveable(primitive: Primitive, *avals: ShapedArray, **params: Any) -> bool:
    """Whether an operation is a matrix product without batch axes, as in dense layers, but not in attention.

    As a policy, this saves the results of such products.

    >>> from pullback import checkpoint_policies, lax
    >>> numbers = ((1,), (0,)), ((), ())
    >>> checkpoint_policies.dots_with_no_batch_dims_saveable(lax.dot_general_p, dimension_numbers=numbers)
    True
    """
    _, (batch, _) = params.get("dimension_numbers", ((), ((), ())))  # a user's product may have other parameters
    return dots_saveable(primitive) and not batch


def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """Make a policy that saves only the values with one of these names, which :func:`checkpoint_name` sets.

    >>> from pullback import checkpoint_policies
    >>> from pullback.extend.core.primitives import name_p
    >>> policy = checkpoint_policies.save_only_these_names("a")
    >>> policy(name_p, name="a"), policy(name_p, name="b")
    (True, False)
    """
    return _by_names("save_only_these_names", names_which_can_be_saved, saved=True, unnamed=False)


def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """Make a policy that saves only values with a name, and only if their name is none of these.

    >>> from pullback import checkpoint_policies
    >>> from pullback.extend.core.primitives import name_p
    >>> policy = checkpoint_policies.save_any_names_but_these("a")
    >>> policy(name_p, name="a"), policy(name_p, name="b")
    (False, True)
    """
    return _by_names("save_any_names_but_these", names_not_to_save, saved=False, unnamed=False)


def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """Make a policy that saves all values, with or without a name, except those with one of these names.

    The operand of ``checkpoint_name`` may still be saved, and the named value is recomputed from it.

    >>> from pullback import checkpoint_policies, lax
    >>> from pullback.extend.core.primitives import name_p
    >>> policy = checkpoint_policies.save_anything_except_these_names("a")
    >>> policy(name_p, name="a"), policy(name_p, name="b"), policy(lax.dot_general_p)
    (False, True, True)
    """
    return _by_names("save_anything_except_these_names", names_not_to_save, saved=False, unnamed=True)


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """Make a policy that saves each value that at least one of two policies saves.

    Raises:
      ArgumentError: a policy is not callable (a TypeError and ValueError).

    >>> from pullback import checkpoint_policies, lax
    >>> from pullback.extend.core.primitives import name_p
    >>> named = checkpoint_policies.save_only_these_names("a")
    >>> policy = checkpoint_policies.save_from_both_policies(checkpoint_policies.dots_saveable, named)
    >>> policy(name_p, name="a"), policy(lax.dot_general_p), policy(name_p, name="b")
    (True, True, False)
    """
    for policy in (policy_1, policy_2):
        check_policy(policy, "save_from_both_policies")
    return _described(
        f"save_from_both_policies({_name(policy_1)}, {_name(policy_2)})",
        lambda primitive, *avals, **params: (
            policy_1(primitive, *avals, **params) or policy_2(primitive, *avals, **params)
        ),
    )


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """Make a policy that saves the same values as :func:`dots_with_no_batch_dims_saveable`, in another memory.

    The forward pass moves them there, and the backward pass back. On a CPU, which has a single memory, they stay where
    they are. Values of a loop within the checkpointed function are moved together, after the loop.

    Args:
      offload_src: the name of the memory of the values, such as ``"device"``.
      offload_dst: the name of the memory to save them in, such as ``"pinned_host"``.

    Raises:
      ArgumentError: a memory is not ``device``, ``pinned_host`` or ``unpinned_host`` (a ValueError).

    >>> from pullback import checkpoint_policies, lax
    >>> policy = checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    >>> policy(lax.dot_general_p, dimension_numbers=(((1,), (0,)), ((), ())))
    Offloadable(src='device', dst='pinned_host')
    """
    who = "offload_dot_with_no_batch_dims"
    _check_memories(who, offload_src, offload_dst)
    offload = Offloadable(offload_src, offload_dst)

    def policy(primitive: Primitive, *avals: ShapedArray, **params: Any) -> Any:
        return offload if dots_with_no_batch_dims_saveable(primitive, *avals, **params) else False

    return _described(f"{who}({offload_src!r}, {offload_dst!r})", policy)


def save_and_offload_only_these_names(
    *, names_which_can_be_saved: Sequence[str], names_which_can_be_offloaded: Sequence[str], offload_src: str,
    offload_dst: str,
) -> Policy:  # fmt: skip
    """Make a policy that saves the values whose names are in one of two lists, those of the second in another memory.

    The forward pass moves these there, and the backward pass back. On a CPU, which has a single memory, they stay where
    they are. Values of a loop within the checkpointed function are moved together, after the loop.

    Args:
      names_which_can_be_saved: the names of values to save; :func:`checkpoint_name` sets names.
      names_which_can_be_offloaded: the names of values to save in the other memory.
      offload_src: the name of the memory of the values, such as ``"device"``.
      offload_dst: the name of the other memory, such as ``"pinned_host"``.

    Raises:
      ArgumentError: a name is no string, or is in both lists; or a memory is not ``device``, ``pinned_host`` or
        ``unpinned_host`` (a ValueError).

    >>> from pullback import checkpoint_policies
    >>> from pullback.extend.core.primitives import name_p
    >>> policy = checkpoint_policies.save_and_offload_only_these_names(
    ...     names_which_can_be_saved=["a"], names_which_can_be_offloaded=["b"],
    ...     offload_src="device", offload_dst="pinned_host")
    >>> policy(name_p, name="a"), policy(name_p, name="b"), policy(name_p, name="c")
    (True, Offloadable(src='device', dst='pinned_host'), False)
    """
    who = "save_and_offload_only_these_names"
    _check_memories(who, offload_src, offload_dst)
    both = set(names_which_can_be_saved) & set(names_which_can_be_offloaded)
    if both:
        raise ArgumentError(f"{who}: {sorted(both)} are in both lists of names; leave them in one")
    every = (*names_which_can_be_saved, *names_which_can_be_offloaded)
    saved, offloaded = _by_names(who, every, saved=True, unnamed=False), frozenset(names_which_can_be_offloaded)
    offload = Offloadable(offload_src, offload_dst)

    def policy(primitive: Primitive, *avals: ShapedArray, **params: Any) -> Any:
        found = saved(primitive, *avals, **params)
        return offload if found and params["name"] in offloaded else found

    return _described(f"{who}{every}", policy)


def _check_memories(who: str, *memories: str) -> None:
    """Raise unless each of ``memories`` is "device", "pinned_host" or "unpinned_host"; ``who`` is the caller's name."""
    for memory in memories:
        if not is_listed(memory, ("device", "pinned_host", "unpinned_host")):
            raise ArgumentError(f"{who}: a memory must be 'device', 'pinned_host' or 'unpinned_host', got {memory!r}")


def check_policy(policy: Any, who: str) -> None:
    """Raise unless ``policy`` is callable; raise also for a function that makes policies, as ``save_only_these_names``.

    ``who`` names the caller in errors.
    """
    if any(policy is maker for maker in _MAKERS):
        raise ArgumentError(f"{who}: {policy.__name__} returns a policy: call it, as in {policy.__name__}(...)")
    if not callable(policy):
        raise ArgumentError(
            f"{who} takes a policy, a function policy(primitive, *avals, **params) -> bool, such as "
            f"checkpoint_policies.dots_saveable, got {policy!r} of type {type(policy).__name__}"
        )


def _name(policy: Policy) -> str:
    """Return the name of a policy: its ``__name__``, or its ``repr`` if it has none."""
    return getattr(policy, "__name__", repr(policy))


def _described(name: str, policy: Policy) -> Policy:
    """Set the name of a policy, which printed jaxprs show, to ``name``; return the policy."""
    policy.__name__ = policy.__qualname__ = name.replace(",)", ")")
    return policy


def _by_names(who: str, names: tuple[Any, ...], saved: bool, unnamed: bool) -> Policy:
    """Make a policy that decides by the names of values, which :func:`checkpoint_name` sets.

    Args:
      who: the name of the policy, for error messages.
      names: the listed names.
      saved: True to save the values with a listed name, False to save those with another name.
      unnamed: whether to save values without a name.
    """
    for name in names:
        if not isinstance(name, str):
            raise ArgumentError(
                f"{who} takes names, each a string and a separate argument, got {name!r} of type {type(name).__name__}"
            )
    listed = frozenset(names)

    def policy(primitive: Primitive, *avals: ShapedArray, **params: Any) -> bool:
        # Other primitives have a parameter ``name``, too, for example the use of a random key.
        return (params["name"] in listed) is saved if primitive is name_p else unnamed

    return _described(f"{who}{names}", policy)


_MAKERS: tuple[Any, ...] = (
    save_only_these_names, save_any_names_but_these, save_anything_except_these_names, save_from_both_policies,
    offload_dot_with_no_batch_dims, save_and_offload_only_these_names,
)  # fmt: skip


class checkpoint_policies:
    """A namespace of all policies, as in ``checkpoint(f, policy=checkpoint_policies.dots_saveable)``.

    >>> from pullback import checkpoint_policies
    >>> checkpoint_policies.checkpoint_dots is checkpoint_policies.dots_saveable
    True
    """

    everything_saveable = staticmethod(everything_saveable)
    nothing_saveable = staticmethod(nothing_saveable)
    dots_saveable = staticmethod(dots_saveable)
    checkpoint_dots = dots_saveable
    dots_with_no_batch_dims_saveable = staticmethod(dots_with_no_batch_dims_saveable)
    checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable
    save_only_these_names = staticmethod(save_only_these_names)
    save_any_names_but_these = staticmethod(save_any_names_but_these)
    save_anything_except_these_names = staticmethod(save_anything_except_these_names)
    save_from_both_policies = staticmethod(save_from_both_policies)
    offload_dot_with_no_batch_dims = staticmethod(offload_dot_with_no_batch_dims)
    save_and_offload_only_these_names = staticmethod(save_and_offload_only_these_names)
