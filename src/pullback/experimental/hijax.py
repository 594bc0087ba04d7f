"""``jax.experimental.hijax``: users' operations with rules as methods, and types of users' values.

Classes:
  HiType: a base class for types of users' values.
  VJPHiPrimitive: a base class for operations on arrays and on values of such types.

Functions:
  instantiate_zeros: return a tangent, converting a ``Zero`` to an array of zeros.
"""

from __future__ import annotations

from pullback.core.faces import face
from pullback.core.types import ShapedArray as ShapedArray
from pullback.core.user_types import HiPspec as HiPspec
from pullback.core.user_types import HiType as HiType
from pullback.core.user_types import MappingSpec as MappingSpec
from pullback.core.user_types import register_hitype as register_hitype
from pullback.core.zeros import Zero as Zero
from pullback.core.zeros import instantiate_zeros as instantiate_zeros
from pullback.transforms.custom.hi_derived import jvp_from_lin as jvp_from_lin
from pullback.transforms.custom.hi_derived import linearize_from_jvp as linearize_from_jvp
from pullback.transforms.custom.hi_derived import vjp_from_jvp as vjp_from_jvp
from pullback.transforms.custom.hi_derived import vjp_from_lin as vjp_from_lin
from pullback.transforms.custom.hi_primitive import GradAccum as GradAccum
from pullback.transforms.custom.hi_primitive import NullAccum as NullAccum
from pullback.transforms.custom.hi_primitive import RefAccum as RefAccum
from pullback.transforms.custom.hi_primitive import ValAccum as ValAccum
from pullback.transforms.custom.hi_primitive import VJPHiPrimitive as VJPHiPrimitive
from pullback.transforms.custom.hi_vmap import VmapOf as _VmapOf  # noqa: F401 (the rules are registered)

__all__ = [
    "GradAccum", "HiPspec", "HiType", "MappingSpec", "NullAccum", "RefAccum", "ShapedArray",
    "VJPHiPrimitive", "ValAccum", "Zero", "instantiate_zeros", "jvp_from_lin", "linearize_from_jvp", "register_hitype",
    "vjp_from_jvp", "vjp_from_lin",
]  # fmt: skip
face(globals())
