"""The first stage of ``jit``: a function that was traced, which is lowered for its devices or for others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.backends.devices.shardings import over_devices
from pullback.core import tree
from pullback.core.array import ArrayImpl, Signature, signature, signature_of
from pullback.core.jaxpr import ClosedJaxpr
from pullback.core.refs import RefCell
from pullback.core.types import ShapedArray
from pullback.core.user_types import has_user_types, is_user_value
from pullback.transforms.autodiff.tracing import struct_of
from pullback.transforms.jit.jit_arguments import Call, Options
from pullback.transforms.jit.jit_refs import UsedRefs
from pullback.transforms.jit.jit_shardings import placement_of
from pullback.transforms.jit.lowered_elsewhere import LoweredElsewhere, lowered_elsewhere
from pullback.transforms.jit.placements import in_placements, requested_or_actual
from pullback.transforms.jit.stages import ArgInfo, Lowered
from pullback.transforms.programs.lojax import lo_types, lowered, lowered_values


class Traced:
    """A function that was traced for arguments of some types.

    Attributes:
      jaxpr: the program; captured tracers of enclosing transformations are its last inputs.
      out_tree: the tree of the results.
      captured: the captured tracers.
      call: the arguments, if the user called ``trace``; None in the cache, which must not keep arguments alive.
      refs: the references that the function uses, or None.

    >>> import pullback.numpy as jnp
    >>> from pullback import jit
    >>> jit(lambda x: 2 * x).trace(jnp.ones(3)).jaxpr
    { lambda ; a:f32[3]. let b:f32[3] = mul 2.0:f32[] a in (b,) }
    """

    __slots__ = ("__weakref__", "call", "captured", "jaxpr", "out_tree", "refs")

    def __init__(
        self, jaxpr: ClosedJaxpr, out_tree: Any, captured: list[Any], call: Call | None = None,
        refs: UsedRefs | None = None,
    ) -> None:  # fmt: skip
        self.refs = refs
        self.jaxpr = jaxpr
        self.out_tree = out_tree
        self.captured = captured
        self.call: Any = call

    @property
    def fun_name(self) -> str:
        """The name of the function."""
        return self.call.fun_name  # type: ignore[no-any-return]

    @property
    def out_info(self) -> Any:
        """The types of the results, a tree of ``ShapeDtypeStruct``."""
        return tree.unflatten(self.out_tree, list(map(struct_of, self.out_avals)))

    @property
    def in_tree(self) -> Any:
        """The tree of the arguments, ``(args, kwargs)``, without the static ones."""
        return self.call.in_tree

    @property
    def args_info(self) -> Any:
        """Information on the arguments: a tree like ``(args, kwargs)`` of ``ArgInfo``."""
        return tree.unflatten(self.in_tree, list(map(ArgInfo, self.in_avals, self.call.donated_leaves())))

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The indices of the donated leaves of the arguments."""
        return tuple([i for i, donated in enumerate(self.call.donated_leaves()) if donated])

    @property
    def effects(self) -> Any:
        """The effects of the program, such as calls of Python functions."""
        return self.jaxpr.effects

    @property
    def in_avals(self) -> list[ShapedArray]:
        """The types of the arguments' leaves."""
        avals = self.jaxpr.in_avals
        return avals if self.refs is None else avals[: self.refs.inputs]

    @property
    def out_avals(self) -> list[ShapedArray]:
        """The types of the results' leaves."""
        avals = self.jaxpr.out_avals
        return avals if self.refs is None else avals[: self.refs.results]

    @property
    def lojax(self) -> Traced:
        """The traced function of arrays: values of users' types are replaced by the arrays of which they consist."""
        arrays: list[Any] = []
        for x, aval in zip(self.call.leaves, self.in_avals, strict=True):
            arrays += (
                lowered_values([x]) if is_user_value(x) else [x] if x is not aval else map(struct_of, lo_types([x]))
            )
        options = Options(
            ((), ()), ((), ()), False, self.call.options.keep_unused, self.call.options.device,
            self.call.options.compiler_options,
        )  # fmt: skip
        closed = lowered(self.jaxpr)
        return Traced(
            closed, tree.structure([0] * len(closed.out_avals)), [], Call(self.call.fun, options, (*arrays,), {})
        )

    def argument_placements(self) -> list[Any]:
        """Return the placement of each leaf of the arguments.

        It is the placement that ``in_shardings`` requests; without a request, the placement to which the leaf is
        committed, or None.
        """
        actual = [
            _signature_at(leaf, aval).placement for leaf, aval in zip(self.call.leaves, self.in_avals, strict=True)
        ]
        return requested_or_actual(in_placements(self.call, self.in_avals), actual)

    def lower(self, *, lowering_platforms: Sequence[str] | None = None) -> Lowered:
        """Lower the program to a StableHLO module, for the device of the arguments or for other devices.

        A program whose shardings are over an :class:`~pullback.sharding.AbstractMesh` gets its devices later, from
        ``compile(device_assignment=devices)``.

        Args:
          lowering_platforms: the names of the platforms, in a sequence; by default the platform of the arguments, or
            that of the abstract mesh.

        Raises:
          ArgumentError: an unknown platform, or none for an abstract mesh (a TypeError and ValueError).
        """
        if has_user_types([*self.in_avals, *self.out_avals]):
            of_arrays = self.lojax.lower(lowering_platforms=lowering_platforms)
            of_arrays.high = self
            return of_arrays
        without_devices = lowered_elsewhere(self, lowering_platforms)
        if without_devices is not None:
            return without_devices
        signatures = list(map(_signature_at, self.call.leaves, self.in_avals))
        if self.refs is not None:
            signatures += map(signature_of, self.refs.contents())
        lowered = Lowered(self, self.call, signatures)
        platform = lowered.program.device.target
        names = {"cuda": ("cuda", "gpu")}.get(platform, (platform,))
        if lowering_platforms is None or (len(lowering_platforms) == 1 and lowering_platforms[0] in names):
            return lowered
        return LoweredElsewhere(self, lowering_platforms, None)


def _signature_at(leaf: Any, aval: ShapedArray) -> Signature:
    """Return the signature (type and placement) of a leaf of the arguments.

    The leaf is an array, a reference, or an object with a shape, a dtype and perhaps a ``sharding``. The types of
    arrays are their own; ``aval`` is the type of another object.
    """
    if isinstance(leaf, RefCell):
        leaf = leaf.content
    if isinstance(leaf, ArrayImpl):
        return signature_of(leaf)
    if isinstance(leaf, ShapedArray):  # of its sharding, only the explicit axes are the user's
        placement = None if leaf.explicit is None else over_devices(leaf.explicit)
    else:
        placement = placement_of(getattr(leaf, "sharding", None), "lower")
    return signature(aval.shape, aval.dtype, aval.weak_type, placement)
