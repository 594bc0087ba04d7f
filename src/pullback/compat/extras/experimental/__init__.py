"""``jax.experimental``: the names that ``pullback.experimental`` lacks."""

from pullback.compat.extras._src.earray import EArray as EArray
from pullback.compat.extras.experimental.hijax import cur_qdd as cur_qdd

__all__ = ["EArray", "cur_qdd"]
