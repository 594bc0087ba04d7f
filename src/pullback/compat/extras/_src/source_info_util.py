"""``jax._src.source_info_util``: the names of ``jax.extend.source_info_util``."""

from pullback.extend.source_info_util import current as current
from pullback.extend.source_info_util import register_exclusion as register_exclusion
from pullback.extend.source_info_util import summarize as summarize

__all__ = ["current", "register_exclusion", "summarize"]
