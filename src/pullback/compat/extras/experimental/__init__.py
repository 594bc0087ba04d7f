"""``jax.experimental``: what ``pullback.experimental`` does not have."""

from pullback.compat.extras._src.earray import EArray as EArray
from pullback.compat.extras.experimental.hijax import cur_qdd as cur_qdd

__all__ = ["EArray", "cur_qdd"]
