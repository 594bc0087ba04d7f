"""``jax._src.ad_util``: Lineax takes ``stop_gradient_p``, others the zeros."""

from pullback.interpreters.ad import Zero as Zero
from pullback.interpreters.ad import add_jaxvals as add_jaxvals
from pullback.interpreters.ad import instantiate_zeros as instantiate  # noqa: F401
from pullback.interpreters.ad import is_undefined_primal as is_undefined_primal
from pullback.interpreters.ad import zeros_like_aval as zeros_like_aval
from pullback.primitives.elementwise import stop_gradient_p as stop_gradient_p
